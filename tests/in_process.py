"""Workers in the process of the test: one of their own takes one or two seconds to start.

That processes answer the same, and what happens when they fail, is what test_runner.py and the second half of
test_outofcore.py are about.
"""

import importlib
import io
import json
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sketchbandit.processes import Answer, NoAnswer, T, answer_all


def ask_here(
    tasks: Sequence[T], jobs: int, module: str, tell: Callable[[Any], None] = lambda _: None
) -> Generator[list[Answer[T] | NoAnswer[T]]]:
    """As ``ask_all``: the same lines of JSON, without processes."""
    assert jobs >= 1
    for task in tasks:
        said = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in a worker
            answer_all(importlib.import_module(module).handle, io.StringIO(f"{task.to_json()}\n"), said)
        _, *news, last = map(json.loads, said.getvalue().splitlines())
        for one in news:
            tell(one["news"])
        if "answer" in last:
            yield [Answer(task, last["answer"])]
        else:
            yield [NoAnswer(task, last["error"], died=False)]


@contextmanager
def in_process() -> Iterator[None]:
    """No workers are started."""
    with pytest.MonkeyPatch.context() as patch:
        for place in ("simulation.pool", "outofcore.job"):
            patch.setattr(f"sketchbandit.{place}.ask_all", ask_here)
        yield
