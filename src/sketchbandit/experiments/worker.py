"""A worker: reads runs as lines of JSON, answers with their rows as lines of JSON.

A process of its own with one BLAS thread, started by the pool. Nothing is pickled.
"""

import json
import sys
import traceback
from typing import TextIO

from threadpoolctl import threadpool_limits

from sketchbandit.errors import SketchBanditError
from sketchbandit.experiments.runs import Run, perform


def serve(requests: TextIO, answers: TextIO) -> None:
    """Say that we are there, then answer until there are no more requests."""
    answers.write("ready\n")
    answers.flush()
    for line in requests:
        try:
            answer: dict[str, object] = {"rows": perform(Run.from_json(line))}
        except (SketchBanditError, OSError, MemoryError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        except Exception:
            answer = {"error": traceback.format_exc(limit=-3)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    threadpool_limits(1)
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not speak into the answers
    serve(sys.stdin, answers)
