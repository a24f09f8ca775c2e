"""The paper's algorithms and ``adaptive``: recipes that join the same parts, by name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar, Unpack

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate.base import model_of, model_settings
from sketchbandit.explore import UCB, Thompson
from sketchbandit.explore.base import rule_of
from sketchbandit.features import Intercept, Kind
from sketchbandit.policy.learner import copy_of_rule
from sketchbandit.policy.policy import CommonSettings, LinUCB, Policy, Settings
from sketchbandit.policy.projected import ProjectedLinUCB
from sketchbandit.registry import setting_names
from sketchbandit.sketch import AdaptiveSketch, DyadicBlockSketch, ExactSketch, FrequentDirections
from sketchbandit.sketch.checks import check_count
from sketchbandit.theory import epsilon_within

Given = ParamSpec("Given")
Made = TypeVar("Made")


_LAST = ("ridge", "beta", "order", "dtype", *Settings.__annotations__, "seed")


def _shares_settings(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let ``help()`` and readers of signatures see the shared settings of a recipe with their defaults."""
    own, shared = inspect.signature(make), inspect.signature(LinUCB).parameters
    named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    more = [shared[name] for name in Settings.__annotations__ if name not in own.parameters]
    ordered = sorted([*named, *more], key=lambda one: _LAST.index(one.name) if one.name in _LAST else -1)
    vars(make)["__signature__"] = own.replace(parameters=ordered)
    return make


SMALLEST_SIZE = 10
"""The smallest size of the adaptive sketch, above ``EXACT_UP_TO`` columns."""
FULL_RIDGE_FROM = 256
"""Columns from which on the default ridge of ``adaptive`` is 1. With fewer columns it is smaller in
proportion, because few columns are soon known."""
EXACT_UP_TO = 128
"""Columns up to which ``adaptive`` is exact: at 57 a sketch takes twice the time of a matrix."""


@_shares_settings
def oful(
    dim: int,
    *,
    dtype: DTypeLike = np.float64,
    **settings: Unpack[Settings],
) -> LinUCB:
    """OFUL (Abbasi-Yadkori et al. 2011): exact LinUCB, O(dim²) time per round and O(dim²) memory.

    If the arms have low rank, it costs less: rows are kept until a (dim, dim) matrix is cheaper.

    Parameters
    ----------
    dim : int
        Number of features of an arm.
    ridge : float
        lambda, the ridge parameter, in units of a squared arm norm.
    beta : float or Confidence or str, optional
        The confidence radius, short for ``explore=UCB(beta)``. A float is a constant radius, a ``Confidence``
        is that of the theorem, and "auto" follows the standard deviation of the rewards. Default 0.1.
    dtype : dtype
        float64, or float32 to read float32 arms without a conversion. Exact matrices are always float64.
    explore : Explore, optional
        The exploration rule: ``UCB`` (the default), ``Thompson``, ``InverseGap``, ``EpsilonGreedy`` or
        ``Greedy`` (docs/exploration.md).
    rewards : Estimate, optional
        The reward model: ``Linear()`` (the default), ``Logistic()`` for clicks, ``Poisson()`` for counts,
        ``Robust()`` for outliers (docs/beyond-linear.md).
    forget : float, optional
        How fast to forget old rounds, for rewards that drift. A number up to 1 is a factor per round, such as
        0.999. A number above 1 is a half-life in rounds, such as 700. None (the default) never forgets
        (docs/bandits.md).
    baseline : bool, optional
        Whether to learn from rewards less their mean, so that a constant added to all rewards changes no
        choice (docs/bandits.md). Default: not, as in the papers, except in a ``PerAction``.
    scaling : str or Scaling or None
        How features are scaled. None: not at all. "rows": every arm to length one. "columns": every column is
        centred and divided by its standard deviation. "auto": learned from the first requests
        (docs/scaling.md).
    intercept : bool or float
        Whether a constant feature is added to every arm. A float sets its length relative to an arm.

    Returns
    -------
    LinUCB
        A fresh policy.

    Examples
    --------
    >>> policy = oful(2, beta=0.5)
    >>> policy.update([1.0, 0.0], 1.0)
    >>> policy.ucb([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([0.854, 0.5  ])

    """
    return LinUCB(ExactSketch(_columns(dim, settings), dtype=dtype), **settings)


@_shares_settings
def soful(
    dim: int,
    *,
    size: int = 50,
    dtype: DTypeLike = np.float64,
    **settings: Unpack[Settings],
) -> LinUCB:
    """SOFUL (Kuzborskij et al. 2019): LinUCB on Frequent Directions of fixed size, O(dim · size) per round.

    Its regret bound is linear if the spectral error grows like t^(1/3) or faster. ``health()`` reports this,
    and a SketchTooSmallWarning says so once.

    Parameters
    ----------
    size : int
        l, the sketch size.
    dim, ridge, beta, dtype, explore, rewards, forget, baseline, scaling, intercept
        As for ``oful``.

    Returns
    -------
    LinUCB
        A fresh policy.

    Examples
    --------
    >>> soful(100, size=10).select([[0.0] * 99 + [1.0], [0.0] * 99 + [2.0]])
    1

    """
    return LinUCB(FrequentDirections(_columns(dim, settings), size=size, dtype=dtype), **settings)


