"""Objects that threads may share: every public call holds the lock of the object, so it is atomic."""

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
    """Mark a public method that takes the lock itself: a frequent one, or one that needs two locks."""
    vars(method)["_holds_the_lock"] = True
    return method


def needs_the_lock(method: Method) -> Method:
    """Mark a public method that takes no lock: a hook for callers that hold it already."""
    vars(method)["_holds_the_lock"] = vars(method)["_needs_the_lock"] = True
    return method


class SharedLock(_ReentrantLock):  # type: ignore[misc]
    """A reentrant lock that first does work which was put off.

    An object may put work off until somebody takes the lock. It calls ``put_off`` between ``acquire`` and
    ``release``, which do none of the work. The lock is a little slower only while there is such work.
    """

    def __init__(self) -> None:
        self._put_off: list[Callable[[], None]] = []

    def put_off(self, work: Callable[[], None]) -> None:
        """Do this work before somebody takes the lock. If it fails, it is put off again."""
        self._put_off.append(work)
        self.__class__ = _BusyLock


class _BusyLock(SharedLock):
    """The lock while there is work to do."""

    def __enter__(self) -> bool:
        self.acquire()
        while self._put_off:
            work = self._put_off.pop()  # the work may take the lock itself
            try:
                work()
            except BaseException:
                self.put_off(work)
                self.release()
                raise
        self.__class__ = SharedLock
        return True


class Shared:
    """An object whose public methods and properties hold its lock, including those of subclasses.

    So every public call is atomic, from any thread. Copies, deep or pickled, are made under the lock, and
    have a lock of their own.

    The names in ``_never_change`` are not locked, nor are methods marked with ``holds_the_lock`` or
    ``needs_the_lock``. Hooks that start with an underscore are not locked either: their callers hold the
    lock.
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
        """A lock for this object. Objects that belong together share one."""
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
        with self._lock:  # a copy, because pickling goes on after this returns
            return copy.deepcopy(self._unlocked())

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():  # vars(self) would make later attribute access slower
            setattr(self, name, value)
        self._lock = self._make_lock()

    def _unlocked(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}


@contextmanager
def both_locks(one: Shared, other: Shared) -> Iterator[None]:
    """Hold the locks of two objects. They are always taken in the same order, so there is no deadlock."""
    first, second = sorted((one._lock, other._lock), key=id)
    with first, second:
        yield


def _locked(member: Any) -> Any:
    """The method or property with the lock held; anything else as it is."""
    if isinstance(member, property):
        return property(_locked(member.fget), member.fset, member.fdel, member.__doc__)
    if not isinstance(member, FunctionType) or hasattr(member, "_holds_the_lock"):
        return member

    @wraps(member)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return member(self, *args, **kwargs)

    return locked
