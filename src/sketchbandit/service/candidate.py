"""A policy beside that of a bandit: it learns from the same rewards, and never decides."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from sketchbandit.errors import InputError, InputTypeError, SketchTooSmallWarning, WorldChangedWarning
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.costs import learn_cost
from sketchbandit.service.describing import Described, describe
from sketchbandit.service.held_back import HeldBack
from sketchbandit.service.valuing import Value, Valued
from sketchbandit.service.weighed import Weighed, weighed

REWARDS = (0.0, 1.0)
"""In which range rewards lie unless something else is said."""


Settled = Callable[[float], float]
"""Until when, at the latest at a given time, no deadline is ahead of a decision that is open."""


class About(NamedTuple):
    """What there is to say of a policy."""

    rounds: int
    nbytes: int
    described: Described


def about(policy: Any) -> About:
    """Of this one."""
    return About(policy.rounds, policy.nbytes, describe(policy))


class Candidate:
    """One candidate of a bandit.

    Parameters
    ----------
    number : int
        The record by which it was added.
    name : str
        By which people know it.
    config : BanditConfig
        That of its bandit, with the settings of the candidate's policy.
    reward_range : (float, float)
        Within which all rewards lie, for the interval around its value.
    created : float
        When it was added.

    """

    policy: Any = None
    """Made in the lane of the bandit, before anything is learned."""
    about: About | None = None
    """What there was to say of the policy when it was asked."""

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
        """Rewards that its policy could not learn from: outside the range of its reward model, mostly."""
        self._value = Value()
        self._held = HeldBack(Weighed, config.reward_timeout or 0.0)
        """What is not yet in the value: decisions count when the time for their reward is over."""

    @property
    def settings(self) -> str:
        """As the journal keeps them."""
        return settings_of(self.config, self.reward_range)

    def build(self, is_offered: Mapping[str, bool]) -> None:
        """Make the policy; for actions a model of each, those that are offered no more among them."""
        if not is_offered:
            self.policy = self.config.build()
            return
        self.policy = replace(self.config, actions=[*is_offered]).build()
        for action, offered in is_offered.items():
            if not offered:
                self.policy.retire(action)

    def learn(self, told: Iterable[Any]) -> None:
        """What ``update`` of the policy is told. What it refuses is not learned, in a replay neither."""
        try:
            with suppress(SketchTooSmallWarning, WorldChangedWarning):  # health() keeps saying it
                self.policy.update(*told)
        except (InputError, InputTypeError):
            self.refused += 1

    # -- what it would have earned ----------------------------------------------------------------------

    def count(self, at: float, weight: float, reward: float) -> None:
        """A decision of the policy that decides, by its weight; ``at``: when it counts."""
        least, most = self.reward_range
        happened = weighed(weight, (reward - least) / (most - least))
        if self.config.reward_timeout is None:
            self._value = self._value.plus(happened)
        else:
            self._held.add(at, happened)

    def release(self, now: float, settled: Settled) -> None:
        """Count what was held back of decisions whose time is over."""
        if self._held.has_news(now):
            for _, happened in self._held.release(settled(now)):
                self._value = self._value.plus(happened)

    def valued(self, now: float, settled: Settled) -> Valued | None:
        """What it would have earned, by all decisions whose time is over; None: there is none."""
        value = self._value
        for _, happened in self._held.due(settled(now)):
            value = value.plus(happened)
        return value.told(self.reward_range)

    @property
    def value(self) -> Valued | None:
        """The same as far as it was released, by whoever does not know the time."""
        return self._value.told(self.reward_range)

    def dump(self) -> dict[str, Any]:
        """As JSON, but for what is changed in the lane: the policy, and how many rewards it refused."""
        return {
            "number": self.number,
            "name": self.name,
            "settings": self.settings,
            "created": self.created,
            "value": self._value.dump(),
            "held": self._held.dump(),
        }

    def undump(self, saved: Mapping[str, Any]) -> None:
        """Back from ``dump``, but for what it was made with."""
        self._value = Value.undump(saved["value"])
        self._held.undump(saved["held"])

    def look(self) -> None:
        """Ask the policy what there is to say of it."""
        self.about = about(self.policy)


def settings_of(config: BanditConfig, reward_range: Sequence[float]) -> str:
    """What a record of a new candidate says."""
    return json.dumps({"policy": config.of_policy, "reward_range": list(reward_range)}, sort_keys=True)


def candidate_from(
    number: int, name: str, settings: str, config: BanditConfig, *, created: float
) -> Candidate:
    """Back from its record; ``config`` is that of its bandit."""
    said = json.loads(settings)
    own = BanditConfig.from_json(config.with_policy(said["policy"]).to_json())  # which checks it
    return Candidate(number, name, own, said["reward_range"], created=created)
