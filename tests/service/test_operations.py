"""What the people see who run it: commands, logs, metrics, the Parquet log, the demo."""

import asyncio
import errno
import json
import logging
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import parquet
from typer.testing import CliRunner

from sketchbandit.cli.app import app
from sketchbandit.extras import how_to_install
from sketchbandit_service import demo, logs, tokens
from sketchbandit_service.engine import Engine
from sketchbandit_service.exporting import SCHEMA
from sketchbandit_service.server import serve
from sketchbandit_service.settings import Settings
from sketchbandit_service.warmup import warm_up
from tests.service.harness import DIM, PLAIN, in_loop, service
from tests.service.processes import Zygote, free_port

runner = CliRunner()


def invoke(*arguments: str | Path) -> Any:
    """The command with these arguments."""
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """A server that a test starts in this process configures the logs of the process."""
    names = ("sketchbandit", "asyncio", "py.warnings")
    before = {name: list(logging.getLogger(name).handlers) for name in names}
    yield
    logging.captureWarnings(False)
    for name, handlers in before.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, True
        logger.setLevel(logging.NOTSET)


@in_loop
async def test_export(tmp_path: Path) -> None:
    """One row a decision, with what off-policy evaluation needs, whatever became of it."""
    random = np.random.default_rng(0)
    async with service(tmp_path / "state") as found:
        await found.create(**PLAIN, log_arms=True, exploration=0.5)
        await found.create("thin", reward_timeout=0.01, default_reward=-2.0)
        sets, answers = [], []
        for _ in range(12):
            arms = random.standard_normal((3, DIM))
            answer = (await found.decide(arms.tolist())).json()
            await found.reward(answer["decision"], float(arms[answer["index"], 0]))
            sets.append(arms)
            answers.append(answer)
        await found.decide()  # open
        await found.decide([{"indices": [2], "values": [0.5]}], name="thin")
        time.sleep(0.02)
        await found.upkeep.round()
    refused = invoke("service", "export", tmp_path / "state", tmp_path / "log.csv")
    assert refused.exit_code == 2
    assert "name it log.parquet" in refused.output
    assert not (tmp_path / "log.csv").exists()
    done = invoke("service", "export", tmp_path / "state", tmp_path / "log.parquet")
    assert done.exit_code == 0, done.output
    assert "14 rows" in done.output
    table = parquet.read_table(tmp_path / "log.parquet")
    assert table.schema == SCHEMA
    rows = table.to_pylist()
    for row, arms, answer in zip(rows, sets, answers, strict=False):
        assert row["decision"] == answer["decision"]
        assert row["feature_values"] == arms[answer["index"]].tolist()
        assert [arm["values"] for arm in row["arms"]] == arms.tolist()
        assert (row["propensity"], row["score"]) == (answer["propensity"], answer["score"])
        assert row["reward"] == arms[answer["index"], 0]
        assert row["reward_kind"] == "given"
        assert row["rewarded_at"] >= row["decided_at"]
    assert [row["rounds"] for row in rows[:12]] == list(range(12))
    estimate = np.mean([(row["arm_index"] == 0) / row["propensity"] for row in rows[:12]])
    assert estimate > 0  # a policy that always plays the first arm can be evaluated
    assert (rows[12]["reward"], rows[12]["reward_kind"]) == (None, None)
    assert (rows[13]["bandit"], rows[13]["feature_indices"]) == ("thin", [2])
    assert (rows[13]["reward"], rows[13]["reward_kind"], rows[13]["arms"]) == (-2.0, "default", None)
    assert invoke("service", "export", tmp_path / "state", tmp_path / "x", "--bandit", "thin").exit_code == 0
    assert parquet.read_table(tmp_path / "x").num_rows == 1
    absent = invoke("service", "export", tmp_path / "state", tmp_path / "y", "--bandit", "absent")
    assert (absent.exit_code, "there is no bandit 'absent'" in absent.output) == (2, True)
    assert invoke("service", "export", tmp_path / "state", tmp_path / "no" / "y").exit_code == 2


