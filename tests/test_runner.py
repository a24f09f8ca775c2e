"""The runner: what it performs, what it keeps, and what it survives."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sketchbandit as sb
from sketchbandit import files, processes
from sketchbandit.simulation import environments, policies, rules
from sketchbandit.simulation.pool import Failure, Result, run_all
from sketchbandit.simulation.runs import Run, perform
from sketchbandit.simulation.specs import Spec, parse, spec
from sketchbandit_paper import plan, runner, store
from sketchbandit_paper.definitions import EXPERIMENTS, choose
from sketchbandit_paper.experiment import Experiment, Series
from sketchbandit_paper.profiles import BETAS, PROFILES, RIDGES, Profile, profile
from sketchbandit_paper.store import Store
from tests.in_process import in_process

TINY = Profile(
    name="tiny",
    rounds=1.0,
    permutations=2,
    tuning_permutations=1,
    tuning_rounds=0.5,
    betas=(0.1,),
    ridges=(0.2, 2.0),
    sweep=2,
)
SMALL = Experiment(
    id="small",
    title="a little race",
    paper="ours",
    environment=spec("gaussian", dim=15, arms=4),
    series=(
        Series(label="OFUL", members=(spec("oful"),)),
        Series(label="SOFUL", members=(spec("soful", size=4), spec("soful", size=8))),
    ),
    rounds=60,
    figure="pareto",
    points=3,
    spectrum="end",
)
A_RUN = Run(
    kind="play",
    environment=SMALL.environment,
    contender=parse("soful:size=4,ridge=1,beta=0.1"),
    rounds=60,
    seed=3,
    points=3,
    spectrum="all",
)
TIMED = ["seconds", "machine"]


def untimed(frame: pd.DataFrame) -> pd.DataFrame:
    """Everything that must not change from run to run."""
    return frame.drop(columns=TIMED)


# -- specs and runs ---------------------------------------------------------------------------------------


def test_specs_are_what_one_types() -> None:
    """Order and 8 or 8.0 make no difference; a str comes back."""
    one = parse("dbslinucb:size=50,epsilon=8.0")
    assert one == parse("dbslinucb:epsilon=8,size=50") == spec("dbslinucb", epsilon=8, size=50)
    assert parse(str(one)) == one
    assert parse("oful:dtype=float32").get("dtype") == "float32"
    assert one.with_settings(size=3).without("epsilon") == spec("dbslinucb", size=3)
    for wrong in ("soful:size", "soful:=3", "soful:size="):
        with pytest.raises(sb.InputError, match="key=value"):
            parse(wrong)
    with pytest.raises(sb.InputError, match="given twice"):
        parse("soful:size=3,size=4")


def test_runs_travel_as_json_and_are_named_by_what_they_are() -> None:
    """Nothing is lost on the way; any difference in settings is another key."""
    tuned = replace(A_RUN, kind="tune", grid=((0.2, 0.1), (2.0, 0.1)), further_seeds=(8, 9))
    for run in (A_RUN, tuned):
        assert Run.from_json(run.to_json()) == run
        assert Run.from_json(run.to_json()).key == run.key
    others = [
        replace(A_RUN, seed=4),
        replace(A_RUN, rounds=61),
        replace(A_RUN, contender=parse("soful:size=5,ridge=1,beta=0.1")),
        replace(A_RUN, environment=spec("gaussian", dim=16, arms=4)),
        replace(A_RUN, points=4),
        tuned,
        replace(tuned, further_seeds=(8,)),
    ]
    assert len({run.key for run in [A_RUN, *others]}) == 1 + len(others)


def test_a_run_gives_what_playing_gives() -> None:
    """Rows are those of sb.play, and the spectral error that of the arms chosen."""
    rows = perform(A_RUN)
    environment = sb.GaussianArms(dim=15, arms=4, seed=3)
    chosen: list[Any] = []
    policy = sb.soful(15, size=4, ridge=1.0, beta=0.1)
    with pytest.warns(sb.SketchTooSmallWarning):
        played = list(sb.play(policy, environment, 60, every=20, watch=chosen.append))
    assert [row["round"] for row in rows] == [20, 40, 60]
    assert [row["regret"] for row in rows] == [row.total_regret for row in played]
    assert [row["certificate"] for row in rows] == [row.certificate for row in played]
    assert rows[-1]["delta"] == pytest.approx(sb.theory.spectral_error_of(np.array(chosen), 4))
    assert rows[0]["delta"] == pytest.approx(sb.theory.spectral_error_of(np.array(chosen[:20]), 4))
    assert [row["rank"] for row in rows] == [15, 15, 15]
    assert rows[-1]["warned"] == policy.health().heading_for_linear_regret
    assert {row["version"] for row in rows} == {sb.__version__}


@pytest.mark.parametrize("bare", [spec("soful", size=4), spec("adaptive", explore="thompson"), spec("oful")])
def test_a_race_finds_what_playing_everything_finds(bare: Spec) -> None:
    """Who comes to the end has the mean regret of its own runs; who does not had more than the best."""
    grid = tuple((ridge, number) for ridge in (0.002, 0.2, 20.0) for number in (0.001, 0.1, 1.0, 100.0))
    rounds, seeds = 120, (3, 8, 9)

    def regrets(pair: tuple[float, float]) -> list[float]:
        """After each round, summed over the seeds."""
        alone = [
            perform(
                replace(A_RUN, contender=policies.tuned(bare, *pair), rounds=rounds, points=rounds, seed=seed)
            )
            for seed in seeds
        ]
        return [sum(row["regret"] for row in at) for at in zip(*alone, strict=True)]

    expected = {pair: regrets(pair) for pair in grid}
    run = replace(A_RUN, kind="tune", contender=bare, rounds=rounds, grid=grid, further_seeds=seeds[1:])
    rows = perform(run)
    assert [(row["ridge"], row["number"]) for row in rows] == list(grid)
    for row in rows:
        so_far = expected[row["ridge"], row["number"]]
        assert row["regret"] == so_far[row["round"] - 1] / len(seeds)
    least = min(so_far[-1] for so_far in expected.values())
    given_up = [row for row in rows if row["round"] < rounds]
    assert all(row["regret"] * len(seeds) > least for row in given_up)
    assert len(given_up) >= 3, "what can never win is not played to the end"
    best = min(expected, key=lambda pair: (expected[pair][-1], *pair))
    (chosen,) = plan.choices(pd.DataFrame(rows)).values()
    assert (chosen.ridge, chosen.number, chosen.regret) == (*best, least / len(seeds))


def test_the_projection_of_cbrap_changes_with_the_permutation() -> None:
    """Its seed is that of the run unless one was given."""
    for asked, wanted in ((spec("cbrap", size=3), 5), (spec("cbrap", size=3, seed=2), 2)):
        policy = policies.build(asked, 9, seed=5)
        assert isinstance(policy, sb.ProjectedLinUCB)
        assert policy.seed == wanted


RULES: dict[str, tuple[str | None, tuple[float | None, ...]]] = {
    "adaptive:explore=thompson": ("scale", (0.01, 0.1)),
    "adaptive:explore=inverse-gap,growth=0.5": ("gamma", (1000.0, 100.0)),
    "adaptive:explore=epsilon-greedy": ("explore.epsilon", (0.01, 0.1)),
    "oful:explore=epsilon-greedy": ("epsilon", (0.01, 0.1)),
    "cbrap:explore=ucb,floor=0.01,size=4": ("beta", (0.01, 0.1)),
    "soful:explore=greedy,size=4": (None, (None,)),
}


@pytest.mark.parametrize("text", RULES)
def test_of_a_rule_its_own_number_is_tuned(text: str) -> None:
    """On the grid of beta, gamma on ten over it; the best is played; who gives one is not tuned."""
    setting, numbers = RULES[text]
    contender = parse(text)
    race = replace(SMALL, series=(Series(label="it", members=(contender,)),))
    amount = replace(TINY, betas=(0.01, 0.1), permutations=1)
    (run,) = plan.tuning_runs([race], amount)
    assert run.grid == tuple((ridge, number) for ridge in (0.2, 2.0) for number in numbers)
    assert Run.from_json(run.to_json()) == run
    tuning = pd.DataFrame(perform(run))
    best = tuning.sort_values(["regret", "ridge", "number"]).iloc[0]
    (final,) = plan.final_runs([race], amount, plan.choices(tuning))
    played = perform(final)[-1]
    assert (played["contender"], played["ridge"], played["number"]) == (
        str(contender),
        best["ridge"],
        best["number"] if setting else None,
    )
    assert not policies.is_given(contender)
    assert policies.is_given(contender.with_settings(ridge=1))
    if setting:
        assert final.contender.get(setting) == best["number"]
        for written in (setting, f"explore.{setting.removeprefix('explore.')}"):
            assert policies.is_given(contender.with_settings(**{written: 1}))


def test_the_rule_that_is_asked_for_is_built() -> None:
    """Flat settings, or with a dot where the policy has one of that name."""
    policy = policies.build(parse("adaptive:epsilon=8,explore=epsilon-greedy,explore.epsilon=0.2"), 200)
    assert (policy.explore.epsilon, policy.sketch.epsilon) == (0.2, 8.0)
    policy = policies.build(parse("cbrap:size=3,explore=thompson,scale=0.3,seed=2,explore.seed=9"), 9)
    assert isinstance(policy, sb.ProjectedLinUCB)
    assert (policy.explore.scale, policy.explore.seed, policy.seed) == (0.3, 9, 2)
    for wrong, words in (
        ("adaptive:explore=boltzmann", "boltzmann.*thompson"),
        ("adaptive:explore=thompson,gamma=3", "gamma"),
        ("adaptive:explore=thompson,scale=-1", "scale"),
        ("adaptive:explore=thompson,delay=-1", "delay"),
        ("adaptive:explore=thompson,delay=soon", "delay"),
    ):
        with pytest.raises(sb.InputError, match=words):
            policies.check(parse(wrong))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("adaptive:explore=thompson,scale=0.1", "Adaptive, Thompson, s = 0.1"),
        ("adaptive:explore=thompson,explore.scale=0.1", "Adaptive, Thompson, s = 0.1"),
        ("adaptive:explore=thompson,horizon=rounds", "Adaptive, horizon = rounds, Thompson"),
        (
            "adaptive:epsilon=8,explore=epsilon-greedy,explore.epsilon=0.05,ridge=2",
            "Adaptive, ε = 8, λ = 2, EpsilonGreedy, ε = 0.05",
        ),
        ("oful:explore=inverse-gap,growth=0.5,gamma=10", "OFUL, InverseGap, gamma = 10, growth = 0.5"),
        ("soful:size=4,explore=ucb,beta=0.2,floor=0.01", "SOFUL, l = 4, UCB, β = 0.2, floor = 0.01"),
        ("oful:explore=greedy,delay=100", "OFUL, delay = 100, Greedy"),
        ("oful:beta=0.2", "OFUL, β = 0.2"),
        ("adaptive", "Adaptive, anytime"),
    ],
)
def test_labels_name_the_rule_and_its_number(text: str, label: str) -> None:
    """After the settings of the policy, so that each number stands with what it belongs to."""
    assert policies.label(parse(text)) == label


@pytest.mark.parametrize("text", ["oful:explore=thompson", "cbrap:size=4,explore=epsilon-greedy"])
def test_the_seed_of_the_run_makes_a_rule_repeat(text: str) -> None:
    """Bit for bit; another one, or one that is given, draws otherwise. Arms are drawn from other numbers."""
    run = Run(
        kind="play", environment=spec("gaussian", dim=15, arms=40), contender=parse(text), rounds=50, seed=3
    )
    once, again = perform(run), perform(run)
    given = perform(replace(run, contender=run.contender.with_settings(**{"explore.seed": 5})))
    assert once[-1]["regret"] == again[-1]["regret"] != given[-1]["regret"]
    first, second = (policies.build(run.contender, 15, seed=seed) for seed in (3, 4))
    assert first.random is not None
    assert second.random is not None
    assert first.random.random() != second.random.random()
    seed = first.explore.seed
    assert seed not in {3, 4}, "the seed of the run draws the arms"
    assert policies.build(run.contender.with_settings(**{"explore.seed": 5}), 15, seed=3).explore.seed == 5


def test_rewards_may_come_late_in_a_run() -> None:
    """As sb.play has it, for tuning too; fewer rounds make the delay shorter in proportion."""
    contender = spec("oful", ridge=2, beta=0.1, delay=7)
    (row,) = perform(replace(A_RUN, contender=contender, points=1, spectrum="no"))
    policy = sb.oful(15, ridge=2.0, beta=0.1)
    *_, last = sb.play(policy, sb.GaussianArms(dim=15, arms=4, seed=3), 60, delay=7)
    assert (row["regret"], row["contender"]) == (last.total_regret, "oful:delay=7")
    (tuned,) = perform(replace(A_RUN, kind="tune", contender=spec("oful", delay=7), grid=((2.0, 0.1),)))
    assert tuned["regret"] == row["regret"]
    late = replace(SMALL, series=(Series(label="late", members=(spec("oful", delay=40),)),))
    assert plan.members_of(late, replace(TINY, rounds=0.25)) == [spec("oful", delay=10)]


def test_the_rule_that_is_timed_is_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each rule and dtype; the settings of the policy itself make no difference."""
    played: list[Any] = []

    def play(policy: Any, *_: Any) -> list[Any]:
        played.append(policy)
        return []

    monkeypatch.setattr(policies, "play", play)
    policies._warm_up.cache_clear()
    for text in (
        "adaptive:explore=thompson,scale=0.1",
        "adaptive:explore=thompson,scale=0.1,ridge=3,epsilon=4,delay=9",
        "adaptive:explore=epsilon-greedy,explore.epsilon=0.5,dtype=float32",
    ):
        policies.warm_up(parse(text))
    policies._warm_up.cache_clear()
    assert [policy.explore.kind for policy in played] == ["thompson"] * 2 + ["epsilon-greedy"] * 2
    assert [policy.sketch.dtype.name for policy in played[1:3]] == ["float64", "float32"]


