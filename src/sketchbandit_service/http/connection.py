"""One connection. It handles requests one after another, with limits on time and memory."""

import asyncio
import logging
from math import inf
from typing import cast

from sketchbandit_service.http.messages import READING, Request, Response
from sketchbandit_service.http.request_parser import Reader
from sketchbandit_service.http.responses import CONTINUE, problem_response, write
from sketchbandit_service.http.shared import Shared, State
from sketchbandit_service.problems import Busy, Malformed, Problem

log = logging.getLogger(__name__)

KEEP_ALIVE = 75.0  # seconds that an idle connection may stay
LINGER = 0.25  # seconds in which a client that sent nonsense can still read the answer ...
_NONSENSE = 256 * 1024  # ... and bytes that it may still send
_SLOWEST = 4096  # bytes per second at which a client must at least read a long answer
_FAILED = problem_response(Problem("internal error; the log of the server says what went wrong"))


class Connection(asyncio.Protocol):
    """Reads a request, has it answered, and sends the answer. Only then it looks at the next request.

    Everything it keeps in memory is charged: the body as it arrives, early bytes of the next request, and the
    answer until its last byte is sent.
    """

    _transport: asyncio.Transport
    _request: Request | None = None
    _task: asyncio.Task[None] | None = None
    _state = State.READING
    _rest = b""
    """Bytes that came early: the beginning of the next request."""
    _taken = 0
    """Bytes of the body that are charged."""
    _spare: float = _NONSENSE
    """Bytes that are thrown away before the connection is cut."""
    _unsent = 0
    _client = ""
    _is_idle = _is_paused = _is_last = _is_lost = _has_ended = False

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(shared.limits)
        self._charge = shared.budget.open()
        self._until = self._loop.time() + shared.limits.request_seconds

    def check(self, now: float) -> None:
        """End a connection that takes too long to send its request or to read its answer."""
        if now < self._until:
            return
        if self._state is State.SENDING:
            unsent, seconds = self._transport.get_write_buffer_size(), self._shared.limits.request_seconds
            if self._unsent - unsent >= _SLOWEST * seconds:
                self._unsent, self._until = unsent, now + seconds
                return
        self._transport.abort()

    def stop(self) -> None:
        """Close, unless a request is under way. Then its answer is the last."""
        if self._request is None or self._state is State.LEAVING:
            self._transport.close()

    def cancel(self) -> asyncio.Task[None] | None:
        """End at once. Returns the work that is still going on."""
        self._transport.abort()
        return self._task if self._state is State.ANSWERING else None

    # -- told by the transport ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        if len(self._shared.connections) >= self._shared.limits.connections:
            self._state = State.LEAVING
            self._write(problem_response(Busy("too many connections; try again in a moment")), is_last=True)
            transport.close()
            return
        self._transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername")
        self._client = str(peer[0]) if peer else ""
        self._shared.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio calls it so)
        """The client is gone. Its request is finished all the same."""
        self._is_lost = True
        self._reader.close()
        self._shared.connections.discard(self)
        if self._state is State.ANSWERING and self._task is not None:
            self._shared.orphans.add(self._task)
            self._task.add_done_callback(self._shared.orphans.discard)
        else:
            self._charge.release()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        if self._state is State.READING and not self._rest:
            self._read(data)
        elif self._state is not State.LEAVING:
            self._keep(data)
        else:
            self._spare -= len(data)
            if self._spare < 0:
                self._transport.abort()

    def eof_received(self) -> bool:
        """The client will send nothing more. It may still wait for an answer."""
        self._has_ended = True
        return self._state in (State.ANSWERING, State.SENDING) or bool(self._rest)

    def resume_writing(self) -> None:
        """Everything was sent."""
        if self._state is State.SENDING:
            self._end()

    # -- requests -------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> None:
        limits = self._shared.limits
        if self._is_idle:
            self._is_idle, self._until = False, self._loop.time() + limits.request_seconds
        try:
            self._parse(data)
        except Malformed as problem:
            self._leave(problem_response(problem))
        except Problem as problem:
            self._leave_body(problem_response(problem))
        except Exception:
            log.exception("a request failed")
            self._leave(_FAILED)

    def _parse(self, data: bytes) -> None:
        """Read up to the end of a request, as far as it has arrived."""
        reader, at = self._reader, 0
        while at < len(data):
            at = reader.feed(data, at)
            if not reader.has_head:
                continue
            request, is_new = self._request, self._request is None
            if request is None:
                request = self._request = reader.request(self._charge, self._client)
                self._charge.expected = reader.expected
                if (refusal := self._shared.application.admit(request)) is not None:
                    self._refuse(refusal, data, at)
                    return
            count = reader.check_length()
            if count > self._taken:
                self._charge.add(count - self._taken)
                self._taken = count
            if reader.is_complete:
                request.body = reader.take_body()
                self._hold(data, at)
                self._task = self._loop.create_task(self._answer(request))
                return
            if is_new and at == len(data) and request.headers.get("expect", "").lower() == "100-continue":
                self._transport.write(CONTINUE)

    def _refuse(self, refusal: Response, data: bytes, at: int) -> None:
        """Answer without reading the body. If it has arrived it is skipped; otherwise nobody waits for it."""
        if not self._reader.has_whole_body(data, at):
            self._leave_body(refusal)
            return
        if not self._reader.is_complete:
            at = self._reader.feed(data, at)
        self._hold(data, at)
        self._send(refusal)

    def _hold(self, data: bytes, at: int) -> None:
        """Read no further until this request is answered."""
        self._state, self._until = State.ANSWERING, inf
        self._is_last |= self._reader.is_last
        if at < len(data) and not self._is_last:
            self._keep(data[at:])

    def _keep(self, data: bytes) -> None:
        """Keep bytes that came early, and stop reading."""
        try:
            self._charge.add(len(data))
        except Problem:
            self._transport.abort()
            return
        self._rest += data
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._shared.application.answer(request)
        except Exception:
            log.exception("a request failed", extra={"path": request.path})
            response = _FAILED
        except asyncio.CancelledError:
            self._charge.release()
            raise
        if self._is_lost or self._transport.is_closing():
            self._charge.release()
        else:
            self._send(response)

    # -- answers --------------------------------------------------------------------------------------

    def _send(self, response: Response) -> None:
        """Send the answer. It is charged until the client has read it.

        Only the answer to a GET or HEAD may be turned into a refusal. Any other request is done by now, and
        must not be sent again.
        """
        self._is_last |= self._shared.is_stopping or (self._has_ended and not self._rest)
        is_done = self._request is None or self._request.method not in READING
        try:
            self._charge.become(len(response.body) + len(self._rest), is_done=is_done)
        except Problem as problem:
            response, self._is_last = problem_response(problem), True
            self._charge.become(len(response.body) + len(self._rest), is_done=True)
        self._write(response, is_last=self._is_last)
        self._unsent = self._transport.get_write_buffer_size()
        if self._unsent:
            self._state = State.SENDING
            self._until = self._loop.time() + self._shared.limits.request_seconds
        else:
            self._end()

    def _write(self, response: Response, *, is_last: bool) -> None:
        is_head = self._request is not None and self._request.method == "HEAD"
        write(self._transport, response, is_last=is_last, is_head=is_head)

    def _end(self) -> None:
        """The answer was sent: go on with the next request."""
        self._charge.release()
        self._request = self._task = None
        if self._is_last or (self._has_ended and not self._rest):
            self._state, self._until = State.LEAVING, self._loop.time() + LINGER
            self._transport.close()
            return
        self._reader.restart()
        self._state, self._is_idle, self._taken = State.READING, True, 0
        self._until = self._loop.time() + KEEP_ALIVE
        if self._rest:
            self._loop.call_soon(self._go_on)
        else:
            self._resume()

    def _go_on(self) -> None:
        """Read the bytes that came early."""
        data, self._rest = self._rest, b""
        self._charge.release()
        if not self._transport.is_closing():
            self._read(data)
            if self._state is State.READING and not self._rest:
                self._resume()
                if self._has_ended:
                    self._transport.close()  # in the middle of a request

    def _leave_body(self, response: Response) -> None:
        """Refuse a body that is still arriving. A client that sends all of it before it reads may do so."""
        self._leave(response, self._shared.limits.request_seconds, inf)

    def _leave(self, response: Response, seconds: float = LINGER, spare: float = _NONSENSE) -> None:
        """Send a last answer. For a while throw away what comes, so that the client can read the answer."""
        self._reader.forget_body()  # it is no longer charged
        self._charge.release()
        self._state, self._until, self._rest = State.LEAVING, self._loop.time() + seconds, b""
        self._spare = spare
        self._write(response, is_last=True)
        if self._shared.is_stopping:
            self._transport.close()
            return
        self._transport.write_eof()
        self._resume()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
