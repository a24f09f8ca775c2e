# mypy: allow-untyped-defs, allow-untyped-calls
"""The upper confidence bound, as the compiled loops compute it."""

from math import sqrt

from sketchbandit.kernels.compiling import compiled


@compiled
def upper_bound_of(mean, radius, quadratic):
    """The mean plus the radius times the width; ``explore.scores`` has it for numpy."""
    return mean + radius * sqrt(quadratic)
