"""Rules over HTTP: what may be written, the probability of every decision, restarts, the log."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from sketchbandit.explore.base import RULES
from sketchbandit_service.checking import check, same
from sketchbandit_service.choosing import chances
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.exporting import export
from sketchbandit_service.settings import Limits
from tests.service.harness import AS_THEY_ARE, DIM, PLAIN, Service, crashing, error_of, in_loop, service
from tests.service.test_rewards import set_clock

EXACT = [
    "ucb",
    {"rule": "ucb", "beta": 0.5, "floor": 0.2},
    {"rule": "inverse-gap", "gamma": 5.0, "growth": 0.5},
    {"rule": "inverse-gap", "gamma": 5.0, "eliminate": 0.3},
    {"rule": "epsilon-greedy", "epsilon": 0.3},
    {"rule": "greedy", "floor": 0.1},
]
THOMPSON = {"rule": "thompson", "scale": 0.5}


def exported(state: Path, out: Path) -> list[dict[str, Any]]:
    """The rows of the log."""
    export(state, out)
    rows: list[dict[str, Any]] = parquet.read_table(out).to_pylist()
    return rows


@pytest.mark.parametrize("explore", EXACT)
@in_loop
async def test_every_decision_tells_its_probability(tmp_path: Path, explore: Any) -> None:
    """The one that the same policy tells for the arm, as the answer, the ranking and the log have it."""
    random = np.random.default_rng(0)
    async with service(tmp_path / "state") as found:
        await found.create(explore=explore, slates=True, parameters=AS_THEY_ARE)
        alone = found.engine.bandit("b").config.build()
        answers = []
        for _ in range(30):
            arms = random.standard_normal((5, DIM))
            answer = (await found.decide(arms.tolist(), top=2)).json()
            told = alone.probabilities(arms)
            assert answer["propensity_kind"] == "exact"
            assert answer["propensity"] == pytest.approx(told[answer["index"]], rel=1e-12)
            second = answer["top"][1]
            left = np.delete(np.arange(5), answer["index"])
            chance = alone.probabilities(arms[left])[np.flatnonzero(left == second["index"])[0]]
            if explore != "ucb" and "eliminate" not in explore:  # of the others the means decide alone
                assert second["propensity"] == pytest.approx(chance, rel=1e-9)
            reward = float(arms[answer["index"], 0])
            await found.reward(answer["decision"], reward)
            alone.update(arms[answer["index"]], reward)
            answers.append(answer)
        assert (await found.stats())["explore"] == (explore if isinstance(explore, str) else explore["rule"])
    rows = exported(tmp_path / "state", tmp_path / "log")
    assert [row["propensity"] for row in rows if row["position"] == 0] == [a["propensity"] for a in answers]
    assert {row["propensity_kind"] for row in rows} == {"exact"}


@in_loop
async def test_exploration_is_the_floor(tmp_path: Path) -> None:
    """Under either name p = (1 - share)·rule + share/K; the same settings in other words are the same."""
    async with service(tmp_path) as found:
        await found.create("old", **PLAIN, exploration=0.4)
        await found.create("new", parameters=AS_THEY_ARE, explore={"rule": "ucb", "floor": 0.4})
        arms = np.diag([3.0, 1.0, 1.0, 1.0]).tolist()
        for name in ("old", "new"):
            answers = [(await found.decide(arms, name)).json() for _ in range(50)]
            assert {(a["index"] == 0, round(a["propensity"], 12)) for a in answers} == {
                (True, 0.7),
                (False, 0.1),
            }
        await found.create("t", explore="thompson")
        again = await found.create("t", explore={"rule": "thompson", "scale": 0.1, "floor": 0.0})
        assert again.status_code == 200
        shown = (await found.http.get("/v1/bandits/t")).json()
        assert shown["explore"] == {"rule": "thompson", "scale": 0.1, "samples": 10_000, "floor": 0.0}
        assert (await found.create("t", explore=shown["explore"])).status_code == 200


@in_loop
async def test_a_theorem_s_radius_for_a_rule(tmp_path: Path) -> None:
    """An object where the rule takes one; it is kept over a restart, and the same again is no error."""
    radius = {"noise": 0.1, "theta_norm": 1.0, "arm_norm": 1.0, "delta": 0.01}
    for name, setting in (("ucb", "beta"), ("thompson", "scale")):
        rule = {"rule": name, setting: radius}
        async with service(tmp_path / name) as found:
            await found.create(explore=rule)
            await found.play(3)
            policy = found.engine.bandit("b").policy
        async with service(tmp_path / name) as found:
            assert same(found.engine.bandit("b").policy, policy)
            assert (await found.create(explore=rule)).status_code == 200


BAD = [
    ("nonsense", "unknown exploration rule 'nonsense'; choose from ucb, thompson"),
    ({"scale": 0.1}, '{"rule": "thompson", "scale": 0.1}'),
    ({"rule": "thompson", "scale": -1}, "at least 0, got -1; it takes scale, samples, floor"),
    ({"rule": "thompson", "scale": "much"}, "scale"),
    ({"rule": "thompson", "gamma": 1}, "thompson has no setting 'gamma'; it takes scale, samples, floor"),
    ({"rule": "greedy", "floor": 1.5}, "floor"),
    ({"rule": "greedy", "floor": -0.1}, "floor"),
    ({"rule": "epsilon-greedy", "epsilon": 2}, "epsilon"),
    ({"rule": "inverse-gap", "gamma": {"noise": 1, "speed": 2}}, "it takes gamma, growth, eliminate, floor"),
    ({"rule": "thompson", "seed": 3}, "leave out seed"),
    ({"rule": "thompson", "per": "batch"}, "leave out per"),
    ({"rule": "thompson", "samples": 10**9}, "give at most 100000"),
    (5, 'a mapping such as {"rule": "thompson", "scale": 0.1}, got 5'),
    ([], "a mapping such as"),
    ("ucb" * 1000, "unknown exploration rule"),
    ({"rule": ["ucb"]}, "unknown exploration rule"),
]


@pytest.mark.parametrize(("explore", "says"), BAD)
@in_loop
async def test_bad_rules_are_refused(tmp_path: Path, explore: Any, says: str) -> None:
    """At creation, with what is wrong and what may be written; and nothing is created."""
    async with service(tmp_path) as found:
        status, message = error_of(
            await found.http.put("/v1/bandits/b", json={"dim": DIM, "explore": explore})
        )
        assert status == 422
        assert says in message
        assert not found.engine.registry.bandits


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"explore": {"rule": "ucb", "floor": 0.1}, "exploration": 0.1}, "give one of them"),
        ({"parameters": {"explore": "ucb"}}, "explore is a setting of its own"),
        ({"parameters": {"explore.floor": 0.1}}, "explore is a setting of its own"),
        ({"parameters": {"scale": 0.1}, "explore": "thompson"}, "adaptive has no setting 'scale'"),
        (
            {"parameters": {"sise": 3}, "policy": "oful"},
            "can be ridge, beta, dtype, baseline, scaling, intercept",
        ),
        ({"parameters": {"beta": 0.1}, "explore": "thompson"}, "leave out beta"),
        ({"propensities": "guess"}, "propensities"),
        ({"exploration": 1.5}, "exploration"),
    ],
)
@in_loop
async def test_settings_that_contradict(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    """A share said twice, a rule among the parameters, a radius said twice."""
    async with service(tmp_path) as found:
        status, message = error_of(await found.http.put("/v1/bandits/b", json={"dim": DIM, **settings}))
        assert status == 422
        assert says in message
        assert not found.engine.registry.bandits


@in_loop
async def test_thompson_is_estimated_after_the_answer(tmp_path: Path) -> None:
    """The estimate is that of the policy as it was; for slates too; rewards may come before it."""
    random = np.random.default_rng(1)
    async with service(tmp_path / "state") as found:
        await found.create(explore=THOMPSON, slates=True, reward_timeout=None, parameters=AS_THEY_ARE)
        alone = found.engine.bandit("b").config.build()
        wanted: list[float] = []
        for _ in range(6):
            arms = random.standard_normal((4, DIM))
            answer = (await found.decide(arms.tolist(), top=2)).json()
            assert (answer["propensity"], answer["propensity_kind"]) == (None, "estimate")
            wanted += chances(alone.scores(arms), [ranked["index"] for ranked in answer["top"]])
            reward = float(random.standard_normal())
            await found.reward(answer["decision"], reward)
            alone.update(arms[answer["index"]], reward)
        await found.settle()
        assert found.engine.bandit("b").accounts.timeline.view("all", 0.0).weighted[0].count == 6
        recent = (await found.stats())["recent"]
        assert [arm["propensity"] for arm in recent[::-1]] == wanted
    rows = exported(tmp_path / "state", tmp_path / "log")
    assert [row["propensity"] for row in rows] == wanted
    assert {row["propensity_kind"] for row in rows} == {"estimate"}
    assert all(finding.is_good for finding in check(tmp_path / "state"))


def test_chances_of_a_slate_are_those_of_the_policy() -> None:
    """In two steps as in one, copies of an arm included."""
    random = np.random.default_rng(2)
    rule: dict[str, Any] = {"rule": "thompson", "scale": 1.0, "floor": 0.1}
    policy = BanditConfig(DIM, parameters=AS_THEY_ARE, explore=rule).build()
    for _ in range(5):
        policy.update(random.standard_normal(DIM), float(random.standard_normal()))
    arms = random.standard_normal((6, DIM))
    arms[4] = arms[1]
    for seed in range(10):
        slate = policy.slate(arms, 4, random=np.random.default_rng(seed))
        indices = policy.top(arms, 4, random=np.random.default_rng(seed)).tolist()
        assert list(chances(policy.scores(arms), indices)) == [choice.probability for choice in slate]


@in_loop
async def test_estimates_that_are_left_out(tmp_path: Path) -> None:
    """By the setting, for very many arms, or by a crash: null in the log, and nothing else is lost."""

    async def work(found: Service) -> None:
        await found.create(explore=THOMPSON, propensities="none")
        answer = (await found.decide()).json()
        assert (answer["propensity"], answer["propensity_kind"]) == (None, "none")
        await found.create("many", explore=THOMPSON)
        await found.decide(np.ones((101, DIM)).tolist(), "many")
        await found.create("long", explore={**THOMPSON, "samples": 100_000}, slates=True)
        await found.decide(np.ones((11, DIM)).tolist(), "long", top=10)
        await found.create("crashed", explore=THOMPSON)
        found.engine.estimator._thread.shutdown()  # as if it had not come to it
        decision = (await found.decide(name="crashed")).json()["decision"]
        await found.reward(decision, 1.0, "crashed")
        assert "sketchbandit_estimates_left_out_total 2.0" in (await found.http.get("/metrics")).text

    await crashing(tmp_path / "state", work)
    async with service(tmp_path / "state") as found:
        assert (await found.stats("crashed"))["rounds"] == 1
        assert (await found.stats("crashed"))["comparison"] is None
    rows = exported(tmp_path / "state", tmp_path / "log")
    assert [(row["propensity"], row["propensity_kind"]) for row in rows] == [(None, None)] * 13


@in_loop
async def test_estimates_that_never_come_are_not_announced(tmp_path: Path) -> None:
    """Too many arms, or too many draws: kind none, and the notes name a rule that helps."""
    async with service(tmp_path) as found:
        await found.create(explore=THOMPSON)
        await found.http.put("/v1/bandits/b/candidates/c", json={"policy": "oful"})
        arms = {f"arm-{place}": np.ones(DIM).tolist() for place in range(101)}
        await found.http.put("/v1/bandits/b/arms", json={"arms": arms})
        answer = (await found.http.post("/v1/bandits/b/decide", json={})).json()
        assert (answer["propensity"], answer["propensity_kind"]) == (None, "none")
        await found.reward(answer["decision"], 1.0)
        await found.create("long", explore={**THOMPSON, "samples": 100_000}, slates=True)
        eleven = np.ones((11, DIM)).tolist()
        for top, kind in ((10, "none"), (9, "estimate")):
            asked = {"arms": eleven, "top": top}
            for _ in range(2):  # the second time by its key, from the journal
                headers = {"idempotency-key": f"k{top}"}
                told = await found.http.post("/v1/bandits/long/decide", json=asked, headers=headers)
                assert told.json()["propensity_kind"] == kind
        await found.decide(eleven, "long", top=10)
        assert "a choice of 10 among 11 arms" in (await found.stats("long"))["comparison_note"]
        await found.create("few", explore=THOMPSON)
        await found.decide(name="few")
        assert "More time" in (await found.stats("few"))["comparison_note"]
    async with service(tmp_path) as found:
        stats = await found.stats()
        for note in (stats["comparison_note"], stats["candidates"][0]["value_note"]):
            assert "1 among 101 arms" in note
            assert "inverse-gap or epsilon-greedy" in note
            assert "More time" not in note


@in_loop
async def test_answers_do_not_wait_for_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions and rewards go on while one takes its time; beyond 64 that wait the others go without."""
    gate = threading.Event()

    def slow(scores: Any, chosen: list[int]) -> Iterator[float]:
        gate.wait(10)
        return chances(scores, chosen)

    monkeypatch.setattr("sketchbandit_service.estimating.chances", slow)
    monkeypatch.setattr("sketchbandit_service.estimating._REST", 0.0)
    async with service(tmp_path / "state") as found:
        await found.create(explore=THOMPSON)
        for _ in range(70):
            decided = (await found.decide()).json()
            assert (await found.reward(decided["decision"], 1.0)).json()["status"] == "learned"
        assert not gate.is_set()
        assert "sketchbandit_estimates_left_out_total 6.0" in (await found.http.get("/metrics")).text
        gate.set()
        await found.settle()
    rows = exported(tmp_path / "state", tmp_path / "log")
    assert [row["propensity_kind"] for row in rows] == ["estimate"] * 64 + [None] * 6
    assert all(finding.is_good for finding in check(tmp_path / "state"))


