"""Fits a scaling to the requests of a warm-up: which one is best, and its numbers."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Arrays, Rows, Scalars, Vector
from sketchbandit.features.scaling import Scaling
from sketchbandit.linalg import length_of, row_norms_sq

MOST_OF_A_REQUEST = 50
"""Arms of one request that are kept, as long as few requests were seen."""
MOST = 400
"""Arms that are kept of many requests: at least two of each."""


class Sample:
    """Arms that were offered, or learned from without being offered, request by request.

    The more requests there are, the fewer arms of each are kept. So what differs between requests counts,
    however many arms one of them has.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.offered = 0
        """The number of arms offered."""
        self.learned = 0
        """The number of arms with a reward."""
        self._parts: list[Rows] = []  # the arms kept of each request
        self._share = MOST_OF_A_REQUEST  # the most arms kept of one request

    @property
    def requests(self) -> int:
        """The number of requests seen."""
        return len(self._parts)

    def add(self, arms: Rows) -> None:
        """Keep a copy of the rows (an array or a CSR matrix) of a request; of many, evenly spaced ones."""
        if arms.shape[0]:
            self.offered += arms.shape[0]
            self._parts.append(_thinned(arms, self._share, self.requests).astype(np.float64))
            self._thin()

    def merge(self, other: "Sample") -> None:
        """Add the requests of another sample."""
        self._parts += other._parts
        self.offered += other.offered
        self.learned += other.learned
        self._share = MOST_OF_A_REQUEST  # the other requests may have more arms than are kept here
        self._thin()

    def _thin(self) -> None:
        """Keep fewer arms of each request, if there are so many requests."""
        share = min(MOST_OF_A_REQUEST, max(2, MOST // (1 << (self.requests - 1).bit_length())))
        if share < self._share:
            self._share = share
            self._parts = [_thinned(part, share, place).copy() for place, part in enumerate(self._parts)]

    @property
    def rows(self) -> Rows:
        """All arms kept: an array, or a CSR matrix if some came as one."""
        return stacked(self._parts, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(held.nbytes for part in self._parts for held in as_arrays(part).values())

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same sample."""
        kept = [part.shape[0] for part in self._parts]
        return {"dim": self.dim, "offered": self.offered, "learned": self.learned, "kept": kept}, as_arrays(
            self.rows
        )

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Sample":
        """Return the sample that ``dump`` described."""
        made = cls(int(scalars["dim"]))
        rows = from_arrays(arrays, made.dim)
        kept = scalars.get("kept", [1] * rows.shape[0])  # in files of 0.14 every arm counts as a request
        ends = np.cumsum(kept, dtype=np.intp).tolist()
        made._parts = [rows[end - count : end].copy() for count, end in zip(kept, ends, strict=True)]
        made.offered = int(scalars.get("offered", rows.shape[0]))
        made.learned = int(scalars["learned"])
        made._thin()
        return made


def _thinned(rows: Rows, most: int, start: int) -> Rows:
    """At most so many rows, evenly spaced. Where they start differs from request to request."""
    step = max(1, -(-rows.shape[0] // most))
    return rows[start % step :: step]


def stacked(parts: list[Rows], dim: int) -> Rows:
    """Concatenate rows; the result is a CSR matrix if any part is one."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts]))
    return np.concatenate(parts) if parts else np.empty((0, dim))


def as_arrays(rows: Rows) -> Arrays:
    """Arrays from which ``from_arrays`` makes the same rows."""
    if sparse.issparse(rows):
        return {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return {"rows": rows}


def from_arrays(arrays: Arrays, dim: int) -> Rows:
    """The rows that ``as_arrays`` turned into arrays."""
    if "data" not in arrays:
        return arrays["rows"]
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, dim))


BOUND = 3.0
"""Standard deviations at which entries are clipped."""
WIDE = 10.0
"""The same, where rewards are predicted better if less is clipped."""
FAR_APART = 100.0
"""If a typical sparse arm has an entry above this times its lower quartile, "auto" scales columns."""
COMPARABLE, COMPARABLE_TO_LEAST = 300.0, 1e4
"""If the largest deviation of a dense column is above this times the median or the least one, columns have
different units. With one scale for all, many would never be learned: "auto" scales each of them by itself."""
_SURE, _BETTER = 1.0, 0.02
"""Nats, in all and for every reward, by which another scaling must predict better than the default."""
_ENOUGH, _MOST_REWARDS = 8, 256  # rewards to choose a scaling by
_CONSTANT = 1e-14  # times its largest entry: a column that deviates less counts as constant
_SMALLEST = 1e-300  # smallest standard deviation with a finite factor
_INNER, _OUTLIER = 0.95, 10.0  # entries beyond ten times the 95 % quantile of the deviations are outliers

Rounds = Sequence[tuple[Rows, Vector]]
"""The arms (n, dim) and rewards that each model has learned from."""


def fitted(
    wanted: str | None, arms: Rows, constant: float, rounds: Rounds = (), ridge: float = 1.0
) -> Scaling:
    """The scaling that was asked for. "auto" chooses by the look of the arms, and by their rewards so far."""
    dim = arms.shape[1]
    if wanted is None:
        return Scaling.none(dim, constant=constant * (_typical_length(arms) or 1.0))
    if wanted == "rows" or (wanted == "auto" and sparse.issparse(arms) and not _far_apart(arms)):
        return Scaling.rows(dim, constant=constant)
    columns = _Columns.of(without_outliers(arms))
    if not columns.live.any():  # there is only one arm, or all are equal
        return Scaling.rows(dim, constant=constant)
    first = columns.scaled(constant)
    if wanted != "auto" or sparse.issparse(arms):
        return first
    others = [columns.scaled(constant, bound=WIDE)]
    if columns.are_comparable:
        others.append(columns.scaled(constant, bound=WIDE, alike=True))
    return _most_likely(first, others, rounds, ridge)


def _far_apart(arms: Rows) -> bool:
    """Whether the typical sparse arm has one entry that dwarfs the others at length one."""
    rows = (abs(arms.data[start:stop]) for start, stop in itertools.pairwise(arms.indptr))
    ratios = [row.max() / np.quantile(row, 0.25, method="lower") for row in rows if row.all() and len(row)]
    return bool(ratios) and bool(np.median(ratios) > FAR_APART)


class _Columns(NamedTuple):
    """The arms of a warm-up, and the centre and deviation of every column.

    Of sparse arms these are 0 and the root mean square. A column that did not vary is scaled by its largest
    entry. A column that was always 0 has no known scale.
    """

    arms: Rows
    centre: Vector
    spread: Vector
    live: Rows
    """Whether a column varied."""

    @classmethod
    def of(cls, arms: Rows) -> "_Columns":
        largest = _largest(arms)
        unit = _power_of_two(largest)
        if sparse.issparse(arms):
            centre, spread = np.zeros(arms.shape[1]), _root_mean_square(arms, unit)
        else:
            first = arms[0] / unit
            beside = arms / unit - first  # so that an offset costs no digits
            centre, spread = (first + beside.mean(axis=0)) * unit, beside.std(axis=0) * unit
        live = (spread > _CONSTANT * largest) & (spread > _SMALLEST)
        return cls(arms, centre, np.where(live, spread, largest), live)

    @property
    def are_comparable(self) -> bool:
        """Whether columns may have the same unit."""
        spread = self.spread[self.live]
        most = min(COMPARABLE * np.median(spread), COMPARABLE_TO_LEAST * spread.min())
        return bool(spread.max() <= most)

    def scaled(self, constant: float, *, bound: float = BOUND, alike: bool = False) -> Scaling:
        """Centre columns (unless sparse), divide each by its deviation, clip, and make arms of length one.

        The length is one on average. If columns are ``alike``, all are divided by the largest deviation.
        """
        most = self.spread[self.live].max()
        spread = np.full_like(self.spread, most) if alike else self.spread
        is_sparse = sparse.issparse(self.arms)
        unknown = self.spread[self.live].min() if is_sparse else 1.0  # a new word: like the rarest
        factor = 1.0 / np.where(spread > _SMALLEST, spread, unknown)
        length = _length(Scaling.columns(self.centre, factor, bound=bound).apply(self.arms))
        reach = _largest(Scaling.columns(self.centre, factor).apply(self.arms)) / length
        return Scaling.columns(
            self.centre, factor / length, bound=bound / length, constant=constant, reach=reach
        )


# -- rewards ----------------------------------------------------------------------------------------


def _most_likely(first: Scaling, others: list[Scaling], rounds: Rounds, ridge: float) -> Scaling:
    """The scaling with which the rewards so far are predicted best; the first unless it is clearly worse.

    A small gain does not count: what is best for few rewards may lose in the long run.
    """
    rounds = [(arms[-_MOST_REWARDS:], rewards[-_MOST_REWARDS:]) for arms, rewards in rounds if len(rewards)]
    count = sum(len(rewards) for _, rewards in rounds)
    if count < _ENOUGH:
        return first
    everything = np.concatenate([rewards for _, rewards in rounds])
    largest = float(abs(everything).max()) or 1.0
    mean = float((everything / largest).mean())
    rounds = [(arms, rewards / largest - mean) for arms, rewards in rounds]
    if not any(rewards.any() for _, rewards in rounds):
        return first
    found = [_log_likelihood(scaling, rounds, ridge) for scaling in (first, *others)]
    best = int(np.argmax(found))
    return others[best - 1] if best and found[best] > found[0] + _SURE + _BETTER * count else first


def _log_likelihood(scaling: Scaling, rounds: Rounds, ridge: float) -> float:
    """The log-likelihood of the rewards in ridge regression on z, with the noise that makes them most likely.

    With K = I + ZZ'/ridge for each model it is -(n/2) ln sum r'K⁻¹r - (1/2) sum ln det K. By the chain rule
    this is how well each reward is predicted from those before it.
    """
    squares = log_det = 0.0
    count = 0
    for arms, rewards in rounds:
        rows = scaling.apply(arms)
        gram = rows @ rows.T
        kernel = (gram.toarray() if sparse.issparse(gram) else gram) / ridge + np.eye(len(rewards))
        try:
            root = np.linalg.cholesky(kernel)
        except np.linalg.LinAlgError:  # arms too long for the ridge: nothing can be said
            return -math.inf
        squares += float(np.square(np.linalg.solve(root, rewards)).sum())
        log_det += 2.0 * float(np.log(np.diag(root)).sum())
        count += len(rewards)
    return -0.5 * (count * math.log(squares) + log_det)


# -- outliers ---------------------------------------------------------------------------------------


def without_outliers(arms: Rows) -> Rows:
    """The arms, where an entry that is far beyond nearly all others of its column counts as one of them.

    Deviations are taken from the median, or from 0 if arms are sparse. Deviations of 0 do not count: most
    entries of a column may be equal. Without outliers the arms are returned as they are.
    """
    if sparse.issparse(arms):
        order = np.lexsort((abs(arms.data), arms.indices))
        columns, sizes = arms.indices[order], abs(arms.data[order])
        zeros = np.bincount(columns[sizes == 0.0], minlength=arms.shape[1])
        ends = np.cumsum(np.bincount(columns, minlength=arms.shape[1]))
        starts = np.concatenate([[0], ends[:-1]]) + zeros
        places = starts + (_INNER * np.maximum(ends - starts - 1, 0)).astype(np.intp)
        inner = sizes[np.minimum(places, len(sizes) - 1)][arms.indices] if len(sizes) else sizes
        is_outlier = abs(arms.data) / _OUTLIER > inner
        if not (is_outlier & (inner > 0.0)).any():
            return arms
        data = np.where(is_outlier, np.copysign(inner, arms.data), arms.data)
        return sparse.csr_array((data, arms.indices, arms.indptr), shape=arms.shape)
    with np.errstate(over="ignore"):
        centre = np.median(arms, axis=0)
        deviations = arms - centre
        sizes = np.sort(abs(deviations), axis=0)
        zeros = (sizes == 0.0).sum(axis=0)
        places = zeros + (_INNER * np.maximum(len(arms) - zeros - 1, 0)).astype(np.intp)
        inner = np.take_along_axis(sizes, np.minimum(places, len(arms) - 1)[np.newaxis], axis=0)
    is_outlier = abs(deviations) / _OUTLIER > inner
    if not is_outlier.any():
        return arms
    return np.where(is_outlier, centre + np.copysign(inner, deviations), arms)


# -- sizes ------------------------------------------------------------------------------------------


def _typical_length(arms: Rows) -> float:
    """The root mean square of the lengths, without outliers."""
    unit = float(_power_of_two(_largest(arms).max(initial=0.0)))
    squares = (arms / unit).power(2).sum(axis=1) if sparse.issparse(arms) else row_norms_sq(arms / unit)
    return _length(without_outliers(np.sqrt(np.asarray(squares, np.float64)).reshape(-1, 1))) * unit


def _length(arms: Rows) -> float:
    """The root mean square of the lengths."""
    unit = float(_power_of_two(_largest(arms).max(initial=0.0)))
    if sparse.issparse(arms):
        return length_of(arms.data / unit) / math.sqrt(arms.shape[0]) * unit
    return float(np.sqrt(row_norms_sq(arms / unit).mean())) * unit


def _largest(arms: Rows) -> Vector:
    """The largest absolute value of every column."""
    largest = abs(arms).max(axis=0)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest, np.float64).ravel()


def _root_mean_square(arms: Rows, unit: Vector) -> Vector:
    """The root mean square of every column, including zeros."""
    squares = np.square(arms.data / unit[arms.indices])
    sums = np.bincount(arms.indices, weights=squares, minlength=arms.shape[1])
    return np.asarray(np.sqrt(sums / arms.shape[0]) * unit)


def _power_of_two(largest: Rows) -> Rows:
    """A power of two of about this size. Division by it loses no digit, and the result can be squared."""
    return np.ldexp(1.0, np.clip(np.frexp(largest)[1] - 1, -1022, 1023))
