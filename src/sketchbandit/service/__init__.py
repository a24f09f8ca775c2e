"""The decision service: chooses arms over HTTP, takes rewards whenever they come, loses none.

``sketchbandit serve`` runs it. From the outside in: ``server`` (a process), ``http`` (bytes), ``api`` (what
is asked; ``api.table`` has the paths), ``upkeep`` (what happens by itself), ``engine`` (start and end),
``decisions``, ``rewards``, ``stock`` and ``registry`` (the desks), ``journal`` (group commit), ``ordering``
(the lane in which each bandit works), ``standby`` (a second server), ``recovery`` and ``replaying`` (after a
restart), ``bandit`` (one of them in memory), ``storage`` (database and snapshots).
"""

from sketchbandit.service.server import serve
from sketchbandit.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "serve"]
