"""Classes by the names that files use for them."""

import inspect
from functools import cache
from typing import Any, ClassVar, Self

from sketchbandit.errors import FileError, InputTypeError


class Kinds:
    """A family of classes, each with a name, its ``kind``. The root of a family has its own dict ``_kinds``.

    A class that sets ``kind`` is registered by that; there is no list to add it to.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Any]]]
    _noun: ClassVar[str]
    """The name of the family in messages."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            known = cls._kinds.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise InputTypeError(
                    f"kind {cls.kind!r} is that of {known.__module__}.{known.__qualname__}; choose another"
                )
            cls._kinds[cls.kind] = cls  # the same class, defined again

    @classmethod
    def has_kind(cls, kind: str) -> bool:
        """Whether the family has a class of this kind."""
        return kind in cls._kinds

    @classmethod
    def of_kind(cls, kind: str) -> type[Self]:
        """The class of this kind."""
        if kind not in cls._kinds:
            raise FileError(
                f"unknown kind of {cls._noun} {kind!r} (known: {', '.join(sorted(cls._kinds))}); "
                "if a package of yours defines it, import that package before loading"
            )
        return cls._kinds[kind]

    def check_kind(self) -> None:
        """Raise if a subclass uses the kind of another class: a file could not tell them apart."""
        known = self._kinds.get(getattr(self, "kind", ""))
        if known is not type(self):
            named = "" if known is None else f"; {self.kind!r} names {known.__name__}"
            raise InputTypeError(f"{type(self).__name__} needs a `kind` of its own to be saved{named}")


@cache
def setting_names(kind: type[Kinds]) -> tuple[str, ...]:
    """The names of the constructor's arguments."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = list(inspect.signature(kind).parameters.values())
    return tuple(parameter.name for parameter in named if parameter.kind in kinds)
