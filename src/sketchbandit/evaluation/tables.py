"""Evaluations as tables of text."""

import math
from collections.abc import Sequence

from sketchbandit.evaluation.results import Difference, Estimate, Evaluation
from sketchbandit.evaluation.weights import Weights

Table = tuple[list[str], list[list[str]]]
"""Header and rows."""


def estimates(found: Evaluation) -> Table:
    """A row an estimate, that of the log first."""
    header = ["policy", "method", "value", f"{found.level:.0%} interval", "effective size"]
    return header, [_estimate(row) for row in (found.logged, *found)]


def _estimate(row: Estimate) -> list[str]:
    return [row.policy, row.method, _number(row.value), _interval(row), f"{row.effective_size:,.0f}"]


def differences(found: Evaluation, method: str | None = None) -> Table:
    """Every candidate less the policy of the log, and the best of them less the others."""
    rows = found.differences(method=method)
    header = ["policy", "less", "method", "difference", f"{found.level:.0%} interval", "clear"]
    return header, [_difference(row) for row in rows]


def _difference(row: Difference) -> list[str]:
    clear = "nothing can be said" if math.isnan(row.low) else "yes" if row.is_clear else "no"
    return [row.policy, row.other, row.method, f"{row.value:+.4g}", _interval(row), clear]


def diagnostics(found: Evaluation) -> Table:
    """The weights of every candidate."""
    header = [
        "policy",
        "effective size",
        "mean weight",
        "largest",
        "99 %",
        "top 1 % holds",
        "overlap",
        "verdict",
    ]
    return header, [_weights(name, row) for name, row in found.weights.items()]


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


def text(found: Evaluation) -> str:
    """The estimates in columns, and what cannot be said."""
    header, rows = estimates(found)
    lines = aligned([header, *rows])
    lines += [f"{name}: nothing can be said: {why}" for name, why in found.verdicts().items()]
    return "\n".join(lines)


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
