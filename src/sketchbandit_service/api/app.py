"""The service over HTTP, without the network: who may ask, what is asked, and the answer."""

import logging
import re
from collections.abc import Collection
from dataclasses import replace
from importlib.resources import files
from time import perf_counter

from sketchbandit.errors import InputError
from sketchbandit_service.api.answers import written
from sketchbandit_service.api.description import DOCS_POLICY, docs, openapi
from sketchbandit_service.api.handlers import check_ready
from sketchbandit_service.api.request_reader import content_type
from sketchbandit_service.api.routing import Call, Route
from sketchbandit_service.api.table import table
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.messages import JSON, READING, Request, Response
from sketchbandit_service.http.responses import problem_response
from sketchbandit_service.problems import Forbidden, NotAllowed, NotFound, Problem, Unauthorised, Unavailable
from sketchbandit_service.tokens import Refusals, Tokens, allows

log = logging.getLogger(__name__)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DASHBOARD_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/dashboard.css": ("dashboard.css", "text/css; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/dashboard.js": ("dashboard.js", "text/javascript; charset=utf-8"),
}
_PREFLIGHT = {
    "access-control-allow-methods": "GET, PUT, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, idempotency-key",
    "access-control-max-age": "600",
}
_EXPOSED = {"access-control-expose-headers": "retry-after"}
_LOOKING = (*READING, "OPTIONS")
_KEY = "idempotency-key"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_USUAL_PORTS = re.compile(r"http://.*:80|https://.*:443")


class Api:
    """The application over ``engine``. The caller starts and stops the engine.

    Without tokens only this machine can connect, but a page in a browser on this machine could connect too. A
    foreign page is kept out by the Host header (``hosts`` are the allowed names of the server) and by the
    content type (which a form cannot send). ``cors`` are the origins whose pages may ask all the same. "*"
    means any origin, and needs tokens.
    """

    def __init__(
        self,
        engine: Engine,
        tokens: Tokens | None = None,
        hosts: frozenset[str] = LOOPBACK,
        cors: Collection[str] = (),
    ) -> None:
        if "*" in cors and tokens is None:
            raise InputError("--cors * (pages of any origin) needs tokens; use tokens, or name the origins")
        for origin in cors:
            _check_origin(origin)
        self._engine, self._tokens, self._hosts, self._cors = engine, tokens, hosts, frozenset(cors)
        self._table = table()
        self._pages = _pages()
        self._refusals = Refusals()

    def admit(self, request: Request) -> Response | None:
        """Refuse what can be refused by the head of a request. Answer pages and preflights."""
        started = perf_counter()
        try:
            answer = self._look(request)
        except Problem as problem:
            answer = problem_response(problem)
            if isinstance(problem, NotAllowed):
                answer.headers["allow"] = ", ".join(sorted(self._table.find(request.path)[0])) or "GET, HEAD"
        return None if answer is None else self._sent(request, answer, started)

    async def answer(self, request: Request) -> Response:
        """The answer to a request that was admitted."""
        started = perf_counter()
        try:
            found, name, rest = self._table.find(request.path)
            answer = await found[request.method].handle(Call(self._engine, request, name, rest))
        except Problem as problem:
            answer = problem_response(problem)
        except MemoryError:
            log.warning("not enough memory for a request", extra={"path": request.path})
            answer = problem_response(Unavailable("not enough memory for this request; try again later"))
        except Exception:
            log.exception("a request failed", extra={"path": request.path})
            answer = problem_response(Problem("internal error; the log of the server says what went wrong"))
        return self._sent(request, answer, started)

    def _sent(self, request: Request, answer: Response, started: float) -> Response:
        """Count the answer, and allow pages of the given origins to read it."""
        self._engine.instruments.saw(request.route, answer.status, perf_counter() - started)
        if self._cors and (origin := self._origin(request)):
            allowed = {"access-control-allow-origin": origin, "vary": "origin", **_EXPOSED}
            return replace(answer, headers={**answer.headers, **allowed})
        return answer

    def _origin(self, request: Request) -> str | None:
        """The origin of the page that asks, if it is allowed."""
        origin = request.headers.get("origin")
        return origin if origin in self._cors or (origin and "*" in self._cors) else None

    def _look(self, request: Request) -> Response | None:
        found, name, rest = self._table.find(request.path)
        route = found.get(request.method)
        if route is not None:
            request.route = route.path
        if self._tokens is None:
            self._check_host(request)
        if request.method == "OPTIONS" and self._origin(request):
            return Response(204, b"", JSON, _PREFLIGHT)
        if (page := self._pages.get(request.path)) and request.method in READING:
            request.route = request.path
            return page
        if self._tokens is not None:
            self._check_token(self._tokens, request, route)
        if route is None:
            if found or request.path in self._pages:
                raise NotAllowed(f"this path does not take {request.method}; see /openapi.json")
            raise NotFound("there is nothing at this path; /openapi.json lists all paths")
        if request.path.startswith("/v1/"):
            self._check_call(Call(self._engine, request, name, rest), route)
        return None

    def _check_call(self, call: Call, route: Route) -> None:
        check_ready(call)
        bandit = call.bandit if route.is_early else None
        if route.kinds:
            content_type(call.request, *route.kinds)
        if bandit is not None and route.path.endswith("/decide") and _KEY not in call.request.headers:
            self._engine.decisions.admit(bandit)  # with a key, the decision may exist already

    def _check_host(self, request: Request) -> None:
        host = request.headers.get("host", "").lower()
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if name not in self._hosts:
            raise Forbidden(f"this server answers to {', '.join(sorted(self._hosts))}, not to {name!r}")

    def _check_token(self, tokens: Tokens, request: Request, route: Route | None) -> None:
        if route is not None and route.scope is None:
            return
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        scope = tokens.scope_of(secret.strip()) if kind.lower() == "bearer" else None
        needed = (route and route.scope) or ("read" if request.method in _LOOKING else "admin")
        if scope is None:
            known = "this token is unknown" if secret else "a token is needed"
            problem: Problem = Unauthorised(
                f"{known}; send a token of this server: Authorization: Bearer TOKEN"
            )
        elif not allows(scope, needed):
            problem = Forbidden(f"this token has the scope {scope}; this request needs the scope {needed}")
        else:
            return
        if secret:
            self._refusals.saw(request.path, request.client, str(problem))
        raise problem


def _pages() -> dict[str, Response]:
    """The pages that are the same for everybody."""
    found = {"/openapi.json": Response(200, written(openapi(table())), JSON)}
    for path, (name, kind) in _FILES.items():
        content = (files("sketchbandit_service") / "dashboard" / name).read_bytes()
        found[path] = Response(200, content, kind, _page_headers(_DASHBOARD_POLICY))
    found["/docs"] = Response(200, docs(table()), "text/html; charset=utf-8", _page_headers(DOCS_POLICY))
    return found


def _page_headers(policy: str) -> dict[str, str]:
    framing = {"x-frame-options": "DENY", "referrer-policy": "no-referrer"}
    return {"content-security-policy": policy, **framing}


def _check_origin(origin: str) -> None:
    """Refuse an origin in a form that no browser sends. It would never match."""
    if origin != "*" and (not _ORIGIN.fullmatch(origin) or _USUAL_PORTS.fullmatch(origin)):
        raise InputError(
            f"--cors {origin!r} is not an origin as browsers send it; give scheme://host, such as "
            "https://shop.example, in lower case and without a path or a final slash; add :port only if it "
            "is not the usual one (80, 443)"
        )
