"""How often intervals of evaluation hold the truth: simulated logs whose truth is known.

    python -m benchmarks.evaluation_coverage [--logs 1000] [--out results/coverage] [--docs docs]

plays a grid of logs: rewards that are rare, common or lognormal; from 2 to 100 arms; uniform and skewed logs;
candidates with and without chance; effective sample sizes from 20 to 5,000. For every cell and every quantity
it counts how often there is an interval, how often it holds the truth, and how often a difference is "clear"
where there is none, and prints the tables of docs/coverage.md, worst first. It takes half an hour. Finished
cells are kept in the folder, so that a second call goes on. ``--docs`` is where the figure and coverage.json,
which has all shares, are written. ``--any-time`` prints the table of any-time intervals.
"""

import argparse
import json
import textwrap
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from tests.logs import ARMS, TRUTH, contexts, mean_rewards, world

from sketchbandit.drawing import STYLE, footnote, panels, save
from sketchbandit.evaluation import AnytimeValue, Evaluation, Log
from sketchbandit.evaluation.estimators import METHODS
from sketchbandit.evaluation.intervals import NOTHING, Assumed, Interval, Normal
from sketchbandit.evaluation.off_policy import Settings, conclude
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.sequences import Anytime
from sketchbandit.evaluation.terms import Terms, logged_terms
from sketchbandit.evaluation.weights import LEAST_SIZE
from sketchbandit_paper.reporting import markdown_table

Array = NDArray[np.float64]
LOGNORMAL = "lognormal"
REWARDS: tuple[float | str, ...] = (0.002, 0.02, 0.1, 0.5, LOGNORMAL)
KINDS = ("deterministic", "random")
SKEWS = {"uniform": 0.0, "skewed": 1.0, "very skewed": 2.0}
SIZES = (20, 200, 5_000)
_POOL, _LONGEST, _SHORTEST = 20_000, 60_000, 200
_FOLDS, _CLASSES = 3, 5
LONG = 10_000  # decisions of the logs for any-time intervals


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
    """Contexts to draw from: logged probabilities, and the relative rewards of all arms."""

    chances: Array
    sums: Array
    """Context number + running sum of its probabilities, flat and ascending: one search finds an arm."""
    factors: Array
    context: NDArray[np.int64]
    """The class of a context, by its mean reward: what the model of the rewards sees."""


@cache
def pool(arms: int, skew: float) -> Pool:
    """Twenty thousand contexts. Rewards differ between contexts and arms; all arms are equal in the mean."""
    random = np.random.default_rng(arms)
    factors = random.uniform(0.6, 1.4, (_POOL, 1)) * random.uniform(0.6, 1.4, (_POOL, arms))
    factors /= factors.mean(axis=0)
    scores = skew * random.standard_normal((_POOL, arms)) + 0.3 * skew * (factors - 1.0)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    sums = np.arange(_POOL)[:, np.newaxis] + np.minimum(chances.cumsum(axis=1), 1.0)
    sums[:, -1] = np.arange(1, _POOL + 1)
    means = factors.mean(axis=1)
    context = np.searchsorted(np.quantile(means, np.arange(1, _CLASSES) / _CLASSES), means)
    return Pool(chances, sums.ravel(), factors, context)


def candidate(arm: int, arms: int, kind: str) -> Array:
    """Always one arm, or this arm in half of all decisions and a uniform choice in the others."""
    chances = np.zeros(arms)
    chances[arm] = 1.0
    return chances if kind == "deterministic" else 0.5 * chances + 0.5 / arms


