"""The bake-off: rivals learn a reward only after choosing, and results are kept."""

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.bakeoff.__main__ import main
from benchmarks.bakeoff.contestants import CONTESTANTS, DEFAULT, UNIFORM
from benchmarks.bakeoff.libraries import LIBRARIES, InstallError, Library, python_with
from benchmarks.bakeoff.players import PolicyPlayer
from benchmarks.bakeoff.playing import Played, play, play_elsewhere
from benchmarks.bakeoff.remote import GRACE, PlayError, Worker
from benchmarks.bakeoff.rivals import wire
from benchmarks.bakeoff.rivals.first_arm import FirstArm
from benchmarks.bakeoff.rivals.loop import TooSlowError, choices
from benchmarks.bakeoff.running import Limits, Run, left_out, missing
from benchmarks.bakeoff.store import Result, Store
from benchmarks.bakeoff.streams import CONDITIONS, Condition, Stream, streams
from scipy import sparse

import sketchbandit as sb
from tests.bakeoff_results import BY_NAME, RIVAL, result

ROOT = Path(__file__).parents[1]
PLAIN, LATE = CONDITIONS["plain"], Condition("late", delay=3)
ENVIRONMENT = sb.Classification(np.eye(6), [0, 0, 0, 1, 1, 1], seed=3)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """The smallest rival in a process of its own."""
    made = Worker(Path(sys.executable), "first_arm")
    yield made
    made.close()


def elsewhere(worker: Worker, condition: Condition = PLAIN, limit: float = 30.0, **settings: int) -> Played:
    """A run of it."""
    request = {"rival": "first arm", "settings": settings, "seed": 0, "limit": limit}
    return play_elsewhere(worker, request, ENVIRONMENT, 40, condition)


@pytest.mark.parametrize(
    "condition", [PLAIN, LATE, CONDITIONS["times 100"], CONDITIONS["plus 10"]], ids=lambda one: one.name
)
def test_a_rival_elsewhere_plays_as_it_would_here(worker: Worker, condition: Condition) -> None:
    """Choices follow from the rewards that have come: late ones late, and the last not at all."""
    player = FirstArm()
    regret, on_their_way = 0.0, []
    for number, drawn in enumerate(ENVIRONMENT.rounds(40)):
        chosen = player.choose(number, drawn.arms)
        regret += drawn.regret(chosen)
        on_their_way.append((number, float(condition.rewards(drawn)[chosen])))
        if number >= condition.delay:
            player.learn(*on_their_way[number - condition.delay])
    played = elsewhere(worker, condition)
    assert played.regret == regret
    assert played.bytes == len(player.waiting) == condition.delay
    assert played.seconds > 0.0


def test_a_reward_is_seen_after_its_choice_alone() -> None:
    """What a player is told is that of its own choice, ``delay`` choices later, and in order."""
    events: list[Any] = []

    class Witness:
        def choose(self, number: int, arms: Any) -> int:
            events.append(number)
            return int(arms)

        def learn(self, number: int, reward: float) -> None:
            events.append((number, reward))

    rounds = [(0, [5.0, 6.0]), (1, [7.0, 8.0]), (1, [9.0, 10.0])]
    assert choices(Witness(), rounds, 1, time.monotonic() + 30.0) == [0, 1, 1]
    assert events == [0, 1, (0, 5.0), 2, (1, 8.0)]
    with pytest.raises(TooSlowError, match="too slow: stopped in round 1"):
        choices(Witness(), rounds, 0, time.monotonic() - 1.0)


def test_a_failure_is_told_and_the_worker_plays_on(worker: Worker) -> None:
    """The error of the library is the error of the run; what is slow is stopped, what hangs is ended."""
    with pytest.raises(PlayError, match="ValueError: no wish to play 2 arms"):
        elsewhere(worker, fail_at=5)
    with pytest.raises(PlayError, match="TypeError"):
        elsewhere(worker, unknown=1)
    assert elsewhere(worker).regret > 0.0
    with pytest.raises(PlayError, match="too slow: stopped in round 1"):
        elsewhere(worker, limit=-1.0)
    with pytest.raises(PlayError, match="too slow: no answer"):
        elsewhere(worker, limit=0.3 - GRACE, sleep_at=0)
    assert elsewhere(worker).regret > 0.0


