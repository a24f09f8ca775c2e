"""Our own experiments with the adaptive sketch."""

from sketchbandit.simulation.environments import FLAT, LOW_RANK, MNIST, POWER_LAW
from sketchbandit.simulation.policies import ROUNDS
from sketchbandit.simulation.specs import Spec, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.experiment import Experiment


def _beside_blocks(name: str, environment: Spec, size: int, *others: who.Labelled) -> Experiment:
    """The adaptive sketch beside the paper's blocks, at the same epsilon."""
    return Experiment(
        id=f"adaptive-{name}",
        title="the adaptive sketch beside the paper's schedule, ε = 8 unless said",
        environment=environment,
        series=who.alone(
            who.OFUL,
            *who.sized("CBSCFD", size),
            ("DBSLinUCB-RFD", who.blocks(1, (size, 8))[0]),
            (who.ADAPTIVE, who.adaptive(environment, horizon=ROUNDS, epsilon=8)),
            (who.ANYTIME, who.adaptive(environment, epsilon=8)),
            ("Adaptive, untuned default", who.plain(ridge=1, beta=0.1)),
            *others,
        ),
        figure="budget",
    )


def _anytime(rounds: int) -> Experiment:
    """Knowing the horizon or not, where it is shorter and longer than the others' 2000 rounds; untuned."""
    unaware = who.adaptive(MNIST, epsilon=8, ridge=0.2, beta=0.01)
    return Experiment(
        id=f"anytime-{rounds}",
        title=f"what it costs not to know that {rounds} rounds will come",
        environment=MNIST,
        series=who.alone((who.ADAPTIVE, unaware.with_settings(horizon=ROUNDS)), (who.ANYTIME, unaware)),
        rounds=rounds,
        figure="budget",
    )


EXPERIMENTS = (
    _beside_blocks("flat", FLAT, 50, (who.NEARLY_EXACT, who.adaptive(FLAT, horizon=ROUNDS, epsilon=0.001))),
    _beside_blocks("power-law", POWER_LAW, 50),
    _beside_blocks("low-rank", LOW_RANK, 50),
    _beside_blocks("mnist", MNIST, 50),
    _beside_blocks("cnae-9", spec("classification", data="cnae-9"), 50),
    *(_beside_blocks(name, spec("classification", data=name), 10) for name in ("mfeat", "spam", "digits")),
    _anytime(500),
    _anytime(8000),
)
