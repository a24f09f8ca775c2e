"""The log that a bandit learned from when it was created."""

import json
from typing import NamedTuple


class Origin(NamedTuple):
    """The log that a bandit learned from when it was created."""

    bandit: int
    """The number of the bandit whose log it is, ..."""
    name: str
    """... and its name at that time."""
    until: int
    """The last record of the log that counts."""
    rewards: int = 0
    """Rewards that were learned from."""
    dropped: int = 0
    """Rewards that were no longer in the log."""
    retired: tuple[str, ...] = ()
    """Actions that were retired."""

    def to_json(self) -> str:
        """As text, for the journal."""
        return json.dumps(self._asdict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Origin":
        """Read what ``to_json`` has written."""
        saved = json.loads(text)
        return cls(**{**saved, "retired": tuple(saved["retired"])})
