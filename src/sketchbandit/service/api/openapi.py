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
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorAnswer} for status in (401, 403, 422, 429, 503, *statuses)
    }
    described: dict[str, Any] = {"response_model": answer, "responses": errors}
    if body is not None:
        errors.update({status: {"model": ErrorAnswer} for status in (400, 413, 415)})
        content = {JSON: {"schema": inlined(body.model_json_schema())}}
        described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return described
