"""The baseline through every door of the library: numbers shown include it, and choices do not see it."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.dask import fit_logged
from sketchbandit.explore import Candidates
from tests.libraries import LIBRARIES, array_in, numbers_of
from tests.policies import Matrix

DIM = 5
pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")


def learned(added: float = 1e3, **settings: Any) -> sb.LinUCB:
    """A policy that has learned from rewards around this number."""
    policy, random = sb.oful(DIM, baseline=True, **settings), np.random.default_rng(0)
    rows = random.standard_normal((40, DIM))
    rewards = rows[:, 0] + 0.1 * random.standard_normal(40)
    if settings.get("rewards") is not None:
        rewards, added = (rewards > 1.0).astype(float), 0.0
    for row, reward in zip(rows, rewards, strict=True):
        policy.update(row, float(reward + added))
    return policy


def arms_of(seed: int = 1, count: int = 30) -> Matrix:
    """Some arms."""
    return np.random.default_rng(seed).standard_normal((count, DIM))


FORMS: dict[str, Any] = {
    "dense": lambda arms: arms,
    "rows": lambda arms: arms.tolist(),
    "sparse": sparse.csr_array,
    "catalogue": sb.Catalogue,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rewards", [None, sb.Logistic()])
def test_all_numbers_shown_are_those_of_the_model(rewards: Any, form: str) -> None:
    """Mean and score of ``choose``, ``slate``, ``rank``, ``mean`` and ``ucb``, of arms in any form."""
    policy = learned(rewards=rewards, explore=sb.UCB(0.3))
    arms = arms_of()
    margins = policy.baseline + arms @ policy.theta
    means = margins if rewards is None else 1.0 / (1.0 + np.exp(-margins))
    scores = margins + 0.3 * policy.width(arms)
    given = FORMS[form](arms)
    np.testing.assert_allclose(policy.mean(given), means)
    np.testing.assert_allclose(policy.margin(given), margins)
    np.testing.assert_allclose(policy.ucb(given), scores)
    order = np.argsort(-scores, kind="stable")[:3]
    choices = [policy.choose(given), *policy.choose_many([given]), *policy.slate(given, 3)]
    assert [choice.index for choice in choices] == [order[0], order[0], *order]
    assert policy.top(given, 3).tolist() == order.tolist()
    rankings = [policy.rank(given, k, probabilities=told) for k in (1, 3) for told in (False, True)]
    for ranking in rankings:
        assert ranking.index.tolist() == order[: len(ranking.index)].tolist()
    numbers: list[Any] = [*choices, *rankings]
    for shown in numbers:
        np.testing.assert_allclose(shown.mean, means[shown.index])
        np.testing.assert_allclose(shown.score, scores[shown.index])


@pytest.mark.parametrize("rewards", [None, sb.Logistic()])
def test_all_numbers_shown_are_those_of_the_models_of_actions(rewards: Any) -> None:
    """The same for a ``PerAction``, whose models share the baseline."""
    models = sb.PerAction(["a", "b", "c"], lambda: sb.oful(DIM, explore=sb.UCB(0.3), rewards=rewards))
    for t, row in enumerate(arms_of(0, 40)):
        reward = float(row[0] > 0) if rewards is not None else 1e3 + float(row[0])
        models.update(row, "abc"[t % 3], reward)
    x = arms_of()[0]
    margins = np.array([models[name].baseline + x @ models[name].theta for name in models])
    assert len({models[name].baseline for name in models}) == 1
    means = margins if rewards is None else 1.0 / (1.0 + np.exp(-margins))
    scores = margins + 0.3 * models.width(x)
    np.testing.assert_allclose(models.mean(x), means)
    np.testing.assert_allclose(models.ucb(x), scores)
    order = np.argsort(-scores)
    for shown in (models.rank(x), models.rank(x, 3), models.rank(x, probabilities=False)):
        np.testing.assert_allclose(shown.mean, means[shown.index])
        np.testing.assert_allclose(shown.score, scores[shown.index])
    for choice, index in zip((models.choose(x), *models.slate(x, 3)), (order[0], *order), strict=True):
        assert choice.action == "abc"[index]
        assert choice.mean == pytest.approx(means[index])
        assert choice.score == pytest.approx(scores[index])


class Seen(sb.Greedy):
    """A rule that keeps the margins it was shown."""

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The best mean."""
        del count
        self.shown = [*getattr(self, "shown", []), candidates.margins.copy()]
        return super().choose(candidates, 1, random)


