"""Downloading from OpenML: the description of a data set by id, then its ARFF file, checked by md5."""

import hashlib
import http.client
import io
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable

import numpy as np

from sketchbandit.data.dataset import DataSet, checked
from sketchbandit.data.sources import Source
from sketchbandit.errors import FileError

Progress = Callable[[int, int], None]
"""Called with the bytes so far and the total (0 if the server does not say)."""

SERVER = "https://www.openml.org"
_CHUNK = 1 << 16
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.*)", re.IGNORECASE)


def download(source: Source, progress: Progress | None = None) -> DataSet:
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
    data = parse_arff(payload.decode(), target, source)
    source.check(data, f"OpenML's {source.openml}")
    return data


def parse_arff(text: str, target: str, source: Source) -> DataSet:
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
