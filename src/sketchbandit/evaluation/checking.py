"""Checks of a log: equal lengths, finite rewards, probabilities above zero, existing arms."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.sources import Sets


def read_column(name: str, values: Any, remedy: str) -> Vector:
    """Read real numbers, one per decision, none missing."""
    if np.ma.is_masked(values):
        raise InputError(f"some of {name} are masked; {remedy}")
    array = np.asarray(values)
    _refuse_missing(name, array, remedy)
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name} must be one number per decision, got an array of shape {array.shape}")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InputError(f"{name} {bad[0]} is {numbers[bad[0]]} ({len(bad)} such rows); {remedy}")
    return numbers


def read_rewards(values: Any) -> Vector:
    """Read finite rewards."""
    return read_column("reward", values, "leave out decisions whose reward is not known, or give the default")


def read_probabilities(values: Any) -> Vector:
    """Read probabilities above 0 and at most 1."""
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
    """Read indices of arms."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"chosen must be one index per decision, got an array of shape {array.shape}")
    _refuse_missing("chosen", array, "every decision needs the index of the arm that was chosen")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputTypeError(
            f"chosen must be the index of the arm chosen, got an array of dtype {array.dtype}"
        )
    if len(array) and array.min() < 0:
        raise InputError(f"chosen {int(array.argmin())} is {array.min()}; an index counts from 0")
    return array.astype(np.int64)


def _refuse_missing(name: str, array: AnyArray, remedy: str) -> None:
    """Raise for None, pandas' NA, and nan."""
    if array.dtype.kind == "O":
        bad = [at for at, value in enumerate(array.flat) if value is None or type(value).__name__ == "NAType"]
    else:
        bad = np.flatnonzero(np.isnan(array)).tolist() if array.dtype.kind == "f" else []
    if bad:
        said = "missing" if array.dtype.kind == "O" else "nan"
        raise InputError(f"{name} {bad[0]} is {said} ({len(bad)} such rows); {remedy}")


def check_lengths(**columns: Any) -> int:
    """The number of decisions. Raises unless all columns have the same length."""
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(f"every decision needs one of each, got {said}")
    count = next(iter(lengths.values()))
    if not count:
        raise InputError("the log is empty: it has no decisions")
    return count


def refuse_bandit(path: Path, bandit: str | None) -> None:
    """Raise if a bandit is named for a file that has none."""
    if bandit is not None:
        raise InputError(f"{path} is not an export of a service and names no bandits; leave out {bandit!r}")


def check_dim(path: Path, dim: int | None, found: int) -> None:
    """Raise if the number of features that was given is not that of the log."""
    if dim is not None and dim != found:
        raise InputError(
            f"{path}: its arms have {found} features, but dim (--dim) is {dim}; leave it out, or give {found}"
        )


def refuse_missing_columns(path: Path, missing: Sequence[str], names: Sequence[str]) -> None:
    """Raise if columns are missing, with their names."""
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        raise InputError(f"{path}: there is no {noun} {', '.join(missing)}; the file has {', '.join(names)}")


def check_order(time: AnyArray) -> None:
    """Raise unless rows are sorted by time: otherwise a split by rows would not be one by time."""
    back = np.flatnonzero(time[1:] < time[:-1])
    if len(back):
        at = int(back[0]) + 1
        raise InputError(f"time {at} is {time[at]}, before that of the row above it; sort the rows by time")


def check_chosen(chosen: AnyArray, counts: int | AnyArray, first: int = 0) -> None:
    """Raise for indices beyond the number of arms. ``first`` is the first row number."""
    beyond = np.flatnonzero(chosen >= counts)
    if len(beyond):
        at = int(beyond[0])
        there = np.broadcast_to(counts, chosen.shape)[at]
        raise InputError(
            f"decision {first + at}: arm {chosen[at]} was chosen, and there are {there} (counted from 0)"
        )


def check_arms(sets: Sets, counts: AnyArray, chosen: AnyArray, first: int) -> None:
    """Raise for arms that are not finite, and for indices beyond them. ``first`` is the first row number."""
    check_chosen(chosen, counts, first)
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
