"""The regret bounds of the paper's table of algorithms, evaluated with their constants."""

from typing import NamedTuple

import numpy as np

from sketchbandit import theory
from sketchbandit.simulation.specs import spec
from sketchbandit_paper.definitions.contenders import DBS_FD
from sketchbandit_paper.plan import rounds_of
from sketchbandit_paper.results import Results

_HORIZONS = tuple(10**k for k in range(3, 16))
_WITHOUT_CONSTANTS = ("CBRAP",)  # in the paper


class Evaluated(NamedTuple):
    """A bound, and the first power of ten T at which it is below the trivial 2T; inf: none up to 10^15."""

    bound: theory.Row
    first: float
    has_constants: bool


def evaluated(results: Results) -> list[Evaluated]:
    """From which horizon on each bound says anything.

    Delta_T is that of the arms SOFUL chose, and grows on in proportion to T, as it does where the spectrum
    is flat. Bounds take ridge 1, noise 0.1, unit arms and theta, delta = 1/T.
    """
    name, size, dim = "algorithms", 50, 500
    played = rounds_of(results.experiments[name], results.profile)
    delta = results.final(name, spec("soful", size=size), "delta").mean
    below: dict[str, float] = {}
    for horizon in _HORIZONS:
        bounds = theory.table(
            theory.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=1.0 / horizon),
            horizon=horizon,
            dim=dim,
            size=size,
            ridge=1.0,
            delta_t=delta * horizon / played,
            epsilon=float(DBS_FD.get("epsilon")),
            last_size=dim,
        )
        for bound in bounds:
            if bound.regret < 2.0 * horizon:
                below.setdefault(bound.algorithm, horizon)
    return [
        Evaluated(bound, below.get(bound.algorithm, np.inf), bound.algorithm not in _WITHOUT_CONSTANTS)
        for bound in bounds
    ]
