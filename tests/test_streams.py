"""Rounds that are drawn once for several runs."""

from itertools import pairwise

import numpy as np
import pytest

from sketchbandit.simulation import environments
from sketchbandit.simulation.environments import CachedRounds
from sketchbandit.simulation.pool import in_order
from sketchbandit.simulation.runs import Run
from sketchbandit.simulation.specs import parse

ARMS = "gaussian:dim=6,arms=4"


@pytest.mark.parametrize(
    "text", [ARMS, f"{ARMS},clicks=0.1", f"{ARMS},fixed=1", "classification:data=digits,switch=4"]
)
def test_rounds_that_are_kept_are_those_of_the_environment(text: str) -> None:
    """Also after somebody wrote into the arms, and when more are asked for than before."""
    kept = CachedRounds(environments.build(parse(text), 3))
    for count in (5, 9, 9, 2):
        plain = environments.build(parse(text), 3).rounds(count)
        for here, there in zip(kept.rounds(count), plain, strict=True):
            assert type(here) is type(there)
            np.testing.assert_array_equal(here.arms, there.arms)
            np.testing.assert_array_equal(here.means, there.means)
            assert here.noise == there.noise
            here.arms[:] = np.nan


@pytest.mark.parametrize(("count", "is_kept"), [(5, True), (6, False)])
def test_a_stream_too_long_to_keep_is_drawn_anew(
    monkeypatch: pytest.MonkeyPatch, *, count: int, is_kept: bool
) -> None:
    """The rounds are the same."""
    monkeypatch.setattr(environments, "MOST_BYTES", 5 * 4 * 6 * 8)
    plain = environments.build(parse(ARMS), 0)
    kept = CachedRounds(plain)
    found = [drawn.arms for drawn in kept.rounds(count)]
    np.testing.assert_array_equal(found, [drawn.arms for drawn in plain.rounds(count)])
    assert bool(kept._kept) is is_kept


def test_runs_of_one_stream_follow_one_another() -> None:
    """And the streams are mixed."""
    runs = [
        Run("play", parse(f"gaussian:dim={dim}"), parse(f"soful:size={size}"), 5, seed=seed)
        for size in range(2, 8)
        for seed in range(4)
        for dim in (6, 7)
    ]
    ordered = in_order(runs)
    assert sorted(run.key for run in ordered) == sorted(run.key for run in runs)
    found = [(run.environment, run.seed) for run in ordered]
    assert sum(a != b for a, b in pairwise(found)) == len(set(found)) - 1
    assert found != sorted(found)
