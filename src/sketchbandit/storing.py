"""What sketches and policies have in common: files, copies, and that threads may share them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.kinds import Kinds
from sketchbandit.sharing import Shared, needs_the_lock
from sketchbandit.showing import Facts, card


class Stored(Kinds, Shared, ABC):
    """An object that can be saved; ``sketchbandit.load`` knows it by its ``kind``."""

    def save(self, path: str | Path) -> None:
        """Write it to ``path`` (safetensors, atomically); ``sketchbandit.load`` reads it back."""
        scalars, arrays = self.content()
        files.write(Path(path), self.kind, scalars, arrays)

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``undump`` makes the same object, to the bit."""
        scalars, arrays = self.content()
        return scalars, {name: array.copy() for name, array in arrays.items()}

    @needs_the_lock
    def content(self) -> tuple[Scalars, Arrays]:
        """What ``dump`` tells, not copied: for whoever holds the lock, and writes it at once."""
        self.check_kind()
        return self._content()

    def _repr_html_(self) -> str:
        """What notebooks show: a small table."""
        with self._lock:
            return card(type(self).__name__, self._facts())

    def _facts(self) -> Facts:
        """What ``_repr_html_`` shows, for whoever holds the lock; a subclass tells more."""
        return [("described", repr(self))]

    @abstractmethod
    def _content(self) -> tuple[Scalars, Arrays]:
        """What ``content`` tells."""

    @classmethod
    @abstractmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The object that ``dump`` described."""
