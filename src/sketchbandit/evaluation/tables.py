"""The rows of an evaluation as text tables."""

import math
from collections.abc import Mapping, Sequence

from sketchbandit.evaluation.results import Difference, Estimate
from sketchbandit.evaluation.weights import Weights

Table = tuple[list[str], list[list[str]]]
"""Header and rows."""
_DIGITS = 4  # of the largest number in a row
_DECIMALS = 9  # at most


def estimates(found: Sequence[Estimate], level: float) -> Table:
    """One row per estimate."""
    header = ["policy", "method", "value", f"{level:.0%} interval", "effective size"]
    rows = [[e.policy, e.method, *numbers(e), f"{e.effective_size:,.0f}"] for e in found]
    return header, rows


def differences(found: Sequence[Difference], level: float) -> Table:
    """One row per difference, with whether it is clear."""
    header = ["policy", "minus", "method", "difference", f"{level:.0%} interval", "clear"]
    return header, [_difference(row) for row in found]


def _difference(row: Difference) -> list[str]:
    clear = "nothing can be said" if math.isnan(row.low) else "yes" if row.is_clear else "no"
    return [row.policy, row.other, row.method, *numbers(row, sign="+"), clear]


def diagnostics(found: Mapping[str, Weights]) -> Table:
    """One row per candidate, about its weights. The reasons why one cannot be judged are ``verdicts``."""
    header = ["policy", "effective size", "mean weight", "largest", "99 %", "top 1 % holds", "overlap"]
    return [*header, "can be judged"], [_weights(name, row) for name, row in found.items()]


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


def numbers(row: Estimate | Difference, sign: str = "") -> list[str]:
    """The value and its interval, with equally many decimals; a dash for what is not known."""
    known = [abs(number) for number in (row.value, row.low, row.high) if math.isfinite(number)]
    largest = max(known, default=0.0)
    decimals = 4 if largest == 0.0 else min(max(_DIGITS - 1 - math.floor(math.log10(largest)), 0), _DECIMALS)
    ends = (f"{end:.{decimals}f}" for end in (row.low, row.high))
    return [
        "-" if math.isnan(row.value) else f"{row.value:{sign}.{decimals}f}",
        "-" if math.isnan(row.low) else " to ".join(ends),
    ]
