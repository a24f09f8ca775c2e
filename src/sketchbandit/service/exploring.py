"""The exploration rule of a bandit, as clients write it and as it is kept."""

from typing import Any

from sketchbandit.errors import SketchBanditError
from sketchbandit.explore import Explore, InverseGap, Thompson
from sketchbandit.explore.named import RULES, rule_of, rule_parameters
from sketchbandit.service.problems import Invalid

_SEED = 0  # of a generator that is never drawn from: the service gives its own with every decision
_MOST_SAMPLES = 100_000
_OURS = ("seed", "per")


def rule_settings(given: Any, exploration: float) -> dict[str, Any] | None:
    """A rule as it is kept: its name and all of its settings; None: as by default.

    ``exploration``, the share drawn uniformly, is another name of the rule's ``floor``.
    """
    if given is None:
        return None
    takes = _taken_by(given)
    if isinstance(given, dict):
        for name in _OURS:
            if name in given:
                raise Invalid(f"explore: leave out {name}; the service draws by itself, for every decision")
        if "floor" in given and exploration:
            raise Invalid("explore: floor and exploration are the same share; give one of them")
        if takes and (unknown := [name for name in given if name not in ("rule", *takes)]):
            raise Invalid(f"explore: {given['rule']} has no setting {unknown[0]!r:.80}{_hint(takes)}")
    try:
        rule = rule_of(given)
    except (SketchBanditError, TypeError, ValueError) as error:
        raise Invalid(f"explore: {str(error)[:300]}{_hint(takes)}") from error
    if isinstance(rule, Thompson) and rule.samples > _MOST_SAMPLES:
        raise Invalid(f"explore: samples is {rule.samples}; up to {_MOST_SAMPLES} are drawn")
    return kept_settings(rule)


def kept_settings(rule: Explore) -> dict[str, Any]:
    """Its name and all of its settings, but for those that are the service's own."""
    return {name: value for name, value in rule.settings().items() if name not in _OURS}


def _taken_by(given: Any) -> list[str]:
    """The settings that the rule takes; none if it is not known."""
    name = given.get("rule") if isinstance(given, dict) else given
    if not isinstance(name, str) or name not in RULES:
        return []
    return [setting for setting in rule_parameters(name) if setting not in _OURS]


def _hint(takes: list[str]) -> str:
    return f"; it takes {', '.join(takes)}" if takes else ""


def rule_from(settings: dict[str, Any] | None, exploration: float) -> Explore:
    """The rule that a policy is built with."""
    kept = settings or {"rule": "ucb"}
    floor = kept.get("floor", 0.0) or exploration
    made = rule_of({**kept, "floor": floor})
    return rule_of({**made.settings(), "seed": _SEED}) if made.is_random else made


def reaches_all(rule: Explore) -> bool:
    """Whether every arm offered has a chance, so that the log can tell of any other policy."""
    if rule.uniform_share > 0.0 or isinstance(rule, Thompson):
        return True
    return isinstance(rule, InverseGap) and rule.eliminate is None
