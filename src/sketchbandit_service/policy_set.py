"""The policy of a bandit and its candidates: how they learn, and how they are described.

Everything here runs in the bandit's queue in the order of the journal, except for what changes at once.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from sketchbandit.errors import InputError, InputTypeError, SketchTooSmallWarning, WorldChangedWarning
from sketchbandit.policy import PerAction
from sketchbandit_service.candidate import About, Candidate, about, update
from sketchbandit_service.config import ESTIMATE, BanditConfig
from sketchbandit_service.costs import learn_cost
from sketchbandit_service.describing import Stored
from sketchbandit_service.exploring import reaches_all
from sketchbandit_service.ordering import SHORT, Lane
from sketchbandit_service.problems import Invalid
from sketchbandit_service.scaling_bytes import decode as decode_scaling
from sketchbandit_service.shadows import Shadows
from sketchbandit_service.storage.records import DecisionRow, ScalingRow
from sketchbandit_service.types import AnyPolicy
from sketchbandit_service.vectors import decode

Learning = Callable[[], None]
"""What the policy still has to learn from a record."""

P = TypeVar("P", bound=AnyPolicy)
_ABOUT = 4e-5  # seconds to describe one model


def owned(policy: P) -> P:
    """Make the policy leave scaling to the service, because scalings are records."""
    policy._scales_itself = False
    return policy


class PolicySet(ABC):
    """A policy that decides, and others that learn beside it."""

    lane: Lane
    """The queue in which they work. The registry sets it."""
    _about: About
    _has_news = True
    """Whether a policy has changed since it was last described."""

    def __init__(self, config: BanditConfig) -> None:
        self.policy = owned(config.build())
        self._decides_by(config)
        self.shadows = Shadows()
        """The candidates, which learn and never decide."""
        self._is_offered = dict.fromkeys(config.actions or (), True)

    def _decides_by(self, config: BanditConfig) -> None:
        """Use the settings of the policy that decides."""
        self.config = config
        self.model = config.model
        """The reward model. It says which rewards can be learned from."""
        self.shape = config.shape
        """What time and memory of its work depend on."""
        self.reaches_all = reaches_all(config.rule)
        """Whether every arm can be chosen, so that other policies can be evaluated; ..."""
        self.knows_chances = config.rule.exact_probabilities or config.propensities == ESTIMATE
        """... and whether the propensities are known."""
        self._learn_seconds = learn_cost(self.shape)

    @property
    def actions(self) -> list[str]:
        """The actions that are offered now."""
        return [action for action, is_offered in self._is_offered.items() if is_offered]

    @property
    def known_actions(self) -> list[str]:
        """All actions, in the order in which they came."""
        return [*self._is_offered]

    @property
    def retired(self) -> list[str]:
        """The retired actions."""
        return [action for action, is_offered in self._is_offered.items() if not is_offered]

    # -- in the lane --------------------------------------------------------------------------------------

    def _learn(self, shown: DecisionRow, reward: float, candidates: Sequence[Candidate]) -> None:
        """Learn from a reward, together with the candidates.

        A refused reward is not learned, nor in a replay.
        """
        self._has_news = True
        features = decode(shown.features, self.config.dim)
        try:
            with (
                _refusals("the reward"),
                suppress(SketchTooSmallWarning, WorldChangedWarning),
            ):  # health() keeps saying it
                update(self.policy, features, shown.arm_id, reward)
        finally:
            for candidate in candidates:
                candidate.learn(features, shown.arm_id, reward)

    def learn_again(self, shown: DecisionRow, reward: float) -> None:
        """Learn from a reward of another bandit, before anything is decided."""
        with suppress(Invalid):
            self._learn(shown, reward, ())

    def retire_all(self, actions: Sequence[str]) -> None:
        """Begin with these actions retired."""
        for action in actions:
            self._retire(action, ())
            self._is_offered[action] = False

    def _add(self, action: str, candidates: Sequence[Candidate]) -> None:
        self._has_news = True
        for models in self._per_action(candidates):
            models.add(action)

    def _retire(self, action: str, candidates: Sequence[Candidate]) -> None:
        self._has_news = True
        for models in self._per_action(candidates):
            models.retire(action)

    def _per_action(self, candidates: Sequence[Candidate]) -> list[PerAction]:
        policies = (self.policy, *(candidate.policy for candidate in candidates))
        return [policy for policy in policies if isinstance(policy, PerAction)]

    def _promote(self, candidate: Candidate, kept: Candidate | None) -> None:
        """Let a candidate decide. Neither it nor the old policy is warming up."""
        if kept is not None:
            kept.policy = self.policy
            kept.policy._scales_itself = True
        self.policy = owned(candidate.policy)

    def _scale(self, row: ScalingRow) -> None:
        """Learn everything again with a new scaling. The last scaling is final."""
        self._has_news = True
        if self.policy.is_warming_up:
            scaling = decode_scaling(row.scaling, self.config.dim)
            with _refusals("the scaling"):
                self.policy.read_by(scaling, is_last=row.is_last, seen=row.arms)

    def about(self, *, is_one_of_many: bool = False) -> "About":
        """The description of the policy: as it is now, or as it was when it could last be asked.

        Many models are asked in the queue, and their description is known at the next call. For a list of
        bandits, two models are already many.
        """
        if self.lane.is_busy or not (self._has_news or self.policy.is_warming_up):
            return self._about
        if self._models == 1 or (not is_one_of_many and self.lane.is_free_for(_ABOUT * self._models)):
            self.look()
        else:
            self.lane.put(self.look, SHORT)
        return self._about

    def look(self) -> None:
        """Ask the policies for their description."""
        self._has_news = False
        self._about = about(self.policy, self.stored)
        for candidate in self.shadows:
            if candidate.is_made:  # otherwise it is about to be made
                candidate.look()

    @property
    @abstractmethod
    def stored(self) -> Stored | None:
        """All arms that there are to choose from, if they are few and the same in every decision."""

    @property
    def _models(self) -> int:
        return (len(self._is_offered) or 1) * (1 + len(self.shadows))

    def _copied(self, shadows: Sequence[Candidate]) -> tuple[AnyPolicy, dict[int, AnyPolicy], list[int]]:
        """Copy what the queue changes: the policies, and how many rewards each candidate refused."""
        policies = {one.number: copy.deepcopy(one.policy) for one in shadows}
        return copy.deepcopy(self.policy), policies, [one.refused for one in shadows]


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Turn a refusal of the policy into a problem. The policy is unchanged."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        raise Invalid(f"{what} is recorded, but cannot be learned from: {error}") from error
