"""A catalogue: a fixed set of arms, prepared once, to be chosen from many times."""

import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from sketchbandit.arms.offered import OfferedArms
from sketchbandit.arms.store import Store, make_store
from sketchbandit.array_api import Array, check_same_place, dtype_name, is_foreign, library_of, on_host
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.html_repr import Facts, amount, card


class Offer:
    """The arms of a catalogue that one request offers: all or some, with or without a context.

    ``Catalogue.times``, ``beside``, ``outer`` and ``among`` make offers. Policies take an offer like an array
    of arms. A choice is an index into the offer: ``offer.ids[index]`` is the id of the arm.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> shoes = sb.Catalogue(np.eye(3), ids=["boot", "clog", "pump"])
    >>> offer = shoes.among([0, 2])
    >>> offer.ids
    ['boot', 'pump']
    >>> sb.oful(3).select(offer)
    0

    """

    def __init__(self, arms: OfferedArms, ids: Sequence[Hashable]) -> None:
        self._seen = arms, ids  # always read together: a catalogue may change in another thread

    @property
    def arms(self) -> OfferedArms:
        """The arms, in the form that policies read."""
        return self._seen[0]

    def __len__(self) -> int:
        return len(self.arms)

    def __repr__(self) -> str:
        how = "" if self.arms.interaction is None else f", {self.arms.interaction} with a context"
        return f"<Offer: {len(self):,} arms of dim {self.dim:,}{how}>"

    def _repr_html_(self) -> str:
        """What notebooks show: a small table."""
        return card(type(self).__name__, self._facts())

    def _facts(self) -> Facts:
        facts = [("arms", f"{len(self):,}"), ("features", f"{self.dim:,}")]
        if self.arms.interaction is not None:
            facts.append(("interaction", f"{self.arms.interaction} with a context"))
        return facts

    @property
    def dim(self) -> int:
        """The number of features of an arm, including the context."""
        return self.arms.dim

    @property
    def ids(self) -> Sequence[Hashable]:
        """The ids of the arms, by index."""
        arms, ids = self._seen
        return ids if arms.places is None else [ids[place] for place in arms.places.tolist()]

    def arm(self, index: int) -> Vector:
        """One arm, shape (dim,), with its context: what ``policy.update`` needs."""
        arms = self.arms
        if not -len(arms) <= index < len(arms):
            raise InputError(f"the index is {index}, but there are {len(arms)} arms")
        place = index % len(arms)
        row: Vector = arms.raw_rows(slice(place, place + 1))[0].astype(np.float64)
        return row

    def arms_at(self, indices: ArrayLike) -> Matrix:
        """Several arms as a policy is to learn from them, (n, dim), such as those of a slate."""
        places, arms = np.asarray(indices), self.arms
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise InputTypeError(f"give a list of indices, got an array of {places.dtype} {places.shape}")
        bad = places[(places < 0) | (places >= len(arms))]
        if len(bad):
            raise InputError(f"the index is {bad[0]}, but there are {len(arms)} arms")
        return arms.raw_rows(places.astype(np.intp)).astype(np.float64, copy=False)

    def times(self, context: ArrayLike | Array) -> "Offer":
        """Multiply the features of every arm by those of the context, entry by entry, without a copy."""
        return self._with(context, "product")

    def beside(self, context: ArrayLike | Array) -> "Offer":
        """Put the features of the context before those of every arm."""
        return self._with(context, "concatenate")

    def outer(self, context: ArrayLike | Array) -> "Offer":
        """Use all products u_i·x_j of context and arm as features, those of u_0 first."""
        return self._with(context, "outer")

    def among(self, which: ArrayLike | Array) -> "Offer":
        """Offer some of the arms: a boolean mask (K,), or their indices in ascending order."""
        arms, ids = self._seen
        if arms.places is not None:
            raise InputError("this offer has some of the arms already; call among only once")
        count = len(arms)
        try:
            given = np.asarray(on_host(which))
        except ValueError as error:
            raise InputError(f"give a mask of {count} booleans, or indices: {error}") from error
        if given.dtype == np.bool_:
            if given.shape != (count,):
                raise InputError(f"the mask has shape {given.shape}, but there are {count} arms")
            places = np.flatnonzero(given)
        elif given.dtype.kind in "iu" and given.ndim == 1:
            places = given.astype(np.intp)
            if len(places) and not (places[0] >= 0 and places[-1] < count and (np.diff(places) > 0).all()):
                raise InputError(f"indices must ascend from 0 to {count - 1}, without repetition")
        else:
            raise InputTypeError(f"give a mask of {count} booleans or indices, got dtype {given.dtype}")
        if not len(places):
            raise InputError("no arms are left to choose from; select at least one")
        return Offer(OfferedArms(arms.store, arms.context, arms.interaction, places), ids)

    def _with(self, context: ArrayLike | Array, interaction: str) -> "Offer":
        arms, ids = self._seen
        if arms.interaction is not None:
            raise InputError(
                f"these arms have a context already ({arms.interaction}); start from the catalogue"
            )
        vector = read_context(context)
        width = arms.store.width
        if interaction == "product" and len(vector) != width:
            raise InputError(
                f"the context has {len(vector)} numbers, but arms have {width}; give one number per feature"
            )
        return Offer(OfferedArms(arms.store, vector, interaction, arms.places), ids)


