"""The paper's theorems as functions: radii, regret bounds, and the effect of a sketch size on them."""

from sketchbandit.theory.confidence import Confidence
from sketchbandit.theory.newton import newton_regret
from sketchbandit.theory.one_pass import mix_cost
from sketchbandit.theory.radii import fd_radius, oful_radius, rfd_radius
from sketchbandit.theory.regression import regression_bound
from sketchbandit.theory.regret import (
    Row,
    cbrap_regret,
    epsilon_for,
    epsilon_within,
    fd_regret,
    final_size,
    inflation_of,
    oful_regret,
    rfd_regret,
    table,
    trivial_regret,
)
from sketchbandit.theory.sharp import sketched_radius, sketched_regret
from sketchbandit.theory.spectrum import spectral_error_of, vacuous_exponent

__all__ = [
    "Confidence",
    "Row",
    "cbrap_regret",
    "epsilon_for",
    "epsilon_within",
    "fd_radius",
    "fd_regret",
    "final_size",
    "inflation_of",
    "mix_cost",
    "newton_regret",
    "oful_radius",
    "oful_regret",
    "regression_bound",
    "rfd_radius",
    "rfd_regret",
    "sketched_radius",
    "sketched_regret",
    "spectral_error_of",
    "table",
    "trivial_regret",
    "vacuous_exponent",
]
