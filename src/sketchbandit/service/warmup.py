"""Before the first request: what would make it wait."""

import numpy as np

from sketchbandit.policy import oful, soful
from sketchbandit.service.vectors import from_named

_DIM = 40


def warm_up() -> None:
    """Play a few rounds with small policies, so that the loops of a round are compiled; hash a feature.

    Both forms of the precision are gone through: rows of a sketch, and a matrix.
    """
    arms = np.random.default_rng(0).standard_normal((5, _DIM))
    for policy in (soful(_DIM, size=5), oful(_DIM)):
        for _ in range(2 * _DIM):
            policy.update(arms[policy.select(arms)], 1.0)
        policy.top(arms, 2)
        policy.ucb(arms)
    from_named([{"feature": 1.0}], _DIM)  # scikit-learn takes a second to import