@cache
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
    given, at = pool(cell.arms, SKEWS[cell.logged]), np.arange(count)
    drawn = np.searchsorted(given.sums, np.sort(random.uniform(0.0, _POOL, count)), side="right")
    rows, chosen = np.divmod(random.permutation(drawn), cell.arms)
    probability, means = given.chances[rows, chosen], given.factors[rows, chosen]
    if cell.reward == LOGNORMAL:
        reward = means * random.lognormal(-0.5, 1.0, count)
    else:
        reward = (random.random(count) < float(cell.reward) * means).astype(float)
    keys = given.context[rows] + _CLASSES * (at * _FOLDS // count)
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
    wanted = dict.fromkeys(methods, (value, False))
    wanted |= {f"a - b, {name}": (0.0, True) for name in methods}
    wanted |= {f"a - logged, {name}": (value - logged, abs(value - logged) < 1e-12) for name in methods}
    wanted["logged"] = (logged, False)
    names = ("given", "holds", "clear", "below", "above", "width", "normal", "normal given", "normal holds")
    counts = {key: dict.fromkeys(names, 0.0) for key in wanted}
    sizes = []
    for seed in range(logs):
        log, terms = draw(cell, seed)
        found = conclude(log, terms, Settings(methods=methods))
        normal = _normal(log, terms, found)
        sizes.append(found.weights["a"].effective_size)
        rows: dict[str, Any] = {name: (found.of("a", name), normal[name]) for name in methods}
        for name in methods:
            for other, key in (("b", "b"), (LOGGED, "logged")):
                what = f"a - {key}, {name}"
                rows[what] = (found.difference("a", other, name), normal[what])
        rows["logged"] = (found.logged, normal["logged"])
        for key, (row, usual) in rows.items():
            (true, is_zero), count = wanted[key], counts[key]
            count["normal given"] += not np.isnan(usual.low)
            count["normal holds"] += usual.low <= true <= usual.high
            if np.isnan(row.low):
                continue
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


def _normal(log: Log, terms: dict[str, Terms], found: Evaluation) -> dict[str, Interval]:
    """The normal intervals of the same log, where ``evaluate(..., interval="normal")`` gives one."""
    methods = ("ips", "snips", "dr")
    everyone = {**terms, LOGGED: logged_terms(log, terms["a"].predicted)}
    samples = {(name, key): METHODS[key].sample(one) for name, one in everyone.items() for key in methods}
    judge = Normal(samples, log.reward, 0.95)
    is_given = {
        name: not one.verdict and one.effective_size >= LEAST_SIZE for name, one in found.weights.items()
    } | {LOGGED: True}
    rows = {"logged": judge.of_log()}
    for key in methods:
        rows[key] = judge.interval("a", key) if is_given["a"] else NOTHING
        for other in ("b", LOGGED):
            ends = judge.difference("a", other, key) if is_given["a"] and is_given[other] else NOTHING
            rows[f"a - {other}, {key}"] = ends
    return rows


def played(cell: Cell, logs: int, folder: Path) -> dict[str, Any]:
    """What came of a cell: from its file, or played now."""
    path = folder / f"{cell.name}-{logs}.json"
    if not path.exists():
        started = time.perf_counter()
        path.write_text(json.dumps(measure(cell, logs)))
        print(f"{cell.name}: {time.perf_counter() - started:.0f} s", flush=True)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


class Row(NamedTuple):
    """How one quantity did in one cell."""

    cell: Cell
    decisions: int
    logs: int
    what: str
    given: float
    """The share of logs with an interval."""
    holds: float
    """Of these, the share that hold the truth."""
    clear: float
    """The share of all logs in which the difference is clear, though there is none."""
    width: float
    """The mean width over that of the normal interval, where both are given."""
    normal_given: float
    normal_holds: float
    """The same for normal intervals."""


def rows_of(results: Iterable[dict[str, Any]]) -> list[Row]:
    """All quantities of all cells, worst coverage first."""
    rows = []
    for found in results:
        for what, count in found["counts"].items():
            given, width = count["given"], count["width"] / count["normal"] if count["normal"] else np.nan
            shares = (given / found["logs"], count["holds"] / given if given else np.nan)
            clear, usual = count["clear"] / found["logs"], count["normal given"]
            normal = usual / found["logs"], count["normal holds"] / usual if usual else np.nan
            played = found["decisions"], found["logs"]
            rows.append(Row(Cell(*found["cell"]), *played, what, *shares, clear, width, *normal))
    return sorted(rows, key=lambda row: (np.isnan(row.holds), row.holds))


def dump(rows: list[Row]) -> str:
    """The rows as JSON, a line for each, in the order of ``Row``; null is nan."""
    lines = [
        [None if isinstance(one, float) and np.isnan(one) else _rounded(one) for one in row] for row in rows
    ]
    return "[\n" + ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n]\n"


