"""Handlers of decisions, one or a batch."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sketchbandit_service.api import prices
from sketchbandit_service.api.answers import decision_answer, failure, response, written
from sketchbandit_service.api.arm_reader import ArmReader, Asked
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.request_models import DecideBatchRequest, KeyedDecideRequest, RequestModel
from sketchbandit_service.api.request_reader import (
    AT_ONCE,
    NPY,
    PLAIN_AT_ONCE,
    check_field,
    content_type,
    digest,
    idempotency_key,
    is_plain,
    query_top,
)
from sketchbandit_service.api.routing import Call
from sketchbandit_service.budget import NeverFits
from sketchbandit_service.engine import Engine
from sketchbandit_service.http.messages import JSON, Response
from sketchbandit_service.pacing import Pace
from sketchbandit_service.problems import Busy, Invalid, Malformed, Problem, TooLarge

_FEW = 1000  # this many arms are read at once
_LARGE = 1 << 20  # an answer of this many bytes is put together in a thread

T = TypeVar("T")


async def decide(call: Call) -> Response:
    """Choose an arm. The answer is sent once the decision is on disk."""
    engine, request, bandit, body = call.engine, call.request, call.bandit, call.request.body
    kind, key, top = content_type(request, JSON, NPY), idempotency_key(request), query_top(request)
    has_numbers = kind == JSON and len(body) <= PLAIN_AT_ONCE and is_plain(body)
    is_long = len(body) > (PLAIN_AT_ONCE if kind == NPY else AT_ONCE)
    reader = ArmReader(
        bandit, request.charge, engine.limits, Pace() if is_long else None, device=engine.settings.device
    )

    def read(found: Asked | None) -> tuple[Asked, int | None, str]:
        if kind == NPY:
            found = Asked(reader.from_npy(body), None)
        elif found is None and has_numbers:
            found = reader.from_dense(body)
        asked = found or reader.from_json(body)
        wanted = asked.top or top
        return asked, wanted, "" if key is None else digest((f"{kind} {wanted} ".encode(), body))

    found = reader.from_dense(body) if has_numbers and _are_few(body, bandit.config.dim) else None
    is_short = found is not None or not is_long
    asked, top, said = read(found) if is_short else await engine.threads.run(read, None)
    if top is not None:
        request.charge.add(prices.ranking(top, len(asked.offered), bandit.longest_id))
    decided = await engine.decisions.decide(bandit, asked.offered, top=top, key=key, request=said)
    return response(decision_answer(bandit, decided))


def _are_few(body: bytes, dim: int) -> bool:
    """Whether the body has few lists. A number takes two characters; lists are counted only if needed."""
    return len(body) // (2 * dim) <= _FEW or body.count(b"[") <= _FEW


async def decide_batch(call: Call) -> Response:
    """Make several decisions. They are committed together; each succeeds or fails on its own."""
    engine, request, bandit = call.engine, call.request, call.bandit
    reader = ArmReader(bandit, request.charge, engine.limits, Pace(), device=engine.settings.device)

    def read(cursor: Cursor) -> Asked:
        return reader.decision(cursor, KeyedDecideRequest)

    def read_all() -> list[Asked | Problem]:
        cursor = reader.cursor(request.body)
        return read_items(cursor, DecideBatchRequest, read, engine.limits.batch)

    items = await engine.threads.run(read_all)
    wanted = (item for item in items if isinstance(item, Asked))
    longest = call.bandit.longest_id
    request.charge.add(sum(prices.ranking(one.top, len(one.offered), longest) for one in wanted))

    async def one(asked: Asked) -> bytes:
        decided = await engine.decisions.decide(
            bandit, asked.offered, top=asked.top, key=asked.key, request=asked.digest
        )
        return decision_answer(bandit, decided)

    return response(await batch_answer(engine, "decisions", await each(items, one)))


async def batch_answer(engine: Engine, name: str, parts: list[bytes]) -> bytes:
    """The answers to all items, in one piece."""

    def join() -> bytes:
        parts[0] = b'{"%b":[%b' % (name.encode(), parts[0])
        parts[-1] += b"]}"
        return b",".join(parts)

    return join() if sum(map(len, parts)) < _LARGE else await engine.threads.run(join)


def read_items(
    cursor: Cursor, model: type[RequestModel], read: Callable[[Cursor], T], most: int
) -> list[T | Problem]:
    """Read the items of a batch. An item that cannot be read becomes its problem."""
    found: list[T | Problem] = []
    said: set[str] = set()
    for name in cursor.members():
        check_field(name, said, model)
        said.add(name)
        if cursor.peek() != "[":
            raise Invalid(f"{name}: Input should be a valid list")
        for place in cursor.elements():
            if place >= most:
                raise TooLarge(f"the batch has more than {most} items; send at most {most} at once")
            found.append(_item(cursor, read))
    cursor.finish()
    if missing := model.model_fields.keys() - said:
        raise Invalid(f"{missing.pop()}: Field required")
    if not found:
        raise Invalid("the batch is empty; send at least one item")
    return found


def _item(cursor: Cursor, read: Callable[[Cursor], T]) -> T | Problem:
    """One item, or its problem. After a problem the rest of the item is skipped."""
    begin = cursor.at
    try:
        return read(cursor)
    except (Malformed, NeverFits, Busy):
        raise  # these concern the whole request
    except Problem as problem:
        cursor.at = begin
        cursor.skip()
        return problem


async def each(items: Sequence[T | Problem], handle: Callable[[T], Awaitable[bytes]]) -> list[bytes]:
    """Handle every item of a batch; each result is JSON. Between two items, other requests get a turn."""

    async def one(item: T | Problem) -> bytes:
        if isinstance(item, Problem):
            return written(failure(item))
        try:
            return await handle(item)
        except Problem as problem:
            return written(failure(problem))

    tasks = []
    for item in items:
        tasks.append(asyncio.ensure_future(one(item)))
        await asyncio.sleep(0)  # the item runs until it waits for its commit
    return await asyncio.gather(*tasks)
