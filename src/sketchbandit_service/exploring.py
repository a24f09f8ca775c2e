"""The exploration rule of a bandit, as clients write it and as it is stored."""

from collections.abc import Mapping

from sketchbandit.errors import SketchBanditError
from sketchbandit.explore import Explore, InverseGap, Thompson
from sketchbandit.explore.base import RULES, rule_of
from sketchbandit.registry import setting_names
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import Json, JsonObject

_SEED = 0  # seed of a generator that is never used: the service passes its own with every decision
_MOST_SAMPLES = 100_000
_OURS = ("seed", "per")


def rule_settings(given: object, exploration: float) -> JsonObject | None:
    """A rule as it is stored: its name and all of its settings. None: the default.

    ``exploration``, the share of uniform choices, is another name for the rule's ``floor``.
    """
    if given is None:
        return None
    takes = _taken_by(given)
    if isinstance(given, dict):
        for name in _OURS:
            if name in given:
                raise Invalid(f"explore: leave out {name}; the service sets it itself")
        if "floor" in given and exploration:
            raise Invalid("explore: floor and exploration are the same share; give one of them")
        if takes and (unknown := [name for name in given if name not in ("rule", *takes)]):
            raise Invalid(f"explore: {given['rule']} has no setting {unknown[0]!r:.80}{_hint(takes)}")
    try:
        rule = rule_of(given)
    except (SketchBanditError, TypeError, ValueError) as error:
        raise Invalid(f"explore: {str(error)[:300]}{_hint(takes)}") from error
    if isinstance(rule, Thompson) and rule.samples > _MOST_SAMPLES:
        raise Invalid(f"explore: samples is {rule.samples}; give at most {_MOST_SAMPLES}")
    return kept_settings(rule)


def kept_settings(rule: Explore) -> JsonObject:
    """The name and all settings of a rule, except for those that the service sets itself."""
    return {name: value for name, value in rule.settings().items() if name not in _OURS}


def _taken_by(given: object) -> list[str]:
    """The settings that the rule takes. Empty if the rule is unknown."""
    name = given.get("rule") if isinstance(given, dict) else given
    if not isinstance(name, str) or name not in RULES.built_in:
        return []
    return [setting for setting in setting_names(RULES.named(name)) if setting not in _OURS]


def _hint(takes: list[str]) -> str:
    return f"; it takes {', '.join(takes)}" if takes else ""


def rule_from(settings: Mapping[str, Json] | None, exploration: float) -> Explore:
    """The rule with which a policy is built."""
    kept = settings or {"rule": "ucb"}
    floor = kept.get("floor", 0.0) or exploration
    made = rule_of({**kept, "floor": floor})
    return rule_of({**made.settings(), "seed": _SEED}) if made.is_random else made


def reaches_all(rule: Explore) -> bool:
    """Whether every offered arm can be chosen, so that the log can evaluate any other policy."""
    if rule.uniform_share > 0.0 or isinstance(rule, Thompson):
        return True
    return isinstance(rule, InverseGap) and rule.eliminate is None
