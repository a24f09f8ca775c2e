"""Linear UCB over any sketch."""

import copy
import math
import threading
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError, MergeKindError
from sketchbandit.linalg import AnyVector
from sketchbandit.policy.arms import is_scalar, is_vector, read_arms, read_reward, read_rewards, refuse
from sketchbandit.policy.base import SavedPolicy
from sketchbandit.policy.health import Complaints, Health, HealthWatch, Mark, mass_to_look_at, say
from sketchbandit.policy.pruning import best_arms, optimistic_bounds
from sketchbandit.ridge import Arms, DenseArms, RidgeSystem, Saved, Scan
from sketchbandit.sharing import Lock, both_locks, holds_the_lock
from sketchbandit.sketch.base import ONE_APPENDED, Sketch, sketch_class
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.sketch.rows import read_rows
from sketchbandit.theory import Confidence

_MOST_REACH = 1e300  # the sum of |reward|·|arm|, over the ridge: a bound on theta, kept from overflowing


class LinUCB(SavedPolicy):
    """Chooses the arm of the largest upper confidence bound x'theta + beta·sqrt(x' A^-1 x).

    A = (ridge + alpha) I + S'S with the sketch's S and alpha, theta = A^-1 (sum of reward·x): Alg. 2 of
    the paper, and with other sketches the algorithms it compares with.

    Threads may share a policy: every public call is atomic.

    Parameters
    ----------
    sketch : Sketch
        A fresh sketch, which the policy feeds from now on. Any object that keeps the contract will do.
    ridge : float
        lambda.
    beta : float or Confidence
        The radius: a constant, or the theorem's.

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

    def __init__(self, sketch: Any, *, ridge: float = 1.0, beta: float | Confidence = 0.1) -> None:
        missing = [n for n in ("update", "rows", "alpha", "error_bound", "dim") if not hasattr(sketch, n)]
        if missing:
            raise InputTypeError(f"sketch is a {type(sketch).__name__}, which lacks {', '.join(missing)}")
        if getattr(sketch, "count", 0):
            raise InputError(
                f"the sketch has seen {sketch.count} rows whose rewards are unknown; give a fresh one"
            )
        self._set_up(sketch, ridge, beta)

    def _set_up(
        self, sketch: Any, ridge: float, beta: float | Confidence, saved: Saved | None = None
    ) -> None:
        self._ridge = check_real("ridge", ridge, above=0.0)
        self._beta = check_beta(beta)
        if isinstance(self._beta, Confidence) and not math.isfinite(sketch.error_bound):
            raise InputError(
                f"{type(sketch).__name__} certifies no error, so there is no theorem for its radius; "
                "give a constant beta"
            )
        self._is_ours = isinstance(sketch, Sketch)
        self._dtype = np.dtype(getattr(sketch, "dtype", np.float64))
        self._dim = int(sketch.dim)
        # Arms that need no conversion; none for float32.
        self._plain_shape = (self._dim,) if self._dtype == np.float64 else None
        with_determinant = isinstance(self._beta, Confidence)
        self._system = RidgeSystem(sketch, self._ridge, with_determinant=with_determinant, saved=saved)
        self._lock = self._make_lock()
        self._watch = HealthWatch()
        self._mass_to_look_at = mass_to_look_at(sketch, self._ridge)
        self._columns = ColumnNames()
        self._rounds = 0
        self._reach = 0.0
        self._most_reach = _MOST_REACH * min(1.0, self._ridge)
        self._confidence = self._beta if isinstance(self._beta, Confidence) else None
        self._radius = self._beta if isinstance(self._beta, float) else math.nan
        self._radius_at = (-1, -1)  # rebuilds and rounds for which it holds, where it is a theorem's

    def _make_lock(self) -> Lock:
        """That of the sketch, so that whoever compresses it does so between two rounds."""
        sketch = self._system.sketch
        return sketch._lock if isinstance(sketch, Sketch) else threading.RLock()

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
    def sketch(self) -> Any:
        """The sketch of the arms played. The policy feeds it; look, but do not update it."""
        return self._system.sketch

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the features, if arms came as a DataFrame; later ones are put in this order."""
        return self._columns.names

    @property
    def theta(self) -> Vector:
        """The estimate A^-1 b, a copy."""
        return self._system.theta.copy()

    @property
    def radius(self) -> float:
        """The radius beta_t that the next choice uses."""
        if self._confidence is not None:
            self._system.follow()
            now = self._system.rebuilds, self._rounds
            if self._radius_at != now:
                self._radius, self._radius_at = self._realised_radius(self._confidence), now
        return self._radius

    @property
    def rounds(self) -> int:
        """How many rewards were learned from."""
        return self._rounds

    @property
    def nbytes(self) -> int:
        """Bytes of every array held, the sketch's included."""
        return self._system.nbytes + int(getattr(self.sketch, "nbytes", 0))

    def health(self) -> Health:
        """The certificate, how it grows, and what that means for the regret, in a sentence."""
        return self._watch.report(self.sketch, self._rounds, self._ridge)

    # -- choosing -----------------------------------------------------------------------------------

    @holds_the_lock
    def select(self, arms: Any) -> int:
        """The index of the arm with the largest ``ucb``, ties to the lowest.

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
            ):
                index = self._search(arms) if len(arms) else None
                return self._best(self._read(arms), 1)[0] if index is None else index
            read = self._read(arms)
            index = self._search(read.array) if isinstance(read, DenseArms) else None
            if index is None:
                (index,) = self._best(read, 1)
            self._columns.remember(arms)
            return index

    def _search(self, arms: AnyArray) -> int | None:
        """The best of dense arms in one call; None: there is none, or a score is not finite."""
        radius = self._radius if self._confidence is None else self.radius
        index = self._system.search(arms, radius)
        return None if index is None or index < 0 else index

    def top(self, arms: Any, k: int) -> NDArray[np.intp]:
        """The indices of the ``k`` arms with the largest ``ucb``, best first, ties to the lowest."""
        wanted = check_count("k", k, at_least=1)
        best = np.array(self._best(self._read(arms), wanted), dtype=np.intp)
        self._columns.remember(arms)
        return best

    def mean(self, arms: Any) -> Any:
        """x'theta for every arm, (K,); a number for a single arm (dim,)."""
        scan = self._scan(self._read(arms))
        return float(scan.means[0]) if is_vector(arms) else scan.means

    def width(self, arms: Any) -> Any:
        """sqrt(x'A^-1 x) for every arm, (K,); a number for a single arm (dim,)."""
        widths = self._widths(self._scan(self._read(arms)))
        return float(widths[0]) if is_vector(arms) else widths

    def ucb(self, arms: Any) -> Any:
        """mean + radius·width for every arm, (K,); a number for a single arm (dim,)."""
        scan = self._scan(self._read(arms))
        scores = scan.means + self.radius * self._widths(scan)
        return float(scores[0]) if is_vector(arms) else scores

    def _read(self, arms: Any, *, may_be_empty: bool = False) -> Arms:
        return read_arms(self._columns.align(arms), self._dim, self._dtype, may_be_empty=may_be_empty)

    def _best(self, arms: Arms, count: int) -> list[int]:
        if count > len(arms):
            raise InputError(f"k is {count}, but there are {len(arms)} arms")
        radius = self.radius
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self._system.scan(arms)
            bounds = optimistic_bounds(scan, radius, self._system.shift)
        if not math.isfinite(bounds[bounds.argmax()]):  # NaN counts as the largest
            raise refuse(arms, scan.norms_sq, scan.means)
        return best_arms(self._system, scan, bounds, radius, count)

    def _scan(self, arms: Arms) -> Scan:
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self._system.scan(arms)
        if not (np.isfinite(scan.norms_sq).all() and np.isfinite(scan.means).all()):
            raise refuse(arms, scan.norms_sq, scan.means)
        return scan

    def _widths(self, scan: Scan) -> Vector:
        system = self._system
        norms_sq = scan.norms_sq.tolist()
        return np.sqrt([system.quadratic(system.shadow(scan, i), norm) for i, norm in enumerate(norms_sq)])

    # -- learning -----------------------------------------------------------------------------------

    @holds_the_lock
    def update(self, arm: Any, reward: Any) -> None:
        """Learn from one arm (dim,) and its reward, or from n arms (n, dim) and n rewards, one after another.

        Input that cannot be used raises before anything changes. A SketchTooSmallWarning comes last, when
        everything is learned; so it does where warnings are errors.
        """
        with self._lock:
            complaints = self._update(arm, reward)
        if complaints:
            say(complaints)

    def _update(self, arm: Any, reward: Any) -> Complaints:
        """``update`` for whoever holds the lock: what there is to warn of is returned."""
        if (  # as quick as can be
            type(arm) is np.ndarray
            and isinstance(reward, float)
            and arm.shape == self._plain_shape
            and arm.dtype == np.float64
            and arm.flags.c_contiguous
        ):
            return self._learn(arm, arm[np.newaxis], self._system.measure(arm), float(reward))
        complaints = self._take(arm, reward)
        self._columns.remember(arm)
        return complaints

    def _take(self, arm: Any, reward: Any) -> Complaints:
        if is_scalar(reward) or is_vector(arm):
            arms = self._read(arm, may_be_empty=True)
            if len(arms) != 1:
                raise InputError(f"{len(arms)} arms need {len(arms)} rewards, got one")
            return self._learn(arms.vector(0), arms.row(0), arms.norm_sq(0), read_reward(reward))
        return self._take_many(self._columns.align(arm), reward)

    def _learn(self, x: AnyVector, row: AnyArray, norm_sq: float, reward: float) -> Complaints:
        reach = self._reach + abs(reward) * math.sqrt(norm_sq)
        if not reach < self._most_reach:  # NaN and inf end here too
            raise self._complaint(row, norm_sq, reward, reach)
        sketch = self._system.sketch
        if self._is_ours and not sketch._mass + norm_sq <= sketch._most_mass:
            sketch._check_mass(norm_sq)  # says why
        change = self._system.observe(x, row, norm_sq, reward)
        self._reach = reach
        if (  # most rounds
            change is ONE_APPENDED
            and self._rounds + 1 < self._watch.next_mark
            and (not self._is_ours or sketch._mass < self._mass_to_look_at)
        ):
            self._rounds += 1
            return ()
        return self._learned(1, lossy=not change.additive)

    def _take_many(self, arms: Any, rewards: Any) -> Complaints:
        batch = read_rows(arms, self._dim, self._dtype, "arms")
        values = read_rewards(rewards, len(batch))
        if self._is_ours:
            self.sketch._check_mass(batch.mass)
        with np.errstate(over="ignore"):
            self._reach = self._checked_reach(float(np.sqrt(batch.mass) * np.linalg.norm(values)))
        complaints: Complaints = ()
        if sparse.issparse(arms) and len(batch) < self._system.rows_worth_a_rebuild:
            read = self._read(arms, may_be_empty=True)
            pairs = zip(read.norms_sq().tolist(), values.tolist(), strict=True)
            for i, (norm_sq, value) in enumerate(pairs):
                change = self._system.observe(read.vector(i), read.row(i), norm_sq, value)
                complaints += self._learned(1, lossy=not change.additive)
        else:
            taken = 0
            for rows, norms_sq in batch.chunks():
                some = values[taken : taken + len(rows)]
                complaints += self._take_chunk(rows, norms_sq, some)
                taken += len(rows)
        return complaints

    def _take_chunk(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Complaints:
        """Many arms, with a stop wherever a look at the certificate is due."""
        complaints: Complaints = ()
        while len(rows):
            some = min(len(rows), max(1, self._watch.next_mark - self._rounds))
            change = self._system.observe_many(rows[:some], norms_sq[:some], rewards[:some])
            complaints += self._learned(some, lossy=not change.additive)
            rows, norms_sq, rewards = rows[some:], norms_sq[some:], rewards[some:]
        return complaints

    def _learned(self, count: int, *, lossy: bool) -> Complaints:
        self._rounds += count
        sketch = self._system.sketch
        is_long = self._is_ours and sketch._mass >= self._mass_to_look_at
        if lossy or is_long or self._rounds >= self._watch.next_mark:  # then the verdict may have changed
            if is_long:  # said now, or not so yet
                self._mass_to_look_at = 2.0 * sketch._mass
            return self._watch.look(sketch, self._rounds, self._ridge)
        return ()

    def _checked_reach(self, added: float) -> float:
        reach = self._reach + added
        if not reach < self._most_reach:
            raise self._too_much(reach)
        return reach

    def _complaint(self, row: AnyArray, norm_sq: float, reward: float, reach: float) -> InputError:
        if not math.isfinite(norm_sq):
            return refuse(DenseArms(row), np.array([norm_sq]))
        if not math.isfinite(reward):
            return InputError(f"the reward is {reward}; rewards must be finite")
        return self._too_much(reach)

    def _too_much(self, reach: float) -> InputError:
        return InputError(
            f"rewards times arms add up to {reach:g}, too much for a ridge of {self._ridge:g}: theta could "
            "overflow; rescale the rewards or use a larger ridge"
        )

    def _realised_radius(self, confidence: Confidence) -> float:
        sketch = self.sketch
        return confidence.radius(
            dim=self._dim,
            ridge=self._ridge,
            alpha=sketch.alpha + self._system.jitter,
            error_bound=sketch.error_bound,
            log_det=self._system.log_det,
            mass=float(getattr(sketch, "mass", math.inf)),
            rounding=float(getattr(sketch, "rounding", 0.0)),
        )

    # -- merge and files ----------------------------------------------------------------------------

    @holds_the_lock
    def merge(self, other: "LinUCB") -> None:
        """Take in what another policy of the same settings has learned, both having started from nothing."""
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            complaints = self._merge(other)
        if complaints:
            say(complaints)

    def _merge(self, other: "LinUCB") -> Complaints:
        """``merge`` for whoever holds both locks: what there is to warn of is returned."""
        for name, mine, theirs in (
            ("dim", self._dim, other._dim),
            ("ridge", self._ridge, other._ridge),
            ("beta", self._beta, other._beta),
        ):
            if mine != theirs:
                raise MergeError(f"cannot merge policies: {name} is {mine!r} here and {theirs!r} there")
        if not hasattr(self.sketch, "merge"):
            raise MergeError(f"{type(self.sketch).__name__} cannot merge, so its policies cannot")
        reach, columns = self._checked_reach(other._reach), self._columns.merged(other._columns)
        self.sketch.merge(other.sketch)  # raises before it changes anything
        self._system.add(other._system)
        self._watch.add(other._watch)
        self._reach, self._columns = reach, columns
        return self._learned(other._rounds, lossy=True)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}(ridge={self._ridge:g}, beta={self._beta}): {self._rounds} rounds, "
            f"{type(self.sketch).__name__} of size {getattr(self.sketch, 'size', '?')}, "
            f"error <= {self.sketch.error_bound:.4g}, {self.nbytes:,} bytes>"
        )

    def _content(self) -> tuple[Scalars, Arrays]:
        if not isinstance(self.sketch, Sketch):
            raise InputTypeError(
                f"a policy on {type(self.sketch).__name__} cannot be saved; it must be a sketchbandit.Sketch"
            )
        content, sketch_arrays = self.sketch._dump()
        derived, system_arrays = self._system.dump()
        beta = vars(self._beta) if isinstance(self._beta, Confidence) else self._beta
        scalars = {
            "ridge": self._ridge,
            "beta": beta,
            "rounds": self._rounds,
            "reach": self._reach,
            "marks": self._watch.marks,
            "has_warned": self._watch.has_warned,
            "has_warned_of_digits": self._watch.has_warned_of_digits,
            "columns": self._columns.names,
            "sketch": {"kind": self.sketch.kind, "content": content},
            "system": derived,
        }
        arrays = {f"sketch.{name}": array for name, array in sketch_arrays.items()}
        return scalars, arrays | {f"system.{name}": array for name, array in system_arrays.items()}

    @classmethod
    def _undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        saved, beta = scalars["sketch"], scalars["beta"]
        parts: dict[str, Arrays] = {"sketch": {}, "system": {}}
        for name, array in arrays.items():
            owner, _, rest = name.partition(".")
            parts[owner][rest] = array
        sketch = sketch_class(saved["kind"])._undump(saved["content"], parts["sketch"], **extra)
        policy = cls.__new__(cls)
        saved_beta = Confidence(**beta) if isinstance(beta, dict) else beta
        policy._set_up(sketch, scalars["ridge"], saved_beta, (scalars["system"], parts["system"]))
        policy._rounds = check_count("rounds", scalars["rounds"], at_least=0)
        policy._reach = float(scalars["reach"])
        then, recent = (Mark(int(t), float(e), float(m)) for t, e, m in scalars["marks"])
        policy._watch = HealthWatch(then, recent, has_warned=bool(scalars["has_warned"]))
        policy._watch.has_warned_of_digits = bool(scalars.get("has_warned_of_digits", False))
        policy._columns = ColumnNames(scalars.get("columns"))
        return policy


def check_beta(beta: Any) -> float | Confidence:
    """A constant >= 0 or a Confidence."""
    return beta if isinstance(beta, Confidence) else check_real("beta", beta, at_least=0.0)
