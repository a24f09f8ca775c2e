# mypy: ignore-errors
"""Products of arms with a vector on a CUDA device, summed in float32, by triton."""

import torch
import triton
import triton.language as tl

ROWS = 16
"""Arms of a block."""
_COLUMNS = 256
_LANES = 4096


@triton.jit
def _products(
    arms,
    vector,
    norms,
    slack,
    out,
    best,
    per_norm,
    per_slack,
    count,
    width,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    block = tl.program_id(0).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, width, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        here = (rows[:, None] < count) & (columns[None, :] < width)
        some = tl.load(arms + rows[:, None] * width + columns[None, :], mask=here, other=0.0)
        factor = tl.load(vector + columns, mask=columns < width, other=0.0)
        total += some.to(tl.float32) * factor[None, :]
    known = rows < count
    over = tl.load(norms + rows, mask=known, other=0.0) * per_norm
    over += tl.load(slack + rows, mask=known, other=0.0) * per_slack
    value = tl.where(known, tl.sum(total, axis=1) + over, float("-inf"))
    tl.store(out + rows, value, mask=known)
    tl.store(best + block, tl.max(value, axis=0))


@triton.jit
def _leader(
    arms,
    vector,
    upper,
    best,
    told,
    count,
    blocks,
    width,
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
        square += x * x
        tl.store(told + 5 + columns, x, mask=here)
    tl.store(told, leader.to(tl.float64))
    tl.store(told + 1, others.to(tl.float64))
    tl.store(told + 2, tl.sum(mean, axis=0))
    tl.store(told + 3, tl.sum(square, axis=0))


def products(arms, vector, norms=None, slack=None, per_norm=0.0, per_slack=0.0):
    """x'v + per_norm·norm + per_slack·slack of every row, (K,) float32, and the largest of every block."""
    count, width = arms.shape
    blocks = triton.cdiv(count, ROWS)
    made = torch.empty(count + blocks, dtype=torch.float32, device=arms.device)
    out, best = made[:count], made[count:]
    if norms is None:
        norms = out.zero_()  # what is multiplied by 0 must be a number
    slack = norms if slack is None else slack
    with torch.cuda.device(arms.device):
        _products[(blocks,)](
            arms, vector, norms, slack, out, best, per_norm, per_slack, count, width, ROWS, _COLUMNS
        )
    return out, best


def leader(arms, vector, upper, best, told):
    """The row of the largest of ``upper``, into ``told``: its index, the next largest, x'v, |x|², _, x."""
    count, width = arms.shape
    with torch.cuda.device(arms.device):
        _leader[(1,)](
            arms, vector, upper, best, told, count, len(best), width, ROWS, _COLUMNS, _LANES, num_warps=32
        )
