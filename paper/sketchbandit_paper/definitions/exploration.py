"""Our own experiments with the exploration rules: side by side, and with rewards that come late."""

from sketchbandit.simulation.environments import LOW_RANK, MNIST
from sketchbandit.simulation.policies import ROUNDS
from sketchbandit.simulation.specs import Spec, Value, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.experiment import Experiment, Series

UCB, FLOORED, THOMPSON, GREEDY = "UCB", "UCB, 1 % uniform", "Thompson", "Greedy"
INVERSE_GAP, GROWING, EPSILON_GREEDY = "InverseGap", "InverseGap, growing", "EpsilonGreedy"
RULES: dict[str, dict[str, Value]] = {
    UCB: {},
    FLOORED: {"explore": "ucb", "floor": 0.01},
    THOMPSON: {"explore": "thompson"},
    INVERSE_GAP: {"explore": "inverse-gap"},
    GROWING: {"explore": "inverse-gap", "growth": 0.5},
    EPSILON_GREEDY: {"explore": "epsilon-greedy"},
    GREEDY: {"explore": "greedy"},
}
"""The rules by their labels."""
DELAYS = (0, 100, 1000)
_FEW_ARMS: dict[str, Value] = {"spectrum": "low-rank", "dim": 100, "arms": 50}


def _side_by_side(name: str, environment: Spec) -> Experiment:
    """Every rule on the adaptive sketch of the other experiments."""
    return Experiment(
        id=f"exploration-{name}",
        title="the exploration rules side by side on the adaptive sketch, ε = 8",
        environment=environment,
        series=who.alone(
            *(
                (label, who.adaptive(environment, horizon=ROUNDS, epsilon=8, **rule))
                for label, rule in RULES.items()
            )
        ),
        figure="permutations",
    )


def _untuned(name: str, environment: Spec) -> Experiment:
    """Every rule with its own defaults on the adaptive policy with its own: what a first try gives."""
    return Experiment(
        id=f"exploration-{name}-untuned",
        title="the exploration rules side by side, all with their defaults",
        environment=environment,
        series=who.alone(*((label, who.plain(ridge=1, **rule)) for label, rule in RULES.items())),
        figure="permutations",
    )


def _late(name: str, title: str, given: dict[str, Value], **settings: Value) -> Experiment:
    """Every rule with every delay; exact, because the dimension is small."""
    return Experiment(
        id=f"late-rewards-{name}",
        title=f"rewards that come late, {title}",
        environment=spec("gaussian", **_FEW_ARMS, **settings),
        series=tuple(
            Series(
                label=label,
                members=tuple(who.plain(delay=delay, **given, **rule) for delay in DELAYS),
            )
            for label, rule in RULES.items()
            if label != GROWING
        ),
        rounds=4000,
        figure="delays",
        points=1,
    )


_PLACES = {
    "mnist": MNIST,
    **{name: spec("classification", data=name) for name in ("cnae-9", "mfeat", "digits")},
    "low-rank": LOW_RANK,
}
EXPERIMENTS = (
    *(_side_by_side(name, environment) for name, environment in _PLACES.items()),
    *(_untuned(name, environment) for name, environment in _PLACES.items()),
    _late("drawn", "arms drawn anew each round", {}),
    _late("fixed", "the same arms every round", {}, fixed=1),
    _late("fixed-untuned", "the same arms every round, all rules with their defaults", {"ridge": 1}, fixed=1),
)
