"""What every request passes before anything else: Host, token, scope; and what every answer carries."""

import logging
import re
from time import perf_counter

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sketchbandit.service.api.answer_models import ErrorAnswer
from sketchbandit.service.api.answers import error_body, json_response
from sketchbandit.service.metrics import Instruments
from sketchbandit.service.problems import Forbidden, Problem, Unauthorised
from sketchbandit.service.tokens import Tokens, allows

log = logging.getLogger(__name__)

_EVERYDAY = re.compile(r"/v1/bandits/[^/]+/((decide|reward)(/batch)?|(arms|actions)(/.*)?)", re.DOTALL)
_OPEN = {
    *("/", "/dashboard.css", "/dashboard.js", "/charts.js", "/favicon.ico"),
    *("/healthz", "/readyz", "/openapi.json"),
}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]  # on every answer


class Gate:
    """ASGI middleware. ``hosts`` are the names under which a server without tokens may be called.

    Without tokens only this machine can connect, but a page in this machine's browser could: a foreign page
    is kept out by the Host header (a name that was made to point here) and by the content type (a form).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens | None,
        hosts: frozenset[str],
        instruments: Instruments,
        memory: object,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts
        self._instruments = instruments
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        status = 500
        has_begun = False

        async def send_safely(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, send_safely)
        except Problem as problem:
            await problem_response(problem)(scope, receive, send_safely)
        except ClientDisconnect:
            status = 499  # nobody is there to be told
        except Exception:
            log.exception("a request failed", extra={"path": scope["path"]})
            if has_begun:
                raise
            answer = problem_response(Problem("something went wrong here; the log says what"))
            await answer(scope, receive, send_safely)
        finally:
            pass
        route = str(scope.get("route_path") or getattr(scope.get("route"), "path", "other"))
        self._instruments.saw(route, status, perf_counter() - started)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self._tokens is None:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
            if name not in self._hosts:
                raise Forbidden(f"this server answers to {', '.join(sorted(self._hosts))}, not to {name!r}")
            return
        if scope["path"] in _OPEN and scope["method"] in ("GET", "HEAD"):
            return
        kind, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        found = self._tokens.scope_of(secret.strip()) if kind.lower() == "bearer" else None
        if found is None:
            known = "this token is not known" if secret else "a token is needed"
            raise Unauthorised(f"{known}; send one of this server's: Authorization: Bearer TOKEN")
        needed = needed_scope(scope["method"], scope["path"])
        if not allows(found, needed):
            raise Forbidden(f"this token may {found}; this request needs the scope {needed}")


def needed_scope(method: str, path: str) -> str:
    """What a token must be allowed to do."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return "read"
    return "decide" if _EVERYDAY.fullmatch(path) else "admin"


def problem_response(problem: Problem) -> Response:
    """The answer to what was refused."""
    response = json_response(ErrorAnswer(error=error_body(problem)), problem.status)
    if problem.retry_after is not None:
        response.headers["retry-after"] = str(problem.retry_after)
    if problem.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response
