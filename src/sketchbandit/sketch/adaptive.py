"""The adaptive sketch: Frequent Directions with the smallest size that an error budget allows."""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.errors import InputError
from sketchbandit.linalg import SUM_ROUNDING, Shrinkage, factor_of_covariance, shrink, storing_error
from sketchbandit.sketch.accounts import ADDED, NO_CHANGE, Change
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.frequent_directions import gram_up_to
from sketchbandit.sketch.row_store import BufferedSketch

_FIRST_ROWS = 2000.0
_FIRST_SHARE = 0.6
# Where the two pieces of Anytime meet: 1 - 1 / (_JOIN + 0) = _FIRST_SHARE.
_JOIN = 1.0 / (1.0 - _FIRST_SHARE)
_LOOK_AFTER = 0.5  # weight left of a matrix when it is checked again whether rows would be enough


def order_of_error(regret_order: float, compensation: float) -> float:
    """The p for which an error of O(t^p) leaves a regret of Õ(t^regret_order).

    (2·order - 1)/3 without compensation (the paper's remark on choosing parameters), 2·order - 1 with one,
    whose bound has e^(1/2) in it instead of e^(3/2).

    Examples
    --------
    >>> order_of_error(0.75, compensation=1.0)
    0.5

    """
    exponent = 2.0 * regret_order - 1.0
    return exponent if compensation else exponent / 3.0


class Budget(Protocol):
    """An increasing function of the number of rows seen."""

    def __call__(self, rows: int) -> float:
        """The largest error bound allowed after so many rows."""

    @property
    def limit(self) -> float:
        """What the budget never exceeds; inf if it grows for ever."""

    @property
    def order(self) -> float:
        """The p of its growth t^p; 0 if it is bounded."""


@dataclass(frozen=True)
class Horizon:
    """epsilon·t/T: a constant rate up to T rows, and nothing more after that.

    Examples
    --------
    >>> budget = Horizon(4.0, horizon=1000)
    >>> budget(250), budget(1000), budget(5000)
    (1.0, 4.0, 4.0)

    """

    epsilon: float
    horizon: int
    order = 0.0

    def __call__(self, rows: int) -> float:
        """Linear up to the horizon."""
        return self.epsilon * min(1.0, rows / self.horizon)

    @property
    def limit(self) -> float:
        """epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class Anytime:
    """Below epsilon for ever: 3/5 of it at a constant rate over n = 2000 rows, the rest more and more slowly.

        epsilon · 3t / 5n                        t <= n,
        epsilon · (1 - 1 / (2.5 + log2(t/n)))    t > n.

    Any budget that is bounded must slow down: its rate at t, times t, has a finite integral over log t.
    That of this one falls like 1/log² t.

    Examples
    --------
    >>> budget = Anytime(10.0)
    >>> budget(1000), budget(2000), round(budget(32_000), 3), budget(10**30) < 10.0
    (3.0, 6.0, 8.462, True)

    """

    epsilon: float
    order = 0.0

    def __call__(self, rows: int) -> float:
        """The budget: linear, then concave."""
        if rows <= _FIRST_ROWS:
            return self.epsilon * (_FIRST_SHARE * rows / _FIRST_ROWS)
        return self.epsilon * (1.0 - 1.0 / (_JOIN + math.log2(rows / _FIRST_ROWS)))

    @property
    def limit(self) -> float:
        """epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class Growing:
    """epsilon·t^p, for a regret of a given order at every t.

    Examples
    --------
    >>> budget = Growing(2.0, order=0.5)
    >>> budget(100), budget.limit
    (20.0, inf)

    """

    epsilon: float
    order: float

    def __call__(self, rows: int) -> float:
        """epsilon times a power of the number of rows; 0 before the first row."""
        return self.epsilon * float(rows) ** self.order if rows else 0.0

    @property
    def limit(self) -> float:
        """inf, unless the order is 0."""
        return math.inf if self.order else self.epsilon


def budget_for(epsilon: float, horizon: int | None, order: float | None, compensation: float) -> Budget:
    """The budget of an adaptive sketch with these settings."""
    if horizon is not None:
        return Horizon(epsilon, horizon)
    if order is not None:
        return Growing(epsilon, order_of_error(order, compensation))
    return Anytime(epsilon)


