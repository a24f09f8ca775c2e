"""Environments by name, for experiments: ``classification:data=mnist``, ``gaussian:spectrum=flat``."""

import inspect
from functools import lru_cache
from pathlib import Path
from typing import Any

from sketchbandit import data
from sketchbandit.environment import Classification, Environment, GaussianArms
from sketchbandit.errors import InputError
from sketchbandit.experiments.specs import Spec, spec

NAMES = ("classification", "gaussian")
FLAT, POWER_LAW, LOW_RANK = (spec("gaussian", spectrum=name) for name in ("flat", "power-law", "low-rank"))
MNIST = spec("classification", data="mnist")


def build(environment: Spec, seed: int) -> Environment:
    """The environment of that seed."""
    settings = dict(environment.settings)
    if environment.name == "gaussian":
        known = [name for name in inspect.signature(GaussianArms).parameters if name != "seed"]
        for key in settings:
            if key not in known:
                raise InputError(f"gaussian has no setting {key!r}; it takes {', '.join(known)}")
        return GaussianArms(seed=seed, **settings)  # type: ignore[arg-type]  # checked by the class itself
    if environment.name == "classification":
        first = _classification(str(settings.pop("data")), settings.pop("label", None))
        settings.pop("digest", None)  # names the contents of the user's file, for the key of a run
        return first.reseeded(seed, **settings)  # type: ignore[arg-type]
    raise InputError(f"unknown environment {environment.name!r}; choose from {', '.join(NAMES)}")


def title(environment: Spec) -> str:
    """What to call it in a figure."""
    if environment.name == "gaussian":
        arms = ", the same arms every round" if environment.get("fixed") else ""
        return f"synthetic, {environment.get('spectrum', 'flat')} spectrum{arms}"
    name = str(environment.get("data"))
    return name if name in data.CATALOGUE else Path(name).name


@lru_cache(maxsize=4)
def data_set(name: str, label: Any = None) -> data.DataSet:
    """The data set, read once in a process."""
    return data.load(name, label=label)


@lru_cache(maxsize=4)
def _classification(name: str, label: Any) -> Classification:
    read = data_set(name, label)
    return Classification(read.features, read.labels, name=read.name)