@in_loop
async def test_check_command(tmp_path: Path) -> None:
    """0 if all is well, 1 if not, 2 if it cannot be looked at, such as while a server runs."""
    async with service(tmp_path / "state") as found:
        await found.create()
        await found.play(5)
        running = invoke("service", "check", tmp_path / "state")
        assert (running.exit_code, "in use" in running.output) == (2, True)
    good = invoke("service", "check", tmp_path / "state")
    assert good.exit_code == 0, good.output
    assert "equals the journal" in good.output
    (path,) = (tmp_path / "state").glob("snapshots/*/*.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    bad = invoke("service", "check", tmp_path / "state")
    assert (bad.exit_code, "BAD" in bad.output) == (1, True)
    assert invoke("service", "check", tmp_path / "absent").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert "holds no journal" in invoke("service", "check", tmp_path / "empty").output


@in_loop
async def test_repair_command(tmp_path: Path) -> None:
    """Nothing to repair is good; what is not there is said."""
    async with service(tmp_path / "state") as found:
        await found.create()
        await found.play(5)
        assert invoke("service", "repair", tmp_path / "state").exit_code == 2  # in use
    done = invoke("service", "repair", tmp_path / "state", "--bandit", "b", "--set-aside")
    assert (done.exit_code, "good" in done.output) == (0, True), done.output
    assert invoke("service", "repair", tmp_path / "state", "--bandit", "absent").exit_code == 2


def test_token_command(tmp_path: Path) -> None:
    """The token on standard output, its hash in the file."""
    done = invoke("service", "token", tmp_path / "tokens", "--scope", "admin", "--name", "ops")
    assert done.exit_code == 0
    assert done.output.startswith("sb_")
    assert (tmp_path / "tokens").read_text(encoding="utf-8").startswith("ops admin ")
    assert invoke("service", "token", tmp_path / "tokens", "--scope", "root").exit_code == 2
    assert "there is no folder" in invoke("service", "token", tmp_path / "no" / "tokens").output


def test_the_first_start_says_why_it_takes_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the loops are compiled, once in a process."""
    told: list[int] = []
    monkeypatch.setattr("sketchbandit_service.warmup._play", lambda: told.append(len(caplog.records)))
    with caplog.at_level("INFO"):
        warm_up.__wrapped__()
    assert told == [1, 1]
    assert "the first start on a machine compiles them" in caplog.text


def test_without_a_place_for_compiled_code(tmp_path: Path) -> None:
    """Neither the package's folder nor the user's can be written, as in a container: it works, uncached."""
    code = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import sketchbandit as sb\n"
        "from sketchbandit.kernels import kernels\n"
        "policy = sb.oful(2)\n"
        "policy.update([1.0, 0.0], 1.0)\n"
        "assert policy.select([[0.0, 0.0], [1.0, 0.0]]) == 1 and kernels() is not None"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path)


def test_serve_refuses_what_it_cannot(tmp_path: Path) -> None:
    """A host without tokens, a broken token file, a strange database: one line, not a traceback."""
    (tmp_path / "a-file").write_text("x", encoding="utf-8")
    cases: list[tuple[int, list[str | Path], str]] = [
        (1, ["--host", "0.0.0.0"], "a token is needed"),  # noqa: S104
        (1, ["--token-file", tmp_path / "absent"], "cannot read the token file"),
        (1, ["--state", tmp_path / "a-file"], "is a file"),
        (1, ["--database", "nonsense"], "must be a URL"),
        (1, ["--database", "postgresql://nobody@127.0.0.1:9/x"], "cannot open the database"),
        (1, ["--cors", "*"], "needs tokens; use tokens, or name the origins"),
        (2, ["--demo", "--token-file", tmp_path / "t"], "needs no token"),
        (2, ["--demo", "--standby"], "leave --demo out"),
    ]
    for status, options, says in cases:
        done = invoke("serve", "--state", tmp_path / "state", "--port", "0", *options)
        assert done.exit_code == status, done.output
        assert says in done.output
        if status == 1:
            assert len([line for line in done.output.splitlines() if line.startswith("Error: ")]) == 1
            assert "Traceback" not in done.output


def test_an_unforeseen_error_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is: a line that says what to do; the log has the rest."""

    async def fail(_: Engine, **__: object) -> None:
        raise KeyError("odd\nkey")

    monkeypatch.setattr(Engine, "start", fail)
    done = invoke("serve", "--state", tmp_path / "state", "--port", "0", "--log-format", "text")
    assert (done.exit_code, "cannot start (KeyError" in done.output) == (1, True)
    assert done.output.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_standby_listens_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """It is alive and not ready, for as long as it takes; a signal ends it in order."""

    async def wait(_: Engine, **__: object) -> None:
        await asyncio.Event().wait()

    seen = {}

    def look(url: str) -> None:
        try:
            seen.update({path: httpx.get(f"{url}{path}").status_code for path in ("/healthz", "/readyz")})
        finally:
            os.kill(os.getpid(), number)

    def ready(url: str) -> None:
        threading.Thread(target=look, args=(url,)).start()

    monkeypatch.setattr(Engine, "start", wait)
    with pytest.raises(KeyboardInterrupt) if number == signal.SIGINT else nullcontext():
        serve(Settings(tmp_path), port=0, standby=True, on_ready=ready)
    assert seen == {"/healthz": 200, "/readyz": 503}


def test_with_tokens_the_state_is_the_owner_s_alone(forge: Zygote, tmp_path: Path) -> None:
    """What was there before, and what is written from now on."""
    state = tmp_path / "state"
    (state / "snapshots" / "1").mkdir(parents=True)
    old = state / "snapshots" / "1" / "old"
    old.write_text("x", encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("x", encoding="utf-8")
    (state / "link").symlink_to(elsewhere)
    tokens.add(tmp_path / "tokens", "ops", "admin")
    before = elsewhere.stat().st_mode
    server = forge.start(state, free_port(), tokens=tmp_path / "tokens")
    server.stop()
    assert (state / "journal.sqlite").exists()
    for path in (state, *state.rglob("*")):
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert elsewhere.stat().st_mode == before


def test_refused_tokens_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """One line for many, with their number: nobody can fill the disk."""
    refusals = tokens.Refusals(every=0.05)
    for _ in range(1000):
        refusals.saw("/v1/bandits", "192.0.2.1", "not known")
    assert len(caplog.records) == 1
    time.sleep(0.06)
    refusals.saw("/", "192.0.2.2", "not known")
    assert [vars(record)["more"] for record in caplog.records] == [0, 999]
    assert vars(caplog.records[0])["client"] == "192.0.2.1"


def test_the_text_log_cannot_be_forged() -> None:
    """Controls of the terminal and of the direction of text are written out, wherever they come from."""
    nasty = "a\n12:00:00 info    all is well\x1b[2J\x9b\u202e\u2066\u200f\u061c\u2028\ud800"
    try:
        raise ValueError(nasty)
    except ValueError:
        found = sys.exc_info()
    record = logging.LogRecord("x", logging.ERROR, "", 1, "said %s", (nasty,), found)
    record.path = nasty
    lines = logs.TextFormatter().format(record).split("\n")
    assert len([line for line in lines if not line.startswith("  ")]) == 1
    assert (
        lines[0].count(r"a\x0a12:00:00 info    all is well\x1b[2J\x9b\u202e\u2066\u200f\u061c\u2028\ud800")
        == 2
    )
    assert all(character.isprintable() for line in lines for character in line)
    assert json.loads(logs.JsonFormatter().format(record))["path"] == nasty


def test_a_port_in_use(forge: Zygote, tmp_path: Path) -> None:
    """Said so, and the state is released."""
    port = free_port()
    first = forge.start(tmp_path / "a", port)
    with pytest.raises(RuntimeError, match="if the port is in use"):
        forge.start(tmp_path / "b", port)
    forge.start(tmp_path / "b", free_port()).stop()
    first.stop()


@in_loop
async def test_metrics(tmp_path: Path) -> None:
    """Prometheus can read them, and they count what happened."""
    async with service(tmp_path) as found:
        await found.create('quo"te\n\\'.replace("\n", ""))
        await found.create()
        await found.play(7)
        await found.decide()
        answer = await found.http.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}

        def value(name: str, **labels: str) -> float:
            (sample,) = [
                sample
                for sample in families[name].samples
                if labels.items() <= sample.labels.items()
                and not sample.name.endswith(("_created", "_bucket", "_sum"))
            ]
            return float(sample.value)

        assert value("sketchbandit_decisions", bandit="b") == 8
        assert value("sketchbandit_rewards", bandit="b") == 7
        assert value("sketchbandit_open_decisions", bandit="b") == 1
        assert value("sketchbandit_policy_bytes", bandit="b") == found.engine.bandit("b").policy.nbytes
        assert value("sketchbandit_responses", status="200") >= 15
        assert value("sketchbandit_request_seconds", route="/v1/bandits/{name}/decide") == 8
        assert value("sketchbandit_commit_records") >= 15


@in_loop
async def test_stats_tell_the_sketch_and_the_last_decisions(tmp_path: Path) -> None:
    """Certificate inside its budget, health in words, rewards beside their decisions."""
    async with service(tmp_path) as found:
        await found.http.put(
            "/v1/bandits/b", json={"dim": 30, "parameters": {"size": 4, "epsilon": 300.0, "horizon": 100}}
        )
        await found.play(60)
        await found.create("exact", policy="oful")
        await found.create("blind", policy="cbrap", parameters={"size": 3})
        stats = await found.stats()
        assert 0 < stats["sketch"]["certificate"] <= stats["sketch"]["budget"] <= 300.0
        assert stats["is_healthy"] is True
        assert len(stats["recent"]) == 20
        assert all(recent["kind"] == "given" for recent in stats["recent"])
        assert sum(stats["history"]["rewards"]) == 60
        exact = (await found.stats("exact"))["sketch"]
        assert (exact["is_exact"], exact["certificate"], exact["budget"]) == (True, 0.0, 0.0)
        blind = (await found.stats("blind"))["sketch"]
        assert (blind["is_exact"], blind["certificate"], blind["budget"]) == (False, None, None)


def test_the_whole_command(tmp_path: Path) -> None:
    """`sketchbandit serve --demo`: an address, traffic that learns, JSON logs, an orderly end."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "sketchbandit",
        "serve",
        "--state",
        tmp_path / "state",
        "--port",
        "0",
        "--demo",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline()
        url = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:\d+)/\n", address)
        assert url is not None, address
        assert "traffic" in process.stdout.readline()
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline
            answer = httpx.get(f"{url[1]}/v1/bandits/{demo.BANDIT}/stats")
            if answer.status_code == 200 and answer.json()["rounds"] > 20:
                break
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert {"state read", "bandit created", "stopped"} <= {line["message"] for line in lines}
    assert all(line["time"].endswith("+00:00") for line in lines)
    done = invoke("service", "check", tmp_path / "state")
    assert done.exit_code == 0, done.output


def test_the_demo_learns(forge: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward rate rises: what a new user is to watch."""
    server = forge.start(tmp_path / "state", free_port())
    monkeypatch.setattr(demo, "_MEAN_DELAY", 0.3)
    monkeypatch.setattr(demo, "_ROUNDS", 1000)
    demo.drive(server.url, rate=250.0)
    stats = httpx.get(f"{server.url}/v1/bandits/{demo.BANDIT}/stats").json()
    rewards, sums = np.array(stats["history"]["rewards"]), np.array(stats["history"]["reward_sum"])
    assert rewards.sum() > 100, stats["history"]
    before = np.cumsum(rewards) - rewards
    parts = before < rewards.sum() / 10, before > rewards.sum() / 2
    early, late = (sums[part].sum() / rewards[part].sum() for part in parts)
    assert late > early + 0.05
    server.stop()


@pytest.mark.parametrize("missing", ["httptools", "sqlalchemy", "prometheus_client"])
def test_without_the_extra_the_command_says_what_to_install(missing: str) -> None:
    """A missing package is an instruction, not a traceback."""
    code = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv[1:] = ['serve', '--state', 'x']; "
        "from sketchbandit.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert how_to_install("service") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_does_not_stop_a_loop_from_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled code cannot be kept for the next process: this one runs it all the same."""
    pytest.importorskip("numba")
    from sketchbandit.kernels.compiling import compiled  # noqa: PLC0415  (numba is an extra)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    loop = compiled(lambda number: number + 1)
    monkeypatch.setattr(loop._cache._cache_file, "save", no_room)
    assert loop(1) == 2
