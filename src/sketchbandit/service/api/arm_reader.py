"""What a request wants decided: arms in JSON of every form or as npy, ids of stored ones, a context."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from sketchbandit.service.api import prices
from sketchbandit.service.api.json_cursor import Cursor
from sketchbandit.service.api.npy import read_npy
from sketchbandit.service.api.reading import check_field, validated
from sketchbandit.service.api.request_models import (
    ArmsRequest,
    DecideRequest,
    DenseDecideRequest,
    KeyedDecideRequest,
    storable,
)
from sketchbandit.service.api.rows import Rows
from sketchbandit.service.arm_store import check_once
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.budget import Charge
from sketchbandit.service.offered import ActionSet, ArmSet, Offered
from sketchbandit.service.problems import Invalid, TooLarge
from sketchbandit.service.settings import Limits
from sketchbandit.service.vectors import Matrix, Vector, check

_OR_STORED = ", or the id of a stored arm"


class Asked(NamedTuple):
    """One decision as it was asked for."""

    offered: Offered
    top: int | None
    key: str | None = None
    digest: str = ""
    """Of what was asked, so that a key used for something else is noticed."""


class ArmReader:
    """Makes arms of what a request to a bandit holds; each is charged before it is made."""

    def __init__(
        self, bandit: Bandit, charge: Charge, limits: Limits, pace: Callable[[], None] | None = None
    ) -> None:
        self._bandit, self._charge, self._limits, self._pace = bandit, charge, limits, pace
        self._dim = bandit.config.dim
        self._is_logged = bandit.config.log_arms

    def cursor(self, body: bytes) -> Cursor:
        """At the beginning of a JSON body."""
        self._charge.add(prices.text(body))
        return Cursor(body, self._charge.add, self._pace)

    def from_json(self, body: bytes) -> Asked:
        """One decision."""
        cursor = self.cursor(body)
        asked = self.decision(cursor)
        cursor.finish()
        return asked

    def from_dense(self, body: bytes) -> Asked | None:
        """One decision among dense arms, as nearly all are, in a sixth of the time; None if it is another."""
        if self._bandit.config.actions is not None:
            return None
        try:
            found = DenseDecideRequest.model_validate_json(body)
        except ValidationError:
            return None
        if not _is_once(body, found.top):
            return None
        self._check_count(len(found.arms))
        self._pay(prices.dense(len(found.arms), self._dim))
        for place, arm in enumerate(found.arms):
            self._check_dim(f"arm {place} has", len(arm))
        return Asked(ArmSet(self._checked(np.array(found.arms, dtype=np.float64)), None), found.top)

    def decision(self, cursor: Cursor, model: type[DecideRequest] = DecideRequest) -> Asked:
        """The decision that the object at the cursor asks for."""
        has_actions, name = self._bandit.config.actions is not None, self._bandit.name
        said: dict[str, Any] = {}
        arms, sources = None, []
        for field in cursor.members():
            check_field(field, said, model)
            begin = cursor.at
            if field == "arms" and cursor.peek() == "[" and not has_actions:
                arms, said[field] = self._arms(cursor), ()
            else:
                said[field] = cursor.value()
            if field != "key":
                sources.append((field, begin, cursor.at))
        asked = validated(model, said)
        if has_actions:
            if asked.arms is not None or asked.context is None:
                raise Invalid(
                    f"bandit {name!r} has actions: send a context, {self._dim} features, and no arms"
                )
            offered: Offered = ActionSet(self._context(asked.context), self._actions(asked.actions))
        elif asked.context is not None or asked.actions is not None:
            raise Invalid(f"bandit {name!r} chooses among arms: send arms; it was created without actions")
        elif asked.arms is None:
            offered = self._all_stored()
        elif arms is None:
            raise Invalid("arms: Input should be a valid list")
        else:
            offered = arms
        if not isinstance(asked, KeyedDecideRequest) or asked.key is None:
            return Asked(offered, asked.top)
        source = "".join(f"{field}:{cursor.text[begin:end]}\n" for field, begin, end in sorted(sources))
        return Asked(offered, asked.top, asked.key, digest(source.encode()))

    def from_npy(self, body: bytes) -> Offered:
        """A matrix of arms."""
        if self._bandit.config.actions is not None:
            raise Invalid(f"bandit {self._bandit.name!r} has actions: send the context as JSON")

        def look(shape: tuple[int, int]) -> None:
            self._check_dim("arms have", shape[1])
            self._check_count(shape[0])
            self._pay(prices.dense(shape[0], self._dim))

        return ArmSet(self._checked(read_npy(body, look)), None)

    def stored(self, body: bytes) -> tuple[list[str], Matrix]:
        """Arms for keeping, and their ids."""
        cursor, rows = self.cursor(body), self._rows(len(body))
        ids: list[str] = []
        for field in cursor.members():
            check_field(field, ("arms",) if ids else (), ArmsRequest)
            for arm in cursor.members():
                try:
                    storable(arm)
                except ValueError as error:
                    raise Invalid(f"an arm's id: {error}") from None
                if len(ids) >= self._limits.arms:
                    raise TooLarge(f"more than {len(ids)} arms; a bandit stores up to {self._limits.arms}")
                ids.append(arm)
                rows.add(cursor.value(), f"arm {arm!r}", f"arms.{arm}")
        cursor.finish()
        if not ids:
            raise Invalid("arms: there are none; give at least one")
        return ids, self._checked(rows.matrix())

    # -- parts ----------------------------------------------------------------------------------------

    def _arms(self, cursor: Cursor) -> ArmSet:
        """The arms of a list; as long as all are ids of stored ones, nothing is copied."""
        stored, rows, begin = self._bandit.arms, None, cursor.at
        ids: list[str | None] = []
        for place in cursor.elements():
            self._check_count(place + 1)
            arm = cursor.numbers() if cursor.peek() == "[" else None
            arm = cursor.value() if arm is None else arm
            if isinstance(arm, str):
                row = stored.row(arm)
                if rows is None:
                    self._pay(prices.copied(row))
                else:
                    rows.add_stored(row)
                ids.append(arm)
                continue
            if rows is None:
                rows = self._rows(len(cursor.text) - begin)
                for known in ids:
                    rows.add_stored(stored.row(known or ""))
            rows.add(arm, f"arm {place}", f"arms.{place}", _OR_STORED)
            ids.append(None)
        named = [arm for arm in ids if arm is not None]
        if rows is None:
            self._check_count(len(ids))
            return stored.choose_from(named)
        check_once(named)
        return ArmSet(self._checked(rows.matrix()), ids if named else None)

    def _all_stored(self) -> ArmSet:
        """They are read where they lie."""
        stored = self._bandit.arms
        self._check_count(len(stored) or 1)
        self._charge.add(stored.nbytes if self._is_logged else 0)
        return stored.choose_from(None)

    def _context(self, given: object) -> Vector:
        rows = self._rows(2 * self._dim)
        rows.add(given, "the context", "context")
        return ArmSet(self._checked(rows.matrix(), "the context"), None).row(0)

    def _actions(self, asked: Sequence[str] | None) -> Sequence[str]:
        """Those that may be chosen."""
        bandit, name = self._bandit, self._bandit.name
        offered = bandit.actions
        if not (offered if asked is None else asked):
            empty = "all of its actions are retired" if asked is None else "the list of actions is empty"
            raise Invalid(f"bandit {name!r} has nothing to choose from: {empty}")
        if asked is None:
            return offered
        known = set(offered)
        for action in asked:
            if action not in known:
                if action in bandit.retired:
                    raise Invalid(f"the action {action!r} is retired; POST it to /actions to offer it again")
                raise Invalid(f"bandit {name!r} has no action {action!r}; POST it to /actions first")
        if len(set(asked)) != len(asked):
            raise Invalid("an action is there twice; name each once")
        return asked

    def _rows(self, characters: int) -> Rows:
        """For arms that so many characters tell of: a number takes two at least."""
        most = min(self._limits.arms, characters // (2 * self._dim) + 1)
        return Rows(self._dim, most, self._pay, self._bandit.name)

    def _pay(self, count: int) -> None:
        """For arms that are made, and for what the log keeps of them."""
        self._charge.add(2 * count if self._is_logged else count)

    def _checked(self, matrix: Matrix, name: str | None = None) -> Matrix:
        """Refuse NaN, inf and arms that are too long; ``name`` is what a single one is called."""
        check(matrix, self._limits.arm_length, name)
        return matrix

    def _check_count(self, count: int) -> None:
        """Refuse no arms, or too many."""
        if not count:
            raise Invalid("there are no arms to choose from: the list is empty")
        if count > self._limits.arms:
            raise TooLarge(f"{count} arms; this server takes up to {self._limits.arms} a decision")

    def _check_dim(self, what: str, found: int) -> None:
        if found != self._dim:
            name = self._bandit.name
            raise Invalid(f"{what} {found} features, but the dim of bandit {name!r} is {self._dim}")


def _is_once(body: bytes, top: int | None) -> bool:
    """Whether ``arms``, and ``top`` where it is given, are there once: they are all that is in quotes."""
    if top is not None:
        return body.count(b'"') == 4
    return body.find(b'"', body.find(b'"') + 1) == body.rfind(b'"')


def digest(content: bytes) -> str:
    """A short name of what was asked."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
