"""Reads what a decision is made among: arms as JSON or npy, ids of stored arms, a context."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from sketchbandit_service.api import prices
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.npy import read_npy
from sketchbandit_service.api.request_models import (
    ArmsRequest,
    DecideRequest,
    DenseDecideRequest,
    KeyedDecideRequest,
    storable,
)
from sketchbandit_service.api.request_reader import check_field, digest, pieces, quotes, validated
from sketchbandit_service.api.rows import Rows
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.budget import Charge
from sketchbandit_service.interactions import PRODUCT, StoredSet, context_length, longest
from sketchbandit_service.offered import ActionSet, ArmSet, Offered
from sketchbandit_service.problems import Invalid, TooLarge
from sketchbandit_service.settings import Limits
from sketchbandit_service.types import JsonObject, Matrix, Vector
from sketchbandit_service.vectors import check

_OR_STORED = ", or the id of a stored arm"


class Asked(NamedTuple):
    """One decision as the client asked for it."""

    offered: Offered
    top: int | None
    key: str | None = None
    digest: str = ""
    """A digest of the request. It shows when a key is used again for another request."""


class ArmReader:
    """Reads arms from a request to a bandit. Memory is charged before each arm is made."""

    def __init__(
        self,
        bandit: Bandit,
        charge: Charge,
        limits: Limits,
        pace: Callable[[], None] | None = None,
        *,
        device: str | None = None,
    ) -> None:
        self._bandit, self._charge, self._limits, self._pace = bandit, charge, limits, pace
        self._device = device
        self._dim = bandit.config.dim
        self._stored_dim = bandit.config.stored_dim
        self._is_logged = bandit.config.log_arms

    def cursor(self, body: bytes) -> Cursor:
        """A cursor at the beginning of a JSON body."""
        self._charge.add(prices.text(body))
        return Cursor(body, self._charge.add, self._pace)

    def from_json(self, body: bytes) -> Asked:
        """Read one decision."""
        cursor = self.cursor(body)
        asked = self.decision(cursor)
        cursor.finish()
        return asked

    def from_dense(self, body: bytes) -> Asked | None:
        """Read one decision among dense arms in a sixth of the time. None: it is another kind of request.

        Nearly all requests are of this kind. The body must be ``is_plain``, or short.
        """
        if self._bandit.config.actions is not None:
            return None
        try:
            found = DenseDecideRequest.model_validate_json(body)
        except ValidationError:
            return None
        if quotes(body) != (2 if found.top is None else 4):
            return None  # a field is given twice
        self._check_count(len(found.arms))
        self._pay(prices.dense(len(found.arms), self._dim))
        for place, arm in enumerate(found.arms):
            if len(arm) != self._dim:
                self._check_dim(f"arm {place} has", len(arm))
        return Asked(ArmSet(self._checked(np.array(found.arms, dtype=np.float64)), None), found.top)

    def decision(self, cursor: Cursor, model: type[DecideRequest] = DecideRequest) -> Asked:
        """Read the decision that the object at the cursor asks for."""
        has_actions = self._bandit.config.actions is not None
        said: JsonObject = {}
        arms, sources = None, []
        for field in cursor.members():
            check_field(field, said, model)
            begin = cursor.at
            if field == "arms" and cursor.peek() == "[" and not has_actions:
                arms, said[field] = self._arms(cursor), ()
            else:
                numbers = cursor.numbers() if field == "context" and cursor.peek() == "[" else None
                said[field] = cursor.value() if numbers is None else numbers
            if field != "key":
                sources.append((field, begin, cursor.at))
        asked = validated(model, said)
        offered = self._offered(asked, arms)
        if not isinstance(asked, KeyedDecideRequest) or asked.key is None:
            return Asked(offered, asked.top)
        return Asked(offered, asked.top, asked.key, digest(pieces(cursor.text, sorted(sources))))

    def _offered(self, asked: DecideRequest, arms: ArmSet | None) -> Offered:
        """What the decision is made among. ``arms`` are those listed in the request."""
        name = self._bandit.name
        if self._bandit.config.actions is not None:
            if asked.interaction is not None:
                raise Invalid(f"bandit {name!r} has actions and no stored arms; leave out the interaction")
            if asked.arms is not None or asked.context is None:
                raise Invalid(
                    f"bandit {name!r} has actions: send a context of {self._dim} features, and no arms"
                )
            return ActionSet(self._context(asked.context, self._rows()), self._actions(asked.actions))
        if asked.actions is not None:
            raise Invalid(f"bandit {name!r} was created without actions; send arms instead of actions")
        if asked.arms is not None and arms is None:
            raise Invalid("arms: Input should be a valid list")
        if asked.context is not None:
            return self._with_context(arms, asked.context, asked.interaction or PRODUCT)
        if asked.interaction is not None:
            raise Invalid("there is an interaction but no context; send both, or neither")
        return self._as_they_are(arms)

    def from_npy(self, body: bytes) -> Offered:
        """Read a matrix of arms."""
        if self._bandit.config.actions is not None:
            raise Invalid(f"bandit {self._bandit.name!r} has actions; send the context as JSON")

        def look(shape: tuple[int, int]) -> None:
            self._check_dim("arms have", shape[1])
            self._check_count(shape[0])
            self._pay(prices.dense(shape[0], self._dim))

        return ArmSet(self._checked(read_npy(body, look)), None)

    def stored(self, body: bytes) -> tuple[list[str], Matrix]:
        """Read arms to store, and their ids."""
        cursor, rows = self.cursor(body), self._stored_rows()
        ids: dict[str, int] = {}
        for field in cursor.members():
            check_field(field, ("arms",) if ids else (), ArmsRequest)
            for arm in cursor.members():
                try:
                    storable(arm)
                except ValueError as error:
                    raise Invalid(f"the id of an arm: {error}") from None
                if len(ids) >= self._limits.arms:
                    raise TooLarge(f"more than {len(ids)} arms; a bandit stores up to {self._limits.arms}")
                self._name(arm, ids)
                rows.add(ids.setdefault(arm, len(ids)), cursor.value(), f"arm {arm!r}", f"arms.{arm}")
        cursor.finish()
        if not ids:
            raise Invalid("arms is empty; give at least one arm")
        return [*ids], self._checked(rows.matrix())

    # -- parts ----------------------------------------------------------------------------------------

    def _arms(self, cursor: Cursor) -> ArmSet:
        """Read a list of arms. Stored arms are copied at the end, all at once."""
        stored, rows, count = self._bandit.arms, self._rows(), 0
        places: dict[str, int] = {}
        for place in cursor.elements():
            count = place + 1
            self._check_count(count)
            numbers = cursor.numbers() if cursor.peek() == "[" else None
            arm = cursor.value() if numbers is None else numbers
            if not isinstance(arm, str):
                rows.add(place, arm, f"arm {place}", f"arms.{place}", _OR_STORED)
                continue
            if arm not in stored:
                stored.row(arm)  # raises
            self._name(arm, places)
            places[arm] = place
        self._check_count(count)
        if not places:
            return ArmSet(self._checked(rows.matrix()), None)
        self._pay(prices.chosen(stored.choose_from(None).matrix, len(places)))
        chosen = stored.choose_from([*places])
        if len(places) == count:
            return chosen
        self._check_whole()
        rows.put(chosen.matrix, places.values())
        ids: list[str | None] = [None] * count
        for known, at in places.items():
            ids[at] = known
        return ArmSet(self._checked(rows.matrix()), ids)

    def _name(self, arm: str, before: Collection[str]) -> None:
        """Charge an id. Refuse an id that is given twice: a reward by id would be ambiguous."""
        if arm in before:
            raise Invalid(f"the arm {arm!r} is given twice; name each arm once")
        self._charge.add(prices.NAMED)

    def _all_stored(self) -> ArmSet:
        """All stored arms. They are not copied."""
        stored = self._bandit.arms
        self._check_count(len(stored) or 1)
        self._charge.add(stored.nbytes if self._is_logged else 0)
        return stored.choose_from(None)

    def _as_they_are(self, arms: ArmSet | None) -> Offered:
        """The arms without a context."""
        if arms is None or arms.ids is not None:
            self._check_whole()
        if arms is not None:
            return arms
        stored, prepared = self._all_stored(), self._prepared(arms)
        return stored if prepared is None else StoredSet(stored, store=prepared, device=self._device)

    def _prepared(self, arms: ArmSet | None) -> ArmStore | None:
        """The store with its prepared catalogue, if all stored arms are asked for and they are many."""
        stored = self._bandit.arms
        return stored if arms is None and stored.is_prepared else None

    def _check_whole(self) -> None:
        """Refuse stored arms that have fewer features than ``dim`` and need a context."""
        if self._stored_dim != self._dim:
            raise Invalid(
                f"stored arms of bandit {self._bandit.name!r} have {self._stored_dim} features, but its dim "
                f"is {self._dim}; send a context, with the interaction concatenate or outer"
            )

    def _with_context(self, arms: ArmSet | None, given: object, interaction: str) -> StoredSet:
        """Stored arms with a context. All limits are checked before anything is computed."""
        name, stored = self._bandit.name, self._bandit.arms
        if arms is not None and (arms.ids is None or None in arms.ids):
            raise Invalid(
                "a context goes with stored arms: give their ids, or leave arms out to use all; arms sent "
                "as features must contain the context already"
            )
        length = context_length(interaction, self._stored_dim, self._dim, name)
        wanted = f"the interaction {interaction} with stored arms of bandit {name!r} needs"
        context = self._context(given, Rows(length, self._pay, wanted))
        dense = context if isinstance(context, np.ndarray) else context.toarray()[0]
        if not stored.is_dense:
            raise Invalid(
                f"bandit {name!r} has sparse or named stored arms, but a context needs dense ones; PUT the "
                "arms as lists of numbers"
            )
        chosen = self._all_stored() if arms is None else arms
        if not (found := longest(interaction, stored.longest_arm, dense)) <= self._limits.arm_length:
            most = self._limits.arm_length
            raise Invalid(f"with this context an arm can have length {found:g}; the limit is {most:g}")
        made = StoredSet(chosen, dense, interaction, self._prepared(arms), self._device)
        if made.nbytes > self._limits.bandit_bytes:
            raise TooLarge(
                f"{len(made)} arms with the context take {made.nbytes} bytes; a bandit may use "
                f"{self._limits.bandit_bytes}; name fewer arms"
            )
        self._charge.add(made.nbytes if self._is_logged else 0)
        return made

    def _context(self, given: object, rows: Rows) -> Vector:
        rows.add(0, given, "the context", "context")
        return ArmSet(self._checked(rows.matrix(), "the context"), None).row(0)

    def _actions(self, asked: Sequence[str] | None) -> Sequence[str]:
        """The actions to choose from."""
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
            raise Invalid("an action is given twice; name each action once")
        return asked

    def _rows(self) -> Rows:
        return Rows(self._dim, self._pay, f"the dim of bandit {self._bandit.name!r} is")

    def _stored_rows(self) -> Rows:
        which = "dim" if self._stored_dim == self._dim else "arm_dim"
        return Rows(self._stored_dim, self._pay, f"the {which} of bandit {self._bandit.name!r} is")

    def _pay(self, count: int) -> None:
        """Charge for arms that are made, and for their copy in the log."""
        self._charge.add(2 * count if self._is_logged else count)

    def _checked(self, matrix: Matrix, name: str | None = None) -> Matrix:
        """Refuse NaN, inf and arms that are too long. ``name`` is what messages call a single arm."""
        check(matrix, self._limits.arm_length, name)
        return matrix

    def _check_count(self, count: int) -> None:
        """Refuse an empty list of arms, or too many arms."""
        if not count:
            raise Invalid(
                "the list of arms is empty; send at least one, or leave arms out to use stored arms"
            )
        if count > self._limits.arms:
            raise TooLarge(f"{count} arms; this server takes up to {self._limits.arms} per decision")

    def _check_dim(self, what: str, found: int) -> None:
        if found != self._dim:
            name = self._bandit.name
            raise Invalid(f"{what} {found} features, but the dim of bandit {name!r} is {self._dim}")
