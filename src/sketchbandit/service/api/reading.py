"""Reading requests: typed, never executed, and what is wrong with one in words."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from sketchbandit.service.api import prices
from sketchbandit.service.api.json_cursor import Cursor
from sketchbandit.service.api.request_models import RequestModel
from sketchbandit.service.api.routing import Call
from sketchbandit.service.http.messages import JSON, Request
from sketchbandit.service.politeness import Pace
from sketchbandit.service.problems import Invalid, Malformed, TooLarge, WrongType

M = TypeVar("M", bound=RequestModel)

NPY = "application/x-npy"
PLAIN_AT_ONCE = 1 << 16
"""Bytes of a matrix of numbers, as npy or JSON, that is read on the event loop: a millisecond or two."""
AT_ONCE = 1 << 11
"""Bytes of any other body that is: an arm of two characters takes microseconds. Longer ones are read in a
thread, piece by piece; so are batches, for an item of them takes more."""
_LONGEST = 1 << 20  # bytes of bodies that are not read piece by piece: settings, a reward
_HASHED = 1 << 16  # characters that are hashed at once
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


def quotes(body: bytes) -> int:
    """How many there are, up to five; looking for the next is much faster than counting."""
    count, at = 0, body.find(b'"')
    while at >= 0 and count < 5:
        count, at = count + 1, body.find(b'"', at + 1)
    return count


def is_plain(body: bytes) -> bool:
    """Whether it can be arms that are lists of numbers, and top: nothing else is in quotes or braces.

    So what the fast reader refuses is refused soon, however long it is.
    """
    return body.find(b"{") == body.rfind(b"{") and quotes(body) in (2, 4)


def pieces(text: str, fields: Iterable[tuple[str, int, int]]) -> Iterator[bytes]:
    """What was said of each field, and where it stands in the text, a piece at a time."""
    for field, begin, end in fields:
        yield f"{field}:".encode()
        for at in range(begin, end, _HASHED):
            yield text[at : min(at + _HASHED, end)].encode()
        yield b"\n"


def digest(parts: Iterable[bytes]) -> str:
    """A short name of what was asked."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()


async def parse(call: Call, model: type[M]) -> M:
    """The body as a ``model``."""
    body = call.request.body
    if len(body) > _LONGEST:
        raise TooLarge(f"the body has {len(body)} bytes; for this request it has up to {_LONGEST}")
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


def read_fields(cursor: Cursor, model: type[RequestModel]) -> dict[str, Any]:
    """What the object at the cursor says; the first field that is not known ends it."""
    said: dict[str, Any] = {}
    for field in cursor.members():
        check_field(field, said, model)
        said[field] = cursor.value()
    return said


def validated(model: type[M], said: Any) -> M:
    """What was said as a ``model``."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise complaint(error, model) from None


def check_field(field: str, said: Collection[str], model: type[RequestModel]) -> None:
    """Refuse one that is not known, or that is there already."""
    if field not in names_of(model):
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
    return Invalid(f"{where}: there is no such field; known are {', '.join(names_of(model))}")


def names_of(model: type[RequestModel]) -> list[str]:
    """The fields of a request as clients write them."""
    return [field.alias or name for name, field in model.model_fields.items()]


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