def test_the_grids_and_amounts_are_the_papers() -> None:
    """beta in 1e-4..1, lambda in 2e-4..2e4, 20 permutations; tuning on permutations of its own."""
    assert np.allclose(BETAS, [1e-4, 1e-3, 1e-2, 1e-1, 1])
    assert np.allclose(RIDGES, 2 * 10.0 ** np.arange(-4, 5))
    paper = profile("paper")
    assert (paper.permutations, paper.rounds, paper.betas, paper.ridges) == (20, 1.0, BETAS, RIDGES)
    everything = choose(["all"])
    tuned = {seed for run in plan.tuning_runs(everything, paper) for seed in (run.seed, *run.further_seeds)}
    chosen = {
        (str(e.environment), str(m), plan.tuning_rounds_of(e, paper)): plan.Tuned(
            ridge=1.0, number=0.1, regret=0.0
        )
        for e in everything
        for m in plan.members_of(e, paper)
    }
    reported = {run.seed for run in plan.final_runs(everything, paper, chosen)}
    assert reported == set(range(20))
    assert not tuned & reported


def test_every_profile_says_what_it_shrinks() -> None:
    """On the figure, in a sentence."""
    assert "25% of the paper's rounds" in PROFILES["quick"].sentence
    assert "3 sizes a method" in PROFILES["quick"].sentence
    assert "20 permutations" in PROFILES["paper"].sentence
    assert "%" not in PROFILES["paper"].sentence
    with pytest.raises(sb.InputError, match="quick, half, standard, paper"):
        profile("slow")


