"""The interface of an exploration rule: how a choice is made from means and confidence widths."""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Literal

import numpy as np

from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore.candidates import Candidates
from sketchbandit.registry import Registry, setting_names
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.theory import Confidence

Auto = Literal["auto"]

_WAYS = ("bound", "draw", "mean", "gap", None)
FIELDS = {field.name for field in fields(Confidence)}


RULES: Registry["Explore"] = Registry("exploration rule")


class Explore(ABC):
    """Base class of exploration rules. A rule has settings, but no state. A policy makes a copy.

    The policy owns the random generator of a rule. It seeds it with ``seed``, and saves its state. A subclass
    needs a ``kind``, a name of its own, if policies with it are to be saved. Constructor arguments that it
    keeps as attributes of the same name are saved too (docs/extending.md).

    Parameters
    ----------
    floor : float
        The share of choices that are drawn uniformly: p = (1 - floor)·rule + floor/K. So no propensity is
        below floor/K, and no importance weight is above K/floor.
    seed : int, optional
        Seed of the policy's generator. By default the operating system provides it.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> class Longest(sb.Explore):  # a rule of one's own
    ...     draws = False
    ...
    ...     def choose(self, candidates, count, random):
    ...         return candidates.most_widths().argsort()[::-1][:count].tolist()
    >>> sb.oful(2, explore=Longest()).select([[1.0, 0.0], [0.0, 2.0]])
    1

    """

    kind: ClassVar[str]
    """The name of the rule in files and settings."""
    beta: float | Confidence | Auto | None = None
    """The factor on widths. "auto" follows the standard deviation of the rewards; None is the policy's."""
    floor: float = 0.0
    seed: int | None = None
    _is_bound = False  # whether it belongs to a policy

    draws: ClassVar[bool] = True
    """Whether ``choose`` uses the random generator."""
    by_rewards: ClassVar[bool] = False
    """Whether the rule needs the differences of mean rewards. If not, the order of the margins is enough."""
    exact_probabilities: ClassVar[bool] = True
    """Whether ``probabilities`` are exact. If not, they are estimated by sampling."""
    chooses_by: ClassVar[Literal["bound", "draw", "mean", "gap"] | None] = None
    """What ``choose`` follows from, if that is all, so that a policy may find the arm its own fastest way:
    the largest mean + beta·width, the largest score of one draw from N(theta, beta²·A^-1), the largest mean,
    or inverse gap weighting of the means with ``gap_factor``. A subclass with its own ``choose`` has None."""
    _has_own_probabilities = False  # whether they may differ from those of what it chooses by
    per: str = "request"
    """Whether every request of a batch gets a draw of its own; "batch": one draw serves them all."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        RULES.register(cls)
        choose, probabilities, stated = (
            next(place for place, owner in enumerate(cls.__mro__) if name in vars(owner))
            for name in ("choose", "probabilities", "chooses_by")
        )
        if choose < stated:  # of its own, or of a mixin
            cls.chooses_by = None
        if cls.chooses_by not in _WAYS:
            raise InputTypeError(
                f"{cls.__name__}.chooses_by is {cls.chooses_by!r}; give one of {', '.join(map(repr, _WAYS))}"
            )
        cls._has_own_probabilities = probabilities < stated

    def __init__(self, *, floor: float = 0.0, seed: int | None = None) -> None:
        self.floor = check_real("floor", floor, at_least=0.0, at_most=1.0)
        self.seed = None if seed is None else check_count("seed", seed, at_least=0)

    def __setattr__(self, name: str, value: object) -> None:
        if self._is_bound and name in setting_names(type(self)):
            raise InputError(
                f"this rule belongs to a policy, so its {name} cannot change; give the policy a new rule: "
                f"policy.explore = {type(self).__name__}({name}={value!r})"
            )
        super().__setattr__(name, value)

    def bind(self) -> None:
        """Note that a policy uses this rule. From now on its settings cannot change."""
        self._is_bound = True

    def unbind(self) -> None:
        """Note that this is a copy that belongs to no policy."""
        self._is_bound = False

    def __repr__(self) -> str:
        """The first setting, and the settings that differ from their defaults."""
        given = inspect.signature(type(self)).parameters.values()
        shown = [
            f"{one.name}={getattr(self, one.name)!r}"
            for place, one in enumerate(given)
            if hasattr(self, one.name) and (_is_main(place, one) or getattr(self, one.name) != one.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def uniform_share(self) -> float:
        """The share of all choices that are drawn uniformly, whatever the rule prefers."""
        return self.floor

    @property
    def is_random(self) -> bool:
        """Whether choices are random at all."""
        return self.draws or self.uniform_share > 0.0

    @abstractmethod
    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Return the indices of ``count`` arms, best first.

        The policy applies the uniform share itself. A rule that draws is asked for one arm at a time.

        Parameters
        ----------
        candidates : Candidates
            The arms: their means, and methods for widths and draws.
        count : int
            How many arms to choose.
        random : numpy.random.Generator
            The generator to draw from.

        Returns
        -------
        list of int

        """

    def probabilities(self, candidates: Candidates) -> Vector:
        """The probability that ``choose`` returns each arm, shape (K,), without the uniform share."""
        if self.draws:
            raise InputError(
                f"{type(self).__name__} cannot compute its probabilities; give it a method "
                "probabilities(candidates), or set draws = False if it never draws"
            )
        (chosen,) = self.choose(candidates, 1, np.random.default_rng(0))
        return one_hot(chosen, len(candidates))

    def gap_factor(self, rounds: int) -> float | None:
        """gamma after so many rounds, for rules that choose by gaps; None if means alone do not give it."""
        del rounds
        return None

    # -- settings and files -------------------------------------------------------------------------

    def settings(self) -> Scalars:
        """The settings as JSON values, with the name as ``rule``: the input of ``rule_of``."""
        return {"rule": self.kind, **_settings_of(self)}

    def is_like(self, other: "Explore") -> bool:
        """Whether the other rule is the same, apart from its seed."""
        if type(self) is not type(other):
            return False
        mine, theirs = (vars(rule) | {"seed": None, "_is_bound": True} for rule in (self, other))
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def _saved(self) -> tuple[Scalars, Arrays]:
        """What ``dump`` returns. Raises if a file could not hold the whole rule."""
        RULES.check(self)
        lost = [name for name in vars(self) if name not in (*setting_names(type(self)), "_is_bound")]
        if lost and type(self).dump is Explore.dump:
            raise InputTypeError(
                f"{type(self).__name__} has attributes ({', '.join(lost)}) that are not arguments of its "
                "constructor, so a file would lose them; make them arguments, or write dump and undump"
            )
        scalars, arrays = self.dump()
        for name, value in scalars.items():
            try:
                json.dumps(value)
            except TypeError as error:
                raise InputTypeError(
                    f"{type(self).__name__}.{name} is {value!r}, which a file cannot hold; use numbers, "
                    "strings, lists and dicts, or write dump and undump"
                ) from error
        return scalars, arrays

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same rule."""
        return _settings_of(self), {}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Explore":
        """Return the rule that ``dump`` described."""
        del arrays
        return cls(**{name: read_setting(value) for name, value in scalars.items()})


def rule_of(given: object) -> Explore:
    """A rule, given as such, by its name, or as a mapping with its name as ``rule`` and its settings.

    Examples
    --------
    >>> rule_of({"rule": "thompson", "scale": 0.5}).settings()["scale"]
    0.5

    """
    if isinstance(given, Explore):
        return given
    if isinstance(given, Mapping):
        given = {key: value if key == "rule" else _read(value) for key, value in given.items()}
    refusal = 'explore must be a rule, its name, or a mapping such as {"rule": "thompson", "scale": 0.1}'
    return RULES.make(given, key="rule", refusal=refusal)


def _read(value: object) -> object:
    """A number, or a Confidence from a mapping of its fields. Missing fields have their defaults."""
    return Confidence(**value) if isinstance(value, Mapping) and value.keys() <= FIELDS else value


def _is_main(place: int, parameter: inspect.Parameter) -> bool:
    return place == 0 and parameter.kind is not inspect.Parameter.KEYWORD_ONLY


def one_hot(index: int, count: int) -> Vector:
    """Probability one for one arm, zero for the others."""
    chances = np.zeros(count)
    chances[index] = 1.0
    return chances


def with_share(chances: Vector, share: float) -> Vector:
    """(1 - share)·chances + share/K."""
    return chances if not share else (1.0 - share) * chances + share / len(chances)


def chances_with_share(chances: Vector, bounds: AnyArray, share: float) -> Vector:
    """``with_share`` for many sets at once. Set i has the entries from bounds[i] to bounds[i + 1]."""
    if not share:
        return chances
    counts = np.diff(bounds)
    return (1.0 - share) * chances + np.repeat(share / counts, counts)


def mixed(chance: float, share: float, count: int) -> float:
    """``with_share`` of one arm."""
    return chance if not share else (1.0 - share) * chance + share / count


def check_factor(name: str, value: object) -> float | Confidence:
    """Check a constant >= 0 or a Confidence."""
    return value if isinstance(value, Confidence) else check_real(name, value, at_least=0.0)


def check_strength(name: str, value: object) -> float | Confidence | Auto:
    """Check a constant >= 0, a Confidence, or "auto"."""
    return "auto" if isinstance(value, str) and value == "auto" else check_factor(name, value)


def _settings_of(rule: Explore) -> Scalars:
    values = {name: getattr(rule, name) for name in setting_names(type(rule)) if hasattr(rule, name)}
    return {name: vars(value) if isinstance(value, Confidence) else value for name, value in values.items()}


def read_setting(value: object) -> Any:
    """A setting from JSON. A dict with the fields of a Confidence becomes one."""
    return Confidence(**value) if isinstance(value, dict) and value.keys() == FIELDS else value


def chances_of(rule: Explore, candidates: Candidates) -> Vector:
    """The probabilities that a rule returns. Raises unless they are probabilities."""
    chances = np.asarray(rule.probabilities(candidates), dtype=np.float64)
    count = len(candidates)
    if chances.shape != (count,) or not (chances >= 0.0).all() or not abs(chances.sum() - 1.0) < 1e-6:
        raise InputError(
            f"{type(rule).__name__}.probabilities must return {count} numbers that sum to one, got {chances}"
        )
    return chances


def check_rule(rule: Explore) -> None:
    """Raise if ``choose`` does not take the right arguments."""
    try:
        inspect.signature(rule.choose).bind(None, 1, None)
    except TypeError as error:
        raise InputTypeError(
            f"{type(rule).__name__}.choose must take (candidates, count, random): {error}"
        ) from error
