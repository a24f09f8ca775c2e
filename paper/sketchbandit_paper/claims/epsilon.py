"""Claims about what epsilon and l0 do, on MNIST: Fig. 3 (a), (b)."""

import numpy as np

from sketchbandit_paper.claims.base import Claim, Finding, graded, is_surely_less, verdict
from sketchbandit_paper.results import Results


def _trend(results: Results, column: str, word: str, *, rises: bool) -> Finding:
    """Whether a quantity rises or falls from the smallest epsilon to the largest, paired by permutation."""
    name = "mnist-epsilon"
    changes, right = [], []
    for label, members in results.series(name):
        first, last = (results.finals(name, member, column) for member in (members[0], members[-1]))
        changes.append(f"{last.mean() / first.mean() - 1.0:+.0%} ({label})")
        right.append(is_surely_less(first, last) if rises else is_surely_less(last, first))
    ours = f"from epsilon = 2 to 25 the {word} changes by {', '.join(changes)}"
    return Finding(verdict(all(right), any(right)), ours)


def _first_size(results: Results) -> Finding:
    name = "mnist-epsilon"
    lines = [members for _, members in results.series(name)]
    found = {}
    for column in ("regret", "seconds"):
        small, large = (
            np.mean([results.finals(name, m, column) for m in line], axis=0) for line in (lines[0], lines[-1])
        )
        less, more = is_surely_less(large, small), is_surely_less(small, large)
        found[column] = (large.mean() / small.mean() - 1.0, less, more)
    (gain, better, _), (price, _, dearer) = found["regret"], found["seconds"]
    ours = f"l0 = 200 against 50, averaged over epsilon: regret {gain:+.0%}, time {price:+.0%}"
    return Finding(verdict(better and dearer, better or dearer), ours)


def _small_epsilon(results: Results) -> Finding:
    name = "mnist-epsilon"
    lines = [[results.final(name, m).mean for m in members] for _, members in results.series(name)]
    spread = [max(at) / min(at) - 1.0 for at in zip(*lines, strict=True)]
    ours = (
        f"regret differs by {spread[0]:.0%} across l0 at the smallest epsilon, {spread[-1]:.0%} at the last"
    )
    return Finding(graded(spread[0], spread[0] <= 0.05, spread[0] < spread[-1]), ours)


def _not_monotone(results: Results) -> Finding:
    name = "mnist-epsilon"
    rises, changes = [], []
    for label, members in results.series(name):
        two, four = (results.finals(name, member) for member in members[:2])
        rises.append(is_surely_less(two, four))
        changes.append(f"{four.mean() / two.mean() - 1.0:+.1%} ({label})")
    ours = f"from epsilon = 2 to 4 the regret changes by {', '.join(changes)}; it surely rises on "
    ours += f"{sum(rises)} of {len(rises)} lines"
    return Finding(verdict(not any(rises), not all(rises)), ours)


CLAIMS = (
    Claim(
        id="epsilon-costs-regret",
        where="Sec. 5, Fig. 3 (a)",
        statement="a larger epsilon means more regret",
        paper="increasing",
        rule="more at epsilon = 25 than at 2 with 95 % confidence (paired) for every l0; partly: for some",
        needs=("mnist-epsilon",),
        judge=lambda results: _trend(results, "regret", "regret", rises=True),
    ),
    Claim(
        id="epsilon-saves-time",
        where="Sec. 5, Fig. 3 (b)",
        statement="a larger epsilon means less time",
        paper="decreasing",
        rule="less at epsilon = 25 than at 2 with 95 % confidence (paired) for every l0; partly: for some",
        needs=("mnist-epsilon",),
        judge=lambda results: _trend(results, "seconds", "time", rises=False),
    ),
    Claim(
        id="first-size",
        where="Sec. 5, Fig. 3",
        statement="a larger l0 means less regret and more time",
        paper="-",
        rule="both for l0 = 200 against 50, with 95 % confidence (paired); partly: one of the two",
        needs=("mnist-epsilon",),
        judge=_first_size,
    ),
    Claim(
        id="small-epsilon-forgets-size",
        where="Sec. 5, Fig. 3 (a)",
        statement="for very small epsilon the regret hardly depends on l0",
        paper="nearly identical",
        rule="within 5 % at the smallest epsilon; partly: closer there than at the largest",
        needs=("mnist-epsilon",),
        judge=_small_epsilon,
    ),
    Claim(
        id="not-monotone",
        where="Sec. 5, Fig. 3 (a)",
        statement="the regret need not increase with epsilon",
        paper="not for epsilon = 2, 4",
        rule="from epsilon = 2 to 4 it rises with 95 % confidence (paired) for no l0; partly: not for all",
        needs=("mnist-epsilon",),
        judge=_not_monotone,
    ),
)
