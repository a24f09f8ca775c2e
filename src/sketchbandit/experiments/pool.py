"""A pool of workers that outlives their deaths: a run that kills its worker is a failure, not the end."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from sketchbandit.experiments.runs import Row, Run

_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Failure(NamedTuple):
    """Why a run gave no rows."""

    run: Run
    reason: str


class Result(NamedTuple):
    """The rows of a finished run."""

    run: Run
    rows: list[Row]


def run_all(runs: Sequence[Run], jobs: int) -> Iterator[list[Result | Failure]]:
    """Perform the runs in ``jobs`` processes; yields what has finished, as it finishes.

    What finished while the caller was busy comes as one list. Leaving the iterator stops the workers.
    """
    waiting: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
    # Runs in the order of their keys are well mixed, so that the time left can be told from the time taken.
    for run in sorted(runs, key=lambda run: run.key):
        waiting.put(run)
    done: queue.SimpleQueue[Result | Failure | BaseException] = queue.SimpleQueue()
    jobs = min(jobs, len(runs))
    workers = [_Worker(waiting, done) for _ in range(jobs)]
    for worker in workers:
        waiting.put(None)
        worker.start()
    try:
        left = len(runs)
        while left:
            finished = [done.get()]
            while not done.empty():
                finished.append(done.get())
            for outcome in finished:
                if isinstance(outcome, BaseException):
                    raise outcome
            left -= len(finished)
            yield [outcome for outcome in finished if not isinstance(outcome, BaseException)]
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


class _Worker(threading.Thread):
    """Drives one process at a time."""

    def __init__(
        self,
        waiting: "queue.SimpleQueue[Run | None]",
        done: "queue.SimpleQueue[Result | Failure | BaseException]",
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._done = waiting, done
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def stop(self) -> None:
        self._stopped.set()
        process = self._process
        if process is not None:
            process.kill()

    def run(self) -> None:
        try:
            with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
                while not self._stopped.is_set() and (run := self._waiting.get()) is not None:
                    if self._process is None:
                        errors.seek(0)
                        errors.truncate()  # what the one before it said
                        self._process = _start(errors.fileno())
                        self._await_it(errors)
                    if self._stopped.is_set():  # asked to stop while it was being started
                        self._process.kill()
                    outcome = _ask(self._process, run)
                    if outcome is None:
                        status = self._end()
                        outcome = Failure(
                            run, f"the worker died (exit status {status}) {_tail(errors)}".strip()
                        )
                    if not self._stopped.is_set():
                        self._done.put(outcome)
                self._end()
        except BaseException as error:
            self._done.put(error)

    def _await_it(self, errors: IO[str]) -> None:
        """A worker that cannot even start would fail every run: that is an error, not a failure."""
        process = self._process
        if process is None or process.stdout is None or process.stdout.readline() or self._stopped.is_set():
            return
        raise OSError(f"a worker could not start (exit status {self._end()}): {_tail(errors)}")

    def _end(self) -> int:
        """Close the process, which ends when it has nothing more to read; its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(OSError):  # what it was not there to read
            process.communicate()
        return process.returncode


def _start(errors: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "sketchbandit.experiments.worker"],  # -P: nothing from the user's folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        env={**os.environ, **_ONE_THREAD},
    )


def _ask(process: "subprocess.Popen[str]", run: Run) -> Result | Failure | None:
    """The answer to a run; None if the worker died of it."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the worker was started without pipes")
    try:
        process.stdin.write(run.to_json() + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    except (OSError, ValueError):  # a closed pipe, half a line
        return None
    return Result(run, answer["rows"]) if "rows" in answer else Failure(run, answer["error"])


def _tail(errors: IO[str]) -> str:
    errors.seek(0)
    return errors.read()[-500:].strip()
