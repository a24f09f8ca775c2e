"""Environments and the loop: brute force beside every reward, regret and total."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.simulation.loop import LateRewards

FEATURES = np.random.default_rng(0).standard_normal((40, 7)) * 3.0
LABELS = np.repeat(np.arange(4), 10)


def classification(seed: int = 0, **settings: Any) -> sb.Environment:
    """A small data set."""
    return sb.Classification(FEATURES, LABELS, seed=seed, **settings)


def gaussian(seed: int = 0, **settings: Any) -> sb.Environment:
    """Few small arms."""
    return sb.GaussianArms(dim=12, arms=6, seed=seed, **settings)


ENVIRONMENTS: dict[str, Callable[..., sb.Environment]] = {
    "classification": classification,
    "flat": gaussian,
    "power-law": lambda seed=0: gaussian(seed, spectrum="power-law"),
    "low-rank": lambda seed=0: gaussian(seed, spectrum="low-rank", rank=3),
    "fixed": lambda seed=0: gaussian(seed, fixed=True),
}


@pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_rounds_depend_on_the_seed_alone(make: Callable[..., sb.Environment]) -> None:
    """The same seed gives the same rounds, again and again; a longer run begins with a shorter one."""
    environment = make(seed=5)
    once, again, longer = (list(environment.rounds(n)) for n in (6, 6, 9))
    for one, two, three in zip(once, again, longer, strict=False):
        assert np.array_equal(one.arms, two.arms)
        assert np.array_equal(one.arms, three.arms)
        assert np.array_equal(one.means, three.means)
        assert one.noise == two.noise == three.noise
    other = next(iter(make(seed=6).rounds(1)))
    assert not np.array_equal(once[0].arms, other.arms)


@pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_arms_are_normalised_and_regret_is_that_of_the_means(make: Callable[..., sb.Environment]) -> None:
    """Unit arms; the regret of a choice is the best mean less its own, whatever the noise."""
    for drawn in make(seed=1).rounds(20):
        assert np.allclose(np.linalg.norm(drawn.arms, axis=1), 1.0)
        for chosen in range(len(drawn.arms)):
            assert drawn.regret(chosen) == max(drawn.means) - drawn.means[chosen] >= 0.0
            assert drawn.reward(chosen) == drawn.means[chosen] + drawn.noise
        assert min(drawn.regret(k) for k in range(len(drawn.arms))) == 0.0


def test_classification_is_as_the_paper_sets_it_up() -> None:
    """One row of each label, reward 1 for the target alone, and no index that gives the target away."""
    environment = classification(seed=2, target=3)
    unit = FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True)
    places = []
    for drawn in environment.rounds(200):
        rows = [int(np.argmin(np.linalg.norm(unit - arm, axis=1))) for arm in drawn.arms]
        assert np.allclose(unit[rows], drawn.arms, atol=1e-12)
        assert sorted(LABELS[rows]) == [0, 1, 2, 3]
        assert np.array_equal(drawn.means, LABELS[rows] == 3)
        assert drawn.noise == 0.0
        places.append(int(drawn.means.argmax()))
    counts = np.bincount(places, minlength=4)
    assert counts.min() > 25, "the target must not prefer a place"


def test_every_row_of_a_label_is_drawn_sooner_or_later() -> None:
    """No sample is left out, and none is preferred by much."""
    seen: dict[bytes, int] = {}
    for drawn in classification(seed=0).rounds(600):
        for arm in drawn.arms:
            seen[arm.tobytes()] = seen.get(arm.tobytes(), 0) + 1
    assert len(seen) == len(FEATURES)
    assert min(seen.values()) > 30


def test_seeds_go_through_the_targets() -> None:
    """Without a target the seed chooses it."""
    assert [sb.Classification(FEATURES, LABELS, seed=seed).target for seed in range(5)] == [0, 1, 2, 3, 0]
    assert sb.Classification(FEATURES, LABELS).reseeded(3).target == 3


def test_sparse_rows_are_the_dense_ones() -> None:
    """CSR features give the same rounds, as CSR arms that a policy can play."""
    dense = FEATURES * (FEATURES > 1.0)
    keep = np.linalg.norm(dense, axis=1) > 0
    dense, labels = dense[keep], LABELS[keep]
    thick = sb.Classification(dense, labels, seed=1)
    thin = sb.Classification(sparse.csr_array(dense), labels, seed=1)
    for one, other in zip(thick.rounds(10), thin.rounds(10), strict=True):
        assert sparse.issparse(other.arms)
        assert np.allclose(one.arms, other.arms.toarray())
        assert np.array_equal(one.means, other.means)
    rows = [list(sb.play(sb.oful(7), environment, 50)) for environment in (thick, thin)]
    assert [row.chosen for row in rows[0]] == [row.chosen for row in rows[1]]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_features_can_be_left_as_stored(store: Callable[[Any], Any]) -> None:
    """``normalise=None`` gives the stored values, zero rows dropped, in the same draws as unit rows."""
    stored = (np.abs(FEATURES) * 20).astype(np.uint8)
    stored[[3, 17]] = 0
    raw, unit = (sb.Classification(store(stored), LABELS, seed=4, normalise=how) for how in (None, "rows"))
    for one, other in zip(raw.rounds(50), unit.rounds(50), strict=True):
        arms, scaled = (
            drawn.arms.toarray() if sparse.issparse(drawn.arms) else drawn.arms for drawn in (one, other)
        )
        assert {tuple(arm) for arm in arms} <= {tuple(row) for row in stored.astype(np.float64)}
        assert np.allclose(arms / np.linalg.norm(arms, axis=1, keepdims=True), scaled)
        assert np.array_equal(one.means, other.means)
    assert isinstance(arms, np.ndarray)
    assert store is sparse.csr_array or one.arms.dtype == np.float64
    assert raw.reseeded(5).normalise is None
    with pytest.raises(sb.SketchBanditError, match=r'"rows" \(unit length\), "largest"'):
        sb.Classification(stored, LABELS, normalise="columns")  # type: ignore[arg-type]


def test_bytes_are_normalised_like_floats() -> None:
    """Images are kept as bytes and turned to unit floats as they are drawn."""
    images = (np.abs(FEATURES) * 20).astype(np.uint8)
    one, other = (sb.Classification(x, LABELS, seed=4) for x in (images, images.astype(np.float64)))
    for a, b in zip(one.rounds(5), other.rounds(5), strict=True):
        assert np.array_equal(a.arms, b.arms)
        assert a.arms.dtype == np.float64


def test_zero_rows_are_dropped() -> None:
    """A row of length zero cannot be normalised and is never drawn; a label of such rows is refused."""
    features = FEATURES.copy()
    features[0] = 0.0
    for drawn in sb.Classification(features, LABELS).rounds(100):
        assert np.isfinite(drawn.arms).all()
    features[:10] = 0.0
    with pytest.raises(sb.InputError, match="every row of label 0 is zero"):
        sb.Classification(features, LABELS)


def test_bad_classification_data() -> None:
    """One label, labels that do not fit, NaN, a target that is no label."""
    with pytest.raises(sb.InputError, match="two labels or more, got 1"):
        sb.Classification(FEATURES, np.zeros(40, dtype=int))
    with pytest.raises(sb.InputError, match="40 rows need as many labels"):
        sb.Classification(FEATURES, LABELS[:-1])
    with pytest.raises(sb.InputError, match="row 3 contains NaN"):
        sb.Classification(np.where(np.arange(40)[:, None] == 3, np.nan, FEATURES), LABELS)
    with pytest.raises(sb.InputError, match=r"target 4 is not one of the 4 labels 0\.\.3"):
        sb.Classification(FEATURES, LABELS, target=4)


def test_gaussian_arms_are_the_papers() -> None:
    """d = 500, 100 arms, theta* on the sphere, noise 0.1, a flat spectrum."""
    environment = sb.GaussianArms(seed=3)
    drawn = list(environment.rounds(30))
    assert drawn[0].arms.shape == (100, 500)
    assert np.linalg.norm(environment.theta) == pytest.approx(1.0)
    noise = [round_.noise for round_ in sb.GaussianArms(dim=2, arms=1, seed=0).rounds(4000)]
    assert np.std(noise) == pytest.approx(0.1, rel=0.05)
    assert np.mean(noise) == pytest.approx(0.0, abs=0.01)
    stacked = np.concatenate([round_.arms for round_ in drawn])
    spread = np.linalg.eigvalsh(stacked.T @ stacked) / len(stacked)
    assert spread.max() < 8 * spread.min(), "flat, but for chance: Marchenko-Pastur gives 5.7 here"
    assert np.allclose(drawn[0].means, drawn[0].arms @ environment.theta)


def test_spectra_are_what_they_are_called() -> None:
    """Low rank has that rank; a power law decays like one."""
    low = np.concatenate([r.arms for r in sb.GaussianArms(dim=60, spectrum="low-rank", rank=7).rounds(3)])
    assert np.linalg.matrix_rank(low) == 7
    law = np.concatenate([r.arms for r in sb.GaussianArms(dim=60, spectrum="power-law").rounds(40)])
    spread = np.sqrt((law**2).mean(axis=0))
    slope = np.polyfit(np.log(np.arange(1, 61)), np.log(spread), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.1)
    with pytest.raises(sb.InputError, match="flat, power-law, low-rank"):
        sb.GaussianArms(spectrum="steep")


def test_no_policy_shares_the_stream_that_theta_is_drawn_from() -> None:
    """A policy with the seed of the environment must know nothing of it (SeedSequence pads with zeros)."""
    environment = sb.GaussianArms(dim=12, seed=0)
    for seed in (0, [0, 0], [0, 2]):
        drawn = np.random.default_rng(seed).standard_normal(12)
        assert not np.allclose(environment.theta, drawn / np.linalg.norm(drawn))


def test_noise_is_not_drawn_for_each_arm() -> None:
    """Two policies that choose differently get the same noise, so that their difference is theirs."""
    drawn = next(iter(gaussian(seed=0).rounds(1)))
    differences = {drawn.reward(k) - float(drawn.means[k]) for k in range(6)}
    assert max(differences) - min(differences) < 1e-15


# -- the loop ---------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 50), rounds=st.integers(1, 60), every=st.integers(1, 25))
def test_rows_are_those_of_a_plain_loop(seed: int, rounds: int, every: int) -> None:
    """Choices, rewards, regrets and totals against the loop written out."""
    environment = gaussian(seed)
    rows = list(sb.play(sb.oful(12), environment, rounds, every=every))
    policy = sb.oful(12)
    expected, regret, reward = {}, 0.0, 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        gained = float(drawn.arms[chosen] @ environment.theta) + drawn.noise  # type: ignore[attr-defined]
        policy.update(drawn.arms[chosen], drawn.reward(chosen))
        regret += float((drawn.arms @ environment.theta).max() - drawn.arms[chosen] @ environment.theta)  # type: ignore[attr-defined]
        reward += gained
        expected[number] = (chosen, regret, reward)
    assert [row.round for row in rows] == [n for n in range(1, rounds + 1) if n % every == 0 or n == rounds]
    for row in rows:
        chosen, regret, reward = expected[row.round]
        assert row.chosen == chosen
        assert row.total_regret == pytest.approx(regret, abs=1e-12)
        assert row.total_reward == pytest.approx(reward, abs=1e-12)
        assert row.bytes <= row.peak_bytes


@given(seed=st.integers(0, 50), rounds=st.integers(1, 40), delay=st.integers(0, 50))
def test_late_rewards_are_learned_after_as_many_further_choices(seed: int, rounds: int, delay: int) -> None:
    """Against the loop written out: the choice of round t knows the rewards up to round t - delay - 1."""
    environment = gaussian(seed)
    rows = list(sb.play(policy := sb.oful(12), environment, rounds, delay=delay))
    all_rounds = list(environment.rounds(rounds))
    for number, (row, drawn) in enumerate(zip(rows, all_rounds, strict=True)):
        fresh = sb.oful(12)
        for known in range(max(0, number - delay)):
            earlier = all_rounds[known]
            fresh.update(earlier.arms[rows[known].chosen], earlier.reward(rows[known].chosen))
        assert row.chosen == fresh.select(drawn.arms)
        assert row.reward == drawn.reward(row.chosen), "counted in the round that earned it"
    assert policy.rounds == max(0, rounds - delay), "what is on its way at the end is not learned"


def test_a_reward_on_its_way_keeps_its_own_arm_alone() -> None:
    """Not the arms of its round, which may be many and may be overwritten; sparse as well."""
    arms = np.eye(3)
    mail = LateRewards(2)
    assert mail.send(arms[0], 1.0) is None
    assert mail.send(sparse.csr_array(arms[[1]]), 2.0) is None
    arms[:] = 9.0
    first, second = mail.send(arms[2], 3.0), mail.send(arms[2], 4.0)
    assert first is not None
    assert second is not None
    assert (first[0].tolist(), first[1], first[0].base) == ([1.0, 0.0, 0.0], 1.0, None)
    assert (second[0].toarray().tolist(), second[1]) == ([[0.0, 1.0, 0.0]], 2.0)
    with pytest.raises(sb.InputError, match="delay"):
        sb.play(sb.oful(12), gaussian(), 5, delay=-1)


def test_fixed_arms_are_those_of_the_first_round() -> None:
    """Of the same seed drawn anew; the noise goes on."""
    drawn = list(gaussian(3).rounds(4))
    fixed = list(gaussian(3, fixed=True).rounds(4))
    for one in fixed:
        assert np.array_equal(one.arms, drawn[0].arms)
        assert np.array_equal(one.means, drawn[0].means)
    assert len({one.noise for one in fixed}) == 4
    with pytest.raises(sb.InputError, match="fixed must be True or False, got 2"):
        gaussian(fixed=2)


def test_only_select_and_update_are_timed() -> None:
    """A clock that counts its readings: two pairs a round, and nothing of the environment between them."""
    readings = []

    def clock() -> float:
        readings.append(time.perf_counter())
        return float(len(readings))

    rows = list(sb.play(sb.oful(12), gaussian(), 5, clock=clock))
    assert len(readings) == 20
    assert [row.seconds for row in rows] == [2.0] * 5
    assert rows[-1].total_seconds == 10.0


def test_rows_make_a_table() -> None:
    """Straight into a DataFrame, one column a field."""
    table = pd.DataFrame(sb.play(sb.dbslinucb(12, size=3, epsilon=1.0), gaussian(), 80))
    assert len(table) == 80
    assert (table["regret"].cumsum() - table["total_regret"]).abs().max() < 1e-9
    assert table["certificate"].iloc[-1] <= 2.0
    assert table["sketch_rows"].iloc[-1] == 12, "the last block is exact, and dense here"


def test_every_policy_tells_its_size() -> None:
    """Also the one without a certificate."""
    (row,) = sb.play(sb.cbrap(12, size=4), gaussian(), 30, every=30)
    assert row.certificate == float("inf")
    assert row.sketch_size == 4
    (row,) = sb.play(sb.soful(12, size=12), gaussian(), 30, every=30)
    assert 0 < row.sketch_rows <= 24


class Shrinking:
    """A policy that holds much at first and less later."""

    dim = 12
    sketch = sb.ExactSketch(12)
    nbytes = 1000

    def select(self, arms: Any) -> int:
        """The first arm, always."""
        del arms
        return 0

    def update(self, arm: Any, reward: float) -> None:
        """Learn nothing, hold less."""
        del arm, reward
        self.nbytes -= 100

    def health(self) -> Any:
        """Exact."""
        return sb.oful(12).health()


def test_the_peak_is_the_most_that_was_held() -> None:
    """Not what is held at the end."""
    policy: Any = Shrinking()
    rows = list(sb.play(policy, gaussian(), 3))
    assert [row.bytes for row in rows] == [900, 800, 700]
    assert [row.peak_bytes for row in rows] == [1000, 1000, 1000]


def test_arms_chosen_can_be_watched() -> None:
    """What a policy learned from is what the watcher saw."""
    seen: list[Any] = []
    policy = sb.oful(12)
    list(sb.play(policy, gaussian(), 25, watch=seen.append))
    assert np.allclose(policy.sketch.covariance(), np.array(seen).T @ np.array(seen))


def test_a_policy_of_another_dimension_is_refused_at_once() -> None:
    """Before the first round, with the remedy."""
    with pytest.raises(sb.InputError, match=r"length 5.*dim=12"):
        sb.play(sb.oful(5), gaussian(), 10)
    with pytest.raises(sb.InputError, match="rounds"):
        sb.play(sb.oful(12), gaussian(), 0)
