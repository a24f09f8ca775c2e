"""How often intervals of evaluation hold the truth: simulated logs whose truth is known.

    python -m benchmarks.evaluation_coverage [--logs 1000] [--out results/coverage] [--page]

plays a grid of logs, each cell 1,000 times: rewards that are rare, common or lognormal; from 2 to 100 arms;
uniform and skewed logs; candidates with and without chance; effective sample sizes from 20 to 5,000. For every
cell and every quantity it counts how often there is an interval, how often it holds the truth, and how often a
difference is "clear" where none is. An hour; cells are kept in the folder, so that a second call goes on.
``--page`` writes the table of docs/coverage.md and its figure. ``--any-time`` prints the table of any-time
intervals (minutes).
"""

import argparse
import json
import time
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from tests.logs import ARMS, TRUTH, contexts, mean_rewards, world

from sketchbandit.drawing import STYLE, panels, save
from sketchbandit.evaluation import AnytimeValue, Log
from sketchbandit.evaluation.anytime import Anytime
from sketchbandit.evaluation.concluding import conclude
from sketchbandit.evaluation.intervals import Assumed
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.settings import Settings
from sketchbandit.evaluation.terms import Terms
from sketchbandit.experiments.reporting import markdown_table

Array = NDArray[np.float64]
LOGNORMAL = "lognormal"
REWARDS: tuple[float | str, ...] = (0.002, 0.02, 0.1, 0.5, LOGNORMAL)
KINDS = ("deterministic", "random")
SKEWS = {"uniform": 0.0, "skewed": 1.0, "very skewed": 2.0}
SIZES = (20, 200, 5_000)
_POOL, _LONGEST, _SHORTEST = 20_000, 60_000, 200
_FOLDS, _CLASSES = 3, 5


class Cell(NamedTuple):
    """One kind of log and candidate."""

    reward: float | str
    arms: int
    logged: str
    kind: str
    size: int
    """The effective sample size aimed at."""

    @property
    def name(self) -> str:
        """A name for its file."""
        return "-".join(str(part) for part in self).replace(" ", "-")


class Pool(NamedTuple):
    """Contexts to draw from: logged probabilities, their sums, and the relative rewards of all arms."""

    chances: Array
    sums: Array
    factors: Array


@cache
def pool(arms: int, skew: float) -> Pool:
    """Twenty thousand contexts. Rewards differ between contexts and arms; all arms are equal in the mean."""
    random = np.random.default_rng(arms)
    factors = random.uniform(0.5, 1.5, (_POOL, 1)) * random.uniform(0.6, 1.4, (_POOL, arms))
    factors /= factors.mean(axis=0)
    scores = skew * random.standard_normal((_POOL, arms)) + 0.3 * skew * (factors - 1.0)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    return Pool(chances, chances.cumsum(axis=1), factors)


def candidate(arm: int, arms: int, kind: str) -> Array:
    """Always one arm, or this arm in half of all decisions and a uniform choice in the others."""
    chances = np.zeros(arms)
    chances[arm] = 1.0
    return chances if kind == "deterministic" else 0.5 * chances + 0.5 / arms


def length(cell: Cell) -> int:
    """The decisions that give the effective size aimed at, n / E[w²]; 0 if they are too many or too few."""
    given = pool(cell.arms, SKEWS[cell.logged]).chances
    squares = float((candidate(0, cell.arms, cell.kind) ** 2 / given).sum(axis=1).mean())
    count = round(cell.size * squares)
    return count if _SHORTEST <= count <= _LONGEST else 0


def cells() -> Iterator[Cell]:
    """All cells that are not too long."""
    for reward, arms, logged, kind, size in product(REWARDS, (2, 10, 100), SKEWS, KINDS, SIZES):
        cell = Cell(reward, arms, logged, kind, size)
        if length(cell):
            yield cell


