"""The commands of the experiments."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn

from sketchbandit import data as data_sets
from sketchbandit.cli.output import LiveProgress, complaints, console, print_table, say
from sketchbandit.data import open_bandit
from sketchbandit.estimate.base import MODELS
from sketchbandit.policy.recipes import RECIPES, parameters
from sketchbandit.registry import setting_names
from sketchbandit.simulation.environments import VARIATIONS
from sketchbandit.simulation.rules import listed
from sketchbandit_paper import verbs
from sketchbandit_paper.answers import is_tour
from sketchbandit_paper.beside import Beside
from sketchbandit_paper.beside import table as table_of_readings
from sketchbandit_paper.definitions import EXPERIMENTS
from sketchbandit_paper.definitions.tour import TOUR
from sketchbandit_paper.profiles import PROFILES
from sketchbandit_paper.readings import DEFAULT, READINGS
from sketchbandit_paper.reporting import FULL_VERDICTS, Report
from sketchbandit_paper.runner import RunProgress
from sketchbandit_paper.tables import short_table, table
from sketchbandit_paper.verdicts import Findings, judged, not_judged


class Bar(LiveProgress, RunProgress):
    """Told of stages and finished runs; draws one line for each stage."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.description:22}"), BarColumn(), MofNCompleteColumn())
        self._downloads: dict[str, TaskID] = {}

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage of so many runs begins; some of them were done before."""
        self._task = self._progress.add_task(name, total=total, completed=done)

    def download(self, name: str, come: int, total: int) -> None:
        """So many bytes of a data set have come."""
        if name not in self._downloads:
            self._downloads[name] = self._progress.add_task(f"get {name}", total=total or None)
        self._progress.update(self._downloads[name], completed=come)


commands = typer.Typer(rich_markup_mode="markdown")


_EVERYWHERE = {"dtype", "explore", "rewards"}  # settings that all policies have

Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; by default one for each core.")]
Dask = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler (tcp://host:8786) that performs the runs.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the results in the folder.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete the results in the folder first.")]
RESUMABLE = "Interrupted; what was finished is kept: go on with --resume."


@commands.command()
def tour(
    jobs: Jobs = None,
    dask: Dask = None,
    out: Out = Path("results"),
    resume: Resume = False,
    fresh: Fresh = False,
) -> None:
    """Take a first look: two tables, a figure and what they show, in about a minute.

    The default policy beside the paper's algorithms, exact OFUL and a uniform choice: regret, reward, time
    and memory, on handwritten digits and on a synthetic stream with 500 features. Then the paper's claims
    that a short run can judge. Nothing is tuned, nothing is downloaded.

    Example: `sketchbandit tour`

    Example: `sketchbandit tour --out results --fresh`
    """
    with complaints(RESUMABLE), Bar() as bar:
        done = verbs.tour(jobs=jobs, dask=dask, out=out, resume=resume, fresh=fresh, watcher=bar)
    _show(done)


@commands.command(
    epilog=f"Ids: all, embedded, {', '.join(EXPERIMENTS)}. Profiles: "
    + "; ".join(f"{name}: {p.amount}" for name, p in PROFILES.items())
    + ". Readings: "
    + "; ".join(found.sentence.removeprefix("reading ") for found in READINGS.values())
    + "."
)
def reproduce(  # noqa: PLR0917  (typer takes options so)
    ids: Annotated[
        list[str] | None, typer.Argument(help="Figures and tables; without any: those that need no files.")
    ] = None,
    profile: Annotated[str, typer.Option(help=f"How much: {', '.join(PROFILES)}.")] = "quick",
    reading: Annotated[
        str,
        typer.Option(
            help="What the paper does not say: how rows are scaled (unit, largest), and who is tuned (each, "
            f"shared, untuned): {', '.join(READINGS)}."
        ),
    ] = DEFAULT.name,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Out = Path("results"),
    resume: Resume = False,
    fresh: Fresh = False,
) -> None:
    """Run the paper's experiments again, and judge its claims.

    Writes every figure (PNG, SVG) and table (CSV), the raw results (Parquet) and one self-contained page,
    report.html, that sets the paper's claims beside what was measured. Interrupt it when you like: finished
    runs are kept, and --resume goes on.

    Example: `sketchbandit reproduce`

    Example: `sketchbandit reproduce mnist-curves mnist-space --profile standard --out mnist`

    Example: `SKETCHBANDIT_DATA=data sketchbandit reproduce all --profile paper --out full --resume`

    Example: `sketchbandit reproduce --profile standard --dask tcp://10.0.0.1:8786`
    """
    with complaints(RESUMABLE), Bar() as bar:
        done = verbs.reproduce(
            ids or (),
            profile=profile,
            reading=reading,
            jobs=jobs,
            dask=dask,
            out=out,
            resume=resume,
            fresh=fresh,
            watcher=bar,
        )
    _show(done)


@commands.command(
    epilog="Policies: "
    + "; ".join(
        f"{name} ({', '.join(key for key in parameters(name) if key not in _EVERYWHERE)})" for name in RECIPES
    )
    + ". All take dtype=float32, delay=ROUNDS (rewards come late) and explore=RULE with the settings of the "
    + f"rule, written explore.epsilon where the policy has a setting of that name: {listed()}. And "
    + "rewards=MODEL with its settings written rewards.NAME: "
    + "; ".join(
        f"{name} ({', '.join(setting_names(model)) or 'none'})" for name, model in MODELS.built_in.items()
    )
    + f". Data are varied by settings too, as gaussian:clicks=0.02: {', '.join(VARIATIONS)}."
)
def compare(  # noqa: PLR0917  (typer takes options so)
    policy: Annotated[list[str], typer.Option(help="NAME or NAME:KEY=VALUE,...; give it several times.")],
    data: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(data_sets.CATALOGUE)}; gaussian, power-law, low-rank (synthetic); or a file: "
            ".npz (X, y), .csv, .parquet."
        ),
    ] = "digits",
    label: Annotated[str | None, typer.Option(help="The label column of your file.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds to play.")] = 2000,
    permutations: Annotated[int, typer.Option(min=1, help="Seeds to average over.")] = 5,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search ridge and beta, or the rule's number.")
    ] = False,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Bring the columns of the data to mean 0 and deviation 1.")
    ] = False,
    protocol: Annotated[
        str,
        typer.Option(
            help="paper: one sample of each label a round, find the target; contextual: one sample a round, "
            "name its label."
        ),
    ] = verbs.PAPER,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Let a greedy and a uniform choice play along.")
    ] = True,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Out = Path("comparison"),
    resume: Resume = False,
    fresh: Fresh = False,
) -> None:
    """Race policies on a data set, yours or a known one.

    Every policy sees the same rounds, rows scaled to length one. By default a round is one random row of each
    label, and that of the target label pays 1. With --protocol contextual a round is one row, the actions are
    the labels, and the right one pays 1; each policy then has a model for each action. Ridge is 1 and beta
    0.1 where not given; --tune searches both for each policy that gives neither, and the number of another
    rule in place of beta. A greedy policy and a uniform choice play along as references.

    Example: `sketchbandit compare --policy dbslinucb:size=20,epsilon=8 --policy oful`

    Example: `sketchbandit compare --policy adaptive --protocol contextual --standardize`

    Example: `sketchbandit compare --policy adaptive --policy adaptive:explore=thompson,scale=0.1`

    Example: `sketchbandit compare --data gaussian:clicks=0.02 --policy oful:rewards=logistic --policy oful`

    Example: `sketchbandit compare --data mine.csv --label kind --policy soful:size=10 --policy oful --tune`
    """
    with complaints(RESUMABLE), Bar() as bar:
        done = verbs.compare(
            policy,
            data=data,
            label=label,
            rounds=rounds,
            permutations=permutations,
            tune=tune,
            standardize=standardize,
            protocol=protocol,
            baselines=baselines,
            jobs=jobs,
            dask=dask,
            out=out,
            resume=resume,
            fresh=fresh,
            watcher=bar,
        )
    _show(done)


@commands.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="A folder that `reproduce` or `compare` wrote.")],
    out: Annotated[Path, typer.Option(help="Where the table of several readings goes.")] = Path("readings"),
) -> None:
    """Make the figures, tables and report of a folder anew, without running anything.

    Of several folders, one for each reading of the paper: a table of its claims under each.

    Example: `sketchbandit report results`

    Example: `sketchbandit report unit-each unit-shared largest-each largest-shared --out readings`
    """
    if len(folders) > 1:
        with complaints():
            _beside(verbs.report_readings(folders, out))
        return
    with complaints(RESUMABLE):
        done = verbs.report(folders[0])
    _show(done)


@commands.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that `reproduce` or `compare` wrote.")],
    runs: Annotated[int, typer.Option(min=1, help="How many of its runs are done again.")] = 3,
    seed: Annotated[int | None, typer.Option(help="Which ones; by default others each time.")] = None,
) -> None:
    """Do some runs of a folder again: each must give the same results to the bit, but for the seconds.

    Example: `sketchbandit verify results --runs 3`
    """
    with complaints():
        found = verbs.verify(folder, runs=runs, seed=seed)
    rows = [
        [
            str(one.run.environment),
            str(one.run.contender),
            one.run.kind,
            str(one.run.seed),
            f"differs in {', '.join(one.different)}" if one.different else "the same",
        ]
        for one in found
    ]
    print_table("runs done again", ["environment", "contender", "kind", "seed", "outcome"], rows)
    if any(one.different for one in found):
        raise typer.Exit(1)


@commands.command()
def data() -> None:
    """List the data sets: source, licence, shape, and where each lies.

    A data set is looked for in the folder SKETCHBANDIT_DATA, then in the cache, then on OpenML.

    Example: `SKETCHBANDIT_DATA=data sketchbandit data`
    """
    named = os.environ.get(data_sets.VARIABLE)
    if named and not Path(named).expanduser().is_dir():
        typer.secho(f"{data_sets.VARIABLE} names no folder: {named}", err=True, fg=typer.colors.RED)
    rows = []
    for name, source in data_sets.CATALOGUE.items():
        found = data_sets.find(name)
        where = str(found.path) if found.path else "embedded" if found.here else "not here"
        shape = f"{source.rows:,} x {source.dim:,}"
        rows.append([name, shape, str(source.classes), source.origin, source.licence, where])
    for policy in open_bandit.POLICIES:
        path = data_sets.find_open_bandit(policy)
        of_log = [open_bandit.ORIGIN, open_bandit.LICENCE, str(path) if path else "not here"]
        rows.append([f"obd {policy}", "80 arms", "", *of_log])
    print_table("data sets", ["name", "shape", "classes", "source", "licence", "where"], rows)


def _show(done: Report) -> None:
    """Tables, the answer, verdicts, and where it all lies."""
    if is_tour(done.results):
        for name in TOUR:
            print_table(done.results.experiments[name].title, *table(done.results, name))
        _answer(done, "What this shows")
        _verdicts("the paper's claims that a short run can judge, nothing tuned", done.findings)
        console.print(FULL_VERDICTS, highlight=False, markup=False)
    else:
        _verdicts("the paper's claims", done.findings)
        _verdicts("our claims", done.ours)
        _tables(done)
        _answer(done, "What this shows")
        if not_judged(done.findings) or not_judged(done.ours):
            console.print("The other claims need other experiments or all rounds; the report says which.")
    for note in done.notes:
        console.print(f"Note: {note}", highlight=False, markup=False)
    _finish(done)


def _answer(done: Report, heading: str) -> None:
    if done.answer.sentences:
        console.print(f"[bold]{heading}[/bold]", highlight=False)
        for sentence in done.answer.sentences:
            console.print(sentence, highlight=False, markup=False)


def _verdicts(title: str, findings: Findings) -> None:
    rows = [[claim.statement, claim.paper, found.ours, found.verdict] for claim, found in judged(findings)]
    if rows:
        print_table(title, ["claim", "promised", "measured", "verdict"], rows)


def _beside(done: Beside) -> None:
    for title, claims in (("the paper's claims", done.paper), ("our claims", done.ours)):
        print_table(title, *table_of_readings(done.readings, claims))
    console.print("● reproduced, ◐ partly, ○ not, - open", highlight=False)
    say(f"table: {done.path}")


def _tables(done: Report) -> None:
    """The tables themselves, where there are few: of a race, or of one or two ids; the report has more."""
    names = [name for name in done.results.experiments if done.results.has(name)]
    for name in names if len(names) <= 2 else []:
        print_table(done.results.experiments[name].title, *short_table(done.results, name))


def _finish(done: Report) -> None:
    if done.figure is not None:
        say(f"figure: {done.figure}")
    say(f"report: {done.path}")
    if done.failures:
        typer.secho(f"{len(done.failures)} runs failed; the first: {done.failures[0].reason}", err=True)
        raise typer.Exit(1)
