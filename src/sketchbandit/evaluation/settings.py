"""How values are estimated, apart from log and candidates."""

from dataclasses import dataclass
from typing import Any

from sketchbandit.errors import InputError
from sketchbandit.evaluation import anytime
from sketchbandit.evaluation.estimators import METHODS, methods_of
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import FOLDS, PAST
from sketchbandit.sketch.checks import check_count, check_real

INTERVALS = ("normal", "bootstrap", "anytime")


@dataclass(frozen=True)
class Settings:
    """How values are estimated, apart from log and candidates."""

    methods: tuple[str, ...] = ("ips", "snips", "dr")
    model: Any = "ridge"
    folds: int | str | None = None
    interval: str = "normal"
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
        if self.interval != "anytime":
            return
        without = [name for name in methods if name not in anytime.METHODS]
        if without:
            raise InputError(
                f"there is no any-time interval of {', '.join(without)}: take methods=('ips',), or 'dr' with "
                "max_weight"
            )
        if self.folds not in (None, PAST):
            raise InputError(
                f"an any-time interval needs models of the past alone, folds='past', got {self.folds!r}"
            )

    @property
    def needs_model(self) -> bool:
        """Whether some method stands on a model of the rewards."""
        return any(METHODS[name].needs_model for name in self.methods)

    @property
    def how_folded(self) -> int | str:
        """Folds, or the past alone, which is what an any-time interval needs."""
        if self.folds is not None:
            return self.folds
        return PAST if self.interval == "anytime" else FOLDS

    def range_of(self, log: Log) -> tuple[float, float]:
        """The least and the most reward there can be: as given, or 0 to 1, where rewards lie in there."""
        if self.reward_range is not None:
            return self.reward_range
        low, high = float(log.reward.min()), float(log.reward.max())
        if not 0.0 <= low <= high <= 1.0:
            raise InputError(
                f"rewards lie from {low:g} to {high:g}; an any-time interval needs reward_range="
                "(least, most), the range that no reward can leave"
            )
        return 0.0, 1.0
