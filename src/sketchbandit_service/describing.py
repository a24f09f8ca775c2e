"""Describes the sketch and the health of a bandit, also of one with a model for every action."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypedDict

import numpy as np

from sketchbandit.errors import InputError
from sketchbandit.features import Scaling
from sketchbandit.policy import Health, PerAction, Policy
from sketchbandit.policy.health import untried_arms_sentence
from sketchbandit_service.types import AnyPolicy, Matrix

_SHOWN = 5  # names of untried actions in a sentence


class Stored(NamedTuple):
    """Stored arms and their ids."""

    ids: Sequence[str]
    matrix: Matrix


class DescribedSketch(TypedDict):
    """What is told of a sketch. None: infinite."""

    kind: str
    size: int
    rows: int
    is_exact: bool
    certificate: float | None
    budget: float | None
    limit: float | None


class Described(NamedTuple):
    """The description of a policy. With many models, it describes the worst one."""

    sketch: DescribedSketch
    sentence: str
    is_healthy: bool
    scaling: str
    effective_rounds: float
    """Rewards learned from and not forgotten. With many models, the sum over all."""
    baseline: float | None
    """The mean reward expected of an arm of which nothing is known. None: rewards are learned as they are."""
    untried: list[str]
    """Actions or stored arms that were (nearly) never tried in many rounds. All others are tried."""


def describe(policy: AnyPolicy, stored: Stored | None = None) -> Described:
    """Describe a policy, or its worst model: an unhealthy one, or the one with the largest error.

    ``stored`` are all arms that there are to choose from, if they are few and the same in every decision.
    """
    if not isinstance(policy, PerAction):
        return _of_arms(policy, stored)
    models, healths = policy.policies, policy.health()
    found = {
        name: _of_one(models[name], healths[name], [*map(str, healths[name].untried)]) for name in models
    }
    worst = min(found, key=lambda name: _order(found[name]))
    untried = [name for one in found.values() for name in one.untried]
    sketch = found[worst].sketch.copy()
    sketch["rows"] = sum(one.sketch["rows"] for one in found.values())
    sketch["is_exact"] = all(one.sketch["is_exact"] for one in found.values())
    sentence = f"{len(models)} models; the worst is that of {worst!r}: {found[worst].sentence}"
    if others := [repr(name) for name in untried if name != worst]:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        sentence += f" Hardly ever tried, too: {', '.join(others[:_SHOWN])}{more}."
    effective = sum(one.effective_rounds for one in found.values())
    return found[worst]._replace(
        sketch=sketch, sentence=sentence, effective_rounds=effective, untried=untried
    )


def _of_arms(policy: Policy, stored: Stored | None) -> Described:
    health, untried = policy.health(), []
    if stored is not None:
        with suppress(InputError):  # their scores overflow
            untried = [stored.ids[int(place)] for place in policy.health(stored.matrix).untried]
    if untried:
        health = health._replace(
            sentence=f"{health.sentence} {untried_arms_sentence(untried, policy.rounds)}"
        )
    return _of_one(policy, health, untried)


def _order(of_one: Described) -> tuple[bool, bool, float]:
    """Less for worse models."""
    return of_one.is_healthy, not of_one.untried, -(of_one.sketch["certificate"] or 0.0)


def _read_so(scaling: Scaling | None, health: Health) -> str:
    constant = f", and a constant of {scaling.constant:.4g}" if scaling and scaling.constant else ""
    return f"{health.scaling or 'as they are'}{constant}"


def _of_one(policy: Policy, health: Health, untried: Sequence[str] = ()) -> Described:
    sketch = policy.sketch
    certificate = health.certificate
    told: DescribedSketch = {
        "kind": type(sketch).__name__,
        "size": sketch.size,
        "rows": sketch.row_count,
        "is_exact": certificate == 0.0 and (sketch.is_dense or sketch.error_limit == 0.0),
        "certificate": certificate if np.isfinite(certificate) else None,
        "budget": sketch.budget if np.isfinite(certificate + sketch.budget) else None,
        "limit": sketch.error_limit if np.isfinite(certificate + sketch.error_limit) else None,
    }
    was_never_tried = bool(untried) and policy.rounds == 0  # once or twice may be enough for a bad one
    return Described(
        told,
        health.sentence,
        not (health.heading_for_linear_regret or was_never_tried or health.out_of_range),
        _read_so(policy.scaling, health),
        health.effective_rounds,
        _baseline(policy),
        [*untried],
    )


def _baseline(policy: Policy) -> float | None:
    """The mean reward at margin ``policy.baseline``, through the link if there is one."""
    if not policy._has_baseline:
        return None
    return float(policy.estimate.expected(np.array([policy.baseline]))[0])
