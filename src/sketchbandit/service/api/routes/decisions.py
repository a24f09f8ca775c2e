"""Decisions: one, or a batch of them."""

import hashlib
import json

from fastapi import APIRouter, Request, Response

from sketchbandit.service.api.answer_models import DecideBatchAnswer, DecisionAnswer
from sketchbandit.service.api.answers import decision_json, json_response
from sketchbandit.service.api.arm_reader import ArmReader
from sketchbandit.service.api.batches import handle_each
from sketchbandit.service.api.bodies import (
    JSON,
    NPY,
    content_type,
    idempotency_key,
    query_top,
    read_body,
    read_json,
)
from sketchbandit.service.api.openapi import documented
from sketchbandit.service.api.request_models import (
    BanditName,
    DecideBatchRequest,
    DecideRequest,
    KeyedDecideRequest,
)
from sketchbandit.service.engine import Engine

_NPY_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": "A float32 or float64 matrix, one arm a row.",
}
_DECIDE = documented(DecisionAnswer, 404, 409, body=DecideRequest)
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
    """The paths of decisions, over one engine."""
    routes = APIRouter(tags=["decisions"])

    @routes.post("/v1/bandits/{name}/decide", **_DECIDE)
    async def decide(name: BanditName, request: Request) -> Response:
        """Choose an arm. The answer is sent when the decision is on disk."""
        return Response(await handle_decide(engine, name, request), media_type=JSON)

    @routes.post(
        "/v1/bandits/{name}/decide/batch", **documented(DecideBatchAnswer, 404, body=DecideBatchRequest)
    )
    async def decide_batch(name: BanditName, request: Request) -> Response:
        """Several decisions, committed together; each succeeds or fails by itself."""
        bandit = engine.bandit(name)
        asked = await read_json(request, DecideBatchRequest, engine)
        reader = ArmReader(request, bandit, engine)

        async def one(wanted: KeyedDecideRequest) -> DecisionAnswer:
            offered = reader.offered(wanted)
            digest = _digest(wanted.model_dump_json(exclude={"key"}).encode()) if wanted.key else ""
            decided = await engine.decisions.decide(
                bandit, offered, top=wanted.top, key=wanted.key, request=digest
            )
            return DecisionAnswer(**decision_json(bandit, decided))

        answers = await handle_each(KeyedDecideRequest, asked.decisions, one, engine.limits)
        return json_response(DecideBatchAnswer.model_construct(decisions=answers))

    return routes


async def handle_decide(engine: Engine, name: str, request: Request) -> bytes:
    """One decision; gives a DecisionAnswer as JSON."""
    bandit = engine.bandit(name)
    kind, key, top = content_type(request), idempotency_key(request), query_top(request)
    if key is None:
        engine.decisions.admit(bandit)  # before any work; with a key it may be there already
    body = await read_body(request, engine)
    reader = ArmReader(request, bandit, engine)
    offered, said = (reader.from_npy(body), None) if kind == NPY else reader.from_json(body)
    top = said or top
    digest = "" if key is None else _digest(f"{kind} {top} ".encode() + body)
    decided = await engine.decisions.decide(bandit, offered, top=top, key=key, request=digest)
    return json.dumps(decision_json(bandit, decided), separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
