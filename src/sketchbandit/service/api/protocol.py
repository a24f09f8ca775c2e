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


def limited(limits: Limits) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, with a deadline for every request and a bound on connections."""

    class LimitedProtocol(HttpToolsProtocol):
        """Closes a connection whose request has not wholly arrived in time (a slow loris)."""

        _deadline: asyncio.TimerHandle | None = None
        _quiet_bytes = 0
        """Received since the request began, or since the last of its body: headers, trailers."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
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
