"""What sketches and policies have in common: files, copies, and use from several threads."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.html_repr import Facts, card
from sketchbandit.registry import Kinds
from sketchbandit.thread_safety import Shared, needs_the_lock


class Stored(Kinds, Shared, ABC):
    """An object that can be saved. ``sketchbandit.load`` recognises it by its ``kind``."""

    def save(self, path: str | Path) -> None:
        """Save it to a file, which ``sketchbandit.load`` reads.

        The file is in safetensors format. It is written atomically: a crash leaves the old file or the new
        one.

        Parameters
        ----------
        path : str or Path
            The file to write. An existing file is replaced.

        Examples
        --------
        >>> import tempfile, sketchbandit as sb
        >>> policy = sb.oful(3)
        >>> policy.update([1.0, 0.0, 0.0], 1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy.save(f"{folder}/policy.safetensors")
        ...     sb.load(f"{folder}/policy.safetensors").rounds
        1

        """
        scalars, arrays = self.content()
        files.write(Path(path), self.kind, scalars, arrays)

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``undump`` makes the same object, to the bit."""
        scalars, arrays = self.content()
        return scalars, {name: array.copy() for name, array in arrays.items()}

    @needs_the_lock
    def content(self) -> tuple[Scalars, Arrays]:
        """What ``dump`` returns, without a copy. For callers that hold the lock and write it at once."""
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
        """What ``content`` returns."""

    @classmethod
    @abstractmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the object that ``dump`` described."""
