"""What docs/beyond-linear.md proves of one-pass estimates on a sketch, as numbers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.theory import mix_cost
from tests.one_pass import MODELS, SKETCHES, arms_of

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

DELTA = 0.1
LIMITS = {"logistic": 0.25, "poisson": math.inf}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)  # sums over N(0, 1)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())


def mix_loss(model: Any, reward: float, margin: float, variance: float) -> float:
    """-ln E exp(-loss(z)), z from N(margin, variance)."""
    losses = model.loss(margin + math.sqrt(variance) * NODES, reward)
    return -float(np.logaddexp.reduce(LOG_WEIGHTS - losses))


@pytest.mark.parametrize("name", MODELS)
@given(
    margin=st.floats(-3.0, 2.0),
    new=st.floats(-3.0, 2.0),
    reach=st.floats(1e-6, 4.0),
    reward=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_the_mix_loss_costs_no_more_than_is_said(
    name: str, margin: float, new: float, reach: float, reward: float
) -> None:
    """Lemma 1, by quadrature: whatever the new margin is."""
    model = MODELS[name]
    cost = mix_cost(reach, float(model.slope(new)), most_curvature=LIMITS[name])
    most = float(model.loss(new, reward)) + (new - margin) ** 2 / (2.0 * reach) + cost
    assert mix_loss(model, reward, margin, reach) <= most + 1e-9
    at_rest = float(model.loss(margin, reward))
    assert cost <= 0.5 * math.log1p(reach * float(model.slope(new))) + reach + 1e-12  # it is no idle bound
    assert mix_loss(model, reward, margin, reach) <= at_rest + mix_cost(
        reach, float(model.slope(margin)), most_curvature=LIMITS[name]
    )


def test_the_cost_joins_its_series() -> None:
    """Small and large variances, on both sides of where the formula changes; and it never overflows."""
    below, above = (mix_cost(reach, 1.0) for reach in (1e-4 * (1 - 1e-9), 1e-4 * (1 + 1e-3)))
    assert below == pytest.approx(above, rel=2e-3)
    assert below < above
    assert mix_cost(1e-9, 1.0) == pytest.approx(0.5e-9, rel=1e-4)
    assert math.isfinite(mix_cost(1e300, 1e13))


class Ledger:
    """The potential and what the proof sums up, densely, beside a policy that plays."""

    def __init__(
        self, name: str, sketch: str, *, seed: int, norm: float = 2.0, dim: int = 5, ridge: float = 1.0
    ) -> None:
        self.model, self.random = MODELS[name], np.random.default_rng(seed)
        self.theta = arms_of(1, dim, self.random)[0] * norm
        self.ridge = ridge
        self.policy = sb.LinUCB(
            SKETCHES[sketch](dim),
            ridge=self.ridge,
            beta=sb.Confidence(theta_norm=norm, delta=DELTA),
            rewards=self.model.made(theta_norm=norm),
        )
        self.step = 1.0 + norm
        self.excess = 0.0
        """The sum of loss(theta*) less the mix loss."""

    def play(self) -> None:
        """One round: the arms depend on all that was learned."""
        arms = arms_of(4, self.policy.dim, self.random)
        x = arms[self.policy.select(arms)]
        true = float(x @ self.theta)
        reward = self.model.draw(true, self.random)
        reach = self.step * self.policy.width(x) ** 2
        self.excess += float(self.model.loss(true, reward))
        self.excess -= mix_loss(self.model, reward, self.policy.margin(x), reach)
        self.policy.update(x, reward)

    @property
    def potential(self) -> float:
        """|theta_t - theta*|²_A."""
        matrix = self.policy.sketch.covariance() + self.ridge * np.eye(self.policy.dim)
        off = self.policy.theta - self.theta
        return float(off @ matrix @ off)


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("name", MODELS)
def test_the_potential_is_paid_for(name: str, sketch: str) -> None:
    """Theorem 2 without chance: the potential is at most lambda·S² + moved + 2·eta·(excess + cost), always.

    The radius has ln(1/delta) for the excess, which is a fact about chance alone.
    """
    for seed in range(2):
        ledger = Ledger(name, sketch, seed=seed)
        longest = 0.0
        for _ in range(80):
            ledger.play()
            longest = max(longest, float(np.linalg.norm(ledger.policy.theta)))
            chance = 2.0 * ledger.step * (ledger.excess - math.log(1.0 / DELTA))
            assert ledger.potential <= ledger.policy.radius**2 + chance + 1e-7
        estimate, alpha = ledger.policy.estimate, ledger.policy.sketch.alpha
        assert (estimate._moved > 0.0) == (alpha > 0.0)
        assert estimate._moved <= (longest + 2.0) ** 2 * alpha + 1e-9


@pytest.mark.parametrize("sketch", ["exact", "fd", "scfd"])
@pytest.mark.parametrize("name", MODELS)
def test_the_ellipsoid_covers(name: str, sketch: str) -> None:
    """At every round, in at least 1 - delta of the runs, under choices that depend on what was learned."""
    failures, nearest = 0, 0.0
    for seed in range(20):
        ledger = Ledger(name, sketch, seed=100 + seed, dim=4)
        covered = True
        for _ in range(50):
            ledger.play()
            share = math.sqrt(ledger.potential) / ledger.policy.radius
            nearest, covered = max(nearest, share), covered and share <= 1.0
        failures += not covered
    assert failures <= DELTA * 20
    assert nearest > 0.1  # the radius is of the right order


@pytest.mark.parametrize("sketch", ["exact", "fd", "scfd", "adaptive"])
@pytest.mark.parametrize("name", MODELS)
def test_what_the_sketch_costs(name: str, sketch: str) -> None:
    """Corollary 3: the realised radius is below its closed form, in which the certificate stands alone."""
    ledger = Ledger(name, sketch, seed=5, norm=1.0, ridge=2.0)
    policy, step, longest = ledger.policy, 2.0, 0.0
    for _ in range(80):
        ledger.play()
        held, longest = policy.sketch, max(longest, float(np.linalg.norm(policy.theta)))
        kappa = (2.0 + held.error_bound) / (2.0 + held.alpha)
        information = held.dim * math.log1p(held.mass / (held.dim * 2.0))
        most = 2.0 + (longest + 1.0) ** 2 * held.alpha + 2.0 * step * math.log(1.0 / DELTA)
        assert policy.radius**2 <= most + 2.0 * step**2 * kappa * information + 1e-9


def test_the_radius_by_hand() -> None:
    """Two rounds, the formula written out."""
    beta = sb.Confidence(theta_norm=1.0, delta=0.05)
    policy = sb.oful(2, ridge=2.0, beta=beta, rewards=sb.Logistic(theta_norm=1.0))
    spent = 0.0
    for x in np.eye(2):
        reach = 2.0 * policy.width(x) ** 2
        policy.update(x, 1.0)
        mean = policy.mean(x)
        spent += mix_cost(reach, mean * (1.0 - mean), most_curvature=0.25)
    assert policy.radius == pytest.approx(math.sqrt(2.0 + 4.0 * (math.log(20.0) + spent)), rel=1e-12)
