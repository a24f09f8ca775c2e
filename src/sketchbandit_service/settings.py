"""How the service is run. The command line makes one value of it, and everything else reads it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """The most that a client can ask for. All limits are checked before anything is allocated."""

    body_bytes: int = 16 * MIB
    request_bytes: int = 64 * MIB
    """For all requests under way: bodies, the arms read from them, rankings, answers that are not yet sent.
    Arms take two to eight times as much memory as their body."""
    header_bytes: int = 64 * 1024
    arms: int = 100_000
    """Arms of one decision, and arms stored for one bandit."""
    dim: int = 1_000_000
    bandit_bytes: int = 1024 * MIB
    """The most memory that the policy of one bandit may ever need, whatever the data."""
    bandits: int = 100
    open_bytes: int = 256 * MIB
    """Features of open decisions, over all bandits."""
    actions: int = 1000
    """Actions of one bandit, including retired ones."""
    candidates: int = 8
    """Candidates of one bandit."""
    slate: int = 1000
    """Arms shown together, each with its own reward."""
    batch: int = 1000
    """Decisions or rewards in one batch."""
    waiting: int = 2000
    """Records that wait for their commit."""
    connections: int = 1000
    request_seconds: float = 30.0
    """Time for a whole request to arrive, headers and body."""
    decide_seconds: float = 60.0
    """The longest estimated time of one decision, and of all work that waits for one bandit."""
    magnitude: float = 1e9
    """The largest size of a reward."""
    arm_length: float = 1e20
    """The largest length of an arm. Unix times in nanoseconds fit; the square is far from overflow."""


@dataclass(frozen=True)
class Settings:
    """Where the state is stored, and how it is kept."""

    state: Path
    database: str | None = None
    """An SQLAlchemy URL. By default it is SQLite inside ``state``."""
    limits: Limits = field(default_factory=Limits)
    device: str | None = None
    """The device that holds large sets of stored arms for decisions, as torch names it. None: main memory."""
    snapshot_updates: int = 20_000
    """A snapshot is written after at most this many learned rewards ..."""
    snapshot_seconds: float = 60.0
    """... and after this many seconds, if anything was learned."""
    snapshots_kept: int = 3
    snapshots: Literal["folder", "database"] = "folder"
    """Where snapshots are written. They are read from both."""
    retention_seconds: float | None = None
    """How long answered decisions are kept for export. None: for ever."""
    storage_patience: float = 3.0
    """Seconds to wait for a database that is away or locked, before answering 503."""
    accept_clock: bool = False
    """Trust a clock that is far ahead of the journal. Decisions of that earlier time then expire."""
    drain_seconds: int = 10
    """Seconds for requests under way to finish at shutdown."""
