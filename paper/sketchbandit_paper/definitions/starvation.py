"""Our own experiment on starving: how often each exploration rule earns nothing for long."""

from sketchbandit.simulation.specs import Spec, Value, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.definitions.exploration import GROWING, RULES
from sketchbandit_paper.experiment import Experiment, Series

READINGS: tuple[dict[str, Value], ...] = (
    {"scaling": None, "intercept": False},
    {"scaling": "rows", "intercept": False},
    {"scaling": "auto", "intercept": True},
)
"""Features as they are stored, unit rows, and what a user who tunes nothing gets."""


def _starvation(name: str, environment: Spec) -> Experiment:
    """Every rule with its default strength, and every reading, on features as they are stored."""
    return Experiment(
        id=f"starvation-{name}",
        title="how often each rule earns nothing for 500 rounds, all with their defaults",
        environment=environment.with_settings(normalise=None),
        series=tuple(
            Series(
                label=label,
                members=tuple(who.plain(ridge=1, **reading, **rule) for reading in READINGS),
            )
            for label, rule in RULES.items()
            if label != GROWING
        ),
        kind="starve",
        figure="table",
        points=1,
    )


EXPERIMENTS = (
    _starvation("motley", spec("motley")),
    *(
        _starvation(name, spec("classification", data=name))
        for name in ("digits", "mnist", "mfeat", "spam", "cnae-9")
    ),
)
