"""The sketch of a collection."""

from collections.abc import Sequence

from sketchbandit.dask.merging import PartialResult, merge_partitions
from sketchbandit.dask.partitions import (
    Collection,
    Factory,
    Partition,
    as_rows,
    check_factory,
    make,
    partitions_of,
)
from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.sketch import BulkReader, Sketch
from sketchbandit.sketch.checks import check_count


def sketch(
    collection: Collection,
    factory: Factory,
    *,
    names: Sequence[str] | None = None,
    split_every: int = 8,
    address: str | None = None,
) -> Sketch:
    """Sketch all rows of a Dask collection, with a certified error: S'S ⪯ X'X ⪯ S'S + e I.

    Each partition is read where it is. Only small results are sent: sketches, or X'X if dim is at most about
    16·size (see ``BulkReader``). They are merged in a tree that does not depend on the scheduler. So the
    same collection gives the same bits on any scheduler whose BLAS uses as many threads (Dask gives its
    workers one), even if workers die on the way.

    Parameters
    ----------
    collection : dask.array, dask.dataframe or list
        The rows: a matrix, a dataframe of numbers, or (delayed) blocks, which may be dense or sparse.
    factory : callable
        Makes a fresh sketch: ``lambda: sb.FrequentDirections(100, size=20)``. Or from the length of a row:
        ``functools.partial(sb.FrequentDirections, size=20)``. Or ``lambda dim, part: ...`` for sketches that
        need a seed for each partition.
    names : sequence of str, optional
        Names of the partitions for messages, for instance the files they come from.
    split_every : int
        How many partial results are merged at a time.
    address : str, optional
        The address of a scheduler, such as "tcp://10.0.0.1:8786". By default Dask computes on the current
        client, or on threads.

    """
    check_factory(factory)
    split_every = check_count("split_every", split_every, at_least=2)
    partitions = partitions_of(collection, names)
    if partitions.dim is not None:
        _fresh(factory, partitions.dim, 0)  # so that a bad factory raises here, not on a worker
    arguments = ((block, number, factory, partitions.dim) for number, block in enumerate(partitions.blocks))
    bulk = merge_partitions(read_partition, arguments, split_every, address)
    if bulk is None:
        raise InputError("there are no rows, and it is not known how long one would be")
    return bulk.finish()


def _fresh(factory: Factory, dim: int, number: int) -> Sketch:
    made: Sketch = make(factory, dim, number, Sketch, "sketchbandit.Sketch")
    if made.count:
        raise InputError(f"factory must make a fresh sketch, but this one has seen rows: {made!r}")
    return made


def read_partition(
    partition: Partition, number: int, factory: Factory, dim: int | None
) -> PartialResult[BulkReader] | None:
    """The result of a partition; None if it has neither rows nor a width."""
    block, name = partition
    try:
        block = as_rows(block)
    except (InputTypeError, ValueError) as error:
        raise InputTypeError(f"{name}: {error}") from error
    if block.shape == (0,):
        return None
    if len(block.shape) != 2:
        raise InputError(f"{name}: not a matrix, but of shape {block.shape}")
    if dim is not None and block.shape[1] != dim:
        raise InputError(f"{name}: its rows have length {block.shape[1]}, but those of the others {dim}")
    bulk = BulkReader(_fresh(factory, block.shape[1], number))
    try:
        bulk.update(block)
    except RowError as error:
        raise InputError(f"{name}: row {error.row} {error.why}") from error
    except (InputError, InputTypeError) as error:
        raise type(error)(f"{name}: {error}") from error
    return PartialResult(bulk, name)
