"""Objects that threads may share: every public call holds the object's lock, so that it is atomic."""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

Lock = AbstractContextManager[Any]
_ReentrantLock: Any = type(threading.RLock())  # threading.RLock itself is a function
Method = TypeVar("Method", bound=Callable[..., Any])


def holds_the_lock(method: Method) -> Method:
    """Mark a public method that takes the lock by itself: a busy one, or one that needs two locks."""
    vars(method)["_holds_the_lock"] = True
    return method


def needs_the_lock(method: Method) -> Method:
    """Mark a public method that takes no lock: a hook, for whoever holds it already."""
    vars(method)["_holds_the_lock"] = vars(method)["_needs_the_lock"] = True
    return method


class SharedLock(_ReentrantLock):  # type: ignore[misc]
    """A reentrant lock; whoever takes it finds nothing left over.

    An object may put work off until somebody takes the lock: ``put_off`` it, between ``acquire`` and
    ``release``, which do none of it. The lock is a little slower while there is such work, and only then.
    """

    def __init__(self) -> None:
        self._put_off: list[Callable[[], None]] = []

    def put_off(self, work: Callable[[], None]) -> None:
        """Do this before somebody takes the lock; if it fails, it is put off again."""
        self._put_off.append(work)
        self.__class__ = _BusyLock


class _BusyLock(SharedLock):
    """The same while there is work."""

    def __enter__(self) -> bool:
        self.acquire()
        while self._put_off:
            work = self._put_off.pop()  # which may take the lock itself
            try:
                work()
            except BaseException:
                self.put_off(work)
                self.release()
                raise
        self.__class__ = SharedLock
        return True


class Shared:
    """An object whose public methods and properties hold its one lock, those of subclasses too.

    So every public call is atomic, whichever threads call. A copy, deep or pickled, is made under the lock,
    and has a lock of its own.

    Not locked are the names in ``_never_change``, and methods marked with ``holds_the_lock`` or
    ``needs_the_lock``. Nor are hooks that start with an underscore: whoever calls them holds the lock.
    """

    _lock: Lock
    _never_change: ClassVar[frozenset[str]] = frozenset({"kind", "dim", "dtype"})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            is_public = not name.startswith("_") or name == "__repr__"
            if is_public and name not in cls._never_change:
                setattr(cls, name, _locked(member))

    def _make_lock(self) -> Lock:
        """A lock of its own; objects that belong together share one."""
        return SharedLock()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two objects never share their arrays

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with self._lock:
            twin = type(self).__new__(type(self))
            memo[id(self)] = twin
            twin.__setstate__({name: copy.deepcopy(value, memo) for name, value in self._unlocked().items()})
            return twin

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:  # a copy: what is pickled is written after this returns
            return copy.deepcopy(self._unlocked())

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():  # vars(self) would make every attribute slower from then on
            setattr(self, name, value)
        self._lock = self._make_lock()

    def _unlocked(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}


@contextmanager
def both_locks(one: Shared, other: Shared) -> Iterator[None]:
    """Hold the locks of two objects, always taken in the same order: no two threads wait for each other."""
    first, second = sorted((one._lock, other._lock), key=id)
    with first, second:
        yield


def _locked(member: Any) -> Any:
    """The same method or property, holding the lock; anything else as it is."""
    if isinstance(member, property):
        return property(_locked(member.fget), member.fset, member.fdel, member.__doc__)
    if not isinstance(member, FunctionType) or hasattr(member, "_holds_the_lock"):
        return member

    @wraps(member)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return member(self, *args, **kwargs)

    return locked
