"""Radii, regret bounds, and the warning the paper is about."""

import copy
import math
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike

import sketchbandit as sb
from sketchbandit import theory
from sketchbandit.precision.precision import GrowingGram
from sketchbandit.testing import Stream, make_rows, streams
from tests.policies import CERTIFIED, Matrix, design_radius, rounds, unit

CONFIDENCE = sb.Confidence(noise=0.3, theta_norm=1.0, arm_norm=1.0, delta=0.1)
ignore_size = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")


@ignore_size
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize(("dim", "size", "ridge"), [(25, 4, 1.0), (25, 4, 0.05), (11, 8, 2.0)])
def test_the_radius_is_that_of_the_design(name: str, dim: int, size: int, ridge: float) -> None:
    """Realised certificate and determinant at every round, for every compensation, one or many at a time."""
    policy = CERTIFIED[name](dim, size=size, ridge=ridge, beta=CONFIDENCE)
    for t, (arms, rewards) in enumerate(rounds(300, dim, seed=1)):
        assert policy.radius == pytest.approx(design_radius(CONFIDENCE, policy.sketch, ridge), rel=1e-9)
        if t % 50 == 0:
            policy.update(np.tile(arms, (3, 1)), np.tile(rewards, 3))
        else:
            policy.update(arms[0], rewards[0])
    other = copy.deepcopy(policy)
    policy.merge(other)
    assert policy.radius == pytest.approx(design_radius(CONFIDENCE, policy.sketch, ridge), rel=1e-9)


def closed_form(name: str, policy: sb.LinUCB, count: int) -> float:
    """The paper's radius for that algorithm, with the number of rows where it writes 2·l."""
    sketch, dim, ridge = policy.sketch, policy.dim, policy.ridge
    rank = min(len(sketch.rows), dim)
    if name == "oful":
        return theory.oful_radius(CONFIDENCE, rounds=count, dim=dim, ridge=ridge)
    if name in ("soful", "dbs-fd"):
        return theory.fd_radius(
            CONFIDENCE, rounds=count, dim=dim, ridge=ridge, rank=rank, error=sketch.error_bound
        )
    blocks = getattr(sketch, "blocks", None)
    sizes = [b.size for b in blocks] if blocks else [sketch.size]
    errors = [b.error_bound for b in blocks] if blocks else [sketch.error_bound]
    return theory.rfd_radius(
        CONFIDENCE, rounds=count, dim=dim, ridge=ridge, rank=rank, sizes=sizes, errors=errors
    )


@ignore_size
@pytest.mark.parametrize("name", ["oful", "soful", "cbscfd", "dbs-fd", "dbs-rfd"])
@pytest.mark.parametrize(("dim", "size", "decay"), [(30, 4, 1.0), (30, 4, 0.7), (60, 6, 0.95)])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_closed_forms_are_never_smaller_than_the_realised(
    name: str, dim: int, size: int, decay: float, ridge: float
) -> None:
    """On the same stream, at every round."""
    policy = CERTIFIED[name](dim, size=size, ridge=ridge, beta=CONFIDENCE)
    for t, (arms, rewards) in enumerate(rounds(300, dim, seed=2, decay=decay)):
        assert closed_form(name, policy, t) >= policy.radius * (1 - 1e-12)
        policy.update(arms[0], rewards[0])


