"""Classes by the names that files, requests and command lines use for them."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

from sketchbandit.errors import FileError, InputError, InputTypeError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of classes, each with a name of its own, its ``kind``.

    The base class of a family passes every subclass to ``register``. There is no list to add a class to.

    >>> shapes = Registry[object]("shape")
    >>> class Circle:
    ...     kind = "circle"
    >>> shapes.register(Circle)
    >>> "circle" in shapes, shapes.of_kind("circle").__name__
    (True, 'Circle')
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._classes: dict[str, type[T]] = {}

    def __contains__(self, kind: object) -> bool:
        return kind in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def register(self, cls: type[T]) -> None:
        """Register a class if it has a ``kind`` of its own. The same class may be defined again."""
        if "kind" not in vars(cls):
            return
        kind: str = vars(cls)["kind"]
        known = self._classes.get(kind, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InputTypeError(
                f"kind {kind!r} is that of {known.__module__}.{known.__qualname__}; choose another"
            )
        self._classes[kind] = cls

    @property
    def built_in(self) -> dict[str, type[T]]:
        """The classes of this package, without those of users."""
        package = __name__.partition(".")[0]
        return {kind: cls for kind, cls in self._classes.items() if cls.__module__.startswith(f"{package}.")}

    def of_kind(self, kind: str) -> type[T]:
        """The class that a file names."""
        if kind not in self._classes:
            raise FileError(
                f"unknown kind of {self._noun} {kind!r} (known: {', '.join(sorted(self._classes))}); "
                "if a package of yours defines it, import that package before loading"
            )
        return self._classes[kind]

    def named(self, name: object) -> type[T]:
        """The class that a user names."""
        if not isinstance(name, str) or name not in self._classes:
            raise InputError(f"unknown {self._noun} {name!r:.80}; choose from {', '.join(self.built_in)}")
        return self._classes[name]

    def check(self, thing: T) -> None:
        """Raise if the class of an object uses the kind of another: a file could not tell them apart."""
        cls = type(thing)
        kind = getattr(cls, "kind", "")
        known = self._classes.get(kind)
        if known is not cls:
            named = "" if known is None else f"; {kind!r} names {known.__name__}"
            raise InputTypeError(f"{cls.__name__} needs a `kind` of its own to be saved{named}")

    def make(self, given: object, *, key: str, refusal: str) -> T:
        """A fresh object, given by its name, or as a mapping of its name, under ``key``, and its settings.

        ``refusal`` says what else could be given.
        """
        if isinstance(given, str):
            return self.named(given)()
        if not isinstance(given, Mapping) or key not in given:
            raise InputTypeError(f"{refusal}, got {given!r:.80}")
        cls, settings = self.named(given[key]), {name: given[name] for name in given if name != key}
        known: tuple[str, ...] = setting_names(cls)  # type: ignore[arg-type]  # types are hashable
        for name in settings:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise InputError(f"{given[key]} has no setting {name!r:.80}; {takes}")
        return cls(**settings)


@cache
def setting_names(cls: type[Any]) -> tuple[str, ...]:
    """The names of the constructor's arguments."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = list(inspect.signature(cls).parameters.values())
    return tuple(parameter.name for parameter in named if parameter.kind in kinds)
