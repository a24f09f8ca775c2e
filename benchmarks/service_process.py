"""A server in a process of its own, with its state in a temporary folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self


class Server:
    """``sketchbandit serve`` on a free port; stopped at the end, and its state deleted."""

    def __init__(self, *options: str, database: str | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sketchbandit-"))
        self.state = self._folder / "state"
        command = [sys.executable, "-m", "sketchbandit", "serve", "--state", str(self.state)]
        command += ["--port", "0", "--log-format", "text", *options]
        if database is not None:
            command += ["--database", database]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
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

    def stop(self) -> None:
        """End it in order; its state stays until the end of the block."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
