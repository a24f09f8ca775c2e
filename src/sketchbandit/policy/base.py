"""What policies have in common besides choosing: files and copies."""

import copy
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from sketchbandit import files

Scalars = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class SavedPolicy(ABC):
    """A policy that can be saved; ``sketchbandit.load`` knows it by its ``kind``."""

    kind: ClassVar[str]

    def save(self, path: str | Path) -> None:
        """Write the policy to ``path`` (safetensors, atomically); ``sketchbandit.load`` reads it back."""
        scalars, arrays = self._dump()
        files.write(Path(path), self.kind, scalars, arrays)

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two policies never share their arrays

    @abstractmethod
    def _dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``_undump`` makes the same policy."""

    @classmethod
    @abstractmethod
    def _undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The policy that ``_dump`` described."""
