"""Runs the service: a process, a socket, signals."""

import asyncio
import gc
import ipaddress
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service import allocator
from sketchbandit_service.api.app import LOOPBACK, Api
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.listening import Listener
from sketchbandit_service.settings import Settings
from sketchbandit_service.tokens import Tokens
from sketchbandit_service.upkeep import running

log = logging.getLogger(__name__)

_SWITCH = 0.0001
_ENDING = (signal.SIGINT, signal.SIGTERM)


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    cors: Collection[str] = (),
    standby: bool = False,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Run until a signal. Then requests under way are finished, and a last snapshot is written.

    A second signal ends it without waiting for requests. After SIGINT, ``KeyboardInterrupt`` is raised.

    Parameters
    ----------
    settings : Settings
        Where the state is stored, and how it is kept.
    host, port
        Where to listen. Any host but loopback needs ``token_file``. Port 0 takes any free port.
    token_file : path, optional
        A file with the hashes of the accepted tokens. With it, only the owner can read the state.
    cors : origins, optional
        Sites whose pages may call the service from a browser.
    standby : bool
        Listen at once, but refuse everything except /healthz until the engine has taken over.
    on_ready : callable, optional
        Called with the address when the server listens, in the thread of the server.

    """
    tokens = None if token_file is None else Tokens.read(token_file)
    if tokens is None and not is_loopback(host):
        raise InputError(
            f"host {host} can be reached from other machines, so a token is needed; make one with "
            "`sketchbandit service token tokens.txt --scope admin`, then give --token-file tokens.txt"
        )
    if tokens is not None:
        keep_private(settings.state)
    engine = Engine(settings)
    hosts = LOOPBACK | {f"[{host}]" if ":" in host else host}
    application = Api(engine, tokens=tokens, hosts=hosts, cors=cors)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        sys.setswitchinterval(_SWITCH)
        gc.set_threshold(20_000, 20, 50)  # requests leave no cycles behind
    library = allocator.set_up() if is_main else None

    async def run() -> int:
        tidying = asyncio.create_task(allocator.give_back(library))
        server = _Server(engine, Listener(application, engine.limits, engine.budget))
        if is_main:
            server.heed_signals()
        try:
            return await server.run(host, port, on_ready or (lambda _: None), standby=standby)
        finally:
            tidying.cancel()

    with asyncio.Runner(loop_factory=_new_loop) as runner:
        number = runner.run(run())
    if number == signal.SIGINT:
        raise KeyboardInterrupt


class _Server:
    """An engine and a listener, from their start to a signal."""

    def __init__(self, engine: Engine, listener: Listener) -> None:
        self._engine = engine
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()

    def heed_signals(self) -> None:
        """Handle signals: the first ends the server in order, the second at once."""
        for number in _ENDING:
            try:
                self._loop.add_signal_handler(number, self._end, number)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda found, _: self._loop.call_soon_threadsafe(self._end, found))

    async def run(self, host: str, port: int, tell: Callable[[str], None], *, standby: bool) -> int:
        """Run until a signal, and return it."""
        async with AsyncExitStack() as life:
            try:
                if standby:
                    tell(_address(host, await self._listener.open(host, port)))
                if await self._start(life, standby=standby):
                    if not standby:
                        tell(_address(host, await self._listener.open(host, port)))
                    await self._until_over()
                return await self._ended
            finally:
                await self._listener.close(self._engine.settings.drain_seconds)

    async def _until_over(self) -> None:
        """Wait for a signal. Raises an error, for a supervisor, if another server has taken over."""
        over = self._loop.create_task(self._engine.journal.is_over.wait())
        either: set[asyncio.Future[Any]] = {over, self._ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            raise SketchBanditError(
                f"this server stops, and may be started again: {self._engine.journal.fenced}"
            )
        over.cancel()

    async def _start(self, life: AsyncExitStack, *, standby: bool) -> bool:
        """Start the engine. A standby waits as long as another server has the database, or until a signal."""
        started = self._loop.create_task(life.enter_async_context(running(self._engine, standby=standby)))
        either: set[asyncio.Future[Any]] = {started, self._ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            with suppress(asyncio.CancelledError):
                await started
            return False
        try:
            started.result()
        except (SketchBanditError, OSError):
            raise
        except Exception as error:
            log.exception("the start failed")
            raise InputError(
                f"the service cannot start ({type(error).__name__}: {error}); the log says where it failed, "
                "and `sketchbandit service check` says what is wrong with the state"
            ) from error
        gc.freeze()  # the garbage collector does not look at what exists by now again
        return True

    def _end(self, number: int) -> None:
        if self._ended.done():
            self._listener.hurry()
        else:
            self._ended.set_result(number)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def keep_private(state: Path) -> None:
    """Make the state readable by the owner only: existing files, and those this process will write."""
    os.umask(0o077)
    if state.is_dir():
        for path in (state, *state.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)


def _address(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (an address to open)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one, which is the faster."""
    try:
        import uvloop  # noqa: PLC0415  (there is none for Windows)
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
