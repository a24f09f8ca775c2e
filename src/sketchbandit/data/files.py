"""Reading data sets from files: npz (ours or the user's), CSV and Parquet."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sketchbandit.data.dataset import DataSet, checked
from sketchbandit.errors import FileError, InputError

if TYPE_CHECKING:
    from sketchbandit.arrays import AnyArray

READERS = (".npz", ".csv", ".parquet")
_CSR = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix
LABELS = ("label", "y", "class", "target")  # the names tried when none is given


def read(path: Path, label: str | None = None) -> DataSet:
    """Read an npz (X and y, or a CSR matrix and y), CSV or Parquet file with a label column."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise InputError(f"{path}: cannot read {path.suffix or 'this'}; give one of {', '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if suffix == ".npz":
        return _read_npz(path, label)
    return _read_table(path, label)


def _read_npz(path: Path, label: str | None) -> DataSet:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays: dict[str, AnyArray] = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is damaged or not an npz file of plain arrays") from error
    is_sparse = set(_CSR) <= arrays.keys()
    if "X" not in arrays and not is_sparse:
        raise InputError(f"{path}: no array X (nor {', '.join(_CSR)}); it has {_some(arrays)}")
    labels = arrays.pop(_label_column(path, list(arrays), label))
    if is_sparse:
        shape = tuple(int(n) for n in arrays["shape"])
        try:
            features: Any = sparse.csr_array(
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


def _some(names: Any, most: int = 12) -> str:
    """The first and the last names: the label is usually one of these."""
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 2], f"{len(names) - most} more", *names[-2:]]
    return ", ".join(names)
