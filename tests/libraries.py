"""Arrays of other libraries for the tests: those that are installed."""

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed: its wheel is too large for make test; make test-device runs these",
)
LIBRARIES = ["array_api_strict", "jax", pytest.param("torch", marks=_TORCH)]


def array_in(library: str, array: Any) -> Any:
    """A numpy array as an array of another library."""
    if library == "torch":
        return importlib.import_module("torch").asarray(np.ascontiguousarray(array))
    module = importlib.import_module("jax.numpy" if library == "jax" else library)
    return module.asarray(np.asarray(array))


def numbers_of(array: Any) -> Any:
    """The numbers of an array of another library."""
    return np.asarray(array)
