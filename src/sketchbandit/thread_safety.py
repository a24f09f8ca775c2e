"""Objects that threads may share: every public call holds the lock of the object, so it is atomic."""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar

Lock = AbstractContextManager[object]
_ReentrantLock: Any = type(threading.RLock())  # threading.RLock itself is a function
Method = TypeVar("Method", bound=Callable[..., Any])
T = TypeVar("T")

_NEVER_CHANGE = frozenset({"kind", "dim", "dtype"})


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


class HasLock(Protocol):
    """An object that threads may share."""

    @property
    def _lock(self) -> Lock: ...


def thread_safe(cls: type[T]) -> type[T]:
    """Let the public methods and properties of a class hold its ``_lock``, and make copies under it.

    So every public call is atomic, from any thread. Copies, deep or pickled, have a lock of their own, by
    ``_make_lock`` if the class has it. They start without the attributes that ``_scratch`` names.

    Methods marked with ``holds_the_lock`` or ``needs_the_lock`` are not wrapped. Neither are hooks that start
    with an underscore: their callers hold the lock.
    """
    lock_public(cls)
    for hook in (__copy__, __deepcopy__, __getstate__, __setstate__):
        if hook.__name__ not in vars(cls):
            setattr(cls, hook.__name__, hook)
    return cls


def lock_public(cls: type[object]) -> None:
    """Let the public methods and properties that a class defines hold its lock, but what never changes."""
    for name, member in list(vars(cls).items()):
        is_public = not name.startswith("_") or name == "__repr__"
        if is_public and name not in _NEVER_CHANGE:
            setattr(cls, name, _locked(member))


def __copy__(self: T) -> T:  # noqa: N807  (a method, given to classes)
    return copy.deepcopy(self)  # two objects never share their arrays


def __deepcopy__(self: Any, memo: dict[int, object]) -> object:  # noqa: N807
    with self._lock:
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__({name: copy.deepcopy(value, memo) for name, value in _state(self).items()})
        return twin


def __getstate__(self: Any) -> dict[str, object]:  # noqa: N807
    with self._lock:  # a copy, because pickling goes on after this returns
        return copy.deepcopy(_state(self))


def __setstate__(self: Any, state: dict[str, object]) -> None:  # noqa: N807
    set_state(self, state)


def set_state(self: Any, state: dict[str, object]) -> None:
    """Set the attributes of a copy, and give it a lock of its own."""
    for name, value in state.items():  # vars(self) would make later attribute access slower
        setattr(self, name, value)
    self._lock = getattr(self, "_make_lock", SharedLock)()


def _state(thing: HasLock) -> dict[str, object]:
    """The attributes of a copy."""
    left_out = dict.fromkeys(getattr(thing, "_scratch", ()))
    return {name: value for name, value in {**vars(thing), **left_out}.items() if name != "_lock"}


@contextmanager
def both_locks(one: HasLock, other: HasLock) -> Iterator[None]:
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
    def locked(self: Any, *args: object, **kwargs: object) -> object:
        with self._lock:
            return member(self, *args, **kwargs)

    return locked
