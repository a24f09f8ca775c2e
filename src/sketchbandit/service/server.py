"""Running the service: a process, a socket, signals."""

import gc
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import uvicorn

from sketchbandit.errors import InputError
from sketchbandit.service.api.app import LOOPBACK, make_app
from sketchbandit.service.api.protocol import limited
from sketchbandit.service.engine import Engine
from sketchbandit.service.settings import Settings
from sketchbandit.service.tokens import Tokens
from sketchbandit.service.upkeep import running

_KEEP_ALIVE = 75  # seconds that an idle connection may stay
_SWITCH = 0.0005  # seconds: the thread that commits must not wait long behind the event loop


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Run until a signal ends it; requests under way are finished, and a last snapshot is written.

    Parameters
    ----------
    settings : Settings
        Where the state lies and how it is kept.
    host, port
        Where to listen. Anything but loopback needs ``token_file``. Port 0: any that is free.
    token_file : path, optional
        Hashes of the tokens that are taken.
    on_ready : callable, optional
        Is called with the address when requests are taken, in the thread of the server.

    """
    tokens = None if token_file is None else Tokens.read(token_file)
    if tokens is None and not is_loopback(host):
        raise InputError(
            f"host {host} can be reached from other machines, so a token is needed: make one with "
            "`sketchbandit service token tokens.txt --scope admin`, then give --token-file tokens.txt"
        )
    engine = Engine(settings)
    hosts = LOOPBACK | {f"[{host}]" if ":" in host else host}
    config = uvicorn.Config(
        make_app(engine, tokens=tokens, hosts=hosts),
        host=host,
        port=port,
        http=limited(settings.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=settings.drain_seconds,
    )
    server = _Server(config, engine, on_ready)
    if threading.current_thread() is threading.main_thread():
        sys.setswitchinterval(_SWITCH)
        gc.set_threshold(20_000, 20, 50)  # requests leave no cycles behind
        signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn, when done, raises it again
    server.run()


class _Server(uvicorn.Server):
    """Runs the engine from before the first request until after the last, and says when it is ready."""

    def __init__(
        self, config: uvicorn.Config, engine: Engine, on_ready: Callable[[str], None] | None
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._life = AsyncExitStack()
        self._engine = engine

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._life.enter_async_context(running(self._engine))
        gc.freeze()  # what is there by now is not looked at again by the garbage collector
        host, port = self.config.host, self.config.port
        try:
            await super().startup(sockets)
        except SystemExit:  # uvicorn has logged why
            await self._life.aclose()
            raise InputError(f"cannot listen on {host}, port {port}; is it in use? Try --port 0") from None
        if self._on_ready is not None:
            port = self.servers[0].sockets[0].getsockname()[1]
            name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (an address to open)
            self._on_ready(f"http://{f'[{name}]' if ':' in name else name}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._life.aclose()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
