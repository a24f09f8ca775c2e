"""A rival in a process of its own, with the Python that has its library."""

import math
import os
import select
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from benchmarks.bakeoff.rivals import wire

ROOT = Path(__file__).parents[2]
WORKER = "benchmarks.bakeoff.rivals.worker"
MEMORY = 8 * 2**30
"""Bytes of address space that a contestant may take."""
GRACE = 5.0
"""Seconds after the limit of a run in which a worker may say so itself."""


class PlayError(Exception):
    """A contestant could not play on; the message says why."""


class Worker:
    """A running worker. It plays one run after another, and is started anew after one that hung."""

    def __init__(self, python: Path, module: str) -> None:
        self._command = [str(python), "-m", WORKER, module, str(MEMORY)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  as long as the worker lives
        self._process = subprocess.Popen(  # noqa: S603  our own worker
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **one_thread, "PYTHONPATH": str(ROOT)},
        )

    def ask(self, request: dict[str, Any], arms: Any, rewards: Any) -> dict[str, Any]:
        """The answer to a request; PlayError where it is an error, or does not come in time."""
        self.start()
        running = self._running
        answers = cast("IO[bytes]", running.stdout)
        patience = None if math.isinf(request["limit"]) else request["limit"] + GRACE
        try:
            wire.send(cast("IO[bytes]", running.stdin), request, arms, rewards)
            ready, _, _ = select.select([answers], [], [], patience)
            if not ready:
                self.close()
                raise PlayError("too slow: no answer before the limit")
            answer, _, _ = wire.receive(answers)
        except (BrokenPipeError, EOFError) as error:
            raise PlayError(self._last_words()) from error
        if "error" in answer:
            raise PlayError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()
            self._said.close()
            self._process = None

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start it first"
        return self._process

    def _last_words(self) -> str:
        status = self._running.wait()
        self._said.seek(0)
        lines = [line for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"the process ended with status {status}"
