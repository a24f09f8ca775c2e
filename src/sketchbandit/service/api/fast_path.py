"""The short way for the two requests that make up nearly all traffic.

Matching paths and resolving parameters the general way takes longer than the decision itself. The same
handlers are registered with FastAPI too, which describes them.
"""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sketchbandit.service.api.routes.decisions import handle_decide
from sketchbandit.service.api.routes.rewards import handle_reward
from sketchbandit.service.engine import Engine

_JSON = (b"content-type", b"application/json")
_PREFIX = "/v1/bandits/"
_HANDLERS = {"decide": handle_decide, "reward": handle_reward}


class FastPath:
    """ASGI middleware: POST /v1/bandits/NAME/decide and /reward, everything else goes on to ``app``."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(_PREFIX):
            name, _, verb = scope["path"].removeprefix(_PREFIX).partition("/")
            if (handle := _HANDLERS.get(verb)) is not None:
                scope["route_path"] = f"{_PREFIX}{{name}}/{verb}"
                body = await handle(self._engine, name, Request(scope, receive))
                length = (b"content-length", str(len(body)).encode())
                await send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
                await send({"type": "http.response.body", "body": body})
                return
        await self._app(scope, receive, send)
