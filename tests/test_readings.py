"""Readings of the paper are data: they change where and with what is played, and every figure says so."""

import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sketchbandit.environment import Classification
from sketchbandit.errors import InputError
from sketchbandit.simulation.specs import parse
from sketchbandit_paper import plan, readings, reporting, runner
from sketchbandit_paper.definitions import EXPERIMENTS, contenders
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.profiles import PROFILES, Profile
from sketchbandit_paper.readings import READINGS, Reading
from sketchbandit_paper.results import Results

MNIST, FLAT = EXPERIMENTS["mnist-curves"], EXPERIMENTS["synthetic-fd"]


def profile(reading: str) -> Profile:
    """The quick one, as the paper is read so."""
    return replace(PROFILES["quick"], reading=READINGS[reading])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_largest_row_has_length_one(make: type) -> None:
    """Rows keep their proportions, and the draws are those of unit rows."""
    rows = np.diag([1.0, 2.0, 4.0, 0.5])
    environment = Classification(make(rows), [0, 0, 1, 1], normalise="largest", seed=3)
    unit = Classification(make(rows), [0, 0, 1, 1], seed=3)
    seen = set()
    for one, other in zip(environment.rounds(40), unit.rounds(40), strict=True):
        arms, units = (a.toarray() if sparse.issparse(a) else a for a in (one.arms, other.arms))
        lengths = np.linalg.norm(arms, axis=1)
        np.testing.assert_array_equal(arms, units * lengths[:, np.newaxis])
        np.testing.assert_array_equal(one.means, other.means)
        seen |= set(lengths.tolist())
    assert seen == {0.25, 0.5, 1.0, 0.125}


def test_environments_are_read_so() -> None:
    """Data are normalised and noise is drawn as the reading says; what is said itself stays."""
    assert plan.environment_of(MNIST, profile("unit-each")) == MNIST.environment
    assert (
        str(plan.environment_of(MNIST, profile("largest-each")))
        == "classification:data=mnist,normalise=largest"
    )
    assert str(plan.environment_of(FLAT, profile("largest-each"))) == "gaussian:noise=0.0045,spectrum=flat"
    raw = parse("classification:data=mnist,normalise=none")
    assert READINGS["largest-each"].environment(raw) == raw


def test_all_share_what_was_chosen_on_oful() -> None:
    """OFUL alone is tuned, and everybody plays with its pair."""
    amount = profile("unit-shared")
    (run,) = plan.tuning_runs([MNIST], amount)
    assert str(run.contender) == "oful"
    chosen = {(str(run.environment), "oful", run.rounds): plan.Tuned(0.2, 0.01, 1.0)}
    for run in plan.final_runs([MNIST], amount, chosen):
        assert (run.contender.get("ridge"), run.contender.get("beta")) == (0.2, 0.01)
    assert {run.contender.name for run in plan.final_runs([MNIST], amount, chosen)} >= {"soful", "dbslinucb"}


def test_a_rule_without_beta_is_tuned_by_itself() -> None:
    """Thompson sampling has a scale, of which OFUL with UCB says nothing."""
    member = parse("soful:size=20,explore=thompson")
    assert plan.stand_in(member, profile("unit-shared")) == member
    late = parse("soful:size=20,delay=5")
    assert plan.stand_in(late, profile("unit-shared")) == parse("oful:delay=5")


def test_nothing_is_tuned() -> None:
    """Everybody plays with lambda 1 and beta 0.1."""
    amount = profile("largest-untuned")
    assert plan.tuning_runs([MNIST], amount) == []
    runs = plan.final_runs([MNIST], amount, {})
    assert {(run.contender.get("ridge"), run.contender.get("beta")) for run in runs} == {(1, 0.1)}


@pytest.mark.usefixtures("here")
def test_a_reading_travels_with_the_results(tmp_path: Path) -> None:
    """Into the manifest, the report and every figure; a folder of one reading does not take another."""
    policies = contenders.alone(contenders.OFUL, *contenders.sized("SOFUL", 10))
    digits = parse("classification:data=digits")
    small = Experiment(id="small", title="small", environment=digits, series=policies, rounds=40, points=2)
    amount = replace(profile("largest-untuned"), permutations=1)
    runner.run([small], amount, out=tmp_path, jobs=1)
    results = Results.read(tmp_path)
    assert results.profile == amount
    assert set(results.all_rows["environment"]) == {"classification:data=digits,normalise=largest"}
    reporting.write(results, tmp_path)
    assert "all rows divided by the largest norm" in (tmp_path / "report.md").read_text(encoding="utf-8")
    drawn = (tmp_path / "figures" / "small.svg").read_text(encoding="utf-8")
    text = " ".join(re.sub(r"-->.*?<!--", "", drawn, flags=re.DOTALL).split())
    assert "all rows divided by the largest norm" in text
    with pytest.raises(InputError, match=r"profile.reading = largest-untuned, and now it is unit-untuned"):
        runner.run([small], replace(amount, reading=READINGS["unit-untuned"]), out=tmp_path, resume=True)


def test_unknown_readings_are_named() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="largest-shared"):
        readings.reading("other")
    assert all(Reading(**asdict(one)) == one for one in READINGS.values())