def test_definitions_are_sound() -> None:
    """Every contender can be built, every environment is known, sweeps have the paper's ten sizes."""
    for experiment in EXPERIMENTS.values():
        if experiment.kind == "play":
            for series in experiment.series:
                for member in series.members:
                    policies.check(member)
                    given = experiment.id.startswith(("ridge", "anytime", "forgetting", "tour"))
                    given |= series.label.endswith("untuned default") or experiment.id.endswith("-untuned")
                    assert plan.needs_tuning(experiment, member) != given
    mnist = {series.label: series.members for series in EXPERIMENTS["pareto-mnist"].series}
    assert [member.get("size") for member in mnist["SOFUL"]][::9] == [10, 600]
    assert len(mnist["SOFUL"]) == len(mnist["DBSLinUCB-FD"]) == len(mnist["CBRAP"]) == 10
    epsilons = [float(member.get("epsilon")) for member in mnist["DBSLinUCB-RFD"]]
    assert (min(epsilons), max(epsilons)) == (2.0, 25.0)
    late = EXPERIMENTS["late-rewards-fixed"].series[2].members
    assert [member.get("delay") for member in late] == [0, 100, 1000]
    assert {e.id for e in choose([])} == {
        e.id for e in EXPERIMENTS.values() if e.data in (None, "digits") and not e.optional
    }
    again = Experiment.from_dict(json.loads(json.dumps(asdict(SMALL))))
    assert again == SMALL


