"""Logs from files and frames."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import FileError, InputError
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.logged_arms import Action
from sketchbandit.extras import how_to_install

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".parquet", ".pq", ".npz", ".csv")
COLUMNS = ("chosen", "reward", "probability")
"""Columns of every log."""


def read_log(path: str | Path, *, bandit: str | None = None, dim: int | None = None) -> Log:
    """Read a log from a Parquet, npz or CSV file.

    A Parquet file has the columns ``chosen``, ``reward``, ``probability`` and ``arms`` (a list of lists of
    numbers). Instead of ``arms`` it may have ``context`` (a list of numbers) and ``actions`` (the names
    offered). ``write_log`` writes such files. The export of a service is read too. Arms are read when they
    are needed. An npz file has arrays with these names. A CSV file has the columns ``chosen`` (names of
    actions), ``reward`` and ``probability``, perhaps ``time``, and all other columns are the context.

    Parameters
    ----------
    path : path
        The file.
    bandit : str, optional
        The name of the bandit, if an export of a service has several.
    dim : int, optional
        The number of features, for an export with sparse arms. Default: the largest index plus one.

    Returns
    -------
    Log

    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; for that of a service use `sketchbandit service evaluate`")
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{path}: a log must be one of {', '.join(FORMATS)}, not {path.suffix or 'this'}")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if suffix in (".csv", ".npz"):
        refuse_bandit(path, bandit)
        log = _read_csv(path) if suffix == ".csv" else _read_npz(path)
    else:
        from sketchbandit.evaluation import parquet  # noqa: PLC0415  (an extra, and slow to import)

        log = parquet.read(path, bandit=bandit, dim=dim)
    check_dim(path, dim, log.context_dim or log.dim)
    return log


def _read_npz(path: Path) -> Log:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is damaged or not an npz file of plain arrays") from error
    missing = [name for name in COLUMNS if name not in arrays]
    if missing:
        raise InputError(f"{path}: there is no {', '.join(missing)}; the file has {', '.join(arrays)}")
    wanted = ("arms", "context", "actions", "time", *COLUMNS)
    return Log(**{name: arrays[name] for name in wanted if name in arrays})


def _read_csv(path: Path) -> Log:
    try:
        import pandas as pd  # noqa: PLC0415  (an extra, and slow to import)
    except ModuleNotFoundError as error:
        raise InputError(f"a CSV file needs pandas: {how_to_install('evaluation')}") from error
    try:
        frame = pd.read_csv(path)
    except ValueError as error:  # its parser errors are such
        raise FileError(f"{path} is not a CSV file: {error}") from error
    names = list(map(str, frame.columns))
    refuse_missing_columns(path, [name for name in COLUMNS if name not in names], names)
    context = [name for name in names if name not in ("time", *COLUMNS)]
    if not context:
        raise InputError(f"{path}: there is no column of the context beside {', '.join(names)}")
    return from_frame(frame, context=context, time="time" if "time" in frame else None)


def write_log(log: Log, path: str | Path) -> None:
    """Write a log as Parquet, some rows at a time. An existing file is replaced when all rows are written.

    Parameters
    ----------
    log : Log
        The log.
    path : str or Path
        The file to write, called something.parquet.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> log = Log(arms=np.eye(2), chosen=[0, 1], reward=[1.0, 0.0], probability=[0.5, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_log(log, f"{folder}/log.parquet")
    ...     len(read_log(f"{folder}/log.parquet"))
    2

    """
    from sketchbandit.evaluation import parquet  # noqa: PLC0415  (an extra, and slow to import)

    parquet.write(log, Path(path))


def from_frame(
    frame: "pd.DataFrame",
    *,
    arms: str | None = None,
    context: Sequence[str] | None = None,
    actions: Sequence[Action] | AnyArray | None = None,
    chosen: str = "chosen",
    reward: str = "reward",
    probability: str = "probability",
    time: str | None = None,
) -> Log:
    """Make a log from a DataFrame with one row per decision.

    Parameters
    ----------
    frame : DataFrame
        One row per decision.
    arms : str, optional
        The name of the column that holds arrays (arms, dim).
    context : list of str, optional
        Instead of arms: the columns of the context.
    actions : list of str or array, optional
        With contexts: the names of the actions, or their features. Default: the names in ``chosen``.
    chosen, reward, probability, time : str
        The names of these columns.

    Returns
    -------
    Log

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [0.2, 0.5], "chosen": ["a", "b"], "reward": [1, 0], "probability": 0.5})
    >>> from_frame(frame, context=["age"]).actions
    ('a', 'b')

    """
    needed = [chosen, reward, probability, *filter(None, (time, arms)), *(context or ())]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise InputError(
            f"the frame has no column {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}"
        )
    places = {"chosen": chosen, "reward": reward, "probability": probability}
    if time:
        places["time"] = time
    columns = {name: frame[place].to_numpy() for name, place in places.items()}
    if arms is not None:
        return Log(arms=list(frame[arms]), **columns)
    if context is None:
        raise InputError("give arms, the column of arms, or context, the columns of the context")
    if actions is None:
        if frame[chosen].isna().any():
            raise InputError(f"some of {chosen} are missing; every decision needs the action that was chosen")
        actions, columns["chosen"] = np.unique(columns["chosen"], return_inverse=True)
    texts = [name for name in context if frame[name].dtype.kind not in "fiub"]
    if texts:
        raise InputError(
            f"the context must be numbers, but {texts[0]!r} has {frame[texts[0]].iloc[0]!r}; make a column "
            f"of each value: pandas.get_dummies(frame, columns={texts})"
        )
    return Log(context=frame[list(context)].to_numpy(dtype=np.float64), actions=actions, **columns)


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
