"""Arms as they come, one by one and in any form, made into one matrix."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sketchbandit.service.api import prices
from sketchbandit.service.api.json_cursor import LONGEST_TEXT
from sketchbandit.service.problems import Invalid
from sketchbandit.service.vectors import Matrix, from_named, from_sparse_rows, joined

_PIECE = 4000  # sparse or named arms, and entries of them, that become a matrix together
_RESERVED = 4096  # numbers of dense arms that there is room for at first
_NUMBERS = {int, float}

Pay = Callable[[int], None]


class Rows:
    """Arms of ``dim`` features, each with its place among them. ``pay`` is called before anything is made.

    ``wanted`` says in messages what ``dim`` is.

    Those of each form are collected by themselves, so that it costs nothing if forms take turns; in the end
    all are put in order.
    """

    def __init__(self, dim: int, pay: Pay, wanted: str) -> None:
        self._dim, self._pay, self._wanted = dim, pay, wanted
        self._dense = _Dense(dim, pay)
        self._sparse = _Pieces(partial(_from_sparse, dim), pay)
        self._named = _Pieces(lambda arms, _: from_named(arms, dim), pay)
        self._parts: list[tuple[Matrix, Sequence[int]]] = []

    def add(self, place: int, arm: Any, called: str, at: str, or_else: str = "") -> None:
        """One more: ``called`` so in messages, and read ``at`` a place of the request."""
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
        """Several that are made and paid for, and their places."""
        self._parts.append((matrix, array("q", places)))

    def matrix(self) -> Matrix:
        """All of them in order: sparse if any is."""
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

    def add(self, place: int, arm: list[Any], at: str) -> None:
        """One more."""
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
        """Room for twice as many."""
        self._pay(prices.dense(filled, self._dim))
        grown = np.empty((max(1, 2 * filled, _RESERVED // self._dim), self._dim))
        grown[:filled] = self._held
        self._held = grown

    def matrix(self) -> Matrix:
        """All of them."""
        return self._held[: len(self.places)]


class _Pieces:
    """Arms of which many are made a matrix at once; what they came as is not kept for longer."""

    def __init__(self, make: Callable[[list[Any], list[str]], Matrix], pay: Pay) -> None:
        self.places = array("q")
        self._make, self._pay = make, pay
        self._waiting: list[Any] = []
        self._names: list[str] = []
        self._size = 0
        self._made: list[Matrix] = []

    def add(self, place: int, arm: Any, called: str, entries: int) -> None:
        """One more, of so many entries."""
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
        """All of them."""
        if self._waiting:
            self._finish()
        made, self._made = joined(self._made), []
        return made


def _check_numbers(found: list[Any], kinds: set[type], word: str, at: str) -> None:
    if not kinds.issuperset(map(type, found)):
        bad = next(place for place, each in enumerate(found) if type(each) not in kinds)
        raise Invalid(f"{at}.{bad}: Input should be a valid {word}")


def _named(features: dict[str, Any], called: str) -> dict[str, Any]:
    """Named features, each a number or a text."""
    for name, value in features.items():
        kind = type(value)
        if not (kind is str or (kind in _NUMBERS and abs(value) < 1e300)):
            raise Invalid(f"{called}: the feature {name[:100]!r} must be a finite number or a text")
        for text in (name, value) if kind is str else (name,):
            if len(text) > LONGEST_TEXT:
                raise Invalid(f"{called}: a text has up to {LONGEST_TEXT} characters")
            if not text.isascii() and _has_surrogates(text):
                raise Invalid(f"{called}: the text {text[:100]!r} is not Unicode: half of a pair is missing")
    return features


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
