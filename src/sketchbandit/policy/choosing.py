"""How a policy chooses."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arms import (
    Arms,
    Batch,
    DenseArms,
    Scan,
    batch_of,
    in_set,
    is_vector,
    read_arms,
    read_sets,
    refuse,
)
from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Candidates, upper_bound
from sketchbandit.policy.joined import JoinedPolicy
from sketchbandit.sharing import holds_the_lock
from sketchbandit.sketch.checks import check_count


class Choosing(JoinedPolicy):
    """The verbs that change nothing: select, top, and the numbers they follow from."""

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
                and arms.shape[1] == self._plain_dim
                and arms.flags.c_contiguous
                and len(arms)
            ):
                index = self._search(arms)
                return self._best(self._read(arms), 1)[0] if index is None else index
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

        >>> from sketchbandit import ExactSketch, LinUCB
        >>> policy = LinUCB(ExactSketch(2))
        >>> policy.select_many([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0]]])
        array([1, 0])
        """
        sets = read_sets(batch)
        ready, found, theta = self._ready(sets), None, self._estimate.linear_theta
        if ready is not None and theta is not None:
            found = self._explore.search_many(*ready, theta, self._precision, self.radius)
        chosen = np.full(len(sets), -1, dtype=np.intp) if found is None else found
        known = self._columns.names
        for number in np.flatnonzero(chosen < 0).tolist():
            try:
                if is_vector(sets[number]):
                    raise InputError("one vector is no set of arms (arms, dim); for one set there is select")
                chosen[number] = self.select(sets[number])
            except (InputError, InputTypeError) as error:
                self._columns.names = known
                raise in_set(number, error) from error
        return chosen

    def _ready(self, sets: AnyArray | list[Any]) -> Batch | None:
        """All the arms of a batch in one array, if they can be read as they are."""
        return batch_of(sets, self._dim, self._dtype)

    def top(self, arms: Any, k: int) -> NDArray[np.intp]:
        """The indices of the ``k`` arms that come first, best first, ties to the lowest."""
        wanted = check_count("k", k, at_least=1)
        best = np.array(self._best(self._read(arms), wanted), dtype=np.intp)
        self._columns.remember(arms)
        return best

    def mean(self, arms: Any) -> Any:
        """The mean reward of every arm, (K,); a number for a single arm (dim,)."""
        means = self._scan(self._read(arms)).means
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
        return self._checked(self._explore.choose(self._candidates(arms), count), count, len(arms))

    def _checked(self, answer: Any, count: int, arms: int) -> list[int]:
        """What a rule has answered, if it is ``count`` different arms."""
        try:
            chosen = [operator.index(index) for index in answer]
        except TypeError:
            chosen = []
        if len(set(chosen)) != count or len(chosen) != count or not all(0 <= i < arms for i in chosen):
            raise InputError(
                f"{type(self._explore).__name__}.choose must return {count} different indices from 0 to "
                f"{arms - 1}, as a list, got {answer!r}"
            )
        return chosen

    def _candidates(self, arms: Arms) -> Candidates:
        """The arms as a rule sees them, if all of their scores are finite."""
        radius, scan = self.radius, self._scan(arms)
        with np.errstate(over="ignore"):
            most = np.abs(scan.means).max() + radius * np.sqrt(scan.norms_sq.max() / self._precision.shift)
        if not math.isfinite(most):
            raise refuse(arms, scan.norms_sq, scan.means)
        return Candidates(scan, self._precision, radius)

    def _scan(self, arms: Arms) -> Scan:
        """Means and norms, if all of them are finite."""
        self._precision.sync()  # an estimate of the user's may not
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self._estimate.scan(arms)
        if not (np.isfinite(scan.norms_sq).all() and np.isfinite(scan.means).all()):
            raise refuse(arms, scan.norms_sq, scan.means)
        return scan
