"""Upper estimates of a bandit's costs in seconds and bytes, from its settings alone.

Seconds are for one core of an ordinary server. A decision or a reward rarely takes more, and often much less,
because most rounds neither rebuild nor compute every width. Below: what was measured with one BLAS thread (d:
columns, K: arms, l: size), and the constant that is used.

- a pass over a matrix or the arms, compiled: 1.2e-10 to 2.8e-10 s a number. ``_PASS`` 2.5e-10;
- the widths of K arms by one product with a (d, d) matrix: 4.5e-11 to 5e-11 s times K·d². ``_WIDTHS`` 6e-11;
- (d, d) inverted anew: 2.3e-11 (d = 9,000) to 4.8e-11 (d = 500) s times d³. ``_INVERSE`` 5e-11;
- its Cholesky factor, for draws: 1.4e-11 to 1.6e-11 s times d³. ``_FACTOR`` 2e-11;
- a shrink of 2l rows: 0.9e-10 to 4.3e-10 s times (2l)²·d. ``_SHRINK`` 4.5e-10;
- calls in Python: 15 to 25 µs. ``_CALLS`` 3e-5, and ``_EACH`` 2e-5 for a width asked for by itself;
- calls of a set of models: 90 to 120 µs a decision, and a reward in its warm-up. ``_MODELS`` 1.2e-4;
- an arm, however short, that is read, compared and sorted: 3e-8 to 1.3e-7 s, most for equal arms. ``_ARM``
  1.5e-7; 3e-8 to 2.9e-7 s in a ranking, so ``_ARM`` a second time;
- a number made of a stored arm and a context: 2e-10 to 3.3e-9 s, most for two features. ``_FORM`` 3e-9;
- a place of a ranking: 0.2e-6 to 1.7e-6 s to find, 1.2e-6 to 2.6e-6 s to write. ``_PLACE`` 5e-6.

Bytes are those of ``policy.nbytes`` after any stream.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sketchbandit.explore import Explore, Thompson
from sketchbandit.features.features import WARM_UP
from sketchbandit.policy.recipes import RECIPES
from sketchbandit_service.types import Json

_PASS, _WIDTHS, _INVERSE, _FACTOR, _SHRINK = 2.5e-10, 6e-11, 5e-11, 2e-11, 4.5e-10
_CALLS, _MODELS, _EACH, _ARM, _PLACE, _FORM = 3e-5, 1.2e-4, 2e-5, 1.5e-7, 5e-6, 3e-9
_DENSE_FROM = 0.36  # share of the columns: a sketch with so many rows is inverted as a matrix
_MOST_ROWS = 0.75  # share of the columns: beyond it, the sketch is a matrix too
_VECTORS = 1024  # bytes per column: waiting updates, and vectors
_ANY = 4096  # bytes of any policy, however small
DEFAULT_SIZE = 50
"""The default size of policies that have one."""


class Shape(NamedTuple):
    """What the costs of a policy depend on."""

    dim: int
    """Features of an arm or a context."""
    columns: int
    """Columns of the sketch: with the intercept, or after the projection."""
    size: int
    """Rows that the sketch keeps, if there is a sketch."""
    turns_exact: bool
    """Whether it may come to hold S'S as a matrix."""
    is_projected: bool
    samples: bool
    """Whether it samples from N(0, A^-1), which needs a matrix root."""
    draws: bool
    """Whether every place of a ranking is drawn separately."""
    has_theorem: bool
    """Whether its radius is that of a theorem, which needs a determinant."""
    has_models: bool
    """Whether every action has its own model."""

    @classmethod
    def of(
        cls, policy: str, dim: int, parameters: Mapping[str, Json], rule: Explore, *, has_models: bool
    ) -> "Shape":
        """The shape of a bandit with these settings. Compute it once."""
        size = parameters.get("size")
        is_projected = policy == "cbrap"
        kept = size if isinstance(size, int) else DEFAULT_SIZE
        known = RECIPES.get(policy)
        settings = [*parameters.values(), *rule.settings().values()]
        return cls(
            dim=dim,
            columns=kept if is_projected else dim + 1,
            size=kept,
            turns_exact=is_projected or (known is not None and known.can_turn_exact),
            is_projected=is_projected,
            samples=isinstance(rule, Thompson),
            draws=rule.draws,
            has_theorem=any(isinstance(value, dict) for value in settings),
            has_models=has_models,
        )

    @property
    def may_be_matrix(self) -> bool:
        """Whether A^-1 may become a (columns, columns) matrix."""
        return self.turns_exact or self.size >= _DENSE_FROM * self.columns

    @property
    def width_numbers(self) -> int:
        """How many numbers are read for the width of one arm, or for a draw."""
        return self.columns * (self.columns if self.may_be_matrix else 2 * self.size)


