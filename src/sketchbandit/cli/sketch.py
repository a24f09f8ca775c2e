"""The command that sketches matrices in files: its options. ``sketch_report`` does the work."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@commands.command()
def sketch(  # noqa: PLR0917  (typer takes options so)
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Files (.npy, .npz, .csv, .tsv, .txt, .parquet), globs in quotes, or - for standard input."
        ),
    ],
    size: Annotated[int, typer.Option(min=2, help="Sketch size: at most size - 1 rows are kept.")] = 100,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Largest error e allowed; the sketch then grows beyond --size as needed."),
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the sketch; an existing file is replaced.")] = Path(
        "sketch.safetensors"
    ),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; by default one for each core.")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether text files begin with column names; by default, if their first line has no number.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAME,...", help="Leave these columns out; may be repeated.")
    ] = None,
    drop_text: Annotated[
        bool, typer.Option("--drop-text", help="Leave out all columns that are not numbers, and list them.")
    ] = False,
    center: Annotated[
        bool,
        typer.Option("--center", help="Subtract the mean of each column, in the same pass over the files."),
    ] = False,
    float32: Annotated[
        bool, typer.Option("--float32", help="Store the sketch as float32, in half the space.")
    ] = False,
    top: Annotated[int, typer.Option(min=0, help="How many singular values to print.")] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(help="File for the scree plot; by default the name of the sketch with .png."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted job.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete what an interrupted job left, and start again.")
    ] = False,
) -> None:
    """Sketch a matrix in files, also one larger than memory, with a bound on the error.

    The rows of all files together are the matrix X. The result is a matrix S of at most size - 1 rows and a
    number e with S'S <= X'X <= S'S + e I: each squared singular value of X is at least that of S, and at most
    that plus e. With --center this holds for X less the mean of each column, so S'S / (n - 1) is the
    covariance matrix, up to e / (n - 1). Files are read in chunks, by several processes; the result is the
    same for any number of processes. An interrupted job continues with --resume.

    Example: `sketchbandit sketch big.npy --size 100 --out s.safetensors`

    Example: `sketchbandit sketch "parts/*.parquet" --size 50 --epsilon 1000 --jobs 4 --out s.safetensors`

    Example: `sketchbandit sketch users.csv --drop id,joined --out s.safetensors`

    Example: `sketchbandit sketch users.parquet --center --size 50 --out covariance.safetensors`

    Example: `zcat rows.csv.gz | sketchbandit sketch - --size 20 --out s.safetensors`
    """
    from sketchbandit.cli.sketch_report import sketch_files  # noqa: PLC0415  (help needs none of it)

    sketch_files(
        inputs,
        out=out,
        plot=plot,
        top=top,
        size=size,
        epsilon=epsilon,
        center=center,
        dtype="float32" if float32 else "float64",
        header=header,
        drop=drop or [],
        drop_text=drop_text,
        jobs=jobs,
        resume=resume,
        fresh=fresh,
    )
