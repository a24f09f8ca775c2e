"""The report: figures and tables on disk, and one self-contained page with the verdicts."""

import base64
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from sketchbandit import data
from sketchbandit._version import __version__
from sketchbandit.drawing import save
from sketchbandit.experiments.claims import CLAIMS, NOT, OPEN, OURS, PARTLY, REPRODUCED, Claim, Finding
from sketchbandit.experiments.figures import DRAWN
from sketchbandit.experiments.plan import environment_of, rounds_of
from sketchbandit.experiments.pool import Failure
from sketchbandit.experiments.results import Results
from sketchbandit.experiments.tables import table, write_csv
from sketchbandit.files import replace_file

_TITLE = "Revisiting Matrix Sketching in Linear Bandits: the paper's experiments, run again"
_OURS_TITLE = "What we claim ourselves"
VERDICTS = (REPRODUCED, PARTLY, NOT, OPEN)

Findings = list[tuple[Claim, Finding]]


class Report(NamedTuple):
    """What was written, and the verdict on every claim of the paper's, and on every one of ours."""

    path: Path
    findings: Findings
    ours: Findings
    results: Results
    failures: list[Failure]


def write(results: Results, folder: Path, failures: Sequence[Failure] = ()) -> Report:
    """Figures (PNG, SVG), tables (CSV), ``report.html`` and ``report.md`` into the folder."""
    sections = [_section(results, name, folder) for name in results.experiments if results.has(name)]
    findings = _findings(results, CLAIMS)
    ours = _findings(results, OURS)
    title = _TITLE if findings or ours else "A race of policies"
    page = _template().render(
        version=__version__,
        profile=results.profile,
        machines=results.machines(),
        sections=sections,
        claims=[("The paper's claims", findings, counts(findings)), (_OURS_TITLE, ours, counts(ours))],
        failures=[(str(f.run.environment), str(f.run.contender), f.run.seed, f.reason) for f in failures],
        runs=results.all_rows["run"].nunique(),
        title=title,
    )
    path = folder / "report.html"
    replace_file(path, page.encode())
    parts = [f"# {title}", f"sketchbandit {__version__}; {results.profile.sentence}.", markdown(findings)]
    if ours:
        parts += [f"## {_OURS_TITLE}", markdown(ours, ("claim", "promised", "measured", "verdict"))]
    for section in sections:
        parts += [
            f"## {section['id']}: {section['title']}",
            markdown_table(section["header"], section["rows"]),
        ]
    replace_file(folder / "report.md", "\n\n".join(filter(None, parts)).encode())
    return Report(path=path, findings=findings, ours=ours, results=results, failures=list(failures))


def counts(findings: Sequence[tuple[Claim, Finding]]) -> list[tuple[str, int]]:
    """How many claims have each verdict."""
    found = Counter(finding.verdict for _, finding in findings)
    return [(verdict, found[verdict]) for verdict in VERDICTS if found[verdict]]


def markdown(
    findings: Sequence[tuple[Claim, Finding]],
    header: Sequence[str] = ("claim", "the paper", "ours", "verdict"),
) -> str:
    """The claims as a Markdown table; nothing where there are none."""
    rows = [
        [f"{claim.statement} ({claim.where})", claim.paper, finding.ours, f"**{finding.verdict}**"]
        for claim, finding in findings
    ]
    return markdown_table(header, rows) if rows else ""


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, whatever its cells hold."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines) + "\n"


def _findings(results: Results, claims: Sequence[Claim]) -> Findings:
    """The verdicts; none where none of the experiments is there that the claims are about."""
    if not any(needed in results.experiments for claim in claims for needed in claim.needs):
        return []
    return [(claim, claim.finding(results)) for claim in claims]


def _section(results: Results, name: str, folder: Path) -> dict[str, Any]:
    experiment = results.experiments[name]
    header, rows = table(results, name)
    (folder / "tables").mkdir(exist_ok=True)
    write_csv(folder / "tables" / f"{name}.csv", header, rows)
    image = None
    if experiment.figure in DRAWN:
        _, svg = save(DRAWN[experiment.figure](results, name), folder / "figures" / name)
        image = base64.b64encode(svg.read_bytes()).decode()
    return {
        "id": name,
        "title": experiment.title,
        "paper": experiment.paper,
        "rounds": rounds_of(experiment, results.profile),
        "environment": str(environment_of(experiment, results.profile)),
        "data": data.CATALOGUE.get(experiment.data or ""),
        "is_reference": _is_reference(results, experiment.data),
        "missing": results.missing(name),
        "image": image,
        "header": header,
        "rows": rows,
    }


def _is_reference(results: Results, name: str | None) -> bool:
    source = data.CATALOGUE.get(name or "")
    return source is not None and results.digests.get(source.name) == source.digest


def _template() -> Any:
    text = files("sketchbandit.experiments").joinpath("report.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)
