"""The loops of a round, compiled by numba where that is installed."""

from sketchbandit.kernels.backend import CANCELLED, CLOSE, all_are_long, choose_again, kernels, loops

__all__ = ["CANCELLED", "CLOSE", "all_are_long", "choose_again", "kernels", "loops"]
