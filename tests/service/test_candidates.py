"""Candidates of a bandit: they learn what it learns, never decide, and can be promoted."""

import asyncio
import copy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.evaluation import AnytimeValue
from sketchbandit_service import shadow_propensities
from sketchbandit_service.candidate_value import Value, Valued, weighted_sums
from sketchbandit_service.chance_bytes import decode
from sketchbandit_service.checking import check, same
from sketchbandit_service.offered import ArmSet
from sketchbandit_service.problems import Unavailable
from sketchbandit_service.settings import MIB, Limits
from sketchbandit_service.storage.records import DecisionRow
from tests.service.harness import DIM, PLAIN, Service, crashing, error_of, in_loop, service

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
PATH = "/v1/bandits/b/candidates"
CANDIDATES: dict[str, dict[str, Any]] = {
    "small": {"policy": "soful", "parameters": {"size": 2}, "explore": {"rule": "ucb", "beta": 0.3}},
    "clicks": {"policy": "oful", "rewards": "logistic", "explore": "greedy"},
    "auto": {"forget": 40},
}


def by_hand() -> dict[str, Any]:
    """The same policies, of the library."""
    return {
        "small": sb.soful(DIM, size=2, explore=sb.UCB(0.3), baseline=True),
        "clicks": sb.oful(DIM, rewards=sb.Logistic(), explore=sb.EpsilonGreedy(0.0), baseline=True),
        "auto": sb.adaptive(DIM, forget=40),
    }


async def put(found: Service, name: str, **settings: Any) -> Any:
    """Add a candidate."""
    return await found.http.put(f"{PATH}/{name}", json=settings)


async def played(found: Service, alone: dict[str, Any], rounds: range) -> None:
    """Decisions and rewards, some of them no clicks; the policies by hand learn the same."""
    for seed in rounds:
        random = np.random.default_rng(seed)
        arms = random.standard_normal((4, DIM)) * [1.0, 1e2, 0.1, 3.0]
        answer = (await found.decide(arms.tolist())).json()
        reward = 1.5 if seed % 7 == 3 else float(random.random() < 0.4)
        assert (await found.reward(answer["decision"], reward)).status_code == 200
        for policy in alone.values():
            try:
                policy.update(arms[answer["index"]], reward)
            except sb.InputError:
                assert reward == 1.5


def held(found: Service, name: str = "b") -> dict[str, Any]:
    """The policies of the candidates."""
    return {one.name: one.policy for one in found.engine.bandit(name).shadows}


