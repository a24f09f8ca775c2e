"""CBRAP: a random projection of the arms, then exact LinUCB in the small space."""

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arms import (
    Arms,
    Batch,
    DenseArms,
    Images,
    Offer,
    SparseArms,
    View,
    project_arms,
    read_arms,
    refuse,
)
from sketchbandit.array_api import is_foreign
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector, taken_from, under
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.estimate import Estimate
from sketchbandit.explore import Explore
from sketchbandit.linalg import product
from sketchbandit.policy.health import Complaints, Health
from sketchbandit.policy.linucb import LinUCB
from sketchbandit.precision.products import project_sparse
from sketchbandit.scaling import EVERY, Intercept, Kind, Reader
from sketchbandit.sketch import ExactSketch
from sketchbandit.sketch.checks import check_count, check_dtype
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.sketch.rows import RowBatch, read_rows
from sketchbandit.theory import Confidence
from sketchbandit.thread_safety import holds_the_lock


class ProjectedLinUCB(LinUCB):
    """LinUCB on projected arms z = R'x (CBRAP), where R (dim, size) has independent N(0, 1/size) entries.

    Arms keep their length dim. ``theta`` is R times the estimate in the small space, so that the margin of an
    arm is x'theta. ``sketch`` is the exact one of the projected arms.

    Parameters
    ----------
    dim : int
        Number of features of an arm.
    size : int
        The dimension of the small space.
    ridge : float
        lambda, the ridge parameter.
    beta : float, optional
        The confidence radius, a constant. Default 0.1.
    seed : int
        Seed of the projection.
    dtype : dtype
        float64 or float32, in which the projection is stored.
    explore, rewards, forget, baseline, scaling, intercept
        As for ``LinUCB``.

    Examples
    --------
    >>> policy = ProjectedLinUCB(100, size=8, seed=1)
    >>> arms = np.random.default_rng(0).standard_normal((5, 100))
    >>> policy.update(arms[2], 1.0)
    >>> float(policy.mean(arms).argmax())
    2.0

    """

    kind = "projected-linucb"
    _is_projected = True

    def __init__(
        self,
        dim: int,
        *,
        size: int = 50,
        ridge: float = 1.0,
        beta: float | None = None,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
        explore: Explore | None = None,
        rewards: Estimate | None = None,
        forget: float | None = None,
        baseline: bool | None = None,
        scaling: Kind = None,
        intercept: Intercept = False,
    ) -> None:
        dim = check_count("dim", dim, at_least=1)
        reader = Reader.of(dim, scaling, intercept)
        size = check_count("size", size, at_least=2)
        seed = check_count("seed", seed, at_least=0)
        precise = check_dtype(dtype)
        draws = np.random.default_rng(seed).standard_normal((dim + bool(intercept), size))
        super().__init__(
            ExactSketch(size),
            ridge=ridge,
            beta=beta,
            explore=explore,
            rewards=rewards,
            forget=forget,
            baseline=baseline,
        )
        self._project_by((draws / np.sqrt(size)).astype(precise, copy=False), seed)
        self._read_by(reader, self._make_blank(reader))

    def _explore_by(self, rule: Explore) -> None:
        if isinstance(self._beta, Confidence) or isinstance(rule.beta, Confidence):
            raise InputTypeError("CBRAP takes a constant beta only, no theorem covers random projections")
        super()._explore_by(rule)

    def _project_by(self, projection: AnyArray, seed: int) -> None:
        self._projection, self._seed = projection, seed
        self._dim = len(projection) if self._reader is None else self._reader.dim
        self._dtype = projection.dtype
        self._plain_dim = -1  # every arm has to be projected first

    size = property(lambda self: self.sketch.dim, doc="The dimension of the small space.")
    seed = property(lambda self: self._seed, doc="The seed of the projection.")

    @property
    def theta(self) -> Vector:
        """R times the estimate in the small space, shape (dim,)."""
        return product(self._projection, self._estimate.theta)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including the projection."""
        return super().nbytes + self._projection.nbytes

    def health(self, arms: Any = None) -> Health:
        """Report on the predictions. Nothing is certified, because the projection error is not known."""
        sentence = "A random projection certifies nothing: whether the regret is sublinear is not known."
        found = super().health(arms)
        sentence = self._health_of_world(sentence).get("sentence", sentence)
        is_telling = found.untried or found.out_of_range or not found.enough_digits
        inf, nan = float("inf"), float("nan")
        return found._replace(
            certificate=inf,
            exponent=inf,
            growth=nan,
            limit=nan,
            heading_for_linear_regret=False,
            sentence=found.sentence if is_telling else sentence,
        )

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}(dim={self.dim}, size={self.size}, ridge={self.ridge:g}, "
            f"{self._said_rule()}{self._said_rewards()}{self._said_forget()}{self._said_baseline()}"
            f"{self._said_scaling()}, "
            f"seed={self.seed}): {self.rounds} rounds, {self.nbytes:,} bytes>"
        )

    # -- arms are projected when they are read ----------------------------------------------------------

    @holds_the_lock
    def select(self, arms: Any, *, random: np.random.Generator | None = None) -> int:
        """Choose an arm, and return its index. See ``LinUCB.select``."""
        with self._lock:
            if type(arms) is np.ndarray and not self._share and not self._is_warming:
                own = self._search(View(self._project(arms)), self._explore, self._generator(random))
                if own is not None:
                    return own
        return super().select(arms, random=random)

    def _absorb(self, other: Any) -> Complaints:
        if not np.array_equal(self._projection, other._projection):
            raise MergeError(
                "cannot merge: the projections differ; give both the same dim, size, seed and dtype"
            )
        return super()._absorb(other)

    def _learn(self, arm: Any, reward: Any) -> Complaints:
        if type(arm) is np.ndarray and arm.ndim == 1 and isinstance(reward, float) and not self._is_warming:
            image, is_looked_at = self._project(arm), self._watches_ranges and not self._rounds % EVERY
            complaints = self._learn_one(image[0], image, *self._precision.measure(image[0]), float(reward))
            if is_looked_at and self._reader is not None:
                self._ranges.look(arm, self._reader.scaling)
            return complaints
        return super()._learn(arm, reward)

    def _read(self, arms: Any, *, may_be_empty: bool = False) -> Arms:
        if isinstance(arms, Offer) or is_foreign(arms):
            return self._read_offered(arms, may_be_empty=may_be_empty)
        read = read_arms(self._columns.align(arms), self._dim, self._dtype, may_be_empty=may_be_empty)
        return Images(self._images(read), read.raw)

    def _read_rows(self, arms: Any) -> RowBatch:
        return read_rows(self._project(arms, may_be_empty=True), self.size, self.sketch.dtype, "arms")

    def _ready(self, sets: AnyArray | list[Any]) -> Batch | None:
        ready = super()._ready(sets)
        try:
            return None if ready is None else ready._replace(arms=View(self._project(ready.arms.array)))
        except InputError:  # reading one set at a time finds out which one
            return None

    def _project(self, arms: Any, *, may_be_empty: bool = False) -> Matrix:
        """R'x of every arm. Raises if an arm is not finite."""
        return self._images(read_arms(arms, self._dim, self._dtype, may_be_empty=may_be_empty))

    def _images(self, read: Arms) -> Matrix:
        if self._reader is not None:
            read = self._reader.scaling.read(read)
        if isinstance(read, DenseArms):
            images = project_arms(read.array, self._projection)
            if images is not None:
                return images
        elif isinstance(read, SparseArms):
            with np.errstate(over="ignore", invalid="ignore"):
                images = np.ascontiguousarray(project_sparse((self._projection.T,), read).T)
            if np.isfinite(images).all():
                return images
        with np.errstate(over="ignore"):
            raise refuse(read, read.norms_sq())

    # -- files ----------------------------------------------------------------------------------------

    def _content(self) -> tuple[Scalars, Arrays]:
        scalars, arrays = super()._content()
        settings = {"seed": self._seed, "columns": self._columns.names}
        # The projection itself is saved, because another version of numpy may draw other numbers.
        return {"settings": settings, "inner": scalars}, {
            "projection": self._projection,
            **under("inner", arrays),
        }

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the policy that ``dump`` described."""
        policy = super().undump(scalars["inner"], taken_from("inner", arrays), **extra)
        projection = arrays["projection"]
        if projection.ndim != 2 or projection.shape[1] != policy.sketch.dim:
            raise InputError(f"the projection in the file has the wrong shape, {projection.shape}")
        policy._project_by(projection, int(scalars["settings"]["seed"]))
        policy._columns = ColumnNames(scalars["settings"].get("columns"))
        return policy
