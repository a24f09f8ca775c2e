"""The command line, end to end, and beside its documentation."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import sketchbandit
from sketchbandit.cli.app import COMMANDS, app
from sketchbandit.data import CATALOGUE
from sketchbandit.evaluation import INTERVALS, METHODS
from sketchbandit.extras import how_to_install
from sketchbandit.policy.recipes import RECIPES
from sketchbandit.simulation.pool import Failure
from sketchbandit.simulation.runs import Run
from sketchbandit_paper import compare, report_readings, reproduce, tour, verify
from sketchbandit_paper.claims import Claim, adaptive, exploration
from sketchbandit_paper.definitions import EXPERIMENTS
from sketchbandit_paper.profiles import PROFILES
from sketchbandit_paper.store import Store

Verb = Callable[..., Any]
ROOT = Path(__file__).parents[1]
runner = CliRunner()


def invoke(*arguments: str | Path) -> Any:
    """The command with these arguments."""
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded in tests."""
    monkeypatch.setenv("SKETCHBANDIT_OPENML", "http://127.0.0.1:9")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SKETCHBANDIT_DATA", raising=False)


def test_reproduce_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure of digits and a table; a second time only with leave; the report again from the results."""
    small = replace(PROFILES["quick"], rounds=0.05, permutations=2, betas=(0.1,), ridges=(2.0,), sweep=2)
    monkeypatch.setitem(PROFILES, "quick", small)
    done = invoke(
        "reproduce", "pareto-digits", "matrix-approximation", "--out", tmp_path / "r", "--jobs", "1"
    )
    assert done.exit_code == 0, done.output
    assert "DBS keeps the error under its bound" in done.output
    assert f"report: {tmp_path / 'r' / 'report.html'}" in done.output
    frame = Store(tmp_path / "r").frame()
    assert set(frame["environment"]) == {"classification:data=digits", "rows:data=gaussian,dim=500"}
    again = invoke("reproduce", "pareto-digits", "--out", tmp_path / "r")
    assert again.exit_code == 2
    assert "--resume" in again.output
    other = invoke("reproduce", "pareto-digits", "--out", tmp_path / "r", "--resume", "--profile", "paper")
    assert other.exit_code == 2
    assert "profile" in other.output
    page = (tmp_path / "r" / "report.html").read_bytes()
    (tmp_path / "r" / "report.html").unlink()
    resumed = invoke("reproduce", "pareto-digits", "--out", tmp_path / "r", "--resume")
    assert resumed.exit_code == 0, resumed.output
    pd.testing.assert_frame_equal(Store(tmp_path / "r").frame(), frame)
    assert (tmp_path / "r" / "report.html").read_bytes() == page
    reported = invoke("report", tmp_path / "r")
    assert reported.exit_code == 0
    assert (tmp_path / "r" / "report.html").read_bytes() == page


@pytest.mark.usefixtures("here")
def test_compare_end_to_end(tmp_path: Path) -> None:
    """Any policies on an embedded data set; the table has a row for each, the figure is there."""
    done = invoke(
        *(
            "compare",
            "--policy",
            "oful",
            "--policy",
            "dbslinucb:size=8,epsilon=4",
            "--policy",
            "oful:ridge=20",
            "--policy",
            "adaptive:explore=thompson,scale=0.1",
            "--policy",
            "oful:rewards=logistic",
        ),
        *("--rounds", "60", "--permutations", "2", "--jobs", "2", "--out", tmp_path / "c"),
    )
    assert done.exit_code == 0, done.output
    for label in (
        "OFUL ",
        "DBSLinUCB-RFD, l₀ = 8, ε = 4",
        "OFUL, λ = 20",
        "Adaptive, Thompson, s = 0.1",
        "OFUL, Logistic",
    ):
        assert label in done.output
    assert (tmp_path / "c" / "figures" / "compare.png").stat().st_size > 10_000
    frame = Store(tmp_path / "c").frame()
    ridges = set(frame["ridge"].dropna())  # a uniform choice has none
    assert ridges == {1.0, 20.0, 65 / 256}  # the last: adaptive, 64 columns and a constant
    assert frame.groupby("run")["seed"].first().value_counts().to_dict() == {0: 7, 1: 7}
    assert invoke("report", tmp_path / "c").exit_code == 0
    text = (tmp_path / "c" / "report.html").read_text(encoding="utf-8")
    assert "2 permutations, beta and lambda as given" in text
    assert "Revisiting" not in text


def test_if_every_run_fails_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that there is nothing to report."""

    def failing(runs: list[Run], jobs: int) -> Any:
        del jobs
        yield [Failure(run, "out of memory") for run in runs]

    monkeypatch.setattr("sketchbandit_paper.runner.run_all", failing)
    done = invoke("compare", "--policy", "oful", "--rounds", "5", "--out", tmp_path)
    assert done.exit_code == 2
    assert "every run failed; the first one: out of memory" in done.output


