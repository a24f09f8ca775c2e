"""Reads requests from bytes: where one ends and the next begins, and what is not HTTP."""

from math import inf
from typing import cast
from urllib.parse import parse_qsl, unquote_to_bytes

import httptools

from sketchbandit_service.budget import Charge
from sketchbandit_service.http.messages import Request
from sketchbandit_service.problems import Malformed, TooLarge
from sketchbandit_service.settings import Limits

_END = b"\r\n\r\n"
_CHUNKED = -1
_MOST_FIELDS = (
    100  # headers, and parameters of a query: many small ones take far more memory than their bytes
)


class Reader:
    """Reads the bytes of a connection, one request at a time.

    Each ``feed`` reads at most up to the end of the head, then up to the end of the body. What follows
    belongs to the next request and is not looked at. The parser's callbacks only store what they get.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self.restart()

    def restart(self) -> None:
        """Be ready for the next request."""
        self._target = self._tail = b""
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._left = self._quiet = 0
        self.has_head = self.is_complete = self.is_last = self._is_upgrade = False

    def feed(self, data: bytes, start: int) -> int:
        """Read some of the bytes from ``start``. Returns where it stopped."""
        before = len(self._body)
        if not self.has_head:
            end = self._end_of_head(data, start)
        else:
            end = len(data) if self._left == _CHUNKED else min(len(data), start + self._left)
        piece = data[start:end]
        if self._is_upgrade:
            self.on_body(piece)  # the parser does not read it
        else:
            self._parse(piece)
        grown = len(self._body) - before
        if self._left > 0:
            self._left -= grown
            self.is_complete = not self._left
        self._quiet = 0 if grown else self._quiet + len(piece)
        if self._quiet > self._limits.header_bytes:
            raise Malformed(f"the headers are longer than {self._limits.header_bytes} bytes")
        return end

    @property
    def expected(self) -> float:
        """Bytes of the body as the head announces them. inf if it comes in chunks."""
        return inf if self._left == _CHUNKED else len(self._body) + self._left

    def has_whole_body(self, data: bytes, start: int) -> bool:
        """Whether the rest of the body has arrived."""
        return self.is_complete or 0 < self._left <= len(data) - start

    def check_length(self) -> int:
        """Bytes of memory for the body so far. Refuses a body that is too long, or announced as too long."""
        count = len(self._body)
        if max(count, count + self._left) > self._limits.body_bytes:
            raise TooLarge(
                f"the body is longer than {self._limits.body_bytes} bytes; send fewer arms, store them with "
                "PUT /arms, or send them as application/x-npy in float32"
            )
        return self._body.__alloc__() if isinstance(self._body, bytearray) else count

    def request(self, charge: Charge, client: str) -> Request:
        """The checked request, once its head has arrived."""
        headers = self._headers
        if self._method == b"CONNECT" or (self._is_upgrade and self._left == _CHUNKED):
            raise Malformed("this server is not a proxy, and supports no other protocol than HTTP/1.1")
        if self._version not in ("1.0", "1.1"):
            raise Malformed(f"this server supports HTTP/1.1, not HTTP/{self._version}")
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            raise Malformed("this server reads no transfer-encoding but chunked")
        if "host" not in headers and self._version != "1.0":
            raise Malformed("the header Host is missing")
        path, query = _split(self._target)
        return Request(self._method.decode("ascii"), path, query, headers, charge, client=client)

    def forget_body(self) -> None:
        """Drop the body, because it is refused."""
        self._body = b""

    def close(self) -> None:
        """Nothing more will come. Reader and parser refer to each other; apart, both are freed at once."""
        del self._parser
        self.forget_body()

    def take_body(self) -> bytes:
        """The whole body.

        It may be a bytearray that nobody writes to any more: a copy would double the memory.
        """
        body, self._body = self._body, b""
        return cast("bytes", body)

    # -- told by the parser ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if self.is_complete:
            raise Malformed("one request at a time")

    def on_url(self, piece: bytes) -> None:
        """Some of the target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody asks for."""
        if self.has_head:
            return
        headers, key, text = self._headers, name.lower().decode("latin-1"), value.decode("latin-1")
        if key not in headers:
            headers[key] = text
        elif key in ("host", "content-length", "content-type", "authorization"):
            raise Malformed(f"the header {key} is given twice; send it once")
        else:
            headers[key] += f", {text}"
        if len(headers) > _MOST_FIELDS:
            raise Malformed(f"there are more than {_MOST_FIELDS} headers; send fewer")

    def on_headers_complete(self) -> None:
        """The head has arrived."""
        parser, headers = self._parser, self._headers
        self.has_head = True
        self._method, self._version = parser.get_method(), parser.get_http_version()
        self.is_last = self._version == "1.0" or not parser.should_keep_alive()
        self._is_upgrade = parser.should_upgrade()
        self._left = _CHUNKED if "transfer-encoding" in headers else int(headers.get("content-length", 0))

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        if not self._body:
            self._body = piece
        elif isinstance(self._body, bytearray):
            self._body += piece
        else:
            self._body = bytearray(self._body + piece)

    def on_message_complete(self) -> None:
        """The end of a request. The parser expects no body after an upgrade request, but there may be one."""
        self.is_complete = not (self._is_upgrade and self._left)

    def _parse(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            return  # it is not given
        except httptools.HttpParserError as error:
            if self.is_complete:
                self.is_last = True  # what came in one breath with the end of a chunked body is not read
                return
            reason = error.__context__ if isinstance(error.__context__, Malformed) else error
            raise Malformed(f"this is not a request in HTTP/1.1: {reason}") from None

    def _end_of_head(self, data: bytes, start: int) -> int:
        """Where the head ends, or the bytes do. The empty line may have begun in earlier bytes."""
        if tail := self._tail:
            at = (tail + data[start : start + 3]).find(_END)
            if at >= 0:
                return start + at + len(_END) - len(tail)
        at = data.find(_END, start)
        if at >= 0:
            return at + len(_END)
        self._tail = (tail + data[start:])[-3:] if len(data) - start < 3 else data[-3:]
        return len(data)


def _split(target: bytes) -> tuple[str, dict[str, str]]:
    """Path and query, decoded."""
    if not target.startswith(b"/") and target != b"*":
        try:
            parts = httptools.parse_url(target)
        except httptools.HttpParserError:
            raise Malformed("the target of the request is neither a path nor a URL") from None
        target = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
    path, _, query = target.partition(b"#")[0].partition(b"?")
    try:
        decoded = (unquote_to_bytes(path) if b"%" in path else path).decode()
        if not query:
            return decoded, {}
        fields = parse_qsl(query.decode(), True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError:
        raise Malformed("the path and the query must be UTF-8, percent-encoded") from None
    except ValueError:
        raise Malformed(f"there are more than {_MOST_FIELDS} parameters in the query; send fewer") from None
    return decoded, dict(fields)
