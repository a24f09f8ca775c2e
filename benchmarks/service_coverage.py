"""How often the interval of the uniform choice on the dashboard holds the truth, where it is shown.

    python -m benchmarks.service_coverage [--logs 1000] [--out results/service_coverage.json]

plays a grid of logs whose truth is known: clicks of 0.2 to 50 per cent, clicks that hardly ever fail, and
lognormal rewards; 2 to 80 arms; uniform choices, a favourite arm beside a uniform share of 5 per cent, and
softmaxes of random scores with deviation 1 and 2; 500 to 20,000 decisions. It prints the tables of
docs/service.md, worst cell first. The logs are split over all cores.
"""

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit_paper.reporting import markdown_table
from sketchbandit_service.comparing import Comparison, compare
from sketchbandit_service.weighted_rewards import WeightedRewards

Array = NDArray[np.float64]
LOGNORMAL = "lognormal"
REWARDS: tuple[float | str, ...] = (0.002, 0.01, 0.05, 0.5, 0.99, 0.998, LOGNORMAL)
ARMS = (2, 10, 80)
RULES = ("uniform", "floor 5%", "softmax 1", "softmax 2")
DECISIONS = (500, 3_000, 20_000)
_CONTEXTS = 5_000
_PARTS = 12  # of a range of time


class Cell(NamedTuple):
    """One kind of log."""

    reward: float | str
    """The share of clicks that a uniform choice has."""
    arms: int
    rule: str
    decisions: int


class World(NamedTuple):
    """Contexts to draw from."""

    chances: Array
    """Probabilities of all arms in all contexts."""
    sums: Array
    """Context number + running sum of its probabilities, flat and ascending: one search finds an arm."""
    factors: Array
    """The mean rewards of all arms, relative to those of a uniform choice."""


@cache
def world(arms: int, rule: str) -> World:
    """A world in which the rule has learned something: it prefers arms that earn up to twice as much."""
    random = np.random.default_rng(arms)
    factors = random.uniform(0.6, 1.4, (_CONTEXTS, arms))
    if rule.startswith("softmax"):
        scores = float(rule.split()[1]) * random.standard_normal((_CONTEXTS, arms)) + factors
    else:
        scores = np.zeros((_CONTEXTS, arms))
        factors[:, 0] *= 1.5
        scores[:, 0] = 100.0 if rule.startswith("floor") else 0.0
    factors /= factors.mean()
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    if rule.startswith("floor"):
        chances = 0.95 * chances + 0.05 / arms
    sums = np.arange(_CONTEXTS)[:, np.newaxis] + np.minimum(chances.cumsum(axis=1), 1.0)
    sums[:, -1] = np.arange(1, _CONTEXTS + 1)
    return World(chances, sums.ravel(), factors)


def truth(cell: Cell) -> float:
    """What a uniform choice earns."""
    if isinstance(cell.reward, str):
        return 1.0
    return cell.reward


def draw(cell: Cell, seed: int) -> tuple[Array, Array]:
    """Weights and rewards of a log."""
    random = np.random.default_rng([seed, cell.arms, cell.decisions])
    given = world(cell.arms, cell.rule)
    at = np.searchsorted(given.sums, random.uniform(0.0, _CONTEXTS, cell.decisions), side="right")
    rows, chosen = np.divmod(at, cell.arms)
    weight, factor = 1.0 / (cell.arms * given.chances[rows, chosen]), given.factors[rows, chosen]
    if isinstance(cell.reward, str):
        return weight, factor * random.lognormal(-0.5, 1.0, len(rows))
    if cell.reward > 0.5:  # few fail
        return weight, (random.random(len(rows)) >= (1.0 - cell.reward) * factor).astype(float)
    return weight, (random.random(len(rows)) < cell.reward * factor).astype(float)


