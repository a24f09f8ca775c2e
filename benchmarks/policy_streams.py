"""The streams on which policies are timed: arms and rewards are made before the clock starts."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import sketchbandit as sb


class Stream(NamedTuple):
    """Rounds of arms (dense or CSR, K each) and the reward of every arm."""

    name: str
    dim: int
    arms: list[Any]
    rewards: list[NDArray[np.float64]]


def gaussian(dim: int, rounds: int, arms: int = 10, seed: int = 0) -> Stream:
    """Unit Gaussian arms, theta on the sphere, noise 0.1."""
    return of_environment(f"Gaussian d={dim}", sb.GaussianArms(dim=dim, arms=arms, seed=seed), rounds)


def classification(rounds: int, seed: int = 0, target: int = 3) -> Stream:
    """The paper's setup: one random image of each digit a round, in random order; reward 1 for the target."""
    data = images()
    environment = sb.Classification(data.features, data.labels, target=target, seed=seed)
    return of_environment(f"{data.name} d={data.dim}", environment, rounds)


def images() -> sb.data.DataSet:
    """MNIST where it is here, else scikit-learn's digits."""
    return sb.data.load("mnist" if sb.data.find("mnist").here else "digits")


def farm_ads(rounds: int, arms: int = 10) -> Stream | None:
    """Sparse word features of ads, half of them approved, which is the reward; None where not here."""
    if not sb.data.find("farm-ads").here:
        return None
    data = sb.data.load("farm-ads")
    drawn = list(sb.Classification(data.features, data.labels, target=1).rounds(rounds * arms // 2))
    per_round = [drawn[i : i + arms // 2] for i in range(0, len(drawn), arms // 2)]
    return Stream(
        f"farm-ads d={data.dim}",
        data.dim,
        [sparse.csr_array(sparse.vstack([r.arms for r in some])) for some in per_round],
        [np.concatenate([r.means for r in some]) for some in per_round],
    )


def of_environment(name: str, environment: sb.Environment, rounds: int) -> Stream:
    """So many rounds of an environment, drawn now."""
    drawn = list(environment.rounds(rounds))
    return Stream(name, environment.dim, [r.arms for r in drawn], [r.means + r.noise for r in drawn])
