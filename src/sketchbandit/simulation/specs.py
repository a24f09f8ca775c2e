"""A name with settings, as data: ``soful:size=50``. Policies, environments and sketches are asked for so."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sketchbandit.errors import InputError

Value = int | float | str | None
_WORDS: dict[str, Value] = {"none": None, "true": True, "false": False}


class Spec(NamedTuple):
    """A name and its settings, sorted, so that equal specs are equal."""

    name: str
    settings: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        return self.name + (":" + ",".join(f"{k}={v}" for k, v in self.settings) if self.settings else "")

    @classmethod
    def from_list(cls, parts: Sequence[Any]) -> "Spec":
        """The spec that JSON turned into lists."""
        name, settings = parts
        return cls(name, tuple((key, value) for key, value in settings))

    def with_settings(self, **settings: Value) -> "Spec":
        """The same with some settings added or replaced."""
        return spec(self.name, **{**dict(self.settings), **settings})

    def without(self, *names: str) -> "Spec":
        """The same with some settings taken out."""
        return Spec(self.name, tuple((k, v) for k, v in self.settings if k not in names))

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a setting."""
        return dict(self.settings).get(name, default)


def spec(name: str, **settings: Value) -> Spec:
    """A spec from keywords. Whole floats become integers, so that 8 and 8.0 are the same setting."""
    values = {
        key: int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
        for key, value in settings.items()
    }
    return Spec(name, tuple(sorted(values.items())))


def parse(text: str) -> Spec:
    """``name`` or ``name:key=value,key=value``.

    >>> parse("dbslinucb:size=50,epsilon=8")
    Spec(name='dbslinucb', settings=(('epsilon', 8), ('size', 50)))
    """
    name, _, rest = text.strip().partition(":")
    settings: dict[str, Value] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"cannot read {part!r} in {text!r}; write {name}:key=value,key=value")
        if key.strip() in settings:
            raise InputError(f"{key.strip()} is given twice in {text!r}")
        settings[key.strip()] = _value(value.strip())
    return spec(name, **settings)


def _value(text: str) -> Value:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


UNIFORM = spec("uniform")
"""A uniform choice: the reference of every comparison."""
UNIFORM_TITLE = "Uniform"


def is_chance(policy: Spec) -> bool:
    """Whether a contender is the uniform choice; it has no settings."""
    if policy.name == UNIFORM.name and policy != UNIFORM:
        raise InputError(f"{policy}: uniform chooses by chance and has no settings")
    return policy == UNIFORM
