"""Types that the whole service speaks of: JSON values, arms, policies."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sketchbandit.policy import PerAction, Policy

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""A JSON value."""
JsonObject: TypeAlias = dict[str, Json]
Vector: TypeAlias = NDArray[np.float64] | sparse.csr_array
"""One arm: a float64 array (dim,), or a CSR matrix (1, dim)."""
Matrix: TypeAlias = NDArray[np.float64] | sparse.csr_array
"""Arms: a float64 array (K, dim), or a CSR matrix."""
AnyPolicy: TypeAlias = Policy | PerAction
"""A policy over arms, or a model for every action."""
