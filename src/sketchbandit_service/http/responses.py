"""Answers as bytes, and problems as answers."""

import asyncio
import json
import re
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time

from sketchbandit_service.http.messages import Response
from sketchbandit_service.problems import Problem

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ALWAYS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""Headers of every answer. A ``Response`` does not contain them."""

_JOINED = 64 * 1024  # a body up to here is copied behind its head, and both are sent at once
_BODILESS = (204, 304)
_BREAKS = re.compile(r"[\r\n\0]")


def utf8(text: str) -> bytes:
    r"""JSON as bytes. A lone surrogate, which UTF-8 cannot encode, becomes a JSON escape.

    >>> utf8('"\ud800"')
    b'"\\ud800"'
    """
    return text.encode("utf-8", "backslashreplace")


def error_body(problem: Problem) -> dict[str, str]:
    """The problem as clients see it."""
    return {"code": problem.code, "message": str(problem)}


def problem_response(problem: Problem) -> Response:
    """The answer to a refused request."""
    told = {"error": error_body(problem)}
    response = Response(problem.status, utf8(json.dumps(told, ensure_ascii=False, separators=(",", ":"))))
    if problem.retry_after is not None:
        response.headers["retry-after"] = str(problem.retry_after)
    if problem.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def head_of(response: Response, *, is_last: bool) -> bytes:
    """Everything before the body. ``is_last`` tells the client that the connection ends after it."""
    head = _begin(response.status, response.content_type, int(time()))
    if response.status not in _BODILESS:
        head += b"content-length: %d\r\n" % len(response.body)
    for name, value in response.headers.items():
        head += _line(name, value)
    return head + (b"connection: close\r\n\r\n" if is_last else b"\r\n")


def write(transport: asyncio.WriteTransport, response: Response, *, is_last: bool, is_head: bool) -> None:
    """Send an answer, without its body for HEAD."""
    head, body = head_of(response, is_last=is_last), b"" if is_head else response.body
    if len(body) <= _JOINED:
        transport.write(head + body)
    else:
        transport.write(head)
        transport.write(body)


@lru_cache(64)
def _begin(status: int, content_type: str, second: int) -> bytes:
    """The part of the head that all answers of one second share."""
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    headers = {"date": formatdate(second, usegmt=True), **ALWAYS}
    if status not in _BODILESS:
        headers["content-type"] = content_type
    return first + b"".join(_line(name, value) for name, value in headers.items())


@lru_cache(256)
def _line(name: str, value: str) -> bytes:
    """A header line. Line breaks in the value are removed, so it cannot begin another header."""
    return f"{name}: {_BREAKS.sub(' ', value)}\r\n".encode("latin-1", "replace")
