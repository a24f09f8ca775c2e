"""The paper's theorems as functions: radii, regret bounds, and the effect of a sketch size on them."""

from sketchbandit.theory.confidence import Confidence, mix_cost
from sketchbandit.theory.radii import fd_radius, oful_radius, rfd_radius, sketched_radius
from sketchbandit.theory.regret import (
    Row,
    cbrap_regret,
    epsilon_for,
    epsilon_within,
    fd_regret,
    final_size,
    inflation_of,
    newton_regret,
    oful_regret,
    regression_bound,
    rfd_regret,
    sketched_regret,
    spectral_error_of,
    table,
    trivial_regret,
    vacuous_exponent,
)

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
