"""Arms from requests: JSON of every form, npy, ids of stored ones."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from sketchbandit.service.api.bodies import complaint, parse
from sketchbandit.service.api.request_models import (
    ARM_ID,
    DecideRequest,
    DenseDecideRequest,
    Features,
    SparseArm,
    undotted,
)
from sketchbandit.service.arm_store import check_once
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.engine import Engine
from sketchbandit.service.offered import ActionSet, ArmSet, Offered
from sketchbandit.service.problems import Invalid, Malformed, TooLarge
from sketchbandit.service.vectors import Vector, check, from_named, from_sparse, stack

_HEADER_BYTES = 10_000  # of an npy file: more is not a matrix of numbers
_FEATURES: TypeAdapter[Any] = TypeAdapter(Features)


class ArmReader:
    """Makes arms of what a request to a bandit holds; their memory is taken from the quota first."""

    def __init__(self, request: Request, bandit: Bandit, engine: Engine) -> None:
        self._scope = request.scope
        self._bandit = bandit
        self._dim = bandit.config.dim
        self._limits = engine.limits

    def from_json(self, body: bytes) -> tuple[Offered, int | None]:
        """The arms (or actions) and ``top`` of a JSON request."""
        if self._bandit.config.actions is None:
            try:  # dense arms first: a quarter of the time
                dense = DenseDecideRequest.model_validate_json(body)
            except ValidationError:
                pass
            else:
                return self._from_dense(dense.arms), dense.top
        asked = parse(DecideRequest, body)
        return self.offered(asked), asked.top

    def offered(self, asked: DecideRequest) -> Offered:
        """What a request is to be decided among."""
        name = self._bandit.name
        if self._bandit.config.actions is None:
            if asked.context is not None or asked.actions is not None:
                raise Invalid(
                    f"bandit {name!r} chooses among arms: send arms; it was created without actions"
                )
            return self.from_list(asked.arms)
        if asked.arms is not None or asked.context is None:
            raise Invalid(f"bandit {name!r} has actions: send a context, {self._dim} features, and no arms")
        context = self.features(asked.context, "the context")
        check(stack([context]), self._limits.arm_length, "the context")
        return ActionSet(context, self._actions(asked.actions))

    def _actions(self, asked: Sequence[str] | None) -> Sequence[str]:
        """Those that may be chosen."""
        models, name = self._bandit, self._bandit.name
        offered: Sequence[str] = models.actions
        if not (offered if asked is None else asked):
            empty = "all of its actions are retired" if asked is None else "the list of actions is empty"
            raise Invalid(f"bandit {name!r} has nothing to choose from: {empty}")
        if asked is None:
            return offered
        known = set(offered)
        for action in asked:
            if action not in known:
                if action in models.retired:
                    raise Invalid(f"the action {action!r} is retired; POST it to /actions to offer it again")
                raise Invalid(f"bandit {name!r} has no action {action!r}; POST it to /actions first")
        if len(set(asked)) != len(asked):
            raise Invalid("an action is there twice; name each once")
        return asked

    def from_npy(self, body: bytes) -> ArmSet:
        """A matrix of arms in numpy's file format, read without unpickling."""
        if self._bandit.config.actions is not None:
            raise Invalid(f"bandit {self._bandit.name!r} has actions: send the context as JSON")
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
        if shape[1] != self._dim:
            raise self._wrong_dim("arms have", shape[1])
        self._reserve(shape[0], shape[0] * self._dim)
        payload = bytearray(memoryview(body)[buffer.tell() :])  # writable: the loops are compiled for that
        if len(payload) != shape[0] * shape[1] * dtype.itemsize:
            raise Malformed(f"the npy file says {shape} {dtype}, and {len(payload)} bytes follow")
        matrix = np.frombuffer(payload, dtype).reshape(shape, order="F" if is_fortran else "C")
        return self._checked(np.ascontiguousarray(matrix, dtype=np.float64))

    def from_list(self, arms: Sequence[Any] | None) -> ArmSet:
        """Arms in whatever forms they came; None: all that are stored."""
        stored = self._bandit.arms
        if arms is None:
            self._reserve(len(stored) or 1, stored.nbytes // 8)
            return stored.choose_from(None)
        if all(isinstance(arm, str) for arm in arms):
            self._reserve(len(arms), len(arms) * stored.nbytes // 8 // (len(stored) or 1))
            return stored.choose_from(list(arms))
        self._reserve(len(arms), sum(self._cells(arm) for arm in arms))
        if all(isinstance(arm, dict) for arm in arms):
            return self._checked(from_named([_named(a, f"arm {i}") for i, a in enumerate(arms)], self._dim))
        rows = [
            stored.row(arm) if isinstance(arm, str) else self.features(arm, f"arm {place}")
            for place, arm in enumerate(arms)
        ]
        ids = [arm if isinstance(arm, str) else None for arm in arms]
        check_once([arm for arm in ids if arm is not None])
        return ArmSet(self._checked(stack(rows)).matrix, ids if any(ids) else None)

    def stored(self, arms: Mapping[str, Any]) -> dict[str, Vector]:
        """Arms by id, for keeping."""
        if len(arms) > self._limits.arms:
            raise TooLarge(f"{len(arms)} arms; a bandit stores up to {self._limits.arms}")
        found: dict[str, Vector] = {}
        for arm, given in arms.items():
            if not ARM_ID.fullmatch(arm):
                raise Invalid(f"an arm's id has 1 to 128 characters, got {arm[:150]!r}")
            try:
                undotted(arm)
            except ValueError as error:
                raise Invalid(f"an arm's id: {error}") from None
            try:
                features = _FEATURES.validate_python(given)
            except ValidationError as error:
                raise Invalid(f"arm {arm!r}: {complaint(error)}") from None
            found[arm] = self.features(features, f"arm {arm!r}")
        check(stack(list(found.values())), self._limits.arm_length)
        return found

    def features(self, arm: Any, at: str) -> Vector:
        """One arm: dense, sparse or named."""
        if isinstance(arm, SparseArm):
            return from_sparse(arm.indices, arm.values, self._dim, at)
        if isinstance(arm, dict):
            return from_named([_named(arm, at)], self._dim)
        if len(arm) != self._dim:
            raise self._wrong_dim(f"{at} has", len(arm))
        return np.array(arm, dtype=np.float64)

    def _from_dense(self, arms: list[list[float]]) -> ArmSet:
        self._reserve(len(arms), len(arms) * self._dim)
        for place, arm in enumerate(arms):
            if len(arm) != self._dim:
                raise self._wrong_dim(f"arm {place} has", len(arm))
        return self._checked(np.array(arms, dtype=np.float64))

    def _checked(self, matrix: Any) -> ArmSet:
        check(matrix, self._limits.arm_length)
        return ArmSet(matrix, None)

    def _reserve(self, count: int, cells: int) -> None:
        """Refuse no arms, too many, or more than there is memory for."""
        if not count:
            raise Invalid("there are no arms to choose from: the list is empty")
        if count > self._limits.arms:
            raise TooLarge(f"{count} arms; this server takes up to {self._limits.arms} a decision")

    def _cells(self, arm: Any) -> int:
        if isinstance(arm, SparseArm):
            return 2 * len(arm.indices)
        return 2 * len(arm) if isinstance(arm, dict) else self._dim

    def _wrong_dim(self, what: str, found: int) -> Invalid:
        bandit = self._bandit
        return Invalid(f"{what} {found} features, but the dim of bandit {bandit.name!r} is {self._dim}")


def _named(features: Mapping[str, Any], at: str) -> Mapping[str, float | str]:
    """Named features, each a number or a text."""
    for name, value in features.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (isinstance(value, str) or (is_number and abs(value) < 1e300)):
            raise Invalid(f"{at}: the feature {name[:100]!r} must be a finite number or a text")
    return features
