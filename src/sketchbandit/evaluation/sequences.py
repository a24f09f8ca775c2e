"""Any-time intervals: they hold at every moment of a log, so under any rule for when to stop.

The empirical-Bernstein confidence sequence by a gamma-exponential mixture (Howard, Ramdas, McAuliffe and
Sekhon 2021, Time-uniform, nonparametric, nonasymptotic confidence sequences, Proposition 9), one-sided, for
variables that are at least zero and may be unbounded above, as Waudby-Smith, Wu, Ramdas, Karampatziakis and
Mineiro (2022, Anytime-valid off-policy inference for contextual bandits) use it: no bound on the weights is
needed. It rests on Fan's inequality: for y >= -1 and 0 <= l < 1,

    exp(l y - psi(l) y²) <= 1 + l y,    psi(l) = -ln(1 - l) - l.

With x_t >= 0 of conditional mean m_t and predictable g_t in [0, 1], S = sum (x_t - m_t) and
V = sum (x_t - g_t)², exp(l S - psi(l) V) is a supermartingale for every l, and so is its mean over l by the
density of 1 - l ~ Gamma(rho, rho) cut to [0, 1]: with a = V + rho, z = S + V + rho, P the regularised
incomplete gamma function,

    ln M = S + V + ln Gamma(a) + ln P(a, z) - a ln z + rho ln rho - ln Gamma(rho) - ln P(rho, rho).

By Ville's inequality M stays below 1/alpha at all times with probability 1 - alpha. So S stays below the u(V)
at which M = 1/alpha: the average of the m_t so far is at least (sum x - u(V)) / t, at every t. The m_t may
change, as those of a candidate that learns do.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaln

from sketchbandit.arrays import Scalars, Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.intervals import Assumed, Interval
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.terms import Terms
from sketchbandit.sketch.checks import check_real

_TUNED_FOR = 300.0  # the V at which the bound is tightest; it is good over some powers of ten
_STEPS = 60  # of Newton's method, at most; fewer than ten are needed


def mixture_boundary(variance: Vector, alpha: float) -> Vector:
    """u(V): the S at which ln M = ln(1/alpha), for every V.

    ln M is convex and increases with S, so Newton's method comes from above after its first step.
    """
    wanted = math.log(1.0 / alpha)
    rho = _TUNED_FOR / (2.0 * wanted + math.log(1.0 + 2.0 * wanted))
    a = variance + rho
    constant = rho * math.log(rho) - float(gammaln(rho)) - math.log(float(gammainc(rho, rho)))
    of_a = gammaln(a)
    s: Vector = np.sqrt(2.0 * a * (wanted + 0.5 * np.log(a / rho)))
    for _ in range(_STEPS):
        z = s + a
        lower = gammainc(a, z)
        found = s + variance + of_a + np.log(lower) - a * np.log(z) + constant
        slope = 1.0 - a / z + np.exp((a - 1.0) * np.log(z) - z - of_a) / lower
        step = (found - wanted) / slope
        s = np.maximum(s - step, 0.0)
        if (np.abs(step) <= 1e-9 * (1.0 + s)).all():
            break
    return s


class LowerBound:
    """A lower bound on the average of the means of numbers >= 0, valid at every moment at once.

    Parameters
    ----------
    alpha : float
        The probability that it fails at any time.

    Examples
    --------
    >>> bound = LowerBound(0.025)
    >>> bound.update(np.random.default_rng(0).random(2000))
    >>> 0.47 < bound.value < 0.5
    True

    """

    def __init__(self, alpha: float) -> None:
        self.alpha = check_real("alpha", alpha, above=0.0, below=1.0)
        self.count = 0
        self._sum = 0.0
        self._variance = 0.0

    def update(self, values: ArrayLike) -> None:
        """Add some numbers."""
        self._take(values)

    def path(self, values: ArrayLike) -> Vector:
        """Add some numbers, and return the bound after each."""
        counts, sums, variances = self._take(values)
        bounds: Vector = np.maximum((sums - mixture_boundary(variances, self.alpha)) / counts, 0.0)
        return bounds

    def _take(self, values: ArrayLike) -> tuple[Vector, Vector, Vector]:
        x = np.atleast_1d(np.asarray(values, dtype=np.float64))
        is_bad = ~((x >= 0.0) & (x < np.inf))
        if is_bad.any():
            raise InputError(f"the numbers of a lower bound are finite and at least zero, got {x[is_bad][0]}")
        counts = self.count + np.arange(1.0, len(x) + 1.0)
        sums = self._sum + np.cumsum(x)
        before = np.concatenate([[self._sum], sums[:-1]])
        guesses = np.minimum((0.5 + before) / counts, 1.0)  # 1/2 counts as one further number
        variances = self._variance + np.cumsum((x - guesses) ** 2)
        if len(x):
            self.count, self._sum, self._variance = int(counts[-1]), float(sums[-1]), float(variances[-1])
        return counts, sums, variances

    @property
    def value(self) -> float:
        """The present bound; zero before the first number."""
        if not self.count:
            return 0.0
        boundary = float(mixture_boundary(np.array([self._variance]), self.alpha)[0])
        return max(0.0, (self._sum - boundary) / self.count)

    @property
    def mean(self) -> float:
        """The mean of the numbers; nan before the first."""
        return self._sum / self.count if self.count else math.nan

    def to_json(self) -> dict[str, float]:
        """The state: four numbers, with which ``from_json`` continues."""
        return {"alpha": self.alpha, "count": self.count, "sum": self._sum, "variance": self._variance}

    @classmethod
    def from_json(cls, state: dict[str, float]) -> "LowerBound":
        """Return the bound that ``to_json`` described."""
        made = cls(state["alpha"])
        made.count, made._sum, made._variance = int(state["count"]), state["sum"], state["variance"]
        return made


class AnytimeValue:
    """The value of a candidate by inverse propensity scores, with an interval valid at every moment.

    Update it as rewards come. It assumes that rewards are within ``reward_range``, and that propensities are
    true, so that weights are 1 on average. Weights need no upper bound. With rewards scaled to [0, 1], the
    lower bound is that of w r. The upper bound follows from w (1 - r), whose mean is 1 - value.

    Parameters
    ----------
    reward_range : (float, float)
        The smallest and largest possible reward.
    level : float
        The probability that the interval holds at all moments together.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> value = AnytimeValue()
    >>> value.update(weights=np.ones(5000), rewards=random.random(5000) < 0.3)
    >>> value.low < 0.3 < value.high, round(value.value, 2)
    (True, 0.3)

    """

    def __init__(self, reward_range: tuple[float, float] = (0.0, 1.0), *, level: float = 0.95) -> None:
        self.reward_range = check_range(reward_range)
        self.level = check_real("level", level, above=0.0, below=1.0)
        alpha = (1.0 - self.level) / 2.0
        self._lower, self._upper = LowerBound(alpha), LowerBound(alpha)

    def update(self, weights: ArrayLike, rewards: ArrayLike) -> None:
        """Add some decisions: their weights pi(a|x)/p, and their rewards."""
        gained, lost = self._parts(weights, rewards)
        self._lower.update(gained)
        self._upper.update(lost)

    def path(self, weights: ArrayLike, rewards: ArrayLike) -> tuple[Vector, Vector]:
        """Add some decisions, and return the two ends after each."""
        gained, lost = self._parts(weights, rewards)
        low, high = self.reward_range
        lower, upper = self._lower.path(gained), self._upper.path(lost)
        return low + (high - low) * np.minimum(lower, 1.0), high - (high - low) * np.minimum(upper, 1.0)

    def _parts(self, weights: ArrayLike, rewards: ArrayLike) -> tuple[Vector, Vector]:
        """w r and w (1 - r), checked before either bound learns."""
        w, r = np.asarray(weights, dtype=np.float64), unit_rewards(rewards, self.reward_range)
        if w.shape != r.shape:
            raise InputError(
                f"every decision needs a weight and a reward, got shapes {w.shape} and {r.shape}"
            )
        is_bad = ~((w >= 0.0) & (w < np.inf))
        if is_bad.any():
            raise InputError(f"a weight is {w[is_bad][0]}; pi(a|x)/p must be finite and at least zero")
        return w * r, w * (1.0 - r)

    @property
    def count(self) -> int:
        """The number of decisions seen."""
        return self._lower.count

    @property
    def value(self) -> float:
        """The mean of w r, in the unit of the rewards; nan before the first decision."""
        low, high = self.reward_range
        return low + (high - low) * self._lower.mean

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        low, high = self.reward_range
        return low + (high - low) * min(self._lower.value, 1.0)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        low, high = self.reward_range
        return high - (high - low) * min(self._upper.value, 1.0)

    def to_json(self) -> Scalars:
        """The state, with which ``from_json`` continues."""
        ends = {"lower": self._lower.to_json(), "upper": self._upper.to_json()}
        return {"reward_range": list(self.reward_range), "level": self.level, **ends}

    @classmethod
    def from_json(cls, state: Scalars) -> "AnytimeValue":
        """Return the object that ``to_json`` described."""
        least, most = state["reward_range"]
        made = cls((least, most), level=state["level"])
        made._lower, made._upper = (LowerBound.from_json(state[end]) for end in ("lower", "upper"))
        return made


def check_range(reward_range: Iterable[float]) -> tuple[float, float]:
    """Check a range: two finite numbers, the smaller one first."""
    try:
        low, high = (float(end) for end in reward_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range must be (least, most), two finite numbers, got {reward_range!r}")
    return low, high


def unit_rewards(rewards: ArrayLike, reward_range: tuple[float, float]) -> Vector:
    """Rewards scaled to [0, 1]. Raises if one is outside of the range."""
    low, high = reward_range
    r = np.asarray(rewards, dtype=np.float64)
    outside = ~((r >= low) & (r <= high))
    if outside.any():
        raise InputError(
            f"a reward is {r[outside][0]:g}, and reward_range is {low:g} to {high:g}: give the range that no "
            "reward leaves"
        )
    return (r - low) / (high - low)


ANYTIME_METHODS = ("ips", "dr")
"""The methods that have an any-time interval."""


class Anytime:
    """Intervals that hold at every moment of a log."""

    def __init__(self, terms: Mapping[str, Terms], level: float, assumed: Assumed) -> None:
        self._terms, self._alpha, self._assumed = terms, (1.0 - level) / 2.0, assumed

    def interval(self, name: str, method: str) -> Interval:
        """The interval of a value, from w r and w (1 - r); for "dr", from the same with the reward model."""
        terms, (low, high) = self._terms[name], self._assumed.reward_range
        lower = _bound(*_parts(terms, method, self._assumed, flip=False), self._alpha)
        upper = 1.0 - _bound(*_parts(terms, method, self._assumed, flip=True), self._alpha)
        return Interval(low + (high - low) * max(lower, 0.0), low + (high - low) * min(upper, 1.0))

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of one - other: w r of one plus w (1 - r) of other has the mean 1 + difference."""
        low, high = self._assumed.reward_range
        ends = []
        for first, second in ((one, other), (other, one)):
            plus, of_plus = _parts(self._terms[first], method, self._assumed, flip=False)
            minus, of_minus = _parts(self._terms[second], method, self._assumed, flip=True)
            ends.append(_bound(plus + minus, of_plus + of_minus, self._alpha, most=2.0) - 1.0)
        return Interval((high - low) * max(ends[0], -1.0), (high - low) * min(-ends[1], 1.0))

    def of_log(self) -> Interval:
        """The interval of the mean reward of the log."""
        return self.interval(LOGGED, "ips")


def _bound(numbers: Vector, shift: float, alpha: float, most: float = 1.0) -> float:
    """A lower bound on the mean of numbers >= -shift, if the mean is at most ``most``."""
    bound = LowerBound(alpha)
    bound.update(np.maximum(numbers + shift, 0.0) / (most + shift))  # only rounding is below zero
    return bound.value * (most + shift) - shift


def _parts(terms: Terms, method: str, assumed: Assumed, *, flip: bool) -> tuple[Vector, float]:
    """Numbers whose mean is the value (flipped: 1 - value), and how far they may be below zero."""
    low, high = assumed.reward_range
    r = unit_rewards(terms.reward, assumed.reward_range)
    if method == "ips":
        return terms.weight * (1.0 - r if flip else r), 0.0
    if assumed.max_weight is None:
        raise InputError(
            "the any-time interval of dr needs max_weight, an upper bound on pi(a|x)/p known in advance; for "
            "a log made with a floor it is K / floor; the interval of ips needs none"
        )
    predicted, value = ((q - low) / (high - low) for q in (terms.predicted, terms.value))  # within the range
    if flip:
        r, predicted, value = 1.0 - r, 1.0 - predicted, 1.0 - value
    return value + terms.weight * (r - predicted), assumed.max_weight
