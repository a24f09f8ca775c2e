"""Many sets of arms at once."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arms.reading import is_ready
from sketchbandit.arms.sets import DenseArms, dense_arms
from sketchbandit.arms.views import View
from sketchbandit.array_api import is_foreign
from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError, InputTypeError, RowError

_MOST_COPIED = 1 << 20  # numbers in a list of sets that is copied into one array


class Batch(NamedTuple):
    """Sets of arms, concatenated. Set i has the rows from bounds[i] to bounds[i + 1]."""

    arms: View
    bounds: AnyArray

    def of(self, number: int) -> DenseArms:
        """The arms of one set."""
        some = self.arms.array[self.bounds[number] : self.bounds[number + 1]]
        return dense_arms(self.arms._replace(array=some))


def read_sets(batch: Any) -> AnyArray | list[Any]:
    """The sets of a batch, as given: an array (sets, arms, dim), or a list."""
    if hasattr(batch, "ndim") and batch.ndim != 3:
        raise InputError(
            f"a batch must be an array (sets, arms, dim) or a list of sets, got {batch.ndim} dimensions; "
            "for a single set use select or choose"
        )
    if isinstance(batch, (str, bytes)) or not (hasattr(batch, "__iter__") or is_foreign(batch)):
        raise InputTypeError(
            f"a batch must be an array (sets, arms, dim) or a list of sets, got {type(batch).__name__}"
        )
    if is_foreign(batch):
        return [batch[number, :, :] for number in range(batch.shape[0])]
    return batch if type(batch) is np.ndarray else list(batch)


def in_set(number: int, error: InputError | InputTypeError) -> Exception:
    """The same error, with the number of the set."""
    if isinstance(error, RowError):
        return RowError(f"set {number}: {error.noun}", error.row, error.why)
    return type(error)(f"set {number}: {error}")


def batch_of(batch: Any, dim: int, dtype: np.dtype[Any]) -> Batch | None:
    """The sets as one array, if all are dense and need no conversion; else None. An array is not copied."""
    if type(batch) is np.ndarray and batch.shape[2] == dim and all(batch.shape) and is_ready(batch, dtype):
        count, each = batch.shape[:2]
        return Batch(View(batch.reshape(count * each, dim)), np.arange(0, (count + 1) * each, each))
    sets = list(batch)
    if not sets or not all(type(arms) is np.ndarray and is_ready(arms, dtype) for arms in sets):
        return None
    if not all(arms.ndim == 2 and arms.shape[1] == dim and len(arms) for arms in sets):
        return None
    if len({arms.dtype for arms in sets}) > 1 or sum(arms.size for arms in sets) > _MOST_COPIED:
        return None
    bounds = np.concatenate([[0], np.cumsum([len(arms) for arms in sets])])
    return Batch(View(np.concatenate(sets)), bounds)
