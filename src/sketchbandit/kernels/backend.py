"""Whether the compiled loops are used."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def kernels() -> Any:
    """The module ``compiled`` if numba is installed (extra ``[fast]``), else None. Then numpy does the same.

    SKETCHBANDIT_COMPILED=0 in the environment forces numpy.
    """
    if os.environ.get("SKETCHBANDIT_COMPILED", "1").lower() in ("0", "false", "no", "off"):
        return None
    try:
        return importlib.import_module("sketchbandit.kernels.compiled")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        return None


_LONG = 1_000_000  # multiplications: some tenths of a millisecond
_long = _LONG


def loops(work: int) -> Any:
    """``kernels`` for a call of so many multiplications. Long calls let other threads run."""
    compiled = kernels()
    if compiled is None or work < _long:
        return compiled
    return importlib.import_module("sketchbandit.kernels.nogil")


@contextmanager
def all_are_long() -> Iterator[None]:
    """Treat every call as long, to compile those loops in advance, or to test them."""
    global _long  # noqa: PLW0603  (read by every call, set by none)
    _long = 0
    try:
        yield
    finally:
        _long = _LONG
