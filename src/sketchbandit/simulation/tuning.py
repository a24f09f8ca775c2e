"""The best pair of a grid, without playing every pair to its end.

Regret never falls. So a pair whose regret so far is above what another one has at the end cannot be the best:
it is given up. What is found is what playing everything would find.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from sketchbandit.environment import Environment, Round
from sketchbandit.simulation.loop import LateRewards

Pair = tuple[float, float | None]
"""Ridge and the rule's number."""
_LOOK = 8  # after one round in so many it is seen who leads


class RaceResult(NamedTuple):
    """How far a pair came, and its mean regret until then; the best one came to the end."""

    rounds: int
    regret: float


class Player:
    """One policy on one permutation."""

    def __init__(self, policy: Any, delay: int) -> None:
        self._policy = policy
        self._rewards = LateRewards(delay)
        self.regret = 0.0

    def play(self, drawn: Round) -> None:
        """One round."""
        chosen = self._policy.select(drawn.arms)
        arrived = self._rewards.send(drawn.arm(chosen), drawn.reward(chosen))
        if arrived is not None:
            self._policy.update(*arrived)
        self.regret += drawn.regret(chosen)


def race(
    pairs: Sequence[Pair],
    players: Callable[[Pair], list[Player]],
    environments: Callable[[], list[Environment]],
    rounds: int,
) -> dict[Pair, RaceResult]:
    """Every pair on every permutation, side by side; a pair that cannot win any more is given up.

    After an eighth of the rounds whoever leads then plays alone to the end: that is the regret to beat.

    Parameters
    ----------
    pairs : sequence of pairs
        The grid.
    players : function
        From a pair to new players, one for each permutation.
    environments : function
        The permutations, from their beginning.
    rounds : int
        How long each is played.

    """
    running = {pair: players(pair) for pair in pairs}
    found: dict[Pair, RaceResult] = {}
    to_beat = inf
    for number, drawn in enumerate(_rounds(environments(), rounds), start=1):
        for pair, here in list(running.items()):
            regret = _play(here, drawn)
            if number == rounds or regret > to_beat:
                found[pair] = RaceResult(number, regret / len(here))
                del running[pair]
        if number == rounds // _LOOK and len(running) > 1:
            leader = min(running, key=lambda pair: _total(running[pair]))
            alone = players(leader)
            for again in _rounds(environments(), rounds):
                to_beat = _play(alone, again)
    return {pair: found[pair] for pair in pairs}


def _rounds(environments: Sequence[Environment], rounds: int) -> Iterator[tuple[Round, ...]]:
    """One round of each at a time."""
    return zip(*(environment.rounds(rounds) for environment in environments), strict=True)


def _play(players: Sequence[Player], drawn: Sequence[Round]) -> float:
    """One round of each; the sum of their regrets so far."""
    for player, one in zip(players, drawn, strict=True):
        player.play(one)
    return _total(players)


def _total(players: Sequence[Player]) -> float:
    return sum(player.regret for player in players)
