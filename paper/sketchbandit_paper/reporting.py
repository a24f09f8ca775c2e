"""The report: figures and tables on disk, and one self-contained page that opens with the answer."""

import base64
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from sketchbandit import data
from sketchbandit._version import __version__
from sketchbandit.drawing import save
from sketchbandit.files import replace_file
from sketchbandit.simulation import environments, policies
from sketchbandit.simulation.pool import Failure
from sketchbandit.simulation.runs import SKETCHES, Run
from sketchbandit_paper import answers
from sketchbandit_paper.answers import Answer
from sketchbandit_paper.claims import CLAIMS, OURS, Claim, Finding
from sketchbandit_paper.definitions.tour import TOUR
from sketchbandit_paper.figures import DRAWN
from sketchbandit_paper.figures.dark import following_mode
from sketchbandit_paper.plan import environment_of, rounds_of
from sketchbandit_paper.results import Results
from sketchbandit_paper.store import ANSWER
from sketchbandit_paper.tables import table, write_csv
from sketchbandit_paper.verdicts import Findings, findings_of, judged, not_judged

_TITLE = "Revisiting Matrix Sketching in Linear Bandits: the paper's experiments, run again"
_TOUR_TITLE = "A first look: the default, the paper's algorithms, OFUL and chance"
_RACE_TITLE = "A race of policies"
_OURS_TITLE = "What we claim ourselves"
FULL_VERDICTS = (
    "The other claims need more rounds or other data: docs/reproduction.md has the full verdicts, and "
    "`sketchbandit reproduce all --profile standard` judges them again."
)


class Report(NamedTuple):
    """What was written, what it shows, and the verdict on every claim of the paper's, and on ours."""

    path: Path
    figure: Path | None
    """The one that goes with the answer."""
    answer: Answer
    notes: list[str]
    """What a reader should know."""
    findings: Findings
    ours: Findings
    results: Results
    failures: list[Failure]


def write(results: Results, folder: Path, failures: Sequence[Failure] = ()) -> Report:
    """Figures (PNG, SVG), tables (CSV), ``report.html`` and ``report.md`` into the folder."""
    sections = [_section(results, name, folder) for name in results.experiments if results.has(name)]
    findings, ours = findings_of(results, CLAIMS), findings_of(results, OURS)
    is_tour = answers.is_tour(results)
    if is_tour:
        title, answer = _TOUR_TITLE, answers.of_tour(results)
        findings, ours = judged(findings), []  # what a short run cannot judge is not held against it
    elif findings or ours:
        title, answer = _TITLE, answers.of_claims(results, findings, ours)
    else:
        title, answer = _RACE_TITLE, answers.of_race(results, next(iter(results.experiments)))
    figure, images = _drawn_answer(answer, folder)
    notes = [note for experiment in results.experiments.values() for note in experiment.notes]
    page = _template().render(
        version=__version__,
        profile=results.profile,
        machines=results.machines(),
        answer=answer.sentences,
        images=images,
        notes=notes,
        first=[section for section in sections if is_tour and section["id"] in TOUR],
        sections=[section for section in sections if not is_tour or section["id"] not in TOUR],
        claims=[
            {"heading": heading, "promised": word, "judged": judged(found), "open": not_judged(found)}
            for heading, word, found in (
                ("The paper's claims", "the paper", findings),
                (_OURS_TITLE, "promised", ours),
            )
            if found
        ],
        full_verdicts=FULL_VERDICTS.replace("`", "") if is_tour else "",
        failures=[(*_words(failure.run), failure.run.seed, failure.reason) for failure in failures],
        runs=results.all_rows["run"].nunique(),
        title=title,
        has_targets=any(one.environment.name == "classification" for one in results.experiments.values()),
    )
    path = folder / "report.html"
    replace_file(path, page.encode())
    parts = [f"# {title}", *answer.sentences, *notes]
    parts += [f"sketchbandit {__version__}; {results.profile.sentence}.", markdown(findings)]
    if ours:
        parts += [f"## {_OURS_TITLE}", markdown(ours, ("claim", "promised", "measured", "verdict"))]
    for section in sections:
        parts += [
            f"## {section['title']} ({section['environment']})",
            markdown_table(section["header"], section["rows"]),
        ]
    replace_file(folder / "report.md", "\n\n".join(filter(None, parts)).encode())
    return Report(path, figure, answer, notes, findings, ours, results, list(failures))


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


def _section(results: Results, name: str, folder: Path) -> dict[str, Any]:
    experiment = results.experiments[name]
    header, rows = table(results, name)
    (folder / "tables").mkdir(exist_ok=True)
    write_csv(folder / "tables" / f"{name}.csv", header, rows)
    image = None
    if experiment.figure in DRAWN:
        _, image = _drawn(DRAWN[experiment.figure](results, name), folder / "figures" / name)
    return {
        "id": name,
        "title": experiment.title,
        "paper": "" if experiment.paper == "ours" else f"the paper's {experiment.paper}",
        "amount": f"{rounds_of(experiment, results.profile):,} "
        + ("rows" if experiment.kind == "approximate" else "rounds"),
        "environment": environments.title(environment_of(experiment, results.profile)),
        "data": data.CATALOGUE.get(experiment.data or ""),
        "is_reference": _is_reference(results, experiment.data),
        "missing": results.missing(name),
        "image": image,
        "header": header,
        "rows": rows,
    }


def _drawn(figure: Any, path: Path) -> tuple[Path, str]:
    """Saved as PNG and SVG; the path of the first, and the second for a page, in light and dark."""
    png, svg = save(figure, path)
    return png, base64.b64encode(following_mode(svg.read_text(encoding="utf-8")).encode()).decode()


def _drawn_answer(answer: Answer, folder: Path) -> tuple[Path | None, list[str]]:
    """The figure on disk, and its panels for the page: one below the other where it is narrow."""
    if answer.draw is None:
        return None, []
    path, whole = _drawn(answer.draw(), folder / ANSWER)
    with TemporaryDirectory() as aside:
        parts = [_drawn(draw(), Path(aside) / "panel")[1] for draw in answer.panels]
    return path, parts or [whole]


def _words(run: Run) -> tuple[str, str]:
    """Where a run was played, and by whom."""
    if run.kind != "approximate":
        return environments.title(run.environment), policies.label(run.contender)
    settings = ", ".join(f"{key} = {value}" for key, value in run.contender.settings)
    return environments.title(run.environment), f"{SKETCHES[run.contender.name].title}, {settings}"


def _is_reference(results: Results, name: str | None) -> bool:
    source = data.CATALOGUE.get(name or "")
    return source is not None and results.digests.get(source.name) == source.digest


def _template() -> Any:
    text = files("sketchbandit_paper").joinpath("report.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)
