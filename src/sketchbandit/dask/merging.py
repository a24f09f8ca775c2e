"""The results of the partitions: computed by Dask, merged in a tree that does not depend on the scheduler."""

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from dask.base import compute
from dask.delayed import Delayed, delayed

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.extras import how_to_install

if TYPE_CHECKING:
    from distributed import Client


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
