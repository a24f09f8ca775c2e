"""How a choice follows from means and widths: the contract of an exploration rule."""

import inspect
import json
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Literal

import numpy as np

from sketchbandit.arms import Batch, View
from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.screening import Aim
from sketchbandit.kinds import Kinds, setting_names
from sketchbandit.precision import Precision
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.theory import Confidence

Auto = Literal["auto"]

FIELDS = {field.name for field in fields(Confidence)}


class Explore(Kinds, ABC):
    """A way to choose: settings and no state. A policy makes a copy of the rule that it is given.

    The policy owns the generator that a rule draws from, seeds it with ``seed`` and saves it. Subclasses
    set ``kind``, a name of their own, if their policies are to be saved. Arguments of their constructor that
    they keep as attributes of the same name are saved with them.

    Parameters
    ----------
    floor : float
        The share of choices drawn uniformly: p = (1 - floor)·rule + floor/K. No probability is less than
        floor/K, so that no importance weight is more than K/floor.
    seed : int
        Of the policy's generator; from the operating system unless it is given.

    """

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "exploration rule"

    beta: float | Confidence | Auto | None = None
    """By which widths count; "auto": by the deviation of the rewards; None: as the policy says."""
    floor: float = 0.0
    seed: int | None = None
    _is_bound = False  # to a policy

    draws: ClassVar[bool] = True
    """Whether ``choose`` makes use of the generator."""
    by_rewards: ClassVar[bool] = False
    """Whether it looks at how far mean rewards lie apart; else the order of the margins is enough."""
    exact_probabilities: ClassVar[bool] = True
    """Whether ``probabilities`` are exact; else they are sampled."""

    def __init__(self, *, floor: float = 0.0, seed: int | None = None) -> None:
        self.floor = check_real("floor", floor, at_least=0.0, at_most=1.0)
        self.seed = None if seed is None else check_count("seed", seed, at_least=0)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_bound and name in setting_names(type(self)):
            raise InputError(
                f"the rule is a policy's, which has read its {name}; give the policy another rule: "
                f"policy.explore = {type(self).__name__}({name}={value!r})"
            )
        super().__setattr__(name, value)

    def bind(self) -> None:
        """A policy chooses by it from now on: its settings stay as they are."""
        self._is_bound = True

    def unbind(self) -> None:
        """It is a copy, and no policy's yet."""
        self._is_bound = False

    def __repr__(self) -> str:
        """The first setting, and those that are not as by default."""
        given = inspect.signature(type(self)).parameters.values()
        shown = [
            f"{one.name}={getattr(self, one.name)!r}"
            for place, one in enumerate(given)
            if hasattr(self, one.name) and (_is_main(place, one) or getattr(self, one.name) != one.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def uniform_share(self) -> float:
        """The share of choices that are drawn uniformly, whatever the rule would choose."""
        return self.floor

    @property
    def is_random(self) -> bool:
        """Whether chance plays a part."""
        return self.draws or self.uniform_share > 0.0

    @abstractmethod
    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The indices of ``count`` arms, the best first; the uniform share is drawn by the policy.

        A rule that draws is asked for one at a time.
        """

    def probabilities(self, candidates: Candidates) -> Vector:
        """The probability with which ``choose`` chooses each arm, (K,), without the uniform share."""
        if self.draws:
            raise InputError(
                f"{type(self).__name__} does not tell its probabilities; give it a method "
                "probabilities(candidates), or say draws = False if it never draws"
            )
        (chosen,) = self.choose(candidates, 1, np.random.default_rng(0))
        return one_hot(chosen, len(candidates))

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """``choose`` among dense arms whose margins are x'theta, where a rule has a quicker way.

        A rule that goes ``by_rewards`` is not asked where mean rewards are something else.

        None: it has none. -1: a score is not finite. In both cases nothing was drawn.
        """
        del arms, theta, precision, radius, random
        return None

    def search_many(
        self, batch: Batch, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> AnyArray | None:
        """``search`` for many sets.

        None: there is no quicker way, and nothing was drawn. Negative: this one has to be chosen by itself,
        which only a rule that does not draw may say.
        """
        del batch, theta, precision, radius, random
        return None

    def chances_many(self, batch: Batch, theta: Vector, precision: Precision, radius: float) -> Vector | None:
        """``probabilities`` of the arms of many sets, one below the other, where there is a quicker way.

        None: there is none. NaN: this set has to be asked for by itself. A rule that does not draw tells what
        ``search_many`` finds; asked as ``search`` is.
        """
        if self.draws:
            return None
        found = self.search_many(batch, theta, precision, radius, np.random.default_rng(0))
        if found is None:
            return None
        counts, is_found = np.diff(batch.bounds), found >= 0
        chances = np.repeat(np.where(is_found, 0.0, np.nan), counts)
        chances[(batch.bounds[:-1] + found)[is_found]] = 1.0
        return chances

    def aim(self, theta: Vector, radius: float) -> Aim | None:
        """What ``choose`` looks for among arms whose margins are x'theta, if that is a largest score.

        Then most of many arms are excluded at a glance (``explore.screening``). None: it needs all of them.
        """
        del theta, radius
        return None

    @property
    def aims(self) -> bool:
        """Whether there is an ``aim``, of itself or of what ``settled`` gives."""
        return False

    def settled(self, precision: Precision, random: np.random.Generator) -> "Explore":
        """The rule by which one choice is made, with all that it draws drawn: itself, if that is nothing."""
        del precision, random
        return self

    def for_batch(self, precision: Precision, random: np.random.Generator) -> "Explore":
        """The rule by which a batch of requests is decided: itself, unless a batch shares what is drawn."""
        del precision, random
        return self

    # -- settings and files -------------------------------------------------------------------------

    def settings(self) -> Scalars:
        """What ``explore.named.rule_of`` makes the same rule of: JSON values, ``rule`` its name."""
        return {"rule": self.kind, **_settings_of(self)}

    def is_like(self, other: "Explore") -> bool:
        """Whether the other is the same rule but for its seed."""
        if type(self) is not type(other):
            return False
        mine, theirs = (vars(rule) | {"seed": None, "_is_bound": True} for rule in (self, other))
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def check_kind(self) -> None:
        """Refuse a rule of which a file would lose something."""
        super().check_kind()
        lost = [name for name in vars(self) if name not in (*setting_names(type(self)), "_is_bound")]
        if lost and type(self).dump is Explore.dump:
            raise InputTypeError(
                f"{type(self).__name__} has attributes ({', '.join(lost)}) that are no arguments of its "
                "constructor, and no method dump: a file would lose them"
            )

        for name, value in self.dump()[0].items():
            try:
                json.dumps(value)
            except TypeError as error:
                raise InputTypeError(
                    f"{type(self).__name__}.{name} is {value!r}, which a file cannot hold; use numbers, "
                    "strings, lists and dicts, or write dump and undump"
                ) from error

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same rule."""
        return _settings_of(self), {}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Explore":
        """The rule that ``dump`` described."""
        del arrays
        return cls(**{name: read_setting(value) for name, value in scalars.items()})


def _is_main(place: int, parameter: inspect.Parameter) -> bool:
    return place == 0 and parameter.kind is not inspect.Parameter.KEYWORD_ONLY


def one_hot(index: int, count: int) -> Vector:
    """All probability on one arm."""
    chances = np.zeros(count)
    chances[index] = 1.0
    return chances


def with_share(chances: Vector, share: float) -> Vector:
    """(1 - share)·chances + share/K."""
    return chances if not share else (1.0 - share) * chances + share / len(chances)


def check_factor(name: str, value: Any) -> float | Confidence:
    """A constant >= 0 or a Confidence."""
    return value if isinstance(value, Confidence) else check_real(name, value, at_least=0.0)


def check_strength(name: str, value: Any) -> float | Confidence | Auto:
    """A constant >= 0, a Confidence, or "auto"."""
    return "auto" if isinstance(value, str) and value == "auto" else check_factor(name, value)


def _settings_of(rule: Explore) -> Scalars:
    values = {name: getattr(rule, name) for name in setting_names(type(rule)) if hasattr(rule, name)}
    return {name: vars(value) if isinstance(value, Confidence) else value for name, value in values.items()}


def read_setting(value: Any) -> Any:
    """A setting from JSON: what has the fields of a Confidence is one."""
    is_confidence = isinstance(value, dict) and value.keys() == FIELDS
    return Confidence(**value) if is_confidence else value


def chances_of(rule: Explore, candidates: Candidates) -> Vector:
    """The rule's probabilities, if that is what it tells."""
    chances = np.asarray(rule.probabilities(candidates), dtype=np.float64)
    count = len(candidates)
    if chances.shape != (count,) or not (chances >= 0.0).all() or not abs(chances.sum() - 1.0) < 1e-6:
        raise InputError(
            f"{type(rule).__name__}.probabilities must return {count} numbers that sum to one, got {chances}"
        )
    return chances


def check_rule(rule: Explore) -> None:
    """Refuse a rule whose ``choose`` cannot be called."""
    try:
        inspect.signature(rule.choose).bind(None, 1, None)
    except TypeError as error:
        raise InputTypeError(
            f"{type(rule).__name__}.choose must take (candidates, count, random): {error}"
        ) from error
