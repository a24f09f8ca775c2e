"""Whether the compiled loops are used; what they share with their numpy counterparts."""

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector

AS_IS, ROWS, COLUMNS = 0.0, 1.0, 2.0
KIND, BOUND, CONSTANT, HEAD = 0, 1, 2, 3
PLAIN: Vector = np.zeros(0)
"""The lens of arms without scaling."""
PLAIN.flags.writeable = False  # as every lens: loops are compiled for one kind of array


class View(NamedTuple):
    """The arms z of a policy: the rows x of ``array``, each read through ``lens``. Nothing is copied.

    A lens has a head of three numbers: the kind, the bound and the constant. ROWS: z = x / |x|. COLUMNS:
    z = (x - centre)·factor, no entry beyond the bound; centre and factor follow the head. The constant is
    appended to z, unless it is 0.
    """

    array: AnyArray
    lens: Vector = PLAIN


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
    except (ImportError, AttributeError, SystemError) as error:  # an installation of numba that is broken
        warnings.warn(
            f"numba is installed, but cannot be imported, so numpy does its work, slower: {error!r}",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


@lru_cache(maxsize=4096)
def loops(work: int) -> Loops:
    """``kernels`` for a call of so many multiplications. Long calls let other threads run."""
    compiled = kernels()
    if compiled is None or work < _long:
        return compiled
    return importlib.import_module("sketchbandit.kernels.compiled").LONG_LOOPS


def choose_again() -> None:
    """Look again whether there are compiled loops: for tests, which change SKETCHBANDIT_COMPILED."""
    kernels.cache_clear()
    loops.cache_clear()


@contextmanager
def all_are_long() -> Iterator[None]:
    """Treat every call as long, to compile those loops in advance, or to test them."""
    global _long  # noqa: PLW0603  (read by every call, set by none)
    _long = 0
    loops.cache_clear()
    try:
        yield
    finally:
        _long = _LONG
        loops.cache_clear()
