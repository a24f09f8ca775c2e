"""The result of an evaluation: estimates, differences, and how far the log supports them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from sketchbandit.evaluation import tables
from sketchbandit.evaluation.results import LOGGED, Difference, Estimate
from sketchbandit.evaluation.weights import Weights
from sketchbandit.html_repr import grid, sentence


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
        weights: Mapping[str, Weights],
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

    def to_json(self) -> dict[str, Any]:
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
            ("values", *tables.estimates([self.logged, *self], self.level)),
            ("beside the policy of the log", *tables.differences(self.differences(), self.level)),
            ("how well the log covers them", *tables.diagnostics(self.weights)),
        ]

    def __repr__(self) -> str:
        header, rows = tables.estimates([self.logged, *self], self.level)
        silent = [f"{name}: nothing can be said: {why}" for name, why in self.verdicts().items()]
        return "\n".join([*tables.aligned([header, *rows]), *silent])

    def _repr_html_(self) -> str:
        """What notebooks show: the tables, and in sentences what cannot be said and what was assumed."""
        silent = [f"{name}: nothing can be said: {why}" for name, why in self.verdicts().items()]
        return "".join([*(grid(*table) for table in self.tables()), *map(sentence, [*silent, *self.notes])])


def plain(row: Any) -> dict[str, Any]:
    """A row as JSON values."""
    return {
        key: None if isinstance(value, float) and not abs(value) < float("inf") else value
        for key, value in row._asdict().items()
    }
