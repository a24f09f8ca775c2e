"""What OpenAPI is told of handlers that read their bodies and write their answers themselves."""

from typing import Any

from pydantic import BaseModel

from sketchbandit.service.api.answer_models import ErrorAnswer
from sketchbandit.service.api.bodies import JSON
from sketchbandit.service.api.request_models import inlined


def documented(
    answer: type[BaseModel], *statuses: int, body: type[BaseModel] | None = None
) -> dict[str, Any]:
    """Its answer, its body, and the errors: those that any path has, and ``statuses``."""
    refused = (401, 403, 422, 429, 503, *statuses, *(() if body is None else (400, 413, 415)))
    described: dict[str, Any] = {"response_model": answer}
    described["responses"] = {status: {"model": ErrorAnswer} for status in refused}
    if body is not None:
        content = {JSON: {"schema": inlined(body.model_json_schema())}}
        described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return described