@pytest.mark.usefixtures("here")
def test_compare_tunes_when_asked(tmp_path: Path) -> None:
    """The paper's grid on seeds of its own, and the best pair is played."""
    asked = ["soful:size=4", "oful:ridge=3"]
    done = compare(asked, rounds=30, permutations=1, tune=True, jobs=2, out=tmp_path)
    frame = done.results.all_rows
    given = frame[frame["contender"] == "oful"]
    assert set(given["kind"]) == {"play"}, "who gives a ridge is not tuned"
    assert set(given["number"]) == {0.1}
    frame = frame[frame["contender"] == "soful:size=4"]
    tuning = frame[frame["kind"] == "tune"]
    assert len(tuning) == 45
    finished = tuning[tuning["round"] == tuning["rounds"]].set_index(["ridge", "number"])["regret"]
    played = frame[frame["kind"] == "play"].iloc[0]
    assert finished[played["ridge"], played["number"]] == finished.min()


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
@pytest.mark.usefixtures("here")
def test_compare_on_ones_own_file(tmp_path: Path, suffix: str) -> None:
    """Features and a label column, in any of three formats: the same race."""
    random = np.random.default_rng(0)
    labels = np.repeat(["no", "yes"], 30)
    features = random.standard_normal((60, 5)) + np.where(labels == "yes", 3.0, -3.0)[:, None]
    path = tmp_path / f"mine{suffix}"
    table = pd.DataFrame(features, columns=list("abcde")).assign(answer=labels)
    if suffix == ".csv":
        table.to_csv(path, index=False)
    elif suffix == ".npz":
        np.savez(path, X=features, answer=labels)
    else:
        table.to_parquet(path)
    arguments = ("compare", "--data", path, "--label", "answer", "--policy", "oful", "--rounds", "200")
    alone = (*arguments, "--no-baselines", "--permutations", "2")
    done = invoke(*alone, "--out", tmp_path / "c")
    assert done.exit_code == 0, done.output
    frame = Store(tmp_path / "c").frame()
    final = frame[frame["round"] == 200]["regret"]
    assert final.max() < 40, "two clusters on opposite sides are easily told"
    table.assign(a=0.5).to_csv(tmp_path / "mine.csv", index=False)
    if suffix == ".csv":
        changed = invoke(*alone, "--out", tmp_path / "c", "--resume")
        assert changed.exit_code == 2, "the file has other contents now"


