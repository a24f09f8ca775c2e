"""Collects arms of any form, one by one, into one matrix."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sketchbandit_service.api import prices
from sketchbandit_service.api.json_cursor import LONGEST_TEXT
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import Matrix
from sketchbandit_service.vectors import from_named, from_sparse_rows, joined

_PIECE = 4000  # a matrix is made of this many sparse or named arms and entries at a time
_RESERVED = 4096  # dense arms have room for this many numbers at first
_NUMBERS = {int, float}

Pay = Callable[[int], None]


class Rows:
    """Arms of ``dim`` features and their places. ``pay`` is called before memory is taken.

    ``wanted`` is how messages introduce ``dim``.

    Arms of each form are collected separately, so a mix of forms costs nothing extra. All are put in order at
    the end.
    """

    def __init__(self, dim: int, pay: Pay, wanted: str) -> None:
        self._dim, self._pay, self._wanted = dim, pay, wanted
        self._dense = _Dense(dim, pay)
        self._sparse = _Pieces(partial(_from_sparse, dim), pay)
        self._named = _Pieces(lambda arms, _: from_named(arms, dim), pay)
        self._parts: list[tuple[Matrix, Sequence[int]]] = []

    def add(self, place: int, arm: object, called: str, at: str, or_else: str = "") -> None:
        """Add an arm.

        Messages call it ``called`` and say that it was read ``at`` this place of the request.
        """
        if isinstance(arm, list):
            _check_numbers(arm, _NUMBERS, "number", at)
            if len(arm) != self._dim:
                raise Invalid(f"{called} has {len(arm)} features, but {self._wanted} {self._dim}")
            self._dense.add(place, arm, at)
        elif not isinstance(arm, dict):
            raise Invalid(f"{called} must be a list of numbers, {{indices, values}}, named features{or_else}")
        elif arm.keys() == {"indices", "values"} and all(type(part) is list for part in arm.values()):
            _check_numbers(arm["indices"], {int}, "integer", f"{at}.indices")
            _check_numbers(arm["values"], _NUMBERS, "number", f"{at}.values")
            self._sparse.add(place, arm, called, max(map(len, arm.values())))
        else:
            self._named.add(place, _named(arm, called), called, len(arm))

    def put(self, matrix: Matrix, places: Iterable[int]) -> None:
        """Add several finished and paid arms with their places."""
        self._parts.append((matrix, array("q", places)))

    def matrix(self) -> Matrix:
        """All arms in order. The matrix is sparse if any arm is."""
        for form in (self._dense, self._sparse, self._named):
            if form.places:
                self._parts.append((form.matrix(), form.places))
        parts = [part for part, _ in self._parts]
        if len(parts) == 1:
            return parts[0]
        self._pay(prices.joining(parts))
        together = joined(parts)
        return together[np.argsort(np.concatenate([np.asarray(places) for _, places in self._parts]))]


def _from_sparse(dim: int, arms: list[Any], names: list[str]) -> Matrix:
    indices, values = ([arm[of] for arm in arms] for of in ("indices", "values"))
    return from_sparse_rows(indices, values, dim, names.__getitem__)


class _Dense:
    """Lists of numbers, in a matrix that grows."""

    def __init__(self, dim: int, pay: Pay) -> None:
        self.places = array("q")
        self._dim, self._pay = dim, pay
        self._held = np.empty((0, dim))

    def add(self, place: int, arm: Sequence[float], at: str) -> None:
        """Add an arm."""
        self._pay(prices.dense(1, self._dim))
        filled = len(self.places)
        if filled == len(self._held):
            self._grow(filled)
        row = self._held[filled]
        try:
            row[:] = arm
        except OverflowError:  # an integer that is too large for a float
            row[:] = np.inf
        if not np.isfinite(row).all():
            bad = int(np.flatnonzero(~np.isfinite(row))[0])
            raise Invalid(f"{at}.{bad}: Input should be a finite number")
        self.places.append(place)

    def _grow(self, filled: int) -> None:
        """Make room for twice as many arms."""
        self._pay(prices.dense(filled, self._dim))
        grown = np.empty((max(1, 2 * filled, _RESERVED // self._dim), self._dim))
        grown[:filled] = self._held
        self._held = grown

    def matrix(self) -> Matrix:
        """All arms."""
        return self._held[: len(self.places)]


class _Pieces:
    """Arms that become a matrix many at a time. Their first form is then dropped."""

    def __init__(self, make: Callable[[list[Any], list[str]], Matrix], pay: Pay) -> None:
        self.places = array("q")
        self._make, self._pay = make, pay
        self._waiting: list[Any] = []
        self._names: list[str] = []
        self._size = 0
        self._made: list[Matrix] = []

    def add(self, place: int, arm: Any, called: str, entries: int) -> None:
        """Add an arm with this many entries."""
        self._pay(prices.sparse(entries))
        self.places.append(place)
        self._waiting.append(arm)
        self._names.append(called)
        self._size += 1 + entries
        if self._size > _PIECE:
            self._finish()

    def _finish(self) -> None:
        self._made.append(self._make(self._waiting, self._names))
        self._waiting, self._names, self._size = [], [], 0

    def matrix(self) -> Matrix:
        """All arms."""
        if self._waiting:
            self._finish()
        made, self._made = joined(self._made), []
        return made


def _check_numbers(found: Sequence[object], kinds: set[type], word: str, at: str) -> None:
    if not kinds.issuperset(map(type, found)):
        bad = next(place for place, each in enumerate(found) if type(each) not in kinds)
        raise Invalid(f"{at}.{bad}: Input should be a valid {word}")


def _named(features: dict[str, Any], called: str) -> dict[str, Any]:
    """Check named features: each value is a number or a string."""
    for name, value in features.items():
        kind = type(value)
        if not (kind is str or (kind in _NUMBERS and abs(value) < 1e300)):
            raise Invalid(f"{called}: the feature {name[:100]!r} must be a finite number or a string")
        for text in (name, value) if kind is str else (name,):
            if len(text) > LONGEST_TEXT:
                raise Invalid(f"{called}: a string has more than {LONGEST_TEXT} characters")
            if not text.isascii() and _has_surrogates(text):
                raise Invalid(f"{called}: the string {text[:100]!r} is not Unicode: it has a lone surrogate")
    return features


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
