"""Streams that are hard for sketches, as a hypothesis strategy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from sketchbandit.arrays import Matrix

Maker = Callable[[np.random.Generator, int, int], Matrix]


class Stream(NamedTuple):
    """Rows, and the sketch size to read them with."""

    kind: str
    rows: Matrix
    size: int

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.rows.shape[1])


def _gaussian(random: np.random.Generator, count: int, dim: int) -> Matrix:
    return random.standard_normal((count, dim))


def _low_rank(random: np.random.Generator, count: int, dim: int) -> Matrix:
    rank = int(random.integers(1, max(2, dim // 2 + 1)))
    return _gaussian(random, count, rank) @ _gaussian(random, rank, dim)


def _one_spike(random: np.random.Generator, count: int, dim: int) -> Matrix:
    rows = _gaussian(random, count, dim)
    rows[count // 2 : count // 2 + 1] *= 1e4
    return rows


STREAM_KINDS: dict[str, Maker] = {
    "gaussian": _gaussian,
    "power law": lambda random, n, dim: _gaussian(random, n, dim) / np.arange(1, dim + 1),
    "low rank": _low_rank,
    "one row repeated": lambda random, n, dim: np.tile(_gaussian(random, 1, dim), (n, 1)),
    "few distinct rows": lambda random, n, dim: _gaussian(random, 3, dim)[random.integers(0, 3, n)],
    "axes": lambda random, n, dim: np.take(np.eye(dim), random.permutation(np.arange(n) % dim), axis=0),
    "with zero rows": lambda random, n, dim: _gaussian(random, n, dim) * random.integers(0, 2, (n, 1)),
    "tiny": lambda random, n, dim: 1e-150 * _gaussian(random, n, dim),
    "huge": lambda random, n, dim: 1e150 * _gaussian(random, n, dim),
    "tiny and huge": lambda random, n, dim: (
        _gaussian(random, n, dim) * 10.0 ** random.choice([-150.0, 0.0, 150.0], (n, 1))
    ),
    "mixed lengths": lambda random, n, dim: _gaussian(random, n, dim) * 10.0 ** random.uniform(-6, 6, (n, 1)),
    "ill conditioned": lambda random, n, dim: _gaussian(random, n, dim) * 10.0 ** -np.linspace(0, 12, dim),
    "one spike": _one_spike,
}


def make_rows(kind: str, count: int, dim: int, seed: int) -> Matrix:
    """Make ``count`` rows of a named kind of stream."""
    return STREAM_KINDS[kind](np.random.default_rng(seed), count, dim)


@st.composite
def streams(
    draw: st.DrawFn, *, max_count: int = 50, max_dim: int = 12, max_size: int = 6, extreme: bool = True
) -> Stream:
    """Streams of every kind. With ``extreme=False``, only those whose squares fit into float32."""
    kinds = [k for k in STREAM_KINDS if extreme or k not in ("tiny", "huge", "tiny and huge")]
    kind = draw(st.sampled_from(kinds))
    count, dim = draw(st.integers(0, max_count)), draw(st.integers(1, max_dim))
    return Stream(
        kind, make_rows(kind, count, dim, draw(st.integers(0, 2**16))), draw(st.integers(2, max_size))
    )
