"""The tour: short runs, and an answer that follows from their numbers."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from matplotlib.image import imread
from typer.testing import CliRunner

import sketchbandit as sb
from sketchbandit.cli.app import app
from sketchbandit.simulation import environments
from sketchbandit.simulation.runs import Run, perform
from sketchbandit.simulation.specs import UNIFORM, Spec, is_chance, spec
from sketchbandit_paper import answers, plan, reporting, runner, verbs
from sketchbandit_paper.claims import CLAIMS, OPEN
from sketchbandit_paper.definitions import EXPERIMENTS, choose
from sketchbandit_paper.definitions import tour as definition
from sketchbandit_paper.definitions.tour import DEFAULT, EXACT, JUDGED_BY, TOUR
from sketchbandit_paper.profiles import TOUR as AMOUNT
from sketchbandit_paper.results import Results
from sketchbandit_paper.tables import table
from sketchbandit_paper.verdicts import judged
from tests.in_process import in_process

SHORT = replace(AMOUNT, rounds=0.02, permutations=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tour itself, with 80 rounds."""
    out = tmp_path_factory.mktemp("tour")
    with in_process():
        outcome = runner.run([EXPERIMENTS[name] for name in TOUR], SHORT, out=out, jobs=1)
    assert not outcome.failures
    return out


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """Its results."""
    return Results.read(folder)


def member(name: str, label: str) -> Spec:
    """Who plays under a label."""
    (found,) = [series.members[0] for series in EXPERIMENTS[name].series if series.label == label]
    return found


def changed(results: Results, label: str, **factors: float) -> Results:
    """The same results, with some columns of one contender multiplied."""
    rows = results.all_rows.copy()
    for name in TOUR:
        where = rows["run"].isin(results.of(name, member(name, label))["run"])
        for column, factor in factors.items():
            rows.loc[where, column] *= factor
    return Results(rows, results.profile, results.experiments.values())


def with_regrets(results: Results, given: dict[str, list[float]], others: list[float]) -> Results:
    """The same results, with other regrets, one for each seed, of some contenders and of all others."""
    rows = results.all_rows.copy()
    for name in TOUR:
        for series in EXPERIMENTS[name].series:
            of_it = rows["run"].isin(results.of(name, series.members[0])["run"])
            for seed, regret in enumerate(given.get(series.label, others)):
                rows.loc[of_it & (rows["seed"] == seed), "regret"] = regret
    return Results(rows, results.profile, results.experiments.values())


def test_everybody_plays_untuned_on_what_is_embedded() -> None:
    """The default, the paper's four, OFUL and chance; nothing is tuned, nothing needs a file."""
    assert not plan.tuning_runs([EXPERIMENTS[name] for name in JUDGED_BY], AMOUNT)
    assert not AMOUNT.tunes
    for name in TOUR:
        names = [series.members[0].name for series in EXPERIMENTS[name].series]
        assert names == ["adaptive", "dbslinucb", "soful", "cbscfd", "cbrap", "oful", "uniform"]
        assert not plan.tuning_runs([EXPERIMENTS[name]], AMOUNT)
        assert plan.rounds_of(EXPERIMENTS[name], AMOUNT) == 1000
    assert EXPERIMENTS[TOUR[0]].data == "digits"
    assert environments.build(EXPERIMENTS[TOUR[1]].environment, seed=0).dim == 500
    assert all(EXPERIMENTS[name].embedded for name in JUDGED_BY)
    assert not set(TOUR) & {experiment.id for experiment in choose([])}, "not among the paper's by default"


def test_the_claims_of_the_tour_are_those_that_a_short_run_can_judge() -> None:
    """Every claim whose experiments are in the tour and that needs not all rounds, and no other."""
    short = {claim.id for claim in CLAIMS if set(claim.needs) <= set(JUDGED_BY) and not claim.whole}
    embedded = {experiment.id for experiment in choose(["embedded"])}
    assert short == {claim.id for claim in CLAIMS if set(claim.needs) <= embedded and not claim.whole}
    assert len(short) == 5


def test_chance_is_the_mean_over_the_arms() -> None:
    """Beside brute force: clicks, noise and means; one in ten digits is right."""
    environment = spec("gaussian", dim=6, arms=5, clicks=0.3)
    run = Run(kind="chance", environment=environment, contender=UNIFORM, rounds=40, seed=3, points=2)
    rows = perform(run)
    drawn = list(environments.build(environment, 3).rounds(40))
    assert [row["round"] for row in rows] == [20, 40]
    for row in rows:
        until = drawn[: row["round"]]
        assert row["reward"] == pytest.approx(
            sum(np.mean([one.reward(k) for k in range(5)]) for one in until)
        )
        assert row["regret"] == pytest.approx(sum(one.means.max() - one.means.mean() for one in until))
    with pytest.raises(sb.InputError, match="no settings"):
        is_chance(spec("uniform", size=3))


