"""Feeding a reader with the rows of a file; what is wrong with one is said with the file and the row."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.outofcore.parts import Reader
from sketchbandit.outofcore.sources import Source


def read_into(bulk: Reader, source: Source, start: int, stop: int, tell: Callable[[int], None]) -> None:
    """Read a range of rows; ``tell`` hears how many came with each chunk."""
    for chunk in source.chunks(start, stop):
        try:
            bulk.update(chunk.rows)
        except RowError as error:
            why = error.why.replace(";", f"{_place(source, chunk.rows[[error.row]])};", 1)
            raise InputError(f"{source.name}: row {chunk.first + error.row} {why}") from error
        except (InputError, InputTypeError) as error:
            raise type(error)(f"{source.name}: from row {chunk.first} on: {error}") from error
        tell(chunk.rows.shape[0])


def _place(source: Source, row: Any) -> str:
    """The column of the first number in a row that is not finite, where columns have names."""
    if not source.columns or np.isfinite(row).all():
        return ""
    return f" in column {source.columns[int(np.isfinite(row).argmin())]}"
