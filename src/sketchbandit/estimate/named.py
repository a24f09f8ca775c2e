"""Reward models by name, for names that come from a command line, a request or a file."""

from collections.abc import Mapping
from typing import Any

from sketchbandit.arrays import Scalars
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.generalized import Logistic, Poisson
from sketchbandit.estimate.linear import Linear
from sketchbandit.estimate.robust import Robust
from sketchbandit.registry import setting_names

MODELS: dict[str, type[Estimate]] = {model.kind: model for model in (Linear, Logistic, Poisson, Robust)}


def model_class(name: Any) -> type[Estimate]:
    """The class of the reward model with this name, built-in or a user's own with a ``kind``."""
    if not isinstance(name, str) or not Estimate.has_kind(name):
        raise InputError(f"unknown reward model {name!r:.80}; choose from {', '.join(MODELS)}")
    return Estimate.of_kind(name)


def model_parameters(name: Any) -> list[str]:
    """The names of the settings of a reward model."""
    return list(setting_names(model_class(name)))


def model_of(given: Any) -> Estimate:
    """A reward model: given as such, by its name, or as a mapping of ``model``, its name, and its settings.

    Examples
    --------
    >>> model_of({"model": "robust", "scale": 0.5})
    Robust(moment=1.5, scale=0.5, threshold=0.25, caution=1.0)

    """
    if isinstance(given, Estimate):
        return given
    if isinstance(given, str):
        return model_class(given)()
    if not isinstance(given, Mapping) or "model" not in given:
        raise InputTypeError(
            "rewards must be a reward model, its name, or a mapping such as "
            f'{{"model": "robust", "scale": 0.1}}, got {given!r:.80}'
        )
    name, settings = given["model"], {key: value for key, value in given.items() if key != "model"}
    known = model_parameters(name)
    for key in settings:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"{name} has no setting {key!r:.80}; {takes}")
    return model_class(name)(**settings)


def model_settings(model: Estimate) -> Scalars:
    """The settings as JSON values, with the name as ``model``: the input of ``model_of``.

    Examples
    --------
    >>> model_settings(model_of("linear"))
    {'model': 'linear'}

    """
    return {"model": model.kind, **model.settings()}
