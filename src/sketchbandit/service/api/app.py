"""The ASGI application."""

from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from sketchbandit._version import __version__
from sketchbandit.service.api.fast_path import FastPath
from sketchbandit.service.api.gate import PAGE_HEADERS, Gate, problem_response
from sketchbandit.service.api.routes import actions, arms, bandits, decisions, operations, rewards
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Invalid, NotAllowed, NotFound, Problem
from sketchbandit.service.tokens import Tokens

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/dashboard.css": ("dashboard.css", "text/css; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/dashboard.js": ("dashboard.js", "text/javascript; charset=utf-8"),
}


def make_app(engine: Engine, *, tokens: Tokens | None = None, hosts: frozenset[str] = LOOPBACK) -> ASGIApp:
    """The service over ``engine``, which is started and stopped by whoever runs the application."""
    return Gate(
        FastPath(make_api(engine), engine),
        tokens=tokens,
        hosts=hosts,
        instruments=engine.instruments,
        memory=engine.budget,
    )


def make_api(engine: Engine) -> FastAPI:
    """The paths and their description, without the gate."""
    api = FastAPI(
        title="sketchbandit decision service",
        version=__version__,
        summary="Chooses arms, takes rewards whenever they come, never loses an acknowledged one.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    for part in (bandits, arms, actions, decisions, rewards, operations):
        api.include_router(part.router(engine))
    for path, (name, kind) in _PAGES.items():
        api.add_api_route(path, _page(name, kind), include_in_schema=False)
    api.add_exception_handler(Problem, _refuse)
    api.add_exception_handler(RequestValidationError, _refuse_invalid)
    api.add_exception_handler(HTTPException, _refuse_http)
    return api


def _page(name: str, kind: str) -> Any:
    content = (files("sketchbandit.service") / "dashboard" / name).read_bytes()

    async def page() -> Response:
        return Response(content, headers={"content-type": kind, **PAGE_HEADERS})

    return page


async def _refuse(_: Request, error: Exception) -> Response:
    return problem_response(error if isinstance(error, Problem) else Problem("something went wrong"))


async def _refuse_invalid(_: Request, error: Exception) -> Response:
    first: dict[str, Any] = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    where = ".".join(str(part) for part in first.get("loc", ()))
    return problem_response(Invalid(f"{where}: {first.get('msg')}"))


async def _refuse_http(_: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path, a wrong method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return problem_response(NotFound("there is nothing here; /openapi.json describes what there is"))
    if status == 405:
        response = problem_response(
            NotAllowed("this path does not take that method; /openapi.json says which")
        )
    else:
        response = problem_response(Problem("something went wrong here"))
    for name, value in (getattr(error, "headers", None) or {}).items():
        response.headers[name] = value
    return response
