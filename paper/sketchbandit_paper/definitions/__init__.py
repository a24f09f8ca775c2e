"""Every figure and table of the paper, and a few of ours, as data: one id each."""

from sketchbandit.errors import InputError
from sketchbandit_paper.definitions import adaptive, beyond, exploration, paper, starvation, tour
from sketchbandit_paper.experiment import Experiment

__all__ = ["EXPERIMENTS", "choose"]

EXPERIMENTS: dict[str, Experiment] = {
    e.id: e
    for e in (
        *paper.EXPERIMENTS,
        *adaptive.EXPERIMENTS,
        *exploration.EXPERIMENTS,
        *starvation.EXPERIMENTS,
        *beyond.EXPERIMENTS,
        *tour.EXPERIMENTS,
    )
}


def choose(ids: list[str]) -> list[Experiment]:
    """The experiments of these ids; ``all``: every one; ``embedded``, or none: those that need no files.

    >>> [experiment.id for experiment in choose(["mnist-space"])]
    ['mnist-space']
    """
    chosen: dict[str, Experiment] = {}
    for name in ids or ["embedded"]:
        if name == "all":
            chosen |= EXPERIMENTS
        elif name == "embedded":
            chosen |= {key: experiment for key, experiment in EXPERIMENTS.items() if experiment.embedded}
        elif name in EXPERIMENTS:
            chosen[name] = EXPERIMENTS[name]
        else:
            raise InputError(
                f"unknown experiment {name!r}; choose from all, embedded, {', '.join(EXPERIMENTS)}"
            )
    return [experiment for key, experiment in EXPERIMENTS.items() if key in chosen]
