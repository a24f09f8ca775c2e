"""Sketching matrices in files, and printing what came of it."""

import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from rich.progress import BarColumn, TextColumn

from sketchbandit import outofcore
from sketchbandit.cli.output import LiveProgress, complaints, console, print_table, say
from sketchbandit.errors import InputError
from sketchbandit.outofcore.sources import names_in, option
from sketchbandit.sketch import Sketch, spectrum

_HEAVY = 0.99  # of the mass
_PICTURES = (".png", ".svg", ".pdf", ".jpg")
_SCREE = "sketchbandit.outofcore.scree"  # draws with matplotlib


class RowBar(LiveProgress, outofcore.Watcher):
    """A bar of rows read, with the time left."""

    def __init__(self) -> None:
        super().__init__(TextColumn("reading"), BarColumn(), TextColumn("{task.completed:,.0f} rows"))
        self.columns: list[str] = []
        """Those that were left out."""
        self.read: Sequence[str] = ()
        """The names of those that are read, if they have any."""

    def left_out(self, columns: Sequence[str]) -> None:
        """To be printed when all is done."""
        self.columns = list(columns)

    def names(self, columns: Sequence[str]) -> None:
        """For the note on a column that outweighs all others."""
        self.read = columns

    def begin(self, rows: int | None, done: int) -> None:
        """So many rows, some of them read before."""
        self._task = self._progress.add_task("", total=rows, completed=done)
        Thread(target=import_module, args=(_SCREE,)).start()  # half a second, while others work


def sketch_files(
    inputs: list[str],
    *,
    center: bool,
    drop: list[str],
    out: Path,
    plot: Path | None,
    top: int,
    **settings: Any,
) -> None:
    """Sketch, print and draw; ``settings`` go to ``outofcore.sketch``."""
    picture = out.with_suffix(".png") if plot is None else plot
    started = time.perf_counter()
    kept = "Interrupted. What is finished is kept; continue with --resume."
    with complaints("Interrupted." if inputs == ["-"] else kept), RowBar() as bar:
        _check_picture(picture, out, inputs)
        made = outofcore.sketch(inputs, center=center, drop=names_in(drop), out=out, watcher=bar, **settings)
        seconds = time.perf_counter() - started
        if made.mass:
            title = (
                f"{made.count:,} {'centred ' * center}rows of length {made.dim:,}, sketch size {made.size}"
            )
            import_module(_SCREE).draw(made, title).savefig(picture, dpi=160)
    _describe(made, seconds, "of the centred rows" if center else "sum of squares")
    if bar.columns:
        say(f"columns left out: {', '.join(bar.columns)}")
    _values(made, top)
    note = _heavy(made, bar.read)
    if note:
        say(note)
    if not made.mass:
        console.print("no rows, or only zeros: there is nothing to plot")
    files = [out, *([picture] if made.mass else [])]
    say("wrote " + ", ".join(map(str, files)))


def _check_picture(picture: Path, out: Path, inputs: list[str]) -> None:
    """Before anything is read: where the plot goes."""
    if picture == out:
        raise InputError(f"the plot and the sketch would both be {out}")
    if picture.suffix.lower() not in _PICTURES:
        raise InputError(
            f"the plot cannot be {picture.name}; its suffix must be one of {', '.join(_PICTURES)}"
        )
    if not picture.parent.is_dir():
        raise InputError(f"cannot write {picture}: there is no folder {picture.parent}")
    if str(picture) in inputs:
        raise InputError(f"{picture} is read: the plot cannot be written over it")


def _describe(made: Sketch, seconds: float, mass_of: str) -> None:
    kept = (
        f"{made.dim:,} x {made.dim:,}, all of X'X" if made.is_dense else f"{len(made.rows):,} x {made.dim:,}"
    )
    relative = f" ({made.error_bound / made.mass:.3g} of the mass)" if made.mass else ""
    rows = [
        ["rows read", f"{made.count:,} of length {made.dim:,}"],
        [f"mass ({mass_of})", f"{made.mass:.6g}"],
        ["kept", kept],
        ["certificate e", f"{made.error_bound:.6g}{relative}"],
        ["time", f"{seconds:.1f} s"],
    ]
    print_table("the sketch", ["what", "value"], rows)


def _values(made: Sketch, top: int) -> None:
    found = spectrum(made, top)
    alive = int(np.count_nonzero(found.lower))
    if not alive:
        return
    lower, upper = found.lower[:alive], found.upper[:alive]
    shares = np.cumsum(lower) / made.mass
    rows = [
        [str(i + 1), f"{np.sqrt(low):.6g}", f"{np.sqrt(high):.6g}", f"{100 * share:.2f} %"]
        for i, (low, high, share) in enumerate(zip(lower, upper, shares, strict=True))
    ]
    header = ["i", "sigma at least", "sigma at most", "mass of the first i, at least"]
    print_table("leading singular values", header, rows)


def _heavy(made: Sketch, names: Sequence[str]) -> str:
    """A note if one column has nearly all the mass: the sketch never has more of a column than X has."""
    if not made.mass:
        return ""
    squares = made.covariance().diagonal() if made.is_dense else (made.rows**2).sum(axis=0)
    at = int(squares.argmax())
    if squares[at] < _HEAVY * made.mass:
        return ""
    which = names[at] if names else f"{at} (counted from 0)"
    remedy = f". Leave it out if it is an id: {option(names[at])}" if names else ""
    return (
        f"Note: column {which} has over {_HEAVY:.0%} of the mass, so the sketch says little about the others"
        f"{remedy}"
    )