def test_the_closed_forms_are_those_of_the_paper() -> None:
    """Each theorem by its formula, with h_t = e - (sum of l_i e_i) / (2·l_B), here for 2·l_B = r."""
    t, d, lam, r, sizes, errors = 700, 90, 0.7, 40, (10, 20), (3.0, 1.5)
    e, h = 4.5, 4.5 - (10 * 3.0 + 20 * 1.5) / 40
    noise, norm = CONFIDENCE.noise, CONFIDENCE.theta_norm
    failure = 2 * math.log(1 / CONFIDENCE.delta)
    fd = noise * math.sqrt(1 + e / lam) * math.sqrt(
        failure + d * math.log(1 + e / lam) + r * math.log(1 + t / (r * lam))
    ) + norm * (lam + e) / math.sqrt(lam)
    rfd = noise * math.sqrt(
        failure + d * math.log(1 + e / lam) + r * math.log(1 + t / (r * lam) + h / lam)
    ) + norm * math.sqrt(lam + e)
    oful = noise * math.sqrt(failure + d * math.log(1 + t / (d * lam))) + norm * math.sqrt(lam)
    settings: dict[str, Any] = {"rounds": t, "dim": d, "ridge": lam}
    assert theory.fd_radius(CONFIDENCE, rank=r, error=e, **settings) == pytest.approx(fd, rel=1e-12)
    assert theory.rfd_radius(CONFIDENCE, rank=r, sizes=sizes, errors=errors, **settings) == pytest.approx(
        rfd, rel=1e-12
    )
    assert theory.oful_radius(CONFIDENCE, **settings) == pytest.approx(oful, rel=1e-12)


