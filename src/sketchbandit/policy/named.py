"""Policies by name, for names that come from a command line, a request or a file."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate.base import model_of, model_settings
from sketchbandit.explore.base import rule_of
from sketchbandit.policy import recipes
from sketchbandit.policy.policy import Policy
from sketchbandit.registry import setting_names

Settings = Mapping[str, Any]

_OF_RULE, _OF_MODEL = "explore.", "rewards."


class Recipe(NamedTuple):
    """A named policy."""

    make: Callable[..., Policy]
    """Makes the policy: ``make(dim, **settings)``."""
    title: Callable[[Settings], str]
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
    title: str | Callable[[Settings], str],
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


def parameters(name: str, explore: Any = None, rewards: Any = None) -> list[str]:
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


def _blocks(settings: Settings) -> str:
    compensation = settings.get("compensation", 1.0)
    return {0: "DBSLinUCB-FD", 1: "DBSLinUCB-RFD"}.get(compensation, f"DBSLinUCB, c = {compensation:g}")


def _adaptive(settings: Settings) -> str:
    return "Adaptive" if settings.get("horizon") or settings.get("order") else "Adaptive, anytime"


register("oful", recipes.oful, title="OFUL", can_turn_exact=True)
register("cbrap", recipes.cbrap, title="CBRAP", can_turn_exact=False)
register("soful", recipes.soful, title="SOFUL", can_turn_exact=False)
register("cbscfd", recipes.cbscfd, title="CBSCFD", can_turn_exact=False)
register("dbslinucb", recipes.dbslinucb, title=_blocks, can_turn_exact=True, size_sign="l₀")
register("adaptive", recipes.adaptive, title=_adaptive, can_turn_exact=True)
