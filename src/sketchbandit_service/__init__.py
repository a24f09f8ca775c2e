"""The decision service. It chooses arms over HTTP, takes rewards whenever they come and loses none.

``sketchbandit serve`` runs it. The modules, from the outside in: ``server`` (the process), ``http`` (bytes on
the wire), ``api`` (requests and answers; ``api.table`` has the paths), ``upkeep`` (periodic work), ``engine``
(start and stop), ``decisions``, ``rewards``, ``stock`` and ``registry`` (one for each kind of request),
``journal`` (group commit), ``ordering`` (the queue in which each bandit works), ``standby`` (a second
server), ``recovery`` and ``replaying`` (after a restart), ``bandit`` (one bandit in memory), ``storage``
(database and snapshots).
"""

from typing import TYPE_CHECKING, Any

from sketchbandit_service.settings import Limits, Settings

if TYPE_CHECKING:
    from sketchbandit_service.server import serve

__all__ = ["Limits", "Settings", "serve"]


def __getattr__(name: str) -> Any:
    """``serve``, imported when it is asked for: the settings alone need no server."""
    if name != "serve":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchbandit_service.server import serve  # noqa: PLC0415

    return serve
