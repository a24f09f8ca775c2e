"""The exploration rule that a policy is asked for with: which it is, and its own number, which is tuned."""

import inspect
from collections.abc import Sequence
from typing import NamedTuple

from sketchbandit.errors import InputError
from sketchbandit.explore import Explore
from sketchbandit.explore.base import RULES
from sketchbandit.policy import Policy
from sketchbandit.policy.recipes import parameters, recipe
from sketchbandit.registry import setting_names
from sketchbandit.simulation.specs import Spec, Value, is_chance
from sketchbandit.theory import Confidence

RULE = "explore"
_DOTTED = f"{RULE}."
_FIRST_SEED = 500_000_000  # of rules: the arms are drawn from the seed of the run itself


class Number(NamedTuple):
    """The setting of a rule that says how much it explores."""

    setting: str
    sign: str
    """How figures write it."""
    over: float | None = None
    """Where less of it explores more: it is searched on this number over the grid of beta."""


NUMBERS = {
    "ucb": Number("beta", "β"),
    "thompson": Number("scale", "s"),
    "inverse-gap": Number("gamma", "gamma", over=10.0),
    "epsilon-greedy": Number("epsilon", "ε"),
}
"""By the name of the rule; the others have none."""


def name_of(policy: Spec) -> str:
    """The rule by its name: the one given, UCB where only its beta is, else the one it has by default."""
    given = policy.get(RULE)
    if given is None and policy.get("beta") is None and RULE in parameters(policy.name):
        return _by_default(policy).kind
    return "ucb" if given is None else str(given)


def number_of(policy: Spec) -> Number | None:
    """What is tuned of the rule, beside the ridge."""
    return None if is_chance(policy) else NUMBERS.get(name_of(policy))


def number_played(policy: Policy) -> float | None:
    """The number that a policy plays with; None where there is none, or it changes as it learns."""
    number = NUMBERS.get(policy.explore.kind)
    if number is None:
        return None
    value = policy.beta if number.setting == "beta" else getattr(policy.explore, number.setting)
    return None if isinstance(value, Confidence | str) else float(value)


def numbers_of(policy: Spec, betas: Sequence[float]) -> list[float | None]:
    """The grid of the rule's number, from that of beta."""
    number = number_of(policy)
    if number is None:
        return [None]
    return [beta if number.over is None else number.over / beta for beta in betas]


def settings_of(policy: Spec) -> dict[str, Value]:
    """The settings of the rule by their own names, the rule itself not among them."""
    if policy.get(RULE) is None:
        return {}
    own, known = parameters(policy.name), setting_names(RULES.named(policy.get(RULE)))
    flat = {k: v for k, v in policy.settings if k in known and (k not in own or k == "beta")}
    return flat | {k.removeprefix(_DOTTED): v for k, v in policy.settings if k.startswith(_DOTTED)}


def key(policy: Spec, setting: str) -> str:
    """How a setting of the rule is written: with a dot where the policy has one of that name itself."""
    return f"{_DOTTED}{setting}" if setting in parameters(policy.name) and setting != "beta" else setting


def without_settings(policy: Spec, *settings: str) -> Spec:
    """The same without these settings of the rule, however they are written."""
    return policy.without(*(_DOTTED + name for name in settings), *(key(policy, name) for name in settings))


def seeded(policy: Spec, seed: int) -> Spec:
    """The same with a seed for its rule, if there is a rule that may draw and has no seed."""
    if policy.get(RULE) is None and name_of(policy) != "ucb":
        settings = _by_default(policy).settings()
        own = {_DOTTED + name: value for name, value in settings.items() if name not in ("rule", "seed")}
        policy = policy.with_settings(**{RULE: settings["rule"]}, **own)
    if policy.get(RULE) is None or "seed" in settings_of(policy):
        return policy
    return policy.with_settings(**{f"{_DOTTED}seed": _FIRST_SEED + seed})


def refuse_ambiguous(policy: Spec) -> None:
    """Refuse a setting that both the sketch and the rule have, where only one of them is said."""
    if policy.get(RULE) is None:
        return
    both = set(parameters(policy.name)) & set(setting_names(RULES.named(policy.get(RULE)))) - {"beta", "seed"}
    for name in both:
        if policy.get(name) is not None and policy.get(_DOTTED + name) is None:
            raise InputError(
                f"{policy}: both the sketch and the rule have {name}; for the rule's write "
                f"{_DOTTED}{name}={policy.get(name)}, beside the sketch's or without it"
            )


def _by_default(policy: Spec) -> Explore:
    """The rule of a policy that is told none: that of a small one, made with what it cannot do without."""
    make = recipe(policy.name).make
    needed = [one.name for one in inspect.signature(make).parameters.values() if one.default is one.empty]
    rule: Explore = make(2, **{name: policy.get(name) for name in needed if name != "dim"}).explore
    return rule


def title(policy: Spec) -> str:
    """What figures call the rule."""
    return RULES.named(policy.get(RULE, "ucb")).__name__


def listed() -> str:
    """Every rule with its settings, for a help text."""
    return "; ".join(f"{name} ({', '.join(setting_names(rule))})" for name, rule in RULES.built_in.items())
