"""Readings of the paper side by side: every claim under each of them, and what that says together.

The verdict on a claim is the one under the most likely reading. Beside it stands whether the other readings
of the paper agree: if not, what the text leaves open decides the claim.
"""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sketchbandit._version import __version__
from sketchbandit.errors import InputError
from sketchbandit.files import replace_file
from sketchbandit_paper.claims import CLAIMS, NOT, OPEN, OURS, PARTLY, REPRODUCED, Claim, Finding
from sketchbandit_paper.readings import LIKELY, OF_THE_PAPER
from sketchbandit_paper.reporting import markdown_table
from sketchbandit_paper.results import Results

MARKS = {REPRODUCED: "●", PARTLY: "◐", NOT: "○", OPEN: "-"}
AGREED, DEPENDS = "every reading", "depends"


class Judged(NamedTuple):
    """A claim, and the finding under each reading by name."""

    claim: Claim
    findings: dict[str, Finding]

    @property
    def verdict(self) -> str:
        """That of the most likely reading; open where it was not played."""
        found = self.findings.get(LIKELY.name)
        return OPEN if found is None else found.verdict

    @property
    def agreement(self) -> str:
        """Whether the readings of the paper that were played and could judge agree."""
        said = {
            found.verdict
            for reading in OF_THE_PAPER
            if (found := self.findings.get(reading.name)) is not None and found.verdict != OPEN
        }
        return AGREED if len(said) == 1 else DEPENDS if said else OPEN


class Beside(NamedTuple):
    """What was written: the table, and the claims with their findings."""

    path: Path
    readings: list[str]
    paper: list[Judged]
    ours: list[Judged]


def write(several: Sequence[Results], folder: Path) -> Beside:
    """Claims x readings into ``readings.md`` and ``readings.json`` in the folder."""
    names = [results.profile.reading.name for results in several]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the reading {name} is there twice: name each folder once")
    paper, ours = (
        [
            Judged(claim, {n: claim.finding(r) for n, r in zip(names, several, strict=True)})
            for claim in claims
        ]
        for claims in (CLAIMS, OURS)
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "readings.md"
    replace_file(path, _page(several, names, paper, ours).encode())
    kept = {
        "version": __version__,
        "likely": LIKELY.name,
        "readings": {name: _sentence(r) for name, r in zip(names, several, strict=True)},
        "runs": {name: int(r.all_rows["run"].nunique()) for name, r in zip(names, several, strict=True)},
        "machines": sorted({machine for results in several for machine in results.machines()}),
        "claims": [_as_data(judged) for judged in paper],
        "ours": [_as_data(judged) for judged in ours],
    }
    replace_file(folder / "readings.json", (json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())
    return Beside(path, names, paper, ours)


def counts(judged: Sequence[Judged], reading: str) -> dict[str, int]:
    """How many claims have each verdict under a reading."""
    found = [one.findings[reading].verdict for one in judged]
    return {verdict: found.count(verdict) for verdict in MARKS}


def table(names: Sequence[str], judged: Sequence[Judged]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a mark for each reading, and whether they agree; the last line counts."""
    header = ["claim", *names, "agreed"]
    rows = [
        [
            f"{one.claim.statement} ({one.claim.where})",
            *(MARKS[one.findings[name].verdict] for name in names),
            one.agreement,
        ]
        for one in judged
    ]
    last = ["reproduced / partly / not"]
    for name in names:
        found = counts(judged, name)
        last.append(" / ".join(str(found[verdict]) for verdict in (REPRODUCED, PARTLY, NOT)))
    return header, [*rows, [*last, ""]]


def _sentence(results: Results) -> str:
    """How much was done, and the reading with its name."""
    profile = results.profile
    return f"profile {profile.name}: {profile.amount}; {profile.reading.sentence}"


def _page(several: Sequence[Results], names: list[str], paper: list[Judged], ours: list[Judged]) -> str:
    parts = [
        "# The paper's claims under each reading",
        f"sketchbandit {__version__}. ● reproduced, ◐ partly, ○ not.",
    ]
    parts += [_wrapped(f"- {_sentence(results)}", "  ") for results in several]
    for title, judged in (("The paper's claims", paper), ("Ours", ours)):
        parts += [f"## {title}", markdown_table(*table(names, judged)).rstrip()]
        for one in judged:
            said = [
                _wrapped(f"- {name}: {found.ours} ({found.verdict})", "  ")
                for name, found in one.findings.items()
            ]
            rule = _wrapped(f"**{one.claim.statement}** Rule: {one.claim.rule}.")
            parts.append("\n".join([rule, "", *said]))
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 110, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _as_data(one: Judged) -> dict[str, Any]:
    found = {name: {"verdict": f.verdict, "ours": f.ours} for name, f in one.findings.items()}
    claim = one.claim
    said = {"id": claim.id, "statement": claim.statement, "where": claim.where, "paper": claim.paper}
    return {**said, "rule": claim.rule, "verdict": one.verdict, "agreement": one.agreement, "findings": found}
