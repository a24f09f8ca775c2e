"""The paper's synthetic bandit, with the spectrum of the arms as a setting."""

import copy
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.environment.base import Environment, Round
from sketchbandit.errors import InputError
from sketchbandit.linalg import normalised
from sketchbandit.sketch.checks import check_count, check_real

SPECTRA = ("flat", "power-law", "low-rank")


class GaussianArms(Environment):
    """The paper's synthetic bandit: unit arms from N(0, C), a unit theta* from N(0, I), Gaussian noise.

    With spectrum "flat" (C = I) this is the synthetic data set of the paper. Arms are new in each round,
    unless ``fixed``.

    Parameters
    ----------
    dim : int
        The number of features of an arm.
    arms : int
        The number of arms per round.
    noise : float
        The standard deviation of the noise.
    spectrum : {"flat", "power-law", "low-rank"}
        The spectrum of C. With "power-law", coordinate i has standard deviation i^-``decay``. With
        "low-rank", arms lie in a random subspace of dimension ``rank``.
    decay : float
        The exponent for "power-law".
    rank : int
        The dimension for "low-rank".
    fixed : bool
        Whether every round offers the arms of the first, like a catalogue.
    mixed : bool
        Whether a random rotation turns the arms. The spectrum stays, and every feature becomes a mix of all
        directions, as in embeddings.
    seed : int
        Seed of arms, noise and theta*.

    Examples
    --------
    >>> environment = GaussianArms(dim=20, arms=5, seed=1)
    >>> (first,) = environment.rounds(1)
    >>> first.arms.shape, bool(np.allclose(first.means, first.arms @ environment.theta))
    ((5, 20), True)

    """

    def __init__(
        self,
        *,
        dim: int = 500,
        arms: int = 100,
        noise: float = 0.1,
        spectrum: str = "flat",
        decay: float = 1.0,
        rank: int = 20,
        fixed: bool = False,
        mixed: bool = False,
        seed: int = 0,
    ) -> None:
        if spectrum not in SPECTRA:
            raise InputError(f"unknown spectrum {spectrum!r}; choose from {', '.join(SPECTRA)}")
        self.dim = check_count("dim", dim, at_least=1)
        self.arms = check_count("arms", arms, at_least=1)
        self.noise = check_real("noise", noise, at_least=0.0)
        self.spectrum = spectrum
        self.decay = check_real("decay", decay, above=0.0)
        self.rank = check_count("rank", rank, at_least=1)
        self.fixed, self.mixed = _check_flag("fixed", fixed), _check_flag("mixed", mixed)
        self.seed = check_count("seed", seed, at_least=0)
        self.name = f"Gaussian arms, {spectrum}{', mixed' * self.mixed}{', fixed' * self.fixed}"
        # Tags start with 1: default_rng([seed, 0]) equals default_rng(seed), which a policy may use.
        random = np.random.default_rng([self.seed, 1])
        self.theta = _theta(random, self.dim)
        rank = min(self.rank, self.dim)
        self._basis: Matrix = np.linalg.qr(random.standard_normal((self.dim, rank)))[0].T
        self._rotation: Matrix | None = (
            np.linalg.qr(random.standard_normal((self.dim, self.dim)))[0] if self.mixed else None
        )

    def with_theta_of(self, seed: int) -> Self:
        """The same arms and noise, with the theta* of another seed."""
        other = copy.copy(self)
        other.theta = _theta(np.random.default_rng([check_count("seed", seed, at_least=0), 1]), self.dim)
        return other

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield rounds of ``arms`` arms, with one draw of the noise each, whichever arm is chosen."""
        random = np.random.default_rng([self.seed, 2])
        draw = self._turned(self._drawer(random))
        first = normalised(draw()) if self.fixed else None
        for _ in range(count):
            arms = normalised(draw()) if first is None else first
            yield Round(arms, arms @ self.theta, self.noise * random.standard_normal())

    def _turned(self, draw: Callable[[], Matrix]) -> Callable[[], Matrix]:
        rotation = self._rotation
        return draw if rotation is None else lambda: draw() @ rotation

    def _drawer(self, random: np.random.Generator) -> Callable[[], Matrix]:
        if self.spectrum == "low-rank":
            shape = (self.arms, len(self._basis))
            return lambda: random.standard_normal(shape) @ self._basis
        if self.spectrum == "power-law":
            scale = np.arange(1.0, self.dim + 1.0) ** -self.decay
            return lambda: random.standard_normal((self.arms, self.dim)) * scale
        return lambda: random.standard_normal((self.arms, self.dim))


def _check_flag(name: str, value: bool) -> bool:
    if value not in {False, True}:  # 0 and 1 as well: a command line has no other
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _theta(random: np.random.Generator, dim: int) -> Vector:
    found: Vector = normalised(random.standard_normal((1, dim)))[0]
    return found
