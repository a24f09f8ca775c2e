"""The server: a listening socket, its connections, and an orderly end."""

import asyncio

from sketchbandit.errors import InputError
from sketchbandit_service.budget import Budget
from sketchbandit_service.http.connection import LINGER, Connection
from sketchbandit_service.http.messages import Application
from sketchbandit_service.http.shared import Shared
from sketchbandit_service.settings import Limits

_BACKLOG = 2048


class Listener:
    """Serves an application on one address.

    Parameters
    ----------
    application : Application
        Answers the requests.
    limits : Limits
        The limits on the time and number of connections, and on the size of heads and bodies.
    budget : Budget
        What requests and answers are charged to.

    """

    def __init__(self, application: Application, limits: Limits, budget: Budget) -> None:
        self._shared = Shared(application, limits, budget)
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._is_hurried = False

    async def open(self, host: str, port: int) -> int:
        """Start listening. Returns the port."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._shared), host, port, backlog=_BACKLOG
            )
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"cannot listen on {host}, port {port} ({reason}); if the port is in use, try --port 0"
            ) from error
        self._check_all()
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self, seconds: float) -> None:
        """Accept nothing more. Give requests under way this many seconds to finish, then end them."""
        shared, loop = self._shared, asyncio.get_running_loop()
        shared.is_stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(shared.connections):
            connection.stop()
        until = loop.time() + seconds
        while (shared.connections or shared.orphans) and loop.time() < until and not self._is_hurried:
            await asyncio.sleep(0.005)
        tasks = [*shared.orphans, *filter(None, [found.cancel() for found in list(shared.connections)])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._sweep is not None:
            self._sweep.cancel()

    def hurry(self) -> None:
        """Stop waiting for requests under way."""
        self._is_hurried = True

    def _check_all(self) -> None:
        """Check all connections periodically. It costs less than a timer for each request."""
        loop, shared = asyncio.get_running_loop(), self._shared
        for connection in list(shared.connections):
            connection.check(loop.time())
        self._sweep = loop.call_later(min(LINGER, shared.limits.request_seconds / 4), self._check_all)
