"""Classification data as a bandit: its samples are the arms, or its labels are the actions."""

import copy
from collections.abc import Iterator
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sketchbandit.arrays import Rows, Vector
from sketchbandit.environment.base import Environment, Round
from sketchbandit.errors import InputError
from sketchbandit.linalg import row_norms_sq
from sketchbandit.sketch.checks import check_count

Normalise = Literal["rows", "largest"] | None
_CONTEXTS = 6  # tag of the generator: the smaller ones are those of other environments


class LabelledRows(Environment):
    """Rows of features with a label each, checked. A subclass says what a round offers of them.

    The parameters are those of ``Classification``.
    """

    def __init__(
        self, features: Rows, labels: ArrayLike, *, name: str = "data", normalise: Normalise = "rows"
    ) -> None:
        if normalise not in ("rows", "largest", None):
            raise InputError(
                f'{name}: normalise must be "rows" (unit length), "largest" (all by the largest length) or '
                f"None (as stored), got {normalise!r}"
            )
        self._features: Rows = features.tocsr() if sparse.issparse(features) else np.asarray(features)
        labels = np.asarray(labels)
        if labels.shape != (self._features.shape[0],):
            raise InputError(
                f"{name}: {self._features.shape[0]} rows need as many labels, got {labels.shape}"
            )
        self._norms = _norms(self._features)
        if not np.isfinite(self._norms).all():
            raise InputError(f"{name}: row {int(np.argmin(np.isfinite(self._norms)))} contains NaN or inf")
        self._members = []
        for label in np.unique(labels):
            self._members.append(np.flatnonzero((labels == label) & (self._norms > 0.0)))
            if not len(self._members[-1]):
                raise InputError(f"{name}: every row of label {label} is zero; leave out this label")
        if len(self._members) < 2:
            raise InputError(f"{name}: classification needs two labels or more, got {len(self._members)}")
        self.dim = int(self._features.shape[1])
        self.name = name
        self.normalise: Normalise = normalise
        self._divisors = (
            np.full_like(self._norms, self._norms.max()) if normalise == "largest" else self._norms
        )

    @property
    def label_count(self) -> int:
        """The number of labels."""
        return len(self._members)

    def _rows(self, rows: NDArray[np.intp]) -> Rows:
        """These rows, normalised."""
        drawn = self._features[rows]
        if self.normalise is None:
            return drawn if sparse.issparse(drawn) else drawn.astype(np.float64)
        if sparse.issparse(drawn):
            lengths = np.repeat(self._divisors[rows], np.diff(drawn.indptr))
            values = (drawn.data / lengths).astype(drawn.dtype if drawn.dtype.kind == "f" else np.float64)
            return sparse.csr_array((values, drawn.indices, drawn.indptr), shape=drawn.shape)
        return drawn / self._divisors[rows, np.newaxis]


