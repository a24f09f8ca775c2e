"""The result of an evaluation: estimates, differences, and how far the log supports them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, overload

from sketchbandit.arrays import Scalars
from sketchbandit.html_repr import grid, sentence

if TYPE_CHECKING:
    from sketchbandit.evaluation.weights import Weights

LOGGED = "logged"
"""The name of the policy that made the log."""


class Estimate(NamedTuple):
    """The estimated mean reward per decision of a candidate, by one method.

    Attributes
    ----------
    policy, method : str
        The name of the candidate, and the method.
    value : float
        The estimate.
    low, high : float
        The ends of the confidence interval; nan if nothing can be said.
    effective_size : float
        The effective sample size: so many decisions of the candidate itself would say as much.

    """

    policy: str
    method: str
    value: float
    low: float
    high: float
    effective_size: float


class Difference(NamedTuple):
    """How much more one candidate earns per decision than another, by one method, in a paired comparison.

    Attributes
    ----------
    policy, other, method : str
        The two candidates, and the method.
    value : float
        The estimated difference, ``policy`` minus ``other``.
    low, high : float
        The ends of the confidence interval; nan if nothing can be said.
    verdict : str
        Why the difference is not clear, and how many more decisions would decide; empty if it is clear.

    """

    policy: str
    other: str
    method: str
    value: float
    low: float
    high: float
    verdict: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0.0 or self.high < 0.0


class Evaluation(Sequence[Estimate]):
    """The result of ``evaluate``: a sequence of ``Estimate`` rows, with differences and diagnostics.

    Attributes
    ----------
    logged : Estimate
        The policy that made the log: its mean reward, with a normal or an any-time interval.
    weights : dict of str to Weights
        Diagnostics of the importance weights of every candidate.
    interval : str
        The kind of interval.
    level : float
        The confidence level.

    Examples
    --------
    >>> import numpy as np, sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> log = sb.evaluation.Log(
    ...     arms=random.standard_normal((500, 4, 3)),
    ...     chosen=random.integers(4, size=500),
    ...     reward=random.random(500),
    ...     probability=np.full(500, 0.25),
    ... )
    >>> found = sb.evaluation.evaluate(log, {"uniform": "uniform"}, methods=("ips",))
    >>> found.policies, found.difference("uniform").is_clear, found.verdicts()
    (['uniform'], False, {})

    """

    def __init__(
        self,
        rows: Sequence[Estimate],
        *,
        logged: Estimate,
        weights: "Mapping[str, Weights]",
        interval: str,
        level: float,
        compare: Callable[[str, str, str], Difference],
        notes: Sequence[str] = (),
    ) -> None:
        self._rows = list(rows)
        self._compare = compare
        self.logged, self.weights = logged, dict(weights)
        self.interval, self.level = interval, level
        self.notes = list(notes)
        """The assumptions, in sentences."""

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Estimate]: ...
    def __getitem__(self, index: int | slice) -> Estimate | list[Estimate]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self._rows)

    @property
    def policies(self) -> list[str]:
        """The names of the candidates."""
        return list(self.weights)

    @property
    def methods(self) -> list[str]:
        """The names of the methods."""
        return list(dict.fromkeys(row.method for row in self._rows))

    def of(self, policy: str, method: str) -> Estimate:
        """The estimate for one policy and one method."""
        return next(row for row in self._rows if (row.policy, row.method) == (policy, method))

    def difference(self, policy: str, other: str = LOGGED, method: str | None = None) -> Difference:
        """How much more ``policy`` earns than ``other``. Default method: "dr", or else the last one."""
        usual = "dr" if "dr" in self.methods else self.methods[-1]
        return self._compare(policy, other, method or usual)

    def differences(self, other: str = LOGGED, method: str | None = None) -> list[Difference]:
        """The differences between all candidates and one policy."""
        return [self.difference(name, other, method) for name in self.policies if name != other]

    def verdicts(self) -> dict[str, str]:
        """The candidates about which nothing can be said, with the reasons."""
        return {name: found.verdict for name, found in self.weights.items() if found.verdict}

    def to_json(self) -> Scalars:
        """Everything as JSON values. nan becomes null."""
        return {
            "interval": self.interval,
            "level": self.level,
            "notes": self.notes,
            "logged": plain(self.logged),
            "estimates": [plain(row) for row in self._rows],
            "differences": [plain(row) for method in self.methods for row in self.differences(method=method)],
            "weights": {name: plain(found) for name, found in self.weights.items()},
        }

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """The tables to show, each with title, header and rows."""
        return [
            ("values", *estimates([self.logged, *self], self.level)),
            ("beside the policy of the log", *differences(self.differences(), self.level)),
            ("how well the log covers them", *diagnostics(self.weights)),
        ]

    def __repr__(self) -> str:
        header, rows = estimates([self.logged, *self], self.level)
        return "\n".join([*aligned([header, *rows]), *self._silent()])

    def _repr_html_(self) -> str:
        """What notebooks show: the tables, and in sentences what cannot be said and what was assumed."""
        said = map(sentence, [*self._silent(), *self.notes])
        return "".join([*(grid(*table) for table in self.tables()), *said])

    def _silent(self) -> list[str]:
        return [f"{name}: nothing can be said: {why}" for name, why in self.verdicts().items()]


def plain(row: "Estimate | Difference | Weights") -> Scalars:
    """A row as JSON values; what is not finite becomes null."""
    return {
        key: None if isinstance(value, float) and not abs(value) < float("inf") else value
        for key, value in row._asdict().items()
    }


Table = tuple[list[str], list[list[str]]]
"""Header and rows."""
_DIGITS = 4  # of a usual number
_DECIMALS = 9  # at most


def estimates(found: Sequence[Estimate], level: float) -> Table:
    """One row per estimate."""
    header = ["policy", "method", "value", f"{level:.0%} interval", "effective size"]
    pairs = zip(found, numbers(found), strict=True)
    return header, [[e.policy, e.method, *shown, f"{e.effective_size:,.0f}"] for e, shown in pairs]


def differences(found: Sequence[Difference], level: float) -> Table:
    """One row per difference, with whether it is clear, and if not, what would be needed."""
    header = ["policy", "minus", "method", "difference", f"{level:.0%} interval", "clear"]
    pairs = zip(found, numbers(found, sign="+"), strict=True)
    return header, [[row.policy, row.other, row.method, *shown, _clear(row)] for row, shown in pairs]


def _clear(row: Difference) -> str:
    if math.isnan(row.low):
        return "nothing can be said"
    return "yes" if row.is_clear else ": ".join(filter(None, ["no", row.verdict]))


def diagnostics(found: "Mapping[str, Weights]") -> Table:
    """One row per candidate, about its weights. The reasons why one cannot be judged are ``verdicts``."""
    header = ["policy", "effective size", "mean weight", "largest", "99 %", "top 1 % holds", "overlap"]
    return [*header, "judged"], [_weights(name, row) for name, row in found.items()]


def _weights(name: str, row: "Weights") -> list[str]:
    return [
        name,
        f"{row.effective_size:,.0f} of {row.decisions:,}",
        f"{row.mean:.3f} ± {row.mean_error:.3f}",
        f"{row.largest:.3g}",
        f"{row.p99:.3g}",
        "" if math.isnan(row.top_share) else f"{row.top_share:.0%}",
        f"{row.overlap:.0%}",
        "no" if row.verdict else "yes",
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns of equal width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def numbers(found: Sequence[Estimate] | Sequence[Difference], sign: str = "") -> list[list[str]]:
    """Value and interval of each row, all with equally many decimals; a dash for what is not known."""
    largest = [
        max(map(abs, filter(math.isfinite, (row.value, row.low, row.high))), default=0) for row in found
    ]
    usual = median(filter(None, largest)) if any(largest) else 1.0
    decimals = min(max(_DIGITS - 1 - math.floor(math.log10(usual)), 0), _DECIMALS)
    return [
        [
            "-" if math.isnan(row.value) else f"{row.value:{sign}.{decimals}f}",
            "-" if math.isnan(row.low) else f"{row.low:.{decimals}f} to {row.high:.{decimals}f}",
        ]
        for row in found
    ]
