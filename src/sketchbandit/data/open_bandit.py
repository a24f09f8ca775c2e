"""The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita 2020): logged clicks with true propensities.

Its files lie as its authors ship them, ``obd/POLICY/CAMPAIGN/CAMPAIGN.csv`` (or ``.csv.gz``) and
``item_context.csv`` beside it, in the folder ``SKETCHBANDIT_DATA`` or in the cache.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Labels, Vector
from sketchbandit.data.loading import VARIABLE, places
from sketchbandit.errors import FileError, InputError

POLICIES = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
POSITIONS = 3
TITLE = "Open Bandit Dataset, logged clicks"
LICENCE = "CC BY 4.0"
ORIGIN = "st-tech/zr-obp"
_COLUMNS = ("timestamp", "item_id", "position", "click", "propensity_score")


class OpenBandit(NamedTuple):
    """A log of one policy and one campaign, in the order of time."""

    policy: str
    campaign: str
    time: AnyArray
    item: Labels
    """The item shown, 0, 1, ..."""
    position: Labels
    """Where: 0, 1 or 2."""
    click: Vector
    propensity: Vector
    """The probability of the item at that position."""
    users: Labels
    """The four categories of the user, (rows, 4), numbered from 0."""
    affinity: AnyArray
    """Past clicks of the user on each item, (rows, items)."""

    @property
    def items(self) -> int:
        """How many items there are."""
        return int(self.affinity.shape[1])


def find_open_bandit(policy: str = "random", campaign: str = "all") -> Path | None:
    """The log file; None where it is not here."""
    _check(policy, campaign)
    for place in places():
        for name in (f"{campaign}.csv", f"{campaign}.csv.gz"):
            path = place / "obd" / policy / campaign / name
            if path.is_file():
                return path
    return None


def load_open_bandit(policy: str = "random", campaign: str = "all") -> OpenBandit:
    """A log: "random" chose uniformly, "bts" by Bernoulli Thompson sampling; campaigns all, men, women."""
    path = find_open_bandit(policy, campaign)
    if path is None:
        raise FileNotFoundError(
            f"the log of {policy}, {campaign} is not here: put it at obd/{policy}/{campaign}/{campaign}.csv "
            f"in the folder that {VARIABLE} names; a sample is in the package obp (GitHub: {ORIGIN})"
        )
    return read_open_bandit(path, policy, campaign)


def read_open_bandit(path: Path, policy: str, campaign: str) -> OpenBandit:
    """The log in a file."""
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
            f"{path} is no log of the Open Bandit Dataset: it lacks {', '.join(missing or ['affinities'])}"
        )
    frame = frame.sort_values("timestamp", kind="stable")
    position = frame["position"].to_numpy(dtype=np.int64) - 1
    if not ((position >= 0) & (position < POSITIONS)).all():
        raise FileError(
            f"{path}: positions are 1 to {POSITIONS}, got {position.min() + 1} to {position.max() + 1}"
        )
    return OpenBandit(
        policy=policy,
        campaign=campaign,
        time=pd.to_datetime(frame["timestamp"], utc=True, format="ISO8601").to_numpy(dtype="datetime64[us]"),
        item=frame["item_id"].to_numpy(dtype=np.int64),
        position=position,
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
