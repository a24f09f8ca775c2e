"""Rewards: one, or a batch of them."""

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from sketchbandit.service.api.answer_models import RewardAnswer, RewardBatchAnswer
from sketchbandit.service.api.answers import json_response
from sketchbandit.service.api.batches import handle_each
from sketchbandit.service.api.bodies import JSON, read_json
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import (
    BanditName,
    RewardBatchRequest,
    RewardRequest,
    ShownReward,
)
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Invalid
from sketchbandit.service.rewards import KNOWN, LEARNED, Given


def router(engine: Engine) -> APIRouter:
    """The paths of rewards, over one engine."""
    routes = APIRouter(tags=["rewards"])

    @routes.post("/v1/bandits/{name}/reward", **documented(RewardAnswer, 404, 409, 410, body=RewardRequest))
    async def reward(name: BanditName, request: Request) -> Response:
        """Tell the reward of a decision, or of the arms of its slate. The same again is no error."""
        return Response(await handle_reward(engine, name, request), media_type=JSON)

    @routes.post(
        "/v1/bandits/{name}/reward/batch", **documented(RewardBatchAnswer, 404, body=RewardBatchRequest)
    )
    async def reward_batch(name: BanditName, request: Request) -> Response:
        """Several rewards, committed together; each succeeds or fails by itself."""
        bandit = engine.bandit(name)
        asked = await read_json(request, RewardBatchRequest, engine)

        async def one(given: RewardRequest) -> RewardAnswer:
            return RewardAnswer.model_validate(await _take(engine, bandit, given))

        answers = await handle_each(RewardRequest, asked.rewards, one, engine.limits)
        return json_response(RewardBatchAnswer.model_construct(rewards=answers))

    return routes


async def handle_reward(engine: Engine, name: str, request: Request) -> bytes:
    """One reward; gives a RewardAnswer as JSON."""
    bandit = engine.bandit(name)
    given = await read_json(request, RewardRequest, engine)
    return json.dumps(await _take(engine, bandit, given), separators=(",", ":")).encode()


async def _take(engine: Engine, bandit: Bandit, asked: RewardRequest) -> dict[str, Any]:
    """The answer to one request."""
    taken = await engine.rewards.take(bandit, asked.decision, _given(asked, bandit))
    status = LEARNED if any(one.status == LEARNED for one in taken) else KNOWN
    several = {} if asked.rewards is None else {"rewards": [one._asdict() for one in taken]}
    return {"decision": asked.decision, "status": status, **several}


def _given(asked: RewardRequest, bandit: Bandit) -> list[Given]:
    """The rewards of a request: one, or several."""
    if (asked.reward is None) == (asked.rewards is None):
        raise Invalid("give either reward (of one arm) or rewards (a list of {position, reward})")
    if asked.rewards is None:
        return [_one(asked, asked.reward, bandit)]
    if _said(asked):
        raise Invalid("position, arm and action stand beside each of the rewards, not beside the list")
    return [_one(each, each.reward, bandit) for each in asked.rewards]


def _one(asked: RewardRequest | ShownReward, reward: float | None, bandit: Bandit) -> Given:
    """One reward, and which arm it belongs to."""
    if len(said := _said(asked)) > 1:
        raise Invalid(f"a shown arm is named once: by {' or by '.join(said)}, not by both")
    if asked.action is not None and bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} chooses among arms: name a shown one by position or arm")
    return Given(reward or 0.0, asked.position, asked.arm if asked.action is None else asked.action)


def _said(asked: RewardRequest | ShownReward) -> list[str]:
    return [name for name in ("position", "arm", "action") if getattr(asked, name) is not None]
