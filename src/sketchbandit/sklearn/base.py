"""The base class of the estimators: they learn from a stream, and compute attributes when asked."""

import inspect
from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchbandit.arrays import Rows
from sketchbandit.errors import FileError, InputError, InputTypeError
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.base import SKETCHES

Choice = str | Callable[[int], Sketch]
"""The sketch of an estimator, given by name or made by the user."""
MatrixLike = Any
"""What scikit-learn takes as X: arrays, sparse matrices, data frames."""
VectorLike = Any
"""What it takes as y."""


class LearnedStream(Protocol):
    """What an estimator has learned from a stream of rows."""

    @property
    def count(self) -> int:
        """The number of rows seen."""

    @property
    def sketch(self) -> Sketch:
        """The sketch of the rows."""

    def update(self, *data: Any, **settings: Any) -> None:
        """Learn from further rows."""


Learned = TypeVar("Learned", bound=LearnedStream)


class StreamingEstimator(BaseEstimator, Generic[Learned]):
    """Keeps what it has learned in ``_learned``."""

    _learned: Learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, *data: MatrixLike, reset: bool = False, **options: bool | int) -> Any:
        """X, or X and y, as scikit-learn checks them; ``reset`` forgets the names and number of features."""
        types = [np.float64, np.float32]
        return validate_data(self, *data, accept_sparse="csr", dtype=types, reset=reset, **options)

    def _features(self, X: MatrixLike) -> Rows:
        """Rows to predict from. Raises if nothing was learned yet."""
        check_is_fitted(self)
        return self._checked(X)

    def _learn(self, learned: Learned, *data: object) -> Self:
        """Let ``learned`` learn, and keep it, unless it raises."""
        learned.update(*data)
        self._learned = learned
        return self

    @property
    def _fitted(self) -> Learned:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} has learned nothing yet; call fit or partial_fit first"
            )
        return self._learned

    @property
    def sketch_(self) -> Sketch:
        """The sketch of the centred rows."""
        return self._fitted.sketch

    @property
    def error_bound_(self) -> float:
        """The error bound e: Xc'Xc ⪯ S'S + e I."""
        return self.sketch_.error_bound

    @property
    def n_samples_seen_(self) -> int:
        """The number of rows seen."""
        return self._fitted.count


def make_sketch(
    choice: Choice, dim: int, size: int | None, compensation: float, epsilon: float | None = None
) -> Sketch:
    """A fresh sketch for rows of length ``dim``; one that is named takes what it has a setting for.

    What is None is left to the sketch.
    """
    if callable(choice):
        made = choice(dim)
        if not isinstance(made, Sketch) or made.dim != dim or made.count:
            raise InputTypeError(
                f"sketch must make a fresh sketchbandit.Sketch of dim {dim}, but made {made!r}"
            )
        return made
    try:
        kind: Callable[..., Sketch] = SKETCHES.of_kind(choice)
    except FileError as error:
        raise InputError(f"sketch must be a name, or a function that makes one from dim: {error}") from None
    offered = {"size": size, "compensation": compensation, "epsilon": epsilon}
    takes = inspect.signature(kind).parameters
    given = {name: value for name, value in offered.items() if name in takes and value is not None}
    made = kind(dim, **given)
    if not made.guarantee:
        raise InputError(f"sketch {choice!r} has no bound on its error; choose one that has")
    return made
