"""Arms stored by id, so that a decision need not send their features."""

import threading
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from sketchbandit.arms.store import BANDS, Store, make_store
from sketchbandit.array_api import torch_on
from sketchbandit_service.offered import ArmSet
from sketchbandit_service.problems import Invalid, NotFound
from sketchbandit_service.types import Matrix, Vector
from sketchbandit_service.vectors import Slowly, decode_rows, joined, longest_row, nbytes

MANY = 2_000
"""From this many arms on, preparing them pays."""
_LONGEST = 1e18  # longer arms are not prepared: their squares do not fit into float32
_ID_BYTES = 150  # bytes of an id in a list and in a dictionary, without its characters


class ArmStore:
    """The arms of one bandit by id, in the order in which they came.

    A store is never changed: ``with_arms`` and ``without`` return another store, in any thread. Decisions go
    on with the matrix that they have seen.

    >>> store = ArmStore().with_arms(["a", "b"], np.eye(2)).without(["a"])
    >>> store.ids(), store.choose_from(None).matrix
    (['b'], array([[0., 1.]]))
    """

    def __init__(self, ids: Sequence[str] = (), matrix: Matrix | None = None) -> None:
        self._hold(list(ids), matrix)

    def _hold(self, ids: list[str], matrix: Matrix | None) -> None:
        self._ids, self._matrix = ids, matrix
        self._places = {arm: place for place, arm in enumerate(ids)}
        held = 0 if matrix is None else nbytes(matrix)
        self.is_dense = matrix is None or isinstance(matrix, np.ndarray)
        self.longest_arm = longest_row(matrix) if self.is_dense and matrix is not None else 0.0
        """The length of the longest arm, if arms are dense."""
        sizes = [len(arm.encode()) for arm in ids]
        self.longest_id = max(sizes, default=0)
        """The length of the longest id in bytes."""
        self.is_prepared = self.is_dense and len(ids) >= MANY and self.longest_arm < _LONGEST
        """Whether ``prepared`` can be called."""
        if self.is_prepared and matrix is not None:
            held += len(ids) * (matrix.shape[1] + 4 * (BANDS + 3))
        self.nbytes = held + sum(sizes) + _ID_BYTES * len(ids)
        self._prepared: Store | None = None
        self._preparing = threading.Lock()

    @classmethod
    def restored(
        cls, ids: Sequence[str], payloads: Sequence[bytes], dim: int, slowly: Slowly = iter
    ) -> "ArmStore":
        """Read the bytes that ``vectors.encode`` wrote.

        Raises DamagedArm, with its place, for other bytes.
        """
        return cls(ids, decode_rows(payloads, dim, slowly) if len(ids) else None)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, arm: str) -> bool:
        return arm in self._places

    def ids(self) -> list[str]:
        """All ids."""
        return self._ids.copy()

    def with_arms(self, ids: Sequence[str], matrix: Matrix) -> "ArmStore":
        """The store with these arms added. A known id keeps its place and gets new features."""
        check_once(ids)
        if self._matrix is None:
            return ArmStore(ids, matrix)
        known, new = len(self._ids), [arm for arm in ids if arm not in self._places]
        if len(new) == len(ids):
            return ArmStore(self._ids + new, joined([self._matrix, matrix]))
        at = count(known)
        places = np.array([self._places[arm] if arm in self._places else next(at) for arm in ids])
        if isinstance(self._matrix, np.ndarray) and isinstance(matrix, np.ndarray):  # copied once
            together = np.empty((known + len(new), self._matrix.shape[1]))
            together[:known] = self._matrix
            together[places] = matrix
            return ArmStore(self._ids + new, together)
        order = np.arange(known + len(new))
        order[places] = known + np.arange(len(ids))
        return ArmStore(self._ids + new, joined([self._matrix, matrix])[order])

    def without(self, ids: Iterable[str]) -> "ArmStore":
        """The store without these arms."""
        gone = set(ids)
        kept = [place for place, arm in enumerate(self._ids) if arm not in gone]
        matrix = self._matrix[np.array(kept)] if kept and self._matrix is not None else None
        return ArmStore([self._ids[place] for place in kept], matrix)

    def prepared(self, device: str | None) -> Store:
        """The arms as a catalogue, with a copy in fewer bits, on the device if one is given.

        They are prepared at the first call. So many requests that store arms do not prepare them many times.
        """
        with self._preparing:
            if self._prepared is None:
                array: Any = self._matrix
                if device is not None:
                    array = torch_on(device).put(array)
                self._prepared = make_store(array, half=True, label=self._ids.__getitem__)
            return self._prepared

    def row(self, arm: str) -> Vector:
        """The features of one arm."""
        return ArmSet(self._matrix, None).row(self._place(arm))

    def _place(self, arm: str) -> int:
        try:
            return self._places[arm]
        except KeyError:
            raise NotFound(f"there is no stored arm {arm!r}; PUT it to /arms first") from None

    def choose_from(self, ids: Sequence[str] | None) -> ArmSet:
        """The arms with these ids, or all arms."""
        places = [self._place(arm) for arm in ids or ()]
        if self._matrix is None:
            raise Invalid("this bandit has no stored arms; PUT some to /arms, or send arms to /decide")
        if ids is None:
            return ArmSet(self._matrix, self._ids)
        check_once(ids)
        return ArmSet(self._matrix[np.array(places, dtype=np.intp)], ids)


def check_once(ids: Sequence[str]) -> None:
    """Refuse an id that is given twice: a reward by id would be ambiguous."""
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for arm in ids:
        if arm in seen:
            raise Invalid(f"the arm {arm!r} is given twice; name each arm once")
        seen.add(arm)
