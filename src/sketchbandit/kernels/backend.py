"""Whether the compiled loops are used; what they share with their numpy counterparts."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

CANCELLED = 1e-6
"""|x|² - |u|² below this part of |x|² has lost more than six digits."""
CLOSE = 1e-9
"""Scores that differ by less, relative to the largest, may be those of copies; others hardly ever do."""
Loops = Any
"""A namespace of compiled loops (``compiled.LOOPS``), or None."""
_LONG = 1_000_000  # multiplications: some tenths of a millisecond
_long = _LONG


@cache
def kernels() -> Loops:
    """The compiled loops if numba is installed (extra ``[fast]``), else None. Then numpy does the same.

    SKETCHBANDIT_COMPILED=0 in the environment forces numpy.
    """
    if os.environ.get("SKETCHBANDIT_COMPILED", "1").lower() in ("0", "false", "no", "off"):
        return None
    try:
        return importlib.import_module("sketchbandit.kernels.compiled").LOOPS
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        return None


def loops(work: int) -> Loops:
    """``kernels`` for a call of so many multiplications. Long calls let other threads run."""
    compiled = kernels()
    if compiled is None or work < _long:
        return compiled
    return importlib.import_module("sketchbandit.kernels.compiled").LONG_LOOPS


@contextmanager
def all_are_long() -> Iterator[None]:
    """Treat every call as long, to compile those loops in advance, or to test them."""
    global _long  # noqa: PLW0603  (read by every call, set by none)
    _long = 0
    try:
        yield
    finally:
        _long = _LONG
