"""Work in processes of its own: tasks and answers are lines of JSON, nothing is pickled.

The pool outlives the deaths of its workers: a task that kills its worker has no answer, that is all.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import IO, Any, Generic, NamedTuple, Protocol, TextIO, TypeVar

from sketchbandit.errors import SketchBanditError

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""The environment of a process whose products use one thread."""

Message = dict[str, Any]
"""A line of JSON."""
Tell = Callable[[Message], None]
"""Says something about a task under way."""
Handler = Callable[[str, Tell], Message]
"""From a task and a way to tell how it goes to the answer."""


class Task(Protocol):
    """Something to be done elsewhere."""

    def to_json(self) -> str:
        """For the worker."""


T = TypeVar("T", bound=Task)


class Answer(NamedTuple, Generic[T]):
    """What a worker made of a task."""

    task: T
    content: Message


class NoAnswer(NamedTuple, Generic[T]):
    """Why there is none; ``died``: because the worker did."""

    task: T
    reason: str
    died: bool


def ask_all(
    tasks: Sequence[T], jobs: int, module: str, tell: Tell = lambda _: None
) -> Generator[list[Answer[T] | NoAnswer[T]]]:
    """Have the tasks done by ``jobs`` processes ``python -m module``; yields what is done, as it is done.

    What was done while the caller was busy comes as one list. Leaving the iterator stops the workers.
    ``tell`` hears the news of tasks under way, in threads of ours.
    """
    waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    done: queue.SimpleQueue[Answer[T] | NoAnswer[T] | BaseException] = queue.SimpleQueue()
    jobs = min(jobs, len(tasks))
    workers = [_Worker(waiting, done, module, tell) for _ in range(jobs)]
    for worker in workers:
        waiting.put(None)
        worker.start()
    try:
        left = len(tasks)
        while left:
            finished = [_checked(done.get())]
            while not done.empty():
                finished.append(_checked(done.get()))
            left -= len(finished)
            yield finished
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def _checked(outcome: Answer[T] | NoAnswer[T] | BaseException) -> Answer[T] | NoAnswer[T]:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class _Worker(threading.Thread, Generic[T]):
    """Drives one process at a time."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[T | None],
        done: queue.SimpleQueue[Answer[T] | NoAnswer[T] | BaseException],
        module: str,
        tell: Tell,
    ) -> None:
        super().__init__(daemon=True)
        self._module, self._tell = module, tell
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
                while not self._stopped.is_set() and (task := self._waiting.get()) is not None:
                    if self._process is None:
                        errors.seek(0)
                        errors.truncate()  # what the one before it said
                        self._process = _start(self._module, errors.fileno())
                        self._await_it(errors)
                    if self._stopped.is_set():  # asked to stop while it was being started
                        self._process.kill()
                    outcome = _ask(self._process, task, self._tell)
                    if outcome is None:
                        status = self._end()
                        reason = f"the worker died (exit status {status}) {_tail(errors)}".strip()
                        outcome = NoAnswer(task, reason, died=True)
                    if not self._stopped.is_set():
                        self._done.put(outcome)
                self._end()
        except BaseException as error:
            if self._process is not None:
                self._process.kill()
            self._end()
            self._done.put(error)

    def _await_it(self, errors: IO[str]) -> None:
        """A worker that cannot even start would fail every task: that is an error."""
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


def _start(module: str, errors: int) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  (a module of ours)
        [sys.executable, "-P", "-m", module],  # -P: nothing from the user's folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        env={**os.environ, **ONE_THREAD},
    )


def _ask(process: subprocess.Popen[str], task: T, tell: Tell) -> Answer[T] | NoAnswer[T] | None:
    """The answer to a task; None if the worker died of it."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the worker was started without pipes")
    said = _exchange(process.stdin, process.stdout, task.to_json())
    while said is not None and "news" in said:
        tell(said["news"])
        said = _exchange(process.stdin, process.stdout)
    if said is None:
        return None
    return Answer(task, said["answer"]) if "answer" in said else NoAnswer(task, said["error"], died=False)


def _exchange(stdin: IO[str], stdout: IO[str], task: str | None = None) -> Message | None:
    """Give the task, if there is one, and hear a line; None if the worker has gone."""
    try:
        if task is not None:
            stdin.write(task + "\n")
            stdin.flush()
        said: Message = json.loads(stdout.readline())
    except (OSError, ValueError):  # a closed pipe, half a line
        return None
    return said


def _tail(errors: IO[str]) -> str:
    errors.seek(0)
    return errors.read()[-500:].strip()


def serve(handle: Handler) -> None:
    """Answer on standard output what comes on standard input, until there is no more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not speak into the answers
    answer_all(handle, sys.stdin, answers)


def answer_all(handle: Handler, tasks: TextIO, answers: TextIO) -> None:
    """Say that we are there, then answer every task."""

    def say(what: Message) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    say({"ready": True})
    for line in tasks:
        try:
            answer: Message = {"answer": handle(line, lambda news: say({"news": news}))}
        except (SketchBanditError, OSError, MemoryError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        except Exception:
            answer = {"error": traceback.format_exc(limit=-3)}
        say(answer)