def decide_cost(
    shape: Shape, arms: int, *, top: int = 1, nonzeros: int | None = None, formed: int = 0
) -> float:
    """Seconds for a decision among ``arms`` arms.

    ``nonzeros``: the entries of all arms, if they are sparse. ``formed``: numbers that are first computed
    from stored arms and a context.
    """
    top = min(top, arms)  # more are refused, which takes no time
    read = arms * shape.columns if nonzeros is None else nonzeros
    seconds = _CALLS + _ARM * arms + 3.0 * _PASS * (1 if shape.has_models else read) + _FORM * formed
    if shape.is_projected:
        seconds += _PASS * shape.size * (arms * shape.dim if nonzeros is None else nonzeros)
    if shape.has_models:
        seconds += _MODELS + arms * (_EACH + _PASS * shape.width_numbers)
    elif shape.samples:
        seconds += top * (4.0 * _PASS * shape.width_numbers + _PASS * read)
    elif nonzeros is not None and not shape.is_projected:
        seconds += arms * _EACH + _PASS * nonzeros * (shape.width_numbers // shape.columns)
    else:
        seconds += (_WIDTHS if top == 1 else _PASS) * arms * shape.width_numbers
    if shape.samples and shape.may_be_matrix:
        seconds += _FACTOR * shape.columns**3 * (arms if shape.has_models else 1)
    if top > 1:
        seconds += _ARM * arms + _PLACE * top
        if shape.draws:
            seconds += top * (_CALLS + _PASS * 10 * arms)
    return seconds


def learn_cost(shape: Shape) -> float:
    """Seconds for a reward, in the worst case: everything is recomputed after it."""
    seconds = _CALLS + 3.0 * _PASS * shape.width_numbers + (_MODELS if shape.has_models else 0.0)
    if shape.is_projected:
        seconds += _PASS * shape.dim * shape.size
    if shape.may_be_matrix:
        seconds += 10.0 * _PASS * shape.columns**2 + _INVERSE * shape.columns**3
    if not shape.turns_exact:
        rows = 2 * min(shape.size, shape.columns)
        seconds += _SHRINK * rows**2 * shape.columns
    return seconds


def rescale_cost(shape: Shape, rewards: int = WARM_UP) -> float:
    """Seconds for a new scaling. The given number of rewards is learned again, at most a whole warm-up."""
    return min(rewards, WARM_UP) * (_CALLS + 3.0 * _PASS * shape.width_numbers) + 3.0 * learn_cost(shape)


def held_bytes(shape: Shape, models: int = 1) -> int:
    """The most bytes that so many models may need, whatever the data."""
    of_one = _ANY + _VECTORS * shape.columns + 8 * (shape.dim * shape.size if shape.is_projected else 0)
    if not shape.turns_exact:
        seen = min(2 * shape.size, _MOST_ROWS * shape.columns)
        of_one += 16 * shape.size * shape.columns + int(10 * seen * seen)
        if shape.has_theorem:
            of_one += 40 * min(shape.size, shape.columns) ** 2
    if shape.may_be_matrix:
        matrices = (8 if shape.samples else 0) + (12 if shape.turns_exact else 8)
        of_one += matrices * shape.columns**2
    return of_one * (models + 1 if shape.has_models else models)
