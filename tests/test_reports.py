"""Figures, tables and the report, made from a small run of every embedded experiment."""

import base64
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread
from playwright.sync_api import Error, sync_playwright

import sketchbandit as sb
from sketchbandit.drawing import save
from sketchbandit.simulation.pool import Failure
from sketchbandit.simulation.runs import Run
from sketchbandit.simulation.specs import spec
from sketchbandit_paper import report, reporting, runner
from sketchbandit_paper.claims import CLAIMS, OPEN, OURS
from sketchbandit_paper.definitions import choose
from sketchbandit_paper.experiment import Experiment, Series
from sketchbandit_paper.figures import DRAWN, dark
from sketchbandit_paper.fronts import pareto_optimal
from sketchbandit_paper.lines import lines_of
from sketchbandit_paper.profiles import Profile
from sketchbandit_paper.results import Results
from sketchbandit_paper.store import Store
from sketchbandit_paper.tables import table
from tests.in_process import in_process

TINY = Profile(
    name="tiny",
    rounds=0.05,
    permutations=2,
    tuning_permutations=1,
    tuning_rounds=0.5,
    betas=(0.1,),
    ridges=(2.0,),
    sweep=2,
)


ALIKE = (
    "exploration-low-rank",
    "exploration-low-rank-untuned",
    "late-rewards-drawn",
    "late-rewards-fixed-untuned",
)
"""What others are made like, that are run here."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Everything that needs no files, at a twentieth of the rounds: run by one test process for all."""
    out = tmp_path_factory.mktemp("small")
    if worker_id == "master":
        run_everything(out)
        return out
    shared = tmp_path_factory.getbasetemp().parent / "reports"
    try:
        shared.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + 240
        while not (shared / "ready").exists():
            assert time.monotonic() < deadline, "the other process did not finish"
            time.sleep(0.1)
    else:
        run_everything(shared / "made")
        (shared / "ready").touch()
    return Path(shutil.copytree(shared / "made", out, dirs_exist_ok=True))


def run_everything(out: Path) -> None:
    """Runs, figures and the report."""
    experiments = [experiment for experiment in choose(["embedded"]) if experiment.id not in ALIKE]
    with in_process():
        outcome = runner.run(experiments, TINY, out=out, jobs=1)
    assert not outcome.failures
    reporting.write(Results.read(out), out)


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """Its results."""
    return Results.read(folder)


class Page(HTMLParser):
    """What a reader of the page sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.images: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids, images and whatever would be fetched."""
        values = dict(attrs)
        self.ids += [str(values["id"])] if "id" in values else []
        self.images += [str(values["src"])] if tag == "img" else []
        self.links += [str(values[name]) for name in ("src", "href") if name in values]

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data


def test_every_figure_is_drawn_as_png_and_svg(folder: Path, results: Results) -> None:
    """Not empty, and well-formed."""
    drawn = [name for name, e in results.experiments.items() if e.figure in DRAWN]
    assert len(drawn) >= 9
    for name in drawn:
        assert imread(folder / "figures" / f"{name}.png").std() > 0.01, f"{name} is an empty picture"
        root = ElementTree.parse(folder / "figures" / f"{name}.svg").getroot()  # noqa: S314  (our own file)
        assert len(list(root.iter())) > 50


def test_figures_say_what_was_shrunk(results: Results) -> None:
    """Profile and reading stand below the panels of every figure, and every line is labelled."""
    for name, experiment in results.experiments.items():
        if experiment.figure in DRAWN:
            drawn: Any = DRAWN[experiment.figure](results, name)
            said = drawn._supxlabel.get_text().replace("\n", " ")
            assert "5% of the paper's rounds" in said
            assert experiment.id.startswith("tour") or "every row of length one" in said
            assert "unit-each" not in said, "an internal name"
    figure = DRAWN["curves"](results, "synthetic-fd")
    labels = {text.get_text() for text in figure.axes[0].texts}
    assert labels == {"OFUL", "SOFUL, l = 50", "SOFUL, l = 450", "DBSLinUCB-FD", "CBRAP, l = 50"}


def test_panels_are_the_papers(results: Results) -> None:
    """Two for the fronts and for matrix approximation, one for the rest of what is embedded."""
    names = ("pareto-digits", "matrix-approximation", "synthetic-rfd", "spectral-error", "ridge-synthetic")
    panels = {name: len(DRAWN[results.experiments[name].figure](results, name).axes) for name in names}
    assert list(panels.values()) == [2, 2, 1, 1, 1]