def test_the_table_is_that_of_the_runs(results: Results) -> None:
    """Mean and worst regret, reward a round, time and memory; chance has neither of the latter."""
    for name in TOUR:
        header, rows = table(results, name)
        assert header[:3] == ["policy", "regret, mean", "worst of 2 seeds"]
        assert header[3:] == ["reward rate", "time a round", "memory"]
        assert [row[0] for row in rows] == [series.label for series in EXPERIMENTS[name].series]
        for row in rows:
            who = member(name, row[0])
            regrets = results.finals(name, who)
            assert float(row[1]) == pytest.approx(regrets.mean(), abs=0.051)
            assert float(row[2]) == pytest.approx(regrets.max(), abs=0.051)
            rate = results.finals(name, who, "reward").mean() / 80
            assert float(row[3]) == pytest.approx(rate, abs=0.00051)
        assert rows[-1][4:] == ["-", "-"]
    assert float(table(results, TOUR[0])[1][-1][3]) == 0.1


def test_the_answer_follows_from_the_numbers(results: Results) -> None:
    """Who is best and by how much, and what OFUL costs: other numbers give other sentences."""
    best = changed(results, DEFAULT, regret=0.001)
    sentences = answers.of_tour(best).sentences
    assert sentences[0].startswith("Regret is what")
    assert "80 rounds, and nothing is tuned" in sentences[0]
    assert all("the least of all" in said for said in sentences[1:3])
    worse = with_regrets(results, {DEFAULT: [300.0, 302.0]}, others=[1.0, 2.0])
    for name, said in zip(TOUR, answers.of_tour(worse).sentences[1:3], strict=True):
        assert f"{301 / 1.5 - 1:.0%} more than the best" in said
        assert "The worst of 2 seeds has 302.0" in said
        assert EXPERIMENTS[name].title in said
    close = with_regrets(results, {DEFAULT: [2.0, 1.5]}, others=[1.0, 2.0])
    sentences = answers.of_tour(close).sentences
    assert all("too close for 2 seeds to tell apart" in said for said in sentences[1:3])
    assert "for a regret that 2 seeds cannot tell apart from the default's (1.5)" in sentences[-1]
    dear = changed(results, EXACT, seconds=50.0, peak_bytes=20.0)
    dear = with_regrets(dear, {EXACT: [6.0, 6.1]}, others=[2.0, 2.0])
    second = answers.of_tour(dear).sentences[-1]
    where = TOUR[1]
    for column, words in (("seconds", "times the time"), ("peak_bytes", "times its memory")):
        times = [dear.finals(where, member(where, label), column).mean() for label in (EXACT, DEFAULT)]
        assert f"{times[0] / times[1]:.1f} {words}" in second
    assert f"for {6.05 / 2 - 1:.0%} more regret" in second


def test_the_answer_says_why_the_default_costs_more_with_few_features(results: Results) -> None:
    """Up to 128 columns it is exact, and does more than OFUL; where it is cheaper nothing is said."""
    slow = changed(results, DEFAULT, seconds=1000.0, peak_bytes=1000.0)
    (said,) = [said for said in answers.of_tour(slow).sentences if "up to 128 columns" in said]
    assert said.startswith(f"On {EXPERIMENTS[TOUR[0]].title} the default takes ")
    where = TOUR[0]
    times = [slow.finals(where, member(where, label), "seconds").mean() for label in (DEFAULT, EXACT)]
    assert f"{times[0] / times[1]:.1f} times the time of OFUL" in said
    cheap = changed(results, EXACT, seconds=1000.0, peak_bytes=1000.0)
    assert "up to 128 columns" not in " ".join(answers.of_tour(cheap).sentences)


def test_a_race_says_who_is_ahead_and_whether_that_is_sure(results: Results) -> None:
    """Two that have the same regret cannot be told apart; one that is far ahead can."""
    name = TOUR[0]
    ahead = changed(results, "SOFUL", regret=0.01)
    first = answers.of_race(ahead, name).sentences[0]
    assert first.startswith("SOFUL has the least regret")
    assert "A uniform choice has 72.0" in first
    rows = results.all_rows.copy()
    rows.loc[rows["contender"] != "uniform", "regret"] = 7.0
    same = Results(rows, results.profile, results.experiments.values())
    tied = answers.of_race(same, name).sentences[0]
    assert "too close for" in tied
    assert " and OFUL (exact) have the least regret: 7.0 on average, 7.0 at worst" in tied
    assert "follows" not in tied
    rows.loc[rows["run"].isin(results.of(name, member(name, "SOFUL"))["run"]), "regret"] = 1.0
    sure = Results(rows, results.profile, results.experiments.values())
    assert "too close for" not in answers.of_race(sure, name).sentences[0]
    slow = changed(results, "CBRAP", seconds=1000.0)
    assert "(CBRAP: " in answers.of_race(slow, name).sentences[1]


