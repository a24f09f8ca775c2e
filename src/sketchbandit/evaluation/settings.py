"""The settings of an evaluation, apart from log and candidates."""

from dataclasses import dataclass
from typing import Any

from sketchbandit.errors import InputError
from sketchbandit.evaluation import sequences
from sketchbandit.evaluation.estimators import METHODS, methods_of
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import FOLDS, PAST
from sketchbandit.evaluation.sequences import check_range
from sketchbandit.sketch.checks import check_count, check_real

BOUNDED = "bounded"
INTERVALS = (BOUNDED, "normal", "bootstrap", "anytime")


@dataclass(frozen=True)
class Settings:
    """The settings of an evaluation, apart from log and candidates."""

    methods: tuple[str, ...] = ("ips", "snips", "dr")
    model: Any = "ridge"
    folds: int | str | None = None
    interval: str = BOUNDED
    level: float = 0.95
    reward_range: tuple[float, float] | None = None
    max_weight: float | None = None
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        methods = methods_of(self.methods)
        object.__setattr__(self, "methods", tuple(methods))
        if self.interval not in INTERVALS:
            raise InputError(f"unknown interval {self.interval!r}; choose from {', '.join(INTERVALS)}")
        check_real("level", self.level, above=0.0, below=1.0)
        check_count("draws", self.draws, at_least=2)
        if self.max_weight is not None:
            check_real("max_weight", self.max_weight, above=0.0)
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", check_range(self.reward_range))
        if self.interval != "anytime":
            return
        without = [name for name in methods if name not in sequences.ANYTIME_METHODS]
        if without:
            raise InputError(
                f"there is no any-time interval for {', '.join(without)}; use methods=('ips',), or 'dr' with "
                "max_weight"
            )
        if self.folds not in (None, PAST):
            raise InputError(
                f"an any-time interval needs models of the past only; use folds='past', got {self.folds!r}"
            )

    @property
    def needs_model(self) -> bool:
        """Whether a method needs a reward model."""
        return any(METHODS[name].needs_model for name in self.methods)

    @property
    def how_folded(self) -> int | str:
        """The folds, or "past", which any-time intervals need."""
        if self.folds is not None:
            return self.folds
        return PAST if self.interval == "anytime" else FOLDS

    def range_of(self, log: Log) -> tuple[float, float]:
        """The smallest and largest possible reward, as given.

        If not given: for any-time intervals 0 to 1, if all rewards are in it; otherwise those in the log.
        """
        low, high = float(log.reward.min()), float(log.reward.max())
        if self.interval != "anytime":
            return range_with(self.reward_range, low, high)
        if self.reward_range is not None:
            return self.reward_range
        if not 0.0 <= low <= high <= 1.0:
            raise InputError(
                f"rewards are from {low:g} to {high:g}; an any-time interval needs reward_range="
                "(least, most), the smallest and largest possible reward"
            )
        return 0.0, 1.0


def range_with(given: tuple[float, float] | None, low: float, high: float) -> tuple[float, float]:
    """The range of rewards that go from ``low`` to ``high``: as given, or just this."""
    if given is None:
        return (0.0, 1.0) if low == high and 0.0 <= low <= 1.0 else (low, high)
    if not given[0] <= low <= high <= given[1]:
        raise InputError(
            f"rewards are from {low:g} to {high:g}, and reward_range is {given[0]:g} to {given[1]:g}: give "
            "the range that no reward leaves"
        )
    return given
