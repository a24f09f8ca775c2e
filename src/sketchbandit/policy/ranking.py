"""How a policy ranks several arms."""

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arms import Arms, DenseArms, OfferedArms, View
from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError
from sketchbandit.explore import ArmCandidates, Choice, Ranking, upper_bound
from sketchbandit.kernels import kernels
from sketchbandit.policy.choosing import Choosing, told
from sketchbandit.policy.propensity import Places, placed, ranked, shared_with_all
from sketchbandit.precision import DenseInverse, LowRankInverse
from sketchbandit.sketch.checks import check_count
from sketchbandit.thread_safety import holds_the_lock

Random = np.random.Generator
_MOST_PICKED = 0.5  # share of all arms: if more are ranked, scores are taken from the scan of all


class RankingPolicy(Choosing):
    """The methods that rank several arms. None of them learns from a reward."""

    def top(self, arms: Any, k: int, *, random: Random | None = None) -> NDArray[np.intp]:
        """The indices of the ``k`` best arms, best first. Ties go to the lowest index.

        If the rule is random, every place is drawn separately, among the arms that are left.

        Parameters
        ----------
        arms, random
            As for ``select``.
        k : int
            The number of places, at most the number of arms.

        Returns
        -------
        array of int, shape (k,)

        Examples
        --------
        >>> import sketchbandit as sb
        >>> sb.oful(2).top([[1.0, 0.0], [0.0, 2.0]], 2)
        array([1, 0])

        """
        places, _, read = self._ranked(arms, k, random, with_chances=False)
        self._saw(read)
        return np.array(places.indices, dtype=np.intp)

    def slate(self, arms: Any, k: int, *, random: Random | None = None) -> list[Choice]:
        """Rank as ``top`` does, and return a ``Choice`` per place.

        The probability of each is that of its place, given the places before.

        Examples
        --------
        >>> from sketchbandit import ExactSketch, LinUCB, UCB
        >>> policy = LinUCB(ExactSketch(2), explore=UCB(0.1, floor=0.5, seed=1))
        >>> [choice.probability for choice in policy.slate([[1.0, 0.0], [0.0, 2.0]], 2)]
        [0.75, 1.0]

        """
        places, candidates, read = self._ranked(arms, k, random, with_chances=True)
        if candidates is None:  # it is enough to score the arms that were chosen
            candidates = self._candidates(self._read(read.raw_rows(np.array(places.indices))))
            chosen = [
                told(candidates, at, chance)._replace(index=index)
                for at, (index, chance) in enumerate(zip(*places, strict=True))
            ]
        else:
            chosen = [told(candidates, *place) for place in zip(*places, strict=True)]
        self._saw(read)
        return chosen

    @holds_the_lock
    def rank(
        self, arms: Any, k: int = 1, *, random: Random | None = None, probabilities: bool = True
    ) -> Ranking:
        """Rank as ``slate`` does, and return arrays. With ``k = 1``, choose as ``select`` does.

        Parameters
        ----------
        arms, random
            As for ``select``.
        k : int
            The number of places, at most the number of arms.
        probabilities : bool
            False leaves the probabilities out. This saves most of the time if they have to be estimated.

        Returns
        -------
        Ranking
            Arrays of shape (k,).

        Examples
        --------
        >>> from sketchbandit import ExactSketch, LinUCB
        >>> LinUCB(ExactSketch(2)).rank([[1.0, 0.0], [0.0, 2.0]], 2).score
        array([0.2, 0.1])

        """
        with self._lock:
            if k != 1:
                return self._rank_many(arms, k, random, with_chances=probabilities)
            if not probabilities:
                return self._rank_one(arms, random)
            index, chance, mean, width, score = self.choose(arms, random=random)
            return _of_one(index, mean, width, score, chance)

    # -- how ----------------------------------------------------------------------------------------

    def _rank_one(self, arms: Any, random: Random | None) -> Ranking:
        generator = self._generator(random)
        if self._is_plain(arms):  # the fast path
            own = self._search(View(arms, self._lens), self._explore, generator)
            if own is not None:
                index = shared_with_all(own, len(arms), self._share, generator)
                found = self._quickly(View(arms[index : index + 1], self._lens), index)
                if found is not None:
                    if self._is_warming:
                        self._saw(DenseArms(arms))
                    return found
        with self._unless_refused(generator):
            read = self._read(arms)
            own = self._own(read, self._explore, generator)
            index = shared_with_all(own, len(read), self._share, generator)
            found = self._scored(read.some(slice(index, index + 1)), np.array([index]), np.zeros(1))
            self._columns.remember(arms)
        self._saw(read)
        return found

    def _quickly(self, arm: View, index: int) -> Ranking | None:
        """Do ``_scored`` for one dense arm in compiled code; None if that is impossible."""
        theta, inverse = self._estimate.linear_theta, self._precision.inverse
        compiled = None if self._estimate.has_link else kernels()
        if compiled is None or theta is None or not isinstance(inverse, (DenseInverse, LowRankInverse)):
            return None
        means, norms_sq = np.empty(1), np.empty(1)
        compiled.scan(*arm, theta, means, norms_sq)
        squares = inverse.quadratics_of(arm, norms_sq)
        radius = self._radius if self._confidence is None else self.radius
        mean, norm_sq, baseline = means.item(), norms_sq.item(), self._estimate.baseline
        if squares is None or not math.isfinite(abs(mean) + radius * math.sqrt(norm_sq / inverse.shift)):
            return None
        width = math.sqrt(squares.item())
        return _of_one(index, mean + baseline, width, upper_bound(mean, radius, width) + baseline, 0.0)

    def _rank_many(self, arms: Any, k: int, random: Random | None, *, with_chances: bool) -> Ranking:
        places, candidates, read = self._ranked(arms, k, random, with_chances=with_chances)
        index, chances = np.array(places.indices, dtype=np.intp), np.array(places.chances)
        if candidates is not None and isinstance(read, DenseArms) and len(index) > _MOST_PICKED * len(read):
            mean, width = candidates.means[index], candidates.widths()[index]
            score = upper_bound(mean, candidates.radius, width) + candidates.baseline
            found = Ranking(index, chances, candidates.rewards[index], width, score)
        else:
            found = self._scored(read.some(index), index, chances)
        self._saw(read)
        return found

    def _scored(self, arms: Arms, index: AnyArray, chances: AnyArray) -> Ranking:
        """The ranking with exactly these arms."""
        candidates = self._candidates(arms)
        width = candidates.widths()
        score = upper_bound(candidates.means, candidates.radius, width) + candidates.baseline
        return Ranking(index, chances, candidates.rewards, width, score)

    def _ranked(
        self, arms: Any, k: int, random: Random | None, *, with_chances: bool
    ) -> tuple[Places, ArmCandidates | None, Any]:
        """The places, and the candidates unless only few arms were scored. The caller must call ``_saw``."""
        wanted, read, rule = check_count("k", k, at_least=1), self._read(arms), self._explore
        if wanted > len(read):
            raise InputError(f"k is {wanted}, but there are {len(read)} arms")
        generator = self._generator(random)
        if isinstance(read, OfferedArms) and not rule.draws:
            with nullcontext() if self._leaves_no_trace else self._unless_refused(generator):
                order = self._best_offered(read, wanted, rule, generator)
                return placed(order, len(read), rule.uniform_share, generator), None, read
        candidates = self._candidates(read)
        with self._unless_refused(generator):
            places = ranked(candidates, wanted, rule, generator, with_chances=with_chances)
        self._columns.remember(arms)
        return places, candidates, read


def _of_one(index: int, mean: float, width: float, score: float, chance: float) -> Ranking:
    numbers = np.array(((chance,), (mean,), (width,), (score,)))
    return Ranking(np.array((index,), dtype=np.intp), *numbers)
