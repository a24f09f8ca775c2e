"""From experiments to runs: what to tune, what was found best, what to report."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import pandas as pd

from sketchbandit.experiments.definitions import Experiment, Series
from sketchbandit.experiments.profiles import FIRST_TUNING_SEED, Profile
from sketchbandit.experiments.runs import Run
from sketchbandit.experiments.specs import Spec


class Tuned(NamedTuple):
    """The pair of ridge and beta with the least mean regret on the tuning permutations."""

    ridge: float
    beta: float
    regret: float


Choices = dict[tuple[str, str], Tuned]
"""By environment and contender."""


def rounds_of(experiment: Experiment, profile: Profile) -> int:
    """How long the experiment is played; matrices are always read whole."""
    if experiment.kind == "approximate":
        return experiment.rounds
    return max(1, round(experiment.rounds * profile.rounds))


def series_of(experiment: Experiment, profile: Profile) -> tuple[Series, ...]:
    """The series, thinned if the profile says so: the first, the last and what lies evenly between."""
    return tuple(Series(s.label, _thinned(s.members, profile.sweep)) for s in experiment.series)


def members_of(experiment: Experiment, profile: Profile) -> list[Spec]:
    """Everybody who plays."""
    return [member for series in series_of(experiment, profile) for member in series.members]


def tuning_runs(experiments: Iterable[Experiment], profile: Profile) -> list[Run]:
    """One run for each contender and tuning permutation: it plays the whole grid."""
    grid = tuple(product(profile.ridges, profile.betas))
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + profile.tuning_permutations)
    return _unique(
        Run(
            "tune",
            experiment.environment,
            member,
            max(1, round(rounds_of(experiment, profile) * profile.tuning_rounds)),
            seed,
            grid=grid,
        )
        for experiment in experiments
        if experiment.kind == "play"
        for member in members_of(experiment, profile)
        for seed in seeds
        if not {"ridge", "beta"} <= dict(member.settings).keys()
    )


def choices(rows: "pd.DataFrame") -> Choices:
    """The best pair for each environment and contender; ties go to the smaller ridge, then beta."""
    tuning = rows[rows["kind"] == "tune"]
    keys = ["environment", "contender", "ridge", "beta"]
    means = (
        tuning.groupby(keys, as_index=False)["regret"].mean().sort_values([*keys[:2], "regret", *keys[2:]])
    )
    best = means.groupby(keys[:2], as_index=False).first()
    return {
        (str(row.environment), str(row.contender)): Tuned(row.ridge, row.beta, row.regret)
        for row in best.itertuples(index=False)
    }


def final_runs(experiments: Iterable[Experiment], profile: Profile, chosen: Choices) -> list[Run]:
    """The runs that are reported. A contender for which tuning gave nothing is left out."""
    runs = []
    for experiment in experiments:
        rounds = rounds_of(experiment, profile)
        for member in members_of(experiment, profile):
            contender = member
            if experiment.kind == "play":
                tuned = chosen.get((str(experiment.environment), str(member.without("ridge", "beta"))))
                if tuned is not None:
                    found = {"ridge": tuned.ridge, "beta": tuned.beta}
                    contender = member.with_settings(**{**found, **dict(member.settings)})
                elif not {"ridge", "beta"} <= dict(member.settings).keys():
                    continue
            seeds = range(1 if experiment.kind == "approximate" else profile.permutations)
            runs += [
                Run(
                    experiment.kind,
                    experiment.environment,
                    contender,
                    rounds,
                    seed,
                    experiment.points,
                    experiment.spectrum,
                )
                for seed in seeds
            ]
    return _unique(runs)


def _thinned(members: tuple[Spec, ...], count: int) -> tuple[Spec, ...]:
    if not count or len(members) <= count:
        return members
    step = (len(members) - 1) / (count - 1)
    return tuple(members[round(i * step)] for i in range(count))


def _unique(runs: Iterable[Run]) -> list[Run]:
    return list({run.key: run for run in runs}.values())
