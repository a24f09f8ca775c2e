"""The one-dimensional equation of an implicit step along A^-1 x."""

from collections.abc import Callable

_MOST_STEPS = 2500  # halvings from the largest float to the smallest; about five are usual
_FARTHEST = 1e250
_DIGITS = 4e-16


def implicit_margin(pull: Callable[[float], tuple[float, float]], *, margin: float, reach: float) -> float:
    """The solution z of z = margin + reach·pull(z). It is unique, because the pull decreases in z.

    ``pull`` returns the pull and the curvature, by which it decreases.

    z minimises loss(z) + (z - margin)² / (2·reach), where the loss has the slope -pull(z). This is Newton's
    method between two bounds. Its first iterate is the step of the second-order surrogate (Zhang et al. 2025,
    eq. of the OMD estimator).

    Examples
    --------
    >>> round(implicit_margin(lambda z: (3.0 - z, 1.0), margin=0.0, reach=1.0), 12)
    1.5

    """
    slope, curvature = pull(margin)
    if not slope or not reach > 0.0:
        return margin
    far = margin + reach * slope  # z cannot be further, because the pull only decreases on the way
    far = min(max(far, -_FARTHEST), _FARTHEST)
    low, high = min(margin, far), max(margin, far)
    z = margin + reach * slope / (1.0 + reach * curvature)
    before = abs(reach * slope)
    for _ in range(_MOST_STEPS):
        if not low < z < high:
            z = 0.5 * low + 0.5 * high
        slope, curvature = pull(z)
        off = (z - margin) - reach * slope
        if off > 0.0:
            high = z
        elif off < 0.0:
            low = z
        else:
            return z
        after = z - off / (1.0 + reach * curvature)
        if abs(after - z) <= _DIGITS * (abs(z) + abs(margin)):
            return min(max(after, low), high)
        z = after if abs(off) <= 0.5 * before else 0.5 * low + 0.5 * high  # bisect if Newton is slow
        before = abs(off)
    return z
