"""The decision service: chooses arms over HTTP, takes rewards whenever they come, loses none.

``sketchbandit serve`` runs it. From the outside in: ``api`` (HTTP), ``engine`` (decide, reward), ``upkeep``
(expiry, snapshots), ``bandit`` (one of them in memory), ``journal`` (group commit), ``recovery``, ``storage``
(database and snapshots).
"""

from sketchbandit.service.server import serve
from sketchbandit.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "serve"]