class Classification(LabelledRows):
    """The paper's setup (App. Experimental Setups): each round offers one random sample of every label.

    The reward is 1 for the sample of the target label and 0 otherwise, without noise. By default rows are
    scaled to length one, and zero rows are dropped. Arms are in random order, so an index says nothing.

    Parameters
    ----------
    features : array or CSR matrix of shape (n, dim)
        The samples, as stored. Rows are normalised when they are drawn.
    labels : array of int, shape (n,)
        The labels, numbered 0, 1, ...
    target : int, optional
        The label to find. Default: ``seed`` modulo the number of labels, so that a sweep over seeds goes
        through the labels.
    seed : int
        Seed of the draws.
    name : str
        The name, for figures and messages.
    normalise : {"rows", "largest", None}
        "rows" scales every row to length one. "largest" divides all rows by the largest length, so they keep
        their proportions. None leaves the features as stored: dense ones as float64, CSR as they are. The
        draws are the same.

    Examples
    --------
    >>> environment = Classification(np.eye(4), [0, 0, 1, 1], target=1)
    >>> [(round.arms.shape, float(round.means.sum())) for round in environment.rounds(2)]
    [((2, 4), 1.0), ((2, 4), 1.0)]

    """

    def __init__(
        self,
        features: Rows,
        labels: ArrayLike,
        *,
        target: int | None = None,
        seed: int = 0,
        name: str = "data",
        normalise: Normalise = "rows",
    ) -> None:
        super().__init__(features, labels, name=name, normalise=normalise)
        self._set_seed(seed, target)

    def reseeded(self, seed: int, target: int | None = None) -> Self:
        """The same data with another seed and target. The features are shared, not copied."""
        other = copy.copy(self)
        other._set_seed(seed, target)
        return other

    def _set_seed(self, seed: int, target: int | None) -> None:
        count = len(self._members)
        self.seed = check_count("seed", seed, at_least=0)
        self.target = self.seed % count if target is None else check_count("target", target, at_least=0)
        if self.target >= count:
            raise InputError(f"target {self.target} is not one of the {count} labels 0..{count - 1}")

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield rounds with one row of each label, drawn with replacement, in random order."""
        random = np.random.default_rng(self.seed)
        labels = len(self._members)
        sizes = np.array([len(members) for members in self._members])
        for _ in range(count):
            order = random.permutation(labels)
            places = random.integers(0, sizes[order])
            rows = np.array([self._members[k][i] for k, i in zip(order, places, strict=True)])
            yield Round(self._rows(rows), (order == self.target).astype(np.float64), 0.0)


def _norms(features: Rows) -> Vector:
    """The lengths of the rows, a stretch of rows at a time: a byte image is not turned to float whole."""
    if sparse.issparse(features):
        squares = features.astype(np.float64).power(2).sum(axis=1)
        return np.asarray(np.sqrt(squares), dtype=np.float64).ravel()
    parts = [features[i : i + 4096].astype(np.float64) for i in range(0, len(features), 4096)]
    return np.concatenate([np.sqrt(row_norms_sq(part)) for part in parts])


class Taken(NamedTuple):
    """An action, and the context in which it was taken."""

    context: Rows
    action: int

    def copy(self) -> "Taken":
        """The same, of its own."""
        return Taken(self.context.copy(), self.action)


class ContextRound(Round):
    """A round whose ``arms`` are one context, (dim,) or CSR (1, dim); ``means`` are those of the actions."""

    __slots__ = ()

    def arm(self, chosen: int) -> Taken:
        """What is learned from: the context, and the action taken."""
        return Taken(self.arms, chosen)


class ContextualClassification(LabelledRows):
    """The usual contextual protocol: a sample comes, the policy names its label, and the right one pays 1.

    The features do not tell actions apart, so that a model for each action is needed (``PerAction``). The
    regret of a round is 1 for a wrong label and 0 for the right one: in all it counts the wrong answers.
    Samples are drawn with replacement, so that a frequent label comes more often.

    Parameters
    ----------
    features, labels, normalise
        As for ``Classification``.
    seed : int
        What the draws depend on.

    Examples
    --------
    >>> environment = ContextualClassification(np.eye(4), [0, 0, 1, 1])
    >>> (first,) = environment.rounds(1)
    >>> first.arms.shape, environment.actions, sorted(first.regret(action) for action in (0, 1))
    ((4,), 2, [0.0, 1.0])

    """

    def __init__(
        self,
        features: Rows,
        labels: ArrayLike,
        *,
        seed: int = 0,
        name: str = "data",
        normalise: Normalise = "rows",
    ) -> None:
        super().__init__(features, labels, name=name, normalise=normalise)
        self.seed = check_count("seed", seed, at_least=0)
        self.actions: int = self.label_count

    def reseeded(self, seed: int) -> Self:
        """The same data with another seed; the features are shared, not copied."""
        other = copy.copy(self)
        other.seed = check_count("seed", seed, at_least=0)
        return other

    def rounds(self, count: int) -> Iterator[Round]:
        """One sample a round; its label is the action that pays."""
        random = np.random.default_rng([self.seed, _CONTEXTS])
        rows = np.concatenate(self._members)
        labels = np.repeat(np.arange(self.actions), [len(members) for members in self._members])
        for _ in range(count):
            place = int(random.integers(len(rows)))
            drawn = self._rows(rows[[place]])
            context = drawn[0] if isinstance(drawn, np.ndarray) else drawn
            yield ContextRound(context, (np.arange(self.actions) == labels[place]).astype(np.float64), 0.0)