def test_a_rule_sees_margins_with_the_baseline_at_every_place() -> None:
    """Also among the arms that are left for the second place."""
    policy, arms = learned(explore=Seen()), arms_of(count=4)
    policy.explore.draws = True  # every place is drawn separately
    first, *_ = policy.top(arms, 2)
    whole, left = policy.explore.shown
    np.testing.assert_allclose(whole, policy.mean(arms))
    np.testing.assert_allclose(left, np.delete(policy.mean(arms), first))


@pytest.mark.parametrize("library", [library for library in LIBRARIES if library != "jax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arms_of_another_library_do_not_lose_digits(library: str, dtype: type) -> None:
    """A million added to all rewards: the same choices from a catalogue there, in either precision."""
    arms: Matrix = arms_of(count=3_000).astype(dtype)
    catalogue = sb.Catalogue(array_in(library, arms))
    found = []
    for added in (0.0, 1e6):
        policy = learned(added, explore=sb.UCB("auto"))
        thompson = learned(added, explore=sb.Thompson("auto", seed=2))
        users = np.random.default_rng(3).standard_normal((6, DIM))
        found.append(
            [
                *policy.top(catalogue, 20),
                *policy.select_many([catalogue.times(user) for user in users]),
                *(thompson.select(catalogue) for _ in range(5)),
            ]
        )
        shown = policy.choose(catalogue)
        means, rounding = policy.baseline + arms @ policy.theta, 1e-9 if dtype == np.float64 else 1e-6
        np.testing.assert_allclose(shown.mean, means[shown.index], rtol=rounding, atol=1e-5)
        np.testing.assert_allclose(numbers_of(policy.mean(array_in(library, arms))), means, rounding, 1e-5)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda dim: sb.oful(dim, baseline=True),
        lambda dim: sb.adaptive(dim, scaling=None, intercept=False, baseline=True, beta="auto"),
        lambda dim: sb.soful(dim, size=2, baseline=True),
    ],
)
def test_partitions_of_dask_agree_on_the_mean(make: Any) -> None:
    """Each partition has an origin of its own; their merge has the mean of all, and the choices of r + c."""
    random, sets, chosen = np.random.default_rng(0), arms_of(5, 600).reshape(100, 6, DIM), []
    rows = random.standard_normal((120, DIM))
    rewards = rows[:, 0] + np.repeat([0.0, 3.0, -1.0], 40)
    for added in (0.0, 1e6):
        parts = da.from_array(rows, chunks=(40, DIM)), None, da.from_array(rewards + added, chunks=40)
        policy = fit_logged(*parts, make)
        assert policy.baseline - added == pytest.approx(rewards.mean(), abs=1e-6)
        chosen.append(policy.select_many(list(sets)).tolist())
        if policy.sketch.error_bound == 0.0:
            whole = make(DIM)
            whole.update(rows, rewards)
            np.testing.assert_allclose(policy.theta, whole.theta, atol=1e-8)
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    ("rows", "rewards"),
    [([[1.0] * DIM], [1.7e308]), ([[1.0] * DIM] * 2, [-1e300, 1e300]), ([[1e150] * DIM], [1e200])],
)
def test_a_first_reward_of_absurd_size_is_refused(rows: Any, rewards: list[float]) -> None:
    """It would be what all others are measured from, so that none of them could be learned any more."""
    policy = sb.oful(DIM, baseline=True)
    with pytest.raises(sb.InputError, match="too much for a ridge"):
        policy.update(rows, rewards)
    assert policy.rounds == 0
    policy.update([1.0] * DIM, 1.0)
    assert policy.baseline == 1.0
