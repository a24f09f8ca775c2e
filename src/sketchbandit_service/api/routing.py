"""The table of routes. Requests are answered by it, and the descriptions of the API are made from it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from sketchbandit_service.bandit import Bandit
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.messages import Request, Response

PREFIX = "/v1/bandits/"
_NAMED = "/v1/bandits/{name}"


class Call(NamedTuple):
    """A request, and what was read from its path."""

    engine: Engine
    request: Request
    name: str
    """The name of the bandit."""
    rest: str
    """The end of the path: the id of an arm, or the name of an action."""

    @property
    def bandit(self) -> Bandit:
        """The bandit that is asked."""
        return self.engine.bandit(self.name)


class Route(NamedTuple):
    """One route: a path, a method and its handler."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[Response]]
    answer: type[BaseModel] | str
    """What a 200 holds: JSON of a model, or text of a content type."""
    body: type[BaseModel] | None = None
    scope: str | None = "read"
    """The scope that a token needs. None: no token is needed."""
    kinds: tuple[str, ...] = ()
    """The content types of the body that are accepted."""
    statuses: Sequence[int] = ()
    """The statuses of errors, beyond those that every path has."""
    details: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)
    """For OpenAPI: parameters, another content of the body, another status."""
    is_early: bool = False
    """Whether the bandit must exist before the body is read."""


class Table:
    """The routes by path and method. A route that answers GET answers HEAD too."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = routes
        self._plain: dict[str, dict[str, Route]] = {}
        self._named: dict[str, dict[str, Route]] = {}
        """Routes by what follows the name of the bandit."""
        self._by_id: dict[str, dict[str, dict[str, Route]]] = {}
        """Routes with an id, by what stands between the bandit's name and the id, then by what follows."""
        for route in routes:
            kept, end = self._plain, route.path
            if route.path.startswith(_NAMED):
                end, _, parameter = route.path.removeprefix(_NAMED).partition("/{")
                kept = self._named
                if parameter:
                    kept, end = self._by_id.setdefault(end, {}), parameter.partition("}")[2]
            methods = (route.method, "HEAD") if route.method == "GET" else (route.method,)
            kept.setdefault(end, {}).update(dict.fromkeys(methods, route))

    def find(self, path: str) -> tuple[dict[str, Route], str, str]:
        """The routes of a path by method, the name of the bandit in it, and the rest of the path."""
        if not path.startswith(PREFIX):
            return self._plain.get(path, {}), "", ""
        name, slash, verb = path[len(PREFIX) :].partition("/")
        if not name or (slash and not verb):
            return {}, "", ""
        found = self._named.get(slash + verb, {})
        group, _, rest = verb.partition("/")
        for suffix, by_id in self._by_id.get(slash + group, {}).items() if rest else ():
            if suffix and rest.endswith(suffix) and rest != suffix:
                return by_id, name, rest.removesuffix(suffix)
            if not suffix:
                found = {**by_id, **found}
        return found, name, rest
