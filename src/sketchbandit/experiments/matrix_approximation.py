"""Matrix approximation: the paper's figure of spectral error, certificate and bound over time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.experiments.data import digits, gaussian
from sketchbandit.linalg import covariance_error, fd_bound
from sketchbandit.sketch import DyadicBlockSketch, FrequentDirections, Sketch

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What the paper used (App. Experiments of Matrix Approximation)."""

    count: int = 1250
    dim: int = 500
    fd_size: int = 50
    dbs_size: int = 16
    epsilons: tuple[float, ...] = (5.0, 10.0, 20.0)
    compared_epsilon: float = 10.0
    every: int = 25
    seed: int = 0
    matrices: tuple[str, ...] = ("gaussian", "digits")


class Measurement(NamedTuple):
    """One sketch at one time: a flat row for a table or a DataFrame."""

    matrix: str
    dim: int
    sketch: str
    epsilon: float | None
    t: int
    error: float
    certificate: float
    bound: float
    rows: int


def matrix(name: str, settings: Settings) -> Matrix:
    """The matrix of that name."""
    makers: dict[str, Callable[[], Matrix]] = {
        "gaussian": lambda: gaussian(settings.count, settings.dim, settings.seed),
        "digits": lambda: digits(settings.count, settings.seed),
    }
    return makers[name]()


def measure(name: str, settings: Settings) -> Iterator[Measurement]:
    """Stream the matrix through FD and every DBS; yield each sketch's figures every ``every`` rows."""
    data = matrix(name, settings)
    dim = data.shape[1]
    contenders: list[tuple[str, float | None, Sketch]] = [
        (f"FD, l = {settings.fd_size}", None, FrequentDirections(dim, size=settings.fd_size)),
        *(
            (f"DBS, ε = {e:g}", e, DyadicBlockSketch(dim, size=settings.dbs_size, epsilon=e))
            for e in settings.epsilons
        ),
    ]
    covariance = np.zeros((dim, dim))
    for start in range(0, len(data), settings.every):
        block = data[start : start + settings.every]
        covariance += block.T @ block
        spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
        for label, epsilon, contender in contenders:
            contender.update(block)
            yield Measurement(
                matrix=name,
                dim=dim,
                sketch=label,
                epsilon=epsilon,
                t=contender.count,
                error=covariance_error(covariance, contender.rows),
                certificate=contender.error_bound,
                # FD: Delta_t of eq. (spectral error); DBS: Thm. 1.
                bound=fd_bound(spectrum, settings.fd_size) if epsilon is None else 2 * epsilon,
                rows=len(contender.rows),
            )


def steps(settings: Settings) -> int:
    """How many measurements a run yields, for a progress bar."""
    return len(settings.matrices) * (1 + len(settings.epsilons)) * -(-settings.count // settings.every)
