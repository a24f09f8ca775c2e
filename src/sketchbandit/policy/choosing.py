"""How a policy chooses an arm."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arms import (
    Arms,
    Batch,
    DenseArms,
    Offer,
    OfferedArms,
    View,
    batch_of,
    in_set,
    is_vector,
    read_sets,
)
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Candidates, Choice, Explore, Scores, upper_bound
from sketchbandit.explore.screening import Aim, screened
from sketchbandit.explore.screening_many import best_of_each, can_share
from sketchbandit.kernels.view import COLUMNS, KIND
from sketchbandit.policy.propensity import best_of, chance_of, check_generator, shared_with_all
from sketchbandit.policy.scoring import Scoring, given_back
from sketchbandit.thread_safety import holds_the_lock

Random = np.random.Generator
_NUMBERS_ON_HOST = 1 << 23  # of arms that are brought to the host at a time
_FEW_ARMS = 2_000  # up to so many arms of a catalogue have their probabilities computed on the host


class Choosing(Scoring):
    """The methods that choose one arm. None of them learns from a reward.

    ``random`` is the generator to draw from if the rule is random. The default is the policy's own.
    """

    @holds_the_lock
    def select(self, arms: Any, *, random: Random | None = None) -> int:
        """Choose an arm, and return its index.

        With the default rule, UCB, this is the arm with the largest ``ucb``. Ties go to the lowest index.

        Parameters
        ----------
        arms : array of shape (K, dim), sparse matrix, DataFrame or Offer
            One row of features per arm. Anything that numpy can convert is taken. ``Catalogue.offer`` makes
            an ``Offer``.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the policy's own.

        Returns
        -------
        int
            The index of the arm chosen, from 0 to K - 1.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> policy.select([[1.0, 0.0], [0.0, 2.0]])
        1

        """
        with self._lock:
            generator = self._random if random is None else check_generator(random)
            if self._is_plain(arms):  # the fast path
                own = self._search(View(arms, self._lens), self._explore, generator)
                if own is not None:
                    if self._is_warming:
                        self._saw(DenseArms(arms))
                    return shared_with_all(own, len(arms), self._share, generator) if self._share else own
            if isinstance(arms, Offer) and self._leaves_no_trace:
                return self._own(self._read(arms), self._explore, generator)
            with self._unless_refused(generator):
                read = self._read(arms)
                own = self._own(read, self._explore, generator)
                self._columns.remember(arms)
            self._saw(read)
            return shared_with_all(own, len(read), self._share, generator)

    @property
    def screens_catalogues(self) -> bool:
        """Whether a choice from a catalogue excludes most arms at a glance (docs/catalogues.md).

        It does unless columns are standardised, rewards are not linear, or the rule needs every mean.
        """
        lens = self._lens
        is_linear = not self._is_projected and (not len(lens) or lens[KIND] != COLUMNS)
        return is_linear and self._explore.aims and self._estimate.linear_theta is not None

    @property
    def _leaves_no_trace(self) -> bool:
        """Whether a choice changes nothing, not even the generator: then nothing is to be restored."""
        return not (self._explore.draws or self._share or self._is_warming)

    def _is_plain(self, arms: Any) -> bool:
        """Whether compiled loops can read the arms without a conversion."""
        return (
            type(arms) is np.ndarray
            and arms.dtype == self._dtype
            and arms.ndim == 2
            and arms.shape[1] == self._plain_dim
            and arms.flags.c_contiguous
            and len(arms) > 0
        )

    def choose(self, arms: Any, *, random: Random | None = None) -> Choice:
        """Choose as ``select`` does, and also return the probability, mean, width and score of the arm.

        The probability is exact, except for Thompson sampling, where it is an estimate (``Thompson``).
        Log it as the propensity if you want to evaluate other policies later.

        Parameters
        ----------
        arms, random
            As for ``select``.

        Returns
        -------
        Choice
            The index of the arm chosen, its probability, mean reward, confidence width and score.

        Examples
        --------
        >>> from sketchbandit import EpsilonGreedy, ExactSketch, LinUCB
        >>> policy = LinUCB(ExactSketch(2), explore=EpsilonGreedy(0.5, seed=1))
        >>> policy.choose([[1.0, 0.0], [0.0, 2.0]])
        Choice(index=0, probability=0.75, mean=0.0, width=1.0, score=0.0)

        """
        generator = self._generator(random)
        with self._unless_refused(generator):
            read = self._read(arms)
            choice = self._chosen(read, self._explore, generator)
            self._columns.remember(arms)
        self._saw(read)
        return choice

    @holds_the_lock
    def probabilities(self, arms: Any) -> Any:
        """The probability that the next choice is this arm, for every arm, shape (K,).

        It is exact, except for Thompson sampling, where it is an estimate (``Thompson``). The call changes
        nothing, neither what was learned nor the random generator.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2, explore=sb.EpsilonGreedy(0.5, seed=1))
        >>> policy.probabilities([[1.0, 0.0], [0.0, 2.0]])
        array([0.75, 0.25])

        """
        return given_back(self.scores(arms).probabilities(), arms)

    def scores(self, arms: Any) -> Scores:
        """The scores of the arms as of now, from which probabilities can be computed later."""
        return Scores.of(self._candidates(self._on_host_if_few(self._read(arms))), self._explore)

    # -- several sets of arms -------------------------------------------------------------------------

    def select_many(self, batch: Any, *, random: Random | None = None) -> NDArray[np.intp]:
        """Choose from B sets of arms at once, and return B indices.

        The choices are those of ``select`` for one set after another, but faster. During a warm-up, all sets
        are read with the scaling from before the call. Thompson sampling with ``per="batch"`` draws once for
        the whole batch.

        Parameters
        ----------
        batch : array of shape (B, K, dim), or list of B arrays
            The sets in a list may have different numbers of arms.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the policy's own.

        Returns
        -------
        array of int, shape (B,)
            The index of the arm chosen in each set.

        Examples
        --------
        >>> from sketchbandit import ExactSketch, LinUCB
        >>> policy = LinUCB(ExactSketch(2))
        >>> policy.select_many([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0]]])
        array([1, 0])

        """
        sets, generator, share = read_sets(batch), self._generator(random), self._share
        seen: list[Arms] = []
        with self._unless_refused(generator):
            rule = self._explore.for_batch(self._precision, generator)
            ready = None if self._is_warming else self._ready(sets)
            found = None if ready is None else self._search_many(ready, rule, generator)
            if found is None and not share:
                found = self._best_of_offers(sets, rule)
            chosen = np.full(len(sets), -1, dtype=np.intp) if found is None else found
            number = 0
            try:
                for number in np.flatnonzero(chosen < 0).tolist():
                    read = self._read_set(sets[number]) if ready is None else ready.of(number)
                    own = self._own(read, rule, generator)
                    if rule.draws and share:
                        own = shared_with_all(own, len(read), share, generator)
                    chosen[number] = own
                    seen.append(read)
            except (InputError, InputTypeError) as error:
                raise in_set(number, error) from error
        if share and not rule.draws:  # the rule itself has drawn nothing, so the order of draws is the same
            counts = [arms.shape[0] if hasattr(arms, "shape") else len(arms) for arms in sets]
            for number, count in enumerate(counts):
                chosen[number] = shared_with_all(int(chosen[number]), count, share, generator)
        self._saw(*seen)
        return chosen

    def choose_many(self, batch: Any, *, random: Random | None = None) -> list[Choice]:
        """Do ``choose`` for B sets of arms at once. The choices are those of ``select_many``.

        Parameters
        ----------
        batch, random
            As for ``select_many``.

        Returns
        -------
        list of B Choice

        """
        sets, generator, choices = read_sets(batch), self._generator(random), []
        seen: list[Arms] = []
        with self._unless_refused(generator):
            rule = self._explore.for_batch(self._precision, generator)
            for number, arms in enumerate(sets):
                try:
                    read = self._read_set(arms)
                    choices.append(self._chosen(read, rule, generator))
                    seen.append(read)
                except (InputError, InputTypeError) as error:
                    raise in_set(number, error) from error
        self._saw(*seen)
        return choices

    def probabilities_many(self, batch: Any) -> Any:
        """``probabilities`` for B sets of arms at once.

        The call changes nothing. It is faster than one set at a time, except for Thompson sampling.

        Parameters
        ----------
        batch : array of shape (B, K, dim), or list of B arrays
            As for ``select_many``.

        Returns
        -------
        array of shape (B, K), or list of B arrays
            An array for an array, a list for a list.

        Examples
        --------
        >>> from sketchbandit import EpsilonGreedy, ExactSketch, LinUCB
        >>> policy = LinUCB(ExactSketch(2), explore=EpsilonGreedy(0.5, seed=1))
        >>> policy.probabilities_many([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0]]])
        [array([0.75, 0.25]), array([1.])]

        """
        sets, rule = read_sets(batch), self._explore
        ready = None if self._is_warming else self._ready(sets)
        theta = self._estimate.linear_theta
        flat = None
        if ready is not None and theta is not None and not (rule.by_rewards and self._estimate.has_link):
            flat = rule.chances_many(ready, theta, self._precision, self.radius)
        if ready is None or flat is None:
            found = [self._chances_of(number, arms) for number, arms in enumerate(sets)]
            return np.array(found) if isinstance(sets, np.ndarray) else found
        for number in np.flatnonzero(np.isnan(flat[ready.bounds[:-1]])).tolist():
            own = Scores.of(self._candidates(ready.of(number)), rule).own()
            flat[ready.bounds[number] : ready.bounds[number + 1]] = own
        shared = _shared(flat, ready.bounds, self._share)
        return (
            shared.reshape(sets.shape[:2])
            if isinstance(sets, np.ndarray)
            else np.split(shared, ready.bounds[1:-1])
        )

    # -- how ----------------------------------------------------------------------------------------

    def _chances_of(self, number: int, arms: Any) -> Vector:
        """The probabilities for one set of a batch."""
        try:
            return Scores.of(self._candidates(self._read(arms)), self._explore).probabilities()
        except (InputError, InputTypeError) as error:
            raise in_set(number, error) from error

    def _read_set(self, arms: Any) -> Arms:
        """Read one set of a batch."""
        if is_vector(arms):
            raise InputError(
                "a set of arms must have shape (arms, dim), got one vector; for a single set use select or "
                "choose"
            )
        read = self._read(arms)
        self._columns.remember(arms)
        return read

    def _own(self, arms: Arms, rule: Explore, random: Random) -> int:
        """The choice of the rule, before the uniform share is applied."""
        if isinstance(arms, OfferedArms):
            return self._best_offered(arms, 1, rule, random)[0]
        own = self._search(arms.view, rule, random) if isinstance(arms, DenseArms) else None
        return best_of(self._candidates(arms), 1, rule, random)[0] if own is None else own

    def _on_host_if_few(self, arms: Any) -> Any:
        """Copy the arms of a small catalogue to the host, for rules that compare all pairs of arms."""
        is_few = isinstance(arms, OfferedArms) and len(arms) <= _FEW_ARMS
        return self._read(arms.raw_rows(slice(None))) if is_few else arms

    def _best_offered(self, arms: OfferedArms, count: int, rule: Explore, random: Random) -> list[int]:
        """The rule's choice from a catalogue. A cheap bound excludes most arms if the rule allows it."""
        theta, settled = self._estimate.linear_theta, rule.settled(self._precision, random)
        aim = None if theta is None else self._aim_of(settled, theta)
        if aim is None:
            return best_of(self._candidates(arms), count, settled, random)
        if not aim.bonus and not aim.vector.any():  # all scores are 0
            return list(range(count))
        if not arms.is_linear and (aim.rounding or arms.library.widest != arms.library.xp.float64):
            found = np.arange(len(arms))  # a difference from the mean of a column may lose all its digits
        else:
            found, is_settled = screened(arms, aim, self._precision, count)
            if is_settled:
                return [int(index) for index in found[:count]]
        return self._best_on_host(arms, found, count, settled, random)

    def _best_on_host(
        self, arms: OfferedArms, found: AnyArray, count: int, rule: Explore, random: Random
    ) -> list[int]:
        """The best of some arms by index, scored as numpy arms are, a piece of them at a time."""
        step = max(count, _NUMBERS_ON_HOST // max(1, arms.dim))
        best: AnyArray = found[:0]
        for start in range(0, len(found), step):
            some = np.sort(np.concatenate([best, found[start : start + step]]))  # ties go to the lowest
            read = self._read(arms.raw_rows(some))
            most = min(count, len(some))
            best = some[
                [self._own(read, rule, random)]
                if most == 1
                else best_of(self._candidates(read), most, rule, random)
            ]
        return [int(index) for index in best]

    def _best_of_offers(self, sets: Any, rule: Explore) -> AnyArray | None:
        """The best arm of every offer of one catalogue, -1 if scores are close; None: choose one by one."""
        theta = self._estimate.linear_theta
        if theta is None or rule.draws or self._is_warming or not len(sets):
            return None
        if not all(isinstance(one, Offer) for one in sets):
            return None
        read = [self._read(one) for one in sets]
        offers = [one for one in read if isinstance(one, OfferedArms)]
        aim = self._aim_of(rule, theta)
        if aim is None or len(offers) < len(read) or not can_share(offers, aim, self._precision):
            return None
        return best_of_each(offers, aim, self._precision)

    def _aim_of(self, rule: Explore, theta: Vector) -> Aim | None:
        aim = rule.aim(theta, self.radius)
        if aim is None or self._dtype == np.float64:
            return aim
        return aim._replace(rounding=float(np.finfo(self._dtype).eps))

    def _search(self, arms: View, rule: Explore, random: Random) -> int | None:
        """The rule's choice among dense arms in one compiled call; None if that is impossible."""
        theta = self._estimate.linear_theta
        if theta is None or (rule.by_rewards and self._estimate.has_link):
            return None
        radius = self._radius if self._confidence is None else self.radius
        index = rule.search(arms, theta, self._precision, radius, random)
        return None if index is None or index < 0 else index

    def _search_many(self, ready: Batch, rule: Explore, random: Random) -> AnyArray | None:
        theta = self._estimate.linear_theta
        if theta is None or (rule.draws and self._share) or (rule.by_rewards and self._estimate.has_link):
            return None
        return rule.search_many(ready, theta, self._precision, self.radius, random)

    def _ready(self, sets: AnyArray | list[Any]) -> Batch | None:
        """All the arms of a batch in one array, if they need no conversion; else None."""
        ready = batch_of(sets, self._dim, self._dtype)
        return ready if ready is None else ready._replace(arms=View(ready.arms.array, self._lens))

    def _chosen(self, arms: Arms, rule: Explore, random: Random) -> Choice:
        """``choose`` with a given rule, which may hold one draw for a whole batch."""
        own = self._own(arms, rule, random)
        index = shared_with_all(own, len(arms), self._share, random)
        if isinstance(arms, OfferedArms) and not self._explore.draws:  # one arm is enough
            share, one = self._share, self._candidates(self._read(arms.raw_rows(slice(index, index + 1))))
            choice = told(one, 0, share / len(arms) + (1.0 - share) * (index == own))._replace(index=index)
            one.keep()
            return choice
        candidates = self._candidates(self._on_host_if_few(arms))
        choice = told(candidates, index, chance_of(self._explore, candidates, index, own))
        candidates.keep()
        return choice


def _shared(flat: Vector, bounds: AnyArray, share: float) -> Vector:
    """(1 - share)·chances + share/K, for the arms of many sets."""
    if not share:
        return flat
    counts = np.diff(bounds)
    return (1.0 - share) * flat + np.repeat(share / counts, counts)


def told(candidates: Candidates, index: int, probability: float) -> Choice:
    """The ``Choice`` that describes the arm at ``index``."""
    width, mean = candidates.width(index), float(candidates.rewards[index])
    score = upper_bound(float(candidates.means[index]), candidates.radius, width) + candidates.baseline
    return Choice(index, probability, mean, width, score)
