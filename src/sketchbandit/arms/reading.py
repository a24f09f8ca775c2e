"""Reading arms, one set or many, and rewards from any input."""

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arms.sets import Arms, DenseArms, SparseArms, dense_arms
from sketchbandit.array_api import is_foreign
from sketchbandit.arrays import AnyArray, Dtype, Rows, Vector
from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.kernels.backend import View
from sketchbandit.sketch.row_input import complaint, row_source

_MOST_COPIED = 1 << 20  # numbers in a list of sets that is copied into one array


def read_arms(arms: Any, dim: int, dtype: Dtype, *, may_be_empty: bool = False) -> Arms:
    """``arms`` as (K, dim) of the policy's dtype; whether they are finite shows in their norms.

    float32 arms stay as they are where the policy has float64, which changes no number: a catalogue is not
    copied.
    """
    if type(arms) is np.ndarray and is_ready(arms, dtype):
        shape = arms.shape
        if len(shape) == 2 and shape[1] == dim and shape[0]:
            return DenseArms(arms)
        if shape == (dim,):
            return DenseArms(arms[np.newaxis])
    source = row_source(arms, dim, "arms")
    if not source.shape[0] and not may_be_empty:
        raise InputError("there are no arms to choose from: the set is empty; give at least one arm")
    with np.errstate(over="ignore"):  # values that are not finite are found in the norms
        if sparse.issparse(source):
            return SparseArms(source.astype(dtype))
        return DenseArms(source if is_ready(source, dtype) else np.require(source, dtype, ["C", "A"]))


def is_ready(arms: AnyArray, dtype: Dtype) -> bool:
    """Whether arms need no conversion."""
    fits = arms.dtype == dtype or (arms.dtype == np.float32 and dtype == np.float64)
    return fits and arms.flags.c_contiguous and arms.flags.aligned


def refuse(arms: Arms, norms_sq: Vector, means: Vector | None = None) -> InputError:
    """The error for arms whose scores are not finite."""
    bad = np.flatnonzero(~np.isfinite(norms_sq))
    source = arms.raw
    if len(bad):
        return complaint(source, int(bad[0]), source.dtype, "arm")
    at = 0 if means is None or np.isfinite(means).all() else int(np.flatnonzero(~np.isfinite(means))[0])
    return InputError(f"the score of arm {at} overflows; rescale arms or rewards")


def is_vector(arms: Any) -> bool:
    """Whether one arm was given instead of a set."""
    if hasattr(arms, "ndim"):
        return bool(arms.ndim == 1)
    try:
        return np.ndim(arms) == 1
    except ValueError:  # ragged nested lists
        return False


def is_scalar(reward: Any) -> bool:
    """Whether one reward was given instead of several."""
    try:
        return isinstance(reward, float) or np.ndim(reward) == 0
    except ValueError:  # ragged nested lists
        return False


def read_reward(reward: object) -> float:
    """Read one finite reward."""
    if np.ma.is_masked(reward):
        raise InputError("the reward is masked; leave out this arm, or give its reward")
    if isinstance(reward, np.ndarray) and reward.size == 1:
        reward = reward.item()
    elif isinstance(reward, (list, tuple)) and len(reward) == 1:
        (reward,) = reward
    if not isinstance(reward, (Real, np.bool_)):
        raise InputTypeError(
            f"a reward must be a real number, got {reward!r} of type {type(reward).__name__}"
        )
    try:
        value = float(reward)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise InputError(f"the reward is {reward!s:.40}; rewards must be finite")
    return value


def read_rewards(rewards: Any, count: int) -> Vector:
    """Read ``count`` finite rewards."""
    if np.ma.is_masked(rewards):
        raise InputError("some rewards are masked; leave out these arms, or give their rewards")
    try:
        array = np.asarray(rewards)
    except ValueError as error:
        raise InputError(f"rewards do not form a vector: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"rewards must be real numbers, got an array of dtype {array.dtype}")
    if array.shape != (count,):
        raise InputError(f"{count} arms need {count} rewards, got an array of shape {array.shape}")
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"reward {at} is {values[at]}; rewards must be finite")
    return values


class Batch(NamedTuple):
    """Sets of arms, concatenated. Set i has the rows from bounds[i] to bounds[i + 1]."""

    arms: View
    bounds: AnyArray

    def of(self, number: int) -> DenseArms:
        """The arms of one set."""
        some = self.arms.array[self.bounds[number] : self.bounds[number + 1]]
        return dense_arms(self.arms._replace(array=some))


def read_sets(batch: Any) -> AnyArray | list[Rows]:
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


def batch_counts(sets: AnyArray | list[Rows]) -> list[int]:
    """The number of arms of every set."""
    return [arms.shape[0] if hasattr(arms, "shape") else len(arms) for arms in sets]


def in_set(number: int, error: InputError | InputTypeError) -> Exception:
    """The same error, with the number of the set."""
    if isinstance(error, RowError):
        return RowError(f"set {number}: {error.noun}", error.row, error.why)
    return type(error)(f"set {number}: {error}")


def batch_of(batch: Any, dim: int, dtype: Dtype) -> Batch | None:
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
