"""What sketches and policies have in common: files, copies, and that threads may share them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.kinds import Kinds
from sketchbandit.sharing import Shared, needs_the_lock


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

    @abstractmethod
    def _content(self) -> tuple[Scalars, Arrays]:
        """What ``content`` tells."""

    @classmethod
    @abstractmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The object that ``dump`` described."""
