"""Whether the log of the service tells what another policy would have earned.

A bandit that draws by inverse gaps decides 20,000 times over HTTP and learns from rewards as they come. From
the export alone the value of a uniform choice is estimated by inverse propensities, and compared with the
truth, which is known here: rewards are 0 or 1 with a chance linear in the arm.
"""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyarrow import parquet

from benchmarks.service_process import Server
from sketchbandit_service.client import Client, Decision
from sketchbandit_service.exporting import export

_DIM, _ARMS, _TOGETHER = 10, 8, 50


class Outcome(NamedTuple):
    """What came of it."""

    decisions: int
    seconds: float
    earned: float
    """The mean reward of the bandit itself."""
    truth: float
    """The mean reward of a uniform choice among the arms that were offered."""
    estimate: float
    half: float
    """Half of the 95 % interval around the estimate."""
    from_stats: float
    """The estimate that the dashboard shows."""


def measure(decisions: int = 20_000, *, seed: int = 0) -> Outcome:
    """Play, export, estimate."""
    random = np.random.default_rng(seed)
    theta = random.random(_DIM)
    theta /= 2.0 * theta.sum()  # so that no chance is more than 1
    truth: list[float] = []
    started = time.perf_counter()
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        with Client(server.url) as client:
            rule = {"rule": "inverse-gap", "gamma": 50.0}
            bandit = client.create("b", _DIM, explore=rule, reward_timeout=None)  # rewards count as they come
            for _ in range(decisions // _TOGETHER):
                sets = random.random((_TOGETHER, _ARMS, _DIM)) * 2.0
                chances = sets @ theta
                truth += chances.mean(axis=1).tolist()
                decided = bandit.select_many(list(sets))
                pairs = []
                for decision, chance in zip(decided, chances, strict=True):
                    assert isinstance(decision, Decision), decision
                    pairs.append((decision, float(random.random() < chance[decision.index])))
                assert all(outcome is True for outcome in bandit.update_many(pairs))
            shown = bandit.stats()["comparison"]["uniform"]
        seconds = time.perf_counter() - started
        server.stop()
        out = Path(folder) / "log.parquet"
        export(server.state, out)
        log = parquet.read_table(out, columns=["reward", "arm_count", "propensity"])
    reward, count, propensity = (column.to_numpy() for column in log.columns)
    weighted = reward / (count * propensity)
    half = 1.96 * float(weighted.std(ddof=1)) / len(weighted) ** 0.5
    value = float(weighted.mean())
    return Outcome(len(weighted), seconds, float(reward.mean()), float(np.mean(truth)), value, half, shown)


def main() -> None:
    """Print the estimate beside the truth; fail if the interval does not hold it."""
    found = measure()
    print(
        f"{found.decisions:,} decisions by inverse gaps over HTTP in {found.seconds:.0f} s: the bandit "
        f"earned {found.earned:.4f} a decision. A uniform choice would have earned {found.truth:.4f}; "
        f"the log says {found.estimate:.4f} ± {found.half:.4f} (95 %), the dashboard {found.from_stats:.4f}"
    )
    assert found.decisions == 20_000, "decisions are missing from the log"
    assert abs(found.estimate - found.truth) <= found.half, "the truth is outside the interval"


if __name__ == "__main__":
    main()
