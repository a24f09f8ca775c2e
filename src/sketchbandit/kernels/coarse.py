# mypy: allow-untyped-defs, allow-untyped-calls
"""Quick products with many arms: as they are, kept in eight bits, or re-weighted by a context."""

import numpy as np

from sketchbandit.kernels.compiling import compiled, compiled_sum
from sketchbandit.kernels.sums import need


@compiled_sum
def _coarse_dot(codes, vector):
    total = np.float32(0.0)
    for j in range(len(codes)):
        total += np.float32(codes[j]) * vector[j]
    return total


@compiled
def coarse_products(codes, steps, vector, products):
    """The step of each row times codes'v, summed in float32."""
    need(codes.shape[1] == len(vector) and len(steps) == len(products) == len(codes))
    for k in range(len(codes)):
        products[k] = steps[k] * _coarse_dot(codes[k], vector)


@compiled
def to_codes(rows, levels, codes, steps, slack):
    """Rows in eight bits: codes times the step of the row, and how far the row is from that, squared."""
    need(codes.shape == rows.shape and len(steps) == len(slack) == len(rows))
    for k in range(len(rows)):
        row, most = rows[k], 0.0
        for j in range(len(row)):
            most = max(most, abs(np.float64(row[j])))
        step = np.float32(max(most / levels, 1e-30))
        total = 0.0
        for j in range(len(row)):
            entry = np.float64(row[j])
            code = min(max(np.rint(entry / step), -levels), levels)
            codes[k, j] = np.int8(code)
            off = entry - code * step
            total += off * off
        steps[k], slack[k] = step, total


@compiled_sum
def _dot(row, vector):
    total = row[0] * vector[0]
    for j in range(1, len(row)):
        total += row[j] * vector[j]
    return total


@compiled_sum
def _four_dots(arms, first, vector, products):
    """More of memory under way at once."""
    r0, r1, r2, r3 = arms[first], arms[first + 1], arms[first + 2], arms[first + 3]
    t0, t1, t2, t3 = r0[0] * vector[0], r1[0] * vector[0], r2[0] * vector[0], r3[0] * vector[0]
    for j in range(1, len(vector)):
        t0 += r0[j] * vector[j]
        t1 += r1[j] * vector[j]
        t2 += r2[j] * vector[j]
        t3 += r3[j] * vector[j]
    products[first], products[first + 1], products[first + 2], products[first + 3] = t0, t1, t2, t3


@compiled
def row_products(arms, vector, products):
    """x'v of every row, summed in the dtype of the arms."""
    need(arms.shape[1] == len(vector) and len(products) == len(arms) and len(vector) > 0)
    fours = len(arms) - len(arms) % 4
    for k in range(0, fours, 4):
        _four_dots(arms, k, vector, products)
    for k in range(fours, len(arms)):
        products[k] = _dot(arms[k], vector)


@compiled_sum
def _weighted_dots(row, vector, weights):
    product, square = row[0] * vector[0], row[0] * row[0] * weights[0]
    for j in range(1, len(row)):
        product += row[j] * vector[j]
        square += row[j] * row[j] * weights[j]
    return product, square


@compiled
def weighted_products(arms, vector, weights, products, squares):
    """x'v and Σ weights_j·x_j² of every row, summed in the dtype of the arms."""
    need(arms.shape[1] == len(vector) == len(weights) and len(products) == len(squares) == len(arms))
    need(len(vector) > 0)
    for k in range(len(arms)):
        products[k], squares[k] = _weighted_dots(arms[k], vector, weights)
