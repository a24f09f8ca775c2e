"""An exploration rule, and the random generator that it draws from."""

import copy
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Explore
from sketchbandit.explore.base import check_rule
from sketchbandit.serialization import Stored
from sketchbandit.sketch.checks import check_count

NEVER_USED = np.random.default_rng(0)
"""The generator of policies that draw nothing."""


class Exploring(Stored):
    """Base class of learners that choose by an exploration rule."""

    _explore: Explore
    _share: float
    _random: np.random.Generator = NEVER_USED
    _is_part = False  # whether it is one of the models of a ``PerAction``

    def _explore_by(self, rule: Explore) -> None:
        """Use this rule from now on. The caller gives it away."""
        before = getattr(self, "_explore", None)  # vars(self) would make every later attribute access slower
        rule.bind()
        self._explore, self._share = rule, rule.uniform_share
        if not rule.is_random:
            self._random = NEVER_USED
        elif rule.seed is not None or before is None or not before.is_random:
            self._random = np.random.default_rng(rule.seed)

    @property
    def explore(self) -> Any:  # an Explore
        """The exploration rule. It can be replaced at any time, and what was learned stays.

        The generator continues, unless the new rule has a seed.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(3)
        >>> policy.explore = sb.Thompson(0.1, seed=0)
        >>> policy.explore
        Thompson(scale=0.1, seed=0)

        """
        return self._explore

    @explore.setter
    def explore(self, rule: Explore) -> None:
        with self._lock:
            if self._is_part:
                raise InputError(
                    "this model belongs to a PerAction; set the rule there: models.explore = ..."
                )
            self._explore_by(copy_of_rule(rule))

    @property
    def random(self) -> np.random.Generator | None:
        """The generator that choices draw from; None if the rule is not random."""
        return self._random if self._explore.is_random else None

    def reseed(self, seed: int | None = None) -> None:
        """Draw from a new generator. Use this for copies, which would otherwise all choose alike."""
        made = np.random.default_rng(None if seed is None else check_count("seed", seed, at_least=0))
        if self._explore.is_random:
            self._random = made


def copy_of_rule(rule: Any) -> Explore:
    """A copy of a rule, checked."""
    if isinstance(rule, type) and issubclass(rule, Explore):
        raise InputTypeError(f"explore is the class {rule.__name__}; give an instance, made by calling it")
    if not isinstance(rule, Explore):
        raise InputTypeError(
            f"explore is {rule!r:.60}; give a rule, for instance sb.Thompson(0.1), or one of your "
            "own subclass of sketchbandit.Explore"
        )
    check_rule(rule)
    made = copy.deepcopy(rule)
    made.unbind()
    return made
