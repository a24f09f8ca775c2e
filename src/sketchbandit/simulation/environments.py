"""Environments by name: ``classification:data=mnist``, ``gaussian:spectrum=flat``, ``motley``.

``contextual:data=mnist`` has one sample as the context and the labels as the actions. With ``standardize=1``
the columns of a data set have mean 0 and deviation 1 before rows are normalised.

Each may be varied by further settings: ``clicks=0.02`` (a base rate) and ``lift`` make clicks of its rewards,
``degrees=1.5`` or ``outliers=0.05`` and ``scale`` give its noise heavy tails, ``switch=1000`` changes it
after so many rounds, ``turn=5000`` turns the theta* of gaussian arms.
"""

import inspect
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sketchbandit import data
from sketchbandit.environment import (
    Classification,
    Clicks,
    ContextualClassification,
    Environment,
    GaussianArms,
    HeavyTails,
    Rotating,
    Switching,
)
from sketchbandit.errors import InputError
from sketchbandit.estimate import Estimate
from sketchbandit.simulation.columns import standardised
from sketchbandit.simulation.specs import Spec, Value, spec

NAMES = ("classification", "contextual", "gaussian", "motley")
FLAT, POWER_LAW, LOW_RANK = (spec("gaussian", spectrum=name) for name in ("flat", "power-law", "low-rank"))
_ALIKE = 9  # the label of the kind whose members are alike
MNIST = spec("classification", data="mnist")
CHANGES = ("switch", "turn")
"""Settings that are numbers of rounds."""
VARIATIONS = ("clicks", "lift", "degrees", "outliers", "scale", "switch", "turn")
_WITH = {"lift": ("clicks",), "scale": ("degrees", "outliers")}
"""Settings of a variation, and what asks for it."""
_ROUNDS_LOOKED_AT = 20
_FAR = 500_000  # seeds between a theta* and the one that follows it


def build(environment: Spec, seed: int) -> Environment:
    """The environment of that seed, with the variations that its settings ask for."""
    asked: dict[str, Any] = {name: value for name, value in environment.settings if name in VARIATIONS}
    for name, needed in _WITH.items():
        if name in asked and not any(variation in asked for variation in needed):
            raise InputError(f"{environment}: {name} says nothing without {' or '.join(needed)}")
    if asked and environment.name == "contextual":
        raise InputError(f"the contextual protocol has no variations; leave out {', '.join(asked)}")
    found = _plain(environment.without(*asked), seed)
    if "switch" in asked:
        found = Switching(found, _other(found), at=asked["switch"])
    if "turn" in asked:
        if not isinstance(found, GaussianArms):
            raise InputError("only theta* of gaussian arms can turn; give classification a switch")
        found = Rotating(found, turn=asked["turn"])
    if "degrees" in asked or "outliers" in asked:
        tails = {name: asked[name] for name in ("degrees", "outliers", "scale") if name in asked}
        found = HeavyTails(found, seed=seed, **tails)
    if "clicks" in asked:
        lift = {"lift": asked["lift"]} if "lift" in asked else {}
        found = Clicks(found, base_rate=asked["clicks"], seed=seed, **lift)
    return found


def variations(environment: Spec) -> dict[str, Value]:
    """Its settings, all of which have to vary it."""
    for name, _ in environment.settings:
        if name not in VARIATIONS:
            raise InputError(
                f"{environment}: no variation is called {name!r}; there are {', '.join(VARIATIONS)}"
            )
    return dict(environment.settings)


def check_rewards(environment: Spec, model: Estimate) -> None:
    """Refuse rewards that a model has no place for, as the first rounds of the environment have them."""
    if type(model).check_reward is Estimate.check_reward:
        return
    for drawn in build(environment, seed=0).rounds(_ROUNDS_LOOKED_AT):
        for arm in range(len(drawn.means)):
            try:
                model.check_reward(drawn.reward(arm))
            except InputError as error:
                raise InputError(
                    f"{environment}: {error}; clicks=0.1 makes clicks of any environment"
                ) from error


