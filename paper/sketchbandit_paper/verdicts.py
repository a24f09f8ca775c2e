"""The claims beside the results: which of them a run can judge, and how they come out."""

from collections import Counter
from collections.abc import Sequence

from sketchbandit_paper.claims import NOT, OPEN, PARTLY, REPRODUCED, Claim, Finding
from sketchbandit_paper.results import Results

VERDICTS = (REPRODUCED, PARTLY, NOT, OPEN)
Findings = list[tuple[Claim, Finding]]


def findings_of(results: Results, claims: Sequence[Claim]) -> Findings:
    """What the results say to each; nothing where none of the experiments is there that they are about."""
    if not any(needed in results.experiments for claim in claims for needed in claim.needs):
        return []
    return [(claim, claim.finding(results)) for claim in claims]


def judged(findings: Findings) -> Findings:
    """Those that the results could judge."""
    return [(claim, finding) for claim, finding in findings if finding.verdict != OPEN]


def not_judged(findings: Findings) -> Findings:
    """Those that need other experiments, or more rounds."""
    return [(claim, finding) for claim, finding in findings if finding.verdict == OPEN]


def counts(findings: Findings) -> list[tuple[str, int]]:
    """How many claims have each verdict."""
    found = Counter(finding.verdict for _, finding in findings)
    return [(verdict, found[verdict]) for verdict in VERDICTS if found[verdict]]


def said_of(findings: Findings, whose: str) -> str:
    """How many of the claims the run can judge, and the verdicts on those.

    >>> said_of([], "the paper's")
    ''
    """
    if not findings:
        return ""
    known = judged(findings)
    if not known:
        return f"This run can judge none of {whose} {len(findings)} claims."
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts(known))
    return f"This run can judge {len(known)} of {whose} {len(findings)} claims: {said}."
