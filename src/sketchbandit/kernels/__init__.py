"""The loops of a round, compiled by numba where that is installed."""

from sketchbandit.kernels.backend import CANCELLED, all_are_long, kernels, loops

__all__ = ["CANCELLED", "all_are_long", "kernels", "loops"]
