"""What sketches and policies have in common: files, copies, and use from several threads."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.html_repr import Facts, card
from sketchbandit.registry import Registry
from sketchbandit.thread_safety import Lock, SharedLock, lock_public, needs_the_lock, set_state, thread_safe


@thread_safe
class Stored(ABC):
    """An object that threads may share, and that can be saved.

    ``sketchbandit.load`` recognises it by its ``kind``. Public methods of subclasses are thread-safe too.
    """

    kind: ClassVar[str]
    """The name of the class in files."""
    _registry: ClassVar[Registry[Any]]
    """The classes of the family."""
    _lock: Lock

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        lock_public(cls)
        cls._registry.register(cls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_state(self, state)

    def _make_lock(self) -> Lock:
        """A lock for this object. Objects that belong together share one."""
        return SharedLock()

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
        self._registry.check(self)
        return self._content()

    def _saved(self) -> tuple[Scalars, Arrays]:
        """``content``, as a part of a larger object."""
        return self.content()

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
