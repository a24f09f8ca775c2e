"""What is played every day, and what in a soak: streams, examples, and the paths that compute the same."""

import os

import pytest
from hypothesis import HealthCheck, settings

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"

# Of what the two paths do alike, by the laws of tests/test_same_bits.py and others, one shows enough.
either_backend = pytest.mark.parametrize(
    "backend", ["numpy", "compiled"] if SOAK else ["compiled"], indirect=True
)


def long_stream(rows: int, *, every_day: float) -> int:
    """So many rows in a soak, and that part of them otherwise."""
    return rows if SOAK else int(rows * every_day)


def examples(every_day: int) -> settings:
    """So many examples of a law that many parameters repeat; in a soak as many as of any other."""
    return settings(
        max_examples=settings().max_examples if SOAK else every_day,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
