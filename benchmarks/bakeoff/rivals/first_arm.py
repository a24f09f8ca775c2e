"""The smallest rival, to test the protocol with: it plays the first arm until it has seen a reward."""

import time
from typing import Any


class FirstArm:
    """Plays arm 0, then the place that paid last; fails, sleeps or dies in a round if told to."""

    def __init__(self, fail_at: int = -1, sleep_at: int = -1) -> None:
        self.fail_at, self.sleep_at = fail_at, sleep_at
        self.place = 0
        self.waiting: dict[int, int] = {}
        self.heard: list[tuple[int, float]] = []

    def choose(self, number: int, arms: Any) -> int:
        """The place that paid last."""
        if number == self.fail_at:
            raise ValueError(f"no wish to play {arms.shape[0]} arms")
        if number == self.sleep_at:
            time.sleep(60.0)
        self.waiting[number] = self.place
        return self.place

    def learn(self, number: int, reward: float) -> None:
        """One reward."""
        self.place = self.waiting.pop(number) if reward > 0.0 else (self.waiting.pop(number) + 1) % 2

    def bytes(self) -> int:
        """Of what is waiting: one a round, so that a test can count them."""
        return len(self.waiting)


def make(rival: str, dim: int, seed: int, **settings: int) -> FirstArm:
    """The only one there is."""
    print("what a library prints must do no harm:", rival, dim, seed)
    return FirstArm(**settings)
