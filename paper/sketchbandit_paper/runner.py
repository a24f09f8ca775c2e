"""Perform what is missing, and keep it: the engine below ``reproduce`` and ``compare``."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sketchbandit import data
from sketchbandit.simulation import environments, policies
from sketchbandit.simulation.pool import Failure, Result, run_all, run_on_cluster
from sketchbandit.simulation.runs import Run
from sketchbandit_paper import plan
from sketchbandit_paper.definitions import EXPERIMENTS
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.profiles import Profile
from sketchbandit_paper.store import Store

if TYPE_CHECKING:
    import pandas as pd

Performer = Callable[[list[Run]], Iterator[list[Result | Failure]]]
"""Performs runs somewhere."""


class RunProgress:
    """Progress callbacks; each does nothing by default."""

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage of so many runs begins; some of them were done before."""

    def advance(self, count: int) -> None:
        """So many more runs are finished."""

    def download(self, name: str, come: int, total: int) -> None:
        """So many bytes of a data set have come, of how many (0: unknown)."""


class Outcome(NamedTuple):
    """What a reproduction left."""

    rows: "pd.DataFrame"
    failures: list[Failure]


def settings_of(
    experiments: Sequence[Experiment], profile: Profile, digests: dict[str, str]
) -> dict[str, object]:
    """What the manifest records, and a resumed reproduction must agree with (ids and data may be added)."""
    ids = [experiment.id for experiment in experiments if experiment.id in EXPERIMENTS]
    settings: dict[str, object] = {"ids": ids, "profile": asdict(profile), "data": digests}
    for experiment in experiments:
        if experiment.id not in EXPERIMENTS:  # a comparison: the folder says what it was
            settings["experiment"] = asdict(experiment)
    return settings


def check(experiments: Sequence[Experiment], profile: Profile, watcher: RunProgress) -> dict[str, str]:
    """Read every data set and check every contender, so that nothing is found wrong after an hour.

    Returns the digests of the named data sets.
    """
    names = [name for name in dict.fromkeys(e.data for e in experiments) if name in data.CATALOGUE]
    for name in names:
        if not data.find(name).here:
            data.load(name, progress=partial(watcher.download, name))
    digests = {name: environments.data_set(name).digest for name in names}
    for experiment in experiments:
        if experiment.kind != "approximate":
            environments.build(plan.environment_of(experiment, profile), seed=0)
            for series in experiment.series:
                for member in series.members:
                    policies.check(member)
    return digests


def run(
    experiments: Sequence[Experiment],
    profile: Profile,
    *,
    out: Path,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    watcher: RunProgress | None = None,
    stages: Mapping[str, Sequence[Experiment]] | None = None,
) -> Outcome:
    """Tune, then play, whatever is not in ``out`` yet. What fails is reported and does not stop the rest.

    ``stages`` names what is played first and what follows, for the watcher; by default there is one stage.
    """
    watcher = watcher or RunProgress()
    settings = settings_of(experiments, profile, check(experiments, profile, watcher))
    if dask is None:
        perform: Performer = partial(run_all, jobs=jobs or os.cpu_count() or 1)
    else:
        perform = partial(run_on_cluster, address=dask)
    with Store(out).open(settings, resume=resume, fresh=fresh) as store:
        failures = _perform("tuning", plan.tuning_runs(experiments, profile), store, perform, watcher)
        chosen = plan.choices(store.frame())
        for name, played in (stages or {"playing": experiments}).items():
            failures += _perform(name, plan.final_runs(played, profile, chosen), store, perform, watcher)
        return Outcome(store.frame(), failures)


def _perform(
    name: str, runs: list[Run], store: Store, perform: Performer, watcher: RunProgress
) -> list[Failure]:
    missing = [run for run in runs if run.key not in store.finished]
    failures: list[Failure] = []
    if runs:
        watcher.stage(name, len(runs), len(runs) - len(missing))
    for finished in perform(missing):
        store.add([outcome.rows for outcome in finished if not isinstance(outcome, Failure)])
        failures += [outcome for outcome in finished if isinstance(outcome, Failure)]
        watcher.advance(len(finished))
    return failures