def assert_same(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """By name, to the bit but for generators, which the service does not use."""
    assert mine.keys() == theirs.keys()
    for name, policy in mine.items():
        other = copy.deepcopy(theirs[name])
        other.explore = policy.explore
        assert same(policy, other), name


@in_loop
async def test_a_candidate_is_the_policy_fed_by_hand(tmp_path: Path) -> None:
    """To the bit: live, after a kill with a snapshot behind it, and from the journal alone."""
    alone = by_hand()

    async def work(found: Service) -> None:
        await found.create(policy="oful", **PLAIN)
        for name, settings in CANDIDATES.items():
            assert (await put(found, name, **settings)).status_code == 201
        await played(found, alone, range(30))
        assert_same(held(found), alone)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await played(found, alone, range(30, 45))

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert_same(held(found), alone)
        shown = (await found.http.get(f"{PATH}/clicks")).json()
        assert (shown["rounds"], shown["refused"]) == (39, 6)
        await played(found, alone, range(45, 60))
        assert_same(held(found), alone)
        assert (await put(found, "small", **CANDIDATES["small"])).status_code == 200
    assert all(finding.is_good for finding in check(tmp_path))


async def choices(found: Service, policy: Any, rounds: range) -> None:
    """What is decided is what the policy would choose; both learn from it."""
    for seed in rounds:
        random = np.random.default_rng(seed)
        arms = random.standard_normal((6, DIM))
        answer = (await found.decide(arms.tolist())).json()
        assert answer["index"] == policy.select(arms)
        assert answer["mean"] == pytest.approx(policy.mean(arms[answer["index"]]), rel=1e-9, abs=1e-12)
        reward = float(random.standard_normal())
        await found.reward(answer["decision"], reward)
        policy.update(arms[answer["index"]], reward)


@pytest.mark.parametrize("has_snapshot", [False, True])
@in_loop
async def test_a_promoted_candidate_decides(tmp_path: Path, has_snapshot: bool) -> None:
    """From then on, after a kill too; the one before goes on as a candidate, and comes back to the bit."""
    small, first = by_hand()["small"], sb.oful(DIM, baseline=True)

    async def work(found: Service) -> None:
        await found.create(policy="oful", **PLAIN)
        await put(found, "small", **CANDIDATES["small"])
        await played(found, {"small": small, "first": first}, range(20))
        waiting = (await found.decide(np.eye(DIM).tolist())).json()
        answer = await found.http.post(f"{PATH}/small/promote", json={"keep": "first"})
        assert answer.status_code == 200, answer.text
        assert (answer.json()["policy"], answer.json()["candidates"]) == ("soful", ["first"])
        assert (await found.http.post(f"{PATH}/small/promote", json={"keep": "first"})).status_code == 200
        await found.reward(waiting["decision"], 0.5)  # decided by the one before, learned by both
        for policy in (small, first):
            policy.update(np.eye(DIM)[waiting["index"]], 0.5)
        if has_snapshot:
            await found.upkeep.snapshot(found.engine.bandit("b"))
        await choices(found, small, range(20, 30))

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("b")
        assert same(bandit.policy, small)
        assert (bandit.config.policy, bandit.original.policy) == ("soful", "oful")
        assert (await found.http.get("/v1/bandits/b")).json()["promoted"]["name"] == "small"
        assert (await found.create(policy="oful", **PLAIN)).status_code == 200  # clients create it anew
        await choices(found, small, range(30, 40))
        assert (await found.http.post(f"{PATH}/first/promote", json={})).status_code == 200
        assert bandit.policy.rounds == 41
        assert not bandit.shadows
        assert (await found.stats())["policy"] == "oful"
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_candidates_have_the_actions(tmp_path: Path) -> None:
    """Those that there are, those that come, and retired ones as such; a restart knows them too."""
    settings = {"policy": "oful", "explore": {"rule": "ucb", "beta": 0.3}, "parameters": {"ridge": 2.0}}
    alone = sb.PerAction(["a", "b", "c"], lambda: sb.oful(DIM, explore=sb.UCB(0.3), ridge=2.0))
    alone.retire("c")

    async def work(found: Service) -> None:
        await found.create(policy="oful", actions=["a", "b", "c"], explore="ucb")
        await found.http.post("/v1/bandits/b/actions/retire", json={"actions": ["c"]})
        assert (await put(found, "wide", **settings)).status_code == 201
        await found.http.post("/v1/bandits/b/actions", json={"actions": ["d"]})
        await found.http.post("/v1/bandits/b/actions/retire", json={"actions": ["a"]})
        alone.add("d")
        alone.retire("a")
        for seed in range(12):
            context = np.random.default_rng(seed).standard_normal(DIM)
            asked = {"context": context.tolist()}
            answer = (await found.http.post("/v1/bandits/b/decide", json=asked)).json()
            await found.reward(answer["decision"], 0.25)
            alone.update(context, answer["action"], 0.25)
        assert same(held(found)["wide"], alone)
        await found.http.post(f"{PATH}/wide/promote", json={})

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("b")
        assert same(bandit.policy, alone)
        assert (bandit.actions, bandit.retired) == (["b", "d"], ["a", "c"])


# -- bad input ------------------------------------------------------------------------------------------


BAD: list[tuple[dict[str, Any], str]] = [
    ({"policy": "best"}, "unknown policy 'best'"),
    ({"dim": 4}, "dim: there is no such field; the fields are"),
    ({"reward_timeout": 5}, "no such field"),
    ({"explore": {"rule": "ucb", "seed": 1}}, "leave out seed"),
    ({"rewards": "clicks"}, "unknown reward model"),
    ({"rewards": "logistic"}, "default_reward: the reward is -1, but Logistic"),
    ({"reward_range": [1, 1]}, "lowest < highest"),
    ({"reward_range": [0]}, "reward_range"),
    ({"parameters": {"size": "many"}}, "size must be an integer"),
]


@in_loop
async def test_bad_candidates_are_refused(tmp_path: Path) -> None:
    """With what is wrong and what may be written; and nothing is added."""
    async with service(tmp_path, limits=Limits(candidates=2, bandit_bytes=2 * MIB)) as found:
        await found.create(default_reward=-1.0)
        for settings, says in BAD:
            status, message = error_of(await put(found, "c", **settings))
            assert status == 422
            assert says in message
        for name in ("...", "a%2Fb", "%00"):
            assert (await put(found, name)).status_code in {404, 422}
        assert (await found.http.get(PATH)).json() == {"candidates": []}
        assert (await put(found, "one", policy="oful")).status_code == 201
        status, message = error_of(await put(found, "one", policy="oful", exploration=0.5))
        assert (status, "exploration is 0.0, not 0.5" in message) == (409, True)
        status, message = error_of(await put(found, "one", policy="oful", reward_range=[0, 2]))
        assert (status, "reward_range is (0.0, 1.0)" in message) == (409, True)
        await put(found, "two")
        status, message = error_of(await put(found, "three"))
        assert (status, "up to 2; DELETE one first" in message) == (409, True)
        for method, path in (("GET", "x"), ("DELETE", "x"), ("POST", "x/promote"), ("PUT", "x/y")):
            assert (await found.http.request(method, f"{PATH}/{path}", json={})).status_code in {404, 422}
        assert (await found.http.post(f"{PATH}/one")).status_code == 405
        status, message = error_of(await found.http.post(f"{PATH}/two/promote", json={}))
        assert (status, "candidate 'two' is warming up" in message) == (409, True)
        status, message = error_of(await found.http.post(f"{PATH}/one/promote", json={"keep": "two"}))
        assert (status, "already has a candidate 'two'" in message) == (409, True)
        status, message = error_of(await found.http.post(f"{PATH}/one/promote", json={"keep": "b"}))
        assert (status, "cannot become a candidate" in message) == (409, True)
        assert (await found.http.delete(f"{PATH}/two")).json() == {"status": "deleted"}
        assert [one.name for one in found.engine.bandit("b").shadows] == ["one"]


@in_loop
async def test_candidates_share_the_memory_of_their_bandit(tmp_path: Path) -> None:
    """All policies together may take what one bandit may."""
    async with service(tmp_path, limits=Limits(bandit_bytes=4 * MIB)) as found:
        await found.http.put("/v1/bandits/b", json={"dim": 300, "policy": "oful"})
        assert (await put(found, "one", policy="oful")).status_code == 201
        status, message = error_of(await put(found, "two", policy="oful"))
        assert (status, "and 2 candidates can grow to" in message) == (413, True)


# -- what candidates would have earned ------------------------------------------------------------------


TRUTH = np.array([0.2, 0.5, 0.8, 0.3])
"""Probabilities of clicks on the four unit vectors."""


async def clicked(found: Service, rounds: int, seed: int = 0) -> None:
    """Decisions among the unit vectors, and clicks."""
    random = np.random.default_rng(seed)
    for _ in range(rounds):
        answer = (await found.decide()).json()
        await found.reward(answer["decision"], float(random.random() < TRUTH[answer["index"]]))


def value_of(weights: Any, rewards: Any, reward_range: tuple[float, float] = (0.0, 1.0)) -> AnytimeValue:
    """The same by the library, one decision after another."""
    made = AnytimeValue(reward_range)
    made.update(weights, rewards)
    return made


@in_loop
async def test_the_value_of_a_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of inverse propensities, its interval that of the library; after a kill too."""
    monkeypatch.setattr(shadow_propensities, "_REST", 0.0)  # all of them
    greedy = {"policy": "oful", "explore": {"rule": "epsilon-greedy", "epsilon": 0.2}}

    async def work(found: Service) -> None:
        await found.create(policy="oful", explore="ucb", exploration=0.5, reward_timeout=None)
        await put(found, "greedy", **greedy)
        await put(found, "draws", policy="oful", explore="thompson")
        await clicked(found, 40)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await clicked(found, 40, seed=1)
        await found.engine.journal.probe()
        found.engine.judge.close()
        await found.engine.journal.probe()

    before = await crashing(tmp_path, work)
    told = [one.dump() for one in before.engine.bandit("b").shadows]
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("b")
        assert [one.dump() for one in bandit.shadows] == told
        shown = {one["name"]: one["value"] for one in (await found.stats())["candidates"]}
        assert shown["greedy"]["count"] == shown["draws"]["count"] == 80
        metrics = (await found.http.get("/metrics")).text
        assert 'sketchbandit_candidates{bandit="b"} 2.0' in metrics
        assert f'candidate_value{{bandit="b",candidate="draws"}} {shown["draws"]["value"]}' in metrics
    rows = journal(tmp_path)
    for candidate in bandit.shadows:
        mine = [row for row in rows if row.candidate == candidate.number]
        weights, rewards = (
            np.array([row.chance / row.propensity for row in mine]),
            [row.reward for row in mine],
        )
        expected, value = value_of(weights, rewards), shown[candidate.name]
        assert value["value"] == pytest.approx(expected.value, rel=1e-12)
        assert (value["low"], value["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))
        assert value["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
        assert value["verdict"].startswith("80 decisions decide nothing")
        live = value_of(np.ones(80), rewards)
        assert value["live"] == {
            "value": pytest.approx(live.value),
            "low": pytest.approx(live.low),
            "high": pytest.approx(live.high),
        }
        assert weights.mean() == pytest.approx(1.0, abs=0.5)
    assert {row.chance for row in rows if row.candidate == bandit.shadows.by_name["draws"].number} == {
        0.0,
        1.0,
    }
    assert all(finding.is_good for finding in check(tmp_path))


class Row(NamedTuple):
    """A decision, and what a candidate thinks of it."""

    candidate: int
    chance: float
    propensity: float
    reward: float


def journal(state: Path) -> list[Row]:
    """All that tells of candidates, in the order of the rewards."""
    with closing(sqlite3.connect(state / "journal.sqlite")) as connection:
        rows = connection.execute("SELECT chances FROM sketchbandit_chances ORDER BY seq").fetchall()
        known = connection.execute(
            "SELECT d.seq, d.propensity, r.reward FROM sketchbandit_decisions d "
            "JOIN sketchbandit_rewards r ON r.decision = d.seq ORDER BY r.seq"
        ).fetchall()
    chances = [chance for (payload,) in rows for chance in decode(payload)]
    return [
        Row(one.candidate, one.chance, propensity, reward)
        for seq, propensity, reward in known
        for one in chances
        if one.decision == seq
    ]


@in_loop
async def test_candidates_are_asked_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is learned that came after the decision."""
    monkeypatch.setattr(shadow_propensities, "_REST", 0.0)
    async with service(tmp_path) as found:
        await found.create(policy="oful", explore="ucb", exploration=0.5, reward_timeout=None)
        await put(found, "ucb", policy="oful", explore={"rule": "ucb", "beta": 0.1})
        alone, random = sb.oful(DIM, explore=sb.UCB(0.1), baseline=True), np.random.default_rng(3)
        expected = []
        for _ in range(30):
            arms = random.standard_normal((5, DIM))
            answers = [(await found.decide(arms.tolist())).json() for _ in range(2)]
            expected += [float(alone.select(arms) == answer["index"]) for answer in answers]
            for answer in answers:
                await found.reward(answer["decision"], float(arms[answer["index"], 0] > 0))
                alone.update(arms[answer["index"]], float(arms[answer["index"], 0] > 0))
    assert [row.chance for row in journal(tmp_path)] == expected
    assert 0.0 < np.mean(expected) < 1.0


@in_loop
async def test_actions_and_sparse_arms_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name and by place; probabilities are those of the policies."""
    monkeypatch.setattr(shadow_propensities, "_REST", 0.0)
    settings = {"policy": "oful", "explore": {"rule": "ucb", "beta": 0.3}}
    alone = sb.PerAction(["x", "y"], lambda: sb.oful(DIM, explore=sb.UCB(0.3)))
    expected = []
    async with service(tmp_path) as found:
        await found.create(policy="oful", actions=["x", "y"], exploration=1.0, reward_timeout=None)
        await put(found, "c", **settings)
        for seed in range(20):
            context = np.random.default_rng(seed).standard_normal(DIM)
            asked = {"context": context.tolist()}
            answer = (await found.http.post("/v1/bandits/b/decide", json=asked)).json()
            expected.append(float(alone.select(context) == answer["action"]))
            await found.reward(answer["decision"], float(seed % 2))
            alone.update(context, answer["action"], float(seed % 2))
    assert [row.chance for row in journal(tmp_path)] == expected
    assert set(expected) == {0.0, 1.0}
    async with service(tmp_path / "sparse") as found:
        await found.create(policy="oful", exploration=1.0, reward_timeout=None)
        await put(found, "gap", policy="oful", explore={"rule": "inverse-gap", "gamma": 3.0})
        arms = [{"indices": [0], "values": [1.0]}, {"indices": [1], "values": [1.0]}]
        for _ in range(5):
            await found.reward((await found.decide(arms)).json()["decision"], 1.0)
    chances = [row.chance for row in journal(tmp_path / "sparse")]
    assert chances[0] == 0.5  # it has learned nothing yet
    assert all(0.0 < chance < 1.0 for chance in chances)
    assert len(chances) == 5


@in_loop
async def test_probabilities_that_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Thompson sampling come later than rewards and candidates, and all count; after a kill too."""
    monkeypatch.setattr(shadow_propensities, "_REST", 0.0)

    async def work(found: Service) -> None:
        await found.create(
            policy="oful", explore={"rule": "thompson", "samples": 100, "floor": 0.2}, reward_timeout=None
        )
        await put(found, "c", policy="oful")
        await clicked(found, 12)
        await found.settle()
        found.engine.judge.close()
        await found.engine.journal.probe()

    told = (await crashing(tmp_path, work)).engine.bandit("b").shadows.by_name["c"].dump()
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").shadows.by_name["c"].dump() == told
        assert (await found.http.get(f"{PATH}/c")).json()["value"]["count"] == 12


@in_loop
async def test_the_first_arm_of_a_slate_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever its reward comes, while others wait; nothing is kept when it has come."""
    monkeypatch.setattr(shadow_propensities, "_PAUSE", 60.0)  # probabilities come after the reward
    async with service(tmp_path) as found:
        await found.create(policy="oful", exploration=0.5, reward_timeout=None, slates=True)
        await put(found, "c", policy="oful")
        slate = (await found.decide(top=2)).json()["decision"]
        await found.rewards(slate, {"position": 0, "reward": 1.0})
        found.engine.judge.close()
        await found.engine.journal.probe()
        shadows = found.engine.bandit("b").shadows
        assert (await found.http.get(f"{PATH}/c")).json()["value"]["count"] == 1
        assert (shadows._chances, shadows._unjudged, len(found.engine.bandit("b").open)) == ({}, {}, 1)


@in_loop
async def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    """A rule without chance, decisions whose time is not over, rewards outside the range."""
    async with service(tmp_path) as found:
        await found.create(policy="oful", explore="ucb")
        await put(found, "c", policy="oful")
        await clicked(found, 5)
        shown = (await found.http.get(f"{PATH}/c")).json()
        assert (shown["value"], "Some arms are never drawn" in shown["value_note"]) == (None, True)
        await found.create("n", propensities="none")
        await found.http.put("/v1/bandits/n/candidates/c", json={})
        assert (
            "propensities: none" in (await found.http.get("/v1/bandits/n/candidates/c")).json()["value_note"]
        )
        await found.create("e", policy="oful", exploration=0.5, reward_timeout=100.0)
        await found.http.put("/v1/bandits/e/candidates/c", json={"policy": "oful"})
        decided = (await found.decide(name="e")).json()
        await found.reward(decided["decision"], 3.0, "e")
        found.engine.judge.close()
        await found.engine.journal.probe()
        shown = (await found.http.get("/v1/bandits/e/candidates/c")).json()
        assert (shown["value"], "counts 100 seconds" in shown["value_note"]) == (None, True)
        candidate = found.engine.bandit("e").shadows.by_name["c"]
        value = found.engine.bandit("e").valued(candidate, found.engine.clock.now() + 102.0)
        assert value is not None
        assert (value.count, value.live.value, value.live.low) == (1, 3.0, None)


@in_loop
async def test_what_there_is_no_time_for_is_left_out(tmp_path: Path) -> None:
    """Decisions beyond those that may wait; what is held is given back."""
    async with service(tmp_path) as found:
        await found.create(policy="oful", explore="ucb", exploration=0.5)
        await put(found, "c", policy="oful")
        judge, bandit = found.engine.judge, found.engine.bandit("b")
        offered = ArmSet(np.eye(DIM), None)
        for seq in range(shadow_propensities._MOST_WAITING + 3):
            judge.decided(
                bandit,
                DecisionRow(seq, 1, "", 0.0, 0, None, 4, b"", 0, 0, 0.5, 0, None, None, None, None),
                offered,
            )
        assert len(judge._desks[bandit].waiting) == shadow_propensities._MOST_WAITING
        assert judge._held == shadow_propensities._MOST_WAITING * 8 * DIM * DIM
        judge.before_learning(bandit)
        assert (judge._held, judge._desks[bandit].waiting) == (0, [])
        assert b"judgements_left_out_total 3.0" in found.engine.instruments.exposition()
        await bandit.lane.over()
        await asyncio.sleep(0.01)
        assert judge._desks[bandit].not_before > 0.0  # and there is a rest after it


@in_loop
async def test_old_probabilities_are_dropped(tmp_path: Path) -> None:
    """With the decisions that they are of; the value stays, after a restart too."""
    async with service(tmp_path, rounds=False, retention_seconds=0.0, snapshots_kept=1) as found:
        await found.create(policy="oful", explore="ucb", exploration=0.5, reward_timeout=None)
        await put(found, "c", policy="oful")
        await clicked(found, 10)
        found.engine.judge.close()
        await clicked(found, 3)  # they are written with the first or the second commit of these
        await found.upkeep.snapshot(found.engine.bandit("b"))
        oldest = min(rows_of(tmp_path))
        await found.upkeep._retention.drop_old()
        assert oldest not in rows_of(tmp_path)
        told = found.engine.bandit("b").shadows.by_name["c"].dump()
        assert told["value"][0][0] > 0
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").shadows.by_name["c"].dump()["value"][0][0] >= told["value"][0][0]
    assert all(finding.is_good for finding in check(tmp_path))


def rows_of(state: Path) -> list[Any]:
    """Of the table of chances."""
    with closing(sqlite3.connect(state / "journal.sqlite")) as connection:
        return connection.execute("SELECT seq FROM sketchbandit_chances").fetchall()


@in_loop
async def test_a_candidate_that_cannot_be_asked_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward is learned all the same."""
    async with service(tmp_path) as found:
        await found.create(policy="oful", explore="ucb", exploration=0.5)
        await put(found, "c", policy="oful")
        monkeypatch.setattr(shadow_propensities, "_judged", lambda *_: 1 / 0)
        await clicked(found, 3)
        assert (await found.stats())["rounds"] == 3
        assert found.engine.bandit("b").failed is None


# -- bandits that begin with the log of another ---------------------------------------------------------


async def begun(found: Service, name: str, **settings: Any) -> Any:
    """Create a bandit from the log of ``b``."""
    return await found.http.put(f"/v1/bandits/{name}", json={"dim": DIM, "from": "b", **settings})


@pytest.mark.parametrize("name", CANDIDATES)
@in_loop
async def test_a_bandit_from_a_log_is_the_policy_fed_by_hand(tmp_path: Path, name: str) -> None:
    """To the bit: at once, after a kill, from the journal alone, and when the other one is gone."""
    alone = {name: by_hand()[name]}

    async def work(found: Service) -> None:
        await found.create(policy="oful", **PLAIN)
        await played(found, alone, range(30))
        await found.decide()  # open: it tells nothing
        answer = await begun(found, "new", **CANDIDATES[name])
        assert (answer.status_code, answer.json()["from"]) == (
            201,
            {"bandit": "b", "rewards": 30, "dropped": 0},
        )
        assert (await begun(found, "new", **CANDIDATES[name])).status_code == 200
        assert_same({name: found.engine.bandit("new").policy}, alone)
        assert (await found.stats("new"))["rewards"] == 0

    async def goes_on() -> None:
        async with service(tmp_path) as found:
            assert_same({name: found.engine.bandit("new").policy}, alone)
            if "b" in found.engine.registry.bandits:
                await found.play(5)  # of which the new one learns nothing

    await crashing(tmp_path, work)
    await goes_on()
    assert all(finding.is_good for finding in check(tmp_path))
    snapshots = [*(tmp_path / "snapshots").rglob("*.safetensors")]
    for snapshot in snapshots:
        snapshot.rename(snapshot.with_suffix(".away"))
    await goes_on()
    for snapshot in snapshots:
        snapshot.with_suffix(".away").rename(snapshot)
    async with service(tmp_path) as found:
        await found.http.delete("/v1/bandits/b")
        while found.engine.registry.deleted:
            await found.upkeep.round()
    await goes_on()
    assert all(finding.is_good for finding in check(tmp_path))
    for snapshot in (tmp_path / "snapshots").rglob("*.safetensors"):
        snapshot.unlink()
    async with service(tmp_path) as found:
        assert "of the 30 rewards of 'b'" in error_of(await found.http.get("/v1/bandits/new"))[1]


@in_loop
async def test_a_bandit_that_could_not_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is there; its snapshot is no other's; a server that stops does not wait for a log."""

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("of the test")

    async with service(tmp_path) as found:
        await found.create(policy="oful", **PLAIN)
        await found.play(5)
        with monkeypatch.context() as patch:
            patch.setattr(found.engine.journal, "append", refuse)
            assert (await begun(found, "new", policy="oful")).status_code == 503
        assert [*found.engine.registry.bandits] == ["b"]
    async with service(tmp_path) as found:
        await found.create("other")
        assert found.engine.bandit("other").policy.rounds == 0
        assert (await begun(found, "new", policy="oful")).status_code == 201
        monkeypatch.setattr(found.engine.journal, "_is_closing", True)
        assert "shutting down" in error_of(await begun(found, "late", policy="oful"))[1]
        monkeypatch.undo()
    async with service(tmp_path) as found:
        assert found.engine.bandit("new").policy.rounds == 5
        assert found.engine.bandit("other").policy.rounds == 0


@in_loop
async def test_a_log_of_actions(tmp_path: Path) -> None:
    """They are taken, retired ones as such; a restart knows them."""
    async with service(tmp_path) as found:
        await found.create(policy="oful", actions=["x", "y"], explore="greedy")
        for seed in range(8):
            context = np.random.default_rng(seed).standard_normal(DIM).tolist()
            answer = (await found.http.post("/v1/bandits/b/decide", json={"context": context})).json()
            await found.reward(answer["decision"], float(seed % 2))
        await found.http.post("/v1/bandits/b/actions/retire", json={"actions": ["x"]})
        assert (await begun(found, "new", policy="oful", actions=["x"])).status_code == 422
        assert (await begun(found, "new", policy="oful", explore="greedy")).status_code == 201
        assert (await begun(found, "new", policy="oful", explore="greedy")).status_code == 200
        old = found.engine.bandit("b").policy
        assert same(found.engine.bandit("new").policy, old)
    for snapshot in (tmp_path / "snapshots").rglob("*.safetensors"):
        snapshot.unlink()
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("new")
        assert same(bandit.policy, old)
        assert (bandit.actions, bandit.retired) == (["y"], ["x"])


@in_loop
async def test_what_a_log_has_lost_is_said(tmp_path: Path) -> None:
    """Rows that retention dropped are counted in the answer; bad requests create nothing."""
    async with service(tmp_path, rounds=False, retention_seconds=0.0, snapshots_kept=1) as found:
        await found.create(policy="oful", **PLAIN)
        await found.play(6)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.upkeep._retention.drop_old()
        await found.play(4, seed=1)
        answer = (await begun(found, "new", policy="oful", **PLAIN)).json()
        assert answer["from"] == {"bandit": "b", "rewards": 4, "dropped": 6}
        assert found.engine.bandit("new").policy.rounds == 4
        for settings, status, says in (
            ({"dim": 5}, 422, "dim is 5, but 'b', whose log it learns from, has dim 4"),
            ({"from": "nobody"}, 404, "there is no bandit 'nobody'"),
            ({"from": 3}, 422, "from: Input should be a valid string"),
            ({"origin": "b"}, 422, "origin: there is no such field"),
            ({"policy": "best"}, 422, "unknown policy"),
        ):
            refused = await begun(found, "other", **settings)
            assert (refused.status_code, says in refused.text) == (status, True), refused.text
        assert (await begun(found, "new", policy="soful")).status_code == 409
        again = await found.http.put("/v1/bandits/new", json={"dim": DIM, "policy": "oful", **PLAIN})
        assert (again.status_code, "from is 'b', not None" in again.text) == (409, True)
        assert [*found.engine.registry.bandits] == ["b", "new"]


def test_intervals_of_stretches_hold_at_every_moment() -> None:
    """In at least 95 of 100 runs the truth lies within at the end of every stretch; they are not idle."""
    truth, held = 0.4 * 0.8 + 0.6 * 0.3, 0
    for seed in range(100):
        random, value, is_within, width = np.random.default_rng(seed), Value(), True, 1.0
        for _ in range(40):
            chosen = random.random(50) < 0.25  # the first of two arms, which a candidate would show with 0.4
            weights = np.where(chosen, 0.4 / 0.25, 0.6 / 0.75)
            clicks = random.random(50) < np.where(chosen, 0.8, 0.3)
            happened = [weighted_sums(float(w), float(u)) for w, u in zip(weights, clicks, strict=True)]
            value = value.plus(sum(happened[1:], happened[0]))
            told = value.told((0.0, 1.0))
            assert told is not None
            mean, low, high = told.candidate
            assert low is not None
            assert high is not None
            assert low <= mean <= high
            is_within &= low <= truth <= high
            width = high - low
        held += is_within
        assert width < 0.12
    assert held >= 95


def told_of(weights: list[float], rewards: list[float], times: int = 1) -> Valued:
    """What a candidate is said to have earned by these decisions, so many times."""
    happened = [weighted_sums(*one) for one in zip(weights, rewards, strict=True)] * times
    told = Value().plus(sum(happened[1:], happened[0])).told((0.0, 1.0))
    assert told is not None
    return told


def test_a_promotion_is_backed_by_intervals_that_are_apart() -> None:
    """Two arms by a coin, one earns 1 in 4, the other 3 in 4, and a candidate that plays the better one."""
    weights, rewards = [0.0] * 4 + [2.0] * 4, [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    few, many = told_of(weights, rewards, 10), told_of(weights, rewards, 1000)
    assert few.verdict.startswith("80 decisions decide nothing; about ")
    more = int(few.verdict.split("about ")[1].split(" ")[0].replace(",", ""))
    assert told_of(weights, rewards, 10 + more // 4).verdict == ""
    assert many.verdict == ""
    assert many.live.high is not None
    assert many.candidate.low is not None
    assert many.candidate.low > many.live.high
    equal = told_of([0.0, 2.0] * 4, [1.0, 1.0, 0.0, 0.0] * 2, 100)
    assert equal.verdict == "800 decisions decide nothing; nor would 100 times as many, as it looks"


def test_a_candidate_that_was_hardly_ever_logged_has_no_interval() -> None:
    """Its weights are far from 1 on average: the sentence of the library, and the live interval stays."""
    told = told_of([0.25, 0.2, 0.1, 0.3], [1.0, 0.0, 1.0, 0.0], 50)
    assert told.candidate.value == pytest.approx(0.0875)
    assert (told.candidate.low, told.candidate.high) == (None, None)
    assert told.verdict == (
        "the mean weight is 0.21, not 1: the candidate plays what was hardly ever logged, or the logged "
        "probabilities are wrong"
    )
    assert None not in told.live
    assert told_of([1.0] * 4, [0.0, 3.0, 0.0, 1.0]).verdict == "some rewards are outside of reward_range"
