"""Servers in processes of their own, started by forking one that has imported everything: in milliseconds."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SCRIPT = """
import gc, os, signal, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from pathlib import Path
from sketchbandit_service import logs
from sketchbandit_service.server import serve
from sketchbandit_service.settings import Limits, Settings
from sketchbandit_service.warmup import warm_up

warm_up()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
print("prepared", flush=True)
for line in sys.stdin:
    number, state, database, port, tokens, extra = line.rstrip("\\n").split("\\t")
    if (pid := os.fork()) == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        logs.configure(as_json=True)
        settings = eval(extra)
        settings = {"storage_patience": 0.5, "snapshot_seconds": 0.2, **settings}
        standby = settings.pop("standby", False)
        try:
            serve(
                Settings(Path(state), database=database or None, **settings),
                port=int(port),
                token_file=Path(tokens) if tokens else None,
                standby=standby,
                on_ready=lambda url: print(number, "ready", os.getpid(), flush=True),
            )
        except BaseException as error:
            print(number, "failed", repr(error), flush=True)
        os._exit(0)
"""


class Zygote:
    """Forks servers."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", encoding="utf-8")
        self._started: list[ServerProcess] = []
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._say() == "prepared"

    def start(
        self, state: Path, port: int, *, database: str = "", tokens: Path | str = "", extra: str = "{}"
    ) -> "ServerProcess":
        """A server that takes requests, or the reason why there is none."""
        assert self._process.stdin is not None
        self._count += 1
        self._process.stdin.write(f"{self._count}\t{state}\t{database}\t{port}\t{tokens}\t{extra}\n")
        self._process.stdin.flush()
        word, _, rest = self._said_by(self._count).partition(" ")
        if word != "ready":
            raise RuntimeError(rest)
        started = ServerProcess(self._count, int(rest), f"http://127.0.0.1:{port}")
        self._started.append(started)
        return started

    def last_words(self, server: "ServerProcess") -> str:
        """Why a server that was ready has failed."""
        return self._said_by(server.number)

    def _said_by(self, number: int) -> str:
        """The next line of this server; what those before it may say as they end is not asked for."""
        while True:
            said = self._say()
            assert said, "the servers' parent is gone"
            by, _, rest = said.partition(" ")
            if int(by) == number:
                return rest

    def _say(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill_all(self) -> None:
        """Every server that is still there."""
        while self._started:
            self._started.pop().kill()

    def close(self) -> None:
        """No more servers."""
        self.kill_all()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


class ServerProcess:
    """A running server."""

    def __init__(self, number: int, pid: int, url: str) -> None:
        self.number = number
        self.pid = pid
        self.url = url

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait until it is gone."""
        self._end(signal.SIGTERM)

    def is_alive(self) -> bool:
        """Whether the process is there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def limit_files(self, size: int) -> None:
        """Let no file grow beyond ``size`` bytes: what a full disk is to the server."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, hard))

    def _end(self, number: signal.Signals) -> None:
        if self.is_alive():
            os.kill(self.pid, number)
        deadline = time.monotonic() + 20
        while self.is_alive():
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.002)


@contextmanager
def zygote(folder: Path) -> Iterator[Zygote]:
    """A zygote; the logs of its servers are in the folder."""
    made = Zygote(folder / "servers.log")
    try:
        yield made
    finally:
        made.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
