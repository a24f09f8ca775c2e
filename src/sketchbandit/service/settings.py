"""How the service is run: one value, made by the command line and read everywhere."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What a client can ask for at most. All are checked before anything is allocated."""

    body_bytes: int = 16 * MIB
    request_bytes: int = 64 * MIB
    """All requests under way: bodies, arms made from them, rankings, answers that are not read yet. Arms take
    two to eight times as much as their body."""
    header_bytes: int = 64 * 1024
    arms: int = 100_000
    """Arms of one decision, and arms stored for one bandit."""
    dim: int = 1_000_000
    bandit_bytes: int = 1024 * MIB
    """What the policy of one bandit may come to hold, whatever its stream."""
    bandits: int = 100
    open_bytes: int = 256 * MIB
    """Features of open decisions, over all bandits."""
    actions: int = 1000
    """Of one bandit, retired ones included."""
    candidates: int = 8
    """Of one bandit."""
    slate: int = 1000
    """Arms shown together, each with a reward of its own."""
    batch: int = 1000
    """Decisions or rewards in one batch."""
    waiting: int = 2000
    """Records waiting for their commit."""
    connections: int = 1000
    request_seconds: float = 30.0
    """For a whole request to arrive, headers and body."""
    decide_seconds: float = 60.0
    """Of one decision, and of what waits for one bandit, as estimated beforehand."""
    magnitude: float = 1e9
    """Of a reward."""
    arm_length: float = 1e20
    """Unix times in nanoseconds fit; squares of it are far from overflowing."""


@dataclass(frozen=True)
class Settings:
    """Where the state lies and how it is kept."""

    state: Path
    database: str | None = None
    """An SQLAlchemy URL; by default SQLite inside ``state``."""
    limits: Limits = field(default_factory=Limits)
    device: str | None = None
    """Where many stored arms are kept for decisions, as torch calls it; None: in memory."""
    snapshot_updates: int = 20_000
    """A snapshot at least after so many rewards learned ..."""
    snapshot_seconds: float = 60.0
    """... and after so many seconds, if anything was learned."""
    snapshots_kept: int = 3
    snapshots: Literal["folder", "database"] = "folder"
    """Where they are written; both are read."""
    retention_seconds: float | None = None
    """How long answered decisions are kept for export; None: for ever."""
    storage_patience: float = 3.0
    """Seconds to wait for a database that has gone away or is locked before answering 503."""
    accept_clock: bool = False
    """Whether a clock far ahead of the journal is right: decisions of then are overdue for real."""
    drain_seconds: int = 10
    """For requests under way to be finished at shutdown."""
