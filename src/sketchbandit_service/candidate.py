"""A policy beside that of a bandit. It learns from the same rewards and never decides."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, NotRequired, TypedDict

from sketchbandit.errors import InputError, InputTypeError, SketchTooSmallWarning, WorldChangedWarning
from sketchbandit.policy import PerAction
from sketchbandit_service.candidate_value import Value, Valued, WeightedSums, weighted_sums
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.costs import learn_cost
from sketchbandit_service.describing import Described, Stored, describe
from sketchbandit_service.held_back import HeldBack, SavedHeld
from sketchbandit_service.types import AnyPolicy, Vector

REWARDS = (0.0, 1.0)
"""The default range of the rewards."""


Settled = Callable[[float], float]
"""The time, at most the given one, up to which no open decision can still change its outcome."""


class About(NamedTuple):
    """A description of a policy."""

    rounds: int
    nbytes: int
    described: Described


def about(policy: AnyPolicy, stored: Stored | None = None) -> About:
    """Describe this policy. ``stored`` are all arms that there are to choose from, if that is known."""
    return About(policy.rounds, policy.nbytes, describe(policy, stored))


def update(policy: AnyPolicy, features: Vector, action: str | None, reward: float) -> None:
    """Learn from the reward of an arm, or of an action in a context."""
    if isinstance(policy, PerAction):
        assert action is not None  # noqa: S101  (for the type checker)
        policy.update(features, action, reward)
    else:
        policy.update(features, reward)


class SavedCandidate(TypedDict):
    """A candidate as JSON."""

    number: int
    name: str
    settings: str
    created: float
    value: list[list[float]]
    held: SavedHeld
    refused: NotRequired[int]


class Candidate:
    """One candidate of a bandit.

    Parameters
    ----------
    number : int
        The record that added it.
    name : str
        The name that people use.
    config : BanditConfig
        The settings of its bandit, with the settings of the candidate's policy.
    reward_range : (float, float)
        The range of all rewards, for the interval around its value.
    created : float
        When it was added.

    """

    policy: AnyPolicy
    """The policy. It is made in the bandit's queue, before anything is learned."""
    about: About | None = None
    """The last description of the policy."""

    def __init__(
        self,
        number: int,
        name: str,
        config: BanditConfig,
        reward_range: Sequence[float] = REWARDS,
        *,
        created: float,
    ) -> None:
        self.number = number
        self.name = name
        self.config = config
        self.reward_range = float(reward_range[0]), float(reward_range[1])
        self.created = created
        self.shape = config.shape
        self.seconds = learn_cost(self.shape)
        self.refused = 0
        """Rewards that its policy could not learn from, mostly because its reward model cannot take them."""
        self._value = Value()
        self._held = HeldBack(WeightedSums, config.reward_timeout or 0.0)
        """What is not yet in the value. A decision counts once the time for its reward is over."""

    @property
    def is_made(self) -> bool:
        """Whether it has its policy."""
        return hasattr(self, "policy")

    @property
    def settings(self) -> str:
        """The settings as the journal has them."""
        return settings_of(self.config, self.reward_range)

    def build(self, is_offered: Mapping[str, bool]) -> None:
        """Make the policy. With actions, make a model for each, including retired ones."""
        config = replace(self.config, actions=[*is_offered]) if is_offered else self.config
        self.policy = config.build()
        if isinstance(self.policy, PerAction):
            for action, offered in is_offered.items():
                if not offered:
                    self.policy.retire(action)

    def learn(self, features: Vector, action: str | None, reward: float) -> None:
        """Learn from a reward. A refused one is not learned, in a replay neither."""
        try:
            with suppress(SketchTooSmallWarning, WorldChangedWarning):  # health() keeps saying it
                update(self.policy, features, action, reward)
        except (InputError, InputTypeError):
            self.refused += 1

    # -- what it would have earned ----------------------------------------------------------------------

    def count(self, at: float, weight: float, reward: float) -> None:
        """Count a decision of the deciding policy with its weight. ``at`` is when it counts."""
        least, most = self.reward_range
        happened = weighted_sums(weight, (reward - least) / (most - least))
        if self.config.reward_timeout is None:
            self._value = self._value.plus(happened)
        else:
            self._held.add(at, happened)

    def release(self, now: float, settled: Settled) -> None:
        """Count what was held back for decisions whose time is over."""
        if self._held.has_news(now):
            for _, happened in self._held.release(settled(now)):
                self._value = self._value.plus(happened)

    def valued(self, now: float, settled: Settled) -> Valued | None:
        """What it would have earned, by all decisions whose time is over. None if there are none."""
        value = self._value
        for _, happened in self._held.due(settled(now)):
            value = value.plus(happened)
        return value.told(self.reward_range)

    @property
    def value(self) -> Valued | None:
        """The same for what was released so far. It does not need the time."""
        return self._value.told(self.reward_range)

    def dump(self) -> "SavedCandidate":
        """The state as JSON, without what the queue changes: the policy and the count of refused rewards."""
        return {
            "number": self.number,
            "name": self.name,
            "settings": self.settings,
            "created": self.created,
            "value": self._value.dump(),
            "held": self._held.dump(),
        }

    def undump(self, saved: "SavedCandidate") -> None:
        """Read what ``dump`` has written, except for what the constructor took."""
        self._value = Value.undump(saved["value"])
        self._held.undump(saved["held"])

    def look(self) -> None:
        """Ask the policy for its description."""
        self.about = about(self.policy)


def settings_of(config: BanditConfig, reward_range: Sequence[float]) -> str:
    """The settings in the record of a new candidate."""
    return json.dumps({"policy": config.of_policy, "reward_range": list(reward_range)}, sort_keys=True)


def candidate_of(saved: "SavedCandidate", config: BanditConfig) -> Candidate:
    """Read a candidate from what ``dump`` has written, except for its policy and what it refused."""
    made = candidate_from(saved["number"], saved["name"], saved["settings"], config, created=saved["created"])
    made.undump(saved)
    return made


def candidate_from(
    number: int, name: str, settings: str, config: BanditConfig, *, created: float
) -> Candidate:
    """Read a candidate from its record. ``config`` is that of its bandit."""
    said = json.loads(settings)
    own = BanditConfig.from_json(config.with_policy(said["policy"]).to_json())  # this checks the settings
    return Candidate(number, name, own, said["reward_range"], created=created)