def test_data_lists_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source, licence, shape, and what is here."""
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(tmp_path))
    (tmp_path / "spam.npz").write_bytes(b"anything")
    done = invoke("data")
    assert done.exit_code == 0
    for name, source in CATALOGUE.items():
        (line,) = [line for line in done.output.splitlines() if f" {name} " in line]
        for text in (source.licence, source.origin, f"{source.rows:,} x {source.dim:,}"):
            assert text in line
        assert ("not here" in line) == (name not in {"digits", "spam"})
    assert "embedded" in done.output
    assert "spam.npz" in done.output
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(tmp_path / "absent"))
    assert "names no folder" in invoke("data").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "everything"), list(EXPERIMENTS)),
        (("reproduce", "--profile", "slow"), list(PROFILES)),
        (("reproduce", "mnist-curves"), ["mnist.npz", "SKETCHBANDIT_DATA"]),
        (("compare", "--policy", "ucb1"), list(RECIPES)),
        (("compare", "--policy", "soful:seize=3"), ["seize", "size, ridge, beta, dtype"]),
        (("compare", "--policy", "soful:size=1"), ["size", "1"]),
        (("compare", "--policy", "soful:explore=luck"), ["luck", "ucb, thompson, inverse-gap"]),
        (("compare", "--policy", "oful:explore=thompson,gamma=2"), ["gamma", "scale"]),
        (("compare", "--policy", "oful:rewards=luck"), ["luck", "linear, logistic, poisson, robust"]),
        (("compare", "--policy", "oful:rewards=robust,rewards.moment=3"), ["moment", "at most 2, got 3"]),
        (
            ("compare", "--data", "gaussian", "--policy", "oful:rewards=logistic"),
            ["from 0 to 1", "clicks=0.1"],
        ),
        (("compare", "--policy", "oful:forget=-1"), ["forget", "0.999, or a half-life"]),
        (("compare", "--data", "gaussian:clicks=2", "--policy", "oful"), ["base_rate", "below 1, got 2"]),
        (("compare", "--data", "gaussian:dim=2", "--policy", "oful"), ["'dim'", "clicks, lift, degrees"]),
        (("compare", "--policy", "oful", "--policy", "oful"), ["twice"]),
        (("compare", "--policy", "dbslinucb", "--policy", "dbslinucb:compensation=1"), ["twice"]),
        (("compare", "--policy", "dbslinucb:compensation=abc"), ["compensation", "abc"]),
        (("compare", "--policy", "oful", "--data", "minst"), [*CATALOGUE, "gaussian", "low-rank"]),
        (("compare", "--policy", "oful", "--data", "digits", "--label", "y"), ["labels of its own"]),
        (("compare", "--policy", "oful", "--data", "absent.csv"), ["absent.csv"]),
        (("compare", "--policy", "oful", "--protocol", "usual"), ["usual", "paper, contextual"]),
        (("compare", "--policy", "oful", "--data", "gaussian", "--standardize"), ["synthetic", "data set"]),
        (
            ("compare", "--policy", "oful", "--data", "gaussian", "--protocol", "contextual"),
            ["synthetic", "no labels"],
        ),
        (
            ("compare", "--policy", "oful", "--data", "digits:clicks=0.1", "--protocol", "contextual"),
            ["no variations", "clicks"],
        ),
        (("compare", "--policy", "uniform:size=3"), ["uniform", "no settings"]),
        (("report", "nowhere"), ["nowhere", "no results"]),
        (("reproduce", "--resume", "--fresh"), ["choose one"]),
    ],
)
def test_bad_input_is_a_message(
    arguments: tuple[str, ...], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2, the valid choices, no traceback, and nothing written."""
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    for word in words:
        assert word in done.output
    assert not list(tmp_path.iterdir())


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    """A file in the way of --out is an error at once."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = invoke("reproduce", "matrix-approximation", "--out", tmp_path / "file" / "out")
    assert done.exit_code == 2
    assert "cannot write" in done.output


def all_commands() -> dict[str, Any]:
    """Every command by its name, those of a group by both."""
    found: dict[str, Any] = {}
    top: Any = get_command(app)
    for name in top.list_commands(None):
        command = top.get_command(None, name)
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {sub}": inner[sub] for sub in inner}
    return found


EXPERIMENTING = ("tour", "reproduce", "compare", "report", "verify", "data")


def test_library_verbs_are_the_commands() -> None:
    """Every command is a function with the same settings."""
    commands = all_commands()
    assert set(commands) == {
        *EXPERIMENTING,
        "evaluate",
        "sketch",
        "serve",
        "service check",
        "service evaluate",
        "service export",
        "service repair",
        "service token",
    }
    functions: dict[str, Verb] = {
        "tour": tour,
        "reproduce": reproduce,
        "compare": compare,
        "report": report_readings,  # of one folder: report
        "verify": verify,
    }
    for name, function in functions.items():
        options = {parameter.name for parameter in commands[name].params}
        known = {"policies": "policy"}
        settings = {known.get(p, p) for p in inspect.signature(function).parameters} - {"watcher"}
        assert settings == options


def test_help_has_examples_that_parse() -> None:
    """Each example of a help text is a command line that the parser accepts."""
    for name, command in all_commands().items():
        examples = re.findall(r"Example: `(?:\w+=\S+ )?sketchbandit ([^`]+)`", command.help)
        assert examples, f"{name} has no example"
        for example in examples:
            assert example.startswith(name)
            command.make_context(name, example.removeprefix(name).split())
        assert "Example" in invoke(*name.split(), "--help").output


def test_the_docs_know_every_command_and_id() -> None:
    """Every option, id and profile is documented, and every command line in the docs parses."""
    commands = all_commands()
    for name, command in commands.items():
        pages = ["experiments.md"] if name in EXPERIMENTING else ["service.md", "operations.md"]
        pages = ["large-data.md"] if name == "sketch" else pages
        pages = ["evaluation.md"] if name == "evaluate" else pages
        page = "\n".join((ROOT / "docs" / path).read_text(encoding="utf-8") for path in pages)
        assert f"sketchbandit {name}" in page
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert option in page, f"{name} {option} is not documented"
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for name in (*EXPERIMENTS, *PROFILES, *CATALOGUE, "all", "embedded"):
        assert f"`{name}`" in page, f"{name} is not documented"
    everything = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    lines = [
        line
        for path in everything
        for block in re.findall(r"```(?:console|sh)?\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
    ]
    found = [
        re.search(r"^(?:\$ )?(?:\w+=\S+ )?sketchbandit ((?:service )?\w+)([^#]*)", line) for line in lines
    ]
    assert sum(match is not None for match in found) >= 5
    for match in filter(None, found):
        commands[match[1]].make_context(match[1], match[2].split())


@pytest.mark.parametrize(
    ("name", "claims", "least"),
    [
        ("adaptive.md", adaptive.CLAIMS, 6),
        ("exploration.md", exploration.CLAIMS, 3),
    ],
)
def test_the_pages_of_results_have_a_verdict_for_every_claim(
    name: str, claims: tuple[Claim, ...], least: int
) -> None:
    """And their figures."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for claim in claims:
        lines = [line for line in page.splitlines() if line.startswith(f"| {claim.statement}")]
        assert lines
        for line in lines:  # one for each reading
            assert re.search(r"\*\*(reproduced|partly|not)\*\* \|$", line)
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert len(images) >= least
    for image in images:
        assert (ROOT / "docs" / image).stat().st_size > 5_000


