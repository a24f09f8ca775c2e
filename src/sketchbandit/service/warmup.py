"""Before the first request: what would make it wait."""

from functools import cache

import numpy as np

from sketchbandit.explore import EpsilonGreedy, InverseGap, Thompson
from sketchbandit.policy import PerAction, adaptive, oful, soful
from sketchbandit.service.vectors import from_named

_DIM = 40


@cache
def warm_up() -> None:
    """Play a few rounds with small policies, so that the loops of a round are compiled; hash a feature.

    Both forms of the precision are gone through, rows of a sketch and a matrix, and all rules.
    """
    rounds = np.random.default_rng(0).standard_normal((2 * _DIM, 5, _DIM)) / _DIM
    arms, draws = rounds[0], Thompson("auto", samples=10)
    for policy in (soful(_DIM, size=5), oful(_DIM), adaptive(_DIM, explore=draws)):
        for offered in rounds:
            policy.update(offered[policy.select(offered)], 1.0)
        policy.choose(arms)
        policy.slate(arms, 2)
        policy.ucb(arms)
        policy.scores(arms)
    for rule in (draws, InverseGap(), EpsilonGreedy()):
        policy = soful(_DIM, size=5, explore=rule)
        policy.update(arms[policy.select(arms)], 1.0)
        policy.slate(arms, 2)
    for make in (lambda: soful(_DIM, size=5), lambda: adaptive(_DIM, explore=draws)):
        models = PerAction(["a", "b"], make)
        for context, *_ in rounds:
            models.update(context, models.choose(context).action, 1.0)
        models.select(arms[1])
        models.scores(arms[1])
    from_named([{"feature": 1.0}], _DIM)  # scikit-learn takes a second to import
