"""What one can do with experiments, as functions; the command line has the same verbs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sketchbandit import data as data_sets
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.policy.recipes import RECIPES
from sketchbandit.simulation import environments, rules
from sketchbandit.simulation import policies as known
from sketchbandit.simulation.environments import said_of_scales
from sketchbandit.simulation.specs import UNIFORM, UNIFORM_TITLE, Spec, is_chance, parse, spec
from sketchbandit.sketch.checks import check_count
from sketchbandit_paper import beside, reporting, runner, verifying
from sketchbandit_paper.beside import Beside
from sketchbandit_paper.definitions import EXPERIMENTS, choose
from sketchbandit_paper.definitions import tour as definition
from sketchbandit_paper.experiment import Experiment, Series
from sketchbandit_paper.profiles import TOUR, Profile
from sketchbandit_paper.profiles import profile as profile_named
from sketchbandit_paper.readings import DEFAULT
from sketchbandit_paper.readings import reading as reading_named
from sketchbandit_paper.reporting import Report
from sketchbandit_paper.results import Results
from sketchbandit_paper.runner import RunProgress
from sketchbandit_paper.store import Store
from sketchbandit_paper.verifying import Verified

PAPER, CONTEXTUAL = "paper", "contextual"
PROTOCOLS = (PAPER, CONTEXTUAL)
_BASELINES = {
    "Greedy": known.with_defaults(spec("adaptive", explore="greedy")),
    UNIFORM_TITLE: UNIFORM,
}
"""What every race has as a reference: no exploration, and no learning."""


def reproduce(
    ids: Sequence[str] = (),
    *,
    profile: str = "quick",
    reading: str = DEFAULT.name,
    jobs: int | None = None,
    dask: str | None = None,
    out: str | Path = "results",
    resume: bool = False,
    fresh: bool = False,
    watcher: RunProgress | None = None,
) -> Report:
    """Run the paper's experiments and write figures, tables and the report into ``out``.

    Parameters
    ----------
    ids : sequence of str
        Names of figures and tables, "all", or "embedded"; nothing means "embedded": what needs no files.
    profile : str
        "quick", "half", "standard" or "paper".
    reading : str
        How the paper is read where it leaves something open: "unit" or "largest" (rows of length one, or all
        divided by the largest norm), with "each", "shared" or "untuned" (lambda and beta for each setting,
        one pair for all, or none chosen), such as "largest-shared".
    jobs : int, optional
        Processes at a time; by default one for each core.
    dask : str, optional
        The address of a Dask scheduler that performs the runs instead. The results are the same but for the
        timings, which are those of its machines. Its workers need sketchbandit[experiments] and the data.
    out : path
        The folder for results.
    resume, fresh : bool
        Whether to go on with what is in the folder, or to delete it. Without either a folder with results
        is refused.
    watcher : RunProgress, optional
        Is told how the work goes.

    """
    chosen, amount = choose(list(ids)), replace(profile_named(profile), reading=reading_named(reading))
    where = _where(jobs, dask)
    return _run(chosen, amount, Path(out), where, resume=resume, fresh=fresh, watcher=watcher)


def tour(
    *,
    jobs: int | None = None,
    dask: str | None = None,
    out: str | Path = "results",
    resume: bool = False,
    fresh: bool = False,
    watcher: RunProgress | None = None,
) -> Report:
    """A first look: regret, time and memory of the default, the paper's algorithms, OFUL and chance.

    Nothing is tuned and nothing downloaded. Then the paper's claims that a short run can judge. The
    parameters are those of ``reproduce``.
    """
    stages = {
        "for the table": [EXPERIMENTS[name] for name in definition.TOUR],
        "for the paper's claims": [EXPERIMENTS[name] for name in definition.JUDGED_BY],
    }
    chosen = [experiment for stage in stages.values() for experiment in stage]
    where = _where(jobs, dask) | {"stages": stages}
    return _run(chosen, TOUR, Path(out), where, resume=resume, fresh=fresh, watcher=watcher)


def compare(
    policies: Sequence[str],
    *,
    data: str = "digits",
    label: str | None = None,
    rounds: int = 2000,
    permutations: int = 5,
    tune: bool = False,
    standardize: bool = False,
    protocol: str = PAPER,
    baselines: bool = True,
    jobs: int | None = None,
    dask: str | None = None,
    out: str | Path = "comparison",
    resume: bool = False,
    fresh: bool = False,
    watcher: RunProgress | None = None,
) -> Report:
    """Play any policies on any data set and write figure, table and report into ``out``.

    Parameters
    ----------
    policies : sequence of str
        "oful", "dbslinucb:size=50,epsilon=8", "adaptive:explore=thompson,scale=0.1", ... Ridge is 1 and beta
        0.1, and the number of another rule that rule's default, where neither given nor tuned. ``delay=100``:
        it learns every reward 100 rounds late. ``rewards=logistic``: the model of the rewards, and
        ``rewards.step=2`` a setting of it.
    data : str
        A named data set, a file of your own (npz, csv, parquet: features and a label column), or
        "gaussian", "power-law", "low-rank" for the synthetic arms. Any may be varied, as in
        "gaussian:clicks=0.02" (docs/experiments.md).
    label : str, optional
        The label column of your file.
    rounds, permutations : int
        How long, and how many seeds.
    tune : bool
        Search ridge and beta on the paper's grids, on two further seeds and half the rounds, for every
        policy that gives neither. Of another rule its own number: scale, epsilon and 10/gamma on the grid
        of beta.
    standardize : bool
        Bring every column of the data to mean 0 and deviation 1 before anything else. Sparse columns are
        divided by their deviation only.
    protocol : str
        "paper": a round offers one sample of each label, and that of the target pays 1. "contextual": a
        round is one sample, the actions are the labels, and the right one pays 1. There each policy has a
        model for each action (``PerAction``).
    baselines : bool
        Whether a greedy policy (``adaptive`` without exploration) and a uniform choice play along.
    jobs, dask, out, resume, fresh, watcher
        As for ``reproduce``.

    """
    rounds = check_count("rounds", rounds, at_least=1)
    permutations = check_count("permutations", permutations, at_least=1)
    if not policies:
        raise InputError(f"name a policy or more: {', '.join(RECIPES)}")
    series: dict[str, Series] = {}
    environment = _environment(data, label)
    notes = _scales(environment) if not standardize else []
    environment = _as_asked(environment, protocol, standardize=standardize)
    for text in policies:
        asked = parse(text)
        known.check(asked)
        rules.refuse_ambiguous(asked)
        if not is_chance(asked):
            environments.check_rewards(environment, known.model_of(asked))
        member = asked if tune and not known.is_given(asked) else known.with_defaults(asked)
        if known.label(asked) in series:
            raise InputError(f"{text} is there twice: {known.label(asked)}")
        series[known.label(asked)] = Series(label=known.label(asked), members=(member,))
    count = len(series)
    for name, member in _BASELINES.items() if baselines else ():
        if member not in [one.members[0] for one in series.values()]:
            series[name] = Series(label=name, members=(member,))
    experiment = Experiment(
        id="compare",
        title=f"{count} {'policies' if count > 1 else 'policy'} on {environments.title(environment)}",
        environment=environment,
        series=tuple(series.values()),
        rounds=rounds,
        figure="timed",
        notes=tuple(notes),
    )
    amount = Profile(name="compare", permutations=permutations, tuning_permutations=2, tuning_rounds=0.5)
    if not tune:
        amount = replace(amount, tuning_permutations=0, tuning_rounds=0.0, betas=(), ridges=())
    where = _where(jobs, dask)
    return _run([experiment], amount, Path(out), where, resume=resume, fresh=fresh, watcher=watcher)


def report(folder: str | Path) -> Report:
    """Make figures, tables and the page anew from the results in a folder; nothing is run."""
    with Store(Path(folder)).lock():
        return reporting.write(Results.read(Path(folder)), Path(folder))


def report_readings(folders: Sequence[str | Path], out: str | Path) -> Beside:
    """Set folders that hold different readings side by side: every claim under each, into ``out``."""
    return beside.write([Results.read(Path(folder)) for folder in folders], Path(out))


def verify(folder: str | Path, *, runs: int = 3, seed: int | None = None) -> list[Verified]:
    """Do some finished runs of a folder again, drawn at random: each must give the same rows to the bit.

    Timings are not compared. The bits are those of one machine: another processor may round differently.
    """
    return verifying.verify(Path(folder), runs=check_count("runs", runs, at_least=1), seed=seed)


def _where(jobs: int | None, dask: str | None) -> dict[str, Any]:
    """In processes here, or on a cluster."""
    if dask is None:
        return {"jobs": None if jobs is None else check_count("jobs", jobs, at_least=1)}
    if jobs is not None:
        raise InputError("jobs are processes here, and dask performs the runs elsewhere: choose one")
    return {"dask": dask}


def _run(
    experiments: Sequence[Experiment],
    amount: Profile,
    out: Path,
    where: dict[str, Any],
    *,
    resume: bool,
    fresh: bool,
    watcher: RunProgress | None,
) -> Report:
    if resume and fresh:
        raise InputError("resume goes on with what is there and fresh deletes it: choose one")
    outcome = runner.run(experiments, amount, out=out, resume=resume, fresh=fresh, watcher=watcher, **where)
    if outcome.failures and outcome.rows.empty:
        raise SketchBanditError(f"every run failed; the first one: {outcome.failures[0].reason}")
    return reporting.write(Results.read(out), out, outcome.failures)


def _environment(text: str, label: str | None) -> Spec:
    """What is played on; what varies it stands behind a colon."""
    name, colon, _ = text.partition(":")
    if not colon or Path(text).is_file():
        return _data(text, label)
    found = _data(name, label).with_settings(**environments.variations(parse(text)))
    environments.build(found, seed=0)  # which refuses what cannot be
    return found


def _as_asked(environment: Spec, protocol: str, *, standardize: bool) -> Spec:
    """The data under the protocol, standardised or not; both need a data set."""
    if protocol not in PROTOCOLS:
        raise InputError(f"unknown protocol {protocol!r}; choose from {', '.join(PROTOCOLS)}")
    if environment.name != "classification" and (standardize or protocol != PAPER):
        raise InputError(
            "synthetic arms have no labels and no columns of their own: standardize and the contextual "
            "protocol need a data set, such as digits, or a file"
        )
    found = environment.with_settings(standardize=1) if standardize else environment
    if protocol != PAPER:
        found = Spec("contextual", found.settings)
    environments.build(found, seed=0)  # which refuses what cannot be
    return found


def _scales(environment: Spec) -> list[str]:
    """A note where the columns of a data set are far apart in scale."""
    if environment.name != "classification":
        return []
    said = said_of_scales(environments.data_set(str(environment.get("data")), environment.get("label")))
    return [said] if said else []


def _data(name: str, label: str | None) -> Spec:
    synthetic = {"gaussian": "flat", "power-law": "power-law", "low-rank": "low-rank"}
    if name in synthetic:
        return spec("gaussian", spectrum=synthetic[name])
    if name in data_sets.CATALOGUE and label is None:
        return spec("classification", data=name)
    if name not in data_sets.CATALOGUE and not Path(name).suffix:
        known_names = ", ".join([*data_sets.CATALOGUE, *synthetic])
        raise InputError(f"unknown data {name!r}; choose from {known_names}, or give a file with its suffix")
    digest = data_sets.load(name, label=label).digest[:12]
    settings = {"data": str(Path(name).resolve()), "digest": digest, **({"label": label} if label else {})}
    return spec("classification", **settings)
