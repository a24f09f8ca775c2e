"""Bounds on a mean, and the intervals made of them: oracles, laws, and coverage where normal ones fail."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import sketchbandit as sb
from sketchbandit.evaluation import Evaluation, Log, evaluate, replay
from sketchbandit.evaluation import mean_bounds as bounds
from sketchbandit.evaluation.mean_bounds import Numbers, lower_bound, upper_bound


def zeros_and_ones(decisions: int, ones: int) -> Numbers:
    """So many rewards of 0 and 1."""
    return Numbers.of(np.repeat([0.0, 1.0], [decisions - ones, ones]))


@pytest.mark.parametrize(("decisions", "ones"), [(1, 0), (30, 1), (100, 5), (1000, 500), (5000, 1), (50, 50)])
@pytest.mark.parametrize("alpha", [0.1, 0.025, 0.001])
def test_for_zeros_and_ones_the_bounds_are_those_of_clopper_and_pearson(
    decisions: int, ones: int, alpha: float
) -> None:
    """The saddlepoint is that close, and never on the wrong side by more than two per cent."""
    numbers = zeros_and_ones(decisions, ones)
    low = beta.ppf(alpha, ones, decisions - ones + 1) if ones else 0.0
    high = beta.ppf(1.0 - alpha, ones + 1, decisions - ones) if ones < decisions else 1.0
    assert lower_bound(numbers, 0.0, alpha) == pytest.approx(low, rel=0.08, abs=1e-12)
    assert lower_bound(numbers, 0.0, alpha) <= 1.02 * low
    assert 1.0 - upper_bound(numbers, 1.0, alpha) == pytest.approx(1.0 - high, rel=0.08, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.5])
def test_the_bounds_are_quantiles_of_means_with_uniform_random_weights(sigma: float) -> None:
    """By simulation of the weights, with one more number at the end of the range."""
    random = np.random.default_rng(3)
    values = random.lognormal(0.0, sigma, 60)
    weights = random.exponential(size=(100_000, 61))
    for least, most in ((0.0, 2.0 * values.max()), (-3.0, values.max())):
        low = np.quantile(weights @ np.append(values, least) / weights.sum(axis=1), 0.025)
        high = np.quantile(weights @ np.append(values, most) / weights.sum(axis=1), 0.975)
        numbers = Numbers.of(values)
        assert lower_bound(numbers, least, 0.025) == pytest.approx(low, rel=0.02)
        assert upper_bound(numbers, most, 0.025) == pytest.approx(high, rel=0.02)


numbers_of_a_log = st.lists(st.floats(-100.0, 100.0).map(lambda x: round(x, 3)), min_size=1, max_size=40)


@given(numbers_of_a_log, st.floats(0.0, 50.0), st.floats(-1e4, 1e4), st.floats(0.01, 100.0))
def test_laws_of_the_bounds(values: list[float], room: float, added: float, factor: float) -> None:
    """Within the range, below the mean, moved and scaled with the numbers, and lower for a smaller alpha."""
    x = np.array(values)
    least = float(x.min()) - room
    bound = lower_bound(Numbers.of(x), least, 0.025)
    slack = 1e-7 * (1.0 + abs(least))
    assert least - slack <= bound <= x.mean() + slack
    assert lower_bound(Numbers.of(x), least, 0.005) <= bound + slack
    assert lower_bound(Numbers.of(x), least - 1.0, 0.025) <= bound + slack
    moved = lower_bound(Numbers.of(factor * x + added), factor * least + added, 0.025)
    assert moved == pytest.approx(
        factor * bound + added, abs=1e-6 * (1.0 + abs(added) + factor * (200 + room))
    )
    assert upper_bound(Numbers.of(-x), -least, 0.025) == pytest.approx(-bound, abs=slack)


def test_a_number_may_be_added_between_the_others() -> None:
    """The bound is the quantile of weighted means then too: the order does not matter."""
    values = np.random.default_rng(8).standard_normal(60)
    weights = np.random.default_rng(9).exponential(size=(100_000, 61))
    low = np.quantile(weights @ np.append(values, -1.0) / weights.sum(axis=1), 0.025)
    assert lower_bound(Numbers.of(values), -1.0, 0.025) == pytest.approx(low, abs=0.01)
    assert lower_bound(Numbers.of(values), -9.0, 0.025) < low - 0.05


def test_pooled_numbers_have_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand skewed numbers, each by itself and pooled."""
    x = np.random.default_rng(4).lognormal(0.0, 2.0, 100_000)
    pooled = Numbers.of(x)
    assert len(pooled.values) < 10_000
    assert pooled.counts.sum() == len(x)
    monkeypatch.setattr(bounds, "_EXACT", len(x))
    exact = Numbers.of(x)
    for alpha in (0.025, 1e-5):
        assert lower_bound(pooled, 0.0, alpha) == pytest.approx(lower_bound(exact, 0.0, alpha), rel=1e-6)
        assert upper_bound(pooled, 999.0, alpha) == pytest.approx(upper_bound(exact, 999.0, alpha), rel=1e-6)


