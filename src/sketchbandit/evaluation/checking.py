"""What a log must be: as many of everything, finite rewards, probabilities above zero, arms there."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.sources import Sets


def read_column(name: str, values: Any, remedy: str) -> Vector:
    """Numbers, one a decision, none missing."""
    if np.ma.is_masked(values):
        raise InputError(f"some of {name} are masked; {remedy}")
    array = np.asarray(values)
    if array.dtype.kind == "O" and any(value is None for value in array.ravel()):
        at = next(i for i, value in enumerate(array.ravel()) if value is None)
        raise InputError(f"{name} {at} is missing; {remedy}")
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name} is one number a decision, got the shape {array.shape}")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InputError(f"{name} {bad[0]} is {numbers[bad[0]]} ({len(bad)} such rows); {remedy}")
    return numbers


def read_rewards(values: Any) -> Vector:
    """Finite rewards."""
    return read_column("reward", values, "leave out decisions whose reward is not known, or give the default")


def read_probabilities(values: Any) -> Vector:
    """Probabilities above 0 and at most 1."""
    found = read_column(
        "probability", values, "every decision needs the probability with which its arm was chosen"
    )
    bad = np.flatnonzero(~((found > 0.0) & (found <= 1.0)))
    if len(bad):
        raise InputError(
            f"probability {bad[0]} is {found[bad[0]]} ({len(bad)} such rows); that of an arm that was chosen "
            "is above 0 and at most 1: log choice.probability, not a score"
        )
    return found


def read_chosen(values: Any) -> AnyArray:
    """Indices of arms."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"chosen is one index a decision, got the shape {array.shape}")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputTypeError(
            f"chosen must be the index of the arm chosen, got an array of dtype {array.dtype}"
        )
    if len(array) and array.min() < 0:
        raise InputError(f"chosen {int(array.argmin())} is {array.min()}; an index counts from 0")
    return array.astype(np.int64)


def check_lengths(**columns: Any) -> int:
    """How many decisions there are, if all say the same."""
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(f"every decision has one of each, got {said}")
    count = next(iter(lengths.values()))
    if not count:
        raise InputError("the log is empty: there is no decision in it")
    return count


def check_order(time: AnyArray) -> None:
    """Refuse rows that are not in the order of their time: a split by rows would not be one by time."""
    back = np.flatnonzero(time[1:] < time[:-1])
    if len(back):
        at = int(back[0]) + 1
        raise InputError(f"time {at} is {time[at]}, before that of the row above it; sort the rows by time")


def check_arms(sets: Sets, counts: AnyArray, chosen: AnyArray, first: int) -> None:
    """Refuse arms that are not finite, and indices beyond them; ``first`` is the number of the first."""
    beyond = np.flatnonzero(chosen >= counts)
    if len(beyond):
        at = int(beyond[0])
        raise InputError(
            f"decision {first + at}: arm {chosen[at]} was chosen, and there are {counts[at]} (counted from 0)"
        )
    if isinstance(sets, np.ndarray):
        if np.isfinite(sets.sum()):
            return
        bad = np.flatnonzero(~np.isfinite(sets).all(axis=(1, 2)))
    else:
        values = (arms.data if sparse.issparse(arms) else arms for arms in sets)
        bad = np.flatnonzero([not np.isfinite(some).all() for some in values])
    if len(bad):
        raise InputError(
            f"decision {first + int(bad[0])}: its arms contain NaN or inf; mend or drop that row"
        )
