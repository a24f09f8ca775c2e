"""How several actions are chosen for a context, one after another."""

from typing import Any

import numpy as np

from sketchbandit.errors import InputError
from sketchbandit.explore import ActionChoice, Ranking
from sketchbandit.policy.action_candidates import ActionCandidates
from sketchbandit.policy.action_choosing import ActionChoosing, told
from sketchbandit.policy.action_models import Offer
from sketchbandit.policy.action_names import Action
from sketchbandit.policy.chance import Places, chance_of, ranked, shared_with_all
from sketchbandit.sketch.checks import check_count

Random = np.random.Generator


class ActionRanking(ActionChoosing):
    """The verbs that choose several actions, and learn nothing."""

    def top(self, context: Any, k: int, actions: Any = None, *, random: Random | None = None) -> list[Action]:
        """The ``k`` actions that come first, best first, ties to the first.

        Where chance plays a part, each place is chosen by itself, among the actions that are left.
        """
        offer = self._offer(actions)
        places, _ = self._ranked(context, k, offer, random, with_chances=False)
        return [offer.names[index] for index in places.indices]

    def slate(
        self, context: Any, k: int, actions: Any = None, *, random: Random | None = None
    ) -> list[ActionChoice]:
        """What ``top`` chooses; the probability of each is that of its place, given the places before."""
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
        """What ``slate`` chooses, as arrays; where ``k`` is 1, what ``select`` chooses.

        ``index`` counts among the actions asked about. ``probabilities=False`` leaves them out, which saves
        most of the time where they are sampled.

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
        score = candidates.means[index] + candidates.radius[index] * width
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
        candidates.width(index)  # before the models may begin anew
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
            candidates.width(index)  # before the models may begin anew
        self._saw(read)
        return places, candidates