def test_a_worker_that_dies_leaves_its_last_words() -> None:
    """A library that cannot be imported ends the worker."""
    broken = Worker(Path(sys.executable), "no_such_file")
    with pytest.raises(PlayError, match="No module named"):
        elsewhere(broken)
    broken.close()


@pytest.mark.parametrize("arms", [np.arange(6.0).reshape(2, 3), sparse.csr_array(np.eye(3, 4)), None])
def test_messages_arrive_as_they_were_sent(arms: Any) -> None:
    """Dense, sparse, or no arms at all."""
    pipe, rewards = io.BytesIO(), np.array([[1.0, 0.0]])
    wire.send(pipe, {"delay": 7}, arms, rewards)
    pipe.seek(0)
    message, got, paid = wire.receive(pipe)
    assert message == {"delay": 7}
    if arms is None:
        assert got is paid is None
    else:
        assert type(got) is type(arms)
        assert np.array_equal(paid, rewards)
        assert np.array_equal(sparse.csr_array(got).toarray(), sparse.csr_array(arms).toarray())
    with pytest.raises(EOFError):
        wire.receive(pipe)


def test_our_policies_play_as_in_the_loop_of_the_library() -> None:
    """The same regret as ``sb.play``, late rewards included; rewards times 100 change the reward alone."""
    *_, last = sb.play(sb.oful(6), ENVIRONMENT, 40, delay=3)
    played = play(PolicyPlayer(sb.oful(6), 0), ENVIRONMENT, 40, LATE, 30.0)
    assert played.regret == last.total_regret
    policies = [sb.oful(6), sb.oful(6)]
    for policy, condition in zip(policies, (PLAIN, CONDITIONS["times 100"]), strict=True):
        policy.update(np.eye(6), np.zeros(6))
        play(PolicyPlayer(policy, 0), ENVIRONMENT, 1, condition, 30.0)
    assert np.allclose(policies[1].theta, 100.0 * policies[0].theta)