@_shares_settings
def cbscfd(
    dim: int,
    *,
    size: int = 50,
    dtype: DTypeLike = np.float64,
    **settings: Unpack[Settings],
) -> LinUCB:
    """CBSCFD (Chen et al. 2021): Frequent Directions with full compensation, O(dim · size) per round.

    Its regret bound is linear if the spectral error grows like t.

    Parameters
    ----------
    size : int
        l, the sketch size.
    dim, ridge, beta, dtype, explore, rewards, forget, baseline, scaling, intercept
        As for ``oful``.

    Returns
    -------
    LinUCB
        A fresh policy.

    Examples
    --------
    >>> cbscfd(100, size=10).sketch.compensation
    1.0

    """
    sketch = FrequentDirections(_columns(dim, settings), size=size, compensation=1.0, dtype=dtype)
    return LinUCB(sketch, **settings)


@_shares_settings
def dbslinucb(
    dim: int,
    *,
    size: int = 50,
    epsilon: float = 8.0,
    compensation: float = 1.0,
    dtype: DTypeLike = np.float64,
    **settings: Unpack[Settings],
) -> LinUCB:
    """DBSLinUCB (Alg. 2 of the paper): the spectral error stays below 2·epsilon on every stream.

    Parameters
    ----------
    size : int
        l0, the sketch size of the first block.
    epsilon : float
        Half of the spectral error allowed, in units of a squared arm norm. ``theory.epsilon_for`` computes it
        from a horizon and a regret order.
    compensation : float
        0 is DBSLinUCB-FD, 1 is DBSLinUCB-RFD.
    dim, ridge, beta, dtype, explore, rewards, forget, baseline, scaling, intercept
        As for ``oful``.

    Returns
    -------
    LinUCB
        A fresh policy.

    Examples
    --------
    >>> policy = dbslinucb(100, size=10, epsilon=2.0)
    >>> policy.health().sentence
    'The spectral error is 0 so far and never exceeds 4: the regret bound of UCB stays sublinear.'

    """
    sketch = DyadicBlockSketch(
        _columns(dim, settings), size=size, epsilon=epsilon, compensation=compensation, dtype=dtype
    )
    return LinUCB(sketch, **settings)


