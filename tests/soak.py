"""How long long streams are: a part of it for every day, all of it in a soak."""

import os

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"


def long_stream(rows: int, *, every_day: float) -> int:
    """So many rows in a soak, and that part of them otherwise."""
    return rows if SOAK else int(rows * every_day)
