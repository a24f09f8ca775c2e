"""Replay of a log by rejection (Li, Chu, Langford and Wang 2011): what a policy earns while it learns."""

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.bounded import of_rewards
from sketchbandit.evaluation.intervals import NOTHING, Interval
from sketchbandit.evaluation.log import Chunk, Log
from sketchbandit.evaluation.off_policy import range_with
from sketchbandit.evaluation.results import Estimate
from sketchbandit.evaluation.sequences import check_range
from sketchbandit.evaluation.target_policies import check_makers, learn
from sketchbandit.evaluation.terms import Tell, one_blas_thread
from sketchbandit.evaluation.weights import FAR, OFF, common_reward, too_few
from sketchbandit.policy import PerAction, Policy
from sketchbandit.sketch.checks import check_real


class Replay(NamedTuple):
    """The result of a replay for one policy."""

    policy: str
    rounds: int
    """The number of decisions kept: those in which the policy chose the logged arm."""
    decisions: int
    """The number of decisions of the log."""
    numbers: AnyArray
    """The row numbers of the decisions kept."""
    rewards: Vector
    """The rewards of these decisions, in order."""
    estimate: Estimate
    """The mean reward over these decisions, with an interval; its method is "replay"."""
    verdict: str
    """Why nothing can be said; empty if something can."""
    learned: Any
    """The policy at the end."""


def replay(
    log: Log,
    makers: Mapping[str, object],
    *,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
    tell: Tell = lambda _: None,
) -> dict[str, Replay]:
    """Play a log with fresh policies. If a policy chooses the logged arm, it gets the reward and learns.

    If the log was made by uniform choices, the decisions kept are distributed exactly as ``rounds`` rounds of
    the policy on its own. If the propensities p of the log differ, a match is kept with probability min(p)/p.
    This restores the distribution, but keeps fewer decisions. The value is the mean reward of these rounds,
    including the time of learning. The interval is for the mean of their expected rewards, given the history.

    Parameters
    ----------
    log : Log
        A log with random choices. If they are uniform over K arms, one decision in K is kept.
    makers : dict
        By name, a function without arguments that returns a fresh policy.
    level : float
        The confidence level of the interval.
    reward_range : (float, float), optional
        The smallest and largest possible reward. Default: those in the log.
    seed : int
        Seed for the rejection if the propensities differ.
    tell : callable, optional
        Called with the number of further decisions done, for a progress bar.

    Returns
    -------
    dict of str to Replay

    Examples
    --------
    >>> import sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> arms, chosen = random.standard_normal((3000, 5, 3)), random.integers(5, size=3000)
    >>> reward = arms[np.arange(3000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(3000, 0.2))
    >>> found = replay(log, {"oful": lambda: sb.oful(3)})["oful"]
    >>> found.rounds, bool(found.estimate.low > log.reward.mean())
    (569, True)

    """
    check_makers(makers)
    check_real("level", level, above=0.0, below=1.0)
    given = None if reward_range is None else check_range(reward_range)
    within = range_with(given, float(log.reward.min()), float(log.reward.max()))
    if log.is_deterministic:
        raise InputError(
            "the log was made without chance, so nothing else can be replayed; use a log of random choices"
        )
    interval = partial(of_rewards, error=1.0 - level, reward_range=within)
    found = {}
    for name, make in makers.items():
        policy: Any = make() if callable(make) else make
        if not hasattr(policy, "select") or policy.rounds:
            raise InputTypeError(f"{name}: the maker must return a fresh policy, got {policy!r:.60}")
        seeds = np.random.SeedSequence(seed).spawn(1)[0]  # a stream that no policy uses
        with one_blas_thread():
            numbers = _kept(log, policy, np.random.default_rng(seeds), tell)
        found[name] = _told(str(name), policy, log, numbers, interval)
    return found


def _kept(log: Log, policy: Policy | PerAction, random: np.random.Generator, tell: Tell) -> AnyArray:
    """The decisions in which the policy chose the logged arm. It has learned from each."""
    least = float(log.probability.min())
    kept = []
    for chunk in log.chunks():
        accepted = random.random(len(chunk)) * chunk.probability < least * (1.0 + 1e-9)
        for number in range(len(chunk)):
            is_warming = getattr(policy, "is_warming_up", False)  # then a choice changes its scaling
            asked = copy.deepcopy(policy) if is_warming else policy
            if _choice(asked, chunk, number) != chunk.chosen[number] or not accepted[number]:
                continue  # rejected: a policy in its warm-up must not have seen these arms
            if is_warming:
                _choice(policy, chunk, number)
            learn(policy, chunk, number)
            kept.append(chunk.start + number)
        tell(len(chunk))
    return np.array(kept, dtype=np.int64)


def _choice(policy: Policy | PerAction, chunk: Chunk, number: int) -> int:
    if not isinstance(policy, PerAction):
        return int(policy.select(chunk.arms[number]))
    if chunk.offered is None:
        raise InputError("PerAction needs actions with names; give Log(actions=[names])")
    names = list(chunk.offered[number])
    return names.index(policy.select(chunk.contexts[number], names))


def _told(
    name: str, policy: Policy | PerAction, log: Log, numbers: AnyArray, interval: Callable[[Vector], Interval]
) -> Replay:
    rewards, rounds, common = log.reward[numbers], len(numbers), common_reward(log.reward)
    uncommon = float((rewards != common).sum())
    verdict = _gap(rounds, len(log) * float(log.probability.min())) or too_few(uncommon, len(log), common)
    value = float(rewards.mean()) if rounds else float("nan")
    ends = NOTHING if verdict else interval(rewards)
    estimate = Estimate(name, "replay", value, *ends, float(rounds))
    return Replay(name, rounds, len(log), numbers, rewards, estimate, verdict, policy)


def _gap(rounds: int, expected: float) -> str:
    """Why nothing can be said. A match is kept with the smallest propensity of the log."""
    if abs(rounds - expected) > max(FAR * math.sqrt(expected), OFF * expected):
        return (
            f"{rounds} decisions were kept, but {expected:.0f} were expected: the policy plays what was "
            "hardly ever logged, or the logged probabilities are wrong"
        )
    return ""
