"""Columns that are not read: those named, and on request all that are no numbers."""

import csv
import io
import shlex
from collections.abc import Sequence

from sketchbandit.errors import InputError
from sketchbandit.outofcore.sources.base import Source

_SHOWN = 10  # columns in a message


def leave_out(sources: Sequence[Source], drop: Sequence[str], *, drop_text: bool) -> tuple[str, ...]:
    """Leave columns out of all sources, and tell which; InputError if one is unknown, or text is left.

    A column that is text in one file is left out of all of them.
    """
    known = list(dict.fromkeys(name for source in sources for name in source.names))
    for name in drop:
        if name not in known:
            raise InputError(
                f"there is no column {name!r} to drop: "
                + (f"there are {_listed(known)}" if known else "columns have names in text and Parquet only")
            )
    left_out = list(dict.fromkeys(drop))
    for source in sources:
        source.leave_out(left_out)
    text = list(dict.fromkeys(name for source in sources for name in source.text))
    if text and not drop_text:
        where = next(source.name for source in sources if source.text)
        raise InputError(
            f"{where}: these columns are not numbers: {_listed(text)}. Encode them, or leave them out: "
            f"{option(*text)}, or --drop-text for all such columns (in Python drop=, drop_text=True)"
        )
    for source in sources:
        source.leave_out(text)
        if not source.dim:
            raise InputError(f"{source.name}: no column is left")
    return (*left_out, *text)


def option(*names: str) -> str:
    """What to add to the command line to leave these columns out.

    >>> option("day", "name of user")
    "--drop 'day,name of user'"
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return f"--drop {shlex.quote(line.getvalue())}"


def names_in(options: Sequence[str]) -> list[str]:
    """The names that values of ``--drop`` hold, separated by commas.

    >>> names_in(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [name for value in options for row in csv.reader([value or '""']) for name in row]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
