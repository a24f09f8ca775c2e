"""How several actions are ranked for a context."""

from typing import Any

import numpy as np

from sketchbandit.errors import InputError
from sketchbandit.explore import ActionChoice, Ranking
from sketchbandit.policy.action_candidates import ActionCandidates
from sketchbandit.policy.action_choosing import ActionChoosing, told
from sketchbandit.policy.action_models import Offer
from sketchbandit.policy.action_names import Action
from sketchbandit.policy.propensity import Places, chance_of, ranked, shared_with_all
from sketchbandit.sketch.checks import check_count

Random = np.random.Generator


class ActionRanking(ActionChoosing):
    """The methods that rank several actions. None of them learns from a reward."""

    def top(self, context: Any, k: int, actions: Any = None, *, random: Random | None = None) -> list[Action]:
        """The names of the ``k`` best actions, best first. Ties go to the first.

        If the rule is random, every place is drawn separately, among the actions that are left.
        """
        offer = self._offer(actions)
        places, _ = self._ranked(context, k, offer, random, with_chances=False)
        return [offer.names[index] for index in places.indices]

    def slate(
        self, context: Any, k: int, actions: Any = None, *, random: Random | None = None
    ) -> list[ActionChoice]:
        """Rank as ``top`` does, and return an ``ActionChoice`` per place.

        The probability of each is that of its place, given the places before.
        """
        offer = self._offer(actions)
        places, candidates = self._ranked(context, k, offer, random, with_chances=True)
        return [told(candidates, offer, *place) for place in zip(*places, strict=True)]

    def rank(
        self,
        context: Any,
        k: int = 1,
        actions: Any = None,
        *,
        random: Random | None = None,
        probabilities: bool = True,
    ) -> Ranking:
        """Rank as ``slate`` does, and return arrays. With ``k = 1``, choose as ``select`` does.

        Parameters
        ----------
        context : array of shape (dim,)
            The features of the context.
        k : int
            The number of places.
        actions : list of str or int, optional
            The actions to rank. Default: all on offer. ``index`` in the result refers to this list.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the learner's own.
        probabilities : bool
            False leaves the probabilities out. This saves most of the time if they have to be estimated.

        Returns
        -------
        Ranking
            Arrays of shape (k,).

        Examples
        --------
        >>> import sketchbandit as sb
        >>> models = sb.PerAction(["a", "b"], lambda: sb.oful(2, beta=0.5))
        >>> models.update([1.0, 0.0], "a", -1.0)
        >>> models.rank([1.0, 0.0], 2).index
        array([1, 0])

        """
        offer = self._offer(actions)
        if k == 1:
            places, candidates = self._ranked_one(context, offer, random, with_chances=probabilities)
        else:
            places, candidates = self._ranked(context, k, offer, random, with_chances=probabilities)
        index = np.array(places.indices, dtype=np.intp)
        width = np.array([candidates.width(place) for place in places.indices])
        score = candidates.means[index] + candidates.radius[index] * width + candidates.baseline
        return Ranking(index, np.array(places.chances), candidates.rewards[index], width, score)

    def _ranked_one(
        self, context: Any, offer: Offer, random: Random | None, *, with_chances: bool
    ) -> tuple[Places, ActionCandidates]:
        generator, rule = self._generator(random), self._explore
        with self._unless_refused(generator):
            read = self._read(context)
            candidates = self._candidates(read, offer)
            own = self._own(read, offer, rule, generator, candidates)
            index = shared_with_all(own, len(offer.names), self._share, generator)
            chance = chance_of(rule, candidates, index, own) if with_chances else 0.0
            self._columns.remember(context)
        candidates.width(index)  # now, because the models may start again below
        self._saw(read)
        return Places([index], [chance]), candidates

    def _ranked(
        self, context: Any, k: int, offer: Offer, random: Random | None, *, with_chances: bool
    ) -> tuple[Places, ActionCandidates]:
        wanted, rule, generator = check_count("k", k, at_least=1), self._explore, self._generator(random)
        if wanted > len(offer.names):
            raise InputError(f"k is {wanted}, but there are {len(offer.names)} actions")
        read = self._read(context)
        candidates = self._candidates(read, offer)
        with self._unless_refused(generator):
            places = ranked(candidates, wanted, rule, generator, with_chances=with_chances)
            self._columns.remember(context)
        for index in places.indices:
            candidates.width(index)  # now, because the models may start again below
        self._saw(read)
        return places, candidates
