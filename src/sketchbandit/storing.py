"""What sketches and policies have in common: files, copies, and that threads may share them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.kinds import Kinds
from sketchbandit.sharing import Shared


class Stored(Kinds, Shared, ABC):
    """An object that can be saved; ``sketchbandit.load`` knows it by its ``kind``."""

    def save(self, path: str | Path) -> None:
        """Write it to ``path`` (safetensors, atomically); ``sketchbandit.load`` reads it back."""
        scalars, arrays = self.dump()
        files.write(Path(path), self.kind, scalars, arrays)

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``undump`` makes the same object, to the bit."""
        self.check_kind()
        scalars, arrays = self._content()
        return scalars, {name: array.copy() for name, array in arrays.items()}

    @abstractmethod
    def _content(self) -> tuple[Scalars, Arrays]:
        """What ``dump`` tells."""

    @classmethod
    @abstractmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The object that ``dump`` described."""
