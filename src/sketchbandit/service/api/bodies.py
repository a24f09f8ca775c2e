"""Reading request bodies: limited, typed, never executed."""

import io
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError
from starlette.requests import Request

from sketchbandit.service.api import models
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Busy, Invalid, Malformed, TooLarge, WrongType
from sketchbandit.service.settings import Limits
from sketchbandit.service.vectors import ArmSet, Vector, check, from_named, from_sparse, stack

T = TypeVar("T", bound=models.Request)

JSON = "application/json"
NPY = "application/x-npy"

_KEY = re.compile(r"[!-~]{1,128}")
_HEADER_BYTES = 10_000  # of an npy file: more is not a matrix of numbers


async def read_body(request: Request, engine: Engine) -> bytes:
    """The body, refused as soon as it is known to be too long, alone or with all that are being read."""
    limits = engine.limits
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > limits.body_bytes:
        raise _too_long(limits)
    chunks, length = [], 0
    try:
        async for chunk in request.stream():
            length += len(chunk)
            engine.body_bytes += len(chunk)
            if length > limits.body_bytes:
                raise _too_long(limits)
            if engine.body_bytes > limits.bodies_bytes:
                raise Busy("too many large requests at once; try again in a moment")
            chunks.append(chunk)
    finally:
        engine.body_bytes -= length
    return b"".join(chunks) if len(chunks) != 1 else chunks[0]


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
    if not text.isdecimal() or not 1 <= int(text[:20]) < 2**31:
        raise Invalid(f"top: must be a whole number of at least 1, got {text[:20]!r}")
    return int(text)


def parse(model: type[T], body: bytes) -> T:
    """The body as a ``model``."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _complaint(error) from None


async def read_json(request: Request, model: type[T], engine: Engine) -> T:
    """A JSON body as a ``model``."""
    if content_type(request) != JSON:
        raise WrongType(f"the body must be {JSON}")
    return parse(model, await read_body(request, engine))


def read_decision(body: bytes, bandit: Bandit, limits: Limits) -> tuple[ArmSet, int | None]:
    """The arms and ``top`` of a JSON request."""
    try:  # dense arms first: a quarter of the time
        dense = models.DenseDecideRequest.model_validate_json(body)
    except ValidationError:
        asked = parse(models.DecideRequest, body)
        return arms_of(asked.arms, bandit, limits), asked.top
    return _dense(dense.arms, bandit, limits), dense.top


def read_npy(body: bytes, bandit: Bandit, limits: Limits) -> ArmSet:
    """A matrix of arms in numpy's file format, read without unpickling and without a copy."""
    buffer = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(buffer)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(buffer, max_header_size=_HEADER_BYTES)
        elif version == (2, 0):
            header = np.lib.format.read_array_header_2_0(buffer, max_header_size=_HEADER_BYTES)
        else:
            raise Malformed(f"npy files of version {version} are not read; write version 1.0")
    except ValueError as error:
        raise Malformed(f"the body is not an npy file: {error}") from None
    shape, is_fortran, dtype = header
    if dtype.kind != "f" or dtype.itemsize not in (4, 8) or len(shape) != 2:
        raise Invalid(f"arms must be a float32 or float64 matrix, got {dtype} of shape {shape}")
    _check_shape(shape[0], shape[1], bandit, limits)
    payload = body[buffer.tell() :]
    if len(payload) != shape[0] * shape[1] * dtype.itemsize:
        raise Malformed(f"the npy file says {shape} {dtype}, and {len(payload)} bytes follow")
    matrix = np.frombuffer(payload, dtype).reshape(shape, order="F" if is_fortran else "C")
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    check(matrix, limits.magnitude)
    return ArmSet(matrix, None)


def arms_of(arms: Sequence[Any] | None, bandit: Bandit, limits: Limits) -> ArmSet:
    """Arms in whatever forms they came; None: all that are stored."""
    if arms is None:
        return bandit.arms.choose_from(None)
    _check_shape(len(arms), bandit.config.dim, bandit, limits)
    if all(isinstance(arm, str) for arm in arms):
        return bandit.arms.choose_from(list(arms))
    ids = [arm if isinstance(arm, str) else None for arm in arms]
    if all(isinstance(arm, dict) for arm in arms):
        matrix = from_named(arms, bandit.config.dim)  # a tenth of the time of one by one
    else:
        rows = [
            bandit.arms.row(arm) if isinstance(arm, str) else features_of(arm, bandit, f"arm {place}")
            for place, arm in enumerate(arms)
        ]
        matrix = stack(rows)
    check(matrix, limits.magnitude)
    return ArmSet(matrix, ids if any(ids) else None)


def features_of(arm: Any, bandit: Bandit, at: str) -> Vector:
    """One arm: dense, sparse or named."""
    dim = bandit.config.dim
    if isinstance(arm, models.SparseArm):
        return from_sparse(arm.indices, arm.values, dim, at)
    if isinstance(arm, dict):
        return from_named([arm], dim)
    if len(arm) != dim:
        raise Invalid(f"{at} has {len(arm)} features, but the dim of bandit {bandit.name!r} is {dim}")
    return np.array(arm, dtype=np.float64)


def _dense(arms: list[list[float]], bandit: Bandit, limits: Limits) -> ArmSet:
    _check_shape(len(arms), bandit.config.dim, bandit, limits)
    for place, arm in enumerate(arms):
        if len(arm) != bandit.config.dim:
            features_of(arm, bandit, f"arm {place}")  # says so
    matrix = np.array(arms, dtype=np.float64)
    check(matrix, limits.magnitude)
    return ArmSet(matrix, None)


def _check_shape(count: int, dim: int, bandit: Bandit, limits: Limits) -> None:
    if not count:
        raise Invalid("there are no arms to choose from: the list is empty")
    if count > limits.arms:
        raise TooLarge(f"{count} arms; this server takes up to {limits.arms} a decision")
    if dim != bandit.config.dim:
        raise Invalid(
            f"arms have {dim} features, but the dim of bandit {bandit.name!r} is {bandit.config.dim}"
        )


def _too_long(limits: Limits) -> TooLarge:
    return TooLarge(
        f"the body is longer than {limits.body_bytes} bytes; send fewer arms, store them with PUT /arms, or "
        f"send them as {NPY} in float32"
    )


def _complaint(error: ValidationError) -> Malformed | Invalid:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    text = f"{where}: {first['msg']}" if where else first["msg"]
    return Malformed(text) if first["type"] == "json_invalid" else Invalid(text)
