"""Rows of an evaluation as tables of text."""

import math
from collections.abc import Mapping, Sequence

from sketchbandit.evaluation.results import Difference, Estimate
from sketchbandit.evaluation.weights import Weights

Table = tuple[list[str], list[list[str]]]
"""Header and rows."""


def estimates(found: Sequence[Estimate], level: float) -> Table:
    """A row an estimate."""
    header = ["policy", "method", "value", f"{level:.0%} interval", "effective size"]
    rows = [[e.policy, e.method, _number(e.value), _interval(e), f"{e.effective_size:,.0f}"] for e in found]
    return header, rows


def differences(found: Sequence[Difference], level: float) -> Table:
    """A row a difference, and whether it is clear."""
    header = ["policy", "less", "method", "difference", f"{level:.0%} interval", "clear"]
    return header, [_difference(row) for row in found]


def _difference(row: Difference) -> list[str]:
    clear = "nothing can be said" if math.isnan(row.low) else "yes" if row.is_clear else "no"
    return [row.policy, row.other, row.method, f"{row.value:+.4g}", _interval(row), clear]


def diagnostics(found: Mapping[str, Weights]) -> Table:
    """The weights of every candidate."""
    header = ["policy", "effective size", "mean weight", "largest", "99 %", "top 1 % holds", "overlap"]
    return [*header, "verdict"], [_weights(name, row) for name, row in found.items()]


def _weights(name: str, row: Weights) -> list[str]:
    return [
        name,
        f"{row.effective_size:,.0f} of {row.decisions:,}",
        f"{row.mean:.3f} ± {row.mean_error:.3f}",
        f"{row.largest:.3g}",
        f"{row.p99:.3g}",
        "" if math.isnan(row.top_share) else f"{row.top_share:.0%}",
        f"{row.overlap:.0%}",
        f"nothing can be said: {row.verdict}" if row.verdict else "good",
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _interval(row: Estimate | Difference) -> str:
    return "-" if math.isnan(row.low) else f"{row.low:.4g} to {row.high:.4g}"