def test_a_horizon_is_as_long_as_the_run() -> None:
    """``horizon=rounds`` stands for the rounds played, for the tuning too, which plays fewer."""
    contender = spec("adaptive", horizon="rounds", epsilon=8, size=4, explore="ucb")
    assert policies.build(contender, 200, rounds=500).sketch.horizon == 500
    environment = spec("gaussian", dim=150, arms=4, spectrum="power-law")
    (row,) = perform(Run(kind="play", environment=environment, contender=contender, rounds=40, seed=0))
    assert row["budget"] == 8.0
    assert row["certificate"] <= 8.0
    (alone,) = perform(
        Run(
            kind="play",
            environment=environment,
            contender=contender.with_settings(ridge=2, beta=0.1),
            rounds=30,
            seed=0,
        )
    )
    (tuned,) = perform(
        Run(kind="tune", environment=environment, contender=contender, rounds=30, seed=0, grid=((2.0, 0.1),))
    )
    assert tuned["regret"] == alone["regret"]


def test_tuning_permutations_have_different_targets() -> None:
    """On ten labels five of them see five targets, and none is among those reported."""
    runs = plan.tuning_runs([EXPERIMENTS["adaptive-mnist"]], profile("paper"))
    (seeds,) = {(run.seed, *run.further_seeds) for run in runs}
    assert len({seed % 10 for seed in seeds}) == 5
    assert min(seeds) > profile("paper").permutations


