"""How a policy learns from rewards."""

import copy
import math
from typing import Any

import numpy as np

from sketchbandit.arms import (
    Arms,
    DenseArms,
    SparseArms,
    is_scalar,
    is_vector,
    norm_sq_of,
    norms_sq_of,
    read_reward,
    read_rewards,
    refuse,
    row_of,
)
from sketchbandit.array_api import on_host
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError, WorldChangedWarning
from sketchbandit.explore import Choice
from sketchbandit.linalg import AnyVector
from sketchbandit.policy.drift import BLOCK, loss_of
from sketchbandit.policy.forgetting import Clock
from sketchbandit.policy.health import Complaints, Health, say
from sketchbandit.policy.ranking import RankingPolicy
from sketchbandit.policy.steps import forget, learn_many, learn_one
from sketchbandit.policy.verdicts import are_enough_to_try, untried_arms_sentence, world_sentence
from sketchbandit.precision import Leverage
from sketchbandit.scaling import EVERY
from sketchbandit.sketch.change import ONE_APPENDED
from sketchbandit.sketch.rows import RowBatch, row_source
from sketchbandit.thread_safety import holds_the_lock

_KNOWN = 0.5  # of its largest width: an arm with a larger width is hardly known


class Policy(RankingPolicy):
    """The interface of every policy over arms: choose an arm, rank arms, learn from rewards, merge.

    ``sketchbandit.adaptive`` makes one with defaults for everything; ``LinUCB`` takes all parts one by one.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.adaptive(3, seed=0)
    >>> isinstance(policy, sb.Policy), policy.dim, policy.rounds
    (True, 3, 0)

    """

    @holds_the_lock
    def update(self, arm: Any, reward: Any) -> None:
        """Learn from one arm and its reward, or from n arms and n rewards in their order.

        Parameters
        ----------
        arm : array of shape (dim,) or (n, dim)
            The features of the arm that was chosen, not its index: ``arms[chosen]``.
        reward : float or array of shape (n,)
            The observed reward of each arm.

        Warns
        -----
        SketchTooSmallWarning, TooFewDigitsWarning, WorldChangedWarning
            Given after everything is learned. This holds even if warnings are turned into errors.

        Raises
        ------
        InputError
            If an arm or a reward cannot be used. Then nothing has changed.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> arms = [[1.0, 0.0], [0.0, 1.0]]
        >>> chosen = policy.select(arms)
        >>> policy.update(arms[chosen], reward=1.0)
        >>> policy.update(arms, [1.0, 0.5])  # two rounds at once
        >>> policy.rounds
        3

        """
        with self._lock:
            complaints = self._learn(arm, reward)
        if complaints:
            say(complaints)

    def _learn(self, arm: Any, reward: Any) -> Complaints:
        """Do ``update`` while the lock is held, and return the warnings to give."""
        if (  # the fast path
            type(arm) is np.ndarray
            and isinstance(reward, float)
            and arm.dtype == self._dtype
            and arm.ndim == 1
            and len(arm) == self._plain_dim
            and arm.flags.c_contiguous
            and not self._is_warming
        ):
            row = arm if self._reader is None else row_of(arm, self._lens)
            x = row
            if not self._is_float64:
                row = row.astype(self._dtype, copy=False)
                x = row.astype(np.float64)
            norm_sq, leverage = self._precision.measure(x)
            if not norm_sq < math.inf:  # NaN ends here too
                raise refuse(DenseArms(arm[np.newaxis]), np.array([norm_sq]))
            is_looked_at = self._watches_ranges and not self._rounds % EVERY
            complaints = self._learn_one(x, row[np.newaxis], norm_sq, leverage, float(reward))
            if is_looked_at and self._reader is not None:
                self._ranges.look(arm, self._reader.scaling)
            return complaints
        arm, reward = on_host(arm), on_host(reward)
        if isinstance(arm, Choice):
            raise InputTypeError("the arm is a Choice; give the arm itself: arms[choice.index]")
        if isinstance(arm, (int, np.integer)):
            raise InputTypeError(f"the arm is {arm}, an index; give the arm itself: arms[{arm}]")
        complaints = (self._learn_warming_up if self._is_warming else self._learn_any)(arm, reward)
        self._columns.remember(arm)
        return complaints

    def _learn_any(self, arm: Any, reward: Any) -> Complaints:
        before = self._rounds
        complaints = self._learn_all(arm, reward)
        if self._watches_ranges and self._reader is not None and -before % EVERY < self._rounds - before:
            source = row_source(self._columns.align(arm), self._dim, "arms")
            self._ranges.look_at(source, before, self._reader.scaling)
        return complaints

    def _learn_all(self, arm: Any, reward: Any) -> Complaints:
        if is_scalar(reward) or is_vector(arm):
            arms = self._read(arm, may_be_empty=True)
            if len(arms) != 1:
                raise InputError(f"{len(arms)} arms need {len(arms)} rewards, got one reward")
            return self._learn_arm(arms, 0, arms.norm_sq(0), read_reward(reward))
        arm = self._columns.align(arm)
        batch = self._read_rows(arm)
        values = read_rewards(reward, len(batch))
        self._check_many(batch, values)
        complaints: Complaints = ()
        if hasattr(arm, "tocsr") and len(batch) < self._precision.rows_worth_a_rebuild:
            read = self._read(arm, may_be_empty=True)
            for i, (norm_sq, value) in enumerate(zip(read.norms_sq().tolist(), values.tolist(), strict=True)):
                complaints += self._learn_arm(read, i, norm_sq, value)
            return complaints
        taken = 0
        for rows, _ in batch.chunks():
            complaints += self._learn_chunk(rows, norms_sq_of(rows), values[taken : taken + len(rows)])
            taken += len(rows)
        return complaints

    def _learn_arm(self, arms: Arms, index: int, norm_sq: float, reward: float) -> Complaints:
        if not norm_sq < math.inf:  # NaN ends here too
            raise refuse(arms, np.array([norm_sq]))
        row = arms.row(index, self.sketch.dtype)
        if isinstance(arms, SparseArms):
            return self._learn_one(arms.vector(index), row, norm_sq, None, reward)
        x = row[0].astype(np.float64, copy=False)  # as the sketch stores it
        return self._learn_one(x, row, norm_sq_of(x), None, reward)

    def _check_many(self, batch: RowBatch, rewards: Vector) -> None:
        """Raise if an arm or a reward cannot be learned from. What passes is never refused later."""
        if self._checks_rewards:
            for reward in rewards.tolist():
                self._estimate.check_reward(reward)
        self.sketch.row_stats.check(batch.mass * self._estimate.most_weight)
        with np.errstate(over="ignore"):
            if len(rewards):
                far = max(rewards.tolist(), key=lambda reward: abs(reward - self._reward_scale.origin))
                length = float(np.sqrt(batch.mass * len(rewards)))
                self._estimate.check_mass(self._estimate.mass_with(far, length))

    def _learn_one(
        self, x: AnyVector, row: AnyArray, norm_sq: float, leverage: Leverage | None, reward: float
    ) -> Complaints:
        if not norm_sq + abs(reward) < math.inf:  # NaN ends here too
            self._refuse(norm_sq, reward)
        if self._checks_rewards:
            self._estimate.check_reward(reward)
        world = self._world
        change = learn_one(self._precision, self._estimate, x, row, norm_sq, reward, leverage, world)
        clock = self._clock
        if clock is not None and clock.is_due(1, change, self._precision.sketch):
            self._forget_now(clock, self._rounds + 1, orthogonal=change.orthogonal)
        if len(world.pending) >= BLOCK:
            return self._look_at_world() + self._learned(1, lossy=not change.additive)
        if (  # most rounds
            change is ONE_APPENDED
            and self._rounds + 1 < self._watch.next_mark
            and self._precision.sketch.row_stats.mass < self._mass_to_look_at
        ):
            self._rounds += 1
            return ()
        return self._learned(1, lossy=not change.additive)

    def _learn_chunk(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Complaints:
        """Learn from many arms, and stop wherever the certificate has to be looked at."""
        complaints: Complaints = ()
        clock = self._clock
        while len(rows):
            some = min(len(rows), max(1, self._watch.next_mark - self._rounds))
            if clock is not None:
                some = min(some, clock.room(self._precision.sketch))
            change = learn_many(self._precision, self._estimate, rows[:some], norms_sq[:some], rewards[:some])
            if clock is not None and clock.is_due(some, change, self._precision.sketch):
                self._forget_now(clock, self._rounds + some, orthogonal=change.orthogonal)
            complaints += self._learned(some, lossy=not change.additive)
            rows, norms_sq, rewards = rows[some:], norms_sq[some:], rewards[some:]
        return complaints

    def _learned(self, count: int, *, lossy: bool) -> Complaints:
        self._rounds += count
        sketch, mass = self._precision.sketch, self._precision.sketch.row_stats.mass
        is_long = mass >= self._mass_to_look_at
        if lossy or is_long or self._rounds >= self._watch.next_mark:  # then the health may have changed
            if is_long:  # look again when the mass has doubled
                self._mass_to_look_at = 2.0 * mass
            found = self._watch.look(sketch, self._rounds, self._ridge, forgets=self._clock is not None)
            return found + self._complaints_of_dropped()
        return ()

    def _look_at_world(self) -> Complaints:
        """Test whether predictions have become worse. The warning comes once; never if the policy forgets."""
        world = self._world
        world.close(loss_of(self._precision.sketch, self._ridge))
        if not world.has_changed or (world.changed_at is not None and self._clock is None):
            return ()
        world.changed_at = self._rounds + 1
        world.begin()
        return () if self._clock is not None else (WorldChangedWarning(world_sentence(world.changed_at)),)

    def _forget_until(self, now: int) -> None:
        """Count the rounds of a shared clock up to now. Forget if that is due, before the next reward."""
        clock = self._clock
        if clock is not None:
            is_due = clock.rounds_left(now) <= 0
            clock.follow(now)
            if is_due:
                self._forget_now(clock, self._rounds)

    def _forget_now(self, clock: Clock, rounds: int, *, orthogonal: bool = False) -> None:
        """Apply the forgetting that the clock has gathered, after ``rounds`` rounds."""
        factor = clock.strike(rounds)
        forget(self._precision, self._estimate, factor, orthogonal=orthogonal)
        if not self._is_part:  # a ``PerAction`` keeps the scale of all its models
            self._reward_scale.forget(factor)

    # -- health ---------------------------------------------------------------------------------------

    def health(self, arms: Any = None) -> Health:
        """Report the error bound, how it grows, what it means for the regret, and on the predictions.

        Parameters
        ----------
        arms : array of shape (K, dim), sparse matrix, DataFrame or Offer, optional
            The arms on offer, if they are the same in every round. The report then names those that were
            (nearly) never tried.

        Returns
        -------
        Health
            With a sentence that says what to do if something is wrong.

        Examples
        --------
        >>> import numpy as np
        >>> import sketchbandit as sb
        >>> policy = sb.oful(3)
        >>> policy.update(np.eye(3)[[0, 1] * 100], [0.5, 0.7] * 100)
        >>> policy.health(np.eye(3)).untried
        (2,)

        """
        found = super().health()
        if arms is None:
            return found
        candidates = self._candidates(self._read(arms))
        if not are_enough_to_try(self._rounds, len(candidates)):
            return found
        most = _KNOWN * candidates.most_widths()
        untried = tuple(np.flatnonzero(candidates.widths() > most).tolist())
        if not untried:
            return found
        return found._replace(untried=untried, sentence=untried_arms_sentence(untried, self._rounds))

    # -- forgetting and merging -----------------------------------------------------------------------

    def reset(self) -> None:
        """Forget everything that was learned, and start again with the same settings.

        The scaling of the features and the column names stay. A warm-up that is not over goes on with the
        arms it has seen. The random generator continues from its present state.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> policy.update([1.0, 0.0], 1.0)
        >>> policy.reset()
        >>> policy.rounds, policy.mean([1.0, 0.0])
        (0, 0.0)

        """
        if self._is_part:
            raise InputError("this model belongs to a PerAction; reset it there: models.reset(action)")
        self._reset()

    def _reset(self) -> None:
        self._begin_again(self._precision.sketch._blank(), self._unbound_estimate())

    def _refuse(self, norm_sq: float, reward: float) -> None:
        if not math.isfinite(reward):
            raise InputError(f"the reward is {reward}; rewards must be finite")
        raise InputError(
            f"the arm's squared length is {norm_sq:g} and its reward is {reward:g}; rescale arms and rewards"
        )

    def _absorb(self, other: Any) -> Complaints:
        """Do ``merge`` while both locks are held, and return the warnings to give."""
        for name, mine, theirs in (
            ("dim", self._dim, other._dim),
            ("ridge", self._ridge, other._ridge),
            ("beta", self._beta, other._beta),
            ("rewards", type(self._estimate), type(other._estimate)),
            ("forget", self._forget, other._forget),
            ("baseline", self._has_baseline, other._has_baseline),
        ):
            if mine != theirs:
                here, there = (v.__name__ if isinstance(v, type) else v for v in (mine, theirs))
                raise MergeError(f"cannot merge policies: {name} is {here!r} here and {there!r} there")
        if not self._explore.is_like(other._explore):
            raise MergeError(
                f"cannot merge policies: explore is {self._explore!r} here and {other._explore!r} there"
            )
        self._check_same_scaling(other)
        self._estimate.check_mergeable()
        self._estimate.check_mass(self._estimate.mass_with_all_of(other._estimate))
        columns = self._columns.merged(other._columns)
        clock = self._clock
        if clock is not None:
            self.sketch._check_same_kind(other.sketch)
            self.sketch._check_mergeable(other.sketch)
            self.sketch.row_stats.check(other.sketch.row_stats.mass)
            other = copy.deepcopy(other)
            for policy, gathered in ((self, clock), (other, other._clock)):  # so both have today's weights
                if gathered.since:
                    policy._forget_now(gathered, policy._rounds)
            clock.add(other._clock, self._rounds + other._rounds)
        self.sketch.merge(other.sketch)  # raises before it changes anything
        self._precision.rebuild()
        if not self._is_part:
            self._reward_scale.add(other._reward_scale)
        self._estimate.add(other._estimate)
        self._estimate.reward_mass += other._estimate.reward_mass
        self._estimate.arm_lengths += other._estimate.arm_lengths
        self._watch.add(other._watch)
        self._world.add(other._world)
        self._ranges.add(other._ranges)
        self._columns = columns
        complaints = self._learned(other._rounds, lossy=True)
        self._kept += other._kept
        self._merge_warm_up(other)
        return complaints
