"""What a Dask collection is reduced to: the sketch of its rows, or a policy that has learned from a log."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from dask.array import Array

from sketchbandit.arrays import AnyArray
from sketchbandit.dask.partitions import (
    Block,
    Collection,
    Factory,
    PartialResult,
    Partition,
    as_rows,
    check_factory,
    make,
    merge_partitions,
    partitions_of,
    whole_rows,
)
from sketchbandit.errors import InputError, InputTypeError, MergeError, RowError, SketchBanditError
from sketchbandit.policy import Policy
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


Edges = tuple[int, ...]
"""The lengths of the partitions."""


class Place(NamedTuple):
    """The number of a partition, and how many there are."""

    number: int
    of: int


def fit_logged(
    arms: Collection,
    chosen: Collection | None,
    rewards: Collection,
    factory: Factory,
    *,
    split_every: int = 8,
    address: str | None = None,
) -> Policy:
    """Make a policy that has learned from a whole log. Each partition is read where it is.

    The policies of the partitions are merged. For an exact one (``oful``) the result equals, up to rounding,
    a policy that read the log in order. For a sketched one the error bounds add up, and stay true.

    Parameters
    ----------
    arms : dask.array or list of (delayed) blocks
        The arms offered, (n, K, dim), or only those chosen, (n, dim), dense or sparse.
    chosen : dask.array, list or None
        The index of the arm chosen in every round, (n,); None if ``arms`` are the chosen ones.
    rewards : dask.array or list
        The rewards, (n,).
    factory : callable
        Makes a fresh policy: ``lambda dim: sb.dbslinucb(dim, size=20)``. A scaling must be given, not
        learned: ``lambda dim: sb.adaptive(dim, scaling=known)``. One-pass reward models (``Logistic``,
        ``Poisson``, ``Robust``) cannot be merged, nor can policies that forget, because partitions follow
        one another. They need a log in one partition.
    split_every, address
        As for ``sketch``.

    Examples
    --------
    >>> import dask.array as da, sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> arms, chosen, rewards = random.random((60, 5, 4)), random.integers(0, 5, 60), random.random(60)
    >>> parts = [da.from_array(array, chunks=20) for array in (chosen, rewards)]
    >>> policy = fit_logged(da.from_array(arms, chunks=(20, 5, 4)), *parts, sb.oful)
    >>> whole = sb.oful(4)
    >>> whole.update(arms[np.arange(60), chosen], rewards)
    >>> policy.rounds, bool(np.allclose(policy.theta, whole.theta))
    (60, True)

    """
    check_factory(factory)
    split_every = check_count("split_every", split_every, at_least=2)
    arm_blocks, edges = _blocks(arms, "arms", None)
    chosen_blocks = [None] * len(arm_blocks) if chosen is None else _blocks(chosen, "chosen", edges)[0]
    reward_blocks, _ = _blocks(rewards, "rewards", edges)
    for name, blocks in (("chosen", chosen_blocks), ("rewards", reward_blocks)):
        if len(blocks) != len(arm_blocks):
            raise InputError(f"arms have {len(arm_blocks)} partitions, but {name} {len(blocks)}")
    if isinstance(arms, Array) and isinstance(arms.shape[-1], int):  # then nothing has to be computed first
        _check_policy(make(factory, arms.shape[-1], 0, Policy, "policy"), len(arm_blocks))
    triples = zip(arm_blocks, chosen_blocks, reward_blocks, strict=True)
    places = (Place(number, len(arm_blocks)) for number in range(len(arm_blocks)))
    arguments = ((*triple, place, factory) for triple, place in zip(triples, places, strict=True))
    policy = merge_partitions(learn_partition, arguments, split_every, address)
    if policy is None:
        raise InputError("there are no rounds, and it is not known how long an arm would be")
    return policy


def _blocks(collection: Collection, name: str, edges: Edges | None) -> tuple[list[Block], Edges | None]:
    """The partitions along the rounds, and their edges. ``edges`` are those that they must have."""
    if isinstance(collection, Array):
        if edges is not None and collection.chunks[0] != edges:
            if sum(collection.chunks[0]) != sum(edges):
                raise InputError(f"arms are of {sum(edges)} rounds, but {name} of {collection.shape[0]}")
            collection = collection.rechunk({0: edges})
        return whole_rows(collection), collection.chunks[0]
    if isinstance(collection, (list, tuple)) and collection:
        return list(collection), None
    raise InputTypeError(
        f"{name} must be a Dask array or a list of (delayed) blocks, not {type(collection).__name__}"
    )


def _check_policy(policy: Policy, partitions: int) -> None:
    """Raise if the policy cannot be merged, before it learns anything."""
    if policy.is_warming_up:
        raise InputError(
            "every partition would learn a scaling of its own, and such policies do not merge; give all the "
            "same one, as in lambda dim: sb.adaptive(dim, scaling=known), or scaling=None, intercept=False"
        )
    if partitions > 1:
        one = f"the log has {partitions} partitions: make one of them, as in arms.rechunk({{0: -1}})"
        if policy.forget is not None:
            raise MergeError(
                f"forget is {policy.forget:.6g}: partitions follow one another, and only policies that ran "
                f"side by side have forgotten alike; leave out forget; or {one}"
            )
        try:
            policy.estimate.check_mergeable()
        except MergeError as error:
            raise MergeError(f"{error}; {one}") from error


def learn_partition(
    arms: Block, chosen: Block | None, rewards: Block, place: Place, factory: Factory
) -> PartialResult[Policy] | None:
    """A policy that has learned from one partition; None if the partition has neither rounds nor a width."""
    name = f"partition {place.number}"
    arms, rewards = as_rows(arms), np.asarray(rewards)
    if arms.shape == (0,):
        return None
    if chosen is not None:
        arms = _chosen_arms(name, np.asarray(arms), np.asarray(chosen))
    if len(arms.shape) != 2:
        raise InputError(f"{name}: the arms chosen must be (rounds, dim), got the shape {arms.shape}")
    policy: Policy = make(factory, arms.shape[1], place.number, Policy, "policy")
    _check_policy(policy, place.of)
    try:
        policy.update(arms, rewards)
    except SketchBanditError as error:
        raise InputError(f"{name}: {error}") from error
    return PartialResult(policy, name)


def _chosen_arms(name: str, arms: AnyArray, chosen: AnyArray) -> AnyArray:
    if arms.ndim != 3:
        raise InputError(f"{name}: arms must be (rounds, arms, dim), got the shape {arms.shape}")
    rounds, offered, _ = arms.shape
    if chosen.shape != (rounds,) or chosen.dtype.kind not in "iu":
        raise InputError(
            f"{name}: chosen must be {rounds} integers, got the shape {chosen.shape} and dtype {chosen.dtype}"
        )
    outside = np.flatnonzero((chosen < 0) | (chosen >= offered))
    if len(outside):
        raise InputError(f"{name}: row {outside[0]}: arm {chosen[outside[0]]} was chosen, of {offered}")
    return arms[np.arange(rounds), chosen]
