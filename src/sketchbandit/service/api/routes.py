"""The paths of API v1.

Handlers read the body themselves: it is limited while it arrives, and JSON goes straight into typed models.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ValidationError

from sketchbandit.service.api import models
from sketchbandit.service.api.answers import bandit_answer, decision_answer, failure, stats_answer
from sketchbandit.service.api.bodies import (
    JSON,
    NPY,
    ArmReader,
    complaint,
    content_type,
    idempotency_key,
    query_top,
    read_body,
    read_json,
)
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.engine import Engine
from sketchbandit.service.metrics import CONTENT_TYPE
from sketchbandit.service.problems import Invalid, Problem, TooLarge, Unavailable

T = TypeVar("T", bound=models.Request)
NAME = r"^([^\x00-\x1f\x7f/.]|\.+[^\x00-\x1f\x7f/.])[^\x00-\x1f\x7f/]*$"
"""No control characters, no slash, more than dots."""
Name = Annotated[str, Path(min_length=1, max_length=128, pattern=NAME, description="The bandit's name.")]


def _documented(
    answer: type[BaseModel], *statuses: int, body: type[BaseModel] | None = None
) -> dict[str, Any]:
    """What OpenAPI needs to know of a handler that reads its body and writes its answer itself."""
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": models.ErrorAnswer} for status in (401, 403, 422, 429, 503, *statuses)
    }
    documented: dict[str, Any] = {"response_model": answer, "responses": errors}
    if body is not None:
        errors.update({status: {"model": models.ErrorAnswer} for status in (400, 413, 415)})
        content = {JSON: {"schema": models.inlined(body.model_json_schema())}}
        documented["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return documented


def _json(model: BaseModel, status: int = 200) -> Response:
    return Response(model.model_dump_json(), status, media_type=JSON)


_CREATE = _documented(models.BanditAnswer, 409, body=models.BanditRequest)
_CREATE["responses"][201] = {"model": models.BanditAnswer, "description": "It is new"}
_NPY_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": "A float32 or float64 matrix, one arm a row.",
}
_DECIDE = _documented(models.DecisionAnswer, 404, 409, body=models.DecideRequest)
_DECIDE["openapi_extra"]["requestBody"]["content"][NPY] = {"schema": _NPY_SCHEMA}
_DECIDE["openapi_extra"]["parameters"] = [
    {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
        "description": "Again with the same key: the same decision, if it is still open.",
    },
    {
        "name": "top",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        "description": "As in the body, for npy.",
    },
]


def router(engine: Engine) -> APIRouter:
    """All paths, over one engine."""
    routes = APIRouter()
    _add_bandits(routes, engine)
    _add_arms(routes, engine)
    _add_decisions(routes, engine)
    _add_rewards(routes, engine)
    _add_operations(routes, engine)
    return routes


def _add_bandits(routes: APIRouter, engine: Engine) -> None:
    @routes.get("/v1/bandits", tags=["bandits"], **_documented(models.BanditsAnswer))
    async def list_bandits() -> Response:
        """All bandits and their settings."""
        answers = [bandit_answer(bandit) for bandit in engine.registry.bandits.values()]
        return _json(models.BanditsAnswer(bandits=answers))

    @routes.put(
        "/v1/bandits/{name}",
        tags=["bandits"],
        **_CREATE,
    )
    async def create_bandit(name: Name, request: Request) -> Response:
        """Create a bandit; again with the same settings is no error."""
        asked = await read_json(request, models.BanditRequest, engine)
        bandit, is_new = await engine.registry.create(name, BanditConfig(**asked.model_dump()))
        return _json(bandit_answer(bandit), 201 if is_new else 200)

    @routes.get("/v1/bandits/{name}", tags=["bandits"], **_documented(models.BanditAnswer, 404))
    async def show_bandit(name: Name) -> Response:
        """The settings of a bandit."""
        return _json(bandit_answer(engine.bandit(name)))

    @routes.delete("/v1/bandits/{name}", tags=["bandits"], **_documented(models.StatusAnswer, 404))
    async def delete_bandit(name: Name) -> Response:
        """Delete a bandit, all it has learned, and its log."""
        await engine.registry.delete(name)
        return _json(models.StatusAnswer(status="deleted"))

    @routes.get("/v1/bandits/{name}/stats", tags=["bandits"], **_documented(models.StatsAnswer, 404))
    async def stats(name: Name) -> Response:
        """Counts, learning curve, sketch, health, the last decisions."""
        return _json(stats_answer(engine.bandit(name), engine.clock.now()))


def _add_arms(routes: APIRouter, engine: Engine) -> None:
    @routes.put(
        "/v1/bandits/{name}/arms",
        tags=["arms"],
        **_documented(models.StoredAnswer, 404, body=models.ArmsRequest),
    )
    async def put_arms(name: Name, request: Request) -> Response:
        """Store arms, to be chosen from by id."""
        bandit = engine.bandit(name)
        asked = await read_json(request, models.ArmsRequest, engine)
        arms = ArmReader(request, bandit, engine).stored(asked.arms)
        return _json(models.StoredAnswer(count=await engine.registry.put_arms(bandit, arms)))

    @routes.get("/v1/bandits/{name}/arms", tags=["arms"], **_documented(models.ArmsAnswer, 404))
    async def list_arms(name: Name) -> Response:
        """The ids of the stored arms."""
        ids = engine.bandit(name).arms.ids()
        return _json(models.ArmsAnswer(count=len(ids), arms=ids))

    @routes.delete(
        "/v1/bandits/{name}/arms/{arm:path}", tags=["arms"], **_documented(models.StatusAnswer, 404)
    )
    async def remove_arm(name: Name, arm: Annotated[str, Path(min_length=1, max_length=128)]) -> Response:
        """Forget a stored arm; decisions made for it can still be rewarded."""
        await engine.registry.remove_arm(name, arm)
        return _json(models.StatusAnswer(status="deleted"))


def _add_decisions(routes: APIRouter, engine: Engine) -> None:
    @routes.post("/v1/bandits/{name}/decide", tags=["decisions"], **_DECIDE)
    async def decide(name: Name, request: Request) -> Response:
        """Choose an arm. The answer is sent when the decision is on disk."""
        return Response(await handle_decide(engine, name, request), media_type=JSON)

    @routes.post(
        "/v1/bandits/{name}/decide/batch",
        tags=["decisions"],
        **_documented(models.DecideBatchAnswer, 404, body=models.DecideBatchRequest),
    )
    async def decide_batch(name: Name, request: Request) -> Response:
        """Several decisions, committed together; each succeeds or fails by itself."""
        bandit = engine.bandit(name)
        asked = await read_json(request, models.DecideBatchRequest, engine)
        _check_batch(asked.decisions, engine)

        reader = ArmReader(request, bandit, engine)

        async def one(wanted: models.KeyedDecideRequest) -> models.DecisionAnswer:
            arms = reader.from_list(wanted.arms)
            digest = _digest(wanted.model_dump_json(exclude={"key"}).encode()) if wanted.key else ""
            decided = await engine.decisions.decide(
                bandit, arms, top=wanted.top, key=wanted.key, request=digest
            )
            return decision_answer(decided)

        answers = await _each(models.KeyedDecideRequest, asked.decisions, one)
        return _json(models.DecideBatchAnswer.model_construct(decisions=answers))


async def handle_decide(engine: Engine, name: str, request: Request) -> bytes:
    """One decision; gives a DecisionAnswer as JSON."""
    bandit = engine.bandit(name)
    kind, key, top = content_type(request), idempotency_key(request), query_top(request)
    if key is None:
        engine.decisions.admit(bandit)  # before any work; with a key it may be there already
    body = await read_body(request, engine)
    reader = ArmReader(request, bandit, engine)
    if kind == NPY:
        arms = reader.from_npy(body)
    else:
        arms, said = reader.from_json(body)
        top = said or top
    digest = "" if key is None else _digest(f"{kind} {top} ".encode() + body)
    decided = await engine.decisions.decide(bandit, arms, top=top, key=key, request=digest)
    return json.dumps(asdict(decided), separators=(",", ":")).encode()


async def handle_reward(engine: Engine, name: str, request: Request) -> bytes:
    """One reward; gives a RewardAnswer as JSON."""
    bandit = engine.bandit(name)
    given = await read_json(request, models.RewardRequest, engine)
    status = await engine.rewards.take(bandit, given.decision, given.reward)
    return json.dumps({"decision": given.decision, "status": status}, separators=(",", ":")).encode()


def _check_batch(items: Sequence[object], engine: Engine) -> None:
    if not items:
        raise Invalid("the batch is empty")
    if len(items) > engine.limits.batch:
        raise TooLarge(f"{len(items)} items; a batch has up to {engine.limits.batch}")


async def _each(model: type[T], items: Sequence[Any], handle: Callable[[T], Awaitable[Any]]) -> list[Any]:
    """What becomes of every item of a batch. Between two items others get their turn."""

    async def one(item: Any) -> Any:
        try:
            return await handle(model.model_validate(item))
        except ValidationError as error:
            return failure(complaint(error, model))
        except Problem as problem:
            return failure(problem)

    tasks = []
    for item in items:
        tasks.append(asyncio.ensure_future(one(item)))
        await asyncio.sleep(0)  # it goes as far as its commit
    return await asyncio.gather(*tasks)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _add_rewards(routes: APIRouter, engine: Engine) -> None:
    @routes.post(
        "/v1/bandits/{name}/reward",
        tags=["rewards"],
        **_documented(models.RewardAnswer, 404, 409, 410, body=models.RewardRequest),
    )
    async def reward(name: Name, request: Request) -> Response:
        """Tell the reward of a decision. The same again is no error; another one is."""
        return Response(await handle_reward(engine, name, request), media_type=JSON)

    @routes.post(
        "/v1/bandits/{name}/reward/batch",
        tags=["rewards"],
        **_documented(models.RewardBatchAnswer, 404, body=models.RewardBatchRequest),
    )
    async def reward_batch(name: Name, request: Request) -> Response:
        """Several rewards, committed together; each succeeds or fails by itself."""
        bandit = engine.bandit(name)
        asked = await read_json(request, models.RewardBatchRequest, engine)
        _check_batch(asked.rewards, engine)

        async def one(given: models.RewardRequest) -> models.RewardAnswer:
            status = await engine.rewards.take(bandit, given.decision, given.reward)
            return models.RewardAnswer.model_construct(decision=given.decision, status=status)

        answers = await _each(models.RewardRequest, asked.rewards, one)
        return _json(models.RewardBatchAnswer.model_construct(rewards=answers))


def _add_operations(routes: APIRouter, engine: Engine) -> None:
    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", tags=["operations"], response_model=models.StatusAnswer)
    async def healthz() -> Response:
        """Whether the process answers."""
        return _json(models.StatusAnswer(status="ok"))

    @routes.head("/readyz", include_in_schema=False)
    @routes.get(
        "/readyz",
        tags=["operations"],
        response_model=models.StatusAnswer,
        responses={503: {"model": models.ErrorAnswer}},
    )
    async def readyz() -> Response:
        """Whether it can take decisions and rewards: state read, journal writable."""
        if not engine.is_ready:
            raise Unavailable("the server is starting or stopping")
        if engine.journal.trouble is not None:
            raise Unavailable("the journal cannot be written; the log says why")
        return _json(models.StatusAnswer(status="ready"))

    @routes.get(
        "/metrics",
        tags=["operations"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, 401: {"model": models.ErrorAnswer}},
    )
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(engine.instruments.exposition(), headers={"content-type": CONTENT_TYPE})