class AdaptiveSketch(BufferedSketch):
    """Frequent Directions that keeps only as many rows as its error budget needs.

    When the buffer is full, the size becomes the *smallest* l with

        e + sigma_l² <= budget(t),        t = the number of non-zero rows seen.

    Then sigma_l² is subtracted from every squared singular value, as in Frequent Directions of size l. So
    S'S ⪯ X'X ⪯ S'S + e I with e <= budget(t), at every moment of every stream. The size follows the stream:
    it grows if the spectrum has a heavy tail, and falls if the tail is light. If nothing may be lost, the
    sketch turns into X'X itself. ``docs/adaptive.md`` has the proofs. e includes rounding: if float32 would
    break the budget, rows are held in float64 from then on.

    Parameters
    ----------
    dim : int
        Length of a row.
    epsilon : float
        The spectral error allowed, in units of a squared row norm.
    horizon : int, optional
        T, the number of rows of the whole stream, if it is known. A policy adds one row for each reward. The
        budget is then epsilon·t/T. After T rows it stays epsilon, so that only what is left of it can be
        lost, and the size grows with the rank of new rows.
        Without a horizon the budget stays below epsilon for ever: 3/5 of it is for the first 2000 rows, and
        the rest is spent more and more slowly. So a horizon above 10,000/3 allows less in the first 2000
        rows.
    size : int
        The smallest size. Streams of a lower rank are kept without loss, and e <= mass / size.
    compensation : float
        alpha = compensation · e, as for ``FrequentDirections``.
    order : float, optional
        Use instead of a horizon. The budget is epsilon·t^p, with the p for which the regret of a policy is
        Õ(t^order) at every t: (2·order - 1)/3 without compensation, 2·order - 1 with it.
    dtype : dtype
        float64, or float32 for half the memory. The budget must leave room for float32 rounding.

    Notes
    -----
    A merge adds the error bounds, the budgets and the rows seen. If all parts have the horizon of the whole
    stream, their budgets add up to that of the whole. Without a horizon, a merged sketch may lose as much as
    its parts together.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((2000, 100)) * 0.9 ** np.arange(100)
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> sketch = AdaptiveSketch(100, epsilon=4.0, horizon=2000)
    >>> change = sketch.update(X)
    >>> bool(np.linalg.norm(X.T @ X - sketch.rows.T @ sketch.rows, 2) <= sketch.error_bound)
    True
    >>> sketch.error_bound <= sketch.budget == 4.0, sketch.size
    (True, 25)

    """

    kind = "adaptive"
    _takes_products = True

    def __init__(
        self,
        dim: int,
        *,
        epsilon: float = 4.0,
        horizon: int | None = None,
        size: int = 10,
        compensation: float = 1.0,
        order: float | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        super().__init__(dim, dtype, compensation)
        self._epsilon = check_real("epsilon", epsilon, above=0.0)
        self._horizon = None if horizon is None else check_count("horizon", horizon, at_least=1)
        self._least_size = check_count("size", size, at_least=2)
        self._order = None if order is None else check_real("order", order, at_least=0.5, below=1.0)
        if self._horizon is not None and self._order is not None:
            raise InputError(
                f"horizon={horizon} and order={order} both say how the budget grows; give only one of them"
            )
        self._schedule = budget_for(self._epsilon, self._horizon, self._order, compensation)
        self._size = self._least_size
        self._store.buffer.limit = self._wanted_limit
        self._merged_budget = 0.0
        self._left = 1.0  # weight left of a matrix since it was last checked

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The current size l; dim once the sketch is exact."""
        return self.dim if self.is_dense else self._size

    epsilon = property(lambda self: self._epsilon, doc="The spectral error allowed.")
    horizon = property(
        lambda self: self._horizon, doc="The number of rows that the budget is spread over, if given."
    )
    order = property(
        lambda self: self._order, doc="The regret order that the budget is chosen for, if given."
    )

    @property
    def compensation(self) -> float:
        """The share of the error bound that alpha gives back."""
        return self._account.compensation

    @property
    def budget(self) -> float:
        """The largest error bound allowed by now."""
        return self._schedule(self.row_stats.nonzero) + self._merged_budget

    @property
    def error_limit(self) -> float:
        """epsilon plus the budgets of merged sketches; inf if the budget grows for ever."""
        return self._schedule.limit + self._merged_budget

    @property
    def error_order(self) -> float:
        """The p of a budget that grows like t^p; 0 if it is bounded."""
        return self._schedule.order

    @property
    def guarantee(self) -> float:
        """error_bound - rounding <= mass / guarantee: a shrink by s takes s from so many directions."""
        return float(self._least_size)

    @property
    def exact_rank(self) -> int:
        """Streams of a rank below the smallest size are never shrunk."""
        return min(self._least_size - 1, self.dim)

    @property
    def gram_up_to_dim(self) -> int:
        """As for Frequent Directions of the smallest size."""
        return gram_up_to(self._least_size)

    # -- the budgeted shrink ------------------------------------------------------------------------

    @property
    def _wanted_limit(self) -> int:
        """Twice the size, as in Frequent Directions, but at most as many rows as a matrix is worth."""
        return min(2 * self._size, self._store.most_rows)

    @property
    def _rows_worth_keeping(self) -> int:
        """With more rows the buffer would soon be full again. Then a matrix is cheaper and loses nothing."""
        return 3 * self._store.most_rows // 4

    @property
    def _most_at_once(self) -> int:
        """A shrink reads the row_stats, so it must come after the last of the rows."""
        return self._store.plain_room + 1

    @property
    def _spendable(self) -> float:
        """What may be lost now, such that e plus this is within the budget, in floats too."""
        budget = self.budget
        return max(0.0, budget - self._account.error - SUM_ROUNDING * budget)

    def _make_room(self) -> Change:
        store = self._store
        if store.is_dense:
            store.flush()
            return ADDED
        change = self._shrink()
        if len(store.buffer) > self._rows_worth_keeping:
            store.become_dense()
            return change.then(ADDED)
        store.buffer.resize(self._wanted_limit)
        return change

    def _shrink(self) -> Change:
        buffer, most, worth = self._store.buffer, self._spendable, self._rows_worth_keeping
        products = buffer.known_products
        done = shrink(buffer.writable(), self._least_size, most=most, worth=worth, products=products)
        if not done.rotated and done.stored > most:  # the budget has no room for float32 rounding
            buffer.widen()
            done = shrink(buffer.writable(), self._least_size, most=most, worth=worth, products=products)
        self._size = max(self._least_size, done.kept + 1)
        if not done.rotated:
            return NO_CHANGE
        # float32 rows are orthogonal only up to their own precision.
        orthogonal = buffer.is_float64
        buffer.truncate(done.kept, orthogonal=orthogonal)
        return Change(0, True, lossless=self._account.charge(done, most), orthogonal=orthogonal)

    def _compress(self) -> Change:
        """Shrink now as far as the budget allows, and free the memory of the buffer."""
        store = self._store
        if store.is_dense:
            store.trim()
            return ADDED
        change = self._shrink() if len(store.buffer) >= self._least_size else NO_CHANGE
        store.buffer.resize(max(self._wanted_limit, len(store.buffer) + 1))
        store.trim()
        return change

    def _forget(self, factor: float) -> Change:
        """Forget. The forgotten part of e may be lost again, so e <= budget(t) <= epsilon for ever."""
        store = self._store
        self._account.forget(factor, self.row_stats.mass)
        self._merged_budget *= factor
        if not store.buffer.is_float64:
            stored = factor * storing_error(store.buffer.rows, self.dtype)
            if stored > self._spendable:
                store.buffer.widen()
            else:
                self._account.charge_rounding(stored)
        store.scale(factor)
        self._left *= factor
        if store.is_dense and self._left <= _LOOK_AFTER:
            self._left = 1.0
            self._leave_matrix()
        return Change(rebuilt=True)

    def _leave_matrix(self) -> None:
        """Go back to rows if at most half of the rows worth keeping are enough by now."""
        rows, remainder = factor_of_covariance(self._store.gram())
        rounding = remainder + storing_error(rows, self.dtype)
        done = shrink(rows, self._least_size, most=max(0.0, self._spendable - rounding))
        if rounding <= self._spendable and done.kept <= self._rows_worth_keeping // 2:
            self._store.become_rows()
            self._hold(rows, done, rounding)

    def _add_gram(self, gram: Matrix) -> None:
        store = self._store
        if not store.is_dense:
            rows, remainder = factor_of_covariance(gram)
            rows = np.concatenate([rows, store.buffer.rows])
            rounding = remainder + (0.0 if store.buffer.is_float64 else storing_error(rows, self.dtype))
            most = self._spendable - rounding
            done = shrink(rows, self._least_size, most=max(0.0, most))
            if most >= 0.0 and done.kept <= self._rows_worth_keeping:
                self._hold(rows, done, rounding)
                return
        store.become_dense().add_full(gram)

    def _hold(self, rows: Matrix, done: Shrinkage, rounding: float) -> None:
        """Hold exactly these rows, of which a shrink has left some, and charge it and the rounding."""
        self._size = max(self._least_size, done.kept + 1)
        self._store.buffer.limit = self._wanted_limit
        self._store.buffer.hold(rows[: done.kept])
        self._account.charge(done)
        self._account.charge_rounding(rounding)

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: Self) -> None:
        now, theirs = self.row_stats.nonzero, other.row_stats.nonzero
        together = self._schedule(now - theirs) + self._merged_budget + other.budget
        self._merged_budget = max(0.0, together - self._schedule(now))
        self._account.add(other._account)
        self._store.add_matrix_of(other._store)
        self._ingest(other._store.buffer.rows)

    def _settings(self) -> Scalars:
        return {**super()._settings(), "size": self._least_size}

    def _state(self) -> tuple[Scalars, Arrays]:
        scalars = {
            **self._account.dump(),
            "merged_budget": self._merged_budget,
            "current_size": self._size,
            "limit": self._store.limit,
        }
        if self._left < 1.0:
            scalars["left"] = self._left
        return scalars, self._store.arrays()

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._account.restore(scalars)
        # files of 0.7 have it here
        self.row_stats.nonzero = int(scalars.get("taken", self.row_stats.nonzero))
        self._merged_budget = float(scalars["merged_budget"])
        self._size = int(scalars["current_size"])
        self._left = float(scalars.get("left", 1.0))
        self._store.restore(int(scalars["limit"]), arrays)
