"""The page of catalogues shows what was measured."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("arms @ theta", "select", "select, half", "select, times(user)", "top 100")


def test_the_table_has_the_figures() -> None:
    """Every line of docs/catalogues.json, to the digits shown; choices never differed from float64."""
    page, told = (DOCS / "catalogues.md").read_text(), json.loads((DOCS / "catalogues.json").read_text())
    found = re.findall(r"^\| ([\d,]+) \| (one CPU core|H200) \| (.*) \|$", page, re.MULTILINE)
    shown = {(int(arms.replace(",", "")), where): cells.split(" | ") for arms, where, cells in found}
    lines = [
        (line, where)
        for key, where in (("cpu", "one CPU core"), ("gpu", "H200"))
        for line in told[key]["lines"]
    ]
    assert len(shown) == len(lines)
    for line, where in lines:
        assert line["different"] == 0
        for cell, name in zip(shown[line["arms"], where], COLUMNS, strict=True):
            digits = len(cell.partition(".")[2])
            assert float(cell.replace(",", "")) == round(line[name], digits), (line["arms"], where, name)
