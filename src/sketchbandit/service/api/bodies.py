"""Reading request bodies: limited, typed, never executed."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from sketchbandit.service.api.request_models import RequestModel
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Invalid, Malformed, TooLarge, WrongType
from sketchbandit.service.settings import Limits

T = TypeVar("T", bound=RequestModel)

JSON = "application/json"
NPY = "application/x-npy"

_KEY = re.compile(r"[!-~]{1,128}")
_KINDS = "a list of numbers, {indices, values}, named features, or the id of a stored arm"


async def read_body(request: Request, engine: Engine) -> bytes:
    """The body, refused as soon as it is known to be too long, alone or with all others."""
    limits = engine.limits
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > limits.body_bytes:
        raise _too_long(limits)
    chunks: list[bytes] = []
    length, has_more = 0, True
    while has_more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        length += len(chunk)
        if length > limits.body_bytes:
            raise _too_long(limits)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def content_type(request: Request) -> str:
    """JSON or npy; anything else is refused, a plain form of another site too."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in (JSON, NPY):
        raise WrongType(f"the body must be {JSON} (or {NPY} for arms), got {found or 'no content type'!r}")
    return found


def idempotency_key(request: Request) -> str | None:
    """The header of that name, checked."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid("Idempotency-Key: 1 to 128 printable characters without spaces are taken")
    return key


def query_top(request: Request) -> int | None:
    """``?top=k``."""
    text = request.query_params.get("top")
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise Invalid(f"top: must be a whole number of at least 1, got {text[:20]!r}")
    return int(text)


def parse(model: type[T], body: bytes) -> T:
    """The body as a ``model``."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise complaint(error, model) from None


async def read_json(request: Request, model: type[T], engine: Engine) -> T:
    """A JSON body as a ``model``."""
    if content_type(request) != JSON:
        raise WrongType(f"the body must be {JSON}")
    return parse(model, await read_body(request, engine))


def complaint(error: ValidationError, model: type[RequestModel] | None = None) -> Malformed | Invalid:
    """The first error in words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # between the names of fields and the places in lists stand names of types, which say nothing here
    path = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    path = [part for part in path if part not in ("SparseArm", "str", "float")]
    where = ".".join(map(str, path))
    text = f"{where}: {first['msg']}" if where else first["msg"]
    if first["type"] == "json_invalid":
        return Malformed(text)
    if first["type"] == "extra_forbidden" and model is not None:
        return Invalid(
            f"{where}: there is no such field; known are {', '.join(_model_at(path, model).model_fields)}"
        )
    if first["type"] in ("list_type", "dict_type") and len(path) == 2 and path[0] == "arms":
        return Invalid(f"arm {path[1]} must be {_KINDS}")
    return Invalid(text)


def _model_at(path: Sequence[int | str], model: type[RequestModel]) -> type[RequestModel]:
    """The model, or the one inside it, that the last field of a path belongs to."""
    for part in path[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[RequestModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, RequestModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _too_long(limits: Limits) -> TooLarge:
    return TooLarge(
        f"the body is longer than {limits.body_bytes} bytes; send fewer arms, store them with PUT /arms, or "
        f"send them as {NPY} in float32"
    )
