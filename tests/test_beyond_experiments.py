"""The experiments beyond linear rewards: what is measured, how claims are judged, what is drawn."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import sketchbandit as sb
from sketchbandit.drawing import save
from sketchbandit.simulation import environments, runs
from sketchbandit.simulation.runs import EDGES, LEAST, Calibration
from sketchbandit.simulation.specs import Spec, parse
from sketchbandit_paper import plan, runner
from sketchbandit_paper.claims import NOT, PARTLY, REPRODUCED
from sketchbandit_paper.definitions import EXPERIMENTS
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.figures import DRAWN
from sketchbandit_paper.figures.beyond import reliability
from sketchbandit_paper.profiles import PROFILES, Profile
from sketchbandit_paper.results import Results
from sketchbandit_paper.stretches import regret_rates
from sketchbandit_paper.tables import table
from tests.test_claims import BY_ID, Made, Make, results, verdict

TINY = Profile(name="tiny", permutations=2, tuning_permutations=0, tuning_rounds=0.0, betas=(), ridges=())


def test_log_loss_and_bins_are_those_of_the_definition() -> None:
    """A prediction at an edge belongs to the bin above; what is certain counts as nearly so."""
    found = Calibration()
    seen = [(-0.2, 0.0), (0.02, 1.0), (0.03, 0.0), (0.97, 1.0), (1.4, 0.0)]
    for predicted, reward in seen:
        found.see(predicted, reward)
    chances = np.clip([p for p, _ in seen], LEAST, 1.0 - LEAST)
    rewards = np.array([r for _, r in seen])
    expected = -(rewards * np.log(chances) + (1.0 - rewards) * np.log(1.0 - chances)).sum()
    assert found.log_loss == pytest.approx(expected)
    bins = np.array(json.loads(found.to_json()))
    assert bins[0].tolist() == [1, -0.2, 0.0]
    np.testing.assert_allclose(bins[2], [2, 0.05, 1.0])
    np.testing.assert_allclose(bins[len(EDGES)], [2, 2.37, 1.0])
    assert bins[:, 0].sum() == len(seen)


def test_predictions_are_made_before_the_reward_is_known() -> None:
    """The rows are those of a loop by hand."""
    clicks = environments.build(parse("gaussian:dim=6,arms=4,clicks=0.3"), 2)
    rows = list(runs.calibration(sb.oful(6, rewards=sb.Logistic()), clicks, 30, 3))
    policy, found, regret = sb.oful(6, rewards=sb.Logistic()), Calibration(), 0.0
    for drawn in clicks.rounds(30):
        chosen = policy.select(drawn.arms)
        found.see(policy.mean(drawn.arms)[chosen], drawn.reward(chosen))
        policy.update(drawn.arms[chosen], drawn.reward(chosen))
        regret += drawn.regret(chosen)
    assert [row["round"] for row in rows] == [10, 20, 30]
    assert rows[-1]["regret"] == pytest.approx(regret)
    assert rows[-1]["log_loss"] == pytest.approx(found.log_loss)
    np.testing.assert_allclose(json.loads(rows[-1]["calibration"]), json.loads(found.to_json()))


def test_the_world_changes_in_proportion_to_the_rounds() -> None:
    """A quarter of the rounds, a quarter of the time until the switch; the tuning sees the same world."""
    for name, key in (("drift-switch", "switch"), ("drift-turn", "turn"), ("drift-mnist", "switch")):
        experiment = EXPERIMENTS[name]
        quick = plan.environment_of(experiment, PROFILES["quick"])
        assert quick.get(key) == experiment.environment.get(key) // 4
        assert plan.environment_of(experiment, PROFILES["paper"]) == experiment.environment


def test_optional_experiments_are_run_when_asked_for() -> None:
    """They take long, and are not among those of `make run`."""
    assert not EXPERIMENTS["forgetting-rows"].embedded
    assert EXPERIMENTS["forgetting-rows"].data is None


def by_label(name: str, column: str, **factors: float) -> Make:
    """A column of 100 at the end, times a factor for contenders that have the setting."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        settings = {str(value) for _, value in contender.settings}
        factor = next((f for word, f in factors.items() if word.replace("_", ".") in settings), 1.0)
        filled = {"regret": 100.0 * share, "log_loss": 100.0 * share, "certificate": 1.0, "sketch_rows": 9}
        return {**filled, column: (100.0 + seed) * share * factor}

    assert name in BY_ID
    return make


@pytest.mark.parametrize(
    ("name", "column", "factors", "expected"),
    [
        ("clicks-log-loss", "log_loss", {"logistic": 0.9}, REPRODUCED),
        ("clicks-log-loss", "log_loss", {"logistic": 1.0}, NOT),
        ("clicks-regret", "regret", {"logistic": 1.09}, REPRODUCED),
        ("clicks-regret", "regret", {"logistic": 1.11}, NOT),
        ("tails-heavy", "regret", {"robust": 0.49}, REPRODUCED),
        ("tails-heavy", "regret", {"robust": 0.79}, PARTLY),
        ("tails-heavy", "regret", {"robust": 0.81}, NOT),
        ("tails-light", "regret", {"robust": 1.09}, REPRODUCED),
        ("tails-light", "regret", {"robust": 1.24}, PARTLY),
        ("tails-light", "regret", {"robust": 1.26}, NOT),
        ("tails-outliers", "regret", {"robust": 0.49}, REPRODUCED),
        ("tails-outliers", "regret", {"robust": 0.81}, NOT),
        ("drift-turn", "regret", {"0_999": 0.9, "0_995": 0.8}, REPRODUCED),
        ("drift-turn", "regret", {"0_999": 0.9, "0_995": 1.1}, PARTLY),
        ("drift-turn", "regret", {"0_999": 1.1, "0_995": 1.1}, NOT),
    ],
)
def test_our_claims_beyond(name: str, column: str, factors: dict[str, float], expected: str) -> None:
    """Each on either side of its rule."""
    assert verdict(name, by_label(name, column, **factors)) == expected


