"""One model per action beside MABWiser and river: ``python -m benchmarks.per_action``.

Every contender plays the same contexts, eight actions of 300 features each, and learns from the rewards of
what it chose. First all of them learn from one log, and their means and widths are compared. Needs
``pip install mabwiser river``; what is missing is left out. Times are CPU seconds of this process, the best
of several turns in which the contenders alternate. MABWiser, whose rounds cost the same at any time, plays a
tenth of them.
"""

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from sketchbandit.linalg import normalised

Matrix = NDArray[np.float64]
DIM, ACTIONS, RIDGE, BETA, TURNS = 300, 8, 1.0, 0.1, 3
SPECTRA: dict[str, Any] = {"flat": 0.0, "power law": 1.0}


class Stream(NamedTuple):
    """Contexts of unit length, and the reward of every action."""

    contexts: Matrix
    rewards: Matrix


class Contender(Protocol):
    """What is timed."""

    def prepare(self, contexts: Matrix) -> list[Any]:
        """Contexts as it takes them; not timed."""

    def select(self, context: Any) -> int:
        """An action."""

    def update(self, context: Any, action: int, reward: float) -> None:
        """Learn from it."""

    def told(self, context: Any) -> tuple[Matrix, Matrix]:
        """Mean and width of every action."""


class Ours:
    """sb.PerAction."""

    def __init__(self, make: Callable[[], sb.Policy]) -> None:
        self.models = sb.PerAction(range(ACTIONS), make)
        self.select: Any = self.models.select
        self.update = self.models.update

    def prepare(self, contexts: Matrix) -> list[Any]:
        """Rows."""
        return list(contexts)

    def told(self, context: Any) -> tuple[Matrix, Matrix]:
        """As it says."""
        return self.models.mean(context), self.models.width(context)


class MABWiser:
    """LinUCB with the same ridge and alpha; ridge 1, for with another one it has unpulled actions wrong."""

    def __init__(self) -> None:
        mab: Any = importlib.import_module("mabwiser.mab")
        rule = mab.LearningPolicy.LinUCB(alpha=BETA, l2_lambda=RIDGE)
        self.mab = mab.MAB(list(range(ACTIONS)), rule)
        self.mab.fit(list(range(ACTIONS)), [0.0] * ACTIONS, np.zeros((ACTIONS, DIM)))

    def prepare(self, contexts: Matrix) -> list[Any]:
        """Matrices of one row."""
        return list(contexts[:, np.newaxis])

    def select(self, context: Any) -> int:
        """Its prediction."""
        return int(self.mab.predict(context))

    def update(self, context: Any, action: int, reward: float) -> None:
        """A fit of one."""
        self.mab.partial_fit([action], [reward], context)

    def told(self, context: Any) -> tuple[Matrix, Matrix]:
        """Its scores with alpha and with none: the width is the difference over alpha."""
        models = [self.mab._imp.arm_to_model[action] for action in range(ACTIONS)]
        means = np.array([float(context[0] @ model.beta) for model in models])
        scores = self.mab.predict_expectations(context)
        return means, (np.array([scores[action] for action in range(ACTIONS)]) - means) / BETA


class River:
    """LinUCBDisjoint: its bonus is sqrt(1 + width²), with no factor; alpha 1, where its prior is right."""

    def __init__(self) -> None:
        bandit: Any = importlib.import_module("river.bandit")
        self.policy = bandit.LinUCBDisjoint(alpha=RIDGE, beta=1.0, seed=0)

    def prepare(self, contexts: Matrix) -> list[Any]:
        """Dictionaries."""
        return [dict(enumerate(context.tolist())) for context in contexts]

    def select(self, context: Any) -> int:
        """Its pull."""
        return int(self.policy.pull(range(ACTIONS), context=context))

    def update(self, context: Any, action: int, reward: float) -> None:
        """Learn."""
        self.policy.update(action, context, reward)

    def told(self, context: Any) -> tuple[Matrix, Matrix]:
        """Its Gaussians, less the noise."""
        models = self.policy._bayes_lin_regs
        found = [models[action].predict_one(context, with_dist=True) for action in range(ACTIONS)]
        return np.array([one.mu for one in found]), np.sqrt([one.sigma**2 - 1.0 for one in found])


class Speed(NamedTuple):
    """One contender on one stream."""

    stream: str
    learned: int
    contender: str
    rounds_per_second: float
    mean_reward: float


