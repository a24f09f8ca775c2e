"""Makes a page of every tutorial: runs its cells in order and puts what they print and draw under their code.

    python -m tutorials.build                        # all tutorials, into docs/
    python -m tutorials.build dataframe clicks       # these two
    python -m tutorials.build --short --out FOLDER   # quickly, with the values behind "# short:"

A tutorial is a script whose cells begin with ``# %% [markdown]`` or ``# %%``. In a line like
``rounds = 4_000  # short: 300`` the value is 300 in short form; the page shows the line without the comment.
Scripts run with warnings as errors, in a temporary folder.
"""

import argparse
import ast
import contextlib
import io
import re
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("Agg")  # before pyplot is imported: no window is opened

import matplotlib.pyplot as plt
from cycler import cycler

from sketchbandit.drawing import COLOURS, STYLE

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
LOOK = {
    **STYLE,
    "axes.prop_cycle": cycler(color=COLOURS),
    "figure.figsize": (7.0, 3.8),
    "figure.constrained_layout.use": True,
}
_MARKER = re.compile(r"# %%(?P<markdown> \[markdown\])?\s*")
_SHORT = re.compile(r"(?P<name>\s*\w+) = (?P<value>.*?)\s*# short:\s*(?P<short>\S.*?)\s*$")
_RESULTS = re.compile(r"(?:\n(`{3,})text\n.*?\n\1\n)?(?:\n!\[[^\n]*\]\([^\n]*\)\n)*", re.DOTALL)


class TutorialError(Exception):
    """A tutorial that cannot be read or run; says in which cell and line."""


class Cell(NamedTuple):
    """A piece of a tutorial: prose or code."""

    number: int
    line: int
    """Of its first line below the marker, in the script."""
    source: str
    is_code: bool

    @property
    def shown(self) -> str:
        """As the page has it, with a newline at its end."""
        if not self.is_code:
            return self.source.strip("\n") + "\n"
        lines = [_SHORT.sub(r"\g<name> = \g<value>", line) for line in self.source.split("\n")]
        return "```python\n" + "\n".join(lines).strip("\n") + "\n```\n"

    @property
    def shortened(self) -> str:
        """The code with the values of the short form, line for line."""
        return "\n".join(_SHORT.sub(r"\g<name> = \g<short>", line) for line in self.source.split("\n"))


class Results(NamedTuple):
    """What a cell of code left behind."""

    printed: str = ""
    pictures: Sequence[tuple[str, str]] = ()
    """Alternative text and file name of each figure."""

    @property
    def shown(self) -> str:
        """As the page has them, below the code."""
        parts = []
        if self.printed.strip():
            fence = "````" if "```" in self.printed else "```"
            printed = "\n".join(line.rstrip() for line in self.printed.rstrip().split("\n"))
            parts.append(f"\n{fence}text\n{printed}\n{fence}\n")
        parts += [f"\n![{text}](../images/tutorials/{name})\n" for text, name in self.pictures]
        return "".join(parts)


def scripts() -> list[Path]:
    """All tutorials, by name."""
    return sorted(path for path in FOLDER.glob("*.py") if path.stem not in ("build", "__init__"))


def page_name(script: Path) -> str:
    """Of its page and pictures, without ending."""
    return script.stem.replace("_", "-")


def read_cells(script: Path) -> list[Cell]:
    """The cells of a tutorial, in order."""
    lines = script.read_text(encoding="utf-8").split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("# %%")]
    if not starts:
        raise TutorialError(f'{script.name}: there are no cells; they begin with "# %%" or "# %% [markdown]"')
    _check_preamble(script, "\n".join(lines[: starts[0]]))
    cells = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
        marker = _MARKER.fullmatch(lines[start])
        if marker is None:
            raise TutorialError(
                f'{script.name}, line {start + 1}: {lines[start]!r} is not "# %%" or "# %% [markdown]"'
            )
        is_code = marker["markdown"] is None
        check = _check_code_line if is_code else _prose_of
        body = [check(script, at + 1, lines[at]) for at in range(start + 1, end)]
        cells.append(Cell(number, start + 2, "\n".join(body), is_code))
    return cells


def _check_preamble(script: Path, text: str) -> None:
    """Nothing but comments and a docstring may stand before the first cell: the page does not show it."""
    for statement in ast.parse(text).body:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            raise TutorialError(f"{script.name}, line {statement.lineno}: code before the first cell")


def _check_code_line(script: Path, number: int, line: str) -> str:
    if "# short:" in line and not _SHORT.fullmatch(line):
        raise TutorialError(
            f'{script.name}, line {number}: "# short:" needs the form "name = value  # short: value"'
        )
    return line


def _prose_of(script: Path, number: int, line: str) -> str:
    if line.strip() and not re.match(r"#( |$)", line):
        raise TutorialError(f'{script.name}, line {number}: a line of a Markdown cell begins with "# "')
    return line[2:]


