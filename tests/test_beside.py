"""Readings side by side: one table of claims, whose verdicts are those of each folder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sketchbandit.cli.app import app
from sketchbandit.errors import InputError
from sketchbandit.simulation.specs import Spec, parse
from sketchbandit_paper import beside, readings, runner
from sketchbandit_paper.claims import CLAIMS, NOT, OPEN, PARTLY, REPRODUCED
from sketchbandit_paper.definitions import contenders
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.profiles import PROFILES
from sketchbandit_paper.readings import LIKELY, OF_THE_PAPER, READINGS
from sketchbandit_paper.results import Results
from sketchbandit_paper.store import Store
from sketchbandit_paper.verbs import report_readings, verify
from tests.in_process import in_process
from tests.test_claims import FULL, Made, results

if TYPE_CHECKING:
    import pandas as pd

REGRET = {"unit-each": 200.0, "unit-shared": 130.0, "largest-each": 60.0, "largest-shared": 210.0}


def made(name: str) -> Results:
    """OFUL's regret on MNIST under a reading, and nothing else of interest."""

    def make(_: Spec, __: int, share: float) -> Made:
        return {"regret": REGRET[name] * share, "seconds": share, "peak_bytes": 1000, "rank": 100}

    return results(["pareto-mnist"], make, replace(FULL, reading=READINGS[name]))


def test_every_claim_under_every_reading(tmp_path: Path) -> None:
    """The verdict is that of the likely reading; the others say whether it hangs on how the text is read."""
    several = [made(name) for name in REGRET]
    for found in several:
        found.all_rows["machine"] = "here"
    done = beside.write(several, tmp_path)
    (regret,) = [one for one in done.paper if one.claim.id == "oful-regret"]
    assert [regret.findings[name].verdict for name in REGRET] == [REPRODUCED, PARTLY, NOT, REPRODUCED]
    assert (regret.verdict, regret.agreement) == (REPRODUCED, beside.DEPENDS)
    (alike,) = [one for one in done.paper if one.claim.id == "robust"]
    assert (alike.verdict, alike.agreement) == (NOT, beside.AGREED)
    (absent,) = [one for one in done.paper if one.claim.id == "space"]
    assert (absent.verdict, absent.agreement) == (OPEN, OPEN)
    kept = json.loads((tmp_path / "readings.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in kept["claims"]] == [claim.id for claim in CLAIMS]
    for claim, one in zip(kept["claims"], done.paper, strict=True):
        assert {name: found["verdict"] for name, found in claim["findings"].items()} == {
            name: found.verdict for name, found in one.findings.items()
        }
    page = (tmp_path / "readings.md").read_text(encoding="utf-8")
    assert "about" in regret.claim.paper
    assert "| OFUL's regret on MNIST after 2000 rounds (Sec. 5) | ● | ◐ | ○ | ● | depends |" in page
    for name in REGRET:
        counted = beside.counts(done.paper, name)
        assert sum(counted.values()) == len(CLAIMS)
        assert f"{counted[REPRODUCED]} / {counted[PARTLY]} / {counted[NOT]}" in page
        assert READINGS[name].sentence in " ".join(page.split())


def test_one_reading_twice(tmp_path: Path) -> None:
    """Is a mistake; nothing is written."""
    with pytest.raises(InputError, match="unit-each is there twice"):
        beside.write([made("unit-each"), made("unit-each")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_likely_reading_is_one_of_the_papers() -> None:
    """And the default is another of them."""
    assert {LIKELY, readings.DEFAULT} < set(OF_THE_PAPER)
    assert not any(reading.tuning == readings.UNTUNED for reading in OF_THE_PAPER)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A small race under two readings."""
    policies = contenders.alone(contenders.OFUL, *contenders.sized("SOFUL", 10))
    digits = parse("classification:data=digits")
    small = Experiment(id="small", title="small", environment=digits, series=policies, rounds=40, points=2)
    amount = replace(PROFILES["quick"], permutations=2)
    made_here = []
    for name in ("unit-each", "largest-untuned"):
        folder = tmp_path_factory.mktemp(name)
        with in_process():
            runner.run([small], replace(amount, reading=READINGS[name]), out=folder, jobs=1)
        made_here.append(folder)
    return made_here


def test_the_command_reads_several_folders(folders: list[Path], tmp_path: Path) -> None:
    """And says where the table is; a folder that holds nothing is named."""
    said = CliRunner().invoke(app, ["report", *map(str, folders), "--out", str(tmp_path / "both")])
    assert said.exit_code == 0, said.output
    assert (tmp_path / "both" / "readings.md").is_file()
    assert report_readings(folders, tmp_path / "again").readings == ["unit-each", "largest-untuned"]
    wrong = CliRunner().invoke(app, ["report", str(folders[0]), str(tmp_path / "none")])
    assert wrong.exit_code == 2
    assert "holds no results" in wrong.output


def test_runs_done_again_are_the_same(folders: list[Path]) -> None:
    """Every one, tuning and playing, to the bit."""
    found = verify(folders[0], runs=100)
    assert {one.run.kind for one in found} == {"tune", "play"}
    assert len(found) == 6
    assert not any(one.different for one in found)
    assert [one.run for one in verify(folders[0], runs=2, seed=5)] == [
        one.run for one in verify(folders[0], runs=2, seed=5)
    ]


def test_a_changed_result_is_found(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The column is named, and the command fails."""
    original = Store.frame

    def frame(store: Store) -> "pd.DataFrame":
        rows = original(store)
        rows.loc[rows["kind"] == "play", "regret"] += 1e-12
        return rows

    monkeypatch.setattr(Store, "frame", frame)
    found = verify(folders[1], runs=100)
    assert [one.different for one in found] == [["regret"]] * 4
    said = CliRunner().invoke(app, ["verify", str(folders[1]), "--runs", "1"])
    assert said.exit_code == 1
    assert "differs in regret" in said.output.replace("\n", " ")
