"""Data sets by name: what is known about each, where it is looked for, and its download from OpenML."""

import hashlib
import http.client
import io
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchbandit.data.dataset import READERS, DataSet, checked, read_file
from sketchbandit.errors import FileError, InputError
from sketchbandit.extras import how_to_install
from sketchbandit.files import replace_file


class Source(NamedTuple):
    """One named data set."""

    name: str
    title: str
    licence: str
    rows: int
    dim: int
    classes: int
    openml: int | None
    """Its OpenML id; None if OpenML does not have it."""
    dtype: str
    digest: str
    """``DataSet.digest`` of the copy that the reproduction was made with."""
    elsewhere: str = ""
    """For a data set that is not on OpenML: its origin, and how to make the file."""

    @property
    def embedded(self) -> bool:
        """Whether it comes with a package and needs no file."""
        return self.name == "digits"

    def check(self, data: DataSet, where: str) -> None:
        """Raise unless the data have the right shape and classes."""
        if (data.features.shape, data.classes) != ((self.rows, self.dim), self.classes):
            raise FileError(
                f"{where} is not {self.name}: it has shape {data.features.shape} and {data.classes} classes, "
                f"not {(self.rows, self.dim)} and {self.classes}"
            )

    @property
    def file(self) -> str:
        """The file name in ``SKETCHBANDIT_DATA`` and in the cache."""
        return f"{self.name}.npz"

    @property
    def origin(self) -> str:
        """The origin, in a few words."""
        if self.openml is not None:
            return f"OpenML {self.openml}"
        return "scikit-learn" if self.embedded else "UCI 218"


_FARM_ADS = (
    "unpack farm-ads-vect from the UCI repository (data set 218), then X, y = sklearn.datasets."
    "load_svmlight_file('farm-ads-vect'); numpy.savez_compressed('farm-ads.npz', data=X.data, "
    "indices=X.indices, indptr=X.indptr, shape=X.shape, y=y > 0)"
)

_KNOWN = (
    # name, title, licence, rows, dim, classes, openml id, dtype, digest, elsewhere
    Source(
        *("digits", "8x8 handwritten digits", "CC BY 4.0", 1797, 64, 10, None, "float64"),
        digest="f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443",
    ),
    Source(
        *("mnist", "MNIST handwritten digits", "CC BY-SA 3.0", 70000, 784, 10, 554, "uint8"),
        digest="b3fe36794a3a345d09632e9d79f122d61ca91a07e5a22f8536973655bacf2a78",
    ),
    Source(
        *("cnae-9", "Brazilian company descriptions", "CC BY 4.0", 1080, 856, 9, 1468, "float64"),
        digest="3f860483a0a805f83e1ef5924d8e95ed6c989644e286942df27eea7b2bb66c40",
    ),
    Source(
        *("mfeat", "Zernike moments of numerals", "CC BY 4.0", 2000, 47, 10, 22, "float64"),
        digest="29d697a398ba7097041edeb3b93e816d6ca4cffafde2000dfc66ec5dd3f5b6b1",
    ),
    Source(
        *("spam", "Spambase e-mail statistics", "CC BY 4.0", 4601, 57, 2, 44, "float64"),
        digest="ac5f1044ec0e8fcde656ad01b11dcb23b294c852a64c1a0ca68be767a5e1e790",
    ),
    Source(
        *("farm-ads", "Farm Ads, bag of words (sparse)", "CC BY 4.0", 4143, 54877, 2, None, "float32"),
        digest="24c7e783fd946071ef3f4feedf35394be48c071684b848963dd472c36025db2b",
        elsewhere=_FARM_ADS,
    ),
)
CATALOGUE: dict[str, Source] = {source.name: source for source in _KNOWN}


VARIABLE = "SKETCHBANDIT_DATA"
Progress = Callable[[int, int], None]
"""Called with the bytes so far and the total (0 if the server does not say)."""

SERVER = "https://www.openml.org"
_CHUNK = 1 << 16
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.*)", re.IGNORECASE)


class Found(NamedTuple):
    """The place of a data set."""

    source: Source
    path: Path | None
    """None if it is embedded, or has to be downloaded."""

    @property
    def here(self) -> bool:
        """Whether it can be read without a download."""
        return self.path is not None or self.source.embedded


def load(name: str, *, label: str | None = None, progress: Progress | None = None) -> DataSet:
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


def _fetch(source: Source, progress: Progress | None) -> DataSet:
    where = " or ".join(str(place / source.file) for place in places())
    if source.openml is None:
        raise FileNotFoundError(
            f"{source.name} is not here and OpenML does not have it: put it at {where}, or set {VARIABLE} "
            f"to its folder; {source.elsewhere}"
        )
    try:
        data = _download(source, progress)
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


def _download(source: Source, progress: Progress | None = None) -> DataSet:
    """Download a data set. Raises OSError without a connection, and FileError if it arrives damaged."""
    server = os.environ.get("SKETCHBANDIT_OPENML", SERVER).rstrip("/")
    address = f"{server}/api/v1/json/data/{source.openml}"
    try:
        answer = json.loads(_get(address))
    except ValueError as error:
        raise OSError(f"{address} did not answer with JSON: {error}") from error
    try:
        description = answer["data_set_description"]
        url, expected = description["url"], description["md5_checksum"]
        target = description["default_target_attribute"]
    except (KeyError, TypeError) as error:
        raise FileError(f"OpenML's description of {source.openml} lacks {error}") from None
    payload = _get(url, progress)
    found = hashlib.md5(payload, usedforsecurity=False).hexdigest()
    if found != expected:
        raise FileError(f"{source.name} came damaged: its md5 is {found}, OpenML says {expected}; try again")
    data = _parse_arff(payload.decode(), target, source)
    source.check(data, f"OpenML's {source.openml}")
    return data


def _parse_arff(text: str, target: str, source: Source) -> DataSet:
    """Read a dense ARFF file with numeric features and integer class names, in file order."""
    import pandas as pd  # noqa: PLC0415  (an extra, and slow to import)

    names, lines = [], io.StringIO(text)
    for line in lines:
        attribute = _ATTRIBUTE.match(line.strip())
        if attribute:
            names.append(attribute[1].strip("'\""))
        elif line.strip().lower() == "@data":
            break
    if target not in names:
        raise FileError(f"the file of {source.name} has no attribute {target!r}")
    try:
        frame = pd.read_csv(
            lines, header=None, names=names, comment="%", quotechar="'", skipinitialspace=True
        )
        labels = frame.pop(target).astype(np.int64).to_numpy()
        features = frame.to_numpy(dtype=np.float64)
    except ValueError as error:
        raise FileError(f"the file of {source.name} is not dense numeric ARFF: {error}") from error
    return checked(source.name, features.astype(source.dtype), labels)


def _get(url: str, progress: Progress | None = None) -> bytes:
    if not url.startswith(("https://", "http://")):
        raise FileError(f"OpenML gave an address that is neither http nor https: {url}")
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310  (the scheme is checked above)
            total = int(response.headers.get("Content-Length") or 0)
            parts, come = [], 0
            while part := response.read(_CHUNK):
                parts.append(part)
                come += len(part)
                if progress is not None:
                    progress(come, total)
    except urllib.error.HTTPError as error:
        raise OSError(f"{url} answered {error.code} {error.reason}") from error
    except http.client.HTTPException as error:
        raise OSError(f"{url} broke off: {error!r}") from error
    if total and come < total:
        raise OSError(f"{url} ended after {come} of {total} bytes")
    return b"".join(parts)
