"""A server in a thread, with an application that tells what it was asked, and clients on plain sockets."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import Any

from sketchbandit_service.budget import Budget
from sketchbandit_service.http.listening import Listener
from sketchbandit_service.http.messages import Request, Response
from sketchbandit_service.http.responses import problem_response
from sketchbandit_service.problems import Forbidden
from sketchbandit_service.settings import Limits

LIMITS = Limits(body_bytes=100_000, header_bytes=4096, connections=20, request_seconds=0.4)
BUDGET = 400_000


class Application:
    """Tells what it was asked, or does what the path says."""

    def __init__(self) -> None:
        self.gate: asyncio.Event | None = None
        self.began = threading.Event()
        self.finished = 0

    def admit(self, request: Request) -> Response | None:
        """All but one path."""
        if request.path == "/admit-fails":
            raise RuntimeError("secret detail")
        return problem_response(Forbidden("not you")) if request.path == "/forbidden" else None

    async def answer(self, request: Request) -> Response:
        """What was asked, as JSON."""
        if request.path == "/long":
            return Response(200, b"x" * int(request.query["bytes"]), "text/plain")
        if request.path == "/fails":
            raise RuntimeError("secret detail")
        if request.path == "/none":
            return Response(204, headers={"x-odd": "a\r\nset-cookie: b"})
        if request.path == "/waits":
            self.gate = self.gate or asyncio.Event()
            self.began.set()
            await self.gate.wait()
            self.finished += 1
        told = {"method": request.method, "path": request.path, "query": request.query}
        return Response(
            200,
            json.dumps({**told, "headers": request.headers, "body": request.body.decode("latin-1")}).encode(),
        )


class Serving:
    """A server in a thread of its own."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop], limits: Limits, most: int) -> None:
        self.application = Application()
        self.budget = Budget(most)
        self.listener = Listener(self.application, limits, self.budget)
        self.loop = make_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.port = self.do(self.listener.open("127.0.0.1", 0)).result(10)

    def do(self, work: Any) -> futures.Future[Any]:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def open_gate(self) -> None:
        """Let those that wait go on."""
        assert self.application.gate is not None
        self.loop.call_soon_threadsafe(self.application.gate.set)

    def end(self, seconds: float = 0.0) -> None:
        """Stop in order."""
        self.do(self.listener.close(seconds)).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def say(self, data: bytes) -> bytes:
        """All that comes back for these bytes, after which the client sends no more."""
        with self.connect() as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def is_free(self) -> bool:
        """Whether nothing is charged any more, or soon."""
        return until(lambda: self.budget.taken == 0)


def until(is_so: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_so()


def read_all(client: socket.socket) -> bytes:
    """Up to the end."""
    found = b""
    with suppress(ConnectionResetError):
        while data := client.recv(65536):
            found += data
    return found


def read_answer(client: socket.socket) -> tuple[int, bytes, bytes]:
    """Status, head and body of one answer."""
    found = b""
    while b"\r\n\r\n" not in found:
        data = client.recv(65536)
        assert data, found
        found += data
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length:
        body += client.recv(65536)
    assert len(body) == length
    return int(head[9:12]), head, body


def ask(path: bytes = b"/", *headers: bytes, method: bytes = b"GET", body: bytes | None = None) -> bytes:
    """The bytes of a request."""
    lines = [method + b" " + path + b" HTTP/1.1", b"host: localhost", *headers]
    if body is not None:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body or b""])


def error_in(answer: bytes) -> dict[str, str]:
    """The documented shape."""
    error: dict[str, str] = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert set(error) == {"code", "message"}
    assert b"connection: close" in answer
    return error


@contextmanager
def serving(make_loop: Any, limits: Limits = LIMITS, most: int = BUDGET) -> Iterator[Serving]:
    """A server for one test; nothing of it may stay behind."""
    made = Serving(make_loop, limits, most)
    try:
        yield made
    finally:
        made.end()
    assert made.budget.taken == 0
