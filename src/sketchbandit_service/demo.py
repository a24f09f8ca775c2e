"""Sends demo traffic for a look at the dashboard: images of digits, one of which earns rewards."""

import random
import time
from collections import deque
from contextlib import suppress

from sketchbandit import data
from sketchbandit.environment import Classification
from sketchbandit_service.client import Client, ServiceError

BANDIT = "demo-digits"
_DIM = 64
_PARAMETERS = {"size": 10, "epsilon": 20.0, "beta": 1.0, "scaling": None, "intercept": False}
# beta is large, so that one can watch it learn; the images already have length one
_SHARE = 0.1  # share of uniform decisions, so that the comparison with a uniform choice is possible
_MEAN_DELAY = 2.0
_ANSWERED = 0.95  # share of decisions that get a reward
_CLICKED = {True: 0.75, False: 0.05}  # probability of reward 1: for the target digit, and for others
_ROUNDS = 10_000_000


def drive(url: str, *, token: str | None = None, rate: float = 20.0, seconds: float | None = None) -> None:
    """Ask for decisions and send rewards, late and in any order, until the service stops.

    One image of each digit is offered. The reward is 1 three times in four for the target, and rarely for
    another digit. Rewards come after about two seconds; one in twenty never comes.

    Parameters
    ----------
    url, token
        The address of the service, and its token.
    rate : float
        Decisions per second.
    seconds : float, optional
        Stop after this time.

    """
    digits = data.load("digits")
    environment = Classification(digits.features, digits.labels, target=8, seed=1)
    draw = random.Random(0)  # noqa: S311  (nothing secret)
    late: deque[tuple[float, str, float]] = deque()
    with Client(url, token=token) as client:
        with suppress(ServiceError):  # forget what was learned before, so that there is something to watch
            client.bandit(BANDIT).delete()
        bandit = client.create(
            BANDIT,
            _DIM,
            parameters=_PARAMETERS,
            exploration=_SHARE,
            reward_timeout=30.0,
            default_reward=None,
        )
        started = due_next = time.monotonic()
        for offered in environment.rounds(_ROUNDS):
            now = time.monotonic()
            if seconds is not None and now - started > seconds:
                return
            decision = bandit.select(offered.arms)
            if draw.random() < _ANSWERED:
                due = now + draw.expovariate(1.0 / _MEAN_DELAY)
                chance = _CLICKED[offered.reward(decision.index) > 0.0]
                late.append((due, decision.id, float(draw.random() < chance)))
            for _ in range(len(late)):
                due, answered, reward = late.popleft()
                if due <= now:
                    bandit.update(answered, reward)
                else:
                    late.append((due, answered, reward))
            due_next = max(due_next + 1.0 / rate, time.monotonic() - 1.0)
            time.sleep(max(0.0, due_next - time.monotonic()))
