"""Combines a context with stored arms into the features that a policy reads.

Everything that depends on the interaction is here: the length of a context, and the length of the features.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arms import Offer, OfferedArms, with_context
from sketchbandit.linalg import length_of
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.offered import ArmSet, Question
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import AnyPolicy, Vector
from sketchbandit_service.vectors import encode_all

Floats = NDArray[np.float64]
Interaction = Literal["product", "concatenate", "outer"]
PRODUCT, CONCATENATE, OUTER = "product", "concatenate", "outer"
"""x∘u; [u, x]; u[0]·x, u[1]·x, ... for an arm x and a context u."""


def context_length(interaction: str, arm_dim: int, dim: int, bandit: str) -> int:
    """How many features a context needs, so that together with arms of ``arm_dim`` there are ``dim``."""
    if interaction == PRODUCT and arm_dim == dim:
        return dim
    if interaction == CONCATENATE and arm_dim < dim:
        return dim - arm_dim
    if interaction == OUTER and dim % arm_dim == 0:
        return dim // arm_dim
    needed = {
        PRODUCT: "a product needs arms of dim features",
        CONCATENATE: "concatenate needs arms with fewer features than dim",
        OUTER: "an outer product needs a dim that is a multiple of the features of an arm",
    }
    raise Invalid(
        f"stored arms of bandit {bandit!r} have {arm_dim} features, and its dim is {dim}: "
        f"{needed[interaction]}; choose another interaction, or create a bandit with another arm_dim"
    )


def longest(interaction: str, arm_length: float, context: Floats) -> float:
    """A bound on the length of any arm with this context, if no arm alone is longer than ``arm_length``."""
    with np.errstate(over="ignore", invalid="ignore"):
        if interaction == PRODUCT:
            return arm_length * float(np.abs(context).max(initial=0.0))
        norm = length_of(context)
        return float(np.hypot(norm, arm_length)) if interaction == CONCATENATE else norm * arm_length


class StoredSet(NamedTuple):
    """Stored arms, alone or with a context.

    Features are computed when they are needed, in the bandit's queue, and only if the policy needs all of
    them. Most policies choose from a catalogue and compute only the features of the chosen arms.
    """

    arms: ArmSet
    """Dense arms."""
    context: Floats | None = None
    interaction: str | None = None
    store: ArmStore | None = None
    """The store, if these are all of its arms and they are many."""
    device: str | None = None

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def nonzeros(self) -> int | None:
        """None, because the features are dense."""
        return None

    @property
    def formed(self) -> int:
        """The most numbers that are computed before the policy is asked."""
        if self.context is None or self.interaction is None:
            return 0
        width = self.arms.matrix.shape[1]
        added = {PRODUCT: width, CONCATENATE: width + len(self.context), OUTER: width * len(self.context)}
        return len(self) * int(added[self.interaction])

    @property
    def nbytes(self) -> int:
        """Bytes of all features."""
        return 8 * self.formed if self.context is not None else self.arms.nbytes

    def name(self, index: int) -> str | None:
        """The id of an arm."""
        return self.arms.name(index)

    def row(self, index: int) -> Vector:
        """The features of one arm, equal bit by bit to its row among all."""
        row: Floats = self._of(self.arms.matrix[index : index + 1])[0]
        return row.copy() if self.context is None else row

    def question(self, policy: AnyPolicy) -> Question:
        """What to call the policy's methods with: an argument, and options."""
        if self.store is None or not getattr(policy, "screens_catalogues", False):
            return self._of(self.arms.matrix), {}
        arms = OfferedArms(self.store.prepared(self.device), self.context, self.interaction)
        return Offer(arms, self.arms.ids or ()), {}

    def log(self) -> bytes:
        """The features of all arms, for the journal."""
        return encode_all(self._of(self.arms.matrix))

    def _of(self, arms: Floats) -> Floats:
        return arms if self.context is None else with_context(arms, self.context, self.interaction)
