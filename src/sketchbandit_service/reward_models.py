"""The reward model of a bandit, as clients write it and as it is stored."""

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.estimate import Estimate
from sketchbandit.estimate.base import model_of, model_settings
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import JsonObject


def kept_model(given: object) -> JsonObject | None:
    """A model as it is stored: its name and all of its settings. None: that of the policy, linear."""
    if given is None:
        return None
    try:
        return dict(model_settings(model_of(given)))
    except (SketchBanditError, TypeError, ValueError) as error:
        raise Invalid(f"rewards: {str(error)[:300]}") from error


def check_reward(model: Estimate, reward: float, what: str = "") -> None:
    """Refuse a reward that the model cannot take."""
    try:
        model.check_reward(reward)
    except InputError as error:
        raise Invalid(f"{what}{error}") from error
