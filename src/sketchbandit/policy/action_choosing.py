"""How an action is chosen for a context."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arms import Arms, DenseArms, is_vector, row_of
from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError, RowError
from sketchbandit.explore import UCB, ActionChoice, Explore, Scores
from sketchbandit.policy.action_candidates import ActionCandidates, Draws
from sketchbandit.policy.action_models import ActionModels, Offer
from sketchbandit.policy.action_names import Action
from sketchbandit.policy.propensity import best_of, chance_of, check_generator, shared_with_all
from sketchbandit.sketch.rows import complaint, row_source
from sketchbandit.thread_safety import holds_the_lock

Random = np.random.Generator


class ActionChoosing(ActionModels):
    """The methods that choose one action. None of them learns from a reward.

    ``actions`` are the names of those that may be chosen now; all on offer by default. ``random`` is the
    generator to draw from if the rule is random; the default is the learner's own.
    """

    @holds_the_lock
    def select(self, context: Any, actions: Any = None, *, random: Random | None = None) -> Action:
        """Choose an action, and return its name.

        With the default rule, UCB, this is the action with the largest ``ucb``. Ties go to the first.

        Parameters
        ----------
        context : array of shape (dim,), or sparse row
            The features of the context. Anything that numpy can convert is taken.
        actions : list of str or int, optional
            The actions that may be chosen now. Default: all on offer.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the learner's own.

        Returns
        -------
        str or int
            The name of the action chosen.

        """
        with self._lock:
            offer = self._offer(actions)
            generator = self._random if random is None else check_generator(random)
            if (  # the fast path
                type(context) is np.ndarray
                and context.dtype == self._dtype
                and context.shape == self._plain_shape
                and context.flags.c_contiguous
            ):
                x = context if self._reader is None else row_of(context, self._lens)
                own = self._search(x, offer, self._explore)
                if own is not None:
                    if self._is_warming:
                        self._saw(DenseArms(context[np.newaxis]))
                    return offer.names[
                        shared_with_all(own, len(offer.names), self._share, generator) if self._share else own
                    ]
            with self._unless_refused(generator):
                read = self._read(context)
                own = self._own(read, offer, self._explore, generator)
                self._columns.remember(context)
            self._saw(read)
            return offer.names[shared_with_all(own, len(offer.names), self._share, generator)]

    def choose(self, context: Any, actions: Any = None, *, random: Random | None = None) -> ActionChoice:
        """Choose as ``select`` does, and also return the probability, mean, width and score of the action.

        Parameters
        ----------
        context, actions, random
            As for ``select``.

        Returns
        -------
        ActionChoice

        Examples
        --------
        >>> import sketchbandit as sb
        >>> models = sb.PerAction(["a", "b"], lambda: sb.oful(2, explore=sb.EpsilonGreedy(0.5, seed=1)))
        >>> models.choose([1.0, 0.0])
        ActionChoice(action='a', probability=0.75, mean=0.0, width=1.0, score=0.0)

        """
        offer, generator = self._offer(actions), self._generator(random)
        with self._unless_refused(generator):
            read = self._read(context)
            choice = self._chosen(read, offer, self._explore, generator)
            self._columns.remember(context)
        self._saw(read)
        return choice

    def probabilities(self, context: Any, actions: Any = None) -> Vector:
        """The probability that the next choice is this action, for every action in order.

        It is exact, except for Thompson sampling, where it is an estimate. The call changes nothing.
        """
        return self.scores(context, actions).probabilities()

    def scores(self, context: Any, actions: Any = None) -> Scores:
        """The scores of the actions as of now, from which probabilities can be computed later."""
        return Scores.of(self._candidates(self._read(context), self._offer(actions)), self._explore)

    # -- several contexts -----------------------------------------------------------------------------

    def select_many(
        self, contexts: Any, actions: Any = None, *, random: Random | None = None
    ) -> list[Action]:
        """Choose for n contexts (n, dim) at once, and return n names.

        The choices, and the draws, are those of a loop over ``select``. Thompson sampling with
        ``per="batch"`` draws one theta per action for the whole batch.
        """
        offer, generator = self._offer(actions), self._generator(random)
        with self._unless_refused(generator):
            read, rule = self._read_many(contexts), self._for_batch(offer, generator)
            chosen = []
            for i in range(len(read)):
                own = self._own(read.some(slice(i, i + 1)), offer, rule, generator)
                chosen.append(offer.names[shared_with_all(own, len(offer.names), self._share, generator)])
            self._columns.remember(contexts)
        self._saw(read)
        return chosen

    def choose_many(
        self, contexts: Any, actions: Any = None, *, random: Random | None = None
    ) -> list[ActionChoice]:
        """Do ``choose`` for n contexts (n, dim). The choices are those of ``select_many``."""
        offer, generator = self._offer(actions), self._generator(random)
        with self._unless_refused(generator):
            read, rule = self._read_many(contexts), self._for_batch(offer, generator)
            chosen = [
                self._chosen(read.some(slice(i, i + 1)), offer, rule, generator) for i in range(len(read))
            ]
            self._columns.remember(contexts)
        self._saw(read)
        return chosen

    # -- numbers --------------------------------------------------------------------------------------

    def mean(self, context: Any, actions: Any = None) -> Vector:
        """The mean reward of every action, in order."""
        return self._candidates(self._read(context), self._offer(actions)).rewards

    def margin(self, context: Any, actions: Any = None) -> Vector:
        """The baseline plus x'theta of every action, by its model. For linear rewards, this is the mean."""
        return self._candidates(self._read(context), self._offer(actions)).margins

    def width(self, context: Any, actions: Any = None) -> Vector:
        """The confidence width sqrt(x'A^-1 x) of every action, with the A of its model."""
        return self._candidates(self._read(context), self._offer(actions)).widths()

    def ucb(self, context: Any, actions: Any = None) -> Vector:
        """The upper confidence bound, margin + radius·width, of every action."""
        candidates = self._candidates(self._read(context), self._offer(actions))
        scores: Vector = candidates.means + candidates.bonuses() + candidates.baseline
        return scores

    # -- how ----------------------------------------------------------------------------------------

    def _for_batch(self, offer: Offer, random: Random) -> Explore:
        draws: Any = Draws([self._models[name] for name in offer.names])  # a rule needs no more than this
        return self._explore.for_batch(draws, random)

    def _read(self, context: Any) -> Arms:
        """Read one context."""
        source = self._source(context)
        if source.shape[0] != 1:
            raise InputError(
                f"give one context of shape (dim,), got {source.shape[0]}; for many contexts use select_many"
            )
        return self._read_source(source)

    def _read_many(self, contexts: Any) -> Arms:
        """Read n contexts (n, dim)."""
        if is_vector(contexts):
            raise InputError("contexts must have shape (n, dim), got one vector; for one context use select")
        return self._read_source(self._source(contexts))

    def _source(self, contexts: Any) -> Any:
        """Contexts as a numpy array or CSR matrix (n, dim) of finite numbers."""
        source = row_source(self._columns.align(contexts), self._dim, "contexts")
        values = source.data if sparse.issparse(source) else source
        if not np.isfinite(values).all():
            rows = source.toarray() if sparse.issparse(source) else source
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise complaint(rows, bad, self._dtype, "context")
        return source

    def _read_source(self, source: Any) -> Arms:
        try:
            read = self._template._read(source, may_be_empty=True)
        except RowError as error:  # the context is too long to be projected
            raise RowError("context", error.row, error.why) from error
        with np.errstate(over="ignore"):
            too_long = np.flatnonzero(~np.isfinite(read.norms_sq()))
        if len(too_long):
            raise complaint(source, int(too_long[0]), self._dtype, "context")
        return read

    def _search(self, context: Any, offer: Offer, rule: Explore) -> int | None:
        """The choice of UCB for a dense context, in a few compiled calls; None if that is impossible."""
        if not isinstance(rule, UCB) or not rule._is_plain:
            return None
        return offer.board.search(context.astype(np.float64, copy=False), offer.which)

    def _own(
        self, read: Arms, offer: Offer, rule: Explore, random: Random, known: ActionCandidates | None = None
    ) -> int:
        """The choice of the rule, before the uniform share is applied."""
        own = self._search(read.vector(0), offer, rule) if isinstance(read, DenseArms) else None
        return best_of(known or self._candidates(read, offer), 1, rule, random)[0] if own is None else own

    def _chosen(self, read: Arms, offer: Offer, rule: Explore, random: Random) -> ActionChoice:
        candidates = self._candidates(read, offer)
        own = self._own(read, offer, rule, random, candidates)
        index = shared_with_all(own, len(offer.names), self._share, random)
        choice = told(candidates, offer, index, chance_of(self._explore, candidates, index, own))
        candidates.keep()
        return choice

    def _candidates(self, read: Arms, offer: Offer) -> ActionCandidates:
        """The actions as a rule sees them. Raises unless all scores are finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            candidates = ActionCandidates(read, offer.board, offer.which, self.rounds)
            most = np.abs(candidates.means) + candidates.most_bonuses()
        if not np.isfinite(most).all():
            name = offer.names[int(np.flatnonzero(~np.isfinite(most))[0])]
            raise InputError(f"the score of action {name!r} overflows; rescale contexts or rewards")
        return candidates


def told(candidates: ActionCandidates, offer: Offer, index: int, probability: float) -> ActionChoice:
    """The ``ActionChoice`` that describes the action at ``index``."""
    mean, width = float(candidates.rewards[index]), candidates.width(index)
    score = candidates.means.item(index) + candidates.bonus(index) + candidates.baseline
    return ActionChoice(offer.names[index], probability, mean, width, score)
