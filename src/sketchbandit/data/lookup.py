"""Finding a data set: SKETCHBANDIT_DATA, then the user's cache, then OpenML."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchbandit.data import openml
from sketchbandit.data.dataset import READERS, DataSet, checked, read_file
from sketchbandit.data.sources import CATALOGUE, Source
from sketchbandit.errors import InputError
from sketchbandit.extras import how_to_install
from sketchbandit.files import replace_file

VARIABLE = "SKETCHBANDIT_DATA"


class Found(NamedTuple):
    """The place of a data set."""

    source: Source
    path: Path | None
    """None if it is embedded, or has to be downloaded."""

    @property
    def here(self) -> bool:
        """Whether it can be read without a download."""
        return self.path is not None or self.source.embedded


def load(name: str, *, label: str | None = None, progress: openml.Progress | None = None) -> DataSet:
    """Load a data set by name, or from a file of your own with a label column.

    Parameters
    ----------
    name : str
        A name in ``CATALOGUE``, such as "digits", or the path of an npz, CSV or Parquet file.
    label : str, optional
        The label column of a file. Default: a column called label, y, class or target.
    progress : callable, optional
        Called during a download with the bytes so far and the total.

    Returns
    -------
    DataSet

    Raises
    ------
    InputError
        For an unknown name, a missing label column, NaN, or a single class.
    FileNotFoundError
        If the data set is not here and cannot be downloaded. The message says which file to put where.

    Examples
    --------
    >>> load("digits").features.shape
    (1797, 64)

    """
    if name in CATALOGUE and label is not None:
        raise InputError(f"{name} has labels of its own; leave out label, which is for files")
    if name not in CATALOGUE:
        if Path(name).suffix.lower() in READERS:
            return read_file(Path(name), label)
        raise InputError(
            f"unknown data set {name!r}; choose from {', '.join(CATALOGUE)}, or give a file "
            f"({', '.join(READERS)})"
        )
    if CATALOGUE[name].embedded:
        return _digits()
    found = find(name)
    if found.path is not None:
        data = read_file(found.path)._replace(name=name)
        found.source.check(data, str(found.path))
        return data
    return _fetch(found.source, progress)


def find(name: str) -> Found:
    """Where the named data set is. ``path`` is None if it is embedded, or not here."""
    source = CATALOGUE[name]
    for place in places():
        if (place / source.file).is_file():
            return Found(source, place / source.file)
    return Found(source, None)


def cache() -> Path:
    """The folder in which downloads are kept."""
    try:
        import platformdirs  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        raise _needs(error) from error
    return Path(platformdirs.user_cache_dir("sketchbandit"))


def places() -> Iterator[Path]:
    """The folders in which data sets are looked for."""
    named = os.environ.get(VARIABLE)
    if named:
        yield Path(named).expanduser()
    yield cache()


def _needs(error: ModuleNotFoundError) -> ModuleNotFoundError:
    text = f"data sets need {error.name}: {how_to_install('experiments')}"
    return ModuleNotFoundError(text, name=error.name)


def _fetch(source: Source, progress: openml.Progress | None) -> DataSet:
    where = " or ".join(str(place / source.file) for place in places())
    if source.openml is None:
        raise FileNotFoundError(
            f"{source.name} is not here and OpenML does not have it: put it at {where}, or set {VARIABLE} "
            "to its "
            f"folder; {source.elsewhere}"
        )
    try:
        data = openml.download(source, progress)
    except OSError as error:
        raise FileNotFoundError(
            f"{source.name} is not here and could not be downloaded ({error}); without a connection put an "
            f"npz with X {(source.rows, source.dim)} and y at {where}, or set {VARIABLE} to its folder"
        ) from error
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=data.features, y=data.labels)
    cache().mkdir(parents=True, exist_ok=True)
    replace_file(cache() / source.file, buffer.getvalue())
    return data


def _digits() -> DataSet:
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        raise _needs(error) from error
    rows, labels = load_digits(return_X_y=True)
    return checked("digits", rows, labels)
