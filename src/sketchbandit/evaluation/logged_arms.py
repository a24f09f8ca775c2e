"""The arms of a log: in memory, in a file, or computed on demand; read one range at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Matrix, Rows
from sketchbandit.errors import FileError, InputError, InputTypeError

_TOGETHER = 1 << 20  # numbers read at once (8 MB), and the most in a batch of ragged sets

Sets = AnyArray | list[Rows]
"""Arms of several decisions: an array (decisions, arms, dim), or a list of sets (arms, dim)."""
Action = str | int


class Arms(ABC):
    """The arms of ``count`` decisions."""

    count: int
    dim: int
    is_fixed = False
    """Whether arm i is the same action in every decision."""
    counts: int | AnyArray | None = None
    """The number of arms: of every decision, or of each one; None if it is not known before arms are read."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Sets:
        """The arms of the decisions from start to stop."""

    def rows_at_once(self) -> int:
        """The number of decisions read in one piece."""
        sample = self.read(0, min(8, self.count))
        numbers = sum(arms.shape[0] * arms.shape[1] for arms in sample)
        return int(max(1, _TOGETHER * len(sample) // max(1, numbers)))


class ArrayArms(Arms):
    """An array (decisions, arms, dim)."""

    def __init__(self, array: AnyArray) -> None:
        _check_numbers(array)
        if 0 in array.shape[1:]:
            raise InputError(f"there are no arms: the array has shape {array.shape}")
        self._array = array
        self.count, self.counts, self.dim = array.shape

    def read(self, start: int, stop: int) -> Sets:
        """A part of the array, as floats."""
        return _floats(self._array[start:stop])


class SharedArms(Arms):
    """One set of arms (arms, dim), offered in every decision."""

    is_fixed = True

    def __init__(self, array: AnyArray, count: int) -> None:
        _check_numbers(array)
        if 0 in array.shape:
            raise InputError(f"there are no arms: the array has shape {array.shape}")
        self._array = _floats(array)
        self.count, self.counts, self.dim = count, *array.shape

    def read(self, start: int, stop: int) -> Sets:
        """The same set, repeated."""
        return np.ascontiguousarray(np.broadcast_to(self._array, (stop - start, *self._array.shape)))


class ListArms(Arms):
    """A list of sets, dense or sparse, which may differ in their number of arms."""

    def __init__(self, sets: Sequence[Rows]) -> None:
        self._sets = [
            arms.tocsr() if sparse.issparse(arms) else _dense(number, arms)
            for number, arms in enumerate(sets)
        ]
        for number, arms in enumerate(self._sets):
            if arms.ndim != 2 or arms.shape[0] == 0:
                raise InputError(
                    f"decision {number}: a set of arms must be (arms, dim), got shape {arms.shape}"
                )
            if arms.shape[1] != self._sets[0].shape[1]:
                raise InputError(
                    f"decision {number}: its arms have dimension {arms.shape[1]}, those of the first "
                    f"{self._sets[0].shape[1]}"
                )
        self.count = len(self._sets)
        self.counts = np.array([arms.shape[0] for arms in self._sets])
        self.dim = self._sets[0].shape[1] if self._sets else 0

    def read(self, start: int, stop: int) -> Sets:
        """A part of the list."""
        return [arms if sparse.issparse(arms) else _floats(arms) for arms in self._sets[start:stop]]


class MadeArms(Arms):
    """A function (start, stop) that returns the arms of these decisions, from a file or computed."""

    def __init__(
        self, function: Callable[[int, int], Iterable[Rows]], count: int, *, is_fixed: bool = False
    ) -> None:
        self._function, self.count, self.is_fixed = function, count, is_fixed
        self.dim = int(self.read(0, 1)[0].shape[1]) if count else 0

    def read(self, start: int, stop: int) -> Sets:
        """What the function returns. Raises unless it is arms of as many decisions."""
        found = self._function(start, stop)
        sets = found if isinstance(found, np.ndarray) else list(found)
        if len(sets) != stop - start or (isinstance(sets, np.ndarray) and sets.ndim != 3):
            raise InputError(
                f"arms({start}, {stop}) must return {stop - start} sets of arms, as an array "
                f"(decisions, arms, dim) or a list, got {getattr(found, 'shape', len(sets))}"
            )
        return _floats(sets) if isinstance(sets, np.ndarray) else ListArms(sets).read(0, len(sets))


class FileArms(Arms):
    """An ``.npy`` file (decisions, arms, dim). Only the part that is read is in memory."""

    def __init__(self, path: Path) -> None:
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise FileError(f"{path} is damaged or not an npy file of numbers: {error}") from error
        if mapped.ndim != 3 or mapped.dtype.kind not in "fiub" or not mapped.flags.c_contiguous:
            raise InputError(
                f"{path}: arms must be numbers (decisions, arms, dim) in C order, got {mapped.dtype} "
                f"{mapped.shape}"
            )
        self._path, self._offset, self._dtype = path, int(mapped.offset), mapped.dtype
        self._shape = mapped.shape[1:]
        self.count, self.counts, self.dim = mapped.shape

    def read(self, start: int, stop: int) -> Sets:
        """Read without mapping, because mapped pages would count as our memory."""
        each = int(np.prod(self._shape))
        at = self._offset + start * each * self._dtype.itemsize
        flat = np.fromfile(self._path, self._dtype, (stop - start) * each, offset=at)
        if len(flat) < (stop - start) * each:
            raise FileError(f"{self._path} ends before decision {stop}: it was cut off")
        return _floats(flat.reshape(stop - start, *self._shape))


class ProductArms(Arms):
    """The arm of a context and an action: the products of their features, (decisions, actions, p·q).

    With one-hot actions, as for names, every action has coefficients of its own.
    """

    is_fixed = True

    def __init__(self, contexts: AnyArray, features: Matrix) -> None:
        self.contexts, self._features = contexts, features
        self.count, self.counts = len(contexts), len(features)
        self.dim = contexts.shape[1] * features.shape[1]

    def read(self, start: int, stop: int) -> Sets:
        """Context times action, flattened: action by action."""
        some = _floats(self.contexts[start:stop])
        joined: AnyArray = np.einsum("kq,np->nkqp", self._features, some)
        return joined.reshape(len(some), len(self._features), self.dim)


class OfferedArms(Arms):
    """``ProductArms`` of named actions, if decisions offered different ones."""

    def __init__(
        self, contexts: AnyArray, offered: Sequence[Sequence[Action]], actions: Sequence[Action]
    ) -> None:
        self.contexts, self.offered, self._actions = contexts, offered, len(actions)
        places = {name: place for place, name in enumerate(actions)}
        self._places = [[places[name] for name in some] for some in offered]
        self.count, self.dim = len(contexts), contexts.shape[1] * len(actions)
        self.counts = np.array([len(some) for some in offered])

    def read(self, start: int, stop: int) -> Sets:
        """One set per decision: its context at the place of each action."""
        some = zip(_floats(self.contexts[start:stop]), self._places[start:stop], strict=True)
        return [np.kron(np.eye(self._actions)[list(places)], context) for context, places in some]


def arms_of(arms: object, count: int) -> Arms:
    """The arms of ``count`` decisions, from any input."""
    if isinstance(arms, Arms):
        return arms
    if isinstance(arms, (str, Path)):
        return FileArms(Path(arms))
    if callable(arms):
        return MadeArms(arms, count)
    if hasattr(arms, "toarray"):
        return SharedArms(arms.toarray(), count)
    if hasattr(arms, "ndim") and arms.ndim in (2, 3):
        array = arms if isinstance(arms, np.ndarray) else np.asarray(arms)  # a memmap stays one
        return ArrayArms(array) if arms.ndim == 3 else SharedArms(array, count)
    if isinstance(arms, (list, tuple)) and arms and not np.isscalar(arms[0]):
        return ListArms(arms)
    raise InputTypeError(
        "arms are an array (decisions, arms, dim), one set (arms, dim) for all decisions, a list of sets, a "
        f"function (start, stop) that gives sets, or the path of an .npy file; got {type(arms).__name__}"
    )


def _dense(number: int, arms: Iterable[object]) -> AnyArray:
    """One set as an array, also from nested rows, as pandas reads them from a file."""
    try:
        array = np.asarray(arms)
        if array.dtype.kind == "O":
            array = np.array([np.asarray(row, dtype=np.float64) for row in array])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"decision {number}: a set of arms must be numbers (arms, dim), got {arms!r:.60}"
        ) from error
    _check_numbers(array)
    return array


def _check_numbers(array: AnyArray) -> None:
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"arms must be real numbers, got an array of dtype {array.dtype}")


def _floats(array: AnyArray) -> AnyArray:
    """As floats. float32 stays as it is."""
    dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return np.ascontiguousarray(array, dtype=dtype)