def run_cells(
    script: Path, *, short: bool, pictures: Path, tell: Callable[[int, int], None] = lambda _, __: None
) -> Iterator[tuple[Cell, Results]]:
    """Run a tutorial, in a folder of its own: every cell, and what it left behind.

    Figures are written to ``pictures``. ``tell`` is told the number of each cell and how many there are.
    """
    cells = read_cells(script)
    module = types.ModuleType(f"tutorial_{script.stem}")
    module.__file__ = str(script)
    saved = 0
    sys.modules[module.__name__] = module  # where classes and their files look for it
    try:
        with tempfile.TemporaryDirectory() as folder, mpl.rc_context(LOOK):
            for cell in cells:
                tell(cell.number, len(cells))
                if not cell.is_code:
                    yield cell, Results()
                    continue
                with contextlib.chdir(folder):
                    printed = _run_cell(script, cell, module, short=short)
                names = []
                for number in plt.get_fignums():
                    saved += 1
                    name = page_name(script) + (f"-{saved}" if saved > 1 else "") + ".png"
                    names.append((_picture(script, cell, number, pictures / name), name))
                plt.close("all")
                yield cell, Results(printed, names)
    finally:
        plt.close("all")
        del sys.modules[module.__name__]


def _run_cell(script: Path, cell: Cell, module: types.ModuleType, *, short: bool) -> str:
    """Run one cell; returns what it printed."""
    code = "\n" * (cell.line - 1) + (cell.shortened if short else cell.source)  # lines as in the script
    printed, show = io.StringIO(), plt.show
    plt.show = lambda *_, **__: None  # figures are taken at the end of the cell
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "The figure layout has changed")  # a script may choose its own
            exec(compile(code, script, "exec"), module.__dict__)  # noqa: S102 - our own scripts
    except Exception as error:
        where = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(script)
        ]
        line = error.lineno if isinstance(error, SyntaxError) else (where or [cell.line])[-1]
        what = f"{type(error).__name__}: {error}"
        raise TutorialError(f"{script.name}, cell {cell.number}, line {line}: {what}") from error
    finally:
        plt.show = show
    return printed.getvalue()


def _picture(script: Path, cell: Cell, number: int, path: Path) -> str:
    """Write a figure; returns its titles, the alternative text."""
    figure = plt.figure(number)
    titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    text = "; ".join(" ".join(title.split()) for title in titles if title)
    if not text:
        raise TutorialError(
            f"{script.name}, cell {cell.number}, line {cell.line}: the figure has no title; "
            "the page needs one as its alternative text"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160, metadata={"Software": None})  # the same figure gives the same file
    return text.replace("[", "(").replace("]", ")")


def build(
    script: Path, out: Path, *, short: bool, tell: Callable[[int, int], None] = lambda _, __: None
) -> Path:
    """Run a tutorial and write its page and pictures; returns the page."""
    ran = list(run_cells(script, short=short, pictures=out / "images" / "tutorials", tell=tell))
    page = out / "tutorials" / f"{page_name(script)}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(cell.shown + results.shown for cell, results in ran) + _footer(script), "utf-8")
    return page


def _footer(script: Path) -> str:
    return (
        f"\n*This page shows what `tutorials/{script.name}` printed and drew.\n"
        f"Run it yourself: `python tutorials/{script.name}`.*\n"
    )


def check_page(script: Path, page: Path) -> None:
    """Refuse a page whose prose or code is not that of the script; what was printed may be anything."""
    text, at = page.read_text(encoding="utf-8"), 0
    advice = f"run: python -m tutorials.build {script.stem}"
    parts = [
        (cell.shown, f"cell {cell.number}, line {cell.line}", cell.is_code) for cell in read_cells(script)
    ]
    for number, (shown, where, is_code) in enumerate([*parts, (_footer(script)[1:], "the end", False)]):
        expected = "\n" * (number > 0) + shown
        if not text.startswith(expected, at):
            raise TutorialError(f"{page.name} differs from {script.name} ({where}); {advice}")
        at += len(expected)
        results = _RESULTS.match(text, at) if is_code else None
        at = at if results is None else results.end()
    if at != len(text):
        raise TutorialError(f"{page.name} goes on where {script.name} ends; {advice}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tutorials.build", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="tutorials to build; all unless given")
    parser.add_argument("--short", action="store_true", help='use the values behind "# short:"')
    parser.add_argument(
        "--out", type=Path, help="folder of the pages; docs, or results/tutorials with --short"
    )
    given = parser.parse_args(arguments)
    known = {path.stem: path for path in scripts()}
    wanted = [name.replace("-", "_").removesuffix(".py") for name in given.names] or list(known)
    for name in wanted:
        if name not in known:
            parser.error(f"there is no tutorial {name!r}; there are {', '.join(known)}")
    out = given.out or ROOT / ("results/tutorials" if given.short else "docs")
    for number, name in enumerate(wanted, 1):
        label = f"{number}/{len(wanted)} {name}"
        try:
            page = build(known[name], out, short=given.short, tell=_progress(label))
        except TutorialError as error:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            print(f"\n{error}", file=sys.stderr)
            return 1
        print(f"\r{label}: wrote {page}\033[K" if sys.stdout.isatty() else f"{label}: wrote {page}")
    return 0


def _progress(label: str) -> Callable[[int, int], None]:
    """Says which cell is running, in one line, where somebody looks."""

    def tell(number: int, count: int) -> None:
        if sys.stdout.isatty():
            print(f"\r{label}: cell {number} of {count}\033[K", end="", flush=True)

    return tell


if __name__ == "__main__":
    sys.exit(main())