def test_command_line_manners() -> None:
    """The version, and help when nothing is asked."""
    assert invoke("--version").output.strip() == sketchbandit.__version__
    assert "reproduce" in invoke().output


HEAVY = ("numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib", "sklearn", "sqlalchemy")
MORE = ("jinja2", "httpx", "dask", "safetensors", "threadpoolctl", "prometheus_client", "httptools")


@pytest.mark.parametrize("command", ["", "sketch", "evaluate", "serve", "service", "service check"])
def test_help_imports_only_what_it_prints(command: str) -> None:
    """None of the libraries that the commands work with: they would take seconds."""
    code = (
        f"import sys; sys.argv[1:] = [*{command.split()}, '--help']\n"
        "from sketchbandit.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        f"print('loaded:', *sorted(set(sys.modules) & set({HEAVY + MORE})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    """The summaries are written beside the names, so that no command is imported to list them."""
    top: Any = get_command(app)
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", invoke("--help").output).split())
    for name, entry in COMMANDS.items():
        first = " ".join(top.get_command(None, name).help.partition("\n\n")[0].split())
        assert entry.summary == first
        assert f"{name} {first}" in shown


def test_the_help_of_evaluate_names_every_choice() -> None:
    """Estimators and intervals, as the library has them."""
    for name in ("evaluate", "service evaluate"):
        helps = {option.name: option.help for option in all_commands()[name].params}
        assert f": {', '.join(METHODS)}." in helps["methods"]
        assert all(interval in helps["interval"] for interval in INTERVALS)


def test_the_commands_use_one_thread() -> None:
    """Of BLAS: it is said before numpy is loaded, which is when it is heard."""
    code = (
        "import sys; sys.argv[1:] = ['--version']\n"
        "from sketchbandit.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import numpy, scipy.linalg\n"
        "from threadpoolctl import threadpool_info\n"
        "found = [pool['num_threads'] for pool in threadpool_info()]\n"
        "assert found and set(found) == {1}, found"
    )
    several = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=several)


def test_the_laws_say_which_extra_they_need() -> None:
    """`import sketchbandit.testing` without hypothesis is an instruction."""
    code = "import sys; sys.modules['hypothesis'] = None; import sketchbandit.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert how_to_install("testing") in done.stderr


@pytest.mark.parametrize("missing", ["typer", "pandas", "pyarrow", "jinja2", "matplotlib"])
def test_without_the_extra_the_command_says_what_to_install(missing: str) -> None:
    """A missing package is an instruction, not a traceback."""
    code = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv[1:] = ['compare', '--policy', 'oful']; "
        "from sketchbandit.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert how_to_install("experiments") in done.stderr
    assert "Traceback" not in done.stderr


def test_python_dash_m() -> None:
    """`python -m sketchbandit` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "sketchbandit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == sketchbandit.__version__


def _interrupted(process: subprocess.Popen[str]) -> str:
    """Ctrl-C, again where Python was at a place that lets no exception through; what it said."""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it goes on and on")


def test_an_interruption_is_told_how_to_go_on(tmp_path: Path) -> None:
    """Ctrl-C keeps what was finished and says --resume; no worker is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sketchbandit", "reproduce", "pareto-digits", "--out", tmp_path / "r"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    while not list(tmp_path.glob("r/runs/part-*")):
        assert process.poll() is None
        time.sleep(0.005)
    errors = _interrupted(process)
    assert process.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert Store(tmp_path / "r").frame()["run"].nunique() >= 1
