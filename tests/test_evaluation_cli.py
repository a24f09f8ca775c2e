"""`sketchbandit evaluate`: tables, figure, report and JSON, with the numbers of the library."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sketchbandit as sb
from sketchbandit.cli.app import app
from sketchbandit.evaluation import Log, train_and_judge, write_log
from tests.logs import THETA, uniform_log, world

runner = CliRunner()


def invoke(*arguments: str | Path) -> Any:
    """The command with these arguments."""
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in a file."""
    write_log(world(1500, seed=1).log, tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_evaluate_end_to_end(log: Path, tmp_path: Path) -> None:
    """Two policies in two processes and in one give the library's numbers; everything is written."""
    asked: list[str | Path] = [
        "evaluate",
        log,
        "--policy",
        "oful:beta=0.2",
        "--policy",
        "uniform",
        "--out",
        tmp_path / "out",
    ]
    done = invoke(*asked, "--json", "--jobs", "2")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    library = train_and_judge(
        world(1500, seed=1).log,
        {"oful:beta=0.2": lambda: sb.oful(len(THETA), beta=0.2), "uniform": "uniform"},
    )
    assert [row["value"] for row in answer["estimates"]] == pytest.approx([row.value for row in library])
    refused = invoke(*asked, "--json")
    assert (refused.exit_code, "holds an evaluation already: replace it (--fresh)" in refused.output) == (
        2,
        True,
    )
    asked.append("--fresh")
    assert json.loads(invoke(*asked, "--json", "--jobs", "1").stdout) == answer
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "evaluation.json", "forest.png", "forest.svg", "report.html",
    }  # fmt: skip
    page = (tmp_path / "out" / "report.html").read_text()
    assert "data:image/svg+xml" in page
    assert "oful:beta=0.2" in page
    shown = invoke(*asked, "--jobs", "1", "--parts", "3", "--interval", "bootstrap")
    for words in ("values", "beside the policy of the log", "how well the log covers them", "snips"):
        assert words in shown.output


def test_while_they_learn(tmp_path: Path) -> None:
    """Replay, as a table and as JSON."""
    write_log(uniform_log(800, seed=2)[0], tmp_path / "log.parquet")
    asked: list[str | Path] = ["evaluate", tmp_path / "log.parquet", "--policy", "oful", "--learning"]
    assert "while they learn" in invoke(*asked).output
    (row,) = json.loads(invoke(*asked, "--json").stdout)["replay"]
    assert 150 < row["effective_size"] < 260
    assert row["low"] < row["value"] < row["high"]
    write_log(uniform_log(20, seed=2)[0], tmp_path / "log.parquet")
    assert "nan" not in invoke(*asked).output
    answer = json.loads(invoke(*asked, "--json").stdout, parse_constant=pytest.fail)
    assert answer["replay"][0]["low"] is None
    refused = invoke(*asked, "--policy", "uniform")
    assert (refused.exit_code, "does not learn" in refused.output) == (2, True)


def test_it_says_when_nothing_can_be_said(tmp_path: Path) -> None:
    """A log without chance: no interval, and the reason, in the table, the page and the figure."""
    w = world(200, seed=3)
    certain = Log(arms=w.arms, chosen=w.log.chosen, reward=w.log.reward, probability=np.ones(200))
    write_log(certain, tmp_path / "log.parquet")
    asked: list[str | Path] = [
        "evaluate",
        tmp_path / "log.parquet",
        "--policy",
        "oful",
        "--out",
        tmp_path / "out",
    ]
    done = invoke(*asked)
    assert done.exit_code == 0
    assert "nothing can be said: the log was made without chance" in done.output
    assert "nothing can be said" in (tmp_path / "out" / "report.html").read_text()
    assert done.output.count("nothing can be said: ") == 1  # below the tables, where there is room
    assert json.loads(invoke(*asked, "--json", "--fresh").stdout)["estimates"][0]["low"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "ucb1"], "unknown policy"),
        (["--policy", "greedy"], ", uniform; greedy is a rule of exploration: write oful:explore=greedy"),
        (["--policy", "oful:dim=32"], "oful:dim=32: dim comes from the log or the data; leave it out"),
        (["--policy", "oful", "--dim", "32"], "its arms have 4 features, but dim (--dim) is 32"),
        (
            ["--policy", "oful", "--interval", "anytime"],
            "use --methods ips, or --methods dr with --max-weight",
        ),
        (
            ["--policy", "oful", "--interval", "anytime", "--methods", "dr"],
            "the any-time interval of dr needs --max-weight,",
        ),
        (["--policy", "oful", "--policy", "oful"], "twice"),
        (["--policy", "oful:delay=3"], "delay"),
        (["--policy", "oful", "--methods", "magic"], "unknown method"),
        (["--policy", "oful", "--split", "2"], "between 0 and 1"),
        (["--policy", "oful", "--split", "0.5", "--parts", "3"], "give only one"),
        (["--policy", "oful", "--interval", "anytime"], "no any-time interval for snips"),
        (["--policy", "oful", "--reward-range", "one"], "LEAST,MOST"),
        (["--policy", "oful", "--bandit", "shop"], "names no bandits"),
        (
            ["--policy", "oful", "--learning", "--split", "0.3", "--interval", "anytime"],
            "--split, --interval",
        ),
    ],
)
def test_bad_input_is_a_message(arguments: list[str], words: str, log: Path, tmp_path: Path) -> None:
    """Exit status 2, and nothing is written."""
    done = invoke("evaluate", log, *arguments, "--out", tmp_path / "out", "--jobs", "1")
    assert (done.exit_code, words in done.output) == (2, True), done.output
    assert not (tmp_path / "out").exists()


def test_a_damaged_log_is_a_message(log: Path, tmp_path: Path) -> None:
    """Cut off in the middle: a sentence, no traceback, no report; so in a process of its own."""
    log.write_bytes(log.read_bytes()[:-100])
    done = invoke("evaluate", log, "--policy", "oful", "--policy", "uniform", "--out", tmp_path / "out")
    assert (done.exit_code, "cut off" in done.output) == (2, True)
    assert not (tmp_path / "out").exists()
    assert invoke("evaluate", tmp_path / "absent.parquet", "--policy", "oful").exit_code == 2


def test_a_csv_file_and_the_policy_that_always_takes_one_action(tmp_path: Path) -> None:
    """By its name; one that is not there is refused with those that are."""
    random = np.random.default_rng(2)
    chosen = random.choice(["mail", "push"], 400)
    lines = [f"{age:.3f},{name},{int(name == 'push')},0.5" for age, name in zip(random.random(400), chosen)]  # noqa: B905
    (tmp_path / "log.csv").write_text("\n".join(["age,chosen,reward,probability", *lines]))
    asked: list[str | Path] = ["evaluate", tmp_path / "log.csv", "--out", tmp_path / "out"]
    asked += ["--json", "--methods", "snips"]
    found = json.loads(invoke(*asked, "--policy", "always:push", "--policy", "uniform").stdout)
    assert found["estimates"][0]["value"] == 1.0
    refused = invoke(*asked, "--policy", "always:fax", "--fresh")
    assert refused.exit_code == 2
    assert "the log has no action 'fax'; there are mail, push" in " ".join(refused.output.split())
