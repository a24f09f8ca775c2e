"""Plays one library: ``python -m benchmarks.bakeoff.rivals.worker MODULE BYTES``, by the Python that has it.

It is sent the arms of a round and answers with the index it chose; the reward comes in a later message. So it
cannot know a reward before it has chosen, nor the arms to come. An error is answered, and the run is over.
"""

import importlib
import os
import resource
import sys
import time
from typing import IO, Any

from benchmarks.bakeoff.rivals import wire


def serve(module: Any, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the requests end."""
    rival: Any = None
    seconds = 0.0
    while True:
        try:
            message, arms = wire.receive(requests)
        except EOFError:
            return
        if message["do"] != "begin" and rival is None:
            continue  # the run failed before, and that was answered
        try:
            start = time.perf_counter()
            answer: dict[str, Any] | None = None
            if message["do"] == "begin":
                rival, seconds = None, 0.0
                rival = module.make(message["rival"], message["dim"], message["seed"], **message["settings"])
                answer = {"ready": True}
            elif message["do"] == "choose":
                answer = {"chosen": int(rival.choose(message["round"], arms))}
            elif message["do"] == "learn":
                rival.learn(message["round"], message["reward"])
            else:
                answer = {"seconds": seconds, "bytes": int(rival.bytes())}
            seconds += time.perf_counter() - start
        except Exception as error:  # whatever a library raises is a result of the bake-off
            rival, answer = None, {"error": f"{type(error).__name__}: {error}"[:300]}
        if answer is not None:
            wire.send(answers, answer)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    serve(importlib.import_module(f"{__package__}.{sys.argv[1]}"), sys.stdin.buffer, own)
