"""A data set, read from npz, CSV and Parquet files, and the checks that are made before any work starts."""

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.arrays import AnyArray, Arrays, Labels, Rows
from sketchbandit.errors import FileError, InputError

READERS = (".npz", ".csv", ".parquet")
_CSR = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix
LABELS = ("label", "y", "class", "target")  # the names tried when none is given


class DataSet(NamedTuple):
    """A data set: rows of features as stored, dense or CSR, and a label 0, 1, ... per row."""

    name: str
    features: Rows
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


def checked(name: str, features: Rows, labels: ArrayLike, columns: tuple[str, ...] | None = None) -> DataSet:
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


def _where_not_finite(features: Rows, columns: tuple[str, ...] | None) -> str:
    if sparse.issparse(features):
        return "the sparse features contain NaN or inf"
    row, column = np.argwhere(~np.isfinite(features))[0]
    return f"row {row}, {column_name(columns, column)} is {features[row, column]}"


def _arrays(features: Rows) -> tuple[AnyArray, ...]:
    if sparse.issparse(features):
        return (features.data, features.indices, features.indptr)
    return (features,)


def read_file(path: Path, label: str | None = None) -> DataSet:
    """Read an npz (X and y, or a CSR matrix and y), CSV or Parquet file with a label column."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise InputError(f"{path}: cannot read {path.suffix or 'this'}; give one of {', '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return _read_npz(path, label) if suffix == ".npz" else _read_table(path, label)


def _read_npz(path: Path, label: str | None) -> DataSet:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays: Arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is damaged or not an npz file of plain arrays") from error
    is_sparse = set(_CSR) <= arrays.keys()
    if "X" not in arrays and not is_sparse:
        raise InputError(f"{path}: no array X (nor {', '.join(_CSR)}); it has {_some(arrays)}")
    labels = arrays.pop(_label_column(path, list(arrays), label))
    if is_sparse:
        shape = tuple(int(n) for n in arrays["shape"])
        try:
            features: Rows = sparse.csr_array(
                (arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape
            )
            features.check_format(full_check=True)
        except ValueError as error:
            raise FileError(f"{path} is damaged: it is no CSR matrix: {error}") from error
    else:
        features = arrays["X"]
    return checked(path.name, features, labels)


def _read_table(path: Path, label: str | None) -> DataSet:
    import pandas as pd  # noqa: PLC0415  (an extra, and slow to import)

    try:
        frame = pd.read_parquet(path) if path.suffix.lower() == ".parquet" else pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    frame.columns = frame.columns.map(str)
    if "Unnamed: 0" in frame.columns:
        raise InputError(
            f"{path}: the first column has no name, which looks like row numbers; drop it (index=False)"
        )
    column = _label_column(path, list(frame.columns), label)
    labels = frame.pop(column)
    if frame.empty:
        raise InputError(f"{path}: no rows, or no column but {column!r}")
    if labels.isna().any():
        raise InputError(f"{path}: row {int(labels.isna().to_numpy().argmax())} has no label in {column!r}")
    wrong = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if wrong:
        raise InputError(
            f"{path}: features must be numbers, but these columns are not: {_some(wrong)}; "
            "encode or drop them"
        )
    return checked(path.name, frame.to_numpy(dtype=np.float64), labels.to_numpy(), tuple(frame.columns))


def _label_column(path: Path, columns: list[str], label: str | None) -> str:
    for name in (label,) if label is not None else LABELS:
        if name in columns:
            return name
    if label is not None:
        raise InputError(f"{path}: no label column {label!r}; it has {_some(columns)}")
    raise InputError(
        f"{path}: which column is the label? None is called {', '.join(LABELS)}; name it (--label); "
        f"there are {_some(columns)}"
    )


def _some(names: Iterable[str], most: int = 12) -> str:
    """The first and the last names: the label is usually one of these."""
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 2], f"{len(names) - most} more", *names[-2:]]
    return ", ".join(names)