def drifting(*, forgets: float, never: float) -> Make:
    """1 a round before the change; after it a stretch of 10 a round, then so many a round as given."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        del seed
        later = forgets if contender.get("forget") else never
        after = max(0.0, share - 0.5)
        return {"regret": min(share, 0.5) + 10.0 * min(after, 0.1) + later * max(0.0, after - 0.1)}

    return make


@pytest.mark.parametrize("name", ["drift-switch", "drift-mnist"])
@pytest.mark.parametrize(
    ("forgets", "never", "expected"), [(1.05, 1.2, REPRODUCED), (1.05, 1.05, PARTLY), (1.15, 2.0, NOT)]
)
def test_who_is_back_after_a_change(name: str, forgets: float, never: float, expected: str) -> None:
    """Within a tenth of the regret a round before, without which nobody is back."""
    assert verdict(name, drifting(forgets=forgets, never=never)) == expected


@pytest.mark.parametrize(
    ("certificate", "early", "late", "expected"),
    [(8.0, 9, 9, REPRODUCED), (8.0, 9, 10, PARTLY), (8.0, 500, 9, PARTLY), (8.1, 9, 9, NOT)],
)
def test_rows_that_stop_growing(certificate: float, early: int, late: int, expected: str) -> None:
    """A certificate above epsilon once is not kept."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        del contender
        once = certificate if seed == 1 and share > 0.8 else 1.0
        return {"regret": share, "certificate": once, "sketch_rows": late if share > 0.5 else early}

    assert verdict("forgetting-rows", make) == expected


def test_rates_are_slopes_of_the_regret() -> None:
    """The mean over permutations, a stretch at a time."""
    found = results(["drift-switch"], drifting(forgets=1.0, never=3.0))
    member = plan.members_of(EXPERIMENTS["drift-switch"], found.profile)[0]
    ends, rates = regret_rates(found, "drift-switch", member)
    before = rates[ends <= 4000]
    np.testing.assert_allclose(before, before[0])
    assert rates[-1] == pytest.approx(3.0 * before[0])


@pytest.fixture
def played(here: None, tmp_path: Path) -> Results:
    """Clicks, in small."""
    del here
    experiment = _small(EXPERIMENTS["clicks-gaussian-10"])
    outcome = runner.run([experiment], TINY, out=tmp_path / "runs", jobs=1)
    assert not outcome.failures
    return Results(outcome.rows, TINY, [experiment])


def _small(experiment: Experiment) -> Experiment:
    """Few rounds of few arms, and nothing to tune."""
    where = experiment.environment.with_settings(dim=150, arms=4)
    series = tuple(
        replace(one, members=tuple(m.with_settings(ridge=1, **_number(m)) for m in one.members))
        for one in experiment.series
    )
    return replace(experiment, environment=where, series=series, rounds=60, points=6)


def _number(member: Spec) -> dict[str, Any]:
    return {"scale": 0.1} if member.get("explore") == "thompson" else {"beta": 0.1}


def test_clicks_are_tabulated_and_drawn(played: Results, tmp_path: Path) -> None:
    """Every contender has a row with its log loss; bins hold every round of every permutation."""
    name = "clicks-gaussian-10"
    header, rows = table(played, name)
    assert header[-1] == "log loss a round"
    assert [row[0] for row in rows] == ["Linear", "Logistic", "Linear, Thompson", "Logistic, Thompson"]
    member = plan.members_of(played.experiments[name], TINY)[1]
    counts = reliability(played, name, member)[:, 0]
    assert counts.sum() == 2 * 60
    loss = played.finals(name, member, "log_loss").mean() / 60
    assert float(rows[1][-1]) == pytest.approx(loss, abs=1e-4)
    figure = DRAWN["calibration"](played, name)
    assert [axis.get_title()[:3] for axis in figure.axes] == ["(a)", "(b)", "(c)"]
    figure.savefig(tmp_path / "drawn.png")


def test_rates_are_drawn(tmp_path: Path) -> None:
    """With a line where the world changes."""
    found = results(["drift-switch"], drifting(forgets=1.0, never=3.0))
    figure = DRAWN["rates"](found, "drift-switch")
    drawn = [np.asarray(line.get_xdata()) for axis in figure.axes for line in axis.lines]
    assert [xs[0] for xs in drawn if len(xs) == 2] == [4000, 4000]
    figure.savefig(tmp_path / "drawn.png")


def test_a_name_with_a_dot_is_the_name_of_the_file(tmp_path: Path) -> None:
    """tails-1.5 is not tails-1."""
    written = save(Figure(), tmp_path / "tails-1.5")
    assert [path.name for path in written] == ["tails-1.5.png", "tails-1.5.svg"]
    assert all(path.stat().st_size for path in written)
