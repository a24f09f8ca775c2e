"""A rule and the generator that it draws from."""

import copy
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Explore
from sketchbandit.explore.base import check_rule
from sketchbandit.sketch.checks import check_count
from sketchbandit.storing import Stored

NEVER_USED = np.random.default_rng(0)
"""The generator of policies whose choices leave nothing to chance."""


class Exploring(Stored):
    """What chooses by a rule."""

    _explore: Explore
    _share: float
    _random: np.random.Generator = NEVER_USED
    _is_part = False  # of a whole whose rule it follows

    def _explore_by(self, rule: Explore) -> None:
        """Choose by this rule, which is nobody else's, from now on."""
        before = getattr(self, "_explore", None)  # vars(self) would make every attribute slower from then on
        rule.bind()
        self._explore, self._share = rule, rule.uniform_share
        if not rule.is_random:
            self._random = NEVER_USED
        elif rule.seed is not None or before is None or not before.is_random:
            self._random = np.random.default_rng(rule.seed)

    @property
    def explore(self) -> Any:  # an Explore
        """How choices are made. Another rule may be given at any time; what was learned stays.

        The generator goes on, unless the new rule has a seed.
        """
        return self._explore

    @explore.setter
    def explore(self, rule: Explore) -> None:
        with self._lock:
            if self._is_part:
                raise InputError(
                    "this model is one of several; set the rule of all of them: models.explore = ..."
                )
            self._explore_by(copy_of_rule(rule))

    @property
    def random(self) -> np.random.Generator | None:
        """The generator that choices draw from; None where chance plays no part."""
        return self._random if self._explore.is_random else None

    def reseed(self, seed: int | None = None) -> None:
        """Draw from a new generator: for replicas, which would otherwise choose alike for ever."""
        made = np.random.default_rng(None if seed is None else check_count("seed", seed, at_least=0))
        if self._explore.is_random:
            self._random = made


def copy_of_rule(rule: Any) -> Explore:
    """A rule that is nobody else's."""
    if isinstance(rule, type) and issubclass(rule, Explore):
        raise InputTypeError(f"explore is the class {rule.__name__}; give one of it, made by calling it")
    if not isinstance(rule, Explore):
        raise InputTypeError(
            f"explore is {rule!r:.60}; give a rule, such as sb.Thompson(0.1), or derive one from "
            "sketchbandit.Explore"
        )
    check_rule(rule)
    made = copy.deepcopy(rule)
    made.unbind()
    return made
