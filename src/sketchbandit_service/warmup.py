"""Does the slow first work before the first request."""

import logging
from functools import cache

import numpy as np

from sketchbandit.estimate import Logistic
from sketchbandit.explore import UCB, EpsilonGreedy, InverseGap, Thompson
from sketchbandit.kernels import all_are_long
from sketchbandit.policy import PerAction, adaptive, cbrap, oful, soful
from sketchbandit_service.vectors import from_named

log = logging.getLogger(__name__)

_DIM = 40


@cache
def warm_up() -> None:
    """Play a few rounds with small policies, so that the loops are compiled, and hash a feature.

    This covers both forms of the precision (rows of a sketch, and a matrix) and all rules. Then the same runs
    with the loops for large policies, which let other threads run.
    """
    log.info("preparing the loops of a round; the first start on a machine compiles them, up to a minute")
    _play()
    with all_are_long():
        _play()
    from_named([{"feature": 1.0}], _DIM)  # scikit-learn takes a second to import


def _play() -> None:
    rounds = np.random.default_rng(0).standard_normal((2 * _DIM, 5, _DIM)) / _DIM
    arms, draws = rounds[0], Thompson("auto", samples=10)
    for policy in (
        soful(_DIM, size=5),
        oful(_DIM),
        adaptive(_DIM, explore=draws),
        cbrap(_DIM, size=5),
        soful(_DIM, size=5, rewards=Logistic()),
        oful(_DIM, rewards=Logistic()),
    ):
        for offered in rounds:
            policy.update(offered[policy.rank(offered, probabilities=False).index[0]], 1.0)
        policy.rank(arms)
        policy.rank(arms, 2)
        policy.rank(arms, 5)
        policy.scores(arms)
    for rule in (draws, InverseGap(), EpsilonGreedy(), UCB()):
        for policy in (soful(_DIM, size=5, explore=rule), adaptive(_DIM, explore=rule, scaling="rows")):
            policy.update(arms[policy.select(arms)], 1.0)
            policy.rank(arms, 2)
    for make in (lambda: soful(_DIM, size=5), lambda: adaptive(_DIM, explore=draws)):
        models = PerAction(["a", "b"], make)
        for context, *_ in rounds:
            models.update(context, models.choose(context).action, 1.0)
        models.rank(arms[1], probabilities=False)
        models.scores(arms[1])