def draw(cell: Cell, seed: int) -> tuple[Log, dict[str, Terms]]:
    """A log, and the terms of two candidates of equal value, with a model of the context, cross-fitted."""
    random, count = np.random.default_rng([seed, length(cell)]), length(cell)
    given = pool(cell.arms, SKEWS[cell.logged])
    rows, at = random.integers(_POOL, size=count), np.arange(count)
    chosen = np.minimum((given.sums[rows] < random.random((count, 1))).sum(axis=1), cell.arms - 1)
    probability, means = given.chances[rows, chosen], given.factors[rows, chosen]
    if cell.reward == LOGNORMAL:
        reward = means * random.lognormal(-0.5, 1.0, count)
    else:
        reward = (random.random(count) < float(cell.reward) * means).astype(float)
    context = np.searchsorted(
        np.quantile(given.factors.mean(axis=1), np.arange(1, _CLASSES) / _CLASSES),
        given.factors[rows].mean(axis=1),
    )
    keys = context + _CLASSES * (at * _FOLDS // count)
    sums, sizes = (
        np.bincount(keys, weights=w, minlength=_CLASSES * _FOLDS).reshape(_FOLDS, -1)
        for w in (reward, np.ones(count))
    )
    fitted = (sums.sum(axis=0) - sums) / np.maximum(sizes.sum(axis=0) - sizes, 1.0)
    model = fitted.ravel()[keys]
    terms = {
        name: Terms(reward, candidate(arm, cell.arms, cell.kind)[chosen] / probability, model, model, 0.0)
        for name, arm in (("a", 0), ("b", 1))
    }
    return Log(arms=np.zeros((cell.arms, 1)), chosen=chosen, reward=reward, probability=probability), terms


def truth(cell: Cell) -> tuple[float, float]:
    """What both candidates earn, and the policy of the log."""
    given = pool(cell.arms, SKEWS[cell.logged])
    scale = 1.0 if cell.reward == LOGNORMAL else float(cell.reward)
    earned = given.factors @ candidate(0, cell.arms, cell.kind)
    return scale * float(earned.mean()), scale * float((given.chances * given.factors).sum(axis=1).mean())


def measure(cell: Cell, logs: int) -> dict[str, Any]:
    """Counts over many logs."""
    methods = ("ips", "snips", "dr")
    value, logged = truth(cell)
    wanted = {name: (value, False) for name in methods}
    wanted |= {f"a - b, {name}": (0.0, True) for name in methods}
    wanted |= {f"a - logged, {name}": (value - logged, abs(value - logged) < 1e-12) for name in methods}
    wanted["logged"] = (logged, False)
    names = ("given", "holds", "clear", "below", "above", "width", "normal")
    counts = {key: dict.fromkeys(names, 0.0) for key in wanted}
    sizes = []
    for seed in range(logs):
        log, terms = draw(cell, seed)
        found = conclude(log, terms, Settings(methods=methods))
        normal = conclude(log, terms, Settings(methods=methods, interval="normal"))
        sizes.append(found.weights["a"].effective_size)
        rows: dict[str, Any] = {name: (found.of("a", name), normal.of("a", name)) for name in methods}
        for name in methods:
            for other, key in (("b", "b"), (LOGGED, "logged")):
                pair = (found.difference("a", other, name), normal.difference("a", other, name))
                rows[f"a - {key}, {name}"] = pair
        rows["logged"] = (found.logged, normal.logged)
        for key, (row, usual) in rows.items():
            if np.isnan(row.low):
                continue
            true, is_zero = wanted[key]
            count = counts[key]
            count["given"] += 1
            count["holds"] += row.low <= true <= row.high
            count["below"] += row.high < true
            count["above"] += row.low > true
            count["clear"] += is_zero and not row.low <= 0.0 <= row.high
            if not np.isnan(usual.low):
                count["width"] += row.high - row.low
                count["normal"] += usual.high - usual.low
    return {
        "cell": list(cell),
        "decisions": length(cell),
        "logs": logs,
        "size": float(np.median(sizes)),
        "counts": counts,
    }


def main() -> None:
    """Play the grid, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("results/coverage"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    every = list(cells())
    for number, cell in enumerate(every):
        path = given.out / f"{cell.name}-{given.logs}.json"
        if path.exists():
            continue
        started = time.perf_counter()
        found = measure(cell, given.logs)
        path.write_text(json.dumps(found))
        worst = min(
            ((c["holds"] / c["given"], key) for key, c in found["counts"].items() if c["given"]), default=None
        )
        print(
            f"{number + 1}/{len(every)} {cell.name} n={found['decisions']} size {found['size']:.0f}: worst {worst}, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
