"""Rewards: one, or a batch of them."""

import json

from fastapi import APIRouter, Request, Response

from sketchbandit.service.api.answer_models import RewardAnswer, RewardBatchAnswer
from sketchbandit.service.api.answers import json_response
from sketchbandit.service.api.batches import handle_each
from sketchbandit.service.api.bodies import JSON, read_json
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import BanditName, RewardBatchRequest, RewardRequest
from sketchbandit.service.engine import Engine


def router(engine: Engine) -> APIRouter:
    """The paths of rewards, over one engine."""
    routes = APIRouter(tags=["rewards"])

    @routes.post("/v1/bandits/{name}/reward", **documented(RewardAnswer, 404, 409, 410, body=RewardRequest))
    async def reward(name: BanditName, request: Request) -> Response:
        """Tell the reward of a decision. The same again is no error; another one is."""
        return Response(await handle_reward(engine, name, request), media_type=JSON)

    @routes.post(
        "/v1/bandits/{name}/reward/batch", **documented(RewardBatchAnswer, 404, body=RewardBatchRequest)
    )
    async def reward_batch(name: BanditName, request: Request) -> Response:
        """Several rewards, committed together; each succeeds or fails by itself."""
        bandit = engine.bandit(name)
        asked = await read_json(request, RewardBatchRequest, engine)

        async def one(given: RewardRequest) -> RewardAnswer:
            status = await engine.rewards.take(bandit, given.decision, given.reward)
            return RewardAnswer.model_construct(decision=given.decision, status=status)

        answers = await handle_each(RewardRequest, asked.rewards, one, engine.limits)
        return json_response(RewardBatchAnswer.model_construct(rewards=answers))

    return routes


async def handle_reward(engine: Engine, name: str, request: Request) -> bytes:
    """One reward; gives a RewardAnswer as JSON."""
    bandit = engine.bandit(name)
    given = await read_json(request, RewardRequest, engine)
    status = await engine.rewards.take(bandit, given.decision, given.reward)
    return json.dumps({"decision": given.decision, "status": status}, separators=(",", ":")).encode()
