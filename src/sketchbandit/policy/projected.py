"""CBRAP: a random projection of the arms, then exact LinUCB in the small space."""

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arms import (
    Arms,
    Batch,
    Images,
    View,
    project_arms,
    read_arms,
    refuse,
)
from sketchbandit.arrays import AnyArray, Arrays, Dtype, Matrix, Rows, Scalars, Vector, taken_from, under
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.explore import Explore
from sketchbandit.features import Features, Intercept, Kind
from sketchbandit.linalg import product
from sketchbandit.policy.health import Complaints, Health
from sketchbandit.policy.learner import ArmsLike
from sketchbandit.policy.policy import LinUCB, Settings
from sketchbandit.policy.posterior import Posterior
from sketchbandit.precision.lowrank import project_sparse
from sketchbandit.sketch import ExactSketch, Sketch
from sketchbandit.sketch.checks import check_count, check_dtype
from sketchbandit.sketch.row_input import RowBatch, read_rows
from sketchbandit.theory import Confidence


class ProjectedFeatures(Features):
    """Features that are scaled, and then projected to z = R'x, in float64."""

    is_projected = True

    def __init__(self, dim: int, dtype: Dtype, *, projection: AnyArray, **scaled: Any) -> None:
        super().__init__(dim, dtype, **scaled)
        self.projection = projection
        """R, shape (dim, size); with an intercept it has a row more."""

    def view(self, arms: object) -> View | None:
        """The images of dense arms. Raises if an arm is not finite."""
        return View(self._project(arms)) if type(arms) is np.ndarray and arms.ndim == 2 else None

    def row(self, arm: object) -> tuple[Vector, AnyArray] | None:
        """The image of a dense arm. Raises if it is not finite."""
        if type(arm) is not np.ndarray or arm.ndim != 1:
            return None
        image = self._project(arm)
        return image[0], image

    def _scaled(self, arms: Arms) -> Arms:
        return Images(self._images(arms), arms.raw)

    def read_rows(self, arms: object) -> RowBatch:
        """The images of arms (n, dim)."""
        images = self._project(arms, may_be_empty=True)
        return read_rows(images, self.projection.shape[1], np.dtype(np.float64), "arms")

    def batch(self, sets: AnyArray | list[Rows]) -> Batch | None:
        """The images of all arms of many sets."""
        found = super().batch(sets)
        try:
            return None if found is None else found._replace(arms=View(self._project(found.arms.array)))
        except InputError:  # reading one set at a time finds out which one
            return None

    def lift(self, theta: Vector) -> Vector:
        """R theta."""
        return product(self.projection, theta)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including the projection."""
        return super().nbytes + self.projection.nbytes

    def _project(self, arms: object, *, may_be_empty: bool = False) -> Matrix:
        """R'x of every arm. Raises if an arm is not finite."""
        return self._images(read_arms(arms, self.dim, self.dtype, may_be_empty=may_be_empty))

    def _images(self, arms: Arms) -> Matrix:
        read = arms if self.scaling is None else self.scaling.read(arms)
        if read.matrix is None:
            images = project_arms(read.array, self.projection)  # type: ignore[union-attr]  # none is offered
            if images is not None:
                return images
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                images = np.ascontiguousarray(project_sparse((self.projection.T,), read).T)
            if np.isfinite(images).all():
                return images
        with np.errstate(over="ignore"):
            raise refuse(read, read.norms_sq())


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
    seed : int
        Seed of the projection.
    dtype : dtype
        float64 or float32, in which the projection is stored.
    ridge, beta, explore, rewards, forget, baseline, scaling, intercept
        As for ``LinUCB``, but ``beta`` must be a constant.

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
        seed: int = 0,
        dtype: DTypeLike = np.float64,
        **settings: Unpack[Settings],
    ) -> None:
        dim = check_count("dim", dim, at_least=1)
        size = check_count("size", size, at_least=2)
        self._seed = check_count("seed", seed, at_least=0)
        precise, columns = check_dtype(dtype), dim + bool(settings.get("intercept"))
        draws = np.random.default_rng(self._seed).standard_normal((columns, size))
        self._drawn = (draws / np.sqrt(size)).astype(precise, copy=False)
        super().__init__(ExactSketch(size), **settings)
        del self._drawn  # the features have it

    def _make_features(self, sketch: Sketch, scaling: Kind, intercept: Intercept) -> Features:
        del sketch
        projection = self._drawn
        dim = len(projection) - bool(intercept)
        return ProjectedFeatures.of(dim, projection.dtype, scaling, intercept, projection=projection)

    def _join(self, features: Features, posterior: Posterior, rule: Explore) -> None:
        _check_beta(posterior, rule)
        super()._join(features, posterior, rule)

    def _explore_by(self, rule: Explore) -> None:
        _check_beta(self._posterior, rule)
        super()._explore_by(rule)

    @property
    def _projection(self) -> AnyArray:
        features: Any = self._features
        projection: AnyArray = features.projection
        return projection

    size = property(lambda self: self.sketch.dim, doc="The dimension of the small space.")
    seed = property(lambda self: self._seed, doc="The seed of the projection.")

    def health(self, arms: ArmsLike | None = None) -> Health:
        """Report on the predictions. Nothing is certified, because the projection error is not known."""
        sentence = "A random projection certifies nothing: whether the regret is sublinear is not known."
        found = super().health(arms)
        sentence = self._watch.of_world(self._posterior, sentence).get("sentence", sentence)
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
            f"{self._settings_text()}, seed={self.seed}): {self.rounds} rounds, {self.nbytes:,} bytes>"
        )

    def _absorb(self, other: Self) -> Complaints:
        if not np.array_equal(self._projection, other._projection):
            raise MergeError(
                "cannot merge: the projections differ; give both the same dim, size, seed and dtype"
            )
        return super()._absorb(other)

    # -- files ----------------------------------------------------------------------------------------

    def _content(self) -> tuple[Scalars, Arrays]:
        scalars, arrays = super()._content()
        settings = {"seed": self._seed, "columns": self.columns}
        # The projection itself is saved, because another version of numpy may draw other numbers.
        return {"settings": settings, "inner": scalars}, {
            "projection": self._projection,
            **under("inner", arrays),
        }

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the policy that ``dump`` described."""
        projection, settings = arrays["projection"], scalars["settings"]
        inner = {**scalars["inner"], "columns": settings.get("columns")}
        held = {**taken_from("inner", arrays), "projection": projection}
        policy = super().undump(inner, held, **extra)
        policy._seed = int(settings["seed"])
        return policy

    @classmethod
    def _blank_features(cls, sketch: Sketch, arrays: Arrays) -> Features:
        projection = arrays["projection"]
        if projection.ndim != 2 or projection.shape[1] != sketch.dim:
            raise InputError(f"the projection in the file has the wrong shape, {projection.shape}")
        return ProjectedFeatures(len(projection), projection.dtype, projection=projection)


def _check_beta(posterior: Posterior, rule: Explore) -> None:
    if isinstance(posterior.beta, Confidence) or isinstance(rule.beta, Confidence):
        raise InputTypeError("CBRAP takes a constant beta only, no theorem covers random projections")
