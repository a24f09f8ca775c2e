"""Bandits: listed, created, shown, deleted."""

from fastapi import APIRouter, Request, Response

from sketchbandit.service.api.answer_models import BanditAnswer, BanditsAnswer, StatsAnswer, StatusAnswer
from sketchbandit.service.api.answers import bandit_answer, json_response, stats_answer
from sketchbandit.service.api.bodies import read_json
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import BanditName, BanditRequest, Range
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.engine import Engine

_CREATE = documented(BanditAnswer, 409, body=BanditRequest)
_CREATE["responses"][201] = {"model": BanditAnswer, "description": "It is new"}


def router(engine: Engine) -> APIRouter:
    """The paths of bandits, over one engine."""
    routes = APIRouter(tags=["bandits"])

    @routes.get("/v1/bandits", **documented(BanditsAnswer))
    async def list_bandits() -> Response:
        """All bandits and their settings."""
        answers = [bandit_answer(bandit) for bandit in engine.registry.bandits.values()]
        return json_response(BanditsAnswer(bandits=answers))

    @routes.put("/v1/bandits/{name}", **_CREATE)
    async def create_bandit(name: BanditName, request: Request) -> Response:
        """Create a bandit; again with the same settings is no error."""
        asked = await read_json(request, BanditRequest, engine)
        bandit, is_new = await engine.registry.create(name, BanditConfig(**asked.model_dump()))
        return json_response(bandit_answer(bandit), 201 if is_new else 200)

    @routes.get("/v1/bandits/{name}", **documented(BanditAnswer, 404))
    async def show_bandit(name: BanditName) -> Response:
        """The settings of a bandit."""
        return json_response(bandit_answer(engine.bandit(name)))

    @routes.delete("/v1/bandits/{name}", **documented(StatusAnswer, 404))
    async def delete_bandit(name: BanditName) -> Response:
        """Delete a bandit, all it has learned, and its log."""
        await engine.registry.delete(name)
        return json_response(StatusAnswer(status="deleted"))

    @routes.get("/v1/bandits/{name}/stats", **documented(StatsAnswer, 404))
    async def stats(name: BanditName, over: Range = "all") -> Response:
        """Counts, sketch, health, the last decisions; and over a range of time: curve, comparison, shares."""
        return json_response(stats_answer(engine.bandit(name), engine.clock.now(), over))

    return routes
