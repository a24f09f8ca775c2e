"""Connections that do not get to the point are closed."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sketchbandit.service.settings import Limits

_FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: application/json\r\n"
    b'content-length: 66\r\n\r\n{"error":{"code":"busy","message":"too many connections at once"}}'
)


class JoinedTransport:
    """A transport that sends what is written in one turn of the loop at once: headers and body together.

    A call of the system less for every answer, which is a tenth of the time that one takes.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send with whatever else is written now."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Close when everything is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def limited(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, with a deadline for every request and a bound on connections."""

    class LimitedProtocol(HttpToolsProtocol):
        """Closes a connection whose request has not wholly arrived in time (a slow loris)."""

        _deadline: asyncio.TimerHandle | None = None
        _quiet_bytes = 0
        """Received since the request began, or since the last of its body: headers, trailers."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(JoinedTransport(transport, self.loop))  # type: ignore[arg-type]
            if len(self.connections) > limits.connections:
                transport.write(_FULL)
                transport.close()
                return
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self._quiet_bytes += len(data)
            super().data_received(data)
            if self._quiet_bytes > limits.header_bytes and not self.transport.is_closing():
                self.send_400_response("The headers are too long.")

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:
                self._arm()

        def on_body(self, body: bytes) -> None:
            self._quiet_bytes = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._quiet_bytes = 0
            self._disarm()
            super().on_message_complete()

        def _arm(self) -> None:
            self._deadline = self.loop.call_later(limits.request_seconds, self.transport.close)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return LimitedProtocol
