"""The tour: the default beside the paper's algorithms, OFUL and chance, with nothing tuned.

It is what a newcomer sees first. Short runs on data that need no files, and those experiments of the paper
that a short run can judge.
"""

from sketchbandit.simulation.policies import with_defaults
from sketchbandit.simulation.specs import UNIFORM, UNIFORM_TITLE, Spec, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.experiment import Experiment

DEFAULT, EXACT = "Adaptive (the default)", "OFUL (exact)"
"""The labels that the answer is about."""


def _tour(name: str, title: str, environment: Spec, size: int) -> Experiment:
    """Everybody with their own defaults; the fixed sizes suit the number of features."""
    players = (
        (DEFAULT, spec("adaptive")),
        ("DBSLinUCB", spec("dbslinucb", size=size)),
        *((method, spec(method.lower(), size=size)) for method in ("SOFUL", "CBSCFD", "CBRAP")),
        (EXACT, spec("oful")),
    )
    return Experiment(
        id=f"tour-{name}",
        title=title,
        environment=environment,
        series=who.alone(
            *((label, with_defaults(player)) for label, player in players), (UNIFORM_TITLE, UNIFORM)
        ),
        rounds=4000,
        figure="costs",
        optional=True,
    )


EXPERIMENTS = (
    _tour("digits", "handwritten digits (64 features)", spec("classification", data="digits"), size=10),
    _tour(
        "synthetic",
        "a synthetic stream (500 features)",
        spec("gaussian", spectrum="power-law", mixed=1, arms=20),
        size=50,
    ),
)
TOUR = tuple(experiment.id for experiment in EXPERIMENTS)
"""The ids of the tour itself, the embedded data first."""
JUDGED_BY = ("matrix-approximation", "synthetic-fd", "synthetic-rfd", "algorithms")
"""Experiments of the paper whose claims a short run can judge."""