def test_a_thinned_sweep_keeps_its_ends() -> None:
    """First, middle, last."""
    sizes = [m.get("size") for m in plan.series_of(EXPERIMENTS["pareto-mnist"], profile("quick"))[2].members]
    assert sizes == [10, 272, 600]


def test_the_best_pair_is_the_one_with_the_least_mean_regret() -> None:
    """Of those that came to the end; ties to the smaller ridge, then number; other lengths do not count."""
    common = {"kind": "tune", "environment": "e", "contender": "c", "rounds": 10}
    rows = [
        {**common, "ridge": ridge, "number": number, "regret": regret, "round": at}
        for ridge, number, regret, at in (
            (1.0, 0.1, 7, 10),
            (2.0, 1.0, 6, 10),
            (2.0, 0.1, 6, 10),
            (3.0, 0.1, 5, 4),
        )
    ]
    longer = {**common, "rounds": 20, "round": 20, "ridge": 1.0, "number": 0.1, "regret": 0.5}
    assert plan.choices(pd.DataFrame([*rows, longer])) == {
        ("e", "c", 10): plan.Tuned(ridge=2.0, number=0.1, regret=6.0),
        ("e", "c", 20): plan.Tuned(ridge=1.0, number=0.1, regret=0.5),
    }


def test_environments_are_checked() -> None:
    """Unknown ones and unknown settings are listed."""
    with pytest.raises(sb.InputError, match="classification, contextual, gaussian"):
        environments.build(spec("casino"), 0)
    with pytest.raises(sb.InputError, match="it takes dim, arms, noise, spectrum"):
        environments.build(spec("gaussian", size=3), 0)


# -- the pool ---------------------------------------------------------------------------------------------


def outcomes(runs: list[Run], jobs: int = 2) -> list[Result | Failure]:
    """All of them."""
    return [outcome for finished in run_all(runs, jobs) for outcome in finished]


def test_a_failing_run_is_reported_and_the_rest_finished() -> None:
    """Also when it is the first of its worker."""
    runs = [replace(A_RUN, seed=seed) for seed in range(4)]
    bad = replace(A_RUN, contender=parse("soful:size=1,ridge=1,beta=0.1"))
    done = outcomes([bad, *runs])
    (failure,) = [outcome for outcome in done if isinstance(outcome, Failure)]
    assert failure.run == bad
    assert "size" in failure.reason
    assert {outcome.run.seed for outcome in done if isinstance(outcome, Result)} == {0, 1, 2, 3}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Code that every worker runs as it starts."""

    def set_trap(code: str) -> None:
        (tmp_path / "trap").mkdir()
        (tmp_path / "trap" / "sitecustomize.py").write_text(code, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'trap'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    return set_trap


PERFORM = """
import os, signal, sys
from sketchbandit.simulation import runs
perform = runs.perform
def instead(run):
    {}
    return perform(run)