@_shares_settings
def adaptive(
    dim: int,
    *,
    epsilon: float | None = None,
    inflation: float = 1.5,
    horizon: int | None = None,
    size: int | None = None,
    compensation: float = 1.0,
    ridge: float | None = None,
    order: float | None = None,
    dtype: DTypeLike = np.float64,
    scaling: Kind = "auto",
    intercept: Intercept = True,
    seed: int | None = None,
    **settings: Unpack[CommonSettings],
) -> LinUCB:
    """The policy to start with: it takes features as they are and needs no tuning (docs/bakeoff.md).

    The first requests set the scaling of the columns. A constant feature is added. Rewards are learned
    less their mean. Thompson sampling explores, with a scale that follows the standard deviation of the
    rewards. So neither the unit nor the zero of the rewards matters.

    The adaptive sketch below it keeps only as many rows as its error bound needs. The error bound holds on
    every stream, with every rule. With ``beta=Confidence(...)`` (UCB) there is also a regret bound: that of
    exact OFUL times at most ``inflation`` (docs/adaptive.md). For the default rule there is no such theorem.

    Parameters
    ----------
    dim : int
        Number of features of an arm.
    epsilon : float, optional
        The spectral error allowed, in units of a squared arm norm. By default it follows from ``inflation``
        and ``ridge``: (1 + epsilon/ridge)^(1/2) = inflation, or ^(3/2) without compensation.
    inflation : float
        The factor by which the regret bound may widen. Not used if ``epsilon`` is given.
    horizon : int, optional
        The number of rounds to come, if it is known. One round is one reward. Up to some 3,300 rounds fewer
        rows are needed then. A longer horizon needs more rows in the first 2,000 rounds, and fewer at the
        end.
    size : int, optional
        The smallest sketch size. Default 10. Up to 128 columns the default is their number, which is exact,
        because exact OFUL is the fastest there.
    compensation : float
        The part of the loss that alpha gives back: 0 (none), 0.5 or 1 (all).
    ridge : float, optional
        lambda. Default 1; below 256 columns, their number divided by 256.
    beta : float or Confidence or str, optional
        As for ``oful``. If it is given, the default rule is ``UCB(beta)``.
    order : float, optional
        Use instead of a horizon. The error is then not bounded, but may grow as fast as a regret of
        Õ(t^order) allows.
    dtype : dtype
        float64, or float32 to store the rows of a sketch in half the memory. The error bound must leave room
        for float32 rounding.
    explore : Explore, optional
        The exploration rule. Default ``Thompson("auto")``.
    rewards : Estimate, optional
        The reward model: ``Linear()`` (the default), ``Logistic()`` for clicks, ``Poisson()`` for counts,
        ``Robust()`` for outliers (docs/beyond-linear.md).
    forget : float, optional
        How fast to forget old rounds. Set it if rewards drift: a number up to 1 is a factor per round, a
        number above 1 is a half-life in rounds. None (the default) never forgets (docs/bandits.md).
    baseline : bool, optional
        Whether to learn from rewards less their mean. Then a constant added to all rewards changes no choice,
        and an arm that was never tried has the mean of all rewards (docs/bandits.md). Default: as
        ``intercept``, because the arms that are chosen pay about the mean, so that a model without a constant
        feature would learn too little from them. Off where a ``Confidence`` asks for the radius of a theorem,
        which is about rewards as they are.
    scaling : str or Scaling or None
        How features are scaled. "auto" (the default): learned from the first requests. "rows": every arm to
        length one. "columns": every column is centred and divided by its standard deviation. None: not at
        all (docs/scaling.md).
    intercept : bool or float
        Whether a constant feature is added to every arm. A float sets its length relative to an arm.
    seed : int, optional
        Seed of the generator that random choices draw from, whatever the rule. By default the operating
        system provides it.

    Returns
    -------
    LinUCB
        A fresh policy.

    Examples
    --------
    >>> policy = adaptive(1000, seed=0)
    >>> policy.explore
    Thompson(scale='auto', seed=0)
    >>> policy.sketch.epsilon
    1.25
    >>> policy.health().sentence
    'The spectral error is 0 so far and never exceeds 1.25: the regret bound of UCB stays sublinear.'

    """
    columns = _columns(dim, {"intercept": intercept})
    explore, baseline = settings.get("explore"), settings.get("baseline")
    if explore is None:
        explore = Thompson("auto") if settings.get("beta") is None else UCB()
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
    settings["explore"] = explore
    policy = LinUCB(sketch, ridge=ridge, scaling=scaling, intercept=intercept, **settings)
    if baseline is None and not intercept:
        policy._wants_baseline = False
    policy._default_to_baseline()
    return policy


@_shares_settings
def cbrap(
    dim: int,
    *,
    size: int = 50,
    seed: int = 0,
    dtype: DTypeLike = np.float64,
    **settings: Unpack[Settings],
) -> ProjectedLinUCB:
    """CBRAP (Yu et al. 2017): arms are projected to ``size`` random directions, then exact, O(dim · size).

    No theorem gives a confidence ellipsoid in the original space, so ``beta`` must be a constant.

    Parameters
    ----------
    size : int
        The number of Gaussian directions to project to.
    seed : int
        Seed of the projection. Policies to be merged need the same seed.
    dim, ridge, beta, dtype, explore, rewards, forget, baseline, scaling, intercept
        As for ``oful``.

    Returns
    -------
    ProjectedLinUCB
        A fresh policy.

    Examples
    --------
    >>> cbrap(100, size=10, seed=3).theta.shape
    (100,)

    """
    return ProjectedLinUCB(dim, size=size, seed=seed, dtype=dtype, **settings)


def _columns(dim: int, settings: Settings) -> int:
    """The number of columns of the sketch: one more than an arm has if there is an intercept."""
    return check_count("dim", dim, at_least=1) + bool(settings.get("intercept"))


_OF_RULE, _OF_MODEL = "explore.", "rewards."


class Recipe(NamedTuple):
    """A named policy."""

    make: Callable[..., Policy]
    """Makes the policy: ``make(dim, **settings)``."""
    title: Callable[[Mapping[str, Any]], str]
    """Returns the name used in figures, given the settings."""
    can_turn_exact: bool
    """Whether the policy may come to hold dim² numbers, whatever its sketch size."""
    size_sign: str = "l"
    """The symbol for the sketch size in figures."""


RECIPES: dict[str, Recipe] = {}


