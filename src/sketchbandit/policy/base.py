"""What policies have in common besides choosing: files, copies, and that threads may share them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.errors import FileError, InputTypeError
from sketchbandit.sharing import Shared


class SavedPolicy(Shared, ABC):
    """A policy that can be saved; ``sketchbandit.load`` knows it by its ``kind``."""

    kind: ClassVar[str]

    _kinds: ClassVar[dict[str, type["SavedPolicy"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            SavedPolicy._kinds[cls.kind] = cls

    def save(self, path: str | Path) -> None:
        """Write the policy to ``path`` (safetensors, atomically); ``sketchbandit.load`` reads it back."""
        scalars, arrays = self._dump()
        files.write(Path(path), self.kind, scalars, arrays)

    def _dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``_undump`` makes the same policy."""
        if SavedPolicy._kinds.get(self.kind) is not type(self):
            raise InputTypeError(
                f"{type(self).__name__} needs a `kind` of its own to be saved; {self.kind!r} names "
                f"{SavedPolicy._kinds[self.kind].__name__}"
            )
        return self._content()

    @abstractmethod
    def _content(self) -> tuple[Scalars, Arrays]:
        """What ``_dump`` tells."""

    @classmethod
    @abstractmethod
    def _undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The policy that ``_dump`` described."""


def is_policy(kind: str) -> bool:
    """Whether files call a policy by that name."""
    return kind in SavedPolicy._kinds


def policy_class(kind: str) -> type[SavedPolicy]:
    """The class that files call ``kind``."""
    if not is_policy(kind):
        raise FileError(f"there is no policy of the kind {kind!r}")
    return SavedPolicy._kinds[kind]
