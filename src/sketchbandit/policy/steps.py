"""One round of learning: the sketch takes the arm, then the precision and the estimate follow."""

import math

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.estimate import Estimate, Linear, learn_fused
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
    added = abs(reward) * math.sqrt(norm_sq)
    if not estimate.reward_mass + added < estimate.most_reward_mass:
        estimate.check(added)  # raises, with the reason
    sketch = precision.sketch
    if not sketch.tally.mass + norm_sq * estimate.most_weight <= sketch.tally.most_mass:
        sketch.tally.check(norm_sq * estimate.most_weight)
    estimate.prepare(x)  # nothing is refused from here on
    if not norm_sq:  # a zero arm: no direction to learn about
        change = sketch.take_one(row, norm_sq)
        precision.nothing_changed()
        return change
    if leverage is None:
        leverage = precision.leverage(x, norm_sq)
    inverse = precision.inverse
    if watch is not None and not isinstance(estimate, Linear):  # for linear rewards this happens below
        error = reward - estimate.predict(x, leverage)
        watch.see(reward, error, inverse.quadratic(leverage, norm_sq))
        watch = None
    if estimate.weighs:
        weight = estimate.weight(x, norm_sq, reward, leverage)
        change = take_weighted(precision, x, row, norm_sq, weight=weight, leverage=leverage)
        estimate.learn(x, reward, None)
    else:
        change = _learn_plain(precision, estimate, x, row, norm_sq, reward, leverage, watch)
    estimate.reward_mass += added
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
) -> Change:
    """Learn if the sketch takes x itself, with weight one."""
    inverse = precision.inverse
    if watch is not None:
        quadratic = inverse.quadratic(leverage, norm_sq)
    change = precision.sketch.take_one(row, norm_sq)
    if inverse.follows(change, norm_sq):
        step = None
        error = learn_fused(inverse, estimate, x, norm_sq, leverage, reward)
        if error is None:
            error = reward - estimate.predict(x, leverage) if watch is not None else 0.0
            step = inverse.append(x, norm_sq, leverage)
        precision.grown(x, norm_sq, leverage, change)
        if step is not None:
            estimate.learn(x, reward, step)
    else:
        error = reward - estimate.predict(x, leverage) if watch is not None else 0.0
        precision.rebuild(orthogonal=change.orthogonal)
        estimate.learn(x, reward, None)
    if watch is not None:
        watch.see(reward, error, quadratic)
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
    estimate.learn_many(rows.astype(np.float64, copy=False), rewards)
    estimate.reward_mass += float(np.abs(rewards) @ np.sqrt(norms_sq))
    return change
