"""The loops of a round, compiled by numba where that is installed."""

from sketchbandit.kernels.backend import all_are_long, kernels, loops

__all__ = ["all_are_long", "kernels", "loops"]
