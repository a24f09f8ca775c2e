"""Describes the sketch and the health of a bandit, also of one with a model for every action."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.policy import Health, PerAction
from sketchbandit.scaling import Scaling


class Described(NamedTuple):
    """The description of a policy. With many models, it describes the worst one."""

    sketch: dict[str, Any]
    sentence: str
    is_healthy: bool
    scaling: str
    effective_rounds: float
    """Rewards learned from and not forgotten. With many models, the sum over all."""


def describe(policy: Any) -> Described:
    """Describe a policy, or its worst model: an unhealthy one, or the one with the largest error."""
    if not isinstance(policy, PerAction):
        return _of_one(policy, policy.health())
    models, healths = policy.policies, policy.health()
    found = {name: _of_one(models[name], healths[name]) for name in models}
    worst = min(found, key=lambda name: (found[name].is_healthy, -(found[name].sketch["certificate"] or 0.0)))
    rows = sum(one.sketch["rows"] for one in found.values())
    is_exact = all(one.sketch["is_exact"] for one in found.values())
    sketch = {**found[worst].sketch, "rows": rows, "is_exact": is_exact}
    sentence = f"{len(models)} models; the worst is that of {worst!r}: {found[worst].sentence}"
    effective = sum(one.effective_rounds for one in found.values())
    return Described(sketch, sentence, found[worst].is_healthy, found[worst].scaling, effective)


def _read_so(scaling: Scaling | None, health: Health) -> str:
    constant = f", and a constant of {scaling.constant:.4g}" if scaling and scaling.constant else ""
    return f"{health.scaling or 'as they are'}{constant}"


def _of_one(policy: Any, health: Health) -> Described:
    sketch = policy.sketch
    certificate = health.certificate
    told = {
        "kind": type(sketch).__name__,
        "size": sketch.size,
        "rows": sketch.row_count,
        "is_exact": certificate == 0.0 and (sketch.is_dense or sketch.error_limit == 0.0),
        "certificate": certificate if np.isfinite(certificate) else None,
        "budget": sketch.budget if np.isfinite(certificate + sketch.budget) else None,
        "limit": sketch.error_limit if np.isfinite(certificate + sketch.error_limit) else None,
    }
    is_healthy = not (health.heading_for_linear_regret or health.untried or health.out_of_range)
    read_so = _read_so(policy.scaling, health)
    return Described(told, health.sentence, is_healthy, read_so, health.effective_rounds)