def judged(cell: Cell, seed: int) -> Comparison | str:
    """What the dashboard says of a log, of which each twelfth was pooled by itself."""
    weight, reward = draw(cell, seed)
    total = WeightedRewards()
    rows = np.column_stack([weight, reward, np.ones(len(weight))])
    for some in np.array_split(rows, _PARTS):
        total += WeightedRewards.undump([float(some[:, 1].sum()), 0, *some.ravel().tolist()])
    return compare(total)


class Row(NamedTuple):
    """How one cell did."""

    cell: Cell
    logs: int
    shown: int
    """Logs with an interval."""
    holds: int
    """Those of them that hold the truth."""
    width: float
    """The mean width, relative to the truth, or to 1 minus the truth for rewards that hardly ever fail."""

    @property
    def share(self) -> float:
        """The share of the intervals shown that hold the truth."""
        return self.holds / self.shown if self.shown else float("nan")


def measure(cell: Cell, logs: int) -> Row:
    """Play a cell."""
    true, holds, widths = truth(cell), 0, []
    for seed in range(logs):
        found = judged(cell, seed)
        if not isinstance(found, str):
            holds += found.low <= true <= found.high
            widths.append((found.high - found.low) / (1.0 - true if 0.5 < true < 1.0 else true))
    return Row(cell, logs, len(widths), holds, float(np.mean(widths)) if widths else float("nan"))


def cells() -> Iterator[Cell]:
    """The whole grid."""
    for reward, arms, rule, decisions in product(REWARDS, ARMS, RULES, DECISIONS):
        yield Cell(reward, arms, rule, decisions)


_OFTEN, _WORST = 0.01, 10
_HEADER = ["reward", "arms", "rule", "decisions", "shown", "holds", "width"]


def tables(rows: Iterable[Row]) -> str:
    """The worst cells, and a summary by reward."""
    rows = list(rows)
    judged_rows = sorted((row for row in rows if row.shown >= _OFTEN * row.logs), key=lambda row: row.share)
    seldom = [row for row in rows if 0 < row.shown < _OFTEN * row.logs]
    shares = np.array([row.share for row in judged_rows])
    said = (
        f"{len(rows)} cells, {rows[0].logs:,} logs each. {len(judged_rows)} cells have an interval in at "
        f"least {_OFTEN:.0%} of the logs. It holds the truth in {shares.mean():.1%} in the mean and in "
        f"{shares.min():.1%} in the worst cell. {len(seldom)} further cells have "
        f"{sum(row.shown for row in seldom)} intervals, of which {sum(row.holds for row in seldom)} hold."
    )
    worst = [
        [*_named(row.cell), f"{row.shown / row.logs:.0%}", f"{row.share:.1%}", f"{row.width:.2f}"]
        for row in judged_rows[:_WORST]
    ]
    groups = []
    for reward in REWARDS:
        some = [row for row in judged_rows if row.cell.reward == reward]
        every = [row for row in rows if row.cell.reward == reward]
        held = [row.share for row in some] or [float("nan")]
        shown = sum(row.shown for row in every) / sum(row.logs for row in every)
        groups.append([_named(every[0].cell)[0], f"{min(held):.1%}", f"{np.mean(held):.1%}", f"{shown:.0%}"])
    summary = markdown_table(["reward", "worst", "mean", "shown"], groups)
    return "\n\n".join([said, markdown_table(_HEADER, worst), summary])


def _named(cell: Cell) -> list[str]:
    reward = cell.reward if isinstance(cell.reward, str) else f"{cell.reward:.1%}"
    return [reward, str(cell.arms), cell.rule, f"{cell.decisions:,}"]


def main() -> None:
    """Play the grid, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=1000, help="logs of each cell")
    parser.add_argument("--out", type=Path, help="write all cells into this file, as JSON")
    given = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(partial(measure, logs=given.logs), sorted(cells(), key=lambda c: -c.decisions)))
    print(tables(rows))
    if given.out:
        given.out.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


if __name__ == "__main__":
    main()