def test_an_environment_is_made_once_and_a_failure_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer's last line is the error; a finished environment of the same versions is used again."""
    library = Library("nowhere", "with_nowhere", ("nowhere==1.0",))
    (tmp_path / "file").touch()
    with pytest.raises(InstallError, match="file"):
        python_with(library, tmp_path / "file")
    commands: list[list[str]] = []

    def install(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (tmp_path / "nowhere").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", install)
    assert python_with(library, tmp_path) == python_with(library, tmp_path)
    assert [command[-1] for command in commands] == [str(tmp_path / "nowhere"), "nowhere==1.0"]
    python_with(library._replace(requirements=("nowhere==2.0",)), tmp_path)
    assert commands[-1][-1] == "nowhere==2.0"


def test_every_rival_has_a_player_and_a_reason() -> None:
    """No contestant without a file, a version, a setting and a reason; no name twice."""
    folder = ROOT / "benchmarks" / "bakeoff" / "rivals"
    for library in LIBRARIES.values():
        assert (folder / f"{library.module}.py").is_file()
        assert library.version
    for one in CONTESTANTS:
        assert one.setting
        assert one.why
        assert (one.kind == "rival") == (one.family in LIBRARIES)
    assert len(BY_NAME) == len(CONTESTANTS)


def test_streams_have_seeds_of_their_own() -> None:
    """Every target and seed draws its own rounds, from seeds below 100; all targets come first."""
    found = streams("digits", 10)
    assert len({one.environment_seed for one in found}) == 100
    assert max(one.environment_seed for one in found) < 100 <= min(one.player_seed for one in found)
    assert [one.target for one in found[:10]] == list(range(10))
    assert Stream("digits", 4, 2).environment(None).target == 4


def test_only_what_is_missing_is_played(tmp_path: Path) -> None:
    """Kept results are found again; another setting, condition or length is another run."""
    path = tmp_path / "results.jsonl"
    store = Store(path)
    runs = [Run(BY_NAME[name], Stream("digits", 0, 0), PLAIN, 2000) for name in (DEFAULT, RIVAL)]
    store.add(result(DEFAULT, 5.0))
    store.add(result(DEFAULT, 7.0))
    again = Store(path)
    assert missing(runs, again) == runs[1:]
    assert [one.regret for one in again.results.values()] == [7.0]
    assert missing([runs[0]._replace(rounds=100)], again)
    assert missing([runs[0]._replace(condition=CONDITIONS["late"])], again)
    again.forget([DEFAULT], ["mnist"], ["plain"])
    assert not missing(runs[:1], Store(path))
    again.forget([DEFAULT], ["digits"], ["plain"])
    assert missing(runs[:1], Store(path))
    path.write_text("{}\n")
    with pytest.raises(SystemExit, match=r"line 1 is no result.*--fresh"):
        Store(path)


def test_limits_leave_out_the_slow_and_the_broken(tmp_path: Path) -> None:
    """Time that is spent, three failures, or one that is final; a run that succeeded keeps it in the game."""
    run = Run(BY_NAME[RIVAL], Stream("digits", 1, 0), PLAIN, 2000)
    limits = Limits(run=60.0, cell=10.0)

    def reason(*results: Result) -> str:
        store = Store(tmp_path / "none.jsonl")
        store.results = {one.key: one for one in results}
        return left_out(run, store, limits)

    failed = [result(RIVAL, target=target, error="ValueError: no") for target in range(2, 5)]
    assert not reason()
    assert not reason(result(RIVAL, took=9.0))
    assert "10 s on digits are spent" in reason(result(RIVAL, took=11.0))
    assert not reason(result(RIVAL, took=11.0, condition="late"))
    assert not reason(*failed[:2])
    assert "cannot play digits: ValueError: no" in reason(*failed)
    assert not reason(*failed, result(RIVAL))
    assert "cannot play" in reason(result(RIVAL, error="MemoryError: 24 GiB"))
    run = run._replace(contestant=BY_NAME[DEFAULT])
    assert not reason(result(DEFAULT, took=11.0), result(DEFAULT, error="MemoryError: 24 GiB", target=2))


def test_the_program_plays_measures_and_writes_the_page(tmp_path: Path) -> None:
    """A small bake-off: run twice it plays nothing again; told wrongly it says what to do."""
    page, out = tmp_path / "page.md", tmp_path / "out"

    def run(*options: str) -> None:
        main(
            [
                "--out",
                str(out),
                "--page",
                str(page),
                "--sets",
                "digits",
                "--seeds",
                "1",
                "--rounds",
                "20",
                *options,
            ]
        )

    with pytest.raises(SystemExit, match="no results yet: run without --report"):
        run("--report")
    run("--only", DEFAULT, UNIFORM, "--conditions", "plain")
    kept = (out / "results.jsonl").read_text()
    assert {json.loads(line)["target"] for line in kept.splitlines()} == set(range(10))
    assert len((out / "speeds.jsonl").read_text().splitlines()) == 2
    assert "## Claims" in page.read_text()
    assert (tmp_path / "images" / "bakeoff" / "bakeoff.png").stat().st_size > 1000
    run("--only", DEFAULT, "--conditions", "plain")
    assert (out / "results.jsonl").read_text() == kept
    run("--only", UNIFORM, "--conditions", "plain", "--fresh", "--seeds", "2")
    assert len((out / "results.jsonl").read_text().splitlines()) == 30
    with pytest.raises(SystemExit, match="nobody is called nobody; choose a part of: the default"):
        run("--only", "nobody")
