"""Feature names: the columns of the first DataFrame, and their order."""

from typing import Any

import numpy as np

from sketchbandit.errors import InputError

Name = str | int


class ColumnNames:
    """The column names, once known. Later rows are put into this order.

    Names are strings and integers. Names 0, 1, ... are positions, and carry no other information.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ColumnNames()
    >>> frame = pd.DataFrame({"age": [20.0], "price": [3.0]})
    >>> columns.remember(frame)
    >>> columns.names
    ('age', 'price')
    >>> columns.align(frame[["price", "age"]]).to_numpy().tolist()
    [[20.0, 3.0]]

    """

    def __init__(self, names: Any = None) -> None:
        self.names: tuple[Name, ...] | None = None if names is None else tuple(names)

    def align(self, rows: Any) -> Any:
        """The rows with their columns in the known order. Rows without names are returned as they are."""
        if type(rows) is np.ndarray:
            return rows
        given = _names_of(rows)
        if given is None or given == self.names:
            return rows
        positions = tuple(range(len(given)))
        if set(given) == set(positions):
            return rows if given == positions else rows[list(positions)]
        if self.names is None:
            return rows
        if len(given) == len(self.names) and set(given) == set(self.names):
            return rows[list(self.names)]
        missing = [name for name in self.names if name not in given]
        unknown = [name for name in given if name not in self.names]
        twice = [name for name in dict.fromkeys(given) if given.count(name) > 1]
        what = [
            f"{', '.join(map(repr, names[:3]))} {said}"
            for names, said in ((missing, "missing"), (unknown, "unknown"), (twice, "there twice"))
            if names
        ]
        raise InputError(
            f"the columns differ from those before: {'; '.join(what)}; give the columns that `columns` "
            "names, in any order, or an array in that order"
        )

    def remember(self, rows: Any) -> None:
        """Remember the names, if the rows have any and none are known. Call it after the rows were taken."""
        if self.names is None and type(rows) is not np.ndarray:
            names = _names_of(rows) or ()
            tell_something = len(set(names)) == len(names) and set(names) != set(range(len(names)))
            self.names = names if tell_something else None

    def merged(self, other: "ColumnNames") -> "ColumnNames":
        """The names of two parts. If both have names, they must be equal and in the same order."""
        if self.names and other.names and self.names != other.names:
            raise InputError(
                "cannot merge: the two have learned from different columns, or from another order of them: "
                f"{self.names[:3]} ... here, {other.names[:3]} ... there"
            )
        return ColumnNames(self.names or other.names)


def _names_of(rows: Any) -> tuple[Name, ...] | None:
    """The column names of a DataFrame, or the index of a Series; None if it has no usable names."""
    names = getattr(rows, "columns", None)
    if names is None and getattr(rows, "ndim", None) == 1 and not isinstance(rows, np.ndarray):
        names = getattr(rows, "index", None)
    if names is None or callable(names):
        return None
    listed = tuple(names)
    return listed if listed and all(isinstance(name, (str, int)) for name in listed) else None
