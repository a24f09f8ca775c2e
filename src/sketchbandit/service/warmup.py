"""Before the first request: what would make it wait."""

import numpy as np

from sketchbandit.explore import EpsilonGreedy, InverseGap, Thompson
from sketchbandit.policy import PerAction, oful, soful
from sketchbandit.service.vectors import from_named

_DIM = 40


def warm_up() -> None:
    """Play a few rounds with small policies, so that the loops of a round are compiled; hash a feature.

    Both forms of the precision are gone through, rows of a sketch and a matrix, and all rules.
    """
    arms = np.random.default_rng(0).standard_normal((5, _DIM))
    for policy in (soful(_DIM, size=5), oful(_DIM)):
        for _ in range(2 * _DIM):
            policy.update(arms[policy.select(arms)], 1.0)
        policy.choose(arms)
        policy.slate(arms, 2)
    for rule in (Thompson(samples=10), InverseGap(), EpsilonGreedy()):
        policy = soful(_DIM, size=5, explore=rule)
        policy.update(arms[policy.select(arms)], 1.0)
        policy.slate(arms, 2)
    models = PerAction(["a", "b"], lambda: soful(_DIM, size=5))
    models.update(arms[0], models.choose(arms[0]).action, 1.0)
    models.choose(arms[1])
    from_named([{"feature": 1.0}], _DIM)  # scikit-learn takes a second to import
