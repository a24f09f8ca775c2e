"""Actions of a bandit: listed, added, retired."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from sketchbandit.service.api.answer_models import ActionsAnswer
from sketchbandit.service.api.answers import json_response
from sketchbandit.service.api.bodies import read_json
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import ActionsRequest, BanditName
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Invalid


def router(engine: Engine) -> APIRouter:
    """The paths of actions, over one engine."""
    routes = APIRouter(tags=["actions"])

    @routes.get("/v1/bandits/{name}/actions", **documented(ActionsAnswer, 404))
    async def list_actions(name: BanditName) -> Response:
        """The names of the actions, offered and retired."""
        return _answer(engine.bandit(name))

    @routes.post("/v1/bandits/{name}/actions", **documented(ActionsAnswer, 404, body=ActionsRequest))
    async def add_actions(name: BanditName, request: Request) -> Response:
        """Offer new actions, or retired ones again with all that they have learned."""
        bandit = engine.bandit(name)
        asked = await read_json(request, ActionsRequest, engine)
        await engine.stock.add_actions(bandit, asked.actions)
        return _answer(bandit)

    @routes.delete("/v1/bandits/{name}/actions/{action:path}", **documented(ActionsAnswer, 404))
    async def retire_action(
        name: BanditName, action: Annotated[str, Path(min_length=1, max_length=128)]
    ) -> Response:
        """Offer an action no more; its open decisions can still be rewarded, and are learned from."""
        bandit = engine.bandit(name)
        await engine.stock.retire_actions(bandit, [action])
        return _answer(bandit)

    return routes


def _answer(bandit: Bandit) -> Response:
    if bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} chooses among arms; one with actions is created with actions")
    models = bandit
    return json_response(
        ActionsAnswer(actions=[*map(str, models.actions)], retired=[*map(str, models.retired)])
    )
