"""The effect of a fixed sketch size on the regret for a given stream: the paper's Section 2.3."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.errors import InputError
from sketchbandit.linalg import fd_bound, singular_values_sq
from sketchbandit.sketch.checks import check_count


def spectral_error_of(stream: Any, size: int) -> float:
    """Delta_T of eq. (spectral error): min over k < size of |X - X_k|_F² / (size - k), for the rows X.

    Parameters
    ----------
    stream : array or sparse matrix of shape (n, dim)
        The rows X, for instance all arms played.
    size : int
        l, the sketch size.

    Examples
    --------
    >>> spectral_error_of(np.eye(4), size=2)
    2.0

    """
    size = check_count("size", size, at_least=1)
    rows = stream if sparse.issparse(stream) else np.asarray(stream)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2:
        raise InputError(
            f"the stream must be a matrix of real numbers, got {rows.dtype} of shape {rows.shape}"
        )
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise InputError("the stream contains NaN or inf; rows must be finite")
    return fd_bound(singular_values_sq(rows), size)


def vacuous_exponent(compensation: float) -> float:
    """The growth exponent of Delta_T from which on the regret bound of a fixed sketch size is linear.

    (1 + Delta)^(3/2) sqrt(T) >= T from Delta = T^(1/3) on (Observation 1, FD). With compensation the bound
    has sqrt(Delta T), which is linear from Delta = T on (Observation 2, RFD).
    """
    return 1.0 if compensation > 0.0 else 1.0 / 3.0
