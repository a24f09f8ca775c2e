"""Collections as lists of partitions, and the merging of their results in a tree that is always the same."""

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from dask.array import Array
from dask.base import compute
from dask.delayed import Delayed, delayed

from sketchbandit.arrays import Rows
from sketchbandit.errors import InputError, InputTypeError, SketchBanditError
from sketchbandit.extras import how_to_install

if TYPE_CHECKING:
    from distributed import Client

Factory = Callable[..., object]
"""A function with no argument, with the length of a row, or with that and the number of the partition."""
Collection = Any
"""A Dask array or dataframe, or a list of (delayed) blocks."""
Block = Any
"""A part of a collection: an array, a sparse matrix, a data frame or a list; or one of them, delayed."""


class Partition(NamedTuple):
    """A block of rows, computed or delayed, and its name in messages."""

    block: Block
    name: str


class Partitions(NamedTuple):
    """All blocks in order, and the length of a row if it is known."""

    blocks: list[Partition]
    dim: int | None


def partitions_of(collection: Collection, names: Sequence[str] | None = None) -> Partitions:
    """The partitions of a collection of rows."""
    if isinstance(collection, Delayed):
        blocks, dim = [collection], None
    elif isinstance(collection, Array):
        blocks, dim = _of_array(collection)
    elif hasattr(collection, "to_delayed") and hasattr(collection, "npartitions"):
        blocks, dim = _of_dataframe(collection)
    elif isinstance(collection, (list, tuple)):
        blocks, dim = list(collection), None
    else:
        raise InputTypeError(
            "give a Dask array, a Dask dataframe or a list of (delayed) blocks of rows, "
            f"not {type(collection).__name__}; [X] is a list of one block"
        )
    if not blocks:
        raise InputError("there are no partitions")
    if names is None:
        names = [f"partition {number}" for number in range(len(blocks))]
    elif len(names) != len(blocks):
        raise InputError(f"there are {len(blocks)} partitions, but {len(names)} names for them")
    return Partitions([Partition(*pair) for pair in zip(blocks, names, strict=True)], dim)


def _of_array(array: Array) -> tuple[list[Block], int | None]:
    if array.ndim != 2:
        raise InputError(f"the array must be a matrix, but has {array.ndim} dimensions {array.shape}")
    dim = array.shape[1]
    return whole_rows(array), None if np.isnan(dim) else int(dim)


def whole_rows(array: Array) -> list[Block]:
    """The partitions of an array that is cut along its first axis only, so that rows are whole."""
    if max(array.numblocks[1:], default=1) > 1:
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    return list(array.to_delayed().ravel())


def _of_dataframe(frame: Collection) -> tuple[list[Block], int]:
    if frame.ndim != 2:
        raise InputTypeError("give a Dask dataframe, not a series; series.to_frame() makes one")
    _check_columns(frame)
    return list(frame.to_delayed()), len(frame.columns)


def as_rows(block: Block) -> Rows:
    """A block as an array or a sparse matrix: a frame's numbers in one dtype, lists converted."""
    if hasattr(block, "to_numpy") and hasattr(block, "dtypes"):
        _check_columns(block)
        return block.to_numpy(dtype=np.float64, na_value=np.nan)
    return block if hasattr(block, "shape") else np.asarray(block)


def _check_columns(frame: Block) -> None:
    """Raise if columns of a DataFrame are not numbers, and name some of them."""
    wrong = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if wrong:
        raise InputTypeError(
            f"every column must be a number, but these are not: {', '.join(wrong[:5])}"
            f"{', ...' if len(wrong) > 5 else ''}; encode or drop them"
        )


def make(factory: Factory, dim: int, number: int, kind: type[Any], noun: str) -> Any:
    """Make a fresh object of a ``kind`` for a partition."""
    made = factory(*(dim, number)[: _arguments(factory)])
    if not isinstance(made, kind):
        raise InputTypeError(f"factory must make a fresh {noun}, but made {made!r}")
    if made.dim != dim:
        raise InputError(f"rows have length {dim}, but factory makes a {noun} for {made.dim}")
    return made


def check_factory(factory: object) -> None:
    """Raise unless it can be called."""
    if not callable(factory):
        raise InputTypeError(f"factory must be callable, but is {factory!r}")


def _arguments(factory: Factory) -> int:
    """The number of arguments that it needs."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


_PATIENCE = 10  # seconds for a scheduler to answer


class Mergeable(Protocol):
    """A policy, or a reader of rows."""

    @property
    def dim(self) -> int:
        """The length of a row."""

    def merge(self, other: Self) -> object:
        """Add what another one has learned."""


M = TypeVar("M", bound=Mergeable)


class PartialResult(NamedTuple, Generic[M]):
    """The result of some partitions, and the name of the first."""

    content: M
    name: str


def merge_partitions(
    read: Callable[..., PartialResult[M] | None],
    arguments: Iterable[tuple[object, ...]],
    split_every: int,
    address: str | None,
) -> M | None:
    """Merge what ``read`` returns for each partition; None if no partition has rows."""
    read_later = delayed(read, pure=False)
    found: PartialResult[M] | None = result_of(
        _tree([read_later(*some) for some in arguments], split_every), address
    )
    return None if found is None else found.content


def _tree(parts: list[Delayed], split_every: int) -> Delayed:
    """Merge delayed parts in groups of neighbours."""
    while len(parts) > 1:
        groups = [parts[i : i + split_every] for i in range(0, len(parts), split_every)]
        parts = [delayed(merge_all, pure=False)(group) for group in groups]
    return parts[0]


def merge_all(parts: list[PartialResult[M] | None]) -> PartialResult[M] | None:
    """A copy of the first part with the others merged in. Parts without rows are left out."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    first, *others = present
    total = copy.deepcopy(first.content)
    for other in others:
        if other.content.dim != total.dim:
            raise InputError(
                f"{other.name}: its rows have length {other.content.dim}, "
                f"but those of {first.name} {total.dim}"
            )
        total.merge(other.content)
    return PartialResult(total, first.name)


def result_of(graph: Delayed, address: str | None) -> Any:
    """The value of a delayed object."""
    if address is None:
        return compute(graph)[0]
    with connect(address) as client:
        return client.compute(graph).result()


def connect(address: str) -> "Client":
    """A client of the scheduler at an address. Use it in a ``with`` block, which closes it."""
    try:
        from distributed import Client  # noqa: PLC0415  (a part of Dask that not everybody has)
    except ModuleNotFoundError as error:
        raise SketchBanditError(f"a scheduler needs distributed: {how_to_install('dask')}") from error
    try:
        return Client(address, set_as_default=False, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise SketchBanditError(f"there is no Dask scheduler at {address}: {error}") from error
