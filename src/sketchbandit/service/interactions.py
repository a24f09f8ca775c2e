"""A context and stored arms, made the features that a policy reads.

All that depends on how they are made is here: how long a context is, how long the features can be, and the
features themselves, of all arms or of one.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.service.offered import ArmSet
from sketchbandit.service.problems import Invalid
from sketchbandit.service.vectors import encode_all

Floats = NDArray[np.float64]
Interaction = Literal["product", "concatenate", "outer"]
PRODUCT, CONCATENATE, OUTER = "product", "concatenate", "outer"
"""x∘u; [u, x]; u[0]·x, u[1]·x, ... For an arm x and a context u."""


def context_length(interaction: str, arm_dim: int, dim: int, bandit: str) -> int:
    """How many features a context has, so that with arms of ``arm_dim`` there are ``dim``."""
    if interaction == PRODUCT and arm_dim == dim:
        return dim
    if interaction == CONCATENATE and arm_dim < dim:
        return dim - arm_dim
    if interaction == OUTER and dim % arm_dim == 0:
        return dim // arm_dim
    needed = {
        PRODUCT: "a product needs arms of dim features",
        CONCATENATE: "to concatenate, arms need fewer features than dim",
        OUTER: "an outer product needs a dim that is a multiple of the features of an arm",
    }
    raise Invalid(
        f"stored arms of bandit {bandit!r} have {arm_dim} features, and its dim is {dim}: "
        f"{needed[interaction]}; choose another interaction, or create a bandit with another arm_dim"
    )


def longest(interaction: str, arm_length: float, context: Floats) -> float:
    """No arm is longer with this context, if none is longer than ``arm_length`` without."""
    with np.errstate(over="ignore", invalid="ignore"):
        if interaction == PRODUCT:
            return arm_length * float(np.abs(context).max(initial=0.0))
        norm = float(np.sqrt(np.vdot(context, context)))
        return float(np.hypot(norm, arm_length)) if interaction == CONCATENATE else norm * arm_length


def features(arms: Floats, context: Floats, interaction: str) -> Floats:
    """What the policy reads, (K, dim).

    >>> features(np.array([[1.0, 2.0]]), np.array([3.0, 5.0]), "outer")
    array([[ 3.,  6.,  5., 10.]])
    """
    if interaction == PRODUCT:
        return np.multiply(arms, context)
    count, width = arms.shape
    if interaction == CONCATENATE:
        made = np.empty((count, len(context) + width))
        made[:, : len(context)] = context
        made[:, len(context) :] = arms
        return made
    return np.multiply(context[:, None], arms[:, None, :]).reshape(count, -1)


class ContextSet(NamedTuple):
    """Stored arms with a context. Features are made where they are asked for: in the lane of the bandit."""

    arms: ArmSet
    """Dense ones."""
    context: Floats
    interaction: str

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def nonzeros(self) -> int | None:
        """None: the features are dense."""
        return None

    @property
    def formed(self) -> int:
        """Numbers that are made before the policy is asked."""
        width = self.arms.matrix.shape[1]
        added = {PRODUCT: width, CONCATENATE: width + len(self.context), OUTER: width * len(self.context)}
        return len(self) * int(added[self.interaction])

    @property
    def nbytes(self) -> int:
        """Of all features."""
        return 8 * self.formed

    def name(self, index: int) -> str | None:
        """The id of one."""
        return self.arms.name(index)

    def row(self, index: int) -> Floats:
        """The features of one, to the bit as among all."""
        row: Floats = self._of(self.arms.matrix[index : index + 1])[0]
        return row

    def question(self) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""
        return self._of(self.arms.matrix), {}

    def log(self) -> bytes:
        """All of them, for the journal."""
        return encode_all(self._of(self.arms.matrix))

    def _of(self, arms: Floats) -> Floats:
        return features(arms, self.context, self.interaction)
