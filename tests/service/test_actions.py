"""Bandits with actions: a model for each, one context for all; actions come and go."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from scipy import sparse

import sketchbandit as sb
from sketchbandit_service.checking import check, same
from sketchbandit_service.exporting import export
from sketchbandit_service.settings import MIB, Limits
from tests.service.harness import AS_THEY_ARE, DIM, PLAIN, Service, crashing, error_of, in_loop, service

NAMES = ["red", "green", "blue"]
CONTEXT = [1.0, 0.5, 0.0, -0.5]


async def choose(found: Service, context: Any = None, **rest: Any) -> Any:
    """POST a decision among actions."""
    body = {"context": CONTEXT if context is None else context, **rest}
    return await found.http.post("/v1/bandits/b/decide", json=body)


async def actions(found: Service, *names: str) -> Any:
    """POST actions."""
    return await found.http.post("/v1/bandits/b/actions", json={"actions": names})


@pytest.mark.parametrize("explore", ["ucb", {"rule": "inverse-gap", "gamma": 3.0, "floor": 0.1}])
@in_loop
async def test_decisions_are_those_of_the_models(tmp_path: Path, explore: Any) -> None:
    """Dense and sparse contexts, some of the actions or all: the same choices and probabilities."""
    random = np.random.default_rng(0)
    async with service(tmp_path) as found:
        await found.create(actions=NAMES, explore=explore, parameters=AS_THEY_ARE)
        alone = sb.PerAction(NAMES, lambda: found.engine.bandit("b").config.build()._template)
        draws = np.random.default_rng(0).spawn(1)[0]  # the service's own are seeded so in tests
        for number in range(40):
            context = random.standard_normal(DIM)
            some = NAMES if number % 3 else NAMES[1:]
            row = sparse.csr_array(context)
            sent = {"indices": row.indices.tolist(), "values": row.data.tolist()}
            given = sent if number % 2 else context.tolist()
            rest = {} if number % 3 else {"actions": some}
            answer = (await choose(found, given, **rest)).json()
            wanted = alone.choose(context, some, random=draws)
            assert (answer["action"], answer["arm"]) == (wanted.action, wanted.action)
            assert some[answer["index"]] == answer["action"]
            assert answer["propensity"] == pytest.approx(wanted.probability)
            assert answer["mean"] == pytest.approx(wanted.mean, abs=1e-12)
            reward = float(random.standard_normal())
            assert (await found.reward(answer["decision"], reward)).json()["status"] == "learned"
            alone.update(context, answer["action"], reward)
        assert np.allclose(found.engine.bandit("b").policy["blue"].theta, alone["blue"].theta)
        stats = await found.stats()
        assert (stats["actions"], stats["rounds"], stats["is_healthy"]) == (3, 40, True)
        assert "3 models; the worst is that of" in stats["health"]
        assert {share["arm"] for share in stats["shares"]} <= set(NAMES)


@in_loop
async def test_actions_come_and_go(tmp_path: Path) -> None:
    """A new one is tried, a retired one is not offered but learns from late rewards, and may come back."""
    async with service(tmp_path) as found:
        await found.create(actions=NAMES, **PLAIN)
        late = (await choose(found, actions=["red"])).json()["decision"]
        assert (await actions(found, "black", "red")).json() == {"actions": [*NAMES, "black"], "retired": []}
        gone = await found.http.delete("/v1/bandits/b/actions/red")
        assert gone.json() == {"actions": ["green", "blue", "black"], "retired": ["red"]}
        assert (await found.reward(late, 5.0)).json()["status"] == "learned"
        assert found.engine.bandit("b").policy["red"].rounds == 1
        assert (await choose(found)).json()["action"] != "red"
        assert error_of(await choose(found, actions=["red"])) == (
            422,
            "the action 'red' is retired; POST it to /actions to offer it again",
        )
        assert (await actions(found, "red")).json()["retired"] == []
        assert (await choose(found)).json()["action"] == "red"  # what it learned is there
        for name in (*NAMES, "black"):
            assert (await found.http.delete(f"/v1/bandits/b/actions/{name}")).status_code == 200
        status, message = error_of(await choose(found))
        assert (status, "all of its actions are retired" in message) == (422, True)
        assert (await found.http.get("/v1/bandits/b/actions")).json()["actions"] == []
        await found.create(actions=NAMES, **PLAIN)  # clients create it at every start: that changes nothing
        assert (await found.stats())["actions"] == 0


BAD = [
    ({"context": CONTEXT, "actions": ["pink"]}, "has no action 'pink'; POST it to /actions first"),
    ({"context": CONTEXT, "actions": ["red", "red"]}, "an action is given twice"),
    ({"context": CONTEXT, "actions": []}, "the list of actions is empty"),
    ({"context": [1.0]}, "the context has 1 features, but the dim of bandit 'b' is 4"),
    ({"context": [*CONTEXT, 0.0]}, "the context has 5 features"),
    ({"context": [1e300, 0.0, 0.0, 0.0]}, "the context"),
    ({"context": {"indices": [9], "values": [1.0]}}, "the context has an index outside 0..3"),
    ({"context": "red"}, "context"),
    ({"arms": [CONTEXT]}, "has actions: send a context of 4 features, and no arms"),
    ({}, "has actions: send a context"),
    ({"context": CONTEXT, "top": 4}, "top is 4, but there are only 3 arms"),
]


@pytest.mark.parametrize(("body", "says"), BAD)
@in_loop
async def test_bad_decisions(tmp_path: Path, body: Any, says: str) -> None:
    """Each is refused with what to send instead, and nothing is changed."""
    async with service(tmp_path) as found:
        await found.create(actions=NAMES)
        status, message = error_of(await found.http.post("/v1/bandits/b/decide", json=body))
        assert status == 422
        assert says in message
        assert (await found.stats())["decisions"] == 0


@in_loop
async def test_bad_bandits_and_actions(tmp_path: Path) -> None:
    """Names twice or none, too many, arms where there are actions and the other way round."""
    limits = Limits(actions=4, bandit_bytes=MIB)
    async with service(tmp_path, limits=limits) as found:
        for names in ([], ["a", "a"], [""], ["x" * 129], "ab", [1], ["."], [".."], ["a/../.."]):
            answer = await found.http.put("/v1/bandits/b", json={"dim": DIM, "actions": names})
            assert error_of(answer)[0] == 422, names
        too_many = await found.http.put("/v1/bandits/b", json={"dim": DIM, "actions": list("abcde")})
        assert error_of(too_many) == (413, "5 actions, retired ones included; a bandit has up to 4")
        large = await found.http.put("/v1/bandits/b", json={"dim": 200, "actions": list("abc")})
        assert "3 models of adaptive" in error_of(large)[1]
        assert not found.engine.registry.bandits
        await found.create(actions=NAMES)
        await found.create("arms")
        assert error_of(await actions(found, "x", "y"))[0] == 413
        assert "no part between slashes may be . or .." in error_of(await actions(found, ".."))[1]
        assert error_of(await found.http.delete("/v1/bandits/b/actions/pink"))[0] == 404
        for _ in range(2):  # again is no error: clients repeat what was not answered
            gone = await found.http.delete("/v1/bandits/b/actions/red")
            assert (gone.status_code, gone.json()["retired"]) == (200, ["red"])
        assert error_of(await actions(found, "x", "y"))[0] == 413  # retired ones hold memory too
        for arm in (".", "..", "a/./b"):
            put = await found.http.put("/v1/bandits/arms/arms", json={"arms": {arm: CONTEXT}})
            assert (error_of(put)[0], ". or .." in error_of(put)[1]) == (422, True)
        put = await found.http.put("/v1/bandits/b/arms", json={"arms": {"a": CONTEXT}})
        assert (error_of(put)[0], "has actions" in error_of(put)[1]) == (422, True)
        for request in (
            found.http.get("/v1/bandits/arms/actions"),
            found.http.post("/v1/bandits/arms/actions", json={"actions": ["a"]}),
        ):
            status, message = error_of(await request)
            assert (status, "chooses among arms" in message) == (422, True)
        context = await found.http.post("/v1/bandits/arms/decide", json={"context": CONTEXT})
        assert (error_of(context)[0], "stored" in error_of(context)[1]) == (422, True)
        kind = {"content-type": "application/x-npy"}
        npy = await found.http.post("/v1/bandits/b/decide", content=b"x", headers=kind)
        assert (error_of(npy)[0], "as JSON" in error_of(npy)[1]) == (422, True)
        assert found.engine.bandit("b").policy.actions == ("green", "blue")


@in_loop
async def test_the_same_action_added_at_once(tmp_path: Path) -> None:
    """It is one action, also for the journal; and many at once are no way around the limit."""
    async with service(tmp_path, limits=Limits(actions=12)) as found:
        await found.create(actions=NAMES)
        answers = await asyncio.gather(*(actions(found, "black") for _ in range(5)))
        assert {answer.status_code for answer in answers} == {200}
        assert found.engine.bandit("b").policy.actions == (*NAMES, "black")
        answers = await asyncio.gather(*(actions(found, *(f"{i}-{k}" for k in range(4))) for i in range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 413, 413]
        gone = await asyncio.gather(*(found.http.delete("/v1/bandits/b/actions/0-0") for _ in range(3)))
        assert {answer.status_code for answer in gone} == {200}
        order = found.engine.bandit("b").policy.actions
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").policy.actions == order
    assert all(finding.is_good for finding in check(tmp_path))


@pytest.mark.parametrize("rule", ["ucb", "thompson", "inverse-gap"])
@in_loop
async def test_a_crash_changes_nothing(tmp_path: Path, rule: str) -> None:
    """Actions added and retired before a snapshot and after it, slates, late rewards: all as it was."""
    random = np.random.default_rng(5)

    async def play(found: Service, rounds: int) -> None:
        for number in range(rounds):
            answer = (await choose(found, random.standard_normal(DIM).tolist(), top=2)).json()
            if number % 3:
                await found.rewards(answer["decision"], {"arm": answer["top"][1]["arm"], "reward": 1.0})
            if number % 2:
                await found.reward(answer["decision"], float(random.standard_normal()))

    async def work(found: Service) -> None:
        explore = {"rule": rule, "floor": 0.2}
        await found.create(
            actions=NAMES, slates=True, explore=explore, parameters={"size": 2, "epsilon": 0.5}
        )
        await play(found, 8)
        await actions(found, "black")
        await found.http.delete("/v1/bandits/b/actions/red")
        await play(found, 4)
        await found.settle()
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await actions(found, "white", "red")
        await found.http.delete("/v1/bandits/b/actions/green")
        await play(found, 8)
        await found.settle()

    old = (await crashing(tmp_path, work)).engine.bandit("b")
    assert old.policy.actions == ("red", "blue", "black", "white")
    for snapshots in ("kept", "gone"):
        if snapshots == "gone":
            for path in tmp_path.glob("snapshots/*/*"):
                path.unlink()
        async with service(tmp_path) as found:
            new = found.engine.bandit("b")
            assert same(new.policy, old.policy)
            assert (new.policy.actions, new.policy.retired) == (old.policy.actions, old.policy.retired)
            assert (new.accounts.totals, new.accounts.timeline.dump()) == (
                old.accounts.totals,
                old.accounts.timeline.dump(),
            )
            assert (list(new.open), new.open_bytes) == (list(old.open), old.open_bytes)
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_the_log_names_the_actions(tmp_path: Path) -> None:
    """The one chosen, all that were offered, the context, the probability."""
    async with service(tmp_path / "state") as found:
        await found.create(actions=NAMES, log_arms=True, explore={"rule": "thompson", "scale": 0.5})
        answer = (await choose(found, actions=NAMES[:2])).json()
        asked = {"decisions": [{"context": CONTEXT}, {"context": [1.0]}, {"arms": [CONTEXT]}]}
        batch = (await found.http.post("/v1/bandits/b/decide/batch", json=asked)).json()["decisions"]
        assert [one.get("status_code") for one in batch] == [None, 422, 422]
        await found.settle()
    assert export(tmp_path / "state", tmp_path / "log") == 2
    first, second = parquet.read_table(tmp_path / "log").to_pylist()
    assert (first["arm_id"], first["arm_count"], first["actions"]) == (answer["action"], 2, NAMES[:2])
    assert (second["actions"], second["feature_values"], second["arms"]) == (NAMES, CONTEXT, None)
    assert (first["propensity"], first["propensity_kind"]) == (0.5, "estimate")