def test_a_method_looks_the_same_in_every_figure(results: Results) -> None:
    """Its sizes differ by the dash; where all lines are of one method, they differ by the colour."""
    curves = {line.label: line.look for line in lines_of(results, "synthetic-fd")}
    front = {line.label: line.look for line in lines_of(results, "pareto-digits")}
    assert curves["OFUL"] == front["OFUL"]
    assert len({look.marker for look in front.values()}) == len(front) == 7
    small, large = curves["SOFUL, l = 50"], curves["SOFUL, l = 450"]
    assert small.colour == large.colour == front["SOFUL"].colour
    assert small.dash != large.dash
    colours = [line.look.colour for line in lines_of(results, "spectral-error")]
    assert len(set(colours)) == len(colours) == 4


def test_budgets_that_grow_are_drawn(results: Results) -> None:
    """Beside the certificates: those of the adaptive sketches, not the constant one of the blocks."""
    series = results.experiments["adaptive-flat"].series
    drawn = DRAWN["budget"](results, "adaptive-flat").axes[4].lines
    adaptive = sum(one.members[0].name == "adaptive" for one in series)
    assert len(drawn) == len(series) + adaptive == 11


def test_the_same_results_give_the_same_files(results: Results, tmp_path: Path) -> None:
    """Byte for byte."""
    for name in ("synthetic-fd", "matrix-approximation"):
        draw = DRAWN[results.experiments[name].figure]
        one = save(draw(results, name), tmp_path / "one")
        two = save(draw(results, name), tmp_path / "two")
        assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_the_report_is_one_whole_page(folder: Path, results: Results) -> None:
    """Every claim, every experiment, every figure inside the page; nothing is fetched from elsewhere."""
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    for claim in CLAIMS:
        assert f"claim-{claim.id}" in page.ids
        assert claim.statement in page.text
    assert set(results.experiments) <= set(page.ids)
    drawn = sum(e.figure in DRAWN for e in results.experiments.values())
    assert len(page.images) == 1 + drawn, "the answer's, and one for each experiment"
    for image in page.images:
        head, _, body = image.partition(",")
        assert head == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(body)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert TINY.sentence in page.text
    assert sb.__version__ in page.text
    assert "numpy" in page.text, "the machine"


def test_the_report_opens_with_the_answer(folder: Path, results: Results) -> None:
    """Sentence and figure come first; what the run cannot judge is folded away, not counted at the reader."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    found = [(claim, claim.finding(results)) for claim in CLAIMS]
    known = [finding.verdict for _, finding in found if finding.verdict != OPEN]
    said = f"This run can judge {len(known)} of the paper&#39;s {len(CLAIMS)} claims"
    assert text.index("<h1") < text.index(said) < text.index("<img") < text.index("<table")
    assert f"<summary>{len(CLAIMS) - len(known)} claims that this run cannot judge" in text
    assert not re.search(r"\d+ open", text)


def test_no_internal_names_are_printed(folder: Path, results: Results) -> None:
    """Neither ids, nor specs, nor the names of profile and reading: words say what they mean."""
    text = Page((folder / "report.html").read_text(encoding="utf-8")).text.partition("The answer")[2]
    ids = set(results.experiments) - {
        "power-law",
        "low-rank",
        "algorithms",
        "spectral-error",
    }  # words as well
    for name in (*ids, "unit-each", "profile tiny", "classification:", "gaussian:", "rows:"):
        assert not re.search(rf"\b{name}", text), name
    assert results.all_rows["run"].iloc[0] not in text


def test_figures_follow_dark_mode(folder: Path) -> None:
    """In the page each has colours for both; no white paper is left; the files on disk stay plain."""
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    for image in page.images:
        drawn = base64.b64decode(image.partition(",")[2]).decode()
        ElementTree.fromstring(drawn)  # noqa: S314  (our own)
        assert "@media(prefers-color-scheme:dark)" in drawn
        assert "#000000" not in drawn.partition("</style>")[2], "a colour that does not follow"
        assert 'id="patch_1"' not in drawn
    plain = (folder / "figures" / "synthetic-fd.svg").read_text(encoding="utf-8")
    assert "var(--" not in plain


def test_colours_in_the_dark_can_be_read() -> None:
    """Each has a contrast of at least 4.5 to a dark page (WCAG), where text is drawn in it."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    page = luminance("#14171a")
    for colour, on_dark in dark.DARK.items():
        if colour not in {"#ffffff", "#b0b0b0"}:  # what stands on bars, and the grid
            assert (luminance(on_dark) + 0.05) / (page + 0.05) >= 4.5, colour


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_page_fits_a_phone(folder: Path, mode: Literal["light", "dark"]) -> None:
    """No sideways scrolling at 390 pixels; the contents stay in sight, wherever one reads."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Error as error:
            pytest.skip(f"no Chromium can be started: {error.message.splitlines()[0]}")
        for width in (390, 1280):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=mode)
            page.goto((folder / "report.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[mode]
            page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight / 2)")
            top = page.evaluate("document.querySelector('nav').getBoundingClientRect().top")
            assert 0 <= top < 100
        browser.close()


def test_verdicts_are_in_the_markdown_too(folder: Path) -> None:
    """One line a claim, then the tables."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"\*\*(reproduced|partly|not|open)\*\* \|$", text, re.MULTILINE)
    assert len(verdicts) == len(CLAIMS) + len(OURS)
    assert TINY.sentence in text
    assert "## regret against time and space on digits (digits)" in text
    assert "| DBSLinUCB-RFD, l₀ = 4, ε = 25 |" in text