def test_the_costs_of_a_race_name_ties() -> None:
    """No one is compared with itself; who needs about the same is named together."""

    def line(label: str, seconds: float, kibibytes: float) -> answers.Line:
        return {"label": label, "seconds_a_round": seconds, "kibibytes": kibibytes}

    costs = answers._costs
    first, second = line("OFUL", 1.0, 2.0), line("Greedy", 3.0, 9.8)
    assert costs([second, first]) == (
        "OFUL takes the least time (Greedy: 3.0 times as much) and the least memory "
        "(Greedy: 4.9 times as much)."
    )
    assert costs([first, line("SOFUL", 2.0, 2.01)]) == (
        "OFUL takes the least time (SOFUL: 2.0 times as much). All take about the same memory."
    )
    assert costs([first, line("SOFUL", 1.01, 1.0), second]) == (
        "OFUL and SOFUL take the least time (Greedy: 3.0 times as much). "
        "SOFUL takes the least memory (Greedy: 9.8 times as much)."
    )


@pytest.mark.usefixtures("here")
def test_the_report_of_the_tour(folder: Path, results: Results, tmp_path: Path) -> None:
    """Opens with the sentences and the figure; nothing is counted that a short run cannot judge."""
    folder = Path(shutil.copytree(folder, tmp_path / "copy"))
    done = reporting.write(results, folder)
    assert done.figure is not None
    assert imread(done.figure).std() > 0.01
    text = done.path.read_text(encoding="utf-8")
    for sentence in done.answer.sentences:
        assert text.index("<h1") < text.index(f'<p class="lead">{escape(sentence)}') < text.index("<img")
    assert not re.search(r"\d+ open|cannot judge", text)
    assert done.findings == judged(done.findings)
    (folder / "figures" / "mine.png").touch()
    runner.run([EXPERIMENTS[TOUR[0]]], replace(SHORT, rounds=0.001), out=folder, jobs=1, fresh=True)
    assert [path.name for path in (folder / "figures").iterdir()] == ["mine.png"], "--fresh takes ours along"


class Stages(runner.RunProgress):
    """Writes down the names of the stages."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage begins."""
        assert total > done == 0
        self.names.append(name)


@pytest.mark.usefixtures("here")
def test_the_stages_say_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the table, then the claims; nothing is tuned, and no bar says so."""
    monkeypatch.setattr(verbs, "TOUR", replace(SHORT, rounds=0.005, permutations=1))
    monkeypatch.setattr(definition, "JUDGED_BY", ("matrix-approximation",))
    watcher = Stages()
    verbs.tour(out=tmp_path, jobs=1, watcher=watcher)
    assert watcher.names == ["for the table", "for the paper's claims"]


def test_the_tours_among_others_are_no_tour(results: Results) -> None:
    """Where they were played with another profile, as by `reproduce all`, the claims are what counts."""
    other = Results(results.all_rows, replace(SHORT, name="standard"), results.experiments.values())
    assert answers.is_tour(results)
    assert not answers.is_tour(other)


@pytest.mark.usefixtures("here")
def test_the_command_shows_table_answer_verdicts_and_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In that order; it ends with where the figure and the report lie."""
    few = replace(SHORT, rounds=0.01, permutations=1, betas=(0.1,), ridges=(2.0,))
    monkeypatch.setattr(verbs, "TOUR", few)
    monkeypatch.setattr(definition, "JUDGED_BY", ("matrix-approximation",))
    done = CliRunner().invoke(app, ["tour", "--out", str(tmp_path), "--jobs", "1"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    order = ["handwritten digits", "Uniform", "500 features", "What this shows", "Regret is what"]
    order += ["claims that a short run can judge", "docs/reproduction.md", "figure: ", "report: "]
    places = [done.output.index(word) for word in order]
    assert places == sorted(places)
    assert " open" not in done.output
    found = judged([(claim, claim.finding(Results.read(tmp_path))) for claim in CLAIMS])
    assert len(found) == 2
    for claim, finding in found:
        assert finding.verdict != OPEN
        assert claim.statement[:30] in done.output


def test_mixed_arms_have_the_spectrum_of_the_unmixed() -> None:
    """A rotation: lengths stay, no feature stands out, and the rest of the draws are as before."""
    plain = sb.GaussianArms(dim=30, arms=200, spectrum="power-law", decay=2.0, seed=1)
    mixed = sb.GaussianArms(dim=30, arms=200, spectrum="power-law", decay=2.0, mixed=True, seed=1)
    (one,), (two,) = plain.rounds(1), mixed.rounds(1)
    assert np.allclose(np.linalg.svd(one.arms)[1], np.linalg.svd(two.arms)[1])
    spread = [np.ptp(np.log(drawn.arms.std(axis=0))) for drawn in (one, two)]
    assert spread[1] < 0.5 * spread[0]
    assert np.array_equal(plain.theta, mixed.theta)
    assert one.noise == two.noise
    with pytest.raises(sb.InputError, match="mixed must be True or False"):
        sb.GaussianArms(mixed=2)  # type: ignore[arg-type]


def test_results_of_an_experiment_that_is_gone_are_refused(folder: Path, tmp_path: Path) -> None:
    """With its name, not a KeyError."""
    manifest = (folder / "manifest.json").read_text(encoding="utf-8")
    (tmp_path / "manifest.json").write_text(manifest.replace("tour-digits", "tour-cats"), encoding="utf-8")
    with pytest.raises(sb.FileError, match="tour-cats, which this version does not know"):
        Results.read(tmp_path)
