"""HTTP over plain sockets with requests made beforehand: clients that cost as little as they can."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

JSON = "application/json"


def address(url: str) -> tuple[str, int]:
    """Host and port."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


def request(method: str, path: str, body: bytes, host: str, content_type: str = JSON) -> bytes:
    """The bytes of an HTTP request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {content_type}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """One keep-alive connection: send a request, await (status, body)."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = 0  # bytes of the whole answer, once its head is there
        self._head = 0
        self._future: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Some of an answer."""
        buffer = self._buffer
        buffer += data
        if not self._wanted:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = bytes(buffer[:end]).lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            self._head = end + 4
            self._wanted = self._head + int(length)
        if len(buffer) >= self._wanted and self._future is not None:
            answer = int(buffer[9:12]), bytes(buffer[self._head : self._wanted])
            del buffer[: self._wanted]
            self._wanted = 0
            future, self._future = self._future, None
            if not future.done():
                future.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has gone."""
        if self._future is not None and not self._future.done():
            self._future.set_exception(ConnectionResetError(str(exc)))

    async def send(self, payload: bytes) -> tuple[int, bytes]:
        """The answer to one request."""
        if self.transport.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._future = asyncio.get_running_loop().create_future()
        self.transport.write(payload)
        return await self._future


async def connect(url: str) -> Connection:
    """A connection to the server."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, *address(url))
    return connection


async def call(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """One request on a connection of its own: status and answer."""
    connection = await connect(url)
    content = b"" if body is None else json.dumps(body).encode()
    status, answer = await connection.send(request(method, path, content, urlsplit(url).netloc))
    connection.transport.close()
    return status, json.loads(answer) if answer else None


async def create(url: str, name: str, settings: Mapping[str, object]) -> None:
    """PUT a bandit."""
    status, answer = await call(url, "PUT", f"/v1/bandits/{quote(name)}", settings)
    assert status in (200, 201), answer


async def rounds(url: str, name: str) -> int:
    """How many rewards a bandit has learned from."""
    status, answer = await call(url, "GET", f"/v1/bandits/{quote(name)}/stats")
    assert status == 200, answer
    return int(answer["rounds"])
