"""The rows of an evaluation as text tables."""

import math
from collections.abc import Mapping, Sequence

from sketchbandit.evaluation.results import Difference, Estimate
from sketchbandit.evaluation.weights import Weights

Table = tuple[list[str], list[list[str]]]
"""Header and rows."""


def estimates(found: Sequence[Estimate], level: float) -> Table:
    """One row per estimate."""
    header = ["policy", "method", "value", f"{level:.0%} interval", "effective size"]
    rows = [[e.policy, e.method, number(e.value), interval(e), f"{e.effective_size:,.0f}"] for e in found]
    return header, rows


def differences(found: Sequence[Difference], level: float) -> Table:
    """One row per difference, with whether it is clear."""
    header = ["policy", "less", "method", "difference", f"{level:.0%} interval", "clear"]
    return header, [_difference(row) for row in found]


def _difference(row: Difference) -> list[str]:
    clear = "nothing can be said" if math.isnan(row.low) else "yes" if row.is_clear else "no"
    return [row.policy, row.other, row.method, f"{row.value:+.4g}", interval(row), clear]


def diagnostics(found: Mapping[str, Weights]) -> Table:
    """One row per candidate, about its weights."""
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
    """Lines with columns of equal width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def number(value: float) -> str:
    """Four digits; a dash for nan."""
    return "-" if math.isnan(value) else f"{value:.4g}"


def interval(row: Estimate | Difference) -> str:
    """The two ends of an interval; a dash if nothing can be said."""
    return "-" if math.isnan(row.low) else f"{row.low:.4g} to {row.high:.4g}"