def register(
    name: str,
    make: Callable[..., Policy],
    *,
    title: str | Callable[[Mapping[str, Any]], str],
    can_turn_exact: bool,
    size_sign: str = "l",
) -> None:
    """Register a policy under a name, for ``sketchbandit_paper`` and the service of this process.

    Parameters
    ----------
    name : str
        The new name.
    make : callable
        ``make(dim, **settings)`` returns a fresh policy.
    title : str or callable
        The name in figures, or a function that returns it for given settings.
    can_turn_exact : bool
        Whether the policy may come to hold dim² numbers. The service counts them against its memory limits.
    size_sign : str
        The symbol for the sketch size in figures.

    Examples
    --------
    >>> from sketchbandit import IncrementalSVD, LinUCB
    >>> register("isvd", lambda dim: LinUCB(IncrementalSVD(dim)), title="iSVD", can_turn_exact=False)
    >>> build("isvd", 30).sketch.size
    50
    >>> del RECIPES["isvd"]

    """
    if not callable(make):
        raise InputTypeError(f"make must be a function (dim, **settings) -> Policy, got {make!r}")
    if name in RECIPES and RECIPES[name].make.__module__ != getattr(make, "__module__", None):
        raise InputError(f"there is a policy called {name!r} already; choose another name")
    titled = (lambda _: title) if isinstance(title, str) else title
    RECIPES[name] = Recipe(make, titled, can_turn_exact, size_sign)


def recipe(name: str) -> Recipe:
    """The recipe with this name."""
    if name not in RECIPES:
        raise InputError(f"unknown policy {name!r}; choose from {', '.join(RECIPES)}")
    return RECIPES[name]


def parameters(name: str, explore: object = None, rewards: object = None) -> list[str]:
    """The names of all settings: of the policy, and of its rule and reward model if they are given.

    A setting of the rule goes by its plain name or as ``explore.name``. A setting of the reward model goes
    as ``rewards.name``.
    """
    own = [p.name for p in inspect.signature(recipe(name).make).parameters.values() if p.name != "dim"]
    of_rule = () if explore is None or "explore" not in own else setting_names(type(rule_of(explore)))
    of_model = () if rewards is None or "rewards" not in own else setting_names(type(model_of(rewards)))
    found = own + [_OF_RULE + name if name in own else name for name in of_rule]
    return found + [_OF_MODEL + name for name in of_model]


def build(name: str, dim: int, **settings: Any) -> Policy:
    """Make the policy with this name. Unknown settings are refused by name.

    ``explore`` is a rule, its name, or a mapping (``explore.base.rule_of``). ``rewards`` is a reward model,
    its name, or a mapping (``estimate.base.model_of``).

    Examples
    --------
    >>> build("soful", 30, size=5).sketch.size
    5
    >>> build("soful", 30, explore="thompson", scale=0.5).explore
    Thompson(scale=0.5)
    >>> build("soful", 30, **{"rewards": "logistic", "rewards.step": 2.0}).estimate
    Logistic(arm_norm=1.0, step=2.0)

    """
    own, known = parameters(name), parameters(name, settings.get("explore"), settings.get("rewards"))
    of_rule = [key for key in known[len(own) :] if not key.startswith(_OF_MODEL)]
    for key in settings:
        if key not in known and key.removeprefix(_OF_RULE) not in of_rule:
            if key.startswith(_OF_MODEL) and settings.get("rewards") is None:
                raise InputError(
                    f"{key} is a setting of a reward model; name the model too, for instance rewards=robust"
                )
            raise InputError(f"{name} has no setting {key!r}; it takes {', '.join(known)}")
    made = {key: value for key, value in settings.items() if key in own}
    others = {key: value for key, value in settings.items() if key not in own}
    told = {key.removeprefix(_OF_MODEL): value for key, value in others.items() if key.startswith(_OF_MODEL)}
    if made.get("rewards") is not None:
        model = model_of(made["rewards"])
        made["rewards"] = model_of({**model_settings(model), **told}) if told else model
    told = {key.removeprefix(_OF_RULE): v for key, v in others.items() if not key.startswith(_OF_MODEL)}
    if made.get("explore") is not None:
        rule = rule_of(made["explore"])
        made["explore"] = rule_of({**rule.settings(), **told}) if told else rule
    return recipe(name).make(dim, **made)


def _blocks(settings: Mapping[str, Any]) -> str:
    compensation = settings.get("compensation", 1.0)
    return {0: "DBSLinUCB-FD", 1: "DBSLinUCB-RFD"}.get(compensation, f"DBSLinUCB, c = {compensation:g}")


def _adaptive(settings: Mapping[str, Any]) -> str:
    return "Adaptive" if settings.get("horizon") or settings.get("order") else "Adaptive, anytime"


register("oful", oful, title="OFUL", can_turn_exact=True)
register("cbrap", cbrap, title="CBRAP", can_turn_exact=False)
register("soful", soful, title="SOFUL", can_turn_exact=False)
register("cbscfd", cbscfd, title="CBSCFD", can_turn_exact=False)
register("dbslinucb", dbslinucb, title=_blocks, can_turn_exact=True, size_sign="l₀")
register("adaptive", adaptive, title=_adaptive, can_turn_exact=True)
