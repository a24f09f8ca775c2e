"""Stored arms: put, listed, removed."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from sketchbandit.service.api.answer_models import ArmsAnswer, StatusAnswer, StoredAnswer
from sketchbandit.service.api.answers import json_response
from sketchbandit.service.api.arm_reader import ArmReader
from sketchbandit.service.api.bodies import read_json
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import ArmsRequest, BanditName
from sketchbandit.service.engine import Engine


def router(engine: Engine) -> APIRouter:
    """The paths of stored arms, over one engine."""
    routes = APIRouter(tags=["arms"])

    @routes.put("/v1/bandits/{name}/arms", **documented(StoredAnswer, 404, body=ArmsRequest))
    async def put_arms(name: BanditName, request: Request) -> Response:
        """Store arms, to be chosen from by id."""
        bandit = engine.bandit(name)
        asked = await read_json(request, ArmsRequest, engine)
        arms = ArmReader(request, bandit, engine).stored(asked.arms)
        return json_response(StoredAnswer(count=await engine.stock.put_arms(bandit, arms)))

    @routes.get("/v1/bandits/{name}/arms", **documented(ArmsAnswer, 404))
    async def list_arms(name: BanditName) -> Response:
        """The ids of the stored arms."""
        ids = engine.bandit(name).arms.ids()
        return json_response(ArmsAnswer(count=len(ids), arms=ids))

    @routes.delete("/v1/bandits/{name}/arms/{arm:path}", **documented(StatusAnswer, 404))
    async def remove_arm(
        name: BanditName, arm: Annotated[str, Path(min_length=1, max_length=128)]
    ) -> Response:
        """Forget a stored arm; decisions made for it can still be rewarded."""
        await engine.stock.remove_arms(engine.bandit(name), [arm])
        return json_response(StatusAnswer(status="deleted"))

    return routes
