"""The decision service. It chooses arms over HTTP, takes rewards whenever they come and loses none.

``sketchbandit serve`` runs it. The modules, from the outside in: ``server`` (the process), ``http`` (bytes on
the wire), ``api`` (requests and answers; ``api.table`` has the paths), ``upkeep`` (periodic work), ``engine``
(start and stop), ``decisions``, ``rewards``, ``stock`` and ``registry`` (one for each kind of request),
``journal`` (group commit), ``ordering`` (the queue in which each bandit works), ``standby`` (a second
server), ``recovery`` and ``replaying`` (after a restart), ``bandit`` (one bandit in memory), ``storage``
(database and snapshots).
"""

from sketchbandit.service.server import serve
from sketchbandit.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "serve"]
