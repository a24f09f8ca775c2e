"""The loop that everybody is played by, here or elsewhere: a reward is given only after its choice."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol


class TooSlowError(Exception):
    """The time of a run is over."""

    def __str__(self) -> str:
        return f"too slow: stopped in round {self.args[0]:,}"


class Player(Protocol):
    """One contestant in one run."""

    def choose(self, number: int, arms: Any) -> int:
        """The index of an arm."""

    def learn(self, number: int, reward: float) -> None:
        """The reward of that round's choice, which may come late."""


def choices(player: Player, rounds: Iterable[tuple[Any, Any]], delay: int, deadline: float) -> list[int]:
    """What it chose in each round of (arms, rewards); the reward of a choice comes ``delay`` choices later.

    Those still on their way at the end are not learned. ``deadline`` is a time of ``time.monotonic``.
    """
    found: list[int] = []
    on_their_way: deque[tuple[int, float]] = deque()
    for number, (arms, rewards) in enumerate(rounds):
        found.append(int(player.choose(number, arms)))
        on_their_way.append((number, float(rewards[found[-1]])))
        if len(on_their_way) > delay:
            player.learn(*on_their_way.popleft())
        if time.monotonic() > deadline:
            raise TooSlowError(number + 1)
    return found
