"""One run: a player of this process on a stream, or a rival in a process of its own."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import sketchbandit as sb
from benchmarks.bakeoff.remote import Worker
from benchmarks.bakeoff.rivals import loop
from benchmarks.bakeoff.streams import Condition


class LocalPlayer(loop.Player, Protocol):
    """Who plays in this process."""

    def cost(self) -> tuple[float, int]:
        """Seconds in choosing and learning so far, and the bytes of the model."""


class Played(NamedTuple):
    """What came of a run; regret in units of the largest reward."""

    regret: float
    seconds: float
    bytes: int


def play(
    player: LocalPlayer, environment: sb.Environment, rounds: int, condition: Condition, limit: float
) -> Played:
    """Play all rounds here; TooSlowError where it takes longer than ``limit`` seconds."""
    means: list[NDArray[np.float64]] = []

    def offered() -> Iterator[tuple[Any, Any]]:
        for drawn in environment.rounds(rounds):
            means.append(drawn.means)
            yield drawn.arms, condition.rewards(drawn)

    chosen = loop.choices(player, offered(), condition.delay, time.monotonic() + limit)
    return Played(_regret(means, chosen), *player.cost())


def play_elsewhere(
    worker: Worker, request: dict[str, Any], environment: sb.Environment, rounds: int, condition: Condition
) -> Played:
    """Play all rounds there; ``request`` says which rival, how it is set, and its limit in seconds."""
    drawn = list(environment.rounds(rounds))
    sets = [one.arms for one in drawn]
    arms = sparse.vstack(sets, format="csr") if sparse.issparse(sets[0]) else np.concatenate(sets)
    rewards = np.array([condition.rewards(one) for one in drawn])
    asked = {**request, "dim": environment.dim, "delay": condition.delay}
    answer = worker.ask(asked, arms, rewards)
    regret = _regret([one.means for one in drawn], answer["chosen"])
    return Played(regret, float(answer["seconds"]), int(answer["bytes"]))


def _regret(means: list[NDArray[np.float64]], chosen: list[int]) -> float:
    return float(sum(of.max() - of[index] for of, index in zip(means, chosen, strict=True)))
