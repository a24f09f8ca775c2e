"""Linear UCB over any sketch."""

import copy
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arms import (
    Arms,
    DenseArms,
    batch_of,
    batch_of_array,
    is_scalar,
    is_vector,
    read_arms,
    read_reward,
    read_rewards,
    read_sets,
    refuse,
)
from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError, MergeKindError
from sketchbandit.estimate import Estimate, Linear
from sketchbandit.explore import UCB, Candidates, Explore, upper_bound
from sketchbandit.linalg import AnyVector
from sketchbandit.policy.base import Policy
from sketchbandit.policy.files import Part, content_of, restored_parts
from sketchbandit.policy.health import Complaints, Health, HealthWatch, mass_to_look_at, say
from sketchbandit.policy.learning import learn_many, learn_one
from sketchbandit.precision import Precision, Saved
from sketchbandit.sharing import Lock, both_locks, holds_the_lock
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.change import ONE_APPENDED
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.sketch.rows import read_rows
from sketchbandit.theory import Confidence


class LinUCB(Policy):
    """A sketch, an estimate and a way to explore: by default the arm of the largest upper confidence bound.

    The bound is x'theta + beta·sqrt(x' A^-1 x), with
    A = (ridge + alpha) I + S'S with the sketch's S and alpha, theta = A^-1 (sum of reward·x): Alg. 2 of
    the paper, and with other sketches the algorithms it compares with.

    Threads may share a policy: every public call is atomic.

    Parameters
    ----------
    sketch : Sketch
        A fresh sketch, which the policy feeds from now on: any subclass of ``sketchbandit.Sketch``.
    ridge : float
        lambda.
    beta : float or Confidence
        The radius: a constant, or the theorem's.
    explore : Explore
        How to choose: ``UCB()`` unless it is given. The policy makes a copy.
    rewards : Estimate
        What to believe of the rewards: ``Linear()`` unless it is given. The policy makes a copy.

    Examples
    --------
    >>> from sketchbandit import FrequentDirections
    >>> policy = LinUCB(FrequentDirections(3, size=2), ridge=1.0, beta=0.1)
    >>> arms = np.eye(3)
    >>> policy.select(arms)
    0
    >>> policy.update(arms[0], reward=-1.0)
    >>> policy.select(arms)
    1
    >>> policy.mean(arms)
    array([-0.5,  0. ,  0. ])

    """

    kind = "linucb"

    def __init__(
        self,
        sketch: Sketch,
        *,
        ridge: float = 1.0,
        beta: float | Confidence = 0.1,
        explore: Explore | None = None,
        rewards: Estimate | None = None,
    ) -> None:
        for name, given, wanted in (
            ("sketch", sketch, Sketch),
            ("explore", explore or UCB(), Explore),
            ("rewards", rewards or Linear(), Estimate),
        ):
            if not isinstance(given, wanted):
                kind = type(given).__name__
                raise InputTypeError(f"{name} is a {kind}; derive it from sketchbandit.{wanted.__name__}")
        if sketch.count:
            raise InputError(
                f"the sketch has seen {sketch.count} rows whose rewards are unknown; give a fresh one"
            )
        rule, model = copy.deepcopy(explore or UCB()), copy.deepcopy(rewards or Linear())
        self._set_up(sketch, ridge, beta, explore=rule, estimate=model)

    def _set_up(
        self,
        sketch: Sketch,
        ridge: float,
        beta: float | Confidence,
        *,
        explore: Explore,
        estimate: Estimate,
        saved: Saved | None = None,
    ) -> None:
        self._ridge = check_real("ridge", ridge, above=0.0)
        self._beta = check_beta(beta)
        is_theorem = isinstance(self._beta, Confidence)
        if is_theorem and not math.isfinite(sketch.error_bound):
            raise InputError(
                f"{type(sketch).__name__} certifies no error, so there is no theorem for its radius; "
                "give a constant beta"
            )
        self._dtype, self._dim = sketch.dtype, sketch.dim
        self._precision = Precision(sketch, self._ridge, with_determinant=is_theorem, saved=saved)
        self._explore = explore
        self._estimate = estimate
        estimate.bind(self._precision)
        self._lock = self._make_lock()
        self._watch = HealthWatch()
        self._mass_to_look_at = mass_to_look_at(sketch, self._ridge)
        self._columns = ColumnNames()
        self._rounds = 0
        self._confidence = self._beta if isinstance(self._beta, Confidence) else None
        self._radius = self._beta if isinstance(self._beta, float) else math.nan
        self._radius_at = (-1, -1)  # rebuilds and rounds for which it holds, where it is a theorem's

    def _make_lock(self) -> Lock:
        """That of the sketch, so that whoever compresses it does so between two rounds."""
        return self._precision.sketch._lock

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """Length of an arm."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which arms are read and stored; sums are float64 whatever it is."""
        return self._dtype

    @property
    def ridge(self) -> float:
        """lambda."""
        return self._ridge

    @property
    def beta(self) -> float | Confidence:
        """As given."""
        return self._beta

    @property
    def sketch(self) -> Any:  # a Sketch: which one, whoever made the policy knows
        """The sketch of the arms played. The policy feeds it; look, but do not update it."""
        return self._precision.sketch

    @property
    def precision(self) -> Precision:
        """A^-1, in step with the sketch; look, but do not change it."""
        return self._precision

    @property
    def estimate(self) -> Any:  # an Estimate
        """What is believed of the rewards; look, but do not change it."""
        return self._estimate

    @property
    def explore(self) -> Any:  # an Explore
        """How arms are chosen; look, but do not change it."""
        return self._explore

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the features, if arms came as a DataFrame; later ones are put in this order."""
        return self._columns.names

    @property
    def theta(self) -> Vector:
        """The estimate A^-1 b, a copy."""
        return self._estimate.theta.copy()

    @property
    def radius(self) -> float:
        """The radius beta_t that the next choice uses."""
        if self._confidence is not None:
            self._precision.sync()
            now = self._precision.rebuilds, self._rounds
            if self._radius_at != now:
                self._radius, self._radius_at = self._realised_radius(self._confidence), now
        return self._radius

    def _realised_radius(self, confidence: Confidence) -> float:
        sketch = self.sketch
        return confidence.radius(
            dim=self._dim,
            ridge=self._ridge,
            alpha=sketch.alpha + self._precision.jitter,
            error_bound=sketch.error_bound,
            log_det=self._precision.log_det,
            mass=sketch.mass,
            rounding=sketch.rounding,
        )

    @property
    def rounds(self) -> int:
        """How many rewards were learned from."""
        return self._rounds

    @property
    def nbytes(self) -> int:
        """Bytes of every array held, the sketch's included."""
        return self._precision.nbytes + self._estimate.nbytes + self._precision.sketch.nbytes

    def health(self) -> Health:
        """The certificate, how it grows, and what that means for the regret, in a sentence."""
        return self._watch.report(self.sketch, self._rounds, self._ridge)

    # -- choosing -----------------------------------------------------------------------------------

    @holds_the_lock
    def select(self, arms: Any) -> int:
        """The index of the arm chosen: by default that of the largest ``ucb``, ties to the lowest.

        ``arms``: (K, dim), numpy, scipy.sparse or anything that converts. Widths are computed only for arms
        that can still win.
        """
        with self._lock:
            if (  # as quick as can be
                type(arms) is np.ndarray
                and arms.dtype == self._dtype
                and arms.ndim == 2
                and arms.shape[1] == self._dim
                and arms.flags.c_contiguous
                and len(arms)
            ):
                index = self._search(arms)
                return self._best(DenseArms(arms), 1)[0] if index is None else index
            read = self._read(arms)
            index = self._search(read.array) if isinstance(read, DenseArms) else None
            if index is None:
                (index,) = self._best(read, 1)
            self._columns.remember(arms)
            return index

    def _search(self, arms: AnyArray) -> int | None:
        """The choice among dense arms in one call; None: there is none, or a score is not finite."""
        theta = self._estimate.linear_theta
        if theta is None:
            return None
        radius = self._radius if self._confidence is None else self.radius
        index = self._explore.search(arms, theta, self._precision, radius)
        return None if index is None or index < 0 else index

    def select_many(self, batch: Any) -> NDArray[np.intp]:
        """``select`` for B sets of arms at once, (B,): the same choices, faster than one by one.

        ``batch``: an array (B, K, dim), or a list of sets, which may differ in their number of arms.

        >>> from sketchbandit import ExactSketch
        >>> policy = LinUCB(ExactSketch(2))
        >>> policy.select_many([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0]]])
        array([1, 0])
        """
        ready = batch_of_array(batch, self._dim, self._dtype)
        if ready is None:
            sets = read_sets(batch)
            ready = batch_of(sets, self._dim, self._dtype)
        else:
            sets = batch
        found, theta = None, self._estimate.linear_theta
        if ready is not None and theta is not None:
            found = self._explore.search_many(*ready, theta, self._precision, self.radius)
        chosen = np.full(len(sets), -1, dtype=np.intp) if found is None else found
        for number in np.flatnonzero(chosen < 0).tolist():
            try:
                chosen[number] = self.select(sets[number])
            except InputError as error:
                raise InputError(f"set {number}: {error}") from error
        return chosen

    def top(self, arms: Any, k: int) -> NDArray[np.intp]:
        """The indices of the ``k`` arms that come first, best first, ties to the lowest."""
        wanted = check_count("k", k, at_least=1)
        best = np.array(self._best(self._read(arms), wanted), dtype=np.intp)
        self._columns.remember(arms)
        return best

    def mean(self, arms: Any) -> Any:
        """The mean reward of every arm, (K,); a number for a single arm (dim,)."""
        means = self._candidates(self._read(arms)).means
        return float(means[0]) if is_vector(arms) else means

    def width(self, arms: Any) -> Any:
        """sqrt(x'A^-1 x) for every arm, (K,); a number for a single arm (dim,)."""
        widths = self._candidates(self._read(arms)).widths()
        return float(widths[0]) if is_vector(arms) else widths

    def ucb(self, arms: Any) -> Any:
        """mean + radius·width for every arm, (K,); a number for a single arm (dim,)."""
        candidates = self._candidates(self._read(arms))
        scores = upper_bound(candidates.means, candidates.radius, candidates.widths())
        return float(scores[0]) if is_vector(arms) else scores

    def _read(self, arms: Any, *, may_be_empty: bool = False) -> Arms:
        return read_arms(self._columns.align(arms), self._dim, self._dtype, may_be_empty=may_be_empty)

    def _best(self, arms: Arms, count: int) -> list[int]:
        if count > len(arms):
            raise InputError(f"k is {count}, but there are {len(arms)} arms")
        return self._explore.choose(self._candidates(arms), count)

    def _candidates(self, arms: Arms) -> Candidates:
        """The arms as a rule sees them, if all of their scores are finite."""
        radius = self.radius
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self._estimate.scan(arms)
            most = np.abs(scan.means).max() + radius * np.sqrt(scan.norms_sq.max() / self._precision.shift)
        if not math.isfinite(most):
            raise refuse(arms, scan.norms_sq, scan.means)
        return Candidates(scan, self._precision, radius)

    # -- learning -----------------------------------------------------------------------------------

    @holds_the_lock
    def update(self, arm: Any, reward: Any) -> None:
        """Learn from one arm (dim,) and its reward, or from n arms (n, dim) and n rewards, one after another.

        Input that cannot be used raises before anything changes. A SketchTooSmallWarning comes last, when
        everything is learned; so it does where warnings are errors.
        """
        with self._lock:
            complaints = self.learn(arm, reward)
        if complaints:
            say(complaints)

    @holds_the_lock
    def learn(self, arm: Any, reward: Any) -> Complaints:
        """``update`` for whoever holds the lock: what there is to warn of is returned."""
        if (  # as quick as can be
            type(arm) is np.ndarray
            and isinstance(reward, float)
            and arm.dtype == self._dtype
            and arm.ndim == 1
            and len(arm) == self._dim
            and arm.flags.c_contiguous
        ):
            x = arm.astype(np.float64, copy=False)
            return self._learn_one(x, arm[np.newaxis], self._precision.measure(x), float(reward))
        complaints = self._learn_any(arm, reward)
        self._columns.remember(arm)
        return complaints

    def _learn_any(self, arm: Any, reward: Any) -> Complaints:
        if is_scalar(reward) or is_vector(arm):
            arms = self._read(arm, may_be_empty=True)
            if len(arms) != 1:
                raise InputError(f"{len(arms)} arms need {len(arms)} rewards, got one")
            row = arms.row(0, self._dtype)
            return self._learn_one(arms.vector(0), row, arms.norm_sq(0), read_reward(reward))
        arm = self._columns.align(arm)
        batch = read_rows(arm, self._dim, self._dtype, "arms")
        values = read_rewards(reward, len(batch))
        self.sketch.tally.check(batch.mass)
        with np.errstate(over="ignore"):
            self._estimate.check(float(np.sqrt(batch.mass) * np.linalg.norm(values)))
        complaints: Complaints = ()
        if hasattr(arm, "tocsr") and len(batch) < self._precision.rows_worth_a_rebuild:
            read = self._read(arm, may_be_empty=True)
            for i, (norm_sq, value) in enumerate(zip(read.norms_sq().tolist(), values.tolist(), strict=True)):
                complaints += self._learn_one(read.vector(i), read.row(i, self._dtype), norm_sq, value)
            return complaints
        taken = 0
        for rows, norms_sq in batch.chunks():
            complaints += self._learn_chunk(rows, norms_sq, values[taken : taken + len(rows)])
            taken += len(rows)
        return complaints

    def _learn_one(self, x: AnyVector, row: AnyArray, norm_sq: float, reward: float) -> Complaints:
        if not norm_sq + abs(reward) < math.inf:  # NaN ends here too
            self._refuse(row, norm_sq, reward)
        change = learn_one(self._precision, self._estimate, x, row, norm_sq, reward)
        if (  # most rounds
            change is ONE_APPENDED
            and self._rounds + 1 < self._watch.next_mark
            and self._precision.sketch.tally.mass < self._mass_to_look_at
        ):
            self._rounds += 1
            return ()
        return self._learned(1, lossy=not change.additive)

    def _learn_chunk(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Complaints:
        """Many arms, with a stop wherever a look at the certificate is due."""
        complaints: Complaints = ()
        while len(rows):
            some = min(len(rows), max(1, self._watch.next_mark - self._rounds))
            change = learn_many(self._precision, self._estimate, rows[:some], norms_sq[:some], rewards[:some])
            complaints += self._learned(some, lossy=not change.additive)
            rows, norms_sq, rewards = rows[some:], norms_sq[some:], rewards[some:]
        return complaints

    def _learned(self, count: int, *, lossy: bool) -> Complaints:
        self._rounds += count
        sketch, mass = self._precision.sketch, self._precision.sketch.tally.mass
        is_long = mass >= self._mass_to_look_at
        if lossy or is_long or self._rounds >= self._watch.next_mark:  # then the verdict may have changed
            if is_long:  # said now, or not so yet
                self._mass_to_look_at = 2.0 * mass
            return self._watch.look(sketch, self._rounds, self._ridge)
        return ()

    def _refuse(self, row: AnyArray, norm_sq: float, reward: float) -> None:
        if not math.isfinite(norm_sq):
            raise refuse(DenseArms(row), np.array([norm_sq]))
        if not math.isfinite(reward):
            raise InputError(f"the reward is {reward}; rewards must be finite")
        raise InputError(f"the arm's squared length is {norm_sq:g} and its reward {reward:g}; rescale them")

    # -- merge and files ----------------------------------------------------------------------------

    @holds_the_lock
    def merge(self, other: "LinUCB") -> None:
        """Take in what another policy of the same settings has learned, both having started from nothing."""
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            complaints = self.absorb(other)
        if complaints:
            say(complaints)

    @holds_the_lock
    def absorb(self, other: "LinUCB") -> Complaints:
        """``merge`` for whoever holds both locks: what there is to warn of is returned."""
        for name, mine, theirs in (
            ("dim", self._dim, other._dim),
            ("ridge", self._ridge, other._ridge),
            ("beta", self._beta, other._beta),
            ("explore", type(self._explore).__name__, type(other._explore).__name__),
            ("rewards", type(self._estimate).__name__, type(other._estimate).__name__),
        ):
            if mine != theirs:
                raise MergeError(f"cannot merge policies: {name} is {mine!r} here and {theirs!r} there")
        self._estimate.check(other._estimate.reward_mass)
        columns = self._columns.merged(other._columns)
        self.sketch.merge(other.sketch)  # raises before it changes anything
        self._precision.rebuild()
        self._estimate.add(other._estimate)
        self._estimate.reward_mass += other._estimate.reward_mass
        self._watch.add(other._watch)
        self._columns = columns
        return self._learned(other._rounds, lossy=True)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}(ridge={self._ridge:g}, beta={self._beta}): {self._rounds} rounds, "
            f"{type(self.sketch).__name__} of size {self.sketch.size}, "
            f"error <= {self.sketch.error_bound:.4g}, {self.nbytes:,} bytes>"
        )

    def _content(self) -> tuple[Scalars, Arrays]:
        parts: dict[str, Part] = {
            "sketch": self.sketch,
            "precision": self._precision,
            "estimate": self._estimate,
            "explore": self._explore,
        }
        scalars, arrays = content_of(parts)
        beta = vars(self._beta) if isinstance(self._beta, Confidence) else self._beta
        own = {"ridge": self._ridge, "beta": beta, "rounds": self._rounds, "columns": self._columns.names}
        return {**own, "reward_mass": self._estimate.reward_mass, **self._watch.dump(), **scalars}, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The policy that ``dump`` described."""
        parts, beta = restored_parts(scalars, arrays, **extra), scalars["beta"]
        policy = cls.__new__(cls)
        saved_beta = Confidence(**beta) if isinstance(beta, dict) else beta
        policy._set_up(
            parts.sketch,
            scalars["ridge"],
            saved_beta,
            explore=parts.explore,
            estimate=parts.estimate,
            saved=parts.precision,
        )
        policy._estimate.restore(*parts.learned)
        policy._estimate.reward_mass = float(scalars["reward_mass" if "reward_mass" in scalars else "reach"])
        policy._rounds = check_count("rounds", scalars["rounds"], at_least=0)
        policy._watch = HealthWatch.undump(scalars)
        policy._columns = ColumnNames(scalars.get("columns"))
        return policy


def check_beta(beta: Any) -> float | Confidence:
    """A constant >= 0 or a Confidence."""
    return beta if isinstance(beta, Confidence) else check_real("beta", beta, at_least=0.0)
