"""Simulated logs whose truth is known."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sketchbandit as sb
from sketchbandit.evaluation import Log

Array = NDArray[np.float64]


class World(NamedTuple):
    """A log, and what is true of it."""

    log: Log
    arms: Array
    logging: Array
    """The probabilities of the policy that made it, (decisions, arms)."""
    means: Array
    """Expected rewards, (decisions, arms)."""
    candidate: Array
    """The probabilities of a candidate."""
    truth: float
    """What the candidate earns a decision, over all contexts."""


THETA = np.array([0.25, -0.2, 0.15, 0.05])
ARMS = 4


def softmax(scores: Array) -> Array:
    """Rows of probabilities."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances: Array = powers / powers.sum(axis=1, keepdims=True)
    return chances


def contexts(count: int, random: np.random.Generator) -> Array:
    """Arms (count, ARMS, 4), bounded, so that mean rewards lie in [0, 1]."""
    return random.uniform(-1.0, 1.0, (count, ARMS, len(THETA)))


def mean_rewards(arms: Array) -> Array:
    """Of Bernoulli rewards; not linear in the arms, so that a linear model is wrong."""
    found: Array = np.clip(0.45 + arms @ THETA + 0.1 * arms[..., 0] * arms[..., 1], 0.0, 1.0)
    return found


def logging_policy(arms: Array) -> Array:
    """Prefers some arms, and gives all a chance."""
    return 0.8 * softmax(1.5 * arms[..., 1]) + 0.2 / ARMS


def candidate_policy(arms: Array) -> Array:
    """What is asked about."""
    return softmax(3.0 * arms[..., 0])


def _truth() -> float:
    arms = contexts(400_000, np.random.default_rng(99))
    return float((candidate_policy(arms) * mean_rewards(arms)).sum(axis=1).mean())


TRUTH = _truth()
"""The candidate's value, to three or four digits: a standard error of 0.0003."""


def world(count: int, seed: int) -> World:
    """A log of so many decisions."""
    random = np.random.default_rng(seed)
    arms = contexts(count, random)
    logging = logging_policy(arms)
    drawn = random.random((count, 1))
    chosen = np.minimum((logging.cumsum(axis=1) < drawn).sum(axis=1), ARMS - 1)
    rows, means = np.arange(count), mean_rewards(arms)
    reward = (random.random(count) < means[rows, chosen]).astype(float)
    log = Log(arms=arms, chosen=chosen, reward=reward, probability=logging[rows, chosen])
    return World(log, arms, logging, means, candidate_policy(arms), TRUTH)


def uniform_log(count: int, seed: int) -> tuple[Log, Array]:
    """A log of uniform choices, and the expected rewards of its arms."""
    random = np.random.default_rng(seed)
    arms = contexts(count, random)
    chosen, means = random.integers(ARMS, size=count), mean_rewards(arms)
    reward = (random.random(count) < means[np.arange(count), chosen]).astype(float)
    return Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(count, 1.0 / ARMS)), means


def rival(seed: int = 0) -> sb.LinUCB:
    """A policy that explores by chance."""
    return sb.oful(len(THETA), explore=sb.EpsilonGreedy(0.1, seed=seed))