@in_loop
async def test_a_shutdown_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates that are not made in time are left out; nothing else is. The thread ends soon, too."""

    def slow(scores: Any, chosen: list[int]) -> Iterator[float]:
        for _ in range(200):
            time.sleep(0.05)
            yield from chances(scores, chosen)

    monkeypatch.setattr("sketchbandit_service.estimating._PATIENCE", 0.05)
    monkeypatch.setattr("sketchbandit_service.estimating.chances", slow)
    async with service(tmp_path / "state") as found:
        await found.create(explore=THOMPSON)
        for _ in range(20):
            await found.decide()
        started = time.perf_counter()
    found.engine.estimator._thread.shutdown(wait=True)
    assert time.perf_counter() - started < 1.5
    kinds = [row["propensity_kind"] for row in exported(tmp_path / "state", tmp_path / "log")]
    assert (len(kinds), kinds[-1]) == (20, None)


@pytest.mark.parametrize("rule", sorted(RULES.built_in))
@in_loop
async def test_a_crash_changes_nothing(tmp_path: Path, rule: str) -> None:
    """Whatever is drawn, the policy is what the journal says, with a snapshot on the way or none."""

    async def work(found: Service) -> None:
        await found.create(explore={"rule": rule, "floor": 0.1}, slates=True)
        await found.play(10)
        decision = (await found.decide(top=3)).json()["decision"]
        await found.upkeep.snapshot(found.engine.bandit("b"))  # estimates may still come
        await found.rewards(decision, {"position": 1, "reward": 1.0})
        await found.play(10, seed=1)
        await found.settle()

    old = (await crashing(tmp_path, work)).engine.bandit("b")
    async with service(tmp_path) as found:
        new = found.engine.bandit("b")
        assert same(new.policy, old.policy)
        assert (new.accounts.totals, new.accounts.timeline.dump()) == (
            old.accounts.totals,
            old.accounts.timeline.dump(),
        )
        assert new.accounts._held.dump() == old.accounts._held.dump()
        assert sum(found.count for _, found in new.accounts._held.due(1e18)) == 20
        assert new.accounts._unweighed == {}
        assert [[(d.position, d.propensity) for d in waiting.values()] for waiting in new.open.values()] == [
            [(d.position, d.propensity) for d in waiting.values()] for waiting in old.open.values()
        ]
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_the_log_tells_what_a_uniform_choice_would_earn(tmp_path: Path) -> None:
    """2,000 decisions by inverse gaps: the truth is within the interval, of the log and of the stats."""
    random = np.random.default_rng(3)
    theta, truth = np.array([0.6, 0.3, -0.2, 0.1]), []
    async with service(tmp_path / "state", limits=Limits(waiting=5000)) as found:
        await found.create(explore={"rule": "inverse-gap", "gamma": 20.0}, reward_timeout=None)
        for _ in range(10):
            sets = random.random((200, 5, DIM))
            asked = {"decisions": [{"arms": arms.tolist()} for arms in sets]}
            decided = (await found.http.post("/v1/bandits/b/decide/batch", json=asked)).json()["decisions"]
            chance = sets @ theta
            truth += chance.mean(axis=1).tolist()
            given = [
                {"decision": one["decision"], "reward": float(random.random() < chances_of[one["index"]])}
                for one, chances_of in zip(decided, chance, strict=True)
            ]
            answer = await found.http.post("/v1/bandits/b/reward/batch", json={"rewards": given})
            assert answer.status_code == 200
        stats = await found.stats()
        comparison = stats["comparison"]
        assert "only if the arm does not influence whether a reward is sent" in stats["comparison_note"]
    rows = exported(tmp_path / "state", tmp_path / "log")
    weights = np.array([1.0 / (row["arm_count"] * row["propensity"]) for row in rows])
    weighted = weights * [row["reward"] for row in rows]
    assert len(rows) == 2000
    assert comparison["uniform"] == pytest.approx(weighted.sum() / weights.sum())
    assert comparison["low"] <= np.mean(truth) <= comparison["high"] < comparison["low"] + 0.1
    assert comparison["mean_reward"] > comparison["high"]  # and the bandit has learned


@in_loop
async def test_clicks_do_not_count_before_what_was_not_clicked(tmp_path: Path) -> None:
    """Decisions are compared when their time is over, all of a stretch at once; a restart loses none."""

    async def show(found: Service, count: int) -> float:
        """Decisions, of which each fourth is clicked at once and the others never; the share of clicks."""
        for place in range(count):
            decided = (await found.decide()).json()
            if place % 4 == 0:
                assert (await found.reward(decided["decision"], 1.0)).status_code == 200
        return 0.25

    async with service(tmp_path, rounds=False, limits=Limits(waiting=5000)) as found:
        time = set_clock(found)
        await found.create(explore={"rule": "greedy", "floor": 1.0}, reward_timeout=600.0)
        share = await show(found, 200)
        stats = await found.stats()
        assert stats["comparison"] is None
        assert "0 rewards with a known propensity" in stats["comparison_note"]
        assert "A decision counts 600 seconds (reward_timeout) after it" in stats["comparison_note"]
        time.at += 300.0
        await show(found, 40)
        time.at += 310.0
        await show(found, 4)  # records that would let go what is held, before the defaults are taken
        assert (await found.stats())["comparison"] is None
        await found.upkeep.round()
        await found.upkeep.snapshot(found.engine.bandit("b"))
    async with service(tmp_path, rounds=False) as found:
        stats = await found.stats()
        assert (stats["comparison"]["count"], stats["comparison"]["mean_reward"]) == (200, share)
        assert stats["comparison_note"] is None
        time = set_clock(found)
        time.at += 1000.0
        await found.upkeep.round()
        for over in ("hour", "all"):
            stats = (await found.http.get(f"/v1/bandits/b/stats?range={over}")).json()
            assert (stats["comparison"]["count"], stats["comparison"]["mean_reward"]) == (244, share)


@in_loop
async def test_no_rest_at_shutdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is estimated without pauses."""
    monkeypatch.setattr("sketchbandit_service.estimating._REST", 1e6)
    async with service(tmp_path / "state") as found:
        await found.create(explore=THOMPSON)
        for _ in range(5):
            await found.decide()
    kinds = [row["propensity_kind"] for row in exported(tmp_path / "state", tmp_path / "log")]
    assert kinds == ["estimate"] * 5


@in_loop
async def test_rankings_that_would_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused where the rule draws for each place; the first arm alone, and other rules, are not."""
    monkeypatch.setattr("sketchbandit_service.choosing._MOST_RANKED", 11)
    async with service(tmp_path) as found:
        for rule, status in (("thompson", 422), ("inverse-gap", 422), ("epsilon-greedy", 200)):
            await found.create(rule, explore=rule)
            answer = await found.decide(name=rule, top=3)
            assert answer.status_code == status
            if status == 422:
                assert "top times arms may be 11; ask for fewer" in error_of(answer)[1]
            assert (await found.decide(name=rule, top=2)).status_code == 200