def test_tables_have_a_row_for_each_contender(folder: Path, results: Results) -> None:
    """As CSV as well."""
    header, rows = table(results, "pareto-digits")
    assert len(rows) == 1 + 6 * 2
    written = (folder / "tables" / "pareto-digits.csv").read_text(encoding="utf-8").splitlines()
    assert len(written) == 1 + len(rows)
    assert header[0] == "method"
    header, rows = table(results, "algorithms")
    assert [row[0] for row in rows] == ["OFUL", "CBRAP", "SOFUL", "CBSCFD", "DBSLinUCB-FD", "DBSLinUCB-RFD"]
    assert [row[4] for row in rows] == ["T = 1e+06", "order only", "never", "never", "T = 1e+09", "T = 1e+06"]
    _, rows = table(results, "matrix-approximation")
    for row in rows:
        error, certificate, bound = map(float, row[3:])
        assert error <= certificate + 1e-3 <= bound + 2e-3


def test_failures_are_reported(folder: Path, results: Results, tmp_path: Path) -> None:
    """With the run and the reason, escaped."""
    run = Run(kind="play", environment=spec("gaussian"), contender=spec("soful", size=50), rounds=10, seed=4)
    one = Results(results.all_rows, results.profile, [results.experiments["synthetic-fd"]])
    done = reporting.write(one, tmp_path, [Failure(run, "<b>out of memory</b>")])
    text = done.path.read_text(encoding="utf-8")
    assert "&lt;b&gt;out of memory" in text
    assert "<b>" not in text
    assert "Runs that failed" not in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("here")
def test_names_from_outside_are_escaped(tmp_path: Path) -> None:
    """A label of the user's cannot put anything into the page."""
    race = Experiment(
        id="race",
        title="<script>alert(1)</script>",
        paper="ours",
        environment=spec("gaussian", dim=10, arms=3),
        series=(Series(label="OFUL <img src=x>", members=(spec("oful", ridge=1, beta=0.1),)),),
        rounds=20,
        figure="timed",
    )
    outcome = runner.run([race], replace(TINY, rounds=1.0), out=tmp_path, jobs=1)
    assert not outcome.failures
    done = reporting.write(Results.read(tmp_path), tmp_path)
    text = done.path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img src=x>" not in text
    assert not done.findings, "a race of one's own is not judged by the paper's claims"


def test_results_of_a_newer_version_are_refused(folder: Path, tmp_path: Path) -> None:
    """Rather than showing an empty page; and so are folders without results."""
    manifest = (folder / "manifest.json").read_text(encoding="utf-8")
    newer = manifest.replace(f'"version": "{sb.__version__}"', '"version": "99.0"')
    (tmp_path / "manifest.json").write_text(newer, encoding="utf-8")
    with pytest.raises(sb.FileError, match=r"written by sketchbandit 99\.0"):
        Results.read(tmp_path)
    with pytest.raises(sb.FileError, match="holds no results"):
        Results.read(tmp_path / "nowhere")


def test_a_folder_without_finished_runs_has_no_report(folder: Path, tmp_path: Path) -> None:
    """Nor has one that is being written to."""
    (tmp_path / "runs").mkdir()
    shutil.copy(folder / "manifest.json", tmp_path)
    with pytest.raises(sb.FileError, match="no finished runs"):
        report(tmp_path)
    assert not (tmp_path / "report.html").exists()
    with Store(tmp_path).lock(), pytest.raises(sb.InputError, match="in use"):
        report(tmp_path)


