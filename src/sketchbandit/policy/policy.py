"""A policy: features, a posterior, an exploration rule and a watch, joined."""

import copy
import math
from collections.abc import Sequence
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sketchbandit.arms import (
    Arms,
    Offer,
    batch_counts,
    in_set,
    is_scalar,
    is_vector,
    norm_sq_of,
    norms_sq_of,
    read_reward,
    read_rewards,
    read_sets,
    refuse,
)
from sketchbandit.array_api import on_host
from sketchbandit.arrays import AnyArray, Arrays, Rows, RowsLike, Scalars, Vector, taken_from
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.estimate import Estimate, Linear, RewardScale
from sketchbandit.explore import DEFAULT_BETA, UCB, Choice, Explore, Ranking, Scores
from sketchbandit.explore.base import Auto, chances_with_share
from sketchbandit.explore.search import Question, chances_many, search_many
from sketchbandit.features import Features, Intercept, Kind, Scaling
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.policy.chooser import Choices, Chooser, Random, best_of_offers, choices_of, given_back
from sketchbandit.policy.health import Complaints, Health, are_enough_to_try, say, untried_arms_sentence
from sketchbandit.policy.learner import (
    ArmsLike,
    InitialState,
    Learner,
    Part,
    WarmUp,
    content_of,
    copy_of_rule,
    restored_parts,
)
from sketchbandit.policy.posterior import (
    Clock,
    Posterior,
    read_baseline,
    read_forget,
    refused,
    why_no_baseline,
)
from sketchbandit.policy.watch import EVERY, Watch
from sketchbandit.precision import Precision
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.row_input import ColumnNames, row_source
from sketchbandit.theory import Confidence
from sketchbandit.thread_safety import Lock, holds_the_lock

_KNOWN = 0.5  # of its largest width: an arm with a larger width is hardly known


class CommonSettings(TypedDict, total=False):
    """Settings of ``LinUCB`` that every recipe passes on."""

    beta: float | Confidence | Auto | None
    explore: Explore | None
    rewards: Estimate | None
    forget: float | None
    baseline: bool | None


class Settings(CommonSettings, total=False):
    """The settings that recipes share. ``LinUCB`` has their defaults, and ``oful`` says what they mean."""

    ridge: float
    scaling: Kind
    intercept: Intercept


