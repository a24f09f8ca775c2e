"""The algorithms of the paper and our own, each a recipe over the same parts."""

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.estimate import Estimate
from sketchbandit.explore import UCB, Explore, Thompson
from sketchbandit.explore.base import Auto
from sketchbandit.policy.exploring import copy_of_rule
from sketchbandit.policy.linucb import LinUCB
from sketchbandit.policy.projected import ProjectedLinUCB
from sketchbandit.scaling import Intercept, Kind
from sketchbandit.sketch import AdaptiveSketch, DyadicBlockSketch, ExactSketch, FrequentDirections
from sketchbandit.sketch.checks import check_count
from sketchbandit.theory import Confidence, epsilon_within

Beta = float | Confidence | Auto

SMALLEST_SIZE = 10
"""Of the adaptive sketch, where it is one."""
FULL_RIDGE_FROM = 256
"""Columns: below, the ridge of ``adaptive`` is smaller in proportion, because few columns are soon known."""
EXACT_UP_TO = 128
"""Dimensions: at 57 a sketch takes twice the time of a matrix."""


def oful(
    dim: int,
    *,
    ridge: float = 1.0,
    beta: Beta | None = None,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = None,
    intercept: Intercept = False,
) -> LinUCB:
    """OFUL (Abbasi-Yadkori et al. 2011): exact, O(dim²) time a round and memory.

    A stream of arms of low rank costs less: rows are kept until a (dim, dim) matrix is cheaper.

    Parameters
    ----------
    dim : int
        Length of an arm.
    ridge : float
        lambda, in units of a squared arm norm.
    beta : float or Confidence
        Short for ``explore=UCB(beta)``: the radius, a constant or the theorem's. 0.1 unless it is given.
    dtype : dtype
        float64, or float32 to read arms without converting them; what is exact is held in float64.
    explore : Explore
        How to choose: ``UCB``, ``Thompson``, ``InverseGap``, ``EpsilonGreedy``, ``Greedy``
        (docs/exploration.md).
    rewards : Estimate
        What to believe of the rewards: ``Linear()`` unless it is given; ``Logistic()`` for clicks,
        ``Poisson()`` for counts, ``Robust()`` for outliers (docs/beyond-linear.md).
    forget : float
        How fast to forget, where the world changes: up to 1 the factor by which a round counts in the next
        one, such as 0.999; above 1 the half-life in rounds, such as 700. None: never (docs/bandits.md).
    scaling : str or Scaling
        How arms are brought to scale: None: as they are; "rows": to length one; "columns": centred, divided
        by their deviations; "auto": by what the first arms look like (docs/scaling.md).
    intercept : bool or float
        Whether a constant feature is added to the arms, and how long it is beside an arm.

    Examples
    --------
    >>> policy = oful(2, beta=0.5)
    >>> policy.update([1.0, 0.0], 1.0)
    >>> policy.ucb([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([0.854, 0.5  ])

    """
    return LinUCB(
        ExactSketch(_columns(dim, intercept), dtype=dtype),
        ridge=ridge,
        beta=beta,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def soful(
    dim: int,
    *,
    size: int = 50,
    ridge: float = 1.0,
    beta: Beta | None = None,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = None,
    intercept: Intercept = False,
) -> LinUCB:
    """SOFUL (Kuzborskij et al. 2019): Frequent Directions of a fixed size, O(dim · size).

    Its regret is linear where the spectral error grows like t^(1/3) or faster; ``health()`` tells, and a
    SketchTooSmallWarning says so once. ``size`` is l; the other parameters are those of ``oful``.

    >>> soful(100, size=10).select([[0.0] * 99 + [1.0], [0.0] * 99 + [2.0]])
    1
    """
    sketch = FrequentDirections(_columns(dim, intercept), size=size, dtype=dtype)
    return LinUCB(
        sketch,
        ridge=ridge,
        beta=beta,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def cbscfd(
    dim: int,
    *,
    size: int = 50,
    ridge: float = 1.0,
    beta: Beta | None = None,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = None,
    intercept: Intercept = False,
) -> LinUCB:
    """CBSCFD (Chen et al. 2021): Frequent Directions whose loss is compensated in full, O(dim · size).

    Its regret is linear where the spectral error grows like t. Parameters as for ``soful``.

    >>> cbscfd(100, size=10).sketch.compensation
    1.0
    """
    sketch = FrequentDirections(_columns(dim, intercept), size=size, compensation=1.0, dtype=dtype)
    return LinUCB(
        sketch,
        ridge=ridge,
        beta=beta,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def dbslinucb(
    dim: int,
    *,
    size: int = 50,
    epsilon: float = 8.0,
    compensation: float = 1.0,
    ridge: float = 1.0,
    beta: Beta | None = None,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = None,
    intercept: Intercept = False,
) -> LinUCB:
    """DBSLinUCB (Alg. 2 of the paper): the spectral error stays under 2·epsilon on every stream.

    ``size`` is l0, the sketch size of the first block. ``compensation`` 0 is DBSLinUCB-FD, 1
    DBSLinUCB-RFD. epsilon is in units of a squared arm norm; ``theory.epsilon_for`` chooses it for a
    horizon and a regret order. The other parameters are those of ``oful``.

    >>> policy = dbslinucb(100, size=10, epsilon=2.0)
    >>> policy.health().sentence
    'The spectral error is at most 0 and never exceeds 4: the regret stays sublinear.'
    """
    sketch = DyadicBlockSketch(
        _columns(dim, intercept), size=size, epsilon=epsilon, compensation=compensation, dtype=dtype
    )
    return LinUCB(
        sketch,
        ridge=ridge,
        beta=beta,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def adaptive(
    dim: int,
    *,
    epsilon: float | None = None,
    inflation: float = 1.5,
    horizon: int | None = None,
    size: int | None = None,
    compensation: float = 1.0,
    ridge: float | None = None,
    beta: Beta | None = None,
    order: float | None = None,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = "auto",
    intercept: Intercept = True,
    seed: int | None = None,
) -> LinUCB:
    """The one to start with: features as they are, nothing to tune (docs/bakeoff.md).

    Columns are scaled by the first arms offered, a constant feature is added, and Thompson sampling explores
    by the deviation of the rewards. Below is the adaptive sketch, with as many rows as its promise needs, and
    no more: on every stream it widens the regret bound of exact OFUL by a factor of at most ``inflation``
    (docs/adaptive.md).

    Parameters
    ----------
    dim : int
        Length of an arm.
    epsilon : float
        The spectral error allowed, in units of a squared arm norm. Unless it is given it follows from
        ``inflation`` and ``ridge``: (1 + epsilon/ridge)^(1/2) = inflation, or ^(3/2) without compensation.
    inflation : float
        The factor by which the bound may widen; not used where epsilon is given.
    horizon : int
        The number of rounds, if it is known. One round is one reward. Up to some 3,300 rounds fewer rows are
        needed then. A longer horizon needs more rows in the first 2,000 rounds, and fewer at its end.
    size : int
        The smallest size that the sketch works with. 10 unless it is given; up to 128 dimensions all of
        them, because there exact OFUL is the fastest.
    compensation : float
        0: none, 0.5 or 1: what alpha gives back of the loss.
    explore : Explore
        How to choose: ``Thompson("auto")``, or ``UCB(beta)`` where beta is given.
    scaling, intercept
        As for ``oful``, but "auto" and True unless they are given.
    seed : int
        Of the generator that the choices draw from, whatever the rule; from the operating system unless it
        is given.
    ridge : float
        lambda. Unless it is given 1, or, below 256 columns, their number over 256.
    beta, rewards, forget
        As for ``oful``.
    order : float
        Instead of a horizon and a bounded error: let it grow as fast as a regret of Õ(t^order) allows.
    dtype : dtype
        float64, or float32 to store rows in half the memory, where it is a sketch and its budget has room for
        what float32 rounds away.

    Examples
    --------
    >>> policy = adaptive(1000, seed=0)
    >>> policy.explore
    Thompson(scale='auto', seed=0)
    >>> policy.sketch.epsilon
    1.25
    >>> policy.health().sentence
    'The spectral error is at most 0 and never exceeds 1.25: the regret stays sublinear.'

    """
    columns = _columns(dim, intercept)
    if explore is None:
        explore = Thompson("auto") if beta is None else UCB()
    if seed is not None:
        explore = copy_of_rule(explore)
        explore.seed = check_count("seed", seed, at_least=0)
    if size is None:
        size = SMALLEST_SIZE if columns > EXACT_UP_TO else max(2, columns)
    if ridge is None:
        ridge = min(1.0, columns / FULL_RIDGE_FROM)
    if epsilon is None:
        epsilon = epsilon_within(inflation, ridge=ridge, compensation=compensation)
    sketch = AdaptiveSketch(
        columns,
        epsilon=epsilon,
        horizon=horizon,
        size=size,
        compensation=compensation,
        order=order,
        dtype=dtype,
    )
    return LinUCB(
        sketch,
        ridge=ridge,
        beta=beta,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def cbrap(
    dim: int,
    *,
    size: int = 50,
    ridge: float = 1.0,
    beta: float | None = None,
    seed: int = 0,
    dtype: DTypeLike = np.float64,
    explore: Explore | None = None,
    rewards: Estimate | None = None,
    forget: float | None = None,
    scaling: Kind = None,
    intercept: Intercept = False,
) -> ProjectedLinUCB:
    """CBRAP (Yu et al. 2017): arms projected to ``size`` Gaussian directions, then exact: O(dim · size).

    There is no ellipsoid in the original space, so ``beta`` is a constant. The projection is drawn from
    ``seed``; policies to be merged need the same.

    >>> cbrap(100, size=10, seed=3).theta.shape
    (100,)
    """
    return ProjectedLinUCB(
        dim,
        size=size,
        ridge=ridge,
        beta=beta,
        seed=seed,
        dtype=dtype,
        explore=explore,
        rewards=rewards,
        forget=forget,
        scaling=scaling,
        intercept=intercept,
    )


def _columns(dim: int, intercept: Intercept) -> int:
    """Of the sketch: one more than an arm has, where there is an intercept."""
    return check_count("dim", dim, at_least=1) + bool(intercept)
