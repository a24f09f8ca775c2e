"""A data set, and the checks that are made before any work starts."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Labels
from sketchbandit.errors import InputError


class DataSet(NamedTuple):
    """A data set: rows of features as stored, dense or CSR, and a label 0, 1, ... per row."""

    name: str
    features: Any
    labels: Labels
    columns: tuple[str, ...] | None = None
    """The names of the columns, if they have names."""

    @property
    def dim(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    @property
    def classes(self) -> int:
        """The number of labels."""
        return int(self.labels.max()) + 1

    @property
    def digest(self) -> str:
        """SHA-256 of the arrays, to tell whether two copies are equal."""
        digest = hashlib.sha256()
        for array in (*_arrays(self.features), self.labels):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def column_name(columns: tuple[str, ...] | None, column: int) -> str:
    """How messages call a column: by its name, or by its number."""
    return f"column {column} (counted from 0)" if columns is None else f"column {columns[column]}"


def checked(name: str, features: Any, labels: Any, columns: tuple[str, ...] | None = None) -> DataSet:
    """Make a data set with labels numbered from 0. Raises an InputError that says what is wrong."""
    if not sparse.issparse(features):
        features = np.asarray(features, order="C")  # the last digits of sums depend on the layout
    if features.ndim != 2 or 0 in features.shape:
        raise InputError(
            f"{name}: features must be a matrix with rows and columns, got shape {features.shape}"
        )
    if features.dtype.kind not in "fiub":
        raise InputError(f"{name}: features must be numbers, got {features.dtype}")
    values = np.asarray(labels)
    if values.shape != (features.shape[0],):
        raise InputError(
            f"{name}: {features.shape[0]} rows need as many labels, got an array of shape {values.shape}"
        )
    stored = features.data if sparse.issparse(features) else features
    if stored.dtype.kind == "f" and not np.isfinite(stored).all():
        raise InputError(f"{name}: {_where_not_finite(features, columns)}; drop or impute such rows first")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{name}: row {int(np.argmin(np.isfinite(values)))} has no label")
    names, numbers = np.unique(values, return_inverse=True)
    if len(names) > max(2, len(values) // 2):
        raise InputError(
            f"{name}: {len(values)} rows have {len(names)} different labels: is that a number to predict? "
            "Classification needs a few labels, each on several rows"
        )
    if len(names) < 2:
        raise InputError(f"{name}: every row has the label {names[0]}; classification needs two or more")
    return DataSet(name, features, numbers.astype(np.int64), columns)


def _where_not_finite(features: Any, columns: tuple[str, ...] | None) -> str:
    if sparse.issparse(features):
        return "the sparse features contain NaN or inf"
    row, column = np.argwhere(~np.isfinite(features))[0]
    return f"row {row}, {column_name(columns, column)} is {features[row, column]}"


def _arrays(features: Any) -> tuple[Any, ...]:
    if sparse.issparse(features):
        return (features.data, features.indices, features.indptr)
    return (features,)
