"""A rival in a process of its own, with the Python that has its library."""

import math
import os
import select
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from benchmarks.bakeoff.players import PlayError
from benchmarks.bakeoff.rivals import wire

ROOT = Path(__file__).parents[2]
WORKER = "benchmarks.bakeoff.rivals.worker"
MEMORY = 8 * 2**30
"""Bytes of address space that a contestant may take."""


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

    def tell(self, message: dict[str, Any], arms: Any = None) -> None:
        """Send a message."""
        try:
            wire.send(cast("IO[bytes]", self._running.stdin), message, arms)
        except BrokenPipeError as error:
            raise PlayError(self._last_words()) from error

    def hear(self, deadline: float) -> dict[str, Any]:
        """The answer; PlayError where it is an error, or does not come in time."""
        pipe = cast("IO[bytes]", self._running.stdout)
        patience = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([pipe], [], [], patience)
        if not ready:
            self.close()
            raise PlayError("too slow: no answer before the limit")
        try:
            answer, _ = wire.receive(pipe)
        except EOFError as error:
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


class RemotePlayer:
    """One run of a rival; it has to be over by ``deadline``, a time of ``time.monotonic``."""

    def __init__(
        self, worker: Worker, rival: str, settings: dict[str, Any], *, dim: int, seed: int, deadline: float
    ) -> None:
        self._worker, self._deadline = worker, deadline
        worker.start()
        worker.tell({"do": "begin", "rival": rival, "settings": settings, "dim": dim, "seed": seed})
        worker.hear(deadline)

    def choose(self, number: int, arms: Any) -> int:
        """Send the arms, hear the choice."""
        self._worker.tell({"do": "choose", "round": number}, arms)
        return int(self._worker.hear(self._deadline)["chosen"])

    def learn(self, number: int, reward: float) -> None:
        """Send the reward; what goes wrong there is heard with the next choice."""
        self._worker.tell({"do": "learn", "round": number, "reward": reward})

    def cost(self) -> tuple[float, int]:
        """As the worker measured it: without the pipe."""
        self._worker.tell({"do": "end"})
        answer = self._worker.hear(self._deadline)
        return float(answer["seconds"]), int(answer["bytes"])
