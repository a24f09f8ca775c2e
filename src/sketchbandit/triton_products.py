# mypy: ignore-errors
"""Products of arms with a vector on a CUDA device, summed in float32, by triton.

A context u makes z = x·u of an arm x, entry by entry. Then the vector v is folded with it: x'v is z'theta.
"""

import torch
import triton
import triton.language as tl

ROWS = 32
"""Arms of a block."""
_COLUMNS = 128
_WARPS = 4
_LANES = 8192
_TAKEN_ROWS, _TAKEN_COLUMNS = 256, 16  # of a tile
_BLOCKS = 32768  # largest values that are held in registers
_HALVINGS = 16
_STEP = 1024  # arms that a program looks through
HEAD, TOLD = 2, 4
"""Numbers before those of the rows that are told, and numbers of each."""


@triton.jit
def _products(
    arms,
    vector,
    context,
    norms,
    slack,
    out,
    best,
    factors,
    count,
    width,
    IS_WEIGHTED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    per_norm = tl.load(factors).to(tl.float32)
    per_slack = tl.load(factors + 1).to(tl.float32)
    least = tl.load(factors + 2).to(tl.float32)
    block = tl.program_id(0).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    if IS_WEIGHTED:
        squares = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, width, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        here = (rows[:, None] < count) & (columns[None, :] < width)
        some = tl.load(
            arms + rows[:, None] * width + columns[None, :],
            mask=here,
            other=0.0,
            eviction_policy="evict_first",
        )
        factor = tl.load(vector + columns, mask=columns < width, other=0.0).to(tl.float32)
        total += some.to(tl.float32) * factor[None, :]
        if IS_WEIGHTED:
            weight = tl.load(context + columns, mask=columns < width, other=0.0).to(tl.float32)
            weighted = some.to(tl.float32) * weight[None, :]
            squares += weighted * weighted
    known = rows < count
    norm = tl.sqrt(tl.sum(squares, axis=1)) if IS_WEIGHTED else tl.load(norms + rows, mask=known, other=0.0)
    over = norm * per_norm + tl.load(slack + rows, mask=known, other=0.0) * per_slack + least
    value = tl.where(known, tl.sum(total, axis=1) + over, float("-inf"))
    tl.store(out + rows, value, mask=known)
    tl.store(best + block, tl.max(value, axis=0))


@triton.jit
def _leader(
    arms,
    vector,
    context,
    upper,
    best,
    told,
    count,
    blocks,
    width,
    IS_WEIGHTED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LANES: tl.constexpr,
):
    lanes = tl.arange(0, LANES)
    top = tl.full((LANES,), float("-inf"), dtype=tl.float32)
    next_best = tl.full((LANES,), float("-inf"), dtype=tl.float32)
    place = tl.zeros((LANES,), dtype=tl.int32)
    for start in range(0, blocks, LANES):
        value = tl.load(best + start + lanes, mask=start + lanes < blocks, other=float("-inf"))
        is_more = value > top
        next_best = tl.where(is_more, top, tl.maximum(next_best, value))
        place = tl.where(is_more, start + lanes, place)
        top = tl.where(is_more, value, top)
    _, lane = tl.max(top, axis=0, return_indices=True)
    block = tl.sum(tl.where(lanes == lane, place, 0), axis=0).to(tl.int64)
    others = tl.max(tl.where(lanes == lane, next_best, tl.maximum(next_best, top)), axis=0)
    rows = block * ROWS + tl.arange(0, ROWS)
    values = tl.load(upper + rows, mask=rows < count, other=float("-inf"))
    _, row = tl.max(values, axis=0, return_indices=True)
    others = tl.maximum(others, tl.max(tl.where(tl.arange(0, ROWS) == row, float("-inf"), values), axis=0))
    leader = block * ROWS + row
    mean = tl.zeros((COLUMNS,), dtype=tl.float64)
    square = tl.zeros((COLUMNS,), dtype=tl.float64)
    for start in range(0, width, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        here = columns < width
        x = tl.load(arms + leader * width + columns, mask=here, other=0.0).to(tl.float64)
        mean += x * tl.load(vector + columns, mask=here, other=0.0)
        if IS_WEIGHTED:
            x = x * tl.load(context + columns, mask=here, other=0.0)
        square += x * x
        tl.store(told + 5 + columns, x, mask=here)
    tl.store(told, leader.to(tl.float64))
    tl.store(told + 1, others.to(tl.float64))
    tl.store(told + 2, tl.sum(mean, axis=0))
    tl.store(told + 3, tl.sum(square, axis=0))
    tl.store(told + 4, 0.0)


@triton.jit
def _taken(carried, told, width, rank, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    for start in range(0, width, ROWS):
        rows = start + tl.arange(0, ROWS)
        here = (rows[:, None] < width) & (columns[None, :] < rank)
        some = tl.load(carried + rows[:, None] * rank + columns[None, :], mask=here, other=0.0)
        total += some * tl.load(told + 5 + rows, mask=rows < width, other=0.0)[:, None]
    seen = tl.sum(total, axis=0)
    tl.atomic_add(told + 4, tl.sum(seen * seen, axis=0))


@triton.jit
def _threshold(best, told, counter, blocks, wanted, HALVINGS: tl.constexpr, LANES: tl.constexpr):
    lanes = tl.arange(0, LANES)
    values = tl.load(best + lanes, mask=lanes < blocks, other=float("-inf"))
    high = tl.max(values, axis=0)
    low = tl.min(tl.where(lanes < blocks, values, high), axis=0)
    for start in range(LANES, blocks, LANES):
        more = tl.load(best + start + lanes, mask=start + lanes < blocks, other=float("-inf"))
        high = tl.maximum(high, tl.max(more, axis=0))
        low = tl.minimum(low, tl.min(tl.where(start + lanes < blocks, more, high), axis=0))
    for _ in range(HALVINGS):  # at least ``wanted`` blocks reach ``low``
        middle = 0.5 * (low + high)
        reached = tl.sum((values >= middle).to(tl.int32), axis=0)
        for start in range(LANES, blocks, LANES):
            more = tl.load(best + start + lanes, mask=start + lanes < blocks, other=float("-inf"))
            reached += tl.sum((more >= middle).to(tl.int32), axis=0)
        is_enough = reached >= wanted
        low = tl.where(is_enough, middle, low)
        high = tl.where(is_enough, high, middle)
    tl.store(told, low.to(tl.float64))
    tl.store(counter, 0)


@triton.jit
def _collect(upper, told, counter, found, count, room, STEP: tl.constexpr):
    rows = tl.program_id(0) * STEP + tl.arange(0, STEP)
    value = tl.load(upper + rows, mask=rows < count, other=float("-inf"))
    is_in = value >= tl.load(told).to(tl.float32)
    if tl.max(is_in.to(tl.int32), axis=0) > 0:
        place = tl.atomic_add(counter + tl.zeros((STEP,), dtype=tl.int32), 1, mask=is_in)
        tl.store(found + place, rows, mask=is_in & (place < room))


@triton.jit
def _tell(
    arms,
    vector,
    context,
    found,
    counter,
    told,
    wide,
    width,
    IS_WEIGHTED: tl.constexpr,
    HEAD: tl.constexpr,
    TOLD: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    reached = tl.load(counter)
    if place == 0:
        tl.store(told + 1, reached.to(tl.float64))
    mean = tl.zeros((COLUMNS,), dtype=tl.float64)
    square = tl.zeros((COLUMNS,), dtype=tl.float64)
    is_there = place < reached
    row = tl.load(found + place, mask=is_there, other=0).to(tl.int64)
    for start in range(0, width, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        here = (columns < width) & is_there
        x = tl.load(arms + row * width + columns, mask=here, other=0.0).to(tl.float64)
        mean += x * tl.load(vector + columns, mask=here, other=0.0)
        if IS_WEIGHTED:
            x = x * tl.load(context + columns, mask=here, other=0.0)
        square += x * x
        tl.store(wide + place * width + columns, x, mask=columns < width)
    line = told + HEAD + place * TOLD
    tl.store(line, row.to(tl.float64))
    tl.store(line + 1, tl.sum(mean, axis=0))
    tl.store(line + 2, tl.sum(square, axis=0))
    tl.store(line + 3, 0.0)


@triton.jit
def _tell_taken(seen, told, rank, HEAD: tl.constexpr, TOLD: tl.constexpr, COLUMNS: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    for start in range(0, rank, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        some = tl.load(seen + place * rank + columns, mask=columns < rank, other=0.0)
        total += some * some
    tl.store(told + HEAD + place * TOLD + 3, tl.sum(total, axis=0))


def products(arms, vector):
    """x'v of every row, (K,) float32."""
    count = len(arms)
    made = torch.empty(count + triton.cdiv(count, ROWS), dtype=torch.float32, device=arms.device)
    out, best = made[:count], made[count:]
    norms = out.zero_()  # what is multiplied by 0 must be a number
    factors = torch.zeros(3, dtype=torch.float64, device=arms.device)
    with torch.cuda.device(arms.device):
        write_bounds(arms, vector, None, norms, None, out, best, factors)
    return out


def write_bounds(arms, vector, context, norms, slack, out, best, factors):
    """x'v + factors[0]·norm + factors[1]·slack + factors[2] of every row into ``out``; of blocks the largest.

    With a context u the norm is |x·u|, which the same read of the row gives; without one it is of ``norms``.
    """
    count, width = arms.shape
    slack = norms if slack is None else slack
    is_weighted, context = _weighted(context, vector)
    _products[(len(best),)](
        arms, vector, context, norms, slack, out, best, factors, count, width, is_weighted, ROWS, _COLUMNS,
        num_warps=_WARPS,
    )  # fmt: skip


def leader(arms, vector, context, upper, best, told):
    """The row of the largest of ``upper``, into ``told``: its index, the next largest, x'v, |z|², 0, z = x·u."""
    count, width = arms.shape
    is_weighted, context = _weighted(context, vector)
    _leader[(1,)](
        arms, vector, context, upper, best, told, count, len(best), width, is_weighted, ROWS, _COLUMNS, _LANES,
        num_warps=32,
    )  # fmt: skip


def add_taken(carried, told):
    """Add |carried'z|² of that row to told[4]."""
    width, rank = carried.shape
    _taken[(triton.cdiv(rank, _TAKEN_COLUMNS),)](
        carried, told, width, rank, _TAKEN_ROWS, _TAKEN_COLUMNS, num_warps=8
    )


def tell_leaders(arms, vector, context, upper, best, wanted, carried, room):
    """The rows of the blocks whose largest bounds come first, at least ``wanted`` of them.

    A flat array: all other rows have bounds below the first number; how many rows there are, of which at most
    ``room`` follow; of each its index, x'v, and with z = x·u |z|² and |carried'z|².
    """
    count, width = arms.shape
    device, blocks = arms.device, len(best)
    told = torch.empty(HEAD + TOLD * room, dtype=torch.float64, device=device)
    places = torch.empty(1 + room, dtype=torch.int32, device=device)
    counter, found = places[:1], places[1:]
    wide = torch.empty((room, width), dtype=torch.float64, device=device)
    is_weighted, context = _weighted(context, vector)
    with torch.cuda.device(device):
        _threshold[(1,)](best, told, counter, blocks, wanted, _HALVINGS, _BLOCKS, num_warps=32)
        _collect[(triton.cdiv(count, _STEP),)](upper, told, counter, found, count, room, _STEP)
        _tell[(room,)](
            arms, vector, context, found, counter, told, wide, width, is_weighted, HEAD, TOLD, 2 * _COLUMNS
        )
        if carried is not None and carried.shape[1]:
            seen = wide @ carried
            _tell_taken[(room,)](seen, told, carried.shape[1], HEAD, TOLD, _COLUMNS)
    return told


def _weighted(context, vector):
    """Whether there is a context, and an array in its place: a kernel takes a pointer in any case."""
    return context is not None, vector if context is None else context