def test_differences_are_paired(results: Results) -> None:
    """Each contender less the first, permutation by permutation; and who warned."""
    header, rows = table(results, "synthetic-fd")
    assert header[3:6] == ["regret", "worst", "less OFUL's"]
    line = next(row for row in rows if row[0] == "SOFUL, l = 50")
    difference = results.finals("synthetic-fd", spec("soful", size=50)) - results.finals(
        "synthetic-fd", spec("oful")
    )
    assert float(line[5].split(" ± ")[0]) == pytest.approx(difference.mean(), abs=0.051)
    worst = results.finals("synthetic-fd", spec("soful", size=50)).max()
    assert float(line[4]) == pytest.approx(worst, abs=0.051)
    assert rows[0][5] == ""
    warned = results.finals("synthetic-fd", spec("soful", size=50), "warned").sum()
    assert line[-1] == (f"{warned:.0f} of 2" if warned else "")


def test_pareto_fronts() -> None:
    """Against brute force: a point is on the front if and only if nothing beats it."""

    def dominated(points: list[tuple[int, int]], index: int) -> bool:
        cost, loss = points[index]
        return any(
            (c <= cost and x <= loss and (c, x) != (cost, loss)) or ((c, x) == (cost, loss) and i < index)
            for i, (c, x) in enumerate(points)
            if i != index
        )

    points = [(i * 7 % 11, i * 5 % 13) for i in range(20)]
    expected = {i for i in range(20) if not dominated(points, i)}
    assert set(pareto_optimal([p[0] for p in points], [p[1] for p in points])) == expected


def test_rules_are_shown_with_every_permutation(results: Results) -> None:
    """A dot each, the mean and the worst; of the table, the number of each rule under its own sign."""
    name = "exploration-digits"
    axis = DRAWN["permutations"](results, name).axes[1]
    rules = [label for label, _ in results.series(name)]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == rules
    dots = [len(np.asarray(one.get_offsets())) for one in axis.collections]
    assert dots == [TINY.permutations, 1] * len(rules)
    header, rows = table(results, name)
    assert header[2] == "β, s, gamma, ε"
    assert [row[2] for row in rows] == ["β = 0.1"] * 2 + [
        "s = 0.1",
        "gamma = 100",
        "gamma = 100",
        "ε = 0.1",
        "",
    ]
    looks = {line.label: line.look for line in lines_of(results, name)}
    assert looks["UCB"].colour == looks["UCB, 1 % uniform"].colour != looks["Thompson"].colour
    assert looks["UCB"].dash != looks["UCB, 1 % uniform"].dash


def test_regret_is_drawn_against_the_delay(results: Results) -> None:
    """Means beside the worst permutations, for every rule and every delay that was played."""
    name = "late-rewards-fixed"
    left, right = DRAWN["delays"](results, name).axes
    for axis, of in ((left, np.mean), (right, np.max)):
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "50"]
        for line, (_, members) in zip(axis.lines, results.series(name), strict=True):
            expected = [of(results.finals(name, member)) for member in members]
            assert np.allclose(np.asarray(line.get_ydata()), expected)
    labels = [row[0] for row in table(results, name)[1]]
    assert labels[:2] == ["UCB, delay = 0", "UCB, delay = 50"]


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[Any]:
    """Figures must not pile up in pyplot: it is never used."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    yield
    assert not plt.get_fignums()


def test_what_is_missing_is_said(results: Results, tmp_path: Path) -> None:
    """A report of part of the runs says so, draws what is there, and judges nothing of it."""
    rows = results.all_rows
    lost = rows[(rows["contender"] != "dbs:epsilon=10,size=16") & (rows["contender"] != "oful")]
    partial = Results(lost, TINY, choose(["matrix-approximation", "pareto-digits", "algorithms"]))
    done = reporting.write(partial, tmp_path)
    text = done.path.read_text(encoding="utf-8")
    assert text.count("runs are missing:") == 3
    verdicts = {claim.id: finding for claim, finding in done.findings}
    assert verdicts["error-stays-bounded"].ours == "1 runs are missing"


def test_the_copy_of_the_data_is_named(folder: Path, results: Results, tmp_path: Path) -> None:
    """The reference copy, or another one."""
    assert "the reference copy" in (folder / "report.html").read_text(encoding="utf-8")
    other = Results(results.all_rows, TINY, choose(["pareto-digits"]), {"digits": "0"})
    assert "NOT the reference copy" in reporting.write(other, tmp_path).path.read_text(encoding="utf-8")
