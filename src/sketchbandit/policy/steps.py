"""One round of learning: the sketch takes the arm, then the precision and the estimate follow."""

import math

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.estimate import Estimate, learn_fused
from sketchbandit.linalg import AnyVector
from sketchbandit.policy.drift import PredictionWatch
from sketchbandit.precision import Leverage, Precision, take_weighted
from sketchbandit.sketch.change import NO_CHANGE, Change


def learn_one(
    precision: Precision,
    estimate: Estimate,
    x: AnyVector,
    row: AnyArray,
    norm_sq: float,
    reward: float,
    leverage: Leverage | None = None,
    watch: PredictionWatch | None = None,
) -> Change:
    """Learn from one finite arm x and its reward.

    ``row`` is x as the sketch stores it, shape (1, dim). ``leverage`` is that of x, if it is known. ``watch``
    is told how well the reward was predicted.
    """
    scale, length = estimate.reward_scale, math.sqrt(norm_sq)
    total = estimate.mass_with(reward, length)
    if not total < estimate.most_reward_mass:
        estimate.check_mass(total)  # raises, with the reason
    sketch = precision.sketch
    if not sketch.row_stats.mass + norm_sq * estimate.most_weight <= sketch.row_stats.most_mass:
        sketch.row_stats.check(norm_sq * estimate.most_weight)
    estimate.prepare(x)  # nothing is refused from here on
    scale.begin(reward)
    if not norm_sq:  # a zero arm: no direction to learn about
        change = sketch.take_one(row, norm_sq)
        precision.nothing_changed()
        scale.see(reward)
        return change
    if leverage is None:
        leverage = precision.leverage(x, norm_sq)
    inverse = precision.inverse
    error, quadratic = math.nan, 0.0 if watch is None else inverse.quadratic(leverage, norm_sq)
    if estimate.weighs:
        if watch is not None:
            error = reward - estimate.predict(x, leverage)
        weight = estimate.weight(x, norm_sq, reward, leverage)
        change = take_weighted(precision, x, row, norm_sq, weight=weight, leverage=leverage)
        scale.see(reward)
        estimate.learn(x, reward, None)
    else:
        change, error = _learn_plain(precision, estimate, x, row, norm_sq, reward, leverage, watch)
    if watch is not None:
        watch.see(reward, error, quadratic)
    estimate.count_mass(reward, length)
    return change


def _learn_plain(
    precision: Precision,
    estimate: Estimate,
    x: AnyVector,
    row: AnyArray,
    norm_sq: float,
    reward: float,
    leverage: Leverage,
    watch: PredictionWatch | None,
) -> tuple[Change, float]:
    """Learn if the sketch takes x itself, with weight one. Returns the prediction error too, or NaN."""
    inverse = precision.inverse
    change = precision.sketch.take_one(row, norm_sq)
    follows = inverse.follows(change, norm_sq)
    error = learn_fused(inverse, estimate, x, norm_sq, leverage, reward) if follows else None
    if error is not None:
        estimate.reward_scale.see(reward)
        precision.grown(x, norm_sq, leverage, change)
        return change, error
    error = math.nan if watch is None else reward - estimate.predict(x, leverage)
    estimate.reward_scale.see(reward)
    step = inverse.append(x, norm_sq, leverage) if follows else None
    if follows:
        precision.grown(x, norm_sq, leverage, change)
    else:
        precision.rebuild(orthogonal=change.orthogonal)
    estimate.learn(x, reward, step)
    return change, error


def forget(precision: Precision, estimate: Estimate, factor: float, *, orthogonal: bool = False) -> None:
    """Multiply the weight of everything learned by this factor, except the ridge."""
    precision.sketch.forget(factor)
    precision.rebuild(orthogonal=orthogonal)
    estimate.forget(factor)
    estimate.reward_mass *= factor
    estimate.arm_lengths *= factor


def learn_many(
    precision: Precision, estimate: Estimate, rows: AnyArray, norms_sq: Vector, rewards: Vector
) -> Change:
    """Learn from many checked rows of the sketch's dtype and their rewards."""
    change = NO_CHANGE
    if estimate.weighs or len(rows) < precision.rows_worth_a_rebuild:
        for i, (norm_sq, reward) in enumerate(zip(norms_sq.tolist(), rewards.tolist(), strict=True)):
            x = rows[i].astype(np.float64, copy=False)
            change = change.then(learn_one(precision, estimate, x, rows[i : i + 1], norm_sq, reward))
        return change
    change = precision.sketch.take(rows, norms_sq)
    precision.rebuild()
    for norm_sq, reward in zip(norms_sq.tolist(), rewards.tolist(), strict=True):
        estimate.reward_scale.see(reward)
        estimate.count_mass(reward, math.sqrt(norm_sq))
    estimate.learn_many(rows.astype(np.float64, copy=False), rewards)
    return change
