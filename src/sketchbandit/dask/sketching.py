"""The sketch of a collection."""

from collections.abc import Sequence
from typing import Any

from sketchbandit.dask.factories import Factory, check_factory, make
from sketchbandit.dask.merging import Part, merge_partitions
from sketchbandit.dask.partitions import as_rows, partitions_of
from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.sketch import BulkReader, Sketch
from sketchbandit.sketch.checks import check_count


def sketch(
    collection: Any,
    factory: Factory,
    *,
    names: Sequence[str] | None = None,
    split_every: int = 8,
    address: str | None = None,
) -> Sketch:
    """The sketch of all rows of a Dask collection, with its certificate: S'S ⪯ X'X ⪯ S'S + e I.

    Each partition is read where it lies; what travels is small: sketches, or X'X where dim is at most about
    16·size (see ``BulkReader``). Neighbours are merged in a tree that does not depend on who computes it: the
    same collection gives the same bits on any scheduler whose BLAS uses as many threads (Dask gives its
    workers one), also when workers die on the way.

    Parameters
    ----------
    collection : dask.array, dask.dataframe or list
        Rows: a matrix, a dataframe of numbers, or (delayed) blocks, dense and sparse ones mixed if you like.
    factory : callable
        Makes a fresh sketch: ``lambda: sb.FrequentDirections(100, size=20)``, or from the length of a row:
        ``functools.partial(sb.FrequentDirections, size=20)``, or ``lambda dim, part: ...`` for sketches that
        need a seed for each partition.
    names : sequence of str, optional
        What messages call the partitions, e.g. the files they come from.
    split_every : int
        How many are merged at a time.
    address : str, optional
        Of a scheduler, e.g. "tcp://10.0.0.1:8786". Without it Dask computes as it always does: on the client
        of this session, or on threads.

    """
    check_factory(factory)
    split_every = check_count("split_every", split_every, at_least=2)
    partitions = partitions_of(collection, names)
    if partitions.dim is not None:
        _fresh(factory, partitions.dim, 0)  # what cannot be made is said here, not by a worker
    arguments = ((block, number, factory, partitions.dim) for number, block in enumerate(partitions.blocks))
    bulk: BulkReader | None = merge_partitions(read_partition, arguments, split_every, address)
    if bulk is None:
        raise InputError("there are no rows, and it is not known how long one would be")
    return bulk.finish()


def _fresh(factory: Factory, dim: int, number: int) -> Sketch:
    made: Sketch = make(factory, dim, number, Sketch, "sketchbandit.Sketch")
    if made.count:
        raise InputError(f"factory must make a fresh sketch, but this one has seen rows: {made!r}")
    return made


def read_partition(partition: Any, number: int, factory: Factory, dim: int | None) -> Part | None:
    """What a partition comes to; None where it has no rows and no width either."""
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
    return Part(bulk, name)