runs.perform = instead
"""


def test_a_killed_worker_costs_its_run_alone(trap: Callable[[str], None]) -> None:
    """Whatever kills it, another is started; the message says how it ended, with its own last words."""
    trap(
        PERFORM.format(
            "if run.seed in (2, 4):\n"
            "        os.write(2, b'caf\\xe9 ' + str(run.seed).encode())\n"
            "        os.kill(os.getpid(), signal.SIGKILL)"
        )
    )
    done = outcomes([replace(A_RUN, seed=seed) for seed in range(6)])
    failures = {outcome.run.seed: outcome.reason for outcome in done if isinstance(outcome, Failure)}
    assert failures.keys() == {2, 4}
    for seed, reason in failures.items():
        assert "exit status -9" in reason
        assert reason.endswith(f"caf\N{REPLACEMENT CHARACTER} {seed}")
        assert reason.count("caf") == 1
    assert len(done) == 6


def test_workers_have_one_thread(trap: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parent was told."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    trap(
        PERFORM.format(
            "import threadpoolctl; import numpy\n"
            "    return [{'threads': max(p['num_threads'] for p in threadpoolctl.threadpool_info())}]"
        )
    )
    (done,) = outcomes([A_RUN])
    assert isinstance(done, Result)
    assert done.rows == [{"threads": 1}]


def test_workers_that_cannot_start_end_the_work(trap: Callable[[str], None]) -> None:
    """Every run would fail: better to say why, once."""
    trap("import sys; sys.exit('no such luck')")
    with pytest.raises(OSError, match=r"(?s)could not start.*no such luck"):
        outcomes([replace(A_RUN, seed=seed) for seed in range(6)])


def test_workers_do_not_import_from_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files called queue.py or json.py where the command is run are nobody's business."""
    for name in ("queue", "hashlib", "json", "tempfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('mine')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (done,) = outcomes([A_RUN])
    assert isinstance(done, Result)


def test_leaving_the_pool_stops_its_workers() -> None:
    """No process outlives an interruption."""
    started: list[subprocess.Popen[str]] = []
    original = processes._start

    def start(module: str, errors: int) -> "subprocess.Popen[str]":
        started.append(original(module, errors))
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_start", start)
        results = run_all([replace(A_RUN, seed=seed) for seed in range(50)], 2)
        next(results)
        results.close()  # type: ignore[attr-defined]
    assert len(started) == 2
    assert all(process.wait(timeout=10) is not None for process in started)


# -- the store --------------------------------------------------------------------------------------------

SETTINGS: dict[str, Any] = {"ids": ["a"], "profile": asdict(TINY), "data": {"spam": "1"}}


def test_what_was_added_is_there_whole_and_once(tmp_path: Path) -> None:
    """Through many parts, gathered ones, a process that died while gathering, and a new process."""
    results = [perform(replace(A_RUN, seed=seed)) for seed in range(3)]
    with Store(tmp_path).open(SETTINGS) as opened:
        for rows in results:
            opened.add([rows])
        before = opened.frame()
        parts = sorted((tmp_path / "runs").iterdir())
        opened._gather()
        pd.testing.assert_frame_equal(opened.frame(), before)
        assert len(list((tmp_path / "runs").iterdir())) == 1
        gathered = next((tmp_path / "runs").iterdir())
        # as if the process had died after writing the new file and before deleting the old ones
        for name in parts:
            name.write_bytes(gathered.read_bytes())
    with Store(tmp_path).open(SETTINGS, resume=True) as opened:
        pd.testing.assert_frame_equal(opened.frame(), before)
        assert opened.finished == {replace(A_RUN, seed=seed).key for seed in range(3)}
        opened.add([perform(replace(A_RUN, seed=7))])
        assert len(opened.frame()) == len(before) + 3


def test_many_parts_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a long reproduction does not leave thousands of files."""
    monkeypatch.setattr(store, "_MOST_PARTS", 4)
    rows = perform(A_RUN)
    with Store(tmp_path).open(SETTINGS) as opened:
        for seed in range(11):
            opened.add([[{**row, "run": f"{seed}", "seed": seed} for row in rows]])
            assert len(list((tmp_path / "runs").iterdir())) <= 5
        assert opened.frame()["seed"].nunique() == 11


def test_results_of_other_settings_or_versions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless told to delete them; more ids of the same profile are welcome."""
    Store(tmp_path).open(SETTINGS).close()
    with pytest.raises(sb.InputError, match=r"--resume.*--fresh.*--out"):
        Store(tmp_path).open(SETTINGS)
    other = {**SETTINGS, "profile": {**asdict(TINY), "permutations": 9}}
    with pytest.raises(sb.InputError, match="profile"):
        Store(tmp_path).open(other, resume=True)
    with pytest.raises(sb.InputError, match="another copy of spam"):
        Store(tmp_path).open({**SETTINGS, "data": {"spam": "2"}}, resume=True)
    more = {**SETTINGS, "ids": ["b"], "data": {"mnist": "3"}}
    with Store(tmp_path).open(more, resume=True) as opened:
        assert (opened.manifest() or {})["ids"] == ["a", "b"]
        assert (opened.manifest() or {})["data"] == {"spam": "1", "mnist": "3"}
        opened.add([perform(A_RUN)])
    with pytest.raises(sb.InputError, match="experiment"):  # a race of one's own is something else
        Store(tmp_path).open({**SETTINGS, "experiment": {"id": "race"}}, resume=True)
    monkeypatch.setattr(store, "__version__", "99.0")
    with pytest.raises(sb.InputError, match=rf"version = {sb.__version__}, and now it is 99\.0"):
        Store(tmp_path).open(SETTINGS, resume=True)
    with Store(tmp_path).open(other, fresh=True) as opened:
        assert opened.frame().empty


def test_fresh_deletes_what_we_wrote_and_nothing_else(tmp_path: Path) -> None:
    """A folder of the user's may be named by mistake."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.pdf").write_text("mine", encoding="utf-8")
    with Store(tmp_path).open(SETTINGS, fresh=True) as opened:
        opened.add([perform(A_RUN)])
    for name in ("report.html", "figures/a.png"):
        (tmp_path / name).write_text("ours", encoding="utf-8")
    with Store(tmp_path).open(SETTINGS, fresh=True) as opened:
        assert opened.frame().empty
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {".lock", "manifest.json", str(Path("figures", "mine.pdf"))}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """The second is told; the lock goes with the first."""
    with Store(tmp_path).open(SETTINGS), pytest.raises(sb.InputError, match="in use by another process"):
        Store(tmp_path).open(SETTINGS, resume=True)
    Store(tmp_path).open(SETTINGS, resume=True).close()


@pytest.mark.usefixtures("here")
def test_a_full_disk_leaves_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the system's; every run written before can be read, and the work goes on later."""
    calls = []

    def full(path: Path, payload: bytes) -> None:
        if path.suffix == ".parquet":
            calls.append(path)
            if len(calls) > 2:
                raise OSError(28, "No space left on device")
        files.replace_file(path, payload)

    with monkeypatch.context() as patch:
        patch.setattr(store, "replace_file", full)
        with pytest.raises(OSError, match="No space"):
            runner.run([SMALL], TINY, out=tmp_path, jobs=1)
    before = Store(tmp_path).frame()
    assert before["run"].nunique() >= 2
    outcome = runner.run([SMALL], TINY, out=tmp_path, jobs=1, resume=True)
    merged = outcome.rows.merge(before, how="inner")
    assert len(merged) == len(before), "what was there was kept, timings included"


def test_foreign_and_damaged_parts(tmp_path: Path) -> None:
    """Files that are not ours are left alone; a damaged one of ours is named."""
    with Store(tmp_path).open(SETTINGS) as opened:
        opened.add([perform(A_RUN)])
    (tmp_path / "runs" / "mine.parquet").write_bytes(b"mine")
    with Store(tmp_path).open(SETTINGS, resume=True) as opened:
        assert len(opened.frame()) == 3
    (tmp_path / "runs" / "part-00000000.parquet").write_bytes(b"junk")
    with pytest.raises(sb.FileError, match=r"part-00000000\.parquet is damaged.*--resume"):
        Store(tmp_path).open(SETTINGS, resume=True)


def test_a_report_of_the_users_is_not_overwritten(tmp_path: Path) -> None:
    """A folder with a report that is not ours is refused."""
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(sb.InputError, match=r"a report\.html that is not ours"):
        Store(tmp_path).open(SETTINGS, fresh=True)


def test_damaged_folders_are_said(tmp_path: Path) -> None:
    """A broken manifest, results without one, a file in the way."""
    Store(tmp_path / "a").open(SETTINGS).close()
    (tmp_path / "a" / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(sb.FileError, match="damaged"):
        Store(tmp_path / "a").open(SETTINGS, resume=True)
    with Store(tmp_path / "b").open(SETTINGS) as opened:
        opened.add([perform(A_RUN)])
    (tmp_path / "b" / "manifest.json").unlink()
    with pytest.raises(sb.FileError, match=r"no manifest\.json"):
        Store(tmp_path / "b").open(SETTINGS)
    (tmp_path / "c").write_text("in the way", encoding="utf-8")
    for inside in ("c", "c/d"):
        with pytest.raises(sb.InputError, match="cannot write"):
            Store(tmp_path / inside).open(SETTINGS)


# -- all of it --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_results(tmp_path: Path) -> None:
    """To the bit but for timings, here or in two processes, in whatever order runs finish."""
    with in_process():
        one = runner.run([SMALL], TINY, out=tmp_path / "one", jobs=1)
    two = runner.run([SMALL], TINY, out=tmp_path / "two", jobs=2)
    assert not one.failures
    pd.testing.assert_frame_equal(untimed(one.rows), untimed(two.rows), check_exact=True)
    # three contenders: one tuning run of two cells each, and two permutations of three points
    assert len(one.rows) == 3 * 2 + 3 * 2 * 3
    assert one.rows["machine"].notna().all()


@pytest.mark.usefixtures("here")
def test_resuming_does_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished reproduction starts no run at all."""
    first = runner.run([SMALL], TINY, out=tmp_path, jobs=1)

    def never(runs: list[Run], jobs: int) -> Any:
        assert not runs, f"{len(runs)} runs would be done again in {jobs} processes"
        return iter(())

    monkeypatch.setattr(runner, "run_all", never)
    again = runner.run([SMALL], TINY, out=tmp_path, resume=True)
    pd.testing.assert_frame_equal(first.rows, again.rows)


@pytest.mark.usefixtures("here")
def test_a_failed_run_is_tried_again_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a contender whose tuning failed is left out of the rest."""

    def failing(runs: list[Run], jobs: int) -> Any:
        for finished in run_all(runs, jobs):
            yield [Failure(o.run, "lost") if o.run.contender.get("size") == 4 else o for o in finished]

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_all", failing)
        outcome = runner.run([SMALL], TINY, out=tmp_path, jobs=1)
    assert [failure.reason for failure in outcome.failures] == ["lost"]
    assert "soful:size=4" not in set(outcome.rows["contender"])
    again = runner.run([SMALL], TINY, out=tmp_path, jobs=1, resume=True)
    clean = runner.run([SMALL], TINY, out=tmp_path / "clean", jobs=1)
    pd.testing.assert_frame_equal(untimed(again.rows), untimed(clean.rows))


REPRODUCTION = """
import sys
from pathlib import Path
from tests.test_runner import LONG, TINY
from sketchbandit_paper import runner
runner.run([LONG], TINY, out=Path(sys.argv[1]), jobs=2, resume=True)
"""
LONG = replace(SMALL, rounds=4000)


def test_killed_and_resumed_is_never_killed(tmp_path: Path) -> None:
    """kill -9 again and again: nothing finished is lost or redone, and the results are equal to the bit."""
    root = Path(__file__).parents[1]
    paths = f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": paths}
    seen: list[pd.DataFrame] = []
    for moment in (1, 3, 6):
        process = subprocess.Popen([sys.executable, "-c", REPRODUCTION, tmp_path / "killed"], env=environment)
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("killed/runs/part-*.parquet"))) < moment:
            assert time.monotonic() < deadline
            assert process.poll() is None, "it finished before it could be killed"
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        seen.append(Store(tmp_path / "killed").frame())
        assert seen[-1]["run"].nunique() >= moment
    resumed = runner.run([LONG], TINY, out=tmp_path / "killed", jobs=2, resume=True)
    with in_process():
        clean = runner.run([LONG], TINY, out=tmp_path / "clean", jobs=1)
    pd.testing.assert_frame_equal(untimed(resumed.rows), untimed(clean.rows), check_exact=True)
    for before in seen:
        kept = resumed.rows[resumed.rows["run"].isin(set(before["run"]))].reset_index(drop=True)
        pd.testing.assert_frame_equal(kept, before)  # timings too: those runs were not done again


