"""The claims of the bake-off, judged by rules that were fixed before it was run."""

import math
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.bakeoff.board import Board
from benchmarks.bakeoff.contestants import DEFAULT, RIVALS, UNIFORM

WORST_SHARE = 0.6
"""Of uniform's mean regret: what no run of the default may exceed."""
SCALE_TOLERANCE = 0.05
"""By how much the mean regret may change when rewards have another unit or another zero."""


class Verdict(NamedTuple):
    """One claim on one data set."""

    data: str
    holds: bool | None
    """None: the results that it needs are not there."""
    figure: str


def beats_rivals(board: Board, data: str, condition: str = "plain") -> Verdict:
    """The default's mean regret is at most that of every rival, on the runs that both finished."""
    ratios = {rival.name: board.ratio(DEFAULT, rival.name, data, condition) for rival in RIVALS}
    known = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
    if failed := _failed(board, data, condition):
        return failed
    if not known:
        return Verdict(data, None, "nothing to compare")
    nearest = max(known, key=known.__getitem__)
    return Verdict(data, known[nearest] <= 1.0, f"{known[nearest]:.2f} of {nearest}'s")


def no_disaster(board: Board, data: str) -> Verdict:
    """No run of the default has more than 0.6 times the mean regret of uniform choices."""
    mine, uniform = board.cell(DEFAULT, data), board.cell(UNIFORM, data)
    if failed := _failed(board, data, "plain"):
        return failed
    if math.isnan(mine.mean) or math.isnan(uniform.mean):
        return Verdict(data, None, "nothing to compare")
    limit = WORST_SHARE * uniform.mean
    return Verdict(data, mine.worst <= limit, f"worst run {mine.worst:,.0f}, limit {limit:,.0f}")


def same_under(board: Board, data: str, condition: str) -> Verdict:
    """The default's mean regret, in units of the reward, changes by at most 5 %."""
    ratio = board.ratio(DEFAULT, DEFAULT, data, condition, "plain")
    if failed := _failed(board, data, condition):
        return failed
    if math.isnan(ratio):
        return Verdict(data, None, "nothing to compare")
    return Verdict(data, abs(ratio - 1.0) <= SCALE_TOLERANCE, f"{100 * (ratio - 1.0):+.1f} %")


def _failed(board: Board, data: str, condition: str) -> Verdict | None:
    errors = board.cell(DEFAULT, data, condition).errors
    return Verdict(data, False, f"{len(errors)} runs failed: {errors[0]}") if errors else None


CLAIMS: dict[str, Callable[[Board, str], Verdict]] = {
    "The default's mean regret is at most that of every rival": beats_rivals,
    "No run of the default is worse than 0.6 times uniform's mean": no_disaster,
    "Rewards times 100 change the default's mean regret by at most 5 %": lambda board, data: same_under(
        board, data, "times 100"
    ),
    "Rewards plus 10 change the default's mean regret by at most 5 %": lambda board, data: same_under(
        board, data, "plus 10"
    ),
    "With rewards 100 rounds late, still at most that of every rival": lambda board, data: beats_rivals(
        board, data, "late"
    ),
}


def judge(board: Board) -> dict[str, list[Verdict]]:
    """Every claim on every data set."""
    return {claim: [rule(board, data) for data in board.sets()] for claim, rule in CLAIMS.items()}
