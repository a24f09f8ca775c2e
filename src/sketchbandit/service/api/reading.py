"""Reading requests: typed, never executed, and what is wrong with one in words."""

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from sketchbandit.service.api.request_models import RequestModel
from sketchbandit.service.http.messages import JSON, Request
from sketchbandit.service.problems import Invalid, Malformed, TooLarge, WrongType

M = TypeVar("M", bound=RequestModel)

NPY = "application/x-npy"
AT_ONCE = 1 << 16
"""Bytes of a body that is read on the event loop; longer ones are read in a thread, piece by piece."""
_LONGEST = 1 << 20  # bytes of bodies that are not read piece by piece: settings, a reward
_KEY = re.compile(r"[!-~]{1,128}")


def content_type(request: Request, *kinds: str) -> str:
    """That of the body; another one is refused, a plain form of another site too."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in kinds:
        npy = f" (or {NPY} for arms)" if NPY in kinds else ""
        raise WrongType(f"the body must be {JSON}{npy}, got {found or 'no content type'!r}")
    return found


def idempotency_key(request: Request) -> str | None:
    """The header of that name, checked."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid("Idempotency-Key: 1 to 128 printable characters without spaces are taken")
    return key


def query_top(request: Request) -> int | None:
    """``?top=k``."""
    text = request.query.get("top")
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise Invalid(f"top: must be a whole number of at least 1, got {text[:20]!r}")
    return int(text)


def parse(model: type[M], body: bytes) -> M:
    """The body as a ``model``."""
    if len(body) > _LONGEST:
        raise TooLarge(f"the body has {len(body)} bytes; for this request it has up to {_LONGEST}")
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise complaint(error, model) from None


def validated(model: type[M], said: Any) -> M:
    """What was said as a ``model``."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise complaint(error, model) from None


def check_field(field: str, said: Collection[str], model: type[RequestModel]) -> None:
    """Refuse one that is not known, or that is there already."""
    if field not in model.model_fields:
        raise _no_such_field(field[:100], model)
    if field in said:
        raise Invalid(f"{field}: the field is there twice")


def complaint(error: ValidationError, model: type[RequestModel]) -> Malformed | Invalid:
    """The first error in words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # between the names of fields and the places in lists stand names of types, which say nothing here
    path = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    where = ".".join(map(str, path))
    if first["type"] == "json_invalid":
        return Malformed(first["msg"])
    if first["type"] == "extra_forbidden":
        return _no_such_field(where, _model_at(path, model))
    return Invalid(f"{where}: {first['msg']}" if where else first["msg"])


def _no_such_field(where: str, model: type[RequestModel]) -> Invalid:
    return Invalid(f"{where}: there is no such field; known are {', '.join(model.model_fields)}")


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