def test_bad_contenders_and_data_are_found_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written."""
    monkeypatch.setenv("SKETCHBANDIT_OPENML", "http://127.0.0.1:9")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SKETCHBANDIT_DATA", raising=False)
    wrong = replace(SMALL, series=(Series(label="SOFUL", members=(spec("soful", size=1),)),))
    with pytest.raises(sb.InputError, match="size"):
        runner.run([wrong], TINY, out=tmp_path / "out")
    missing = replace(SMALL, environment=spec("classification", data="mnist"))
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz"):
        runner.run([missing], TINY, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_setting_of_both_the_sketch_and_the_rule_is_not_guessed() -> None:
    """``epsilon`` is the sketch's; whoever means the rule's has to say so."""
    for text in (
        "adaptive:explore=epsilon-greedy,explore.epsilon=0.1",
        "oful:explore=epsilon-greedy,epsilon=0.1",
    ):
        rules.refuse_ambiguous(parse(text))
    both = "adaptive:epsilon=8,explore=epsilon-greedy,explore.epsilon=0.1"
    rules.refuse_ambiguous(parse(both))
    with pytest.raises(sb.InputError, match=r"write explore\.epsilon=0\.1, beside the sketch's"):
        rules.refuse_ambiguous(parse("adaptive:explore=epsilon-greedy,epsilon=0.1"))