def load(text: str) -> list[Row]:
    """The rows that ``dump`` wrote."""
    lines: list[Any] = [[np.nan if one is None else one for one in line] for line in json.loads(text)]
    return [Row(Cell(*cell), *rest) for cell, *rest in lines]


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def measured(rows: list[Row]) -> str:
    """The tables of docs/coverage.md."""
    judged = [row for row in rows if row.given >= _OFTEN]
    seldom = [row for row in rows if 0.0 < row.given < _OFTEN]
    equal = [row for row in judged if row.what.startswith("a - b")]
    holds, cells = np.array([row.holds for row in judged]), {row.cell for row in rows}
    few = sum(row.given * row.logs for row in seldom), sum(row.given * row.logs * row.holds for row in seldom)
    large = [
        row
        for row in judged
        if (row.cell.reward, row.cell.size) == (REWARDS[3], SIZES[-1]) and row.what in _MAIN
    ]
    return "\n\n".join(
        [
            _filled(
                f"{len(cells)} cells, {_span([row.logs for row in rows])} logs each. {len(judged):,} pairs "
                f"of cell and quantity have an interval in at least {_OFTEN:.0%} of the logs. It holds the "
                f"truth in {holds.mean():.1%} in the mean, and in {holds.min():.1%} in the worst pair; "
                f"{(holds < _WANTED).sum()} pairs are below {_WANTED:.0%}. Of the differences between equal "
                f"candidates {np.mean([row.clear for row in equal]):.1%} are clear in the mean, and "
                f"{max(row.clear for row in judged):.1%} in the worst pair. {len(seldom)} further pairs have "
                f"an interval in fewer than {_OFTEN:.0%} of the logs: {few[0]:.0f} intervals, of which "
                f"{few[1]:.0f} hold. The worst pairs:"
            ),
            markdown_table(_HEADER, [_shown(row) for row in judged[:_WORST]]),
            _filled(
                "By reward: the worst and the mean coverage, the mean share of logs with an interval, the "
                "largest share of clear differences where there is none, and the width over that of the "
                "normal interval (median over the pairs)."
            ),
            _groups("reward", REWARDS, judged),
            "By effective sample size:",
            _groups("size", SIZES, judged),
            f"Rewards in 50 %, effective size {SIZES[-1]:,}, widest first:",
            markdown_table(
                _HEADER, [_shown(row) for row in sorted(large, key=lambda row: -row.width)[:_WORST]]
            ),
        ]
    )


def _groups(name: str, values: tuple[Any, ...], judged: list[Row]) -> str:
    rows = [_of_group([row for row in judged if getattr(row.cell, name) == one], one) for one in values]
    return markdown_table([name, "worst", "mean", "given", "most clear", "width"], rows)


def _filled(text: str) -> str:
    return textwrap.fill(text, 110, break_on_hyphens=False)


_OFTEN, _WANTED, _HALF, _WORST = 0.01, 0.93, 0.5, 15
_MAIN = ("ips", "snips", "dr", "a - b, dr", "a - logged, dr")
_HEADER = ["reward", "arms", "log", "candidate", "decisions", "what", "given", "holds", "clear", "width"]


def of_normal(rows: list[Row]) -> str:
    """A sentence and a table: how normal intervals did."""
    rows = [row for row in rows if row.normal_given >= _OFTEN]
    holds = np.array([row.normal_holds for row in rows])
    below, half = (holds < _WANTED).sum(), (holds < _HALF).sum()
    worst = sorted(rows, key=lambda row: row.normal_holds)[:_WORST]
    table = markdown_table(
        [*_HEADER[:6], "given", "holds"],
        [[*_shown(row)[:6], f"{row.normal_given:.0%}", f"{row.normal_holds:.1%}"] for row in worst],
    )
    said = f"{below} of {len(rows):,} pairs are below {_WANTED:.0%}, {half} of them below {_HALF:.0%}"
    return f"{said}. The worst:\n\n{table}"


def _span(counts: list[int]) -> str:
    """The least and the largest count."""
    ends = sorted({min(counts), max(counts)})
    return " to ".join(f"{one:,}" for one in ends)


def _shown(row: Row) -> list[str]:
    cell = row.cell
    reward = cell.reward if cell.reward == LOGNORMAL else f"{float(cell.reward):.1%}"
    shares = [
        f"{row.given:.0%}",
        f"{row.holds:.1%}",
        f"{row.clear:.1%}" if row.what.startswith("a - ") and row.clear else "",
    ]
    width = "" if np.isnan(row.width) else f"{row.width:.2f}"
    return [
        str(reward),
        str(cell.arms),
        cell.logged,
        cell.kind,
        f"{row.decisions:,}",
        row.what,
        *shares,
        width,
    ]


def _of_group(some: list[Row], name: float | str) -> list[str]:
    if not some:
        return [str(name), "", "", "", "", ""]
    holds = [row.holds for row in some]
    said = name if isinstance(name, str) else f"{name:,}" if name > 1 else f"{name:.1%}"
    given, clear = np.mean([row.given for row in some]), max(row.clear for row in some)
    width = np.nanmedian([row.width for row in some])
    return [
        said,
        f"{min(holds):.1%}",
        f"{np.mean(holds):.1%}",
        f"{given:.0%}",
        f"{clear:.1%}",
        f"{width:.2f}",
    ]


