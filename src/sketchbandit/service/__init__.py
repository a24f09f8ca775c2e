"""The decision service: chooses arms over HTTP, takes rewards whenever they come, loses none.

``sketchbandit serve`` runs it. From the outside in: ``server`` (a process), ``http`` (bytes), ``api`` (what
is asked; ``api.table`` has the paths), ``upkeep`` (what happens by itself), ``engine`` (start and end),
``decisions``, ``rewards``, ``stock`` and ``registry`` (the desks), ``journal`` (group commit), ``ordering``
(the lane in which each bandit works), ``standby`` (a second server), ``recovery`` and ``replaying`` (after a
restart), ``bandit`` (one of them in memory), ``storage`` (database and snapshots).
"""

from typing import TYPE_CHECKING, Any

from sketchbandit.service.settings import Limits, Settings

if TYPE_CHECKING:
    from sketchbandit.service.server import serve

__all__ = ["Limits", "Settings", "serve"]


def __getattr__(name: str) -> Any:
    """``serve``, imported when it is asked for: the settings alone need no server."""
    if name != "serve":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sketchbandit.service.server import serve  # noqa: PLC0415

    return serve