def _other(first: Environment) -> Environment:
    """What the world becomes when it changes: another theta*, or the next label as the target."""
    if isinstance(first, Classification):
        return first.reseeded(first.seed, (first.target + 1) % first.label_count)
    if isinstance(first, GaussianArms):
        return first.with_theta_of(first.seed + _FAR)
    raise InputError(f"{first.name} has nothing that could change")


def _plain(environment: Spec, seed: int) -> Environment:
    settings = dict(environment.settings)
    if environment.name == "gaussian":
        known = [name for name in inspect.signature(GaussianArms).parameters if name != "seed"]
        for key in settings:
            if key not in known:
                raise InputError(f"gaussian has no setting {key!r}; it takes {', '.join(known)}")
        return GaussianArms(seed=seed, **settings)  # type: ignore[arg-type]  # checked by the class itself
    if environment.name in _OF_DATA:
        settings.pop("digest", None)  # names the contents of the user's file, for the key of a run
        first = _of_data(
            _OF_DATA[environment.name],
            str(settings.pop("data")),
            settings.pop("label", None),
            settings.pop("normalise", "rows"),
            bool(settings.pop("standardize", False)),
        )
        reseeded: Environment = first.reseeded(seed, **settings)
        return reseeded
    if environment.name == "motley":
        return _motley(**settings).reseeded(seed, target=_ALIKE)
    raise InputError(f"unknown environment {environment.name!r}; choose from {', '.join(NAMES)}")


def title(environment: Spec) -> str:
    """What to call it in a figure.

    >>> title(spec("gaussian", clicks=0.02, switch=500))
    'synthetic, flat spectrum, another theta* after 500 rounds, clicks at 2%'
    """
    asked = dict(environment.settings)
    other = "target" if environment.name == "classification" else "theta*"
    words = {
        "switch": f"another {other} after {asked.get('switch')} rounds",
        "turn": f"theta* turns in {asked.get('turn')} rounds",
        "degrees": f"t({asked.get('degrees')}) noise",
        "outliers": f"{asked.get('outliers', 0.0):.0%} outliers",
        "clicks": f"clicks at {asked.get('clicks', 0.0):.0%}",
    }
    return ", ".join([_plain_title(environment), *(said for name, said in words.items() if name in asked)])


def _plain_title(environment: Spec) -> str:
    if environment.name == "gaussian":
        arms = ", mixed" if environment.get("mixed") else ""
        arms += ", the same arms every round" if environment.get("fixed") else ""
        return f"synthetic, {environment.get('spectrum', 'flat')} spectrum{arms}"
    if environment.name == "rows":
        name = environment.get("data")
        return "random rows" if name == "gaussian" else f"rows of {name}"
    if environment.name == "motley":
        return "nine motley kinds of arms, and one that pays, whose members are alike"
    name = str(environment.get("data"))
    words = [name if name in data.CATALOGUE else Path(name).name]
    words += ["labels as actions"] if environment.name == "contextual" else []
    words += ["columns standardised"] if environment.get("standardize") else []
    return ", ".join(words)


@lru_cache(maxsize=4)
def data_set(name: str, label: Any = None) -> data.DataSet:
    """The data set, read once in a process."""
    return data.load(name, label=label)


_OF_DATA = {"classification": Classification, "contextual": ContextualClassification}
"""Environments of a data set."""


@lru_cache(maxsize=4)
def _of_data(kind: Any, name: str, label: Any, normalise: Any, standardize: bool) -> Any:
    read = data_set(name, label)
    features = standardised(read.features) if standardize else read.features
    return kind(features, read.labels, name=read.name, normalise=normalise)


@lru_cache(maxsize=2)
def _motley(normalise: Any = "rows") -> Classification:
    """Ten kinds of arms about one centre; members of the last lie near one another, and only they pay."""
    spread = np.array([1.0] * _ALIKE + [0.2])[:, np.newaxis, np.newaxis]
    rows = 3.0 * np.eye(50)[0] + spread * np.random.default_rng(0).standard_normal((_ALIKE + 1, 200, 50))
    labels = np.repeat(np.arange(_ALIKE + 1), 200)
    return Classification(rows.reshape(-1, 50), labels, name="motley", normalise=normalise)
