"""Reads requests into typed models, and says in words what is wrong with one."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from sketchbandit_service.api import prices
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.request_models import RequestModel
from sketchbandit_service.api.routing import Call
from sketchbandit_service.http.messages import JSON, Request
from sketchbandit_service.pacing import Pace
from sketchbandit_service.problems import Invalid, Malformed, TooLarge, WrongType
from sketchbandit_service.types import Json, JsonObject

M = TypeVar("M", bound=RequestModel)

NPY = "application/x-npy"
PLAIN_AT_ONCE = 1 << 16
"""A matrix of numbers up to this many bytes is read on the event loop. It takes a millisecond or two."""
AT_ONCE = 1 << 11
"""Any other body up to this many bytes is read on the event loop. An arm of two characters takes
microseconds. Longer bodies and all batches are read in a thread, piece by piece."""
_LONGEST = 1 << 20  # most bytes of bodies that are not read piece by piece: settings, a reward
_HASHED = 1 << 16  # characters that are hashed at once
_KEY = re.compile(r"[!-~]{1,128}")


def content_type(request: Request, *kinds: str) -> str:
    """The content type of the body.

    Others are refused, including the types that a form of another site sends.
    """
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in kinds:
        npy = f" (or {NPY} for arms)" if NPY in kinds else ""
        raise WrongType(f"the body must be {JSON}{npy}, got {found or 'no content type'!r}")
    return found


def idempotency_key(request: Request) -> str | None:
    """The checked value of the header Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid("Idempotency-Key must be 1 to 128 printable ASCII characters without spaces")
    return key


def query_top(request: Request) -> int | None:
    """The number in ``?top=k``."""
    text = request.query.get("top")
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise Invalid(f"top must be a whole number from 1 to 999999999, got {text[:20]!r}")
    return int(text)


def quotes(body: bytes) -> int:
    """The number of quotes, up to five. Looking for the next one is much faster than counting all."""
    count, at = 0, body.find(b'"')
    while at >= 0 and count < 5:
        count, at = count + 1, body.find(b'"', at + 1)
    return count


def is_plain(body: bytes) -> bool:
    """Whether the body can be lists of numbers and top: it has no other quotes and braces.

    So a body that the fast reader refuses is refused soon, however long it is.
    """
    return body.find(b"{") == body.rfind(b"{") and quotes(body) in (2, 4)


def pieces(text: str, fields: Iterable[tuple[str, int, int]]) -> Iterator[bytes]:
    """The names of the fields and their text, piece by piece."""
    for field, begin, end in fields:
        yield f"{field}:".encode()
        for at in range(begin, end, _HASHED):
            yield text[at : min(at + _HASHED, end)].encode()
        yield b"\n"


def digest(parts: Iterable[bytes]) -> str:
    """A short hash of a request."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()


async def parse(call: Call, model: type[M]) -> M:
    """The body as a ``model``."""
    body = call.request.body
    if len(body) > _LONGEST:
        raise TooLarge(f"the body has {len(body)} bytes; for this request at most {_LONGEST} are allowed")
    if len(body) > AT_ONCE:
        return await call.engine.threads.run(_parse_slowly, call, model)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise complaint(error, model) from None


def _parse_slowly(call: Call, model: type[M]) -> M:
    body, charge = call.request.body, call.request.charge
    charge.add(prices.text(body) + prices.objects(len(body)))
    cursor = Cursor(body, charge.add, Pace())
    said = read_fields(cursor, model)
    cursor.finish()
    return validated(model, said)


def read_fields(cursor: Cursor, model: type[RequestModel]) -> JsonObject:
    """The fields of the object at the cursor. Reading stops at the first unknown field."""
    said: JsonObject = {}
    for field in cursor.members():
        check_field(field, said, model)
        said[field] = cursor.value()
    return said


def validated(model: type[M], said: Json) -> M:
    """The fields as a ``model``."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise complaint(error, model) from None


def check_field(field: str, said: Collection[str], model: type[RequestModel]) -> None:
    """Refuse a field that is unknown, or that is given twice."""
    if field not in names_of(model):
        raise _no_such_field(field[:100], model)
    if field in said:
        raise Invalid(f"{field}: the field is given twice; give it once")


def complaint(error: ValidationError, model: type[RequestModel]) -> Malformed | Invalid:
    """The first error in words. An unknown field is named too: it may be a misspelt name of a missing one."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = _in_words(found[0], model)
    unknown = [one for one in found[1:] if one["type"] == "extra_forbidden" and len(one["loc"]) == 1]
    if isinstance(said, Malformed) or found[0]["type"] == "extra_forbidden" or not unknown:
        return said
    return Invalid(f"{said}; {_in_words(unknown[0], model)}")


def _in_words(first: Any, model: type[RequestModel]) -> Malformed | Invalid:
    # the path also has names of types between fields and places in lists; they say nothing to a client
    path = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    where = ".".join(map(str, path))
    if first["type"] == "json_invalid":
        return Malformed(first["msg"])
    if first["type"] == "extra_forbidden":
        return _no_such_field(where, _model_at(path, model))
    return Invalid(f"{where}: {first['msg']}" if where else first["msg"])


def _no_such_field(where: str, model: type[RequestModel]) -> Invalid:
    return Invalid(f"{where}: there is no such field; the fields are {', '.join(names_of(model))}")


def names_of(model: type[RequestModel]) -> list[str]:
    """The fields of a request, with the names that clients use."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(path: Sequence[int | str], model: type[RequestModel]) -> type[RequestModel]:
    """The model that the last field of a path belongs to: this one, or one inside it."""
    for part in path[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: object) -> type[RequestModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, RequestModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
