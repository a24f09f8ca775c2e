"""The ridge system that every policy stands on."""

from sketchbandit.ridge.arms import Arms, DenseArms, SparseArms, norm_sq_of, project_arms
from sketchbandit.ridge.system import RidgeSystem, Scan

__all__ = ["Arms", "DenseArms", "RidgeSystem", "Scan", "SparseArms", "norm_sq_of", "project_arms"]
