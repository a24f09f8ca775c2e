"""Arms as they come, one by one, made into few matrices at once."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.service.api import prices
from sketchbandit.service.api.json_cursor import LONGEST_TEXT
from sketchbandit.service.problems import Invalid
from sketchbandit.service.vectors import Matrix, Vector, from_named

_PIECE = 4000  # entries of sparse or named arms that become a matrix together
_NUMBERS = {int, float}


class Rows:
    """Arms of ``dim`` features in any form, in order. ``pay`` is called before anything is made.

    ``most`` is how many dense ones there can be: their matrix is reserved at once.
    """

    def __init__(self, dim: int, most: int, pay: Callable[[int], None], bandit: str) -> None:
        self._dim, self._most, self._pay, self._bandit = dim, most, pay, bandit
        self._dense: Matrix | None = None
        self._filled = 0
        self._pending: list[Any] = []
        self._names: list[str] = []
        self._entries = 0
        self._make: Callable[[list[Any]], Matrix] | None = None
        self.pieces: list[Matrix] = []

    def add(self, arm: Any, called: str, at: str, or_else: str = "") -> None:
        """One more: ``called`` so in messages, and read ``at`` a place of the request."""
        if isinstance(arm, list):
            self._add_dense(arm, called, at)
        elif not isinstance(arm, dict):
            raise Invalid(f"{called} must be a list of numbers, {{indices, values}}, named features{or_else}")
        elif arm.keys() == {"indices", "values"} and all(type(part) is list for part in arm.values()):
            self._check_numbers(arm["indices"], {int}, "integer", f"{at}.indices")
            self._check_numbers(arm["values"], _NUMBERS, "number", f"{at}.values")
            if len(arm["indices"]) != len(arm["values"]):
                raise Invalid(f"{called} has {len(arm['indices'])} indices and {len(arm['values'])} values")
            self._add(self._from_sparse, arm, called, len(arm["indices"]))
        else:
            self._add(self._from_named, _named(arm, called), called, len(arm))

    def add_stored(self, row: Vector) -> None:
        """One more, as it is kept."""
        self._pay(prices.copied(row))
        self._add(_from_stored, row, "", 1 if isinstance(row, np.ndarray) else 1 + len(row.data))

    def matrix(self) -> Matrix:
        """All of them: sparse if any is."""
        self.finish()
        if len(self.pieces) == 1:
            return self.pieces[0]
        if all(isinstance(piece, np.ndarray) for piece in self.pieces):
            return np.concatenate(self.pieces)
        return sparse.vstack([sparse.csr_array(piece) for piece in self.pieces], format="csr")

    def finish(self) -> None:
        """What waits becomes a piece."""
        if self._filled and self._dense is not None:
            self.pieces.append(self._dense[: self._filled])
            self._dense, self._most = self._dense[self._filled :], self._most - self._filled
            self._filled = 0
        if self._make is not None and self._pending:
            self.pieces.append(self._make(self._pending))
        self._pending, self._names, self._entries, self._make = [], [], 0, None

    def _add(self, make: Callable[[list[Any]], Matrix], arm: Any, called: str, entries: int) -> None:
        if self._filled or self._make != make or self._entries > _PIECE:
            self.finish()
            self._make = make
        if make != _from_stored:
            self._pay(prices.sparse(entries))
        self._pending.append(arm)
        self._names.append(called)
        self._entries += entries

    def _add_dense(self, arm: list[Any], called: str, at: str) -> None:
        if self._make is not None:
            self.finish()
        self._check_numbers(arm, _NUMBERS, "number", at)
        if len(arm) != self._dim:
            raise Invalid(
                f"{called} has {len(arm)} features, but the dim of bandit {self._bandit!r} is {self._dim}"
            )
        self._pay(prices.dense(1, self._dim))
        if self._dense is None:
            self._dense = np.empty((self._most, self._dim))
        row = self._dense[self._filled]
        try:
            row[:] = arm
        except OverflowError:  # an integer that is too large for a float
            row[:] = np.inf
        if not np.isfinite(row).all():
            bad = int(np.flatnonzero(~np.isfinite(row))[0])
            raise Invalid(f"{at}.{bad}: Input should be a finite number")
        self._filled += 1

    @staticmethod
    def _check_numbers(found: list[Any], kinds: set[type], word: str, at: str) -> None:
        if not kinds.issuperset(map(type, found)):
            bad = next(place for place, each in enumerate(found) if type(each) not in kinds)
            raise Invalid(f"{at}.{bad}: Input should be a valid {word}")

    def _from_named(self, arms: list[Any]) -> Matrix:
        return from_named(arms, self._dim)

    def _from_sparse(self, arms: list[Any]) -> Matrix:
        """One matrix of arms by their entries; the columns of each in order."""
        lengths = [len(arm["indices"]) for arm in arms]
        rows = np.repeat(np.arange(len(arms)), lengths)
        columns = _numbers([arm["indices"] for arm in arms], len(rows), np.int64, -1)
        values = _numbers([arm["values"] for arm in arms], len(rows), np.float64, np.inf)
        self._refuse(rows[~np.isfinite(values)], "contains NaN, inf or a number that is not finite here")
        self._refuse(rows[(columns < 0) | (columns >= self._dim)], f"has an index outside 0..{self._dim - 1}")
        order = np.lexsort((columns, rows))
        columns = columns[order]
        self._refuse(rows[1:][(np.diff(columns) == 0) & (np.diff(rows) == 0)], "has an index twice")
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        parts = values[order], columns.astype(np.int32), ends
        return sparse.csr_array(parts, shape=(len(arms), self._dim))

    def _refuse(self, rows: Any, why: str) -> None:
        if len(rows):
            raise Invalid(f"{self._names[rows[0]]} {why}")


def _from_stored(rows: list[Vector]) -> Matrix:
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.array(rows)
    return sparse.vstack(
        [sparse.csr_array(np.atleast_2d(r)) if isinstance(r, np.ndarray) else r for r in rows]
    )


def _numbers(lists: Sequence[list[Any]], count: int, kind: Any, too_large: float) -> Any:
    """All numbers of the lists; where one does not fit, all of them are put in one by one."""
    try:
        return np.fromiter(chain.from_iterable(lists), kind, count)
    except OverflowError:
        most = np.iinfo(kind).max if kind is np.int64 else np.finfo(kind).max
        fitting = (each if abs(each) <= most else too_large for each in chain.from_iterable(lists))
        return np.fromiter(fitting, kind, count)


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
