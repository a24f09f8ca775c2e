"""Plays one library: ``python -m benchmarks.bakeoff.rivals.worker MODULE BYTES``, by the Python that has it.

A request has the rounds of a run; the answer has the choices, or the error that ended the run. The library
gets the arms of a round, and the reward after its choice.
"""

import importlib
import os
import resource
import sys
import time
from typing import IO, Any

from benchmarks.bakeoff.rivals import loop, wire


class Timed:
    """A rival, and the seconds that it took."""

    def __init__(self, rival: Any) -> None:
        self._rival = rival
        self.seconds = 0.0

    def choose(self, number: int, arms: Any) -> int:
        """Its choice."""
        start = time.perf_counter()
        chosen = int(self._rival.choose(number, arms))
        self.seconds += time.perf_counter() - start
        return chosen

    def learn(self, number: int, reward: float) -> None:
        """Its reward."""
        start = time.perf_counter()
        self._rival.learn(number, reward)
        self.seconds += time.perf_counter() - start


def play(module: Any, asked: dict[str, Any], arms: Any, rewards: Any) -> dict[str, Any]:
    """One run."""
    deadline = time.monotonic() + asked["limit"]
    rival = module.make(asked["rival"], asked["dim"], asked["seed"], **asked["settings"])
    timed, count = Timed(rival), rewards.shape[1]
    rounds = ((arms[i * count : (i + 1) * count], paid) for i, paid in enumerate(rewards))
    chosen = loop.choices(timed, rounds, asked["delay"], deadline)
    return {"chosen": chosen, "seconds": timed.seconds, "bytes": int(rival.bytes())}


def serve(module: Any, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the requests end."""
    while True:
        try:
            asked, arms, rewards = wire.receive(requests)
        except EOFError:
            return
        try:
            answer = play(module, asked, arms, rewards)
        except loop.TooSlowError as error:
            answer = {"error": str(error)}
        except Exception as error:  # whatever a library raises is a result of the bake-off
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        wire.send(answers, answer)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    serve(importlib.import_module(f"{__package__}.{sys.argv[1]}"), sys.stdin.buffer, own)