# -- coverage -----------------------------------------------------------------------------------------


def clicks(seed: int, *, decisions: int, arms: int, rate: float, skew: float = 0.0) -> tuple[Log, Any]:
    """A log of equal arms, and two candidates that always play one of them."""
    random = np.random.default_rng(seed)
    powers = np.exp(skew * random.standard_normal((decisions, arms)))
    chances = powers / powers.sum(axis=1, keepdims=True)
    chosen = np.minimum((chances.cumsum(axis=1) < random.random((decisions, 1))).sum(axis=1), arms - 1)
    reward = (random.random(decisions) < rate).astype(float)
    probability = chances[np.arange(decisions), chosen]
    log = Log(arms=np.zeros((arms, 1)), chosen=chosen, reward=reward, probability=probability)
    return log, {"first": np.eye(arms)[0], "second": np.eye(arms)[1]}


def judged(logs: int, *, interval: str = "bounded", **world: Any) -> tuple[float, float, float]:
    """The shares of logs with an interval, of those that hold the truth, and of a clear difference."""
    found: list[Evaluation] = []
    for seed in range(logs):
        log, policies = clicks(seed, **world)
        found.append(evaluate(log, policies, ("ips", "snips"), interval=interval))
    rows = [row for one in found for row in one if row.policy == "first" and not np.isnan(row.low)]
    holds = np.mean([row.low <= world["rate"] <= row.high for row in rows]) if rows else np.nan
    clear = np.mean([one.difference("first", "second", "snips").is_clear for one in found])
    return len(rows) / logs / 2, float(holds), float(clear)


@pytest.mark.parametrize(
    "world",
    [
        {"decisions": 5000, "arms": 20, "rate": 0.02},  # about five clicks of the candidate
        {"decisions": 1000, "arms": 4, "rate": 0.1, "skew": 2.0},  # a few weights carry the sum
        {"decisions": 1000, "arms": 4, "rate": 0.5},
    ],
)
def test_an_interval_that_is_given_holds(world: dict[str, Any]) -> None:
    """In 200 logs: at least 93 % less three standard errors; nothing is clear in more than 5 % plus three."""
    given_, holds, clear = judged(200, **world)
    assert given_ > 0.3
    assert holds >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / 200)
    assert clear <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_five_heavy_decisions_say_no_more_than_five_can() -> None:
    """Half of what the candidate does was logged five times, and won each time: it may win half of the time.

    Five wins out of five have the chance 0.025 if one wins in 0.48; the other half wins in 0.5.
    """
    candidate = np.append(0.505, np.full(99, 0.005))
    chosen = np.append(np.zeros(5, dtype=int), 1 + np.arange(510) % 99)
    reward = np.append(np.ones(5), np.arange(510) % 2.0)
    log = Log(arms=np.zeros((100, 1)), chosen=chosen, reward=reward, probability=np.full(515, 0.01))
    found = evaluate(log, {"half": candidate}, ("snips", "ips"))
    assert found.of("half", "snips").low < 0.5 * (0.025**0.2 + 0.5)
    assert found.of("half", "ips").low == found.of("half", "snips").low
    assert not found.difference("half", method="snips").is_clear
    log = Log(arms=np.zeros((100, 1)), chosen=chosen, reward=1.0 - reward, probability=np.full(515, 0.01))
    lost = evaluate(log, {"half": candidate}, ("snips",)).of("half", "snips")
    assert lost.high == pytest.approx(1.0 - found.of("half", "snips").low)


def test_skewed_rewards_and_a_tenth_of_the_log() -> None:
    """Lognormal rewards, 500 decisions: normal intervals are not even at 90 %, these at 93 or more."""
    held = {"bounded": 0, "normal": 0}
    for seed in range(300):
        random = np.random.default_rng(seed)
        reward, chosen = random.lognormal(-1.125, 1.5, 500), random.integers(5, size=500)
        log = Log(arms=np.zeros((5, 1)), chosen=chosen, reward=reward, probability=np.full(500, 0.2))
        for interval in held:
            row = evaluate(log, {"first": np.eye(5)[0]}, ("snips",), interval=interval)[0]
            held[interval] += row.low <= 1.0 <= row.high
    assert held["bounded"] >= 0.93 * 300 > 0.9 * 300 > held["normal"]


