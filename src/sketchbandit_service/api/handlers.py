"""Handlers of all other routes. Their docstrings appear in /docs."""

from sketchbandit_service.api import prices
from sketchbandit_service.api.answers import bandit_answer, response, stats_answer, written_list
from sketchbandit_service.api.arm_reader import ArmReader
from sketchbandit_service.api.request_models import (
    ActionsRequest,
    BanditRequest,
    RemovedRequest,
    RetiredRequest,
    bandit_name,
)
from sketchbandit_service.api.request_reader import AT_ONCE, parse
from sketchbandit_service.api.routing import Call
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.http.messages import Response
from sketchbandit_service.metrics import CONTENT_TYPE
from sketchbandit_service.pacing import Pace
from sketchbandit_service.problems import Invalid, Unavailable
from sketchbandit_service.timeline import RANGES


async def list_bandits(call: Call) -> Response:
    """List all bandits with their settings, and the bandits that are out of service with the reason."""
    registry = call.engine.registry
    told = {
        "bandits": [bandit_answer(one, is_one_of_many=True) for one in registry.bandits.values()],
        "quarantined": [{"name": one.name, "reason": one.reason} for one in registry.quarantined.values()],
    }
    return response(told)


async def create_bandit(call: Call) -> Response:
    """Create a bandit. Repeating it with the same settings is no error."""
    try:
        name = bandit_name(call.name)
    except ValueError as error:
        raise Invalid(f"path.name: {error}") from None
    asked = await parse(call, BanditRequest)
    settings = asked.model_dump()
    origin = settings.pop("origin")
    bandit, is_new = await call.engine.creation.create(name, BanditConfig(**settings), origin)
    return response(bandit_answer(bandit), 201 if is_new else 200)


async def show_bandit(call: Call) -> Response:
    """Show the settings of a bandit."""
    return response(bandit_answer(call.bandit))


async def delete_bandit(call: Call) -> Response:
    """Delete a bandit, all it has learned, and its log."""
    await call.engine.registry.delete(call.name)
    return response({"status": "deleted"})


async def stats(call: Call) -> Response:
    """Show counts, sketch, health and last decisions; and, for a time range, curve, comparison and shares."""
    over = call.request.query.get("range", "all")
    if over not in (*RANGES, "all"):
        raise Invalid("query.range: Input should be 'hour', 'day', 'week' or 'all'")
    return response(await stats_answer(call.engine, call.bandit, over))


async def put_arms(call: Call) -> Response:
    """Store arms by id. A known id gets new features."""
    engine, body, bandit = call.engine, call.request.body, call.bandit
    is_long = len(body) > AT_ONCE
    reader = ArmReader(
        bandit, call.request.charge, engine.limits, Pace() if is_long else None, device=engine.settings.device
    )
    ids, matrix = await engine.threads.run(reader.stored, body) if is_long else reader.stored(body)
    return response({"count": await engine.stock.put_arms(bandit, ids, matrix)})


async def list_arms(call: Call) -> Response:
    """List the ids of the stored arms."""
    arms = call.bandit.arms
    call.request.charge.add(prices.listing(len(arms), arms.longest_id))
    ids = arms.ids()
    return response(b'{"count":%d,"arms":%b}' % (len(ids), await written_list(call.engine, ids)))


async def remove_arm(call: Call) -> Response:
    """Delete a stored arm. Its open decisions can still be rewarded."""
    await call.engine.stock.remove_arms(call.bandit, [call.rest])
    return response({"status": "deleted"})


async def remove_arms(call: Call) -> Response:
    """Delete stored arms, whatever their ids. If one of them does not exist, none is deleted."""
    asked = await parse(call, RemovedRequest)
    await call.engine.stock.remove_arms(call.bandit, [*dict.fromkeys(asked.arms)])
    return response({"status": "deleted"})


async def list_actions(call: Call) -> Response:
    """List the names of the actions, offered and retired."""
    return _actions(call.bandit)


async def add_actions(call: Call) -> Response:
    """Offer new actions, or offer retired actions again with all they have learned."""
    bandit = call.bandit
    await call.engine.stock.add_actions(bandit, (await parse(call, ActionsRequest)).actions)
    return _actions(bandit)


async def retire_action(call: Call) -> Response:
    """Stop offering an action. Its open decisions can still be rewarded, and its model learns from them."""
    await call.engine.stock.retire_actions(call.bandit, [call.rest])
    return _actions(call.bandit)


async def retire_actions(call: Call) -> Response:
    """Stop offering actions, whatever their names. If one of them does not exist, none is retired."""
    bandit = call.bandit
    await call.engine.stock.retire_actions(bandit, (await parse(call, RetiredRequest)).actions)
    return _actions(bandit)


def _actions(bandit: Bandit) -> Response:
    if bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} was created without actions; it chooses among arms")
    return response({"actions": [*bandit.actions], "retired": [*bandit.retired]})


async def healthz(_: Call) -> Response:
    """Say whether the process answers."""
    return response({"status": "ok"})


async def readyz(call: Call) -> Response:
    """Say whether the server can take decisions and rewards: state read, journal writable."""
    engine = call.engine
    check_ready(call)
    if engine.journal.trouble is not None:
        raise Unavailable("the journal cannot be written; the log of the server says why")
    return response({"status": "ready", "quarantined": len(engine.registry.quarantined)})


async def metrics(call: Call) -> Response:
    """Metrics for Prometheus."""
    return Response(200, call.engine.instruments.exposition(), CONTENT_TYPE)


def check_ready(call: Call) -> None:
    """Refuse a request if the server is starting, stopping or a standby."""
    if (problem := call.engine.refusal()) is not None:
        raise problem
    if not call.engine.is_ready:
        raise Unavailable("the server is starting or stopping; try again in a moment")
