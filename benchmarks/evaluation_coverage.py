"""How often intervals of evaluation hold the truth: 1,000 simulated logs whose truth is known.

    python -m benchmarks.evaluation_coverage [LOGS]

prints the tables of docs/evaluation.md: 95 % intervals of values and of a difference on logs of 1,000
decisions, and any-time intervals at every one of 10,000 steps. A few minutes.
"""

import sys
import time

import numpy as np
from tests.logs import ARMS, TRUTH, contexts, mean_rewards, world

from sketchbandit.evaluation import METHODS, AnytimeValue, evaluate
from sketchbandit.evaluation.anytime import Assumed
from sketchbandit.evaluation.anytime import difference as anytime_difference
from sketchbandit.evaluation.terms import Terms
from sketchbandit.experiments.reporting import markdown_table

LENGTH, LONG = 1000, 10_000
UNIFORM = float(mean_rewards(contexts(400_000, np.random.default_rng(98))).mean())


def fixed_length(logs: int) -> str:
    """Values by all methods, and the difference to uniform choices, normal and by bootstrap."""
    rows = []
    for interval in ("normal", "bootstrap"):
        hits: dict[str, int] = dict.fromkeys([*METHODS, "difference, dr"], 0)
        widths: dict[str, list[float]] = {name: [] for name in hits}
        for seed in range(logs):
            w = world(LENGTH, seed)
            policies = {"c": w.candidate, "u": "uniform"}
            found = evaluate(w.log, policies, tuple(METHODS), interval=interval, draws=500)
            spans = {method: found.of("c", method)[3:5] for method in METHODS}
            spans["difference, dr"] = found.difference("c", "u", "dr")[4:6]
            for name, (low, high) in spans.items():
                truth = TRUTH - UNIFORM if name.startswith("difference") else TRUTH
                hits[name] += low <= truth <= high
                widths[name].append(high - low)  # nan where nothing was said: then it does not hold the truth
        rows += [
            [interval, name, f"{hits[name] / logs:.1%}", f"{np.nanmean(widths[name]):.4f}"] for name in hits
        ]
    return markdown_table(["interval", "method", "holds the truth", "mean width"], rows)


def any_time(logs: int) -> str:
    """At every step of a long log: the value, and, at its end, the difference; normal intervals beside it."""
    held = normal_held = ends_held = normal_ends = 0
    widths = np.zeros(2)
    steps = np.arange(1, LONG + 1)
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
        ends = anytime_difference(candidate, uniform, "ips", 0.95, Assumed((0.0, 1.0), None))
        ends_held += ends.low <= TRUTH - UNIFORM <= ends.high
    rows = [
        ["any-time, ips, at every step", f"{held / logs:.1%}", f"{widths[0]:.4f}"],
        ["any-time, difference, ips, at the end", f"{ends_held / logs:.1%}", ""],
        ["normal, ips, at every step from 100 on", f"{normal_held / logs:.1%}", f"{widths[1]:.4f}"],
        ["normal, ips, at the end alone", f"{normal_ends / logs:.1%}", f"{widths[1]:.4f}"],
    ]
    return markdown_table(["interval", "holds the truth", "mean width at the end"], rows)


def main() -> None:
    """Both tables."""
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    started = time.perf_counter()
    print(f"{logs} logs of {LENGTH} decisions, truth {TRUTH:.4f}\n\n{fixed_length(logs)}", flush=True)
    print(f"{logs} logs of {LONG} decisions\n\n{any_time(logs)}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
