"""What a worker does: it reads tasks as lines of JSON and answers with lines of JSON."""

import json
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from sketchbandit.errors import SketchBanditError

Tell = Callable[[dict[str, object]], None]
"""Says something about a task under way."""
Handler = Callable[[str, Tell], dict[str, object]]
"""From a task and a way to tell how it goes to the answer."""


def serve(handle: Handler) -> None:
    """Answer on standard output what comes on standard input, until there is no more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not speak into the answers
    answer_all(handle, sys.stdin, answers)


def answer_all(handle: Handler, tasks: TextIO, answers: TextIO) -> None:
    """Say that we are there, then answer every task."""

    def say(what: dict[str, object]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    say({"ready": True})
    for line in tasks:
        try:
            answer: dict[str, object] = {"answer": handle(line, lambda news: say({"news": news}))}
        except (SketchBanditError, OSError, MemoryError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        except Exception:
            answer = {"error": traceback.format_exc(limit=-3)}
        say(answer)
