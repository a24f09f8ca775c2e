"""The commands. Each is a verb of the library; help texts carry examples."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

import sketchbandit
from sketchbandit.experiments import figures
from sketchbandit.experiments import matrix_approximation as approximation
from sketchbandit.experiments.tables import write_csv

EXPERIMENTS = ("matrix-approximation",)

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")
console = Console()


def _version(wanted: bool) -> None:
    if wanted:
        console.print(sketchbandit.__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Matrix sketches with certificates, for linear bandits in high dimension."""
    del version
    threadpool_limits(1)  # the process is ours, and its matrices are small: more threads only wait


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of: {', '.join(EXPERIMENTS)}.")] = EXPERIMENTS[0],
    out: Annotated[Path, typer.Option(help="Folder for the figure and the table.")] = Path("results"),
    every: Annotated[int, typer.Option(min=1, help="Measure after every so many rows.")] = 25,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the matrices.")] = 0,
) -> None:
    """Recompute a figure of the paper.

    *matrix-approximation* streams a Gaussian matrix (n = 1250, d = 500) and scikit-learn's digits through
    Frequent Directions (l = 50) and Dyadic Block Sketching (l0 = 16, epsilon 5, 10, 20), and sets the true
    spectral error beside the certificate and the paper's bound.

    Example: `sketchbandit reproduce matrix-approximation --out results`
    """
    if experiment not in EXPERIMENTS:
        raise typer.BadParameter(f"unknown experiment {experiment!r}; choose from: {', '.join(EXPERIMENTS)}")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot write to {out}: {error.strerror}", param_hint="--out") from error
    settings = approximation.Settings(every=every, seed=seed)
    measurements = _measure(settings)
    table = write_csv(out / f"{experiment}.csv", approximation.Measurement._fields, measurements)
    written = figures.save(figures.matrix_approximation(measurements, settings), out / experiment)
    console.print(_summary(measurements))
    for path in (*written, table):
        console.print(f"wrote {path}")


def _measure(settings: approximation.Settings) -> list[approximation.Measurement]:
    measurements = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("sketching", total=approximation.steps(settings))
        for name in settings.matrices:
            progress.update(task, description=f"sketching {name}")
            for measurement in approximation.measure(name, settings):
                measurements.append(measurement)
                progress.advance(task)
    return measurements


def _summary(measurements: list[approximation.Measurement]) -> Table:
    """Each sketch early, half-way and at the end of the stream; the file has every measurement."""
    table = Table(title="true error <= certificate <= the paper's bound")
    table.add_column("matrix", no_wrap=True)
    table.add_column("sketch", no_wrap=True)
    for heading in ("read", "kept", "error", "certificate", "bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    series: dict[tuple[str, str], list[approximation.Measurement]] = {}
    for m in measurements:
        series.setdefault((m.matrix, m.sketch), []).append(m)
    for (matrix, sketch), of_sketch in series.items():
        for index in sorted({(len(of_sketch) - 1) // 4, (len(of_sketch) - 1) // 2, len(of_sketch) - 1}):
            m = of_sketch[index]
            numbers = (f"{value:.3f}" for value in (m.error, m.certificate, m.bound))
            table.add_row(matrix, sketch, str(m.t), str(m.rows), *numbers)
        table.add_section()
    return table