def figure(rows: list[Row], path: Path) -> None:
    """Coverage by effective size, a dot for each pair, a panel for each kind of reward."""
    with mpl.rc_context(STYLE):
        drawn, axes = panels(len(REWARDS), width=2.4)
        for axis, reward in zip(axes, REWARDS, strict=True):
            for row in rows:
                if row.cell.reward == reward and row.given >= _OFTEN:
                    place = SIZES.index(row.cell.size) + 0.3 * np.random.default_rng(len(axis.lines)).uniform(
                        -1, 1
                    )
                    axis.plot([place], [100 * row.holds], ".", color="0.3", ms=3, alpha=0.5)
            axis.axhline(95.0, color="0.5", lw=0.8, ls=":")
            axis.set_xticks(range(len(SIZES)), [f"{size:,}" for size in SIZES])
            axis.set_ylim(88.0, 100.5)
            axis.set_title(reward if reward == LOGNORMAL else f"rewards in {float(reward):.1%}")
        axes[0].set_ylabel("intervals that hold the truth, %")
        footnote(drawn, "by effective sample size; a dot: one quantity in one cell of 1,000 logs")
        save(drawn, path)


def any_time(logs: int) -> str:
    """At every step of a long log: the value, and, at its end, the difference; normal intervals beside it."""
    held = normal_held = ends_held = normal_ends = 0
    widths = np.zeros(2)
    steps, of_uniform = (
        np.arange(1, LONG + 1),
        mean_rewards(contexts(400_000, np.random.default_rng(98))).mean(),
    )
    for seed in range(logs):
        w = world(LONG, 10_000 + seed)
        weights = w.candidate[np.arange(LONG), w.log.chosen] / w.log.probability
        low, high = AnytimeValue().path(weights, w.log.reward)
        held += bool(((low <= TRUTH) & (high >= TRUTH)).all())
        x = weights * w.log.reward
        means = np.cumsum(x) / steps
        errors = np.sqrt(np.maximum(np.cumsum(x**2) / steps - means**2, 1e-12) / steps)
        is_in = np.abs(means - TRUTH) <= 1.959963984540054 * errors
        normal_held += bool(is_in[99:].all())
        normal_ends += bool(is_in[-1])
        widths += np.array([high[-1] - low[-1], 2 * 1.959963984540054 * errors[-1]]) / logs
        zeros = np.zeros(LONG)
        candidate = Terms(w.log.reward, weights, zeros, zeros, 0.0)
        uniform = Terms(w.log.reward, 1.0 / ARMS / w.log.probability, zeros, zeros, 0.0)
        judge = Anytime({"c": candidate, "u": uniform}, 0.95, Assumed((0.0, 1.0), None))
        ends = judge.difference("c", "u", "ips")
        ends_held += ends.low <= TRUTH - of_uniform <= ends.high
    rows = [
        ["any-time, ips, at every step", f"{held / logs:.1%}", f"{widths[0]:.4f}"],
        ["any-time, difference, ips, at the end", f"{ends_held / logs:.1%}", ""],
        ["normal, ips, at every step from 100 on", f"{normal_held / logs:.1%}", f"{widths[1]:.4f}"],
        ["normal, ips, at the end alone", f"{normal_ends / logs:.1%}", f"{widths[1]:.4f}"],
    ]
    return markdown_table(["interval", "holds the truth", "mean width at the end"], rows)


def main() -> None:
    """Play the grid, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=1000, help="logs of each cell")
    parser.add_argument(
        "--out", type=Path, default=Path("results/coverage"), help="folder for finished cells"
    )
    parser.add_argument("--docs", type=Path, help="write the figure and coverage.json into this folder")
    parser.add_argument("--any-time", action="store_true", help="the table of any-time intervals instead")
    given = parser.parse_args()
    if given.any_time:
        print(any_time(given.logs))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    rows = rows_of([played(cell, given.logs, given.out) for cell in sorted(cells(), key=length)])
    print("\n\n".join([measured(rows), of_normal(rows)]))
    if given.docs:
        (given.docs / "coverage.json").write_text(dump(rows))
        figure(rows, given.docs / "images/evaluation/coverage")


if __name__ == "__main__":
    main()
