"""From experiments to runs: what to tune, what was found best, what to report."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sketchbandit.simulation import environments, policies, rules
from sketchbandit.simulation.runs import Run
from sketchbandit.simulation.specs import Spec, is_chance, spec
from sketchbandit_paper.experiment import Experiment, Series
from sketchbandit_paper.profiles import FIRST_TUNING_SEED, TUNING_STRIDE, Profile
from sketchbandit_paper.readings import SHARED, UNTUNED

if TYPE_CHECKING:
    import pandas as pd


class Tuned(NamedTuple):
    """The pair of ridge and rule's number with the least mean regret on the tuning permutations."""

    ridge: float
    number: float
    """nan where the rule has none."""
    regret: float


Choices = dict[tuple[str, str, int], Tuned]
"""By environment, contender and the rounds played for it."""


def rounds_of(experiment: Experiment, profile: Profile) -> int:
    """How long the experiment is played; matrices are always read whole."""
    if experiment.kind == "approximate":
        return experiment.rounds
    return max(1, round(experiment.rounds * profile.rounds))


def tuning_rounds_of(experiment: Experiment, profile: Profile) -> int:
    """How long it is played for the tuning."""
    return max(1, round(rounds_of(experiment, profile) * profile.tuning_rounds))


def series_of(experiment: Experiment, profile: Profile) -> tuple[Series, ...]:
    """The series, thinned if the profile says so: the first, the last and what lies evenly between.

    Where fewer rounds are played, rewards are less late in proportion.
    """
    return tuple(
        replace(s, members=tuple(_hastened(m, profile) for m in _thinned(s.members, profile.sweep)))
        for s in experiment.series
    )


def members_of(experiment: Experiment, profile: Profile) -> list[Spec]:
    """Everybody who plays."""
    return [member for series in series_of(experiment, profile) for member in series.members]


def environment_of(experiment: Experiment, profile: Profile) -> Spec:
    """Where it is played, as the paper is read; with fewer rounds the world changes sooner in proportion."""
    asked = profile.reading.environment(experiment.environment)
    changes = {key: asked.get(key) for key in environments.CHANGES if asked.get(key) is not None}
    return asked.with_settings(**{key: max(1, round(at * profile.rounds)) for key, at in changes.items()})


def stand_in(member: Spec, profile: Profile) -> Spec:
    """On whom ridge and number are chosen for a contender: itself, or OFUL where all share what it has."""
    number = rules.number_of(member)
    if profile.reading.tuning != SHARED or number is None or number.setting != "beta":
        return member
    delay = member.get(policies.DELAY)
    return spec("oful") if delay is None else spec("oful", delay=delay)


def tuning_runs(experiments: Iterable[Experiment], profile: Profile) -> list[Run]:
    """One run for each contender: the whole grid races on the tuning permutations."""
    seeds = tuple(FIRST_TUNING_SEED + TUNING_STRIDE * i for i in range(profile.tuning_permutations))
    return _unique(
        Run(
            kind="tune",
            environment=environment_of(experiment, profile),
            contender=contender,
            rounds=tuning_rounds_of(experiment, profile),
            seed=seeds[0],
            further_seeds=seeds[1:],
            grid=tuple(product(profile.ridges, rules.numbers_of(contender, profile.betas))),
        )
        for experiment in experiments
        for member in members_of(experiment, profile)
        if needs_tuning(experiment, member) and profile.reading.tuning != UNTUNED
        for contender in [stand_in(member, profile)]
    )


def choices(rows: "pd.DataFrame") -> Choices:
    """The best pair for each environment and contender; ties go to the smaller ridge, then number."""
    finished = rows[(rows["kind"] == "tune") & (rows["round"] == rows["rounds"])]
    who, pair = ["environment", "contender", "rounds"], ["ridge", "number"]
    best = finished.sort_values([*who, "regret", *pair]).drop_duplicates(subset=who)
    found = best[[*pair, "regret"]].to_numpy(dtype=np.float64).tolist()
    names = zip(best["environment"], best["contender"], best["rounds"], strict=True)
    return {(str(e), str(c), int(n)): Tuned(*best) for (e, c, n), best in zip(names, found, strict=True)}


def final_runs(experiments: Iterable[Experiment], profile: Profile, chosen: Choices) -> list[Run]:
    """The runs that are reported."""
    return _unique(
        run
        for experiment in experiments
        for member in members_of(experiment, profile)
        for run in runs_of(experiment, member, profile, chosen)
    )


def runs_of(experiment: Experiment, member: Spec, profile: Profile, chosen: Choices) -> list[Run]:
    """One run a permutation; none for a contender for which tuning gave nothing."""
    contender, environment = member, environment_of(experiment, profile)
    if needs_tuning(experiment, member):
        if profile.reading.tuning == UNTUNED:
            contender = policies.tuned(member, 1.0, rules.numbers_of(member, [0.1])[0])
        else:
            where, rounds = str(environment), tuning_rounds_of(experiment, profile)
            tuned = chosen.get((where, str(stand_in(member, profile)), rounds))
            if tuned is None:
                return []
            contender = policies.tuned(member, tuned.ridge, tuned.number)
    rounds = rounds_of(experiment, profile)
    return [
        Run(
            kind="chance" if is_chance(member) else experiment.kind,
            environment=environment,
            contender=contender,
            rounds=rounds,
            seed=seed,
            points=experiment.points,
            spectrum=experiment.spectrum,
        )
        for seed in range(permutations_of(experiment, profile))
    ]


def permutations_of(experiment: Experiment, profile: Profile) -> int:
    """How many seeds are played; a sketch is deterministic, and one matrix is read."""
    return 1 if experiment.kind == "approximate" else profile.permutations


def needs_tuning(experiment: Experiment, member: Spec) -> bool:
    """Whether ridge and number are to be found; who gives one of them plays with what was given."""
    return experiment.kind in ("play", "click") and not policies.is_given(member)


def _thinned(members: tuple[Spec, ...], count: int) -> tuple[Spec, ...]:
    if not count or len(members) <= count:
        return members
    step = (len(members) - 1) / (count - 1)
    return tuple(members[round(i * step)] for i in range(count))


def _hastened(member: Spec, profile: Profile) -> Spec:
    delay = member.get(policies.DELAY)
    return member if delay is None else member.with_settings(delay=round(delay * profile.rounds))


def _unique(runs: Iterable[Run]) -> list[Run]:
    return list({run.key: run for run in runs}.values())