class LinUCB(Learner):
    """A policy made of three parts: a sketch, a reward model and an exploration rule.

    By default it chooses the arm with the largest upper confidence bound x'theta + beta·sqrt(x' A^-1 x).
    Here A = (ridge + alpha) I + S'S, with S and alpha of the sketch, and theta = A^-1 (sum of reward·x).
    With a ``DyadicBlockSketch`` this is Alg. 2 of the paper (DBSLinUCB). With other sketches it is one of the
    algorithms that the paper compares with. ``adaptive``, ``oful``, ``soful``, ``cbscfd`` and ``dbslinucb``
    make such policies with fewer settings. ``sketchbandit.Policy`` is another name of this class, for types
    and checks where the algorithm does not matter.

    Threads may share a policy: every public call is atomic.

    Parameters
    ----------
    sketch : Sketch
        A fresh sketch, an instance of any subclass of ``sketchbandit.Sketch``. From now on the policy updates
        it. If a scaling has to be learned, the policy works with copies: read ``policy.sketch``.
    ridge : float
        lambda, the ridge parameter, in units of a squared arm norm.
    beta : float or Confidence or str, optional
        The confidence radius, short for ``explore=UCB(beta)``. A float is a constant radius, a ``Confidence``
        is that of the theorem, and "auto" follows the standard deviation of the rewards. Default 0.1.
    explore : Explore, optional
        The exploration rule: ``UCB`` (the default), ``Thompson``, ``InverseGap``, ``EpsilonGreedy``,
        ``Greedy`` or a rule of your own. The policy makes a copy.
    rewards : Estimate, optional
        The reward model: ``Linear()`` (the default), ``Logistic()``, ``Poisson()``, ``Robust()`` or a model
        of your own (docs/beyond-linear.md). The policy makes a copy.
    forget : float, optional
        How fast to forget old rounds, for rewards that drift. A number up to 1 is a factor per round, such as
        0.999. A number above 1 is a half-life in rounds, such as 700. None (the default) never forgets
        (docs/bandits.md).
    baseline : bool, optional
        Whether to learn from rewards less their mean, so that a constant added to all rewards changes no
        choice, and an arm that was never tried has the mean of all rewards (docs/bandits.md). Default: not,
        except for ``adaptive`` and in a ``PerAction``.
    scaling : str or Scaling or None
        How features are scaled: "rows", "columns" or "auto" (docs/scaling.md). The ``scaling`` of another
        policy can be given too. Default None: features stay as they are.
    intercept : bool or float
        Whether a constant feature is added to every arm. A float sets the length of that feature. The sketch
        then needs one column more than an arm has.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchbandit import FrequentDirections
    >>> policy = LinUCB(FrequentDirections(3, size=2), ridge=1.0, beta=0.1)
    >>> arms = np.eye(3)
    >>> policy.select(arms)
    0
    >>> policy.update(arms[0], reward=-1.0)
    >>> policy.select(arms)
    1
    >>> policy.mean(arms)
    array([-0.5,  0. ,  0. ])

    """

    kind = "linucb"

    def __init__(
        self,
        sketch: Sketch,
        *,
        ridge: float = 1.0,
        beta: float | Confidence | Auto | None = None,
        explore: Explore | None = None,
        rewards: Estimate | None = None,
        forget: float | None = None,
        baseline: bool | None = None,
        scaling: Kind = None,
        intercept: Intercept = False,
    ) -> None:
        for name, given, wanted in (
            ("sketch", sketch, Sketch),
            ("rewards", rewards or Linear(), Estimate),
        ):
            if isinstance(given, type):
                raise InputTypeError(
                    f"{name} is the class {given.__name__}; give an instance, made by calling it"
                )
            if not isinstance(given, wanted):
                kind = type(given).__name__
                raise InputTypeError(
                    f"{name} is a {kind}; give an instance of sketchbandit.{wanted.__name__} or of a subclass"
                )
        if sketch.count:
            raise InputError(
                f"the sketch has seen {sketch.count} rows without their rewards; give a fresh sketch"
            )
        rule = copy_of_rule(UCB() if explore is None else explore)
        model = copy.deepcopy(rewards or Linear())
        if rule.beta is not None and beta is not None:
            raise InputError(f"beta is {beta}, but explore={rule!r} has a beta of its own; leave out beta")
        radius = next(given for given in (rule.beta, beta, DEFAULT_BETA) if given is not None)
        features = self._make_features(sketch, scaling, intercept)
        posterior = Posterior(sketch, model, ridge=ridge, beta=radius, forget=read_forget(forget))
        self._wants_baseline = read_baseline(baseline)
        self._join(features, posterior, rule)
        if baseline:
            posterior.use_baseline(True, self._chooser.rule)
        self._prepare_warm_up()

    def _make_features(self, sketch: Sketch, scaling: Kind, intercept: Intercept) -> Features:
        return Features.of(sketch.dim - bool(intercept), sketch.dtype, scaling, intercept)

    def _join(self, features: Features, posterior: Posterior, rule: Explore) -> None:
        self._features, self._posterior = features, posterior
        posterior.explore_by(rule)
        self._chooser = Chooser(rule)
        self._watch = Watch(posterior)
        self._warm_up = WarmUp()
        self._lock = self._make_lock()

    def _become_part(
        self, lock: Lock, features: Features, scale: RewardScale, initial: InitialState | None
    ) -> None:
        """Share these with the other models of a ``PerAction``."""
        self._posterior.sketch._lock = lock
        self._lock = self._make_lock()
        self._features = features
        self._posterior.share_scale(scale)
        self._warm_up.initial = initial

    @property
    def _is_part(self) -> bool:  # type: ignore[override]
        return not self._posterior.owns_scale

    def _make_lock(self) -> Lock:
        """The lock of the sketch, so that a compression of it happens between two rounds."""
        return self._posterior.sketch._lock

    def _explore_by(self, rule: Explore) -> None:
        self._posterior.explore_by(rule)
        self._chooser.explore_by(rule)

    # -- choosing -----------------------------------------------------------------------------------

    @holds_the_lock
    def select(self, arms: ArmsLike, *, random: Random | None = None) -> int:
        """Choose an arm, and return its index.

        With the default rule, UCB, this is the arm with the largest ``ucb``. Ties go to the lowest index.

        Parameters
        ----------
        arms : array of shape (K, dim), sparse matrix, DataFrame or Offer
            One row of features per arm. Anything that numpy can convert is taken. A ``Catalogue`` is an
            ``Offer``, and makes others.
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
            chooser, features = self._chooser, self._features
            draws = chooser.random if random is None else chooser.generator(random)
            view = features.view(arms)
            own = None if view is None else self._posterior.search(view, chooser.rule, draws)
            if view is not None and own is not None:  # most choices: dense arms, in a few compiled calls
                if features.sample is not None:
                    self._saw((arms,))
                return chooser.shared(own, len(view.array), draws) if chooser.share else own
            if isinstance(arms, Offer) and self._leaves_no_trace:
                return chooser.select(self._choices(features.read(arms)), draws)
            with self._request(arms, draws) as read:
                return chooser.select(self._choices(read), draws)

    def choose(self, arms: ArmsLike, *, random: Random | None = None) -> Choice:
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
        draws = self._chooser.generator(random)
        with self._request(arms, draws) as read:
            return self._chooser.choose(self._choices(read), draws)

    @holds_the_lock  # while it takes the scores; others go on while Thompson sampling samples
    def probabilities(self, arms: ArmsLike) -> Any:
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

    def scores(self, arms: ArmsLike) -> Scores:
        """The scores of the arms as of now, from which probabilities can be computed later."""
        return self._chooser.scores(self._choices(self._features.read(arms)))

    @property
    def screens_catalogues(self) -> bool:
        """Whether a choice from a catalogue excludes most arms at a glance (docs/catalogues.md).

        It does unless columns are standardised, rewards are not linear, or the rule needs every mean.
        """
        has_aim = self._chooser.rule.chooses_by in ("bound", "draw", "mean")
        return self._features.is_linear and has_aim and self._posterior.estimate.linear_theta is not None

    @property
    def _leaves_no_trace(self) -> bool:
        """Whether a choice changes nothing, not even the generator: then nothing is to be restored."""
        return self._chooser.leaves_no_trace and not self._features.is_warming_up

    def _read(self, asked: object) -> Arms:
        return self._features.read(asked)

    def _choices(self, read: Arms, direction: Vector | None = None) -> Choices:
        return choices_of(self._posterior, self._features, read, direction)

    def _shared_direction(self, random: Random) -> Vector | None:
        """The draw that serves a whole batch; None if every request has its own."""
        return self._posterior.precision.sample_direction(random) if self._chooser.shares_draw else None

    # -- ranking ------------------------------------------------------------------------------------

    def top(self, arms: ArmsLike, k: int, *, random: Random | None = None) -> NDArray[np.intp]:
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
        draws = self._chooser.generator(random)
        with self._request(arms, draws) as read:
            return self._chooser.places(self._choices(read), k, draws, with_chances=False).index

    def slate(self, arms: ArmsLike, k: int, *, random: Random | None = None) -> list[Choice]:
        """Rank as ``top`` does, and return a ``Choice`` per place.

        The probability of each is that of its place, given the places before.

        Examples
        --------
        >>> from sketchbandit import ExactSketch, LinUCB, UCB
        >>> policy = LinUCB(ExactSketch(2), explore=UCB(0.1, floor=0.5, seed=1))
        >>> [choice.probability for choice in policy.slate([[1.0, 0.0], [0.0, 2.0]], 2)]
        [0.75, 1.0]

        """
        ranking = self._ranked(arms, k, random, with_chances=True)
        return [Choice(*place) for place in zip(*(values.tolist() for values in ranking), strict=True)]

    @holds_the_lock
    def rank(
        self, arms: ArmsLike, k: int = 1, *, random: Random | None = None, probabilities: bool = True
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
            return self._ranked(arms, k, random, with_chances=probabilities)

    def _ranked(self, arms: ArmsLike, k: int, random: Random | None, *, with_chances: bool) -> Ranking:
        draws = self._chooser.generator(random)
        with self._request(arms, draws) as read:
            return self._chooser.rank(self._choices(read), k, draws, with_chances=with_chances)

    # -- several sets of arms -------------------------------------------------------------------------

    def select_many(
        self, batch: RowsLike | Sequence[ArmsLike], *, random: Random | None = None
    ) -> NDArray[np.intp]:
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
        chooser, features, posterior = self._chooser, self._features, self._posterior
        sets, draws, share = read_sets(batch), chooser.generator(random), chooser.share
        seen: list[Rows] = []
        with chooser.undone_if_refused(draws, features.names):
            direction = self._shared_direction(draws)
            draws_each = chooser.rule.draws and direction is None
            asked = posterior.ask(chooser.rule, direction)
            ready = None if features.is_warming_up else features.batch(sets)
            found = None
            if asked is not None and ready is not None and not (draws_each and share):
                found = search_many(asked, ready, draws)
            if asked is not None and found is None and not share and not draws_each:
                found = self._best_of_offers(sets, asked)
            chosen = np.full(len(sets), -1, dtype=np.intp) if found is None else found
            number = 0
            try:
                for number in np.flatnonzero(chosen < 0).tolist():
                    read = self._read_set(sets[number]) if ready is None else ready.of(number)
                    (own,) = self._choices(read, direction).best(1, chooser.rule, draws)
                    chosen[number] = chooser.shared(own, len(read), draws) if draws_each else own
                    seen.append(read.raw)
            except (InputError, InputTypeError) as error:
                raise in_set(number, error) from error
        if share and not draws_each:  # the rule itself has drawn nothing, so the order of draws is the same
            for number, count in enumerate(batch_counts(sets)):
                chosen[number] = chooser.shared(int(chosen[number]), count, draws)
        self._saw(seen)
        return chosen

    def choose_many(
        self, batch: RowsLike | Sequence[ArmsLike], *, random: Random | None = None
    ) -> list[Choice]:
        """Do ``choose`` for B sets of arms at once. The choices are those of ``select_many``.

        Parameters
        ----------
        batch, random
            As for ``select_many``.

        Returns
        -------
        list of B Choice

        """
        chooser, features = self._chooser, self._features
        sets, draws, choices = read_sets(batch), chooser.generator(random), []
        seen: list[Rows] = []
        with chooser.undone_if_refused(draws, features.names):
            direction = self._shared_direction(draws)
            for number, arms in enumerate(sets):
                try:
                    read = self._read_set(arms)
                    choices.append(chooser.choose(self._choices(read, direction), draws))
                    seen.append(read.raw)
                except (InputError, InputTypeError) as error:
                    raise in_set(number, error) from error
        self._saw(seen)
        return choices

    def probabilities_many(self, batch: RowsLike | Sequence[ArmsLike]) -> Any:
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
        chooser, features = self._chooser, self._features
        sets = read_sets(batch)
        ready = None if features.is_warming_up else features.batch(sets)
        asked = None if ready is None else self._posterior.ask(chooser.rule)
        flat = None if ready is None or asked is None else chances_many(asked, ready)
        if ready is None or flat is None:
            found = [self._chances_of(number, arms) for number, arms in enumerate(sets)]
            return np.array(found) if isinstance(sets, np.ndarray) else found
        for number in np.flatnonzero(np.isnan(flat[ready.bounds[:-1]])).tolist():
            own = chooser.scores(self._choices(ready.of(number))).own()
            flat[ready.bounds[number] : ready.bounds[number + 1]] = own
        shared = chances_with_share(flat, ready.bounds, chooser.share)
        if isinstance(sets, np.ndarray):
            return shared.reshape(sets.shape[:2])
        return np.split(shared, ready.bounds[1:-1])

    def _chances_of(self, number: int, arms: ArmsLike) -> Vector:
        """The probabilities for one set of a batch."""
        try:
            return self.scores(arms).probabilities()
        except (InputError, InputTypeError) as error:
            raise in_set(number, error) from error

    def _read_set(self, arms: ArmsLike) -> Arms:
        """Read one set of a batch."""
        if is_vector(arms):
            raise InputError(
                "a set of arms must have shape (arms, dim), got one vector; for a single set use select or "
                "choose"
            )
        read = self._features.read(arms)
        self._features.names.remember(arms)
        return read

    def _best_of_offers(self, sets: Sequence[ArmsLike] | AnyArray, asked: Question) -> AnyArray | None:
        """The best arm of every offer of one catalogue, -1 if scores are close; None: choose one by one."""
        features = self._features
        if features.is_warming_up or not len(sets) or not all(isinstance(one, Offer) for one in sets):
            return None
        return best_of_offers(asked, features, [features.read(one) for one in sets])

    # -- the numbers that choices are made from ---------------------------------------------------------

    def mean(self, arms: ArmsLike) -> Any:
        """The mean reward of every arm, shape (K,); a float for a single arm (dim,).

        With ``Logistic`` rewards it is a probability.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> policy.update([1.0, 0.0], 1.0)
        >>> policy.mean([[1.0, 0.0], [0.0, 1.0]])
        array([0.5, 0. ])

        """
        return _as_given(self._posterior.estimate.expected(self._margins(arms)), arms)

    def margin(self, arms: ArmsLike) -> Any:
        """The baseline plus x'theta of every arm, shape (K,); a float for a single arm (dim,).

        For linear rewards, this is the mean reward.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2, rewards=sb.Logistic())
        >>> policy.margin([1.0, 0.0]), policy.mean([1.0, 0.0])
        (0.0, 0.5)

        """
        return _as_given(self._margins(arms), arms)

    def _margins(self, arms: ArmsLike) -> Vector:
        posterior = self._posterior
        margins: Vector = posterior.scan(self._features.read(arms)).means + posterior.estimate.baseline
        return margins

    def width(self, arms: ArmsLike) -> Any:
        """The confidence width sqrt(x'A^-1 x) of every arm, shape (K,); a float for a single arm (dim,)."""
        return _as_given(self._posterior.candidates(self._features.read(arms)).widths(), arms)

    def ucb(self, arms: ArmsLike) -> Any:
        """The upper confidence bound, margin + radius·width, of every arm; a float for a single arm (dim,).

        For linear rewards the margin is the mean. Otherwise this is a bound on x'theta*, before the link.
        """
        return _as_given(self._posterior.candidates(self._features.read(arms)).bounds(), arms)

    # -- learning -----------------------------------------------------------------------------------

    @holds_the_lock
    def update(self, arm: RowsLike, reward: ArrayLike) -> None:
        """Learn from one arm and its reward, or from n arms and n rewards in their order.

        Parameters
        ----------
        arm : array of shape (dim,) or (n, dim)
            The features of the arm that was chosen, not its index: ``arms[chosen]``.
        reward : float or array of shape (n,)
            The observed reward of each arm.

        Warns
        -----
        SketchTooSmallWarning, TooFewDigitsWarning, WorldChangedWarning
            Given after everything is learned. This holds even if warnings are turned into errors.

        Raises
        ------
        InputError
            If an arm or a reward cannot be used. Then nothing has changed.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> arms = [[1.0, 0.0], [0.0, 1.0]]
        >>> chosen = policy.select(arms)
        >>> policy.update(arms[chosen], reward=1.0)
        >>> policy.update(arms, [1.0, 0.5])  # two rounds at once
        >>> policy.rounds
        3

        """
        with self._lock:
            complaints = self._learn(arm, reward)
        if complaints:
            say(complaints)

    def _learn(self, arm: object, reward: object) -> Complaints:
        """Do ``update`` while the lock is held, and return the warnings to give."""
        features, posterior, watch = self._features, self._posterior, self._watch
        row = features.row(arm) if isinstance(reward, float) and features.sample is None else None
        if row is not None and isinstance(reward, float):  # most rounds: one dense arm
            norm_sq, leverage = posterior.precision.measure(row[0])
            if not norm_sq < math.inf:  # NaN ends here too
                raise refused(np.asarray(arm), norm_sq)
            step = posterior.learn(*row, norm_sq, float(reward), leverage)
            if features.can_leave_range and not (posterior.rounds - 1) % EVERY:
                watch.ranges.look(arm, features.scaling)
            return watch.see(step, float(reward), posterior, features)
        arm, reward = on_host(arm), on_host(reward)
        if isinstance(arm, Choice):
            raise InputTypeError("the arm is a Choice; give the arm itself: arms[choice.index]")
        if isinstance(arm, (int, np.integer)):
            raise InputTypeError(f"the arm is {arm}, an index; give the arm itself: arms[{arm}]")
        complaints = (self._learn_warming_up if features.is_warming_up else self._learn_any)(arm, reward)
        features.names.remember(arm)
        return complaints

    def _learn_any(self, arm: object, reward: object) -> Complaints:
        """Learn from one arm, or from many, in any form."""
        features, before = self._features, self._posterior.rounds
        complaints = self._learn_all(arm, reward)
        if features.can_leave_range and -before % EVERY < self._posterior.rounds - before:
            source = row_source(features.names.align(arm), features.dim, "arms")
            self._watch.ranges.look_at(source, before, features.scaling)
        return complaints

    def _learn_all(self, arm: object, reward: object) -> Complaints:
        features, posterior = self._features, self._posterior
        if is_scalar(reward) or is_vector(arm):
            arms = features.read(arm, may_be_empty=True)
            if len(arms) != 1:
                raise InputError(f"{len(arms)} arms need {len(arms)} rewards, got one reward")
            return self._learn_arm(arms, 0, arms.norm_sq(0), read_reward(reward))
        arm = features.names.align(arm)
        batch = features.read_rows(arm)
        values = read_rewards(reward, len(batch))
        posterior.check_many(batch, values)
        complaints: Complaints = ()
        if hasattr(arm, "tocsr") and len(batch) < posterior.precision.rows_worth_a_rebuild:
            read = features.read(arm, may_be_empty=True)
            for i, (norm_sq, value) in enumerate(zip(read.norms_sq().tolist(), values.tolist(), strict=True)):
                complaints += self._learn_arm(read, i, norm_sq, value)
            return complaints
        taken = 0
        for rows, _ in batch.chunks():
            complaints += self._learn_chunk(rows, norms_sq_of(rows), values[taken : taken + len(rows)])
            taken += len(rows)
        return complaints

    def _learn_arm(self, arms: Arms, index: int, norm_sq: float, reward: float) -> Complaints:
        if not norm_sq < math.inf:  # NaN ends here too
            raise refuse(arms, np.array([norm_sq]))
        posterior = self._posterior
        row = arms.row(index, posterior.sketch.dtype)
        if arms.view is None:  # sparse
            step = posterior.learn(arms.vector(index), row, norm_sq, reward)
        else:
            x = row[0].astype(np.float64, copy=False)  # as the sketch stores it
            step = posterior.learn(x, row, norm_sq_of(x), reward)
        return self._watch.see(step, reward, posterior, self._features)

    def _learn_chunk(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Complaints:
        """Learn from many arms, and stop wherever the certificate has to be looked at."""
        complaints: Complaints = ()
        posterior, watch = self._posterior, self._watch
        while len(rows):
            some = min(len(rows), max(1, watch.health.next_mark - posterior.rounds))
            if posterior.clock is not None:
                some = min(some, posterior.clock.room(posterior.sketch))
            change = posterior.learn_many(rows[:some], norms_sq[:some], rewards[:some])
            complaints += watch.learned(posterior, self._features, lossy=not change.additive)
            rows, norms_sq, rewards = rows[some:], norms_sq[some:], rewards[some:]
        return complaints

    def reset(self) -> None:
        """Forget everything that was learned, and start again with the same settings.

        The scaling of the features and the column names stay. A warm-up that is not over goes on with the
        arms it has seen. The random generator continues from its present state.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(2)
        >>> policy.update([1.0, 0.0], 1.0)
        >>> policy.reset()
        >>> policy.rounds, policy.mean([1.0, 0.0])
        (0, 0.0)

        """
        if self._is_part:
            raise InputError("this model belongs to a PerAction; reset it there: models.reset(action)")
        self._reset()

    def _reset(self) -> None:
        self._begin_again(InitialState(self.sketch._blank(), self._posterior.blank_estimate()))

    def _begin_again(self, state: InitialState) -> None:
        """Start again from this state. The caller gives it away."""
        self._posterior.begin_again(*state)
        self._watch = Watch(self._posterior)
        self._warm_up.rounds = []

    # -- the warm-up --------------------------------------------------------------------------------

    def _prepare_warm_up(self) -> None:
        """Keep the state to start again from, if there is a warm-up. Nothing may be learned yet."""
        if self._features.is_warming_up:
            posterior = self._posterior
            state = InitialState(copy.deepcopy(posterior.sketch), posterior.blank_estimate())
            self._warm_up.initial = state

    def _learn_warming_up(self, arm: object, reward: object) -> Complaints:
        """Learn, and keep the arms and rewards unless the warm-up ends now."""
        features = self._features
        source = row_source(features.names.align(arm), features.dim, "arms")
        is_one = is_scalar(reward) or is_vector(arm)
        rewards = read_rewards([read_reward(reward)] if is_one else reward, source.shape[0])
        self._posterior.check_many(features.read_rows(source), rewards)
        complaints: Complaints = ()
        kept = 0
        for row in self._to_be_kept(source):
            complaints += self._learn_and_keep(row, float(rewards[kept]))
            kept += 1
        if kept < len(rewards):
            complaints += self._learn_any(source[kept:], rewards[kept:])
        return complaints

    def _learn_and_keep(self, row: Rows, reward: float, at: int | None = None) -> Complaints:
        """Learn from one arm (1, dim) and its reward, and keep both. The caller gives the arm away."""
        complaints = self._learn_any(row, reward)
        self._warm_up.keep(row, reward, at)
        return complaints

    def _check_kept(self) -> None:
        if self._warm_up.rounds:
            arms, rewards = self._warm_up.data(self.dim)
            self._posterior.check_many(self._features.read_rows(arms), rewards)

    def _fitted(self) -> Scaling:
        return self._features.fit([self._warm_up.data(self.dim)], self.ridge)

    def _learn_anew(self) -> None:
        initial, kept = self._warm_up.initial, self._warm_up.rounds
        if initial is None:  # nothing was learned so far
            return
        posterior, is_over = self._posterior, not self._features.is_warming_up
        self._begin_again(copy.deepcopy(initial))
        posterior.scale.is_held = self._is_part  # that of a ``PerAction`` has counted these rewards
        try:
            for one in sorted(kept, key=lambda one: one.at or 0):
                if one.at is not None:
                    posterior.forget_until(one.at)
                self._learn_any(one.arm, one.reward)
                if posterior.clock is not None and one.at is not None:
                    posterior.clock.seen = one.at + 1
        finally:
            posterior.scale.is_held = False
        if is_over:
            self._watch.warn_again()
            self._warm_up.initial = None
        else:
            self._warm_up.rounds = kept

    # -- the baseline -------------------------------------------------------------------------------

    @property
    def _has_baseline(self) -> bool:
        return self._posterior.scale.baseline

    @property
    def _can_have_baseline(self) -> bool:
        """Whether the policy was not told otherwise, and its parts can learn from rewards less their mean."""
        posterior, rule = self._posterior, self._chooser.rule
        return self._wants_baseline is not False and not why_no_baseline(
            rule, posterior.beta, posterior.estimate
        )

    def _default_to_baseline(self) -> None:
        """Use a baseline unless the policy was told not to, or cannot. Nothing may be learned yet."""
        if self._wants_baseline is None and self._can_have_baseline:
            self._posterior.use_baseline(True, self._chooser.rule)

    def _set_baseline(self, baseline: bool) -> None:
        """Use a baseline, or none, whatever the recipe has chosen. Nothing may be learned yet."""
        self._wants_baseline = baseline
        self._posterior.use_baseline(baseline, self._chooser.rule)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def ridge(self) -> float:
        """lambda, the ridge parameter."""
        return self._posterior.ridge

    @property
    def beta(self) -> float | Confidence | Auto:
        """The confidence radius as it was given: a float, a ``Confidence`` or "auto"."""
        return self._posterior.beta

    @beta.setter
    def beta(self, value: object) -> None:
        raise InputTypeError(f"beta belongs to the rule; set the rule: policy.explore = sb.UCB({value!r})")

    @property
    def forget(self) -> float | None:
        """The factor by which old rounds are forgotten per round; None if nothing is forgotten."""
        return self._posterior.forget

    @property
    def sketch(self) -> Any:  # a Sketch: which one, whoever made the policy knows
        """The sketch of the arms played. Read from it only; the policy updates it."""
        return self._posterior.sketch

    @property
    def precision(self) -> Precision:
        """A^-1, always up to date with the sketch. Read from it only; the policy updates it."""
        return self._posterior.precision

    @property
    def estimate(self) -> Any:  # an Estimate
        """The reward model. Read from it only, and in the thread that plays; the policy updates it."""
        return self._posterior.estimate

    @property
    def theta(self) -> Vector:
        """The parameter vector: a copy. The margin of an arm is ``baseline`` + z'theta, with z as it is read.

        For linear rewards, theta = A^-1 b, with b the sum of (reward - baseline)·z.
        """
        return self._features.lift(self._posterior.estimate.theta)

    @property
    def baseline(self) -> float:
        """What margins are measured from: the margin of an arm is the baseline plus x'theta.

        For linear rewards it is the mean of all rewards so far; with a link, the margin of their base rate.
        It is 0 for a policy without a baseline (docs/bandits.md).

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(1, baseline=True)
        >>> policy.update([[1.0], [1.0]], [10.0, 12.0])
        >>> policy.baseline, policy.mean([1.0])
        (11.0, 11.0)

        """
        return self._posterior.estimate.baseline

    @property
    def radius(self) -> float:
        """The confidence radius beta_t of the next choice."""
        return self._posterior.radius

    @property
    def rounds(self) -> int:
        """The number of rewards learned from. One round is one reward."""
        return self._posterior.rounds

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including those of the sketch."""
        if self._is_part:
            return self._posterior.nbytes
        initial = self._warm_up.initial
        blank = 0 if initial is None else initial.sketch.nbytes
        return self._posterior.nbytes + self._features.nbytes + self._warm_up.nbytes + blank

    def health(self, arms: ArmsLike | None = None) -> Health:
        """Report the error bound, how it grows, what it means for the regret, and on the predictions.

        Parameters
        ----------
        arms : array of shape (K, dim), sparse matrix, DataFrame or Offer, optional
            The arms on offer, if they are the same in every round. The report then names those that were
            (nearly) never tried.

        Returns
        -------
        Health
            With a sentence that says what to do if something is wrong.

        Examples
        --------
        >>> import numpy as np
        >>> import sketchbandit as sb
        >>> policy = sb.oful(3)
        >>> policy.update(np.eye(3)[[0, 1] * 100], [0.5, 0.7] * 100)
        >>> policy.health(np.eye(3)).untried
        (2,)

        """
        found = self._watch.report(self._posterior, self._features)
        if arms is None:
            return found
        candidates = self._posterior.candidates(self._features.read(arms))
        if not are_enough_to_try(self.rounds, len(candidates)):
            return found
        most = _KNOWN * candidates.most_widths()
        untried = tuple(np.flatnonzero(candidates.widths() > most).tolist())
        if not untried:
            return found
        return found._replace(untried=untried, sentence=untried_arms_sentence(untried, self.rounds))

    def __repr__(self) -> str:
        sketch = self.sketch
        return (
            f"<{type(self).__name__}(ridge={self.ridge:g}, {self._settings_text()}): {self.rounds} rounds, "
            f"{type(sketch).__name__} of size {sketch.size}, error <= {sketch.error_bound:.4g}, "
            f"{self.nbytes:,} bytes>"
        )

    def _settings_text(self) -> str:
        """The settings that differ from their defaults, for ``repr``."""
        rule, estimate = self._chooser.rule, self._posterior.estimate
        is_short = type(rule) is UCB and not self._chooser.share
        parts = [f"beta={self.beta}" if is_short else f"explore={rule!r}"]
        parts += [f"rewards={estimate!r}"] * (type(estimate) is not Linear)
        parts += [] if self.forget is None else [f"forget={self.forget:.6g}"]
        parts += [f"baseline={self.baseline:.6g}"] * self._has_baseline
        parts += [] if self._features.scaling is None else [repr(self._features)]
        return ", ".join(parts)

    def _facts(self) -> Facts:
        sketch, health = self.sketch, self.health()
        kept = "a full matrix" if sketch.is_dense else f"{sketch.row_count:,} rows kept"
        return [
            ("sketch", f"{type(sketch).__name__}, size {sketch.size:,}, {kept}"),
            ("features", f"{self.dim:,}"),
            ("rounds", f"{self.rounds:,}"),
            ("explores by", repr(self._chooser.rule)),
            ("scaling", health.scaling or "none"),
            ("memory", amount(self.nbytes)),
            ("certificate", certificate(health.certificate)),
            ("health", health.sentence),
        ]

    # -- merging ------------------------------------------------------------------------------------

    def _absorb(self, other: Self) -> Complaints:
        if self.dim != other.dim:
            raise MergeError(f"cannot merge policies: dim is {self.dim!r} here and {other.dim!r} there")
        features, rule = self._features, self._chooser.rule
        self._posterior.check_mergeable(other._posterior)
        if not rule.is_like(other._chooser.rule):
            raise MergeError(
                f"cannot merge policies: explore is {rule!r} here and {other._chooser.rule!r} there"
            )
        features.check_mergeable(other._features)
        names = features.names.merged(other._features.names)
        self._posterior.merge(other._posterior)
        self._watch.add(other._watch)
        features.names = names
        complaints = self._watch.learned(self._posterior, features, lossy=True)
        self._warm_up.rounds += other._warm_up.rounds
        if not self._is_part:
            features.merge(other._features)
            self._scale_if_due()
        return complaints

    # -- files --------------------------------------------------------------------------------------

    def _content(self) -> tuple[Scalars, Arrays]:
        posterior, features, estimate = self._posterior, self._features, self._posterior.estimate
        parts: dict[str, Part] = {
            "sketch": posterior.sketch,
            "precision": posterior.precision,
            "estimate": estimate,
            "explore": self._chooser.rule,
        }
        if features.scaling is not None and not self._is_part:
            parts["reader"] = features
            if self._warm_up.initial is not None:
                parts["blank"] = self._warm_up.initial.sketch
        scalars, arrays = content_of(parts)
        kept, rows = self._warm_up.dump(features.dim)
        own: Scalars = {
            "ridge": posterior.ridge,
            "beta": vars(posterior.beta) if isinstance(posterior.beta, Confidence) else posterior.beta,
            "rounds": posterior.rounds,
            "columns": features.names.names,
            "baseline": self._has_baseline,
            "wants_baseline": self._wants_baseline,
        }
        if not self._is_part:
            own["reward_scale"] = posterior.scale.dump()
        if posterior.clock is not None:
            own["clock"] = posterior.clock.dump()
        return {
            **own,
            **self._chooser.dump(),
            "reward_mass": estimate.reward_mass,
            "arm_lengths": estimate.arm_lengths,
            **self._watch.dump(),
            **scalars,
            **kept,
        }, {**arrays, **rows}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the policy that ``dump`` described."""
        parts, beta = restored_parts(scalars, arrays, **extra), scalars["beta"]
        sketch, estimate = parts.sketch, parts.estimate
        clock = Clock.undump(scalars["clock"]) if "clock" in scalars else None
        posterior = Posterior(
            sketch,
            estimate,
            ridge=scalars["ridge"],
            beta=Confidence(**beta) if isinstance(beta, dict) else beta,
            forget=None if clock is None else clock.factor,
            saved=parts.precision,
        )
        policy = cls.__new__(cls)
        policy._join(cls._restored_features(sketch, scalars, arrays), posterior, parts.explore)
        policy._wants_baseline = scalars.get("wants_baseline", False)
        posterior.use_baseline(bool(scalars.get("baseline", False)), parts.explore)  # not in files of 0.14
        if "reward_scale" in scalars:
            posterior.scale.restore(scalars["reward_scale"])
        elif "spread" in scalars:  # a file of 0.10 to 0.14
            estimate.reward_scale = RewardScale.of_moments(scalars["spread"])
        estimate.restore(*parts.learned)
        estimate.reward_mass = float(scalars["reward_mass" if "reward_mass" in scalars else "reach"])
        estimate.arm_lengths = float(scalars.get("arm_lengths", 0.0))  # not in files of 0.14
        posterior.rounds = check_count("rounds", scalars["rounds"], at_least=0)
        posterior.clock = clock
        policy._watch.restore(scalars)
        policy._chooser.restore(scalars)
        if parts.blank is not None:
            policy._warm_up.initial = InitialState(parts.blank, posterior.blank_estimate())
        policy._warm_up.restore(scalars, arrays)
        return policy

    @classmethod
    def _restored_features(cls, sketch: Sketch, scalars: Scalars, arrays: Arrays) -> Features:
        """The features that ``_content`` described. Those of a ``PerAction`` are shared, and follow later."""
        features = cls._blank_features(sketch, arrays)
        features.names = ColumnNames(scalars.get("columns"))
        if "reader" in scalars:
            features.restore(scalars["reader"], taken_from("reader", arrays))
        return features

    @classmethod
    def _blank_features(cls, sketch: Sketch, arrays: Arrays) -> Features:
        del arrays
        return Features(sketch.dim, sketch.dtype)


Policy = LinUCB
"""The class of every policy over arms, for types and checks where the algorithm does not matter."""


def _as_given(values: Vector, arms: ArmsLike) -> Any:
    """Values for arms: a float for a single arm; else in the library, and on the device, of the arms."""
    return float(values[0]) if is_vector(arms) else given_back(values, arms)