def test_normal_intervals_miss_where_weights_are_heavy() -> None:
    """What the default replaces."""
    _, holds, _ = judged(100, interval="normal", decisions=1000, arms=4, rate=0.1, skew=2.0)
    assert holds < 0.88


def test_at_half_and_with_many_decisions_it_is_hardly_longer_than_the_normal_interval() -> None:
    """Within 15 %, for a value and for a difference."""
    log, policies = clicks(0, decisions=20_000, arms=4, rate=0.5)
    usual, normal = (evaluate(log, policies, ("snips",), interval=kind) for kind in ("bounded", "normal"))
    for row, other in ((usual[0], normal[0]), (usual.difference("first"), normal.difference("first"))):
        assert (row.high - row.low) < 1.15 * (other.high - other.low)


# -- nothing can be said ------------------------------------------------------------------------------


def test_few_clicks_decide_nothing() -> None:
    """No interval and no clear difference, but a sentence with how many more decisions would help."""
    log, policies = clicks(1, decisions=5000, arms=80, rate=0.008)
    for interval in ("bounded", "normal", "bootstrap"):
        found = evaluate(log, policies, ("snips",), interval=interval)
        assert np.isnan(found.of("first", "snips").low)
        verdict = found.verdicts()["first"]
        assert "decide" in verdict or "too short" in verdict
        difference = found.difference("first")
        assert not difference.is_clear
        assert verdict in difference.verdict
    assert "more decisions would" in " ".join(
        evaluate(*clicks(seed, decisions=5000, arms=80, rate=0.02), ("snips",)).verdicts().get("first", "")
        for seed in range(5)
    )


def test_a_difference_that_is_not_clear_says_what_would_decide() -> None:
    """About so many more decisions; and with so many more it is clear."""
    random = np.random.default_rng(5)

    def log(decisions: int) -> Log:
        chosen = random.integers(2, size=decisions)
        reward = (random.random(decisions) < np.array([0.5, 0.56])[chosen]).astype(float)
        return Log(arms=np.eye(2), chosen=chosen, reward=reward, probability=np.full(decisions, 0.5))

    few = evaluate(log(800), {"second": [0.0, 1.0]}, ("snips",)).difference("second")
    assert not few.is_clear
    assert few.verdict.startswith("800 decisions decide nothing; about ")
    more = int(few.verdict.split("about ")[1].split(" ")[0].replace(",", ""))
    assert 100 < more < 100_000
    many = evaluate(log(2 * (800 + more) + 5000), {"second": [0.0, 1.0]}, ("snips",)).difference("second")
    assert many.is_clear
    assert many.verdict == ""


def test_a_replay_without_a_click_has_no_interval() -> None:
    """Not from 0 to 0."""
    random = np.random.default_rng(6)
    chosen = random.integers(3, size=900)
    log = Log(arms=np.eye(3), chosen=chosen, reward=np.zeros(900), probability=np.full(900, 1 / 3))
    life = replay(log, {"u": lambda: sb.oful(3, explore=sb.EpsilonGreedy(1.0, seed=0))})["u"]
    assert life.rounds > 200
    assert np.isnan(life.estimate.low)
    assert "0" in life.verdict


def test_rewards_and_weights_beyond_what_was_promised_are_refused() -> None:
    """With the number that is, and the name of the setting; and a range makes an interval longer."""
    log, policies = clicks(7, decisions=2000, arms=4, rate=0.5)
    with pytest.raises(sb.InputError, match=r"rewards are from 0 to 1, and reward_range is 0 to 0\.5"):
        evaluate(log, policies, reward_range=(0.0, 0.5))
    with pytest.raises(sb.InputError, match="a weight is 4, but max_weight is 3"):
        evaluate(log, policies, max_weight=3.0)
    usual, wide = (
        evaluate(log, policies, ("dr",))[0],
        evaluate(log, policies, ("dr",), reward_range=(-5, 5))[0],
    )
    assert wide.high - wide.low > usual.high - usual.low
    heavy = evaluate(log, policies, ("dr",), max_weight=400.0)[0]
    assert heavy.high - heavy.low > usual.high - usual.low


def test_numbers_so_small_that_their_squares_vanish() -> None:
    """The bound of tiny numbers is the tiny bound of the numbers."""
    values = np.random.default_rng(0).random(50)
    bound = lower_bound(Numbers.of(values), 0.0, 0.025)
    tiny = lower_bound(Numbers.of(1e-200 * values), 0.0, 0.025)
    assert tiny == pytest.approx(1e-200 * bound, rel=1e-9)
