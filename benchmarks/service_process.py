"""A server in a process of its own, with its state in a temporary folder."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """``sketchbandit serve`` on a free port; stopped at the end, and its state deleted.

    ``source`` is the root of another checkout, whose version is to be run.
    """

    def __init__(self, *options: str, database: str | None = None, source: Path | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sketchbandit-"))
        self.state = self._folder / "state"
        command = [sys.executable, "-m", "sketchbandit", "serve", "--state", str(self.state)]
        command += ["--port", "0", "--log-format", "text", *options]
        if database is not None:
            command += ["--database", database]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        if source is not None:
            environment["PYTHONPATH"] = str((source / "src").resolve(strict=True))
        self.process = subprocess.Popen(  # noqa: S603  (our own command)
            command, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("dashboard: "):
                self.url = line.split()[1].rstrip("/")
                break
        else:
            raise RuntimeError("the server did not start")

    @property
    def resident_bytes(self) -> int:
        """Memory of the server process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    @property
    def peak_bytes(self) -> int:
        """The most memory that it has held since ``forget_peak``."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    def forget_peak(self) -> None:
        """From here on the peak is counted anew."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", encoding="ascii")

    @property
    def cpu_seconds(self) -> tuple[float, float]:
        """Time that the process has computed so far: all of its threads, and its event loop alone."""
        task = Path(f"/proc/{self.process.pid}")
        return _cpu(task / "stat"), _cpu(task / "task" / str(self.process.pid) / "stat")

    def stop(self) -> None:
        """End it in order; its state stays until the end of the block."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:  # it is in the middle of something long
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _cpu(stat: Path) -> float:
    """User and system time, in seconds."""
    user, system = stat.read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


class Beside:
    """Work in another process: ``work(pipe, *arguments)``.

    It sends something when it has begun, goes on until the pipe has something, and sends what it found.
    """

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=work, args=(there, *arguments), daemon=True)
        self._process.start()
        there.close()
        self._pipe.recv()

    def finish(self) -> Any:
        """End the work; what it has sent."""
        self._pipe.send(None)
        return self._pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()
        self._pipe.close()
