"""Our own experiments beyond linear, light-tailed and stationary rewards: clicks, outliers, drift."""

from sketchbandit.simulation.environments import MNIST
from sketchbandit.simulation.policies import ROUNDS
from sketchbandit.simulation.specs import Spec, Value, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.experiment import Experiment

LINEAR, LOGISTIC, ROBUST = "Linear", "Logistic", "Robust"
LINEAR_THOMPSON, LOGISTIC_THOMPSON = "Linear, Thompson", "Logistic, Thompson"
NEVER, SLOWLY, FASTER = "never forgets", "forget = 0.999", "forget = 0.995"
BASE_RATES = (2, 10, 50)
"""In per cent."""
DEGREES = {1.5: 1.4, 2.0: 1.9, 3.0: 2.0}
"""Of Student's t, and the moment that Robust is told: a finite one."""
EPSILON = 8.0
_ARMS: dict[str, Value] = {"spectrum": "low-rank", "dim": 200, "arms": 20}


def _sketched(environment: Spec, **settings: Value) -> Spec:
    return who.adaptive(environment, horizon=ROUNDS, epsilon=EPSILON, **settings)


def _clicks(name: str, rate: int, environment: Spec, rounds: int) -> Experiment:
    """Linear and logistic rewards beside each other; both know a base rate."""
    return Experiment(
        id=f"clicks-{name}-{rate}",
        title=f"clicks at a base rate of {rate} %",
        environment=environment.with_settings(clicks=rate / 100),
        series=who.alone(
            *(
                (label, _sketched(environment, intercept=True, **rule, **model))
                for label, rule, model in (
                    (LINEAR, {}, {}),
                    (LOGISTIC, {}, {"rewards": "logistic"}),
                    (LINEAR_THOMPSON, {"explore": "thompson"}, {}),
                    (LOGISTIC_THOMPSON, {"explore": "thompson"}, {"rewards": "logistic"}),
                )
            )
        ),
        rounds=rounds,
        kind="click",
        figure="calibration",
        own_colours=True,
        optional=True,
    )


def _tails(name: str, title: str, environment: Spec, rounds: int, **robust: Value) -> Experiment:
    """Linear and robust rewards beside each other."""
    return Experiment(
        id=f"tails-{name}",
        title=title,
        environment=environment,
        series=who.alone(
            (LINEAR, _sketched(environment)),
            (
                ROBUST,
                _sketched(environment, rewards="robust", **{f"rewards.{k}": v for k, v in robust.items()}),
            ),
        ),
        rounds=rounds,
        figure="permutations",
        own_colours=True,
        optional=True,
    )


def _drift(name: str, title: str, environment: Spec, rounds: int) -> Experiment:
    """With and without forgetting."""
    return Experiment(
        id=f"drift-{name}",
        title=title,
        environment=environment,
        series=who.alone(
            (NEVER, _sketched(environment)),
            (SLOWLY, _sketched(environment, forget=0.999)),
            (FASTER, _sketched(environment, forget=0.995)),
        ),
        rounds=rounds,
        figure="rates",
        own_colours=True,
        optional=True,
    )


def _unending() -> Experiment:
    """A hundred thousand rounds: what forgetting does to certificate and rows. Nothing is tuned."""
    environment = spec("gaussian", spectrum="power-law", dim=500, arms=3)
    given: dict[str, Value] = {"epsilon": EPSILON, "ridge": 1, "beta": 0.1}
    return Experiment(
        id="forgetting-rows",
        title="certificate and rows over 100,000 rounds, ε = 8",
        environment=environment,
        series=who.alone(
            (SLOWLY, who.adaptive(environment, forget=0.999, **given)),
            (NEVER, who.adaptive(environment, **given)),
        ),
        rounds=100_000,
        points=100,
        figure="budget",
        own_colours=True,
        optional=True,
    )


_GAUSSIAN = spec("gaussian", **_ARMS)
EXPERIMENTS = (
    *(_clicks("gaussian", rate, _GAUSSIAN.with_settings(lift=20), 4000) for rate in BASE_RATES),
    *(_clicks("mnist", rate, MNIST, 2000) for rate in BASE_RATES),
    *(
        _tails(
            f"{degrees:g}",
            f"noise of Student's t with {degrees:g} degrees of freedom",
            _GAUSSIAN.with_settings(degrees=degrees, scale=0.1),
            10_000,
            scale=0.1,
            moment=moment,
        )
        for degrees, moment in DEGREES.items()
    ),
    _tails(
        "mnist",
        "one reward in twenty is off by 10",
        MNIST.with_settings(outliers=0.05, scale=10),
        2000,
        scale=0.5,
        moment=2,
    ),
    _drift(
        "switch", "theta* is another one after half the rounds", _GAUSSIAN.with_settings(switch=4000), 8000
    ),
    _drift("turn", "theta* turns slowly", _GAUSSIAN.with_settings(turn=16_000), 8000),
    _drift("mnist", "another label pays after half the rounds", MNIST.with_settings(switch=2000), 4000),
    _unending(),
)
