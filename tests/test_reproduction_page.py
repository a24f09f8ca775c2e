"""The page of the reproduction says what the results say, and nothing else."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sketchbandit_paper.beside import MARKS
from sketchbandit_paper.claims import CLAIMS, NOT, PARTLY, REPRODUCED
from sketchbandit_paper.readings import LIKELY, READINGS

ROOT = Path(__file__).parents[1]
KEPT: dict[str, Any] = json.loads((ROOT / "docs" / "reproduction.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def verdicts(reading: str) -> Counter[str]:
    """How many claims have each verdict under a reading."""
    return Counter(claim["findings"][reading]["verdict"] for claim in KEPT["claims"])


def test_the_results_are_of_the_claims_and_readings_there_are() -> None:
    """No claim is missing, none is left that has gone; rules are those of the code that judges."""
    assert [(claim["id"], claim["rule"]) for claim in KEPT["claims"]] == [(c.id, c.rule) for c in CLAIMS]
    assert KEPT["likely"] == LIKELY.name
    assert set(KEPT["readings"]) <= set(READINGS)


@pytest.mark.parametrize("claim", KEPT["claims"], ids=lambda claim: claim["id"])
def test_the_table_has_the_marks_of_every_claim(claim: dict[str, Any]) -> None:
    """One for each reading, in the order of the results."""
    marks = [MARKS[claim["findings"][reading]["verdict"]] for reading in KEPT["readings"]]
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {claim['statement']} ")]
    assert [cell.strip() for cell in line.split("|")][2 : 2 + len(marks)] == marks


def test_the_counts_are_those_of_the_results() -> None:
    """On the page for every reading, and in the README for the likely one."""
    for reading in KEPT["readings"]:
        found = verdicts(reading)
        assert sum(found.values()) == len(CLAIMS)
    likely = verdicts(LIKELY.name)
    numbers = [likely[verdict] for verdict in (REPRODUCED, PARTLY, NOT)]
    said = f"{numbers[0]} are reproduced, {numbers[1]} partly, {numbers[2]} not"
    for text in (PAGE, README):
        assert said in " ".join(text.replace("**", "").split())
    (last,) = [line for line in PAGE.splitlines() if line.startswith("| reproduced / partly / not")]
    counts = [
        " / ".join(str(verdicts(reading)[verdict]) for verdict in (REPRODUCED, PARTLY, NOT))
        for reading in KEPT["readings"]
    ]
    assert [cell.strip() for cell in last.split("|")][2 : 2 + len(counts)] == counts


def test_figures_are_there() -> None:
    """Those of the likely reading, and some of another beside them."""
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGE)
    assert len(images) >= 10
    assert any("unit-each" in image for image in images)
    for image in images:
        assert (ROOT / "docs" / image).stat().st_size > 5_000
