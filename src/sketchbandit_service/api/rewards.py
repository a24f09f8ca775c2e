"""Handlers of rewards, one or a batch."""

from sketchbandit_service.api import prices
from sketchbandit_service.api.answers import response, written
from sketchbandit_service.api.decisions import batch_answer, each, read_items
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.request_models import RewardBatchRequest, RewardRequest, ShownReward
from sketchbandit_service.api.request_reader import parse, read_fields, validated
from sketchbandit_service.api.routing import Call
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.messages import Response
from sketchbandit_service.pacing import Pace
from sketchbandit_service.problems import Invalid, Problem
from sketchbandit_service.rewards import KNOWN, LEARNED, Given
from sketchbandit_service.types import JsonObject


async def reward(call: Call) -> Response:
    """Send the reward of a decision, or rewards of its slate. Repeating the same reward is no error."""
    return response(await _take(call.engine, call.bandit, await parse(call, RewardRequest)))


async def reward_batch(call: Call) -> Response:
    """Send several rewards. They are committed together; each succeeds or fails on its own."""
    engine, bandit, body, charge = call.engine, call.bandit, call.request.body, call.request.charge

    def read(cursor: Cursor) -> RewardRequest:
        begin = cursor.at
        said = read_fields(cursor, RewardRequest)
        charge.add(prices.objects(cursor.at - begin))
        return validated(RewardRequest, said)

    def read_all() -> list[RewardRequest | Problem]:
        charge.add(prices.text(body))
        cursor = Cursor(body, charge.add, Pace())
        return read_items(cursor, RewardBatchRequest, read, engine.limits.batch)

    async def one(given: RewardRequest) -> bytes:
        return written(await _take(engine, bandit, given))

    items = await engine.threads.run(read_all)
    return response(await batch_answer(engine, "rewards", await each(items, one)))


async def _take(engine: Engine, bandit: Bandit, asked: RewardRequest) -> JsonObject:
    """The answer to one request."""
    taken = await engine.rewards.take(bandit, asked.decision, _given(asked, bandit))
    status = LEARNED if any(one.status == LEARNED for one in taken) else KNOWN
    several = {} if asked.rewards is None else {"rewards": [one._asdict() for one in taken]}
    return {"decision": asked.decision, "status": status, **several}


def _given(asked: RewardRequest, bandit: Bandit) -> list[Given]:
    """The rewards of a request: one, or several."""
    if (asked.reward is None) == (asked.rewards is None):
        raise Invalid("give either reward (of one arm) or rewards (a list of {position, reward}), not both")
    if asked.rewards is None:
        return [_one(asked, asked.reward, bandit)]
    if _said(asked):
        raise Invalid("give position, arm or action inside each of the rewards, not beside the list")
    return [_one(each, each.reward, bandit) for each in asked.rewards]


def _one(asked: RewardRequest | ShownReward, reward: float | None, bandit: Bandit) -> Given:
    """One reward, and which arm it belongs to."""
    if len(said := _said(asked)) > 1:
        raise Invalid(f"name the shown arm once: by {' or by '.join(said)}, not by both")
    if asked.action is not None and bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} has no actions; name a shown arm by position or by arm")
    return Given(reward or 0.0, asked.position, asked.arm if asked.action is None else asked.action)


def _said(asked: RewardRequest | ShownReward) -> list[str]:
    return [name for name in ("position", "arm", "action") if getattr(asked, name) is not None]
