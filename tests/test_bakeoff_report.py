"""What the bake-off says: means and intervals by hand, and claims that can fail."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.bakeoff import page, tables
from benchmarks.bakeoff.board import Board
from benchmarks.bakeoff.contestants import DEFAULT, RIVALS, UNIFORM
from benchmarks.bakeoff.judging import CLAIMS, judge
from benchmarks.bakeoff.store import Result

from tests.bakeoff_results import OTHER, RIVAL, result


def test_means_intervals_and_ratios() -> None:
    """Student's interval; a ratio counts only the runs that both finished."""
    board = Board(
        [
            *(result(DEFAULT, regret, target) for target, regret in enumerate((10.0, 20.0, 30.0))),
            *(result(RIVAL, regret, target) for target, regret in enumerate((40.0, 20.0))),
            result(RIVAL, target=2, error="ValueError: no"),
            result(DEFAULT, 1e6, rounds=10),
        ]
    )
    cell = board.cell(DEFAULT, "digits")
    assert (cell.mean, cell.worst) == (20.0, 30.0)
    assert cell.half_width == pytest.approx(4.3026527 * 10.0 / np.sqrt(3.0))
    assert board.ratio(DEFAULT, RIVAL, "digits") == 0.5
    assert np.isnan(board.ratio(DEFAULT, OTHER, "digits"))
    assert board.best(RIVALS, "digits") == RIVAL
    details = tables.details(board, "digits")
    assert "| **the default** | 20 ± 25 | 30 |" in details
    assert f"| {RIVAL} | 30 ± 127 (2 runs) | 40 |" in details
    assert f"| {RIVAL} | digits | 1 of 3 | `ValueError: no` |" in tables.failures(board)
    alone = tables.details(Board([*board._results, result(OTHER, 70.0)]), "digits")
    assert f"| {OTHER} | 70 (1 run) | 70 |" in alone
    assert "30 (squarecb, x0.50; 2 runs)" in tables.summary(Board([*board._results, *marks()]))


def marks() -> list[Result]:
    """Uniform choices on three permutations."""
    return [result(UNIFORM, 100.0, target) for target in range(3)]


GOOD = {"plain": (10.0, 50.0), "late": (12.0, 60.0), "times 100": (10.0, 52.0), "plus 10": (10.0, 52.0)}
"""By condition: the default's regret on two permutations."""


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, None),
        ({"plain": (10.0, 60.5), "times 100": (10.0, 60.5), "plus 10": (10.0, 60.5)}, 1),
        ({"plain": (31.0, 50.0), "times 100": (31.0, 52.0), "plus 10": (31.0, 52.0)}, 0),
        ({"times 100": (10.0, 54.0)}, 2),
        ({"plus 10": (10.0, 54.0)}, 3),
        ({"late": (30.0, 60.0)}, 4),
    ],
    ids=["all hold", "a disaster", "a better rival", "another unit", "another zero", "late"],
)
def test_each_claim_can_fail(changes: dict[str, tuple[float, float]], broken: int | None) -> None:
    """Each rule fails alone, by a little too much."""
    rival = {"plain": (30.0, 50.0), "late": (12.0, 60.0)}
    runs = [
        result(name, regret, target, condition=condition)
        for name, regrets in (
            (DEFAULT, {**GOOD, **changes}),
            (RIVAL, rival),
            (UNIFORM, {"plain": (100.0, 100.0)}),
        )
        for condition, pair in regrets.items()
        for target, regret in enumerate(pair)
    ]
    found = judge(Board(runs))
    failed = [claim for claim, verdicts in found.items() if not all(one.holds for one in verdicts)]
    assert failed == ([] if broken is None else [list(CLAIMS)[broken]])
    assert ("does not hold" in tables.verdicts(found)) == bool(failed)
    told = tables.answer(found).splitlines()
    assert told == [f"- {claim}: {int(claim not in failed)} of 1." for claim in CLAIMS]
    crashed = judge(Board([*runs, result(DEFAULT, target=3, error="ValueError: no")]))
    assert crashed[next(iter(CLAIMS))][0].holds is False
    assert all(one.holds is None for claim in judge(Board(marks())).values() for one in claim)


def test_the_page_has_the_sentences_of_its_writer() -> None:
    """They are changed together; and the page begins with what its claims say."""
    path = Path(__file__).parents[1] / "docs" / "bakeoff.md"
    text = path.read_text(encoding="utf-8")
    game = page._GAME.format(rounds=2000, seeds=3)
    before, after = page._MEASURES.split("{machine}")
    for part in (page._HEAD, game, page._SUMMARY, page._RULES, page._VARIANTS, before, after):
        assert part in text
    for claim in CLAIMS:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {claim} |")]
        held = [cell.strip().startswith("holds:") for cell in row.split(" | ")[1:]]
        assert f"- {claim}: {sum(held)} of {len(held)}.\n" in text


def test_the_readme_repeats_the_page() -> None:
    """How much faster Vowpal Wabbit is on sparse words, in how much less memory: figures of one run."""
    root = Path(__file__).parents[1]
    table = (root / "docs/bakeoff.md").read_text(encoding="utf-8").partition("### farm-ads")[2]
    cells = [line.split(" | ") for line in table.partition("##")[0].splitlines() if line.startswith("| ")]
    ours, *rivals = [
        [float(cell.strip(" |").replace(",", "")) for cell in row[-2:]]
        for row in cells
        if row[0] == f"| **{DEFAULT}**" or row[0].startswith("| VW")
    ]
    fastest = max(rivals)
    found = re.search(
        r"\[(\d+) times as fast\]\(docs/bakeoff\.md#farm-ads\)", (root / "README.md").read_text()
    )
    assert found is not None
    assert int(found[1]) == round(fastest[0] / ours[0])
    assert 100.0 * fastest[1] < ours[1]
