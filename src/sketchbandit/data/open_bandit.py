"""The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita 2020): logged clicks with true propensities.

The files must be as the authors ship them: ``obd/POLICY/CAMPAIGN/CAMPAIGN.csv`` (or ``.csv.gz``) with
``item_context.csv`` beside it, in the folder ``SKETCHBANDIT_DATA`` or in the cache.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Labels, Vector
from sketchbandit.data.lookup import VARIABLE, places
from sketchbandit.errors import FileError, InputError

POLICIES = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
POSITIONS = 3
LICENCE = "CC BY 4.0"
ORIGIN = "st-tech/zr-obp"
_COLUMNS = ("timestamp", "item_id", "position", "click", "propensity_score")


class OpenBandit(NamedTuple):
    """A log of one policy and one campaign, sorted by time."""

    policy: str
    campaign: str
    time: AnyArray
    item: Labels
    """The item shown, 0, 1, ..."""
    position: Labels
    """The position of the item: 0, 1 or 2."""
    click: Vector
    propensity: Vector
    """The propensity: the probability of the item at that position."""
    users: Labels
    """The four categories of the user, (rows, 4), numbered from 0."""
    affinity: AnyArray
    """Past clicks of the user on each item, (rows, items)."""

    @property
    def items(self) -> int:
        """The number of items."""
        return int(self.affinity.shape[1])


def find_open_bandit(policy: str = "random", campaign: str = "all") -> Path | None:
    """The path of the log file; None if it is not here."""
    _check(policy, campaign)
    for place in places():
        for name in (f"{campaign}.csv", f"{campaign}.csv.gz"):
            path = place / "obd" / policy / campaign / name
            if path.is_file():
                return path
    return None


def load_open_bandit(policy: str = "random", campaign: str = "all") -> OpenBandit:
    """Load a log. "random" chose uniformly, "bts" by Thompson sampling. Campaigns: all, men, women."""
    path = find_open_bandit(policy, campaign)
    if path is None:
        raise FileNotFoundError(
            f"the log of {policy}, {campaign} is not here: put it at obd/{policy}/{campaign}/{campaign}.csv "
            f"in the folder that {VARIABLE} names; a sample is in the package obp (GitHub: {ORIGIN})"
        )
    return read_open_bandit(path, policy, campaign)


def read_open_bandit(path: Path, policy: str, campaign: str) -> OpenBandit:
    """Read the log in a file."""
    import pandas as pd  # noqa: PLC0415  (an extra, and slow to import)

    try:
        frame = pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    missing = [name for name in _COLUMNS if name not in frame.columns]
    affinity = [name for name in frame.columns if name.startswith("user-item_affinity_")]
    users = [name for name in frame.columns if name.startswith("user_feature_")]
    if missing or not affinity:
        raise FileError(
            f"{path} is not a log of the Open Bandit Dataset: it lacks {', '.join(missing or ['affinities'])}"
        )
    if frame.empty:
        raise FileError(f"{path} has a header but no rows: it was cut off; get it again")
    row, column = (found[:1] for found in np.nonzero(frame[[*_COLUMNS, *users, *affinity]].isna()))
    if len(row):
        name = [*_COLUMNS, *users, *affinity][column[0]]
        raise FileError(f"{path}: row {row[0]} has no {name}: it was cut off or changed; get it again")
    for name, least, most in (("position", 1, POSITIONS), ("item_id", 0, len(affinity) - 1)):
        if not frame[name].between(least, most).all():
            raise FileError(
                f"{path}: {name} must be {least} to {most}, got {frame[name].min()} to {frame[name].max()}"
            )
    try:
        time = pd.to_datetime(frame["timestamp"], utc=True, format="ISO8601")
    except ValueError as error:
        raise FileError(f"{path}: a timestamp is not a time: {str(error).splitlines()[0]}") from error
    frame = frame.assign(timestamp=time).sort_values("timestamp", kind="stable")
    return OpenBandit(
        policy=policy,
        campaign=campaign,
        time=frame["timestamp"].to_numpy(dtype="datetime64[us]"),
        item=frame["item_id"].to_numpy(dtype=np.int64),
        position=frame["position"].to_numpy(dtype=np.int64) - 1,
        click=frame["click"].to_numpy(dtype=np.float64),
        propensity=frame["propensity_score"].to_numpy(dtype=np.float64),
        users=np.column_stack([np.unique(frame[name], return_inverse=True)[1] for name in users]),
        affinity=frame[affinity].to_numpy(dtype=np.float32),
    )


def _check(policy: str, campaign: str) -> None:
    if policy not in POLICIES or campaign not in CAMPAIGNS:
        raise InputError(
            f"unknown log {policy!r}, {campaign!r}; policies are {', '.join(POLICIES)}, campaigns "
            f"{', '.join(CAMPAIGNS)}"
        )
