"""The decision service: chooses arms over HTTP, takes rewards whenever they come, loses none.

``sketchbandit serve`` runs it. From the outside in: ``api`` (HTTP; the paths are in ``api.routes``),
``upkeep`` (expiry, snapshots), ``engine`` (start and end), ``decisions``, ``rewards`` and ``registry`` (what
is asked of it), ``estimating`` (probabilities that take time), ``journal`` (group commit), ``recovery``,
``bandit`` (one of them in memory), ``timeline`` (what it did over time), ``choosing`` (what its policy would
show, among what is ``offered``), ``storage`` (database and snapshots).
"""

from sketchbandit.service.server import serve
from sketchbandit.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "serve"]