@ignore_size
@pytest.mark.parametrize("name", CERTIFIED)
@given(
    stream=streams(max_count=80, max_dim=24, extreme=False),
    ridge=st.sampled_from([1e-3, 1.0, 50.0]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_information_is_never_below_the_truth(
    name: str, stream: Stream, ridge: float, dtype: DTypeLike
) -> None:
    """Water-filling: at every step ln det(lambda I + X'X) is at most what the radius is computed from."""
    policy = CERTIFIED[name](stream.dim, size=stream.size, ridge=ridge, beta=CONFIDENCE, dtype=dtype)
    rows = stream.rows.astype(dtype).astype(np.float64)
    for t, row in enumerate(rows, start=1):
        policy.update(row, 0.0)
        if t % 3 == 0:
            sigma_sq = np.zeros(stream.dim)
            found = np.linalg.svd(rows[:t], compute_uv=False) ** 2
            sigma_sq[: len(found)] = found
            true = float(np.log(ridge + sigma_sq).sum())
            slack = 1e-9 * (1.0 + abs(true))
            assert policy.precision.log_det >= true - slack
            assert stream.dim * math.log(ridge + policy.sketch.mass / stream.dim) >= true - slack


def test_what_rounding_may_have_added_widens_the_radius() -> None:
    """S'S may exceed X'X by it: a bias, as the ridge is one."""
    settings: dict[str, Any] = {"dim": 5, "ridge": 1.0, "error_bound": 0.5, "log_det": 2.0}
    plain = CONFIDENCE.radius(alpha=0.5, **settings)
    assert CONFIDENCE.radius(alpha=0.5, rounding=0.3, **settings) - plain == pytest.approx(
        0.3 / math.sqrt(1.5)
    )


@ignore_size
def test_what_stands_in_for_a_ridge_that_has_no_digits_widens_the_radius() -> None:
    """Two long arms, almost one: the Gram matrix needs more than the ridge to have an inverse."""
    policy = sb.soful(100, size=10, ridge=1.0, beta=CONFIDENCE)
    arms = np.full((2, 100), 1e9)
    arms[1, 0] += 1.0
    policy.update(arms, [0.0, 0.0])
    jitter = policy.precision.jitter
    assert jitter > 1e3
    assert policy.sketch.error_bound == 0.0
    assert policy.radius >= CONFIDENCE.theta_norm * math.sqrt(jitter)


def test_rounding_counts_as_lost_where_it_may_hide_a_loss() -> None:
    """S'S that rounding made larger than X'X leaves too small a trace of what was lost."""
    row_stats = SimpleNamespace(mass=10.0, count=20)
    sketch: Any = SimpleNamespace(dim=5, row_stats=row_stats, error_bound=9.0, alpha=0.0, rounding=0.25)
    gram = GrowingGram(np.diag([4.0, 3.0]))
    assert gram.spread_error(sketch) == pytest.approx((3.0 + 5 * 0.25) / 3, rel=1e-12)
    sketch.error_bound = 0.5
    assert gram.spread_error(sketch) == 0.5


@ignore_size
def test_spreading_what_is_lost_lowers_the_radius() -> None:
    """On a fading spectrum the determinant with e in every direction is far too large."""
    policy = sb.cbscfd(200, size=10, ridge=0.5, beta=CONFIDENCE)
    random = np.random.default_rng(0)
    rows = unit(random.standard_normal((600, 200)) * 0.98 ** np.arange(200))
    policy.update(rows, rows[:, 0])
    sketch = policy.sketch
    shift = 0.5 + sketch.error_bound
    with_e = float(np.linalg.slogdet(sketch.rows.T @ sketch.rows + shift * np.eye(200))[1])
    true = float(np.linalg.slogdet(rows.T @ rows + 0.5 * np.eye(200))[1])
    assert true <= policy.precision.log_det < true + 0.3 * (with_e - true)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("error", [0.0, 0.3, 4.0, 100.0])
@pytest.mark.parametrize("dim", [5, 800, 54_877])
def test_the_regret_is_that_of_oful_times_the_inflation(dim: int, error: float, compensation: float) -> None:
    """The corollary of docs/adaptive.md, without a term d ln(1 + e/lambda)."""
    confidence = sb.Confidence(noise=1e-4, theta_norm=1.0, arm_norm=1.0, delta=0.1)
    settings: dict[str, Any] = {"horizon": 10**9, "dim": dim, "ridge": 2.0}
    inflation = theory.inflation_of(error, ridge=2.0, compensation=compensation)
    exact = theory.sketched_regret(confidence, error=0.0, compensation=1.0, **settings)
    found = theory.sketched_regret(confidence, error=error, compensation=compensation, **settings)
    trivial = theory.trivial_regret(confidence, 10**9)
    assert exact < trivial, "not the case this test is about"
    assert exact <= found <= min(exact * inflation, trivial) * (1 + 1e-12)
    radius = theory.sketched_radius(
        confidence, rounds=10**6, dim=dim, ridge=2.0, error=0.0, compensation=compensation
    )
    assert radius == pytest.approx(theory.oful_radius(confidence, rounds=10**6, dim=dim, ridge=2.0))


@ignore_size
@pytest.mark.parametrize("name", ["oful", "soful", "cbscfd", "rfd", "dbs-fd", "dbs-rfd"])
def test_coverage(name: str) -> None:
    """Over 200 seeded runs theta* is in the ellipsoid at every round as often as 1 - delta promises.

    And the check can fail: a tenth of the radius is not enough.
    """
    dim, covered, covered_by_a_tenth = 8, 0, 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        truth = unit(random.standard_normal((1, dim)))[0]
        policy = CERTIFIED[name](dim, size=3, ridge=0.5, beta=CONFIDENCE)
        farthest = 0.0
        for _ in range(60):
            arms = unit(random.standard_normal((4, dim)))
            chosen = policy.select(arms)
            noise = CONFIDENCE.noise * random.standard_normal()
            policy.update(arms[chosen], float(arms[chosen] @ truth) + noise)
            gap = policy.theta - truth
            matrix = policy.sketch.covariance() + policy.ridge * np.eye(dim)
            farthest = max(farthest, float(np.sqrt(gap @ matrix @ gap)) / policy.radius)
        covered += farthest <= 1.0
        covered_by_a_tenth += farthest <= 0.1
    assert covered >= 200 * (1 - CONFIDENCE.delta)
    assert covered_by_a_tenth < 200 * (1 - CONFIDENCE.delta)


@ignore_size
@pytest.mark.parametrize("name", CERTIFIED)
def test_the_regression_bound_holds(name: str) -> None:
    """The sum of squared errors of all predictions so far, at every round, as inverse gap weighting needs."""
    confidence = sb.Confidence(noise=0.3, theta_norm=1.0, delta=0.01)
    random = np.random.default_rng(4)
    theta = unit(random.standard_normal((1, 12)))[0]
    policy = CERTIFIED[name](12, size=4, ridge=0.5, beta=confidence)
    errors = 0.0
    for _ in range(120):
        arm = unit(random.standard_normal((1, 12)))[0]
        errors += float(arm @ (policy.theta - theta)) ** 2
        policy.update(arm, float(arm @ theta) + 0.3 * random.standard_normal())
        sketch = policy.sketch
        bound = sb.theory.regression_bound(
            policy.radius,
            dim=12,
            ridge=0.5,
            alpha=sketch.alpha,
            error_bound=sketch.error_bound,
            log_det=policy.precision.log_det,
            mass=sketch.mass,
        )
        assert errors <= bound
    if name == "oful":  # and says something where nothing is lost
        assert bound < 1_000.0 * errors


def test_a_confidence_is_checked() -> None:
    """Negative noise, delta outside (0, 1), what is no number."""
    bad: list[dict[str, Any]] = [
        {"noise": -1.0},
        {"theta_norm": -1.0},
        {"arm_norm": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": "0.1"},
    ]
    for settings in bad:
        with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
            sb.Confidence(**settings)
    with pytest.raises(TypeError):
        sb.Confidence(0.1)  # type: ignore[call-arg]


def test_regret_bounds_have_the_orders_of_the_table() -> None:
    """Over T they grow like sqrt(T) where e is fixed, and are linear where e grows like t^(1/3), or t."""
    settings: dict[str, Any] = {"dim": 500, "ridge": 1.0, "rank": 100}
    big = sb.Confidence(theta_norm=1e9)  # so that the trivial bound does not interfere
    for bound in (theory.fd_regret, theory.rfd_regret):
        ratio = bound(big, horizon=10**9, error=8.0, **settings) / bound(
            big, horizon=10**7, error=8.0, **settings
        )
        assert 10.0 <= ratio <= 20.0  # sqrt(100), and logarithms
    exact = [theory.oful_regret(big, horizon=t, dim=500, ridge=1.0) for t in (10**7, 10**9)]
    assert 10.0 <= exact[1] / exact[0] <= 20.0
    for bound, exponent in ((theory.fd_regret, 1 / 3), (theory.rfd_regret, 1.0)):
        assert theory.vacuous_exponent(0.0 if exponent < 1 else 1.0) == exponent
        values = [bound(big, horizon=t, error=float(t) ** exponent, **settings) for t in (10**12, 10**15)]
        assert values[1] / values[0] >= 1000.0
    for horizon in (10, 10**6):
        assert theory.trivial_regret(big, horizon) == 2e9 * horizon
    small = sb.Confidence()
    assert theory.fd_regret(small, horizon=10, error=8.0, **settings) == theory.trivial_regret(small, 10)


def test_the_table_of_algorithms() -> None:
    """One row for each of the six; a fixed size that loses much is worse than blocks."""
    table = theory.table(
        sb.Confidence(), horizon=10**14, dim=500, size=50, ridge=1.0, delta_t=1e12, epsilon=8.0, last_size=500
    )
    bounds = {row.algorithm: row.regret for row in table}
    assert list(bounds) == ["OFUL", "CBRAP", "SOFUL", "CBSCFD", "DBSLinUCB-FD", "DBSLinUCB-RFD"]
    assert bounds["OFUL"] < bounds["DBSLinUCB-RFD"] < bounds["DBSLinUCB-FD"] < bounds["SOFUL"]
    assert bounds["DBSLinUCB-RFD"] < bounds["CBSCFD"]
    assert bounds["SOFUL"] == theory.trivial_regret(sb.Confidence(), 10**14)


def test_epsilon_for_a_regret_order() -> None:
    """T^((2γ-1)/3), or T^(2γ-1) with a compensation; with it the bound has that order."""
    assert theory.epsilon_for(10**6, 0.5) == theory.epsilon_for(10**6, 0.5, compensation=1.0) == 1.0
    assert theory.epsilon_for(10**6, 0.8) == pytest.approx(10 ** (6 * 0.2))
    assert theory.epsilon_for(10**6, 0.8, compensation=1.0) == pytest.approx(10 ** (6 * 0.6))
    big = sb.Confidence(theta_norm=1e9)
    for bound, compensation in ((theory.fd_regret, 0.0), (theory.rfd_regret, 1.0)):
        values = [
            bound(
                big,
                horizon=t,
                dim=50,
                ridge=1.0,
                rank=100,
                error=theory.epsilon_for(t, 0.8, compensation=compensation),
            )
            for t in (10**12, 10**15)
        ]
        assert math.log(values[1] / values[0]) / math.log(1000) == pytest.approx(0.8, abs=0.06)
    for horizon, order in ((0, 0.5), (10, 0.4), (10, 1.0), (10.5, 0.5), (10, "0.5")):
        with pytest.raises((ValueError, TypeError), match=r"horizon|order"):
            theory.epsilon_for(horizon, order)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.full((3, 3), np.nan), "x", np.ones(3), np.array([["a"]])])
def test_no_spectral_error_of_what_is_no_stream(bad: Any) -> None:
    """NaN, strings, vectors."""
    with pytest.raises(sb.InputError, match="stream"):
        theory.spectral_error_of(bad, 3)


def test_a_small_certificate_beside_long_rows_is_accurate() -> None:
    """σ_l² a trillionth of σ_1²: the certificate stays below Delta, to nine digits of its own."""
    for seed in range(150):
        rows = make_rows("mixed lengths", 16, 8, seed)
        for size in (5, 8):
            sketch = sb.FrequentDirections(8, size=size)
            sketch.update(rows)
            assert sketch.error_bound <= theory.spectral_error_of(rows, size) * (1 + 1e-9)


@given(streams(extreme=False), st.integers(1, 8))
def test_spectral_error_of_a_stream(stream: Stream, size: int) -> None:
    """Delta_T by its definition, an SVD for every k; and FD's certificate does not exceed it."""
    sigma_sq = np.linalg.svd(stream.rows, compute_uv=False) ** 2
    expected = min(float(sigma_sq[k:].sum()) / (size - k) for k in range(size))
    assert theory.spectral_error_of(stream.rows, size) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if size >= 2:
        sketch = sb.FrequentDirections(stream.dim, size=size)
        sketch.update(stream.rows)
        assert sketch.error_bound <= theory.spectral_error_of(stream.rows, size) * (1 + 1e-9) + 1e-12


def test_final_size_of_dbs() -> None:
    """l0 doubled once per epsilon·l0 of mass, the rank once the last block is reached: as the sketch does."""
    for mass, expected in ((399.0, 50), (401.0, 100), (801.0, 200), (1201.0, 784), (1e9, 784)):
        assert theory.final_size(dim=784, size=50, epsilon=8.0, mass=mass, rank=784) == expected
    assert theory.final_size(dim=784, size=50, epsilon=8.0, mass=1e9, rank=30) == 30
    arms = unit(np.random.default_rng(0).standard_normal((330, 200)))
    sketch = sb.DyadicBlockSketch(200, size=20, epsilon=5.0)
    for count, arm in enumerate(arms, start=1):
        sketch.update(arm)
        if 1 < count % 100 < 95:  # an arm more or less at the turn
            claimed = theory.final_size(dim=200, size=20, epsilon=5.0, mass=float(count), rank=200)
            assert claimed == (200 if sketch.blocks[-1].exact else sketch.size)


# -- health -----------------------------------------------------------------------------------------


def play(policy: Any, arms: Matrix) -> list[str]:
    """Feed arms one by one; the messages of the SketchTooSmallWarnings raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for arm in arms:
            policy.update(arm, 0.1)
    assert all(w.category is sb.SketchTooSmallWarning for w in caught)
    return [str(w.message) for w in caught]


def test_a_size_that_is_too_small_warns_once() -> None:
    """Isotropic arms: SOFUL's and CBSCFD's certificates grow like t, and each says so, once."""
    arms = unit(np.random.default_rng(0).standard_normal((3000, 40)))
    for make in (sb.soful, sb.cbscfd):
        policy = make(40, size=5)
        (message,) = play(policy, arms)
        assert "size 5 is too small" in message
        assert "or adaptive" in message
        health = policy.health()
        assert health.certificate == policy.sketch.error_bound
        assert health.exponent == math.log(health.certificate) / math.log(3000)
        assert health.growth == pytest.approx(1.0, abs=0.1)
        assert health.heading_for_linear_regret
        assert health.sentence == policy.health().sentence
    assert sb.soful(40, size=5).health().limit == 1 / 3
    assert sb.cbscfd(40, size=5).health().limit == 1.0


def test_the_fd_warning_fires_where_the_paper_says() -> None:
    """Not before log(e)/log(t) has reached 1/3."""
    policy = sb.soful(200, size=20)
    arms = unit(np.random.default_rng(0).standard_normal((2000, 200)))
    for arm in arms:
        warned = play(policy, arm[np.newaxis])
        exponent = policy.health().exponent
        if warned:
            assert 1 / 3 <= exponent <= 0.4
            break
    else:
        pytest.fail("never warned")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("make", [sb.soful, sb.cbscfd])
def test_the_warning_does_not_depend_on_the_unit_of_length(make: Any, scale: float) -> None:
    """Arms times c with ridge times c² is the same policy, and warns at the same round."""
    arms = unit(np.random.default_rng(0).standard_normal((1200, 60)))
    policy, scaled = make(60, size=8), make(60, size=8, ridge=scale**2)
    for arm in arms:
        assert len(play(policy, arm[np.newaxis])) == len(play(scaled, scale * arm[np.newaxis]))
    assert policy.health().heading_for_linear_regret
    assert scaled.health().heading_for_linear_regret


def test_a_loud_beginning_does_not_hide_linear_growth() -> None:
    """e = c·t + c0 is linear, though its slope in a log-log plot stays below 1."""
    arms = unit(np.random.default_rng(0).standard_normal((3000, 40)))
    arms[:200] *= 2.0
    policy = sb.cbscfd(40, size=5)
    assert len(play(policy, arms)) == 1
    assert policy.health().heading_for_linear_regret


def test_a_stream_that_the_size_can_hold_is_healthy() -> None:
    """Low rank loses nothing; a light tail loses little; neither warns."""
    random = np.random.default_rng(0)
    low = unit(random.standard_normal((1000, 4)) @ random.standard_normal((4, 40)))
    light = unit(random.standard_normal((1000, 40)) * 0.2 ** np.arange(40))
    for arms, words in ((low, "lost nothing"), (light, "can bear")):
        for make in (sb.soful, sb.cbscfd):
            policy = make(40, size=6)
            assert play(policy, arms) == []
            health = policy.health()
            assert words in health.sentence
            assert not health.heading_for_linear_regret
            assert health.exponent < 1 / 3


def test_blocks_and_exact_sketches_never_warn() -> None:
    """Their certificate is bounded, and the sentence says by what."""
    arms = unit(np.random.default_rng(0).standard_normal((1500, 40)))
    for policy, words in (
        (sb.dbslinucb(40, size=4, epsilon=3.0), "never exceeds 6"),
        (sb.oful(40), "exact"),
        (sb.cbrap(40, size=4), "certifies nothing"),
        (sb.LinUCB(sb.RandomProjection(40, size=4)), "certifies nothing"),
    ):
        assert play(policy, arms) == []
        assert words in policy.health().sentence
        assert not policy.health().heading_for_linear_regret


def test_the_warning_is_not_repeated_after_loading(tmp_path: Path) -> None:
    """And the growth is remembered."""
    arms = unit(np.random.default_rng(0).standard_normal((2000, 40)))
    policy = sb.soful(40, size=5)
    assert len(play(policy, arms[:1000])) == 1
    policy.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p", sb.LinUCB)
    assert loaded.health() == policy.health()
    assert play(loaded, arms[1000:]) == []


def test_a_fresh_policy_has_a_health() -> None:
    """Before the first round too."""
    health = sb.soful(5, size=2).health()
    assert (health.certificate, health.exponent) == (0.0, -math.inf)
    assert "lost nothing" in health.sentence