def read_context(context: ArrayLike | Array) -> Vector:
    """Read a context: a vector of finite numbers, from any library."""
    try:
        vector = np.array(on_host(context), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"a context must be a vector of numbers: {error}") from error
    if vector.ndim != 1 or not len(vector):
        raise InputError(f"a context must be a vector of numbers, got an array of shape {vector.shape}")
    bad = np.flatnonzero(~(np.abs(vector) < 1e150))
    if len(bad):
        raise InputError(
            f"entry {bad[0]} of the context is {vector[bad[0]]}; it must be finite and below 1e150"
        )
    return vector


class Catalogue(Offer):
    """Many arms, prepared once, on any device: numpy, torch, JAX, CuPy, or a memory-mapped file.

    A policy chooses from a catalogue as from an array, and finds the same arm, but faster. A cheap bound,
    rigorous in spite of rounding, excludes most arms. The rest is scored in float64 (docs/catalogues.md).

    Threads may share a catalogue. A change takes effect for later choices. Choices that are running, and
    offers made before, see the catalogue as it was.

    Parameters
    ----------
    arms : array of shape (K, dim)
        float32, float64, bfloat16 or float16. It is not copied, so do not write to it.
    ids : sequence, optional
        A different id for every arm. Default: 0 to K - 1.
    half : bool
        Whether to keep a copy in fewer bits (8 bits with numpy, bfloat16 elsewhere) for the cheap bound. The
        choices are the same. The bound then reads a quarter or a half of the memory.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> shoes = sb.Catalogue(np.eye(3, dtype=np.float32), ids=["boot", "clog", "pump"])
    >>> policy = sb.oful(3)
    >>> index = policy.select(shoes.times([1.0, 3.0, 2.0]))
    >>> shoes.ids[index]
    'clog'
    >>> shoes.retire(["clog"])
    >>> len(shoes), shoes.ids
    (2, ['boot', 'pump'])

    """

    def __init__(
        self, arms: ArrayLike | Array, ids: Iterable[Hashable] | None = None, *, half: bool = False
    ) -> None:
        self._half = bool(half)
        self._lock = threading.Lock()
        array = arms if is_foreign(arms) else _of_numpy(arms)
        count = array.shape[0] if array.ndim else 0
        names: Sequence[Hashable] = range(count) if ids is None else list(ids)
        _check_ids(names, count)
        self._set(make_store(array, half=self._half, label=names.__getitem__), names)

    def _set(self, store: Store, ids: Sequence[Hashable]) -> None:
        super().__init__(OfferedArms(store), ids)
        self._rows_of: dict[Hashable, int] | None = None

    def __repr__(self) -> str:
        store = self.arms.store
        dtype, place = dtype_name(store.array), store.library.place
        return f"<Catalogue: {len(self):,} arms of dim {self.dim:,}, {dtype} ({place})>"

    def _facts(self) -> Facts:
        store = self.arms.store
        return [
            *super()._facts(),
            ("dtype", dtype_name(store.array)),
            ("place", store.library.place),
            ("memory", amount(self.nbytes)),
        ]

    def __getstate__(self) -> NoReturn:
        raise TypeError("a catalogue cannot be copied or pickled; make another one from the same arms")

    @property
    def nbytes(self) -> int:
        """Bytes of the arms, and of what was prepared for them."""
        return self.arms.store.nbytes

    def index_of(self, name: Hashable) -> int:
        """The index of the arm with this id."""
        with self._lock:
            return self._row(name)

    def _row(self, name: Hashable) -> int:
        if self._rows_of is None:
            self._rows_of = {known: row for row, known in enumerate(self._seen[1])}
        try:
            return self._rows_of[name]
        except KeyError:
            raise InputError(f"no arm has the id {name!r}") from None

    # -- changes: each makes a new store, so that a failed one leaves everything as it was --------------

    def add(self, arms: ArrayLike | Array, ids: Iterable[Hashable]) -> None:
        """Add arms after the present ones. All arms are copied, so add many at a time."""
        with self._lock:
            more, names = self._more(arms, ids)
            _check_ids([*self._seen[1], *names], len(self) + len(names))
            self._set(self.arms.store.joined(more), [*self._seen[1], *names])

    def replace(self, arms: ArrayLike | Array, ids: Iterable[Hashable]) -> None:
        """Replace the features of arms."""
        with self._lock:
            more, names = self._more(arms, ids)
            rows = np.array([self._row(name) for name in names], dtype=np.intp)
            order = np.arange(len(self))
            order[rows] = len(self) + np.arange(len(names))
            kept, rows_of = self._seen[1], self._rows_of
            self._set(self.arms.store.joined(more).taken(order), kept)
            self._rows_of = rows_of

    def retire(self, ids: Iterable[Hashable]) -> None:
        """Remove arms. Later arms move up."""
        with self._lock:
            gone = {self._row(name) for name in ids}
            left = np.array([row for row in range(len(self)) if row not in gone], dtype=np.intp)
            if not len(left):
                raise InputError("a catalogue needs at least one arm; these are all of them")
            names = [self._seen[1][row] for row in left.tolist()]
            self._set(self.arms.store.taken(left), names)

    def _more(self, arms: ArrayLike | Array, ids: Iterable[Hashable]) -> tuple[Store, list[Hashable]]:
        store, names = self.arms.store, list(ids)
        array = arms if is_foreign(arms) else _of_numpy(arms)
        check_same_place(store.library, library_of(array))
        if array.ndim != 2 or array.shape[1] != store.width:
            raise InputError(
                f"the new arms have shape {tuple(array.shape)}, but must have shape (n, {store.width})"
            )
        _check_ids(names, array.shape[0])
        same = store.library.cast(array, store.array.dtype)
        return make_store(same, half=self._half, label=names.__getitem__), names


def _of_numpy(arms: object) -> AnyArray:
    try:
        array = arms if isinstance(arms, np.ndarray) else np.asarray(arms)
    except ValueError as error:
        raise InputError(f"arms do not form a matrix: {error}") from error
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise InputTypeError(f"arms must be real numbers, got an array of dtype {array.dtype}")
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _check_ids(ids: Sequence[Hashable], count: int) -> None:
    if len(ids) != count:
        raise InputError(f"{count} arms need {count} ids, got {len(ids)}")
    if isinstance(ids, range):
        return
    try:
        seen: set[Hashable] = set()
        for name in ids:
            if name in seen:
                raise InputError(f"the id {name!r} is given twice; every arm needs its own")
            seen.add(name)
    except TypeError as error:
        raise InputTypeError(f"ids must be hashable, such as strings or numbers: {error}") from error
