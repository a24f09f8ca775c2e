"""The loop in which a policy plays an environment. Every round becomes a flat row."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sketchbandit.environment import Environment
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.policy import Policy
from sketchbandit.sketch.checks import check_count

Played = Any
"""The arm that was chosen, or the context with the action taken (``environment.Taken``)."""


class RoundResult(NamedTuple):
    """One round as a flat row: ``pandas.DataFrame(sb.play(...))`` is a table.

    Attributes
    ----------
    round : int
        The number of the round: 1, 2, ...
    chosen : int
        The index of the arm chosen.
    reward, regret, seconds : float
        The reward of this round, its pseudo-regret (from true means), and the time in select and update.
    total_reward, total_regret, total_seconds : float
        The same, summed from the first round on.
    bytes, peak_bytes : int
        The bytes of all arrays of the policy, now and at most so far.
    sketch_size, sketch_rows : int
        The sketch size l (of the active block), and the number of rows of the sketch, including buffered
        ones. The latter is the dimension if the sketch holds a dense matrix.
    certificate, budget : float
        The error bound e of the sketch, and what it may be by now. inf if nothing is certified (CBRAP), or
        nothing is promised.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> *_, last = sb.play(sb.oful(20), sb.GaussianArms(dim=20, arms=5), 30)
    >>> last.round, last.total_regret > 0.0, last.certificate
    (30, True, 0.0)

    """

    round: int
    chosen: int
    reward: float
    regret: float
    seconds: float
    total_reward: float
    total_regret: float
    total_seconds: float
    bytes: int
    peak_bytes: int
    sketch_size: int
    sketch_rows: int
    certificate: float
    budget: float


class LateRewards:
    """Delayed rewards: the reward of a choice arrives ``delay`` choices later.

    Examples
    --------
    >>> mail = LateRewards(delay=1)
    >>> mail.send([1.0, 0.0], 0.5), mail.send([0.0, 1.0], 0.7)
    (None, ([1.0, 0.0], 0.5))

    """

    def __init__(self, delay: int) -> None:
        self._delay = check_count("delay", delay, at_least=0)
        self._waiting: deque[tuple[Played, float]] = deque()

    def send(self, arm: Played, reward: float) -> tuple[Played, float] | None:
        """Send an arm with its reward. Return the older pair that arrives now, or None."""
        if not self._delay:
            return arm, reward
        self._waiting.append((arm.copy(), reward))  # a view would keep all arms of its round in memory
        return self._waiting.popleft() if len(self._waiting) > self._delay else None


def play(
    policy: Policy,
    environment: Environment,
    rounds: int,
    *,
    delay: int = 0,
    every: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    watch: Callable[[Played], None] | None = None,
) -> Iterator[RoundResult]:
    """Play ``rounds`` rounds. Yield a row for every ``every``-th round, and for the last.

    Parameters
    ----------
    policy : Policy
        The policy. It learns.
    environment : Environment
        The source of arms and rewards, for instance ``GaussianArms`` or ``Classification``.
    rounds : int
        The number of rounds. One round is one choice with one reward.
    delay : int
        The policy learns the reward of a round after so many further choices. Default 0: at once. Rewards
        that have not arrived at the end are not learned. The rows count a reward in the round that earned it.
    every : int
        Yield only every so many rounds.
    clock : callable
        Returns seconds. Default: the wall clock. ``time.thread_time`` is fairer on a busy machine, as long as
        BLAS has one thread. The time of the environment is not counted.
    watch : callable, optional
        Called with every arm that is chosen.

    Returns
    -------
    iterator of RoundResult

    Examples
    --------
    >>> import sketchbandit as sb
    >>> rows = list(sb.play(sb.oful(20), sb.GaussianArms(dim=20, arms=5), 30, every=10))
    >>> [row.round for row in rows]
    [10, 20, 30]

    """
    rounds, every = check_count("rounds", rounds, at_least=1), check_count("every", every, at_least=1)
    rewards = LateRewards(delay)
    if not hasattr(policy, "select") or not hasattr(environment, "rounds"):
        raise InputTypeError(f"play takes a policy, then an environment; got {policy!r} and {environment!r}")
    if hasattr(policy, "actions"):
        raise InputTypeError("play needs a policy over arms, but this one has a model per action")
    if policy.dim != environment.dim:
        raise InputError(
            f"the policy was made for arms of length {policy.dim}, but {environment.name} has length "
            f"{environment.dim}: make it with dim={environment.dim}"
        )

    def rows() -> Iterator[RoundResult]:
        total_reward = total_regret = total_seconds = 0.0
        peak = policy.nbytes
        for number, drawn in enumerate(environment.rounds(rounds), start=1):
            start = clock()
            chosen = policy.select(drawn.arms)
            selected = clock()
            arm, reward = drawn.arm(chosen), drawn.reward(chosen)
            arrived = rewards.send(arm, reward)
            learning = clock()
            if arrived is not None:
                policy.update(*arrived)
            seconds = (clock() - learning) + (selected - start)
            regret = drawn.regret(chosen)
            total_reward, total_regret = total_reward + reward, total_regret + regret
            total_seconds += seconds
            held = policy.nbytes
            peak = max(peak, held)
            if watch is not None:
                watch(arm)
            if number % every == 0 or number == rounds:
                yield RoundResult(
                    number,
                    chosen,
                    reward,
                    regret,
                    seconds,
                    total_reward,
                    total_regret,
                    total_seconds,
                    held,
                    peak,
                    policy.sketch.size,
                    policy.sketch.row_count,
                    policy.health().certificate,
                    policy.sketch.budget,
                )

    return rows()
