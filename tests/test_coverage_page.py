"""The page of coverage shows what was measured, and the rule that was fixed beforehand holds."""

from pathlib import Path

import numpy as np
from benchmarks.evaluation_coverage import REWARDS, SIZES, load, measured, of_normal

DOCS = Path(__file__).parents[1] / "docs"
ROWS = load((DOCS / "coverage.json").read_text())


def test_the_tables_are_those_of_the_grid() -> None:
    """All of them, to the digit, and nothing is left to be filled in."""
    page = (DOCS / "coverage.md").read_text()
    assert measured(ROWS) in page
    assert of_normal(ROWS) in page
    assert not {"COVERAGE", "READING", "NORMAL"} & set(page.split())
    assert {row.cell.reward for row in ROWS} == set(REWARDS)
    assert {row.cell.size for row in ROWS} == set(SIZES)
    assert {row.cell.arms for row in ROWS} == {2, 10, 100}


def test_intervals_hold_where_they_are_given() -> None:
    """In 93 of 100 logs, with the error of so many logs; "clear" without a difference in 5 of 100."""
    for row in ROWS:
        error = np.sqrt(0.07 * 0.93 / max(row.given * row.logs, 1.0))
        assert not row.holds < 0.93 - 2.0 * error, row
        assert row.clear <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / row.logs), row


def test_with_many_decisions_they_are_hardly_longer_than_normal_ones() -> None:
    """Rewards in one half, effective size 5,000: at most 1.15 times."""
    large = [row for row in ROWS if (row.cell.reward, row.cell.size) == (0.5, 5_000)]
    assert len(large) > 40
    assert max(row.width for row in large) <= 1.15
