"""The loops of a round, compiled by numba where that is installed."""

from sketchbandit.kernels.backend import kernels

__all__ = ["kernels"]
