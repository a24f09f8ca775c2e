"""Logs from files and frames."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sketchbandit.errors import FileError, InputError
from sketchbandit.evaluation.log import Log

FORMATS = (".parquet", ".pq", ".npz")
_COLUMNS = ("chosen", "reward", "probability")


def read_log(path: str | Path, *, bandit: str | None = None, dim: int | None = None) -> Log:
    """A log from a file.

    Parquet: ``chosen``, ``reward``, ``probability`` and ``arms`` (a list of lists of numbers), or
    ``context`` (a list of numbers) and ``actions`` (the names offered), which is what ``write_log`` writes;
    or the export of a service. Arms are read when they are needed. npz: arrays of these names.

    Parameters
    ----------
    path : path
        The file.
    bandit : str, optional
        Which one, if an export has several.
    dim : int, optional
        Length of an arm, for an export with sparse ones; else the largest index that occurs says it.

    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; that of a service is read by `sketchbandit service evaluate`")
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a log is one of {', '.join(FORMATS)}, not {path.suffix or 'this'}")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if path.suffix.lower() != ".npz":
        from sketchbandit.evaluation import parquet  # noqa: PLC0415  (an extra, and slow to import)

        return parquet.read(path, bandit=bandit, dim=dim)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is damaged or not an npz file of plain arrays") from error
    missing = [name for name in _COLUMNS if name not in arrays]
    if missing:
        raise InputError(f"{path}: there is no {', '.join(missing)}; it has {', '.join(arrays)}")
    known = {
        name: arrays[name] for name in ("arms", "context", "actions", "time", *_COLUMNS) if name in arrays
    }
    return Log(**known)


def write_log(log: Log, path: str | Path) -> None:
    """Write a log as Parquet, some rows at a time; a file that is there is replaced when all is written."""
    from sketchbandit.evaluation import parquet  # noqa: PLC0415  (an extra, and slow to import)

    parquet.write(log, Path(path))


def from_frame(
    frame: Any,
    *,
    arms: str | None = None,
    context: Sequence[str] | None = None,
    actions: Any = None,
    chosen: str = "chosen",
    reward: str = "reward",
    probability: str = "probability",
    time: str | None = None,
) -> Log:
    """A log from a pandas frame, a row a decision.

    Parameters
    ----------
    frame : DataFrame
        The decisions.
    arms : str, optional
        The column of arrays (arms, dim).
    context : list of str, optional
        Instead: the columns of the context.
    actions
        With contexts: names or features; unless given, the names that occur in ``chosen``.
    chosen, reward, probability, time : str
        Their columns.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [0.2, 0.5], "chosen": ["a", "b"], "reward": [1, 0], "probability": 0.5})
    >>> from_frame(frame, context=["age"]).actions
    ('a', 'b')

    """
    needed = [
        chosen,
        reward,
        probability,
        *([time] if time else []),
        *([arms] if arms else []),
        *(context or ()),
    ]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise InputError(
            f"the frame has no column {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}"
        )
    columns = {"chosen": frame[chosen].to_numpy(), "reward": frame[reward].to_numpy()}
    columns |= {
        "probability": frame[probability].to_numpy(),
        "time": frame[time].to_numpy() if time else None,
    }
    if arms is not None:
        return Log(arms=list(frame[arms]), **columns)
    if context is None:
        raise InputError("give the column of arms, or the columns of the context")
    if actions is None:
        actions = sorted(set(columns["chosen"].tolist()))
    return Log(context=frame[list(context)].to_numpy(dtype=np.float64), actions=actions, **columns)
