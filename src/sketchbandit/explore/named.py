"""Exploration rules by name, for names that come from a command line, a request or a file."""

from collections.abc import Mapping
from typing import Any

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore.base import FIELDS, Explore
from sketchbandit.explore.greedy import EpsilonGreedy, Greedy
from sketchbandit.explore.inverse_gap import InverseGap
from sketchbandit.explore.thompson import Thompson
from sketchbandit.explore.ucb import UCB
from sketchbandit.registry import setting_names
from sketchbandit.theory import Confidence

RULES: dict[str, type[Explore]] = {
    rule.kind: rule for rule in (UCB, Thompson, InverseGap, EpsilonGreedy, Greedy)
}


def rule_class(name: Any) -> type[Explore]:
    """The class of the rule with this name, built-in or a user's own with a ``kind``."""
    if not isinstance(name, str) or not Explore.has_kind(name):
        raise InputError(f"unknown exploration rule {name!r}; choose from {', '.join(RULES)}")
    return Explore.of_kind(name)


def rule_parameters(name: str) -> list[str]:
    """The names of the settings of a rule."""
    return list(setting_names(rule_class(name)))


def rule_of(given: Any) -> Explore:
    """A rule, given as such, by its name, or as a mapping with its name as ``rule`` and its settings.

    Examples
    --------
    >>> rule_of({"rule": "thompson", "scale": 0.5}).settings()["scale"]
    0.5

    """
    if isinstance(given, Explore):
        return given
    if isinstance(given, str):
        return rule_class(given)()
    if not isinstance(given, Mapping) or "rule" not in given:
        raise InputTypeError(
            f'explore must be a rule, its name, or a mapping such as {{"rule": "thompson", "scale": 0.1}}, '
            f"got {given!r:.80}"
        )
    settings = {key: value for key, value in given.items() if key != "rule"}
    known = rule_parameters(given["rule"])
    for key in settings:
        if key not in known:
            raise InputError(f"{given['rule']} has no setting {key!r}; it takes {', '.join(known)}")
    return rule_class(given["rule"])(**{key: _read(value) for key, value in settings.items()})


def _read(value: Any) -> Any:
    """A number, or a Confidence from a mapping of its fields. Missing fields have their defaults."""
    return Confidence(**value) if isinstance(value, Mapping) and value.keys() <= FIELDS else value
