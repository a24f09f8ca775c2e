"""Dividing the work: which rows of which file, and what sketch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sketchbandit.errors import InputError
from sketchbandit.outofcore.sources import Source
from sketchbandit.sketch import AdaptiveSketch, Bulk, FrequentDirections, Sketch

_LEAST_BYTES, _MOST_BYTES = 1 << 26, 1 << 30  # of a part, as float64
_TIMES_DIM = 128  # rows: a part is then 128 times as large as the X'X that is written for it


@dataclass(frozen=True)
class Plan:
    """The sketch that is wanted, of rows of length ``dim``, ``rows`` in all if that is known."""

    dim: int
    rows: int | None
    size: int
    epsilon: float | None
    dtype: str

    def reader(self) -> Bulk:
        """One for a part, or for everything."""
        return Bulk(self._sketch(), rows=self.rows)

    def _sketch(self) -> Sketch:
        if self.epsilon is None:
            return FrequentDirections(self.dim, size=self.size, dtype=self.dtype)
        return AdaptiveSketch(  # with a horizon for all rows the budgets of the parts add up to epsilon
            self.dim,
            epsilon=self.epsilon,
            horizon=self.rows or None,
            size=self.size,
            compensation=0.0,
            dtype=self.dtype,
        )


@dataclass(frozen=True)
class Part:
    """Rows ``start`` to ``stop`` of a file, and where their sketch is to be written."""

    plan: Plan
    source: str
    start: int
    stop: int
    out: str

    @property
    def key(self) -> str:
        """Names what the part is of."""
        described = {**asdict(self), "out": None}
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]

    def to_json(self) -> str:
        """For a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Part":
        """The inverse of ``to_json``."""
        fields: dict[str, Any] = json.loads(text)
        return cls(Plan(**fields.pop("plan")), **fields)


def check_alike(sources: Sequence[Source]) -> None:
    """Refuse files that do not belong together."""
    first, *others = sources
    for other in others:
        if other.dim != first.dim:
            raise InputError(
                f"{other.name}: its rows have length {other.dim}, but {first.name} has {first.dim}"
            )
        if first.columns and other.columns and list(other.columns) != list(first.columns):
            at = next(
                i
                for i, pair in enumerate(zip(first.columns, other.columns, strict=True))
                if pair[0] != pair[1]
            )
            raise InputError(
                f"{other.name}: column {at} is called {other.columns[at]!r}, "
                f"but {first.columns[at]!r} in {first.name}"
            )


def divide(plan: Plan, sources: Sequence[Source], folder: Path) -> list[Part]:
    """Every part, in the order of the rows; files without rows give none."""
    bytes_a_part = min(max(_TIMES_DIM * plan.dim * 8 * plan.dim, _LEAST_BYTES), _MOST_BYTES)
    most = max(1, bytes_a_part // (8 * plan.dim))
    ranges = [(source, *rows) for source in sources for rows in source.divide(most)]
    return [
        Part(plan, source.name, start, stop, str(folder / f"{number:05}.safetensors"))
        for number, (source, start, stop) in enumerate(ranges)
        if stop > start
    ]
