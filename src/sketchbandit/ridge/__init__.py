"""The ridge system that every policy stands on."""

from sketchbandit.ridge.arms import Arms, DenseArms, SparseArms, norm_sq_of, project_arms
from sketchbandit.ridge.system import RidgeSystem, Saved, Scan

__all__ = ["Arms", "DenseArms", "RidgeSystem", "Saved", "Scan", "SparseArms", "norm_sq_of", "project_arms"]
