"""The adaptive sketch: Frequent Directions with the smallest size that an error budget allows."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.errors import InputError
from sketchbandit.linalg import SUM_ROUNDING, factor_of_covariance, shrink, storing_error
from sketchbandit.sketch.budgets import budget_for
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.sketch.error_account import ErrorAccount
from sketchbandit.sketch.hybrid import ADDED, HybridSketch
from sketchbandit.sketch.shrinking import GATHER_TIMES_SIZE, MOST_GATHERED

_LOOK_AFTER = 0.5  # weight left of a matrix when it is checked again whether rows would be enough


class AdaptiveSketch(ErrorAccount, HybridSketch):
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
        super().__init__(dim, dtype)
        self._epsilon = check_real("epsilon", epsilon, above=0.0)
        self._horizon = None if horizon is None else check_count("horizon", horizon, at_least=1)
        self._least_size = check_count("size", size, at_least=2)
        self._compensation = check_compensation(compensation)
        self._order = None if order is None else check_real("order", order, at_least=0.5, below=1.0)
        if self._horizon is not None and self._order is not None:
            raise InputError(
                f"horizon={horizon} and order={order} both say how the budget grows; give only one of them"
            )
        self._schedule = budget_for(self._epsilon, self._horizon, self._order, self._compensation)
        self._size = self._least_size
        self._buffer.limit = self._wanted_limit
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

    # -- the budgeted shrink ------------------------------------------------------------------------

    @property
    def _wanted_limit(self) -> int:
        """Twice the size, as in Frequent Directions, but at most as many rows as a matrix is worth."""
        return min(2 * self._size, self._most_rows)

    @property
    def _rows_worth_keeping(self) -> int:
        """With more rows the buffer would soon be full again. Then a matrix is cheaper and loses nothing."""
        return 3 * self._most_rows // 4

    @property
    def _most_at_once(self) -> int:
        """A shrink reads the row_stats, so it must come after the last of the rows."""
        return self._rows_before_it_may_turn_dense

    def _make_room(self) -> Change:
        change = self._shrink()
        if len(self._buffer) > self._rows_worth_keeping:
            self._become_dense()
            return change.then(ADDED)
        self._buffer.resize(self._wanted_limit)
        return change

    @property
    def _spendable(self) -> float:
        """What may be lost now, such that e plus this is within the budget, in floats too."""
        budget = self.budget
        return max(0.0, budget - self._error - SUM_ROUNDING * budget)

    def _shrink(self) -> Change:
        most, worth = self._spendable, self._rows_worth_keeping
        done = shrink(self._buffer.writable(), self._least_size, most=most, worth=worth)
        if not done.rotated and done.stored > most:  # the budget has no room for float32 rounding
            self._buffer.widen()
            done = shrink(self._buffer.writable(), self._least_size, most=most, worth=worth)
        self._size = max(self._least_size, done.kept + 1)
        if not done.rotated:
            return NO_CHANGE
        self._buffer.truncate(done.kept)
        # float32 rows are orthogonal only up to their own precision.
        return Change(0, True, lossless=self._charge(done, most), orthogonal=self._buffer.is_float64)

    def _compress(self) -> Change:
        """Shrink now as far as the budget allows, and free the memory of the buffer."""
        if self._dense is not None:
            self._dense.trim()
            return ADDED
        change = self._shrink() if len(self._buffer) >= self._least_size else NO_CHANGE
        self._buffer.limit = max(self._wanted_limit, len(self._buffer) + 1)
        self._buffer.trim()
        return change

    def _forget(self, factor: float) -> Change:
        """Forget. The forgotten part of e may be lost again, so e <= budget(t) <= epsilon for ever."""
        self._discount(factor)
        self._merged_budget *= factor
        if self._dense is None and not self._buffer.is_float64:
            stored = factor * storing_error(self._buffer.rows, self.dtype)
            if stored > self._spendable:
                self._buffer.widen()
            else:
                self._charge_rounding(stored)
        self._scale(factor)
        self._left *= factor
        if self._dense is not None and self._left <= _LOOK_AFTER:
            self._left = 1.0
            self._leave_matrix(self._dense.covariance())
        return Change(rebuilt=True)

    def _leave_matrix(self, gram: Matrix) -> None:
        """Go back to rows if at most half of the rows worth keeping are enough by now."""
        rows, remainder = factor_of_covariance(gram)
        rounding = remainder + storing_error(rows, self.dtype)
        done = shrink(rows, self._least_size, most=max(0.0, self._spendable - rounding))
        if rounding <= self._spendable and done.kept <= self._rows_worth_keeping // 2:
            self._dense = None
            self._hold(rows[: done.kept])
            self._charge(done)
            self._charge_rounding(rounding)

    # -- many rows at once ----------------------------------------------------------------------------

    @property
    def gram_up_to_dim(self) -> int:
        """As for Frequent Directions of the smallest size."""
        return min(GATHER_TIMES_SIZE * self._least_size, MOST_GATHERED)

    def _add_gram(self, gram: Matrix) -> None:
        if self._dense is not None:
            self._dense.add_covariance(gram)
            return
        rows, remainder = factor_of_covariance(gram)
        rows = np.concatenate([rows, self._buffer.rows])
        rounding = remainder + (0.0 if self._buffer.is_float64 else storing_error(rows, self.dtype))
        most = self._spendable - rounding
        done = shrink(rows, self._least_size, most=max(0.0, most))
        if most < 0.0 or done.kept > self._rows_worth_keeping:
            self._become_dense().add_covariance(gram)
            return
        self._hold(rows[: done.kept])
        self._charge(done)
        self._charge_rounding(rounding)

    def _hold(self, rows: Matrix) -> None:
        """Hold exactly these rows."""
        self._size = max(self._least_size, len(rows) + 1)
        self._buffer.truncate(0)
        self._buffer.limit = self._wanted_limit
        self._buffer.append(rows)

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: Any) -> None:
        now, theirs = self.row_stats.nonzero, other.row_stats.nonzero
        together = self._schedule(now - theirs) + self._merged_budget + other.budget
        self._merged_budget = max(0.0, together - self._schedule(now))
        self._take_over(other)
        super()._absorb(other)

    def _settings(self) -> Scalars:
        return {
            "dim": self.dim,
            "epsilon": self._epsilon,
            "horizon": self._horizon,
            "size": self._least_size,
            "compensation": self._compensation,
            "order": self._order,
            "dtype": self.dtype.name,
        }

    def _state(self) -> tuple[Scalars, Arrays]:
        scalars = {
            **self._account(),
            "merged_budget": self._merged_budget,
            "current_size": self._size,
            "limit": self._buffer.limit,
        }
        if self._left < 1.0:
            scalars["left"] = self._left
        return scalars, self._rows_or_triangle()

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._set_account(scalars)
        # files of 0.7 have it here
        self.row_stats.nonzero = int(scalars.get("taken", self.row_stats.nonzero))
        self._merged_budget = float(scalars["merged_budget"])
        self._size = int(scalars["current_size"])
        self._buffer.limit = int(scalars["limit"])
        self._left = float(scalars.get("left", 1.0))
        self._refill(arrays)
