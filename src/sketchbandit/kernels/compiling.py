"""How the loops are compiled, and when a compiled loop is out of date."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import njit

Loop = Any
"""A loop, compiled or to be compiled: numba has no types."""
_SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


def _compiler(fastmath: set[str], *, nogil: bool = False) -> Callable[[Loop], Loop]:
    options: dict[str, Any] = {"fastmath": fastmath, "error_model": "numpy", "nogil": nogil}

    def compile_one(function: Loop) -> Loop:
        try:
            made = njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written
            return njit(**options)(function)
        with suppress(AttributeError):  # a numba that keeps them elsewhere: then a full disk is an error
            made._cache.save_overload = _if_there_is_room(made._cache.save_overload)
        # A loop includes those that it calls, also from other files: none of them may have changed.
        with suppress(AttributeError):  # a numba that keeps it elsewhere looks at one file only
            made._cache._cache_file._source_stamp = _SOURCES.hexdigest()
        return made

    return compile_one


def _if_there_is_room(save: Callable[..., None]) -> Callable[..., None]:
    """If the disk is full, go on without saving. The next process then has to compile again."""

    def save_or_not(*compiled: object) -> None:
        with suppress(OSError):
            save(*compiled)

    return save_or_not


compiled = _compiler({"contract"})
compiled_sum = _compiler({"reassoc", "contract"})
"""Only sums may be reordered, so that they use vector registers."""
nogil = _compiler({"contract"}, nogil=True)
"""The same without the interpreter's lock, for loops that take long."""
