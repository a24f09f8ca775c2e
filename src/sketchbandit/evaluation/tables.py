"""The rows of an evaluation as text tables."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from sketchbandit.evaluation.results import Difference, Estimate
from sketchbandit.evaluation.weights import Weights

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


def diagnostics(found: Mapping[str, Weights]) -> Table:
    """One row per candidate, about its weights. The reasons why one cannot be judged are ``verdicts``."""
    header = ["policy", "effective size", "mean weight", "largest", "99 %", "top 1 % holds", "overlap"]
    return [*header, "judged"], [_weights(name, row) for name, row in found.items()]


def _weights(name: str, row: Weights) -> list[str]:
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
