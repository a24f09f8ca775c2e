"""The log that a bandit began with."""

import json
from typing import NamedTuple


class Origin(NamedTuple):
    """The log that a bandit had learned from when it was created."""

    bandit: int
    """The number of the one whose log it is, ..."""
    name: str
    """... and what it was called."""
    until: int
    """The last record that counts."""
    rewards: int = 0
    """How many it has learned from."""
    dropped: int = 0
    """How many were no longer in the log."""
    retired: tuple[str, ...] = ()
    """Actions that were offered no more."""

    def to_json(self) -> str:
        """As text, for the journal."""
        return json.dumps(self._asdict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Origin":
        """Back from ``to_json``."""
        saved = json.loads(text)
        return cls(**{**saved, "retired": tuple(saved["retired"])})
