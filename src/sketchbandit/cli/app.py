"""The commands. Each is a verb of the library; help texts carry examples."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from threadpoolctl import threadpool_limits

import sketchbandit
from sketchbandit import data as data_sets
from sketchbandit.cli.progress import Bar
from sketchbandit.errors import SketchBanditError
from sketchbandit.experiments import verbs
from sketchbandit.experiments.claims import OPEN
from sketchbandit.experiments.definitions import EXPERIMENTS
from sketchbandit.experiments.policies import POLICIES, parameters
from sketchbandit.experiments.profiles import PROFILES
from sketchbandit.experiments.reporting import Report, counts
from sketchbandit.experiments.tables import table

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")
console = Console(width=None if sys.stdout.isatty() else 120)  # a file or a pipe has no width of its own

Out = Annotated[Path, typer.Option(help="Folder for results, figures and the report.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; by default one for each core.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the results in the folder.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete the results in the folder first.")]


def _version(wanted: bool) -> None:
    if wanted:
        console.print(sketchbandit.__version__)
        raise typer.Exit


@contextmanager
def _complaints() -> Iterator[None]:
    """What the library refuses is a message and exit status 2, not a traceback."""
    try:
        yield
    except (SketchBanditError, OSError) as error:
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        typer.secho("Interrupted; what was finished is kept: go on with --resume.", err=True)
        raise typer.Exit(130) from None


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Linear bandits in high dimension, on matrix sketches with certificates."""
    del version
    threadpool_limits(1)  # the process is ours, and its matrices are small: more threads only wait


@app.command(
    epilog=f"Ids: all, embedded, {', '.join(EXPERIMENTS)}. Profiles: "
    + "; ".join(f"{name}: {p.sentence.partition(': ')[2]}" for name, p in PROFILES.items())
    + "."
)
def reproduce(  # noqa: PLR0917  (typer takes options so)
    ids: Annotated[
        list[str] | None, typer.Argument(help="Figures and tables; without any: those that need no files.")
    ] = None,
    profile: Annotated[str, typer.Option(help=f"How much: {', '.join(PROFILES)}.")] = "quick",
    jobs: Jobs = None,
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
    """
    with _complaints(), Bar(console) as bar:
        done = verbs.reproduce(
            ids or (), profile=profile, jobs=jobs, out=out, resume=resume, fresh=fresh, watcher=bar
        )
    _verdicts(done)
    _tables(done)
    _finish(done)


@app.command(
    epilog="Policies: "
    + "; ".join(f"{name} ({', '.join(p for p in parameters(name) if p != 'dtype')})" for name in POLICIES)
    + ". All take dtype=float32."
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
    tune: Annotated[bool, typer.Option("--tune", help="Search ridge and beta on the paper's grids.")] = False,
    jobs: Jobs = None,
    out: Out = Path("comparison"),
    resume: Resume = False,
    fresh: Fresh = False,
) -> None:
    """Race policies on a data set, yours or a known one.

    Every policy sees the same arms: one random row of each label a round, scaled to length one, and a reward
    of 1 for the target label. Ridge is 1 and beta 0.1 where not given; --tune searches both for each policy
    that gives neither.

    Example: `sketchbandit compare --policy dbslinucb:size=20,epsilon=8 --policy oful`

    Example: `sketchbandit compare --data mine.csv --label kind --policy soful:size=10 --policy oful --tune`
    """
    with _complaints(), Bar(console) as bar:
        done = verbs.compare(
            policy,
            data=data,
            label=label,
            rounds=rounds,
            permutations=permutations,
            tune=tune,
            jobs=jobs,
            out=out,
            resume=resume,
            fresh=fresh,
            watcher=bar,
        )
    _tables(done)
    _finish(done)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `reproduce` or `compare` wrote.")],
) -> None:
    """Make the figures, tables and report of a folder anew, without running anything.

    Example: `sketchbandit report results`
    """
    with _complaints():
        done = verbs.report(folder)
    _verdicts(done)
    _tables(done)
    _finish(done)


@app.command()
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
    _print_table("data sets", ["name", "shape", "classes", "source", "licence", "where"], rows)


def _verdicts(done: Report) -> None:
    for title, findings in (("the paper's claims", done.findings), ("our claims", done.ours)):
        judged = [(claim, finding) for claim, finding in findings if finding.verdict != OPEN]
        if judged:
            rows = [[claim.statement, claim.paper, found.ours, found.verdict] for claim, found in judged]
            _print_table(title, ["claim", "promised", "measured", "verdict"], rows)
        if findings:
            said = ", ".join(f"{count} {verdict}" for verdict, count in counts(findings))
            console.print(f"{title}: {said}; {done.results.profile.sentence}", highlight=False)
        if len(judged) < len(findings):
            console.print(
                "open: those need other experiments or the full number of rounds; the report says which"
            )


def _tables(done: Report) -> None:
    """The tables themselves, where there are few: of a race, or of one or two ids."""
    names = [name for name in done.results.experiments if done.results.has(name)]
    for name in names if len(names) <= 2 else []:
        _print_table(f"{name}: {done.results.experiments[name].title}", *table(done.results, name))


def _print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    shown = Table(title=escape(title))
    for index, heading in enumerate(header):
        shown.add_column(heading, overflow="fold", no_wrap=index == 0 and max(len(r[0]) for r in rows) < 40)
    for row in rows:
        shown.add_row(*map(escape, row))
    console.print(shown)


def _finish(done: Report) -> None:
    console.print(f"report: {done.path}", soft_wrap=True, highlight=False, markup=False)
    if done.failures:
        typer.secho(f"{len(done.failures)} runs failed; the first: {done.failures[0].reason}", err=True)
        raise typer.Exit(1)