def contenders() -> dict[str, Callable[[], Contender]]:
    """Those that are installed."""
    found: dict[str, Callable[[], Contender]] = {
        "PerAction, adaptive": lambda: Ours(
            lambda: sb.adaptive(DIM, ridge=RIDGE, beta=BETA, scaling=None, intercept=False)
        ),
        "PerAction, oful": lambda: Ours(lambda: sb.oful(DIM, ridge=RIDGE, beta=BETA)),
    }
    for name, package, make in (("MABWiser LinUCB", "mabwiser", MABWiser), ("river", "river", River)):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: left out")
        else:
            found[name] = make
    return found


def stream(decay: float, count: int, seed: int = 0) -> Stream:
    """Gaussian contexts whose coordinates fade like i^-decay; a theta on the sphere for every action."""
    random = np.random.default_rng(seed)
    contexts = normalised(random.standard_normal((count, DIM)) * np.arange(1, DIM + 1) ** -decay)
    thetas = normalised(random.standard_normal((ACTIONS, DIM)))
    return Stream(contexts, contexts @ thetas.T + 0.1 * random.standard_normal((count, ACTIONS)))


def compare_scores(count: int = 400) -> None:
    """All that are exact agree on every mean and width, after one log of actions in turn."""
    contexts, rewards = stream(0.0, count + 5)
    told = {}
    for name, make in contenders().items():
        contender = make()
        prepared = contender.prepare(contexts)
        for t in range(count):
            contender.update(prepared[t], t % ACTIONS, float(rewards[t, t % ACTIONS]))
        told[name] = np.array([contender.told(context) for context in prepared[count:]])
    exact = told["PerAction, oful"]
    for name, numbers in told.items():
        worst = float(np.abs(numbers - exact).max())
        print(f"{name:22} means and widths differ from exact ridge regression by at most {worst:.1e}")
        assert worst < 1e-8, name


def speeds(rounds: int, learned: int) -> Iterator[Speed]:
    """Rounds per second from nothing, or after a log of ``learned`` rounds of random actions."""
    for name, decay in SPECTRA.items():
        contexts, rewards = stream(decay, learned + rounds)
        logged = np.random.default_rng(1).integers(ACTIONS, size=learned).tolist()
        best: dict[str, tuple[float, float]] = {}
        for _ in range(TURNS):
            for contender_name, make in contenders().items():
                some = rounds if contender_name != "MABWiser LinUCB" else max(1, rounds // 10)
                contender = make()
                prepared = contender.prepare(contexts[: learned + some])
                if learned:
                    _learn_log(contender, prepared, logged, rewards)
                seconds, total = _played(contender, prepared[learned:], rewards[learned:])
                pace = seconds / some
                best[contender_name] = min(best.get(contender_name, (np.inf, 0.0)), (pace, total / some))
        for contender_name, (pace, reward) in best.items():
            yield Speed(name, learned, contender_name, 1.0 / pace, reward)


def _learn_log(contender: Contender, prepared: list[Any], logged: list[int], rewards: Matrix) -> None:
    if isinstance(contender, MABWiser):
        mine = rewards[np.arange(len(logged)), logged].tolist()
        contender.mab.partial_fit(logged, mine, np.concatenate(prepared[: len(logged)]))
        return
    for context, action, reward in zip(prepared, logged, rewards.tolist(), strict=False):
        contender.update(context, action, reward[action])


def _played(contender: Contender, prepared: list[Any], rewards: Matrix) -> tuple[float, float]:
    listed, total = rewards.tolist(), 0.0
    start = time.process_time()
    for context, reward in zip(prepared, listed, strict=False):
        action = contender.select(context)
        contender.update(context, action, reward[action])
        total += reward[action]
    return time.process_time() - start, total


def main() -> None:
    """Compare, time, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.per_action", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    options = parser.parse_args()
    with threadpool_limits(1):
        compare_scores()
        print(f"\n{ACTIONS} actions, {DIM} features, ridge {RIDGE:g}, beta {BETA:g}, one thread")
        head = f"{'contexts':10} {'after':>6}  {'contender':20} {'rounds/s':>9}"
        print(f"{head} {'adaptive is':>12} {'reward':>7}")
        for learned in (0, 4 * options.rounds):
            rates: dict[tuple[str, str], float] = {}
            for speed in speeds(options.rounds, learned):
                rates[speed.stream, speed.contender] = speed.rounds_per_second
                ratio = rates[speed.stream, "PerAction, adaptive"] / speed.rounds_per_second
                print(
                    f"{speed.stream:10} {learned:6,}  {speed.contender:20} {speed.rounds_per_second:9,.0f} "
                    f"{ratio:11.1f}x {speed.mean_reward:7.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
