"""Traffic for a look at the dashboard: digits, of which one kind is worth a reward."""

import random
import time
from collections import deque
from contextlib import suppress

from sketchbandit import data
from sketchbandit.client import Client, ServiceError
from sketchbandit.environment import Classification

BANDIT = "demo-digits"
_DIM = 64
_PARAMETERS = {"size": 10, "epsilon": 20.0, "beta": 1.0, "scaling": None, "intercept": False}
# beta: so curious that one can watch it learn; the images have length one already
_SHARE = 0.1  # of decisions drawn uniformly, so that the gain over a uniform choice can be told
_MEAN_DELAY = 2.0
_ANSWERED = 0.95  # of the decisions
_CLICKED = {True: 0.75, False: 0.05}  # how often the target is worth a reward, and anything else
_ROUNDS = 10_000_000


def drive(url: str, *, token: str | None = None, rate: float = 20.0, seconds: float | None = None) -> None:
    """Ask for decisions and send rewards, late and in any order, until the service goes away.

    One image of each digit is offered. The reward is 1 three times in four for the target, and seldom for
    another digit. Rewards come after two seconds or so; one in twenty never comes.

    Parameters
    ----------
    url, token
        The service.
    rate : float
        Decisions a second.
    seconds : float, optional
        When to stop.

    """
    digits = data.load("digits")
    environment = Classification(digits.features, digits.labels, target=8, seed=1)
    draw = random.Random(0)  # noqa: S311  (nothing secret)
    late: deque[tuple[float, str, float]] = deque()
    with Client(url, token=token) as client:
        with suppress(ServiceError):  # what was learned before goes, so that there is something to watch
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
