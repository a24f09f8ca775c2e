"""One run: a player on a stream, each reward given only after the choice it belongs to."""

import time
from collections import deque
from typing import NamedTuple

import sketchbandit as sb
from benchmarks.bakeoff.players import Player, PlayError
from benchmarks.bakeoff.streams import Condition


class Played(NamedTuple):
    """What came of a run; regret in units of the largest reward."""

    regret: float
    seconds: float
    bytes: int


def play(
    player: Player, environment: sb.Environment, rounds: int, condition: Condition, deadline: float
) -> Played:
    """Play all rounds; PlayError where it takes longer than until ``deadline``."""
    on_their_way: deque[tuple[int, float]] = deque()
    regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds)):
        chosen = player.choose(number, drawn.arms)
        regret += drawn.regret(chosen)
        on_their_way.append((number, condition.times * drawn.reward(chosen)))
        if len(on_their_way) > condition.delay:
            player.learn(*on_their_way.popleft())
        if time.monotonic() > deadline:
            raise PlayError(f"too slow: stopped in round {number + 1} of {rounds:,}")
    seconds, held = player.cost()
    return Played(regret, seconds, held)
