"""A million logged decisions, 10 arms of 64 features: IPS, SNIPS and DR of three candidates.

    python -m benchmarks.evaluation_speed [DECISIONS]

First the answers are checked, on the first 20,000 decisions, against the textbook's formulas written out in
numpy with all arms in memory. Then the whole log, 5 GB of arms in a file, is evaluated in a process of its
own: seconds and the most memory.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import sketchbandit as sb
from sketchbandit.evaluation import Log, evaluate

DIM, ARMS, CHECKED, TOGETHER = 64, 10, 20_000, 10_000
METHODS = ("ips", "snips", "dr")
LIMITS = {"cpu": 15.0, "MB": 1000.0}  # of CPU: other work on the machine does not count


def write(folder: Path, count: int) -> None:
    """The log: arms in an npy file, the rest in an npz file. Softmax choices, linear rewards with noise."""
    random = np.random.default_rng(0)
    theta = random.standard_normal(DIM) / np.sqrt(DIM)
    columns: dict[str, list[Any]] = {"chosen": [], "reward": [], "probability": []}
    shape = (count, ARMS, DIM)
    arms = np.lib.format.open_memmap(folder / "arms.npy", mode="w+", dtype=np.float64, shape=shape)
    for start in range(0, count, TOGETHER):
        some = random.standard_normal((min(TOGETHER, count - start), ARMS, DIM)) / np.sqrt(DIM)
        arms[start : start + len(some)] = some
        means = some @ theta
        powers = np.exp(4.0 * means)
        chances = powers / powers.sum(axis=1, keepdims=True)
        picked = (chances.cumsum(axis=1) < random.random((len(some), 1))).sum(axis=1).clip(max=ARMS - 1)
        rows = np.arange(len(some))
        columns["chosen"].append(picked)
        columns["probability"].append(chances[rows, picked])
        columns["reward"].append(means[rows, picked] + 0.1 * random.standard_normal(len(some)))
    arms.flush()
    whole: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    np.savez(folder / "columns.npz", **whole)


def read(folder: Path) -> Log:
    """The log, its arms left where they are."""
    with np.load(folder / "columns.npz") as found:
        return Log(arms=folder / "arms.npy", **{name: found[name] for name in found.files})


def candidates() -> dict[str, sb.LinUCB]:
    """Three that have learned elsewhere: from other arms of the same kind."""
    random = np.random.default_rng(1)
    rows, theta = random.standard_normal((3000, DIM)) / np.sqrt(DIM), np.ones(DIM) / np.sqrt(DIM)
    rewards = rows @ theta
    made: dict[str, sb.LinUCB] = {
        "oful": sb.oful(DIM, explore=sb.UCB(0.1, floor=0.1, seed=0)),
        "adaptive, greedy": sb.adaptive(
            DIM, explore=sb.EpsilonGreedy(0.1, seed=0), scaling=None, intercept=False
        ),
        "inverse gaps": sb.cbscfd(DIM, size=100, explore=sb.InverseGap(50.0, seed=0)),
    }
    for policy in made.values():
        policy.update(rows, rewards)
    return made


def textbook(log: Log, arms: Any, chances: Any) -> dict[str, float]:
    """IPS, SNIPS and DR as OBP defines them, with our default model: ridge 1 of rewards less their mean."""
    rows, n = np.arange(len(log)), len(log)
    wide = np.concatenate([arms, np.ones((n, ARMS, 1))], axis=2)
    predicted = np.empty((n, ARMS))
    for fold in range(3):
        mine = np.zeros(n, dtype=bool)
        mine[n * fold // 3 : n * (fold + 1) // 3] = True
        x, rewards = wide[rows, log.chosen][~mine], log.reward[~mine]
        theta = np.linalg.solve(x.T @ x + np.eye(DIM + 1), x.T @ (rewards - rewards.mean()))
        predicted[mine] = rewards.mean() + wide[mine] @ theta
    iw = chances[rows, log.chosen] / log.probability
    baseline = np.average(predicted, weights=chances, axis=1)
    return {
        "ips": np.mean(iw * log.reward),
        "snips": np.sum(iw * log.reward) / np.sum(iw),
        "dr": np.mean(baseline + iw * (log.reward - predicted[rows, log.chosen])),
    }


def check(folder: Path) -> float:
    """The largest difference to the textbook, over candidates and methods."""
    part = read(folder).part(0, CHECKED)
    arms = np.load(folder / "arms.npy", mmap_mode="r")[:CHECKED]
    worst = 0.0
    for name, policy in candidates().items():
        chances = np.array([policy.probabilities(some) for some in arms])
        expected, found = textbook(part, arms, chances), evaluate(part, {name: policy}, METHODS)
        worst = max(worst, *(abs(found.of(name, key).value - value) for key, value in expected.items()))
    return worst


def measured(folder: Path) -> None:
    """Evaluate everything, in a process of its own: seconds, and the most memory it has had."""
    log, policies = read(folder), candidates()
    started, worked = time.perf_counter(), time.process_time()
    found = evaluate(log, policies, METHODS)
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1024  # getrusage has the parent's, from before exec, in it
    print(json.dumps({"seconds": seconds, "cpu": cpu, "MB": peak, "rows": [list(row) for row in found]}))


def main() -> None:
    """Write, check, measure."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, count)
        worst = check(folder)
        print(f"largest difference to the textbook on {CHECKED:,} decisions: {worst:.1e}")
        assert worst < 1e-9
        command = [sys.executable, "-m", "benchmarks.evaluation_speed", "--measure", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  (ourselves)
        found = json.loads(done.stdout)
        for row in found["rows"]:
            print("{:18} {:6} {:8.5f}  {:8.5f} to {:8.5f}  effective size {:,.0f}".format(*row))
        spent = f"{found['seconds']:.1f} s ({found['cpu']:.1f} s of CPU)"
        print(f"{count:,} decisions: {spent}, at most {found['MB']:.0f} MB")
        assert count < 1_000_000 or all(found[key] < most for key, most in LIMITS.items()), LIMITS


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measured(Path(sys.argv[2]))
    else:
        main()
