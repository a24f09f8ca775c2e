"""What a sketch knows about the spectrum of its data: directions, and intervals with the true values."""

import math
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Matrix
from sketchbandit.errors import InputTypeError
from sketchbandit.linalg import oriented
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.checks import check_count

_ROUNDINGS = 32


class Spectrum(NamedTuple):
    """Squared singular values of a sketch, with intervals that certainly contain those of the data.

    S'S ⪯ X'X ⪯ S'S + e I implies, by Weyl's inequality, that sigma_i²(X) is in [s_i², s_i² + e].

    Attributes
    ----------
    sigma_sq : array
        s_i², the squared singular values of S, largest first.
    lower, upper : array
        The bounds on sigma_i²(X): the interval above, widened by the rounding of the sketch and by
        32·eps·mass, with the eps of its dtype. If the sketch certifies nothing, the interval is [0, mass].
    directions : array
        The right singular vectors of S, as rows.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> sketch = sb.FrequentDirections(2, size=2)
    >>> change = sketch.update([[3.0, 0.0], [0.0, 1.0]])
    >>> spectrum(sketch).sigma_sq
    array([9., 1.])

    """

    sigma_sq: Matrix
    lower: Matrix
    upper: Matrix
    directions: Matrix


def spectrum(sketch: Sketch, count: int | None = None) -> Spectrum:
    """The leading squared singular values of the data, with certified intervals and directions.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data.
    count : int, optional
        How many values. Default: all that the sketch has.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> import sketchbandit as sb
    >>> X = np.random.default_rng(0).standard_normal((300, 30)) * 0.7 ** np.arange(30)
    >>> sketch = sb.FrequentDirections(30, size=8)
    >>> change = sketch.update(X)
    >>> true_sq = np.linalg.svd(X, compute_uv=False)[:5] ** 2
    >>> found = spectrum(sketch, 5)
    >>> bool(((found.lower <= true_sq) & (true_sq <= found.upper)).all())
    True

    """
    if not isinstance(sketch, Sketch):
        raise InputTypeError(
            f"spectrum needs a sketch, got {type(sketch).__name__}; for a policy give policy.sketch, for an "
            "array use numpy.linalg.svd"
        )
    if count is not None:
        check_count("count", count, at_least=0)
    with sketch._lock:  # read everything at one moment
        return _spectrum(sketch, count)


def _spectrum(sketch: Sketch, count: int | None) -> Spectrum:
    if sketch.is_dense:
        covariance = sketch.gram()
        values, vectors = np.linalg.eigh(covariance)
        sigma_sq, directions = np.maximum(values[::-1], 0.0), vectors.T[::-1]
    else:
        rows = np.concatenate(sketch.views()).astype(np.float64, copy=False)
        _, sigma, directions = np.linalg.svd(rows, full_matrices=False)
        sigma_sq = sigma**2
    sigma_sq, directions = sigma_sq[:count], oriented(np.ascontiguousarray(directions[:count]))
    if math.isfinite(sketch.error_bound):
        rounding = _ROUNDINGS * float(np.finfo(sketch.dtype).eps) * sketch.mass + sketch.uncounted
        lower = np.maximum(sigma_sq - rounding - sketch.rounding, 0.0)
        return Spectrum(sigma_sq, lower, sigma_sq + sketch.error_bound + rounding, directions)
    return Spectrum(sigma_sq, np.zeros_like(sigma_sq), np.full_like(sigma_sq, sketch.mass), directions)
