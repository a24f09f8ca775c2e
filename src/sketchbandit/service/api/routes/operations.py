"""What those who run the service ask: whether it lives, whether it is ready, its metrics."""

from fastapi import APIRouter, Response

from sketchbandit.service.api.answer_models import ErrorAnswer, StatusAnswer
from sketchbandit.service.api.answers import json_response
from sketchbandit.service.engine import Engine
from sketchbandit.service.metrics import CONTENT_TYPE
from sketchbandit.service.problems import Unavailable


def router(engine: Engine) -> APIRouter:
    """The paths of operations, over one engine."""
    routes = APIRouter(tags=["operations"])

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", response_model=StatusAnswer)
    async def healthz() -> Response:
        """Whether the process answers."""
        return json_response(StatusAnswer(status="ok"))

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", response_model=StatusAnswer, responses={503: {"model": ErrorAnswer}})
    async def readyz() -> Response:
        """Whether it can take decisions and rewards: state read, journal writable."""
        if not engine.is_ready:
            raise Unavailable("the server is starting or stopping")
        if engine.journal.trouble is not None:
            raise Unavailable("the journal cannot be written; the log says why")
        return json_response(StatusAnswer(status="ready"))

    @routes.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, 401: {"model": ErrorAnswer}},
    )
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(engine.instruments.exposition(), headers={"content-type": CONTENT_TYPE})

    return routes
