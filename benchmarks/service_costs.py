"""Whether the service knows what work takes: ``python -m benchmarks.service_costs``.

Decisions and rewards of several kinds of bandits are timed and set beside what is estimated before they are
begun. Estimates are to be from above; the median of a kind may not take three times as long.
"""

import time
import warnings
from statistics import median
from typing import Any

import numpy as np

from sketchbandit.errors import SketchTooSmallWarning
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.costs import decide_cost, learn_cost
from sketchbandit_service.settings import Limits

_MOST = 3.0  # times the estimate
_ROUNDS = 200
_ESTIMATE_SECONDS = 1e-4  # an estimate is made before every decision
KINDS: dict[str, dict[str, Any]] = {
    "default": {"dim": 64},
    "ucb": {"dim": 300, "policy": "oful", "explore": "ucb"},
    "thompson": {"dim": 300, "policy": "oful", "explore": "thompson"},
    "rows": {"dim": 1000, "policy": "soful", "parameters": {"size": 20}},
    "projected": {"dim": 500, "policy": "cbrap", "parameters": {"size": 40}},
    "actions": {"dim": 30, "actions": ["a", "b", "c"]},
}


def measure(given: dict[str, Any], arms: int = 10) -> tuple[float, float, float, float]:
    """Seconds of a decision and of a reward, each estimated and then measured."""
    config = BanditConfig(**given).checked(Limits())
    policy, random = config.build(), np.random.default_rng(0)
    count = arms if config.actions is None else len(config.actions)
    decided, learned = [], []
    for _ in range(_ROUNDS):
        rows = random.standard_normal((count, config.dim))
        asked = rows if config.actions is None else rows[0]
        started = time.perf_counter()
        index = int(policy.rank(asked, probabilities=False).index[0])
        between = time.perf_counter()
        policy.update(*((rows[index],) if config.actions is None else (asked, policy.actions[index])), 0.5)
        decided.append(between - started)
        learned.append(time.perf_counter() - between)
    return decide_cost(config.shape, count), median(decided), learn_cost(config.shape), median(learned)


def main() -> None:
    """Print a table; fail where an estimate is far below the truth, or takes long itself."""
    print(f"{'microseconds':14} {'decision':>9} {'measured':>9}  {'reward':>9} {'measured':>9}")
    worst = 0.0
    for name, given in KINDS.items():
        decide, decided, learn, learned = measure(given)
        print(
            f"{name:14} {1e6 * decide:9.0f} {1e6 * decided:9.0f}  {1e6 * learn:9.0f} {1e6 * learned:9.0f}",
            flush=True,
        )
        worst = max(worst, decided / decide, learned / learn)
    shape = BanditConfig(dim=64).checked(Limits()).shape
    started = time.perf_counter()
    for _ in range(1000):
        decide_cost(shape, 10)
    each = (time.perf_counter() - started) / 1000
    print(f"at most {worst:.2f} times the estimate; an estimate takes {1e6 * each:.1f} microseconds")
    assert worst < _MOST, "an estimate is far below the truth"
    assert each < _ESTIMATE_SECONDS, "estimates take long"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SketchTooSmallWarning)
        main()
