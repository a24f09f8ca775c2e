"""One round of learning: the sketch takes the arm, then the precision and the estimate follow."""

import math

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.estimate import Estimate, Linear, can_fuse, learn_fused
from sketchbandit.linalg import AnyVector
from sketchbandit.policy.predictions import PredictionWatch
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
    if scale.baseline:
        added = 0.0
        if not scale.reward_mass(reward, length) < estimate.most_reward_mass:
            estimate.check(scale.reward_mass(reward, length))  # raises, with the reason
    else:
        added = abs(reward) * length
        if not estimate.reward_mass + added < estimate.most_reward_mass:
            estimate.check(added)
    sketch = precision.sketch
    if not sketch.tally.mass + norm_sq * estimate.most_weight <= sketch.tally.most_mass:
        sketch.tally.check(norm_sq * estimate.most_weight)
    estimate.prepare(x)  # nothing is refused from here on
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
        scale.see(reward, length)
        estimate.learn(x, reward, None)
    else:
        change = sketch.take_one(row, norm_sq)
        follows = inverse.follows(change, norm_sq)
        fused = estimate if follows and can_fuse(inverse, estimate, x) else None
        if watch is not None and fused is None:
            error = reward - estimate.predict(x, leverage)
        level = estimate.level
        scale.see(reward, length)
        found = None
        if isinstance(fused, Linear):
            found = learn_fused(inverse, fused, x, norm_sq, leverage, reward, level)
            error = math.nan if found is None else found
        step = inverse.append(x, norm_sq, leverage) if follows and found is None else None
        if follows:
            precision.grown(x, norm_sq, leverage, change)
        else:
            precision.rebuild(orthogonal=change.orthogonal)
        if found is None:
            estimate.learn(x, reward, step)
    if watch is not None:
        watch.see(reward, error, quadratic)
    estimate.reward_mass += added
    return change


def forget(precision: Precision, estimate: Estimate, factor: float, *, orthogonal: bool = False) -> None:
    """Multiply the weight of everything learned by this factor, except the ridge."""
    precision.sketch.forget(factor)
    precision.rebuild(orthogonal=orthogonal)
    estimate.forget(factor)
    estimate.reward_mass *= factor


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
        estimate.reward_scale.see(reward, math.sqrt(norm_sq))
    estimate.learn_many(rows.astype(np.float64, copy=False), rewards)
    estimate.reward_mass += float(np.abs(rewards) @ np.sqrt(norms_sq))
    return change
