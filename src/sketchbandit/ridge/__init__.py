"""The ridge system that every policy stands on."""

from sketchbandit.ridge.arms import Arms, DenseArms, SparseArms, project_arms
from sketchbandit.ridge.system import RidgeSystem, Scan

__all__ = ["Arms", "DenseArms", "RidgeSystem", "Scan", "SparseArms", "project_arms"]
