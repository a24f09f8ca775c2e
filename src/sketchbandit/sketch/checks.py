"""Checks of hyperparameters, done once, at construction."""

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Dtype
from sketchbandit.errors import InputError, InputTypeError


def check_count(name: str, value: object, *, at_least: int) -> int:
    """``value`` as an int. Raises for floats, bools and values below ``at_least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    if value < at_least:
        raise InputError(f"{name} must be at least {at_least}, got {value}")
    return int(value)


def check_real(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
) -> float:
    """``value`` as a finite float. Raises if it is outside the limits."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if not math.isfinite(number) or not (above < number < below and at_least <= number <= at_most):
        limits = [("above", above), ("at least", at_least), ("below", below), ("at most", at_most)]
        said = " and ".join(f"{word} {limit:g}" for word, limit in limits if math.isfinite(limit))
        raise InputError(f"{name} must be finite{', ' if said else ''}{said}, got {value!s:.40}")
    return number


def check_compensation(value: object) -> float:
    """``value`` if it is one of the three compensations with a name and a theorem."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InputTypeError(
            f"compensation must be 0, 0.5 or 1, got {value!r} of type {type(value).__name__}"
        )
    if value not in (0.0, 0.5, 1.0):
        raise InputError(f"compensation must be 0 (FD), 0.5 (RFD) or 1 (SCFD), got {value!r}")
    return float(value)


def check_dtype(value: DTypeLike) -> Dtype:
    """float64 or float32 as a numpy dtype."""
    try:
        dtype = np.dtype(value)
    except TypeError as error:
        raise InputTypeError(f"dtype must be numpy.float64 or numpy.float32, got {value!r}") from error
    if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputTypeError(f"dtype must be numpy.float64 or numpy.float32, got {dtype}")
    return dtype
