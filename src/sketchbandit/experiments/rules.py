"""The exploration rule that a policy is asked for with: which it is, and its own number, which is tuned."""

from collections.abc import Sequence
from typing import NamedTuple

from sketchbandit.errors import InputError
from sketchbandit.experiments.specs import Spec, Value
from sketchbandit.explore.named import RULES, rule_class, rule_parameters
from sketchbandit.policy import Policy
from sketchbandit.policy.named import parameters

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


def number_of(policy: Spec) -> Number | None:
    """What is tuned of the rule, beside the ridge."""
    return NUMBERS.get(str(policy.get(RULE, "ucb")))


def number_played(policy: Policy) -> float | None:
    """The number that a policy plays with; None where there is none, or it changes with the rounds."""
    number = NUMBERS.get(policy.explore.kind)
    if number is None:
        return None
    value = policy.beta if number.setting == "beta" else getattr(policy.explore, number.setting)
    return float(value) if isinstance(value, float) else None


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
    own, known = parameters(policy.name), rule_parameters(str(policy.get(RULE)))
    flat = {k: v for k, v in policy.settings if k in known and (k not in own or k == "beta")}
    return flat | {k.removeprefix(_DOTTED): v for k, v in policy.settings if k.startswith(_DOTTED)}


def key(policy: Spec, setting: str) -> str:
    """How a setting of the rule is written: with a dot where the policy has one of that name itself."""
    return f"{_DOTTED}{setting}" if setting in parameters(policy.name) and setting != "beta" else setting


def without_settings(policy: Spec, *settings: str) -> Spec:
    """The same without these settings of the rule, however they are written."""
    return policy.without(*(_DOTTED + name for name in settings), *(key(policy, name) for name in settings))


def seeded(policy: Spec, seed: int) -> Spec:
    """The same with a seed for its rule, if it names a rule and no seed."""
    if policy.get(RULE) is None or "seed" in settings_of(policy):
        return policy
    return policy.with_settings(**{f"{_DOTTED}seed": _FIRST_SEED + seed})


def refuse_ambiguous(policy: Spec) -> None:
    """Refuse a setting that both the sketch and the rule have, where only one of them is said."""
    if policy.get(RULE) is None:
        return
    both = set(parameters(policy.name)) & set(rule_parameters(str(policy.get(RULE)))) - {"beta", "seed"}
    for name in both:
        if policy.get(name) is not None and policy.get(_DOTTED + name) is None:
            raise InputError(
                f"{policy}: both the sketch and the rule have {name}; for the rule's write "
                f"{_DOTTED}{name}={policy.get(name)}, beside the sketch's or without it"
            )


def title(policy: Spec) -> str:
    """What figures call the rule."""
    return rule_class(policy.get(RULE, "ucb")).__name__


def listed() -> str:
    """Every rule with its settings, for a help text."""
    return "; ".join(f"{name} ({', '.join(rule_parameters(name))})" for name in RULES)
