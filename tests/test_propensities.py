"""Logged probabilities are the frequencies of the choices, also where arms are equal but for rounding."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import sketchbandit as sb
from sketchbandit.arms import SparseArms, first_copies, read_arms
from tests.propensities import CASES_OF, RULES, grid, judge

_DRAWS, _SAMPLES = 300, 2_000
_LEAST = 1e-5  # of the p-values of 520 cases


@pytest.mark.parametrize("door", CASES_OF)
@pytest.mark.parametrize("rule", RULES)
def test_choices_are_as_frequent_as_logged(rule: str, door: str) -> None:
    """Few draws from every case; ``python -m benchmarks.propensities`` takes 10^5 each."""
    cells = [cell for cell in grid() if (cell.rule, cell.door) == (rule, door)]
    assert cells
    verdicts = {str(cell): judge(cell, _DRAWS, _SAMPLES) for cell in cells}
    assert {name: v for name, v in verdicts.items() if v.p_value < _LEAST or v.excess > 0.02} == {}


def counts(seed: int = 0) -> Any:
    """Three kinds of words, each in three texts of different lengths."""
    base = np.random.default_rng(seed).poisson(0.7, (3, 30)) + np.eye(3, 30)
    return np.concatenate([base, 3.0 * base, 7.0 * base])


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("form", [np.asarray, csr_array, sb.Catalogue])
def test_the_first_of_multiples_is_played_and_logged(form: Any) -> None:
    """Arms that are equal once they have length one: their last digits decide nothing."""
    policy = sb.adaptive(30, scaling="rows", explore=sb.Thompson(0.5, samples=500, seed=1))
    for row in counts(1):
        policy.update(row, float(row[0] > 0.0))
    arms = form(counts())
    chances = policy.probabilities(arms)
    assert (chances[:3] > 0.01).all()
    assert not chances[3:].any()
    choices = [policy.choose(arms) for _ in range(150)]
    assert {choice.index for choice in choices} == {0, 1, 2}
    assert {choice.index for choice in choices if choice.probability < 0.01} == set()
    assert set(policy.select_many([arms] * 100).tolist()) == {0, 1, 2}
    policy.explore = sb.Thompson(0.5, per="batch", seed=1)
    assert {int(policy.select_many([arms] * 2)[0]) for _ in range(100)} == {0, 1, 2}


def test_first_copies_dense_and_sparse() -> None:
    """Rounding of every feature counts, a feature of 1.7e9 hides no difference, signs matter."""
    rows = np.array([[1.7e9, 0.3, 0.0], [1.7e9, 0.4, 0.0], [1.7e9, 0.3, 0.0], [-1.7e9, 0.3, 0.0], [0.0] * 3])
    rows[2] *= 1.0 + 4e-16
    rows = np.concatenate([rows, rows[[4, 1]]])
    dense, sparse = (
        first_copies(read_arms(form(rows), 3, np.dtype(np.float64))) for form in (np.asarray, csr_array)
    )
    assert dense.tolist() == sparse.tolist() == [0, 1, 0, 3, 4, 4, 1]
    explicit = csr_array((np.array([1.0, 0.0, 1.0]), [0, 2, 0], [0, 2, 3]), shape=(2, 3))
    assert first_copies(SparseArms(explicit)).tolist() == [0, 0]


def test_inverse_gaps_of_duplicates_in_a_catalogue() -> None:
    """The best arm gets the rest of the probability; which of its copies that is, choice and log agree."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        dim, count = int(random.integers(3, 60)), int(random.integers(5, 60))
        some = random.standard_normal((max(2, count // 4), dim))
        arms = sb.Catalogue(some[random.integers(0, len(some), count)])
        policy = sb.oful(dim, explore=sb.InverseGap(1000.0, seed=seed))
        for _ in range(30):
            policy.update(random.standard_normal(dim), random.random())
        chances = policy.probabilities(arms)
        if chances.max() > 0.7:
            choices = [policy.choose(arms) for _ in range(15)]
            assert Counter(c.index for c in choices).most_common(1)[0][0] == chances.argmax(), seed
            assert {c.probability == chances[c.index] for c in choices} == {True}


@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_weights_of_sampled_probabilities_are_not_inflated(floor: float) -> None:
    """E[1{a}/p] <= 1 for an arm that rarely wins, with few samples among many arms: it was over ten."""
    count, samples = 50, 100
    policy = sb.oful(count, explore=sb.Thompson(0.5, seed=0))
    arms = np.eye(count)
    policy.update(arms, [3.0, 1.2] + [-9.0] * 48)
    logged = []
    for step in range(400):  # another scale makes other samples, and nearly the same probabilities
        policy.explore = sb.Thompson(0.5 + 1e-5 * step, samples=samples, floor=floor)
        logged.append(policy.scores(arms).propensity(1))
    policy.explore = sb.Thompson(0.502)
    chance = floor / count + (1.0 - floor) * policy.probabilities(arms[:2])[1]
    assert 2e-3 < chance < 4e-2
    assert float(np.mean(chance / np.array(logged))) <= 1.05
    assert policy.scores(arms).probabilities().sum() == pytest.approx(1.0)


def test_near_twins_among_others() -> None:
    """Arms that differ by 1e-9 of their length: their order has the probability that it has by themselves."""
    random = np.random.default_rng(4)
    policy = sb.oful(5, explore=sb.Thompson(0.5, samples=20_000, seed=0))
    policy.update(random.standard_normal((20, 5)), random.standard_normal(20))
    arms = np.vstack([policy.theta, policy.theta, -policy.theta, random.standard_normal(5) * 1e-3])
    arms[:2] *= 50.0 / np.linalg.norm(policy.theta)
    arms[1] += 5e-8 * random.standard_normal(5)
    alone, among = policy.probabilities(arms[:2]), policy.probabilities(arms)
    assert 0.02 < alone[0] < 0.98
    assert among[:2] == pytest.approx(alone, abs=0.02)
    chosen = [policy.select(arms) for _ in range(2_000)]
    assert chosen.count(0) / 2_000 == pytest.approx(alone[0], abs=0.05)
