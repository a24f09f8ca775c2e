"""What a policy earns while it learns: replay of a log by rejection (Li, Chu, Langford and Wang 2011)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.chunk import Chunk
from sketchbandit.evaluation.estimators import Sample
from sketchbandit.evaluation.intervals import NOTHING, normal
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.results import Estimate
from sketchbandit.evaluation.seen import learn
from sketchbandit.evaluation.terms import Tell
from sketchbandit.evaluation.weights import LEAST_SIZE
from sketchbandit.policy import PerAction
from sketchbandit.sketch.checks import check_real


class Replay(NamedTuple):
    """What a policy has lived through in a replay."""

    policy: str
    rounds: int
    """Decisions of the log in which it chose what was logged; they are a life of its own, of that length."""
    decisions: int
    """Decisions of the log."""
    numbers: AnyArray
    """Which ones were kept."""
    rewards: Vector
    """What it earned in them, in order."""
    estimate: Estimate
    """Its mean reward over these rounds, by the method "replay"."""
    verdict: str
    """Why nothing can be said; empty where something can."""
    learned: Any
    """The policy at the end."""


def replay(
    log: Log,
    makers: Mapping[str, Any],
    *,
    level: float = 0.95,
    seed: int = 0,
    tell: Tell = lambda _: None,
) -> dict[str, Replay]:
    """Have fresh policies live through a log: one that chooses what was logged gets the reward, and learns.

    On a log of uniform choices the decisions that are kept have exactly the law of the policy's own life, of
    ``rounds`` rounds. Where the probabilities p of a log differ, a match is kept with probability
    min(p)/p, which restores that law and throws away the more. The value is the mean reward of these rounds,
    learning included; the interval is that of the mean of their expected rewards, given how it went.

    Parameters
    ----------
    log : Log
        Made by chance: uniform choices keep one decision in K.
    makers : dict
        By name: a function without arguments that makes a fresh policy.
    level : float
        Of the interval.
    seed : int
        Of what is thrown away where probabilities differ.
    tell : callable, optional
        Hears how many decisions more are done.

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
    if not isinstance(makers, Mapping) or not makers:
        raise InputTypeError(
            f'makers are given by name, {{"mine": lambda: sb.adaptive(20)}}, got {makers!r:.60}'
        )
    check_real("level", level, above=0.0, below=1.0)
    if log.is_deterministic:
        raise InputError("the log was made without chance: nothing can be replayed that chooses otherwise")
    found = {}
    for name, make in makers.items():
        policy = make() if callable(make) else make
        if not hasattr(policy, "select") or policy.rounds:
            raise InputTypeError(f"{name}: the maker must make a fresh policy, got {policy!r:.60}")
        random = np.random.default_rng(
            np.random.SeedSequence(seed).spawn(1)[0]
        )  # a stream that no policy has
        numbers = _kept(log, policy, random, tell)
        found[name] = _told(str(name), policy, log, numbers, level)
    return found


def _kept(log: Log, policy: Any, random: np.random.Generator, tell: Tell) -> AnyArray:
    """The decisions in which the policy chose what was logged; it has learned from each."""
    least = float(log.probability.min())
    kept = []
    for chunk in log.chunks():
        accepted = random.random(len(chunk)) * chunk.probability < least * (1.0 + 1e-9)
        for number in range(len(chunk)):
            if _choice(policy, chunk, number) == chunk.chosen[number] and accepted[number]:
                learn(policy, chunk, number)
                kept.append(chunk.start + number)
        tell(len(chunk))
    return np.array(kept, dtype=np.int64)


def _choice(policy: Any, chunk: Chunk, number: int) -> int:
    if not isinstance(policy, PerAction):
        return int(policy.select(chunk.arms[number]))
    if chunk.offered is None:
        raise InputError("a model per action chooses among actions with names; give Log(actions=[names])")
    names = list(chunk.offered[number])
    return names.index(policy.select(chunk.contexts[number], names))


def _told(name: str, policy: Any, log: Log, numbers: AnyArray, level: float) -> Replay:
    rewards, rounds = log.reward[numbers], len(numbers)
    verdict = "" if rounds >= LEAST_SIZE else f"{rounds} decisions were kept, below {LEAST_SIZE:.0f}"
    value = float(rewards.mean()) if rounds else float("nan")
    ends = NOTHING if verdict else normal(Sample(rewards), level)
    estimate = Estimate(name, "replay", value, *ends, float(rounds))
    return Replay(name, rounds, len(log), numbers, rewards, estimate, verdict, policy)
