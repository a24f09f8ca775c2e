"""Policies by name, for whoever reads the name from a command line, a request or a file."""

import inspect
from collections.abc import Callable
from typing import Any

from sketchbandit.errors import InputError
from sketchbandit.policy import recipes

POLICIES: dict[str, Callable[..., Any]] = {
    "oful": recipes.oful,
    "cbrap": recipes.cbrap,
    "soful": recipes.soful,
    "cbscfd": recipes.cbscfd,
    "dbslinucb": recipes.dbslinucb,
    "adaptive": recipes.adaptive,
}


def parameters(name: str) -> list[str]:
    """The settings that the policy takes."""
    if name not in POLICIES:
        raise InputError(f"unknown policy {name!r}; choose from {', '.join(POLICIES)}")
    return [p.name for p in inspect.signature(POLICIES[name]).parameters.values() if p.name != "dim"]


def build(name: str, dim: int, **settings: Any) -> Any:
    """The policy of this name; a setting that it does not have is refused by name.

    >>> build("soful", 30, size=5).sketch.size
    5
    """
    known = parameters(name)
    for key in settings:
        if key not in known:
            raise InputError(f"{name} has no setting {key!r}; it takes {', '.join(known)}")
    return POLICIES[name](dim, **settings)
