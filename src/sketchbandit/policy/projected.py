"""CBRAP: a random projection of the arms, then exact linear UCB in the small space."""

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit.arms import (
    DenseArms,
    batch_of_array,
    is_scalar,
    is_vector,
    project_arms,
    read_arms,
    read_rewards,
    read_sets,
    refuse,
)
from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError, MergeKindError
from sketchbandit.policy.base import Policy
from sketchbandit.policy.health import Health, say
from sketchbandit.policy.linucb import LinUCB
from sketchbandit.sharing import Lock, both_locks, holds_the_lock
from sketchbandit.sketch import ExactSketch
from sketchbandit.sketch.checks import check_count, check_dtype, check_real
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.theory import Confidence


class ProjectedLinUCB(Policy):
    """LinUCB on z = R'x, R (dim, size) with independent entries N(0, 1/size) drawn from ``seed``.

    The interface is that of LinUCB: arms have length dim, ``theta`` is R times the estimate in the small
    space, so that mean = x'theta; ``sketch`` is the exact one of the projected arms.

    Examples
    --------
    >>> policy = ProjectedLinUCB(100, size=8, seed=1)
    >>> arms = np.random.default_rng(0).standard_normal((5, 100))
    >>> policy.update(arms[2], 1.0)
    >>> float(policy.mean(arms).argmax())
    2.0

    """

    kind = "projected-linucb"

    def __init__(
        self,
        dim: int,
        *,
        size: int = 50,
        ridge: float = 1.0,
        beta: float = 0.1,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        if isinstance(beta, Confidence):
            raise InputTypeError(
                "CBRAP takes a constant beta only: no theorem gives an ellipsoid for randomly projected arms"
            )
        self._dim = check_count("dim", dim, at_least=1)
        size = check_count("size", size, at_least=2)
        self._seed = check_count("seed", seed, at_least=0)
        self._dtype = check_dtype(dtype)
        draws = np.random.default_rng(self._seed).standard_normal((self._dim, size))
        self._projection: AnyArray = (draws / np.sqrt(size)).astype(self._dtype, copy=False)
        self._inner = LinUCB(ExactSketch(size), ridge=ridge, beta=check_real("beta", beta, at_least=0.0))
        self._columns = ColumnNames()
        self._lock = self._make_lock()

    def _make_lock(self) -> Lock:
        """That of the policy in the small space."""
        return self._inner._lock

    dim = property(lambda self: self._dim, doc="Length of an arm.")
    dtype = property(lambda self: self._dtype, doc="The dtype in which arms are read.")
    size = property(lambda self: self._inner.dim, doc="The dimension of the small space.")
    seed = property(lambda self: self._seed, doc="What the projection was drawn from.")
    ridge = property(lambda self: self._inner.ridge, doc="lambda.")
    beta = property(lambda self: self._inner.beta, doc="The constant radius.")
    radius = property(lambda self: self._inner.radius, doc="The constant radius.")
    rounds = property(lambda self: self._inner.rounds, doc="How many rewards were learned from.")
    sketch = property(lambda self: self._inner.sketch, doc="The exact sketch of the projected arms.")

    columns = property(lambda self: self._columns.names, doc="Names of the features, if a DataFrame had any.")

    @property
    def theta(self) -> Vector:
        """R times the estimate in the small space."""
        theta: Vector = self._projection @ self._inner.theta
        return theta

    @property
    def nbytes(self) -> int:
        """Bytes of every array held, the projection included."""
        return self._inner.nbytes + self._projection.nbytes

    def health(self) -> Health:
        """Nothing is certified: the error of the projection is not known."""
        sentence = "A random projection certifies nothing: whether the regret stays sublinear cannot be told."
        enough_digits = self._inner.health().enough_digits
        return Health(float("inf"), float("inf"), float("nan"), float("nan"), False, sentence, enough_digits)

    @holds_the_lock
    def select(self, arms: Any) -> int:
        """The index of the arm with the largest ``ucb``, ties to the lowest."""
        with self._lock:
            index = self._inner.select(self._project(arms))
            if type(arms) is not np.ndarray:
                self._columns.remember(arms)
        return index

    def select_many(self, batch: Any) -> NDArray[np.intp]:
        """``select`` for many sets of arms at once: an array (B, K, dim), or a list of sets."""
        ready = batch_of_array(batch, self._dim, self._dtype)
        if ready is None:
            sets = read_sets(batch)
            return self._inner.select_many([self._project(arms) for arms in sets])
        images = self._project(ready.arms)
        return self._inner.select_many(images.reshape(*batch.shape[:2], -1))

    def top(self, arms: Any, k: int) -> NDArray[np.intp]:
        """The indices of the ``k`` arms with the largest ``ucb``, best first, ties to the lowest."""
        best = self._inner.top(self._project(arms), k)
        self._columns.remember(arms)
        return best

    def mean(self, arms: Any) -> Any:
        """x'theta for every arm, (K,); a number for a single arm (dim,)."""
        means = self._inner.mean(self._project(arms))
        return float(means[0]) if is_vector(arms) else means

    def width(self, arms: Any) -> Any:
        """The width of every projected arm, (K,); a number for a single arm (dim,)."""
        widths = self._inner.width(self._project(arms))
        return float(widths[0]) if is_vector(arms) else widths

    def ucb(self, arms: Any) -> Any:
        """mean + radius·width for every arm, (K,); a number for a single arm (dim,)."""
        scores = self._inner.ucb(self._project(arms))
        return float(scores[0]) if is_vector(arms) else scores

    @holds_the_lock
    def update(self, arm: Any, reward: Any) -> None:
        """Learn from one arm (dim,) and its reward, or from n arms (n, dim) and n rewards."""
        with self._lock:
            projected = self._project(arm, may_be_empty=True)
            if not is_scalar(reward):
                complaints = self._inner.learn(projected, read_rewards(reward, len(projected)))
            elif len(projected) == 1:
                complaints = self._inner.learn(projected[0], reward)
            else:
                raise InputError(f"{len(projected)} arms need {len(projected)} rewards, got one")
            if type(arm) is not np.ndarray:
                self._columns.remember(arm)
        if complaints:
            say(complaints)

    @holds_the_lock
    def merge(self, other: "ProjectedLinUCB") -> None:
        """Take in what another policy with the same projection has learned."""
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if not np.array_equal(self._projection, other._projection):
            raise MergeError(
                "cannot merge policies of different projections: give both the same dim, size, seed and dtype"
            )
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            columns = self._columns.merged(other._columns)
            complaints = self._inner.absorb(other._inner)
            self._columns = columns
        if complaints:
            say(complaints)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}(dim={self.dim}, size={self.size}, ridge={self.ridge:g}, "
            f"beta={self.beta}, seed={self.seed}): {self.rounds} rounds, {self.nbytes:,} bytes>"
        )

    def _project(self, arms: Any, *, may_be_empty: bool = False) -> Vector:
        """R'x for every arm, refusing arms that are not finite."""
        if type(arms) is not np.ndarray:
            arms = self._columns.align(arms)
        read = read_arms(arms, self._dim, self._dtype, may_be_empty=may_be_empty)
        if isinstance(read, DenseArms):
            projected = project_arms(read.array, self._projection)
            if projected is not None:
                return projected
        else:
            images = np.asarray(read.matrix @ self._projection, dtype=np.float64)
            if np.isfinite(images).all():
                return images
        with np.errstate(over="ignore"):
            raise refuse(read, read.norms_sq())

    def _content(self) -> tuple[Scalars, Arrays]:
        scalars, arrays = self._inner.dump()
        settings: Scalars = {
            "dim": self._dim,
            "size": self.size,
            "seed": self._seed,
            "dtype": self._dtype.name,
        }
        # The projection itself is kept: another version of numpy may draw other numbers.
        inner = {f"inner.{name}": array for name, array in arrays.items()}
        settings["columns"] = self._columns.names
        return {"settings": settings, "inner": scalars}, {"projection": self._projection, **inner}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The policy that ``dump`` described."""
        inner = {n.removeprefix("inner."): a for n, a in arrays.items() if n.startswith("inner.")}
        policy = cls.__new__(cls)
        settings = scalars["settings"]
        policy._dim, policy._seed = int(settings["dim"]), int(settings["seed"])
        policy._dtype = check_dtype(settings["dtype"])
        policy._projection = arrays["projection"]
        policy._inner = LinUCB.undump(scalars["inner"], inner, **extra)
        policy._columns = ColumnNames(settings.get("columns"))
        policy._lock = policy._make_lock()
        if policy._projection.shape != (policy._dim, policy._inner.dim):
            raise InputError(f"the projection has shape {policy._projection.shape}")
        return policy
