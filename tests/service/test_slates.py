"""Slates: several arms shown, each with a reward of its own, by position or by id."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit_service.checking import check, same
from sketchbandit_service.settings import Limits
from sketchbandit_service.storage.database import StorageError
from tests.service.harness import AS_THEY_ARE, DIM, PLAIN, Service, crashing, error_of, in_loop, service
from tests.service.test_rewards import set_clock

ARMS = np.diag([4.0, 3.0, 2.0, 1.0])
STORED = {name: row.tolist() for name, row in zip("abcd", ARMS, strict=True)}


async def shown(found: Service, top: int = 3, **settings: Any) -> Any:
    """A new bandit with slates and four stored arms, and a decision of it."""
    await found.create(slates=True, **{**PLAIN, **settings})
    assert (await found.http.put("/v1/bandits/b/arms", json={"arms": STORED})).status_code == 200
    return (await found.decide(list("abcd"), top=top)).json()


def state(found: Service) -> tuple[Any, ...]:
    """All that a refused request must leave alone."""
    bandit = found.engine.bandit("b")
    waiting = {first: sorted(waiting) for first, waiting in bandit.open.items()}
    return (
        waiting,
        bandit.accounts.totals,
        bandit.accounts.timeline.dump(),
        bandit.open_bytes,
        bandit.policy.dump()[0],
    )


@in_loop
async def test_each_arm_has_its_reward(tmp_path: Path) -> None:
    """By position, by id, several at once, in any order: the policy learns each with its own features."""
    async with service(tmp_path) as found:
        decided = await shown(found)
        assert [ranked["position"] for ranked in decided["top"]] == [0, 1, 2]
        assert [ranked["arm"] for ranked in decided["top"]] == ["a", "b", "c"]
        decision = decided["decision"]
        answer = await found.rewards(decision, {"position": 2, "reward": 1.0}, {"arm": "b", "reward": 0.5})
        assert answer.json() == {
            "decision": decision,
            "status": "learned",
            "rewards": [{"position": 2, "status": "learned"}, {"position": 1, "status": "learned"}],
        }
        stats = await found.stats()
        assert (stats["decisions"], stats["open"], stats["rounds"]) == (1, 1, 2)
        again = await found.rewards(decision, {"arm": "c", "reward": 1.0}, {"position": 0, "reward": 0.25})
        assert [one["status"] for one in again.json()["rewards"]] == ["known", "learned"]
        stats = await found.stats()
        assert (stats["open"], stats["open_bytes"], stats["rounds"]) == (0, 0, 3)
        assert (await found.reward(decision, 0.25)).json()["status"] == "known"
        alone = sb.adaptive(DIM, **AS_THEY_ARE)
        for place, reward in ((2, 1.0), (1, 0.5), (0, 0.25)):
            alone.update(ARMS[place], reward)
        assert np.array_equal(found.engine.bandit("b").policy.theta, alone.theta)


@in_loop
async def test_a_reward_without_a_position_is_of_the_first(tmp_path: Path) -> None:
    """As ever; and for a bandit without slates the others have none, and none is waited for."""
    async with service(tmp_path) as found:
        decision = (await shown(found))["decision"]
        assert (await found.reward(decision, 1.0)).json()["status"] == "learned"
        assert sorted(found.engine.bandit("b").open[_first(found)]) == [1, 2]
        status, message = error_of(await found.reward(decision, 5.0))
        assert (status, "already has the reward 1.0 at position 0, not 5.0" in message) == (409, True)
        body = {"decision": decision, "reward": 2.0, "position": 1}
        assert (await found.http.post("/v1/bandits/b/reward", json=body)).json()["status"] == "learned"
        await found.create("plain")
        decided = (await found.decide(top=3, name="plain")).json()
        status, message = error_of(
            await found.rewards(decided["decision"], {"position": 1, "reward": 1.0}, name="plain")
        )
        assert (status, "slates: true" in message) == (422, True)
        assert (await found.reward(decided["decision"], 1.0, "plain")).json()["status"] == "learned"
        assert (await found.stats("plain"))["open"] == 0


def _first(found: Service) -> int:
    return next(iter(found.engine.bandit("b").open))


BAD = [
    ([{"position": 3, "reward": 1.0}], 422, "has no position 3: it showed 3 arms, counted from 0"),
    ([{"arm": "d", "reward": 1.0}], 422, "did not show the arm 'd'"),
    ([{"position": 0, "reward": 1.0}, {"arm": "a", "reward": 1.0}], 422, "position 0 is given twice"),
    ([{"position": 1, "reward": 1e12}], 422, "rewards must be numbers up to"),
    ([{"position": 1, "reward": 1.0}, {"position": 2, "reward": 5.0}], 409, "the reward 1.0 at position 2"),
    ([{"position": 1, "arm": "b", "reward": 1.0}], 422, "not by both"),
    ([{"position": -1, "reward": 1.0}], 422, "position"),
    ([{"position": 1}], 422, "reward"),
    ([{"action": "b", "reward": 1.0}], 422, "has no actions; name a shown arm by position or by arm"),
    (
        [{"place": 1, "reward": 1.0}],
        422,
        "rewards.0.place: there is no such field; the fields are reward, position",
    ),
    ([], 422, "rewards"),
]


@pytest.mark.parametrize(("given", "status", "says"), BAD)
@in_loop
async def test_bad_rewards_change_nothing(tmp_path: Path, given: Any, status: int, says: str) -> None:
    """If one of several is refused, none is learned from."""
    async with service(tmp_path) as found:
        decision = (await shown(found))["decision"]
        await found.rewards(decision, {"position": 2, "reward": 1.0})
        before = state(found)
        refused, message = error_of(await found.rewards(decision, *given))
        assert refused == status
        assert says in message
        assert state(found) == before


@in_loop
async def test_which_reward_is_meant_is_said_once(tmp_path: Path) -> None:
    """Reward or rewards, and a position beside the one."""
    async with service(tmp_path) as found:
        decision = (await shown(found))["decision"]
        before = state(found)
        several = [{"position": 0, "reward": 1.0}]
        for body in ({}, {"reward": 1.0, "rewards": several}, {"position": 0, "rewards": several}):
            answer = await found.http.post("/v1/bandits/b/reward", json={"decision": decision, **body})
            assert error_of(answer)[0] == 422
        first, tag = decision.split("-")
        assert error_of(await found.reward(f"{int(first, 16) + 1:x}-{tag}", 1.0))[0] == 404
        assert error_of(await found.rewards("ffff-000000000000", {"arm": "a", "reward": 1.0}))[0] == 404
        assert state(found) == before


@in_loop
async def test_the_default_for_each_arm_without_a_reward(tmp_path: Path) -> None:
    """When the time is over: those that were shown and not rewarded; then a late reward is told so."""
    async with service(tmp_path) as found:
        time = set_clock(found)
        decision = (await shown(found, reward_timeout=10.0, default_reward=-1.0))["decision"]
        await found.rewards(decision, {"position": 1, "reward": 1.0})
        time.at += 10.0
        assert error_of(await found.rewards(decision, {"position": 0, "reward": 1.0}))[0] == 410
        await found.upkeep.round()
        stats = await found.stats()
        assert (stats["open"], stats["rewards"], stats["defaults"], stats["rounds"]) == (0, 1, 2, 3)
        assert stats["mean_reward"] == pytest.approx(-1 / 3)
        assert error_of(await found.rewards(decision, {"arm": "c", "reward": 1.0}))[0] == 410
        assert (await found.rewards(decision, {"arm": "b", "reward": 1.0})).json()["status"] == "known"
        again = [ranked["arm"] for ranked in (await found.decide(list("abcd"), top=3)).json()["top"]]
        assert len(again) == 3


@in_loop
async def test_memory_of_slates_is_bounded(tmp_path: Path) -> None:
    """Features of all arms shown count; a slate that is too long is refused."""
    async with service(tmp_path, limits=Limits(open_bytes=5100, slate=3)) as found:
        await shown(found)
        held = (await found.stats())["open_bytes"]
        assert held == 3 * (1 + 8 * DIM + 800)
        assert (await found.decide(list("abcd"), top=3)).status_code == 200
        assert error_of(await found.decide(list("abcd"), top=3))[0] == 429
        await found.create("c", slates=True)
        assert error_of(await found.decide(top=4, name="c"))[0] in (413, 429)
    async with service(tmp_path / "long", limits=Limits(slate=3)) as found:
        await found.create(slates=True)
        status, message = error_of(await found.decide(top=4))
        assert (status, message) == (413, "top is 4; a slate can have up to 3 arms")


@in_loop
async def test_a_key_gives_the_same_slate(tmp_path: Path) -> None:
    """As long as any of its arms waits, also after a restart with a snapshot between its rewards."""
    body = {"arms": ARMS.tolist(), "top": 3}
    async with service(tmp_path) as found:
        await found.create(slates=True)
        path, key = "/v1/bandits/b/decide", {"idempotency-key": "k"}
        first = (await found.http.post(path, json=body, headers=key)).json()
        await found.reward(first["decision"], 1.0)
        assert (await found.http.post(path, json=body, headers=key)).json() == first
    async with service(tmp_path) as found:
        assert (await found.http.post(path, json=body, headers=key)).json() == first
        await found.rewards(first["decision"], {"position": 1, "reward": 0.0}, {"position": 2, "reward": 0.0})
        assert (await found.http.post(path, json=body, headers=key)).json() != first


@in_loop
async def test_a_crash_in_the_middle_of_slates(tmp_path: Path) -> None:
    """Arms rewarded before a snapshot, after it, and never: everything is as it was."""
    random = np.random.default_rng(0)

    async def work(found: Service) -> None:
        await found.create(slates=True, exploration=0.3, parameters={"size": 2, "epsilon": 0.5})
        for part in range(3):
            made = [
                (await found.decide(random.standard_normal((6, DIM)).tolist(), top=4)).json()["decision"]
                for _ in range(6)
            ]
            for place, decision in enumerate(made):
                for position in range(place % 5):
                    await found.rewards(decision, {"position": position, "reward": float(position)})
            if part == 1:
                await found.upkeep.snapshot(found.engine.bandit("b"))
                await found.rewards(made[2], {"position": 3, "reward": 1.0})

    old = (await crashing(tmp_path, work)).engine.bandit("b")
    async with service(tmp_path) as found:
        new = found.engine.bandit("b")
        assert same(new.policy, old.policy)
        assert (new.accounts.totals, new.accounts.timeline.dump()) == (
            old.accounts.totals,
            old.accounts.timeline.dump(),
        )
        assert (new.open_bytes, list(new.open)) == (old.open_bytes, list(old.open))
        assert new.open == old.open
    findings = check(tmp_path)
    assert all(finding.is_good for finding in findings)
    told = next(finding.details for finding in findings if finding.what == "journal")
    assert told == "18 decisions, 72 arms shown, 31 rewards"


@in_loop
async def test_copies_of_the_rewards_of_a_slate(tmp_path: Path) -> None:
    """At once, overlapping, and after a commit that failed: each arm is learned from once."""
    async with service(tmp_path) as found:
        decision = (await shown(found))["decision"]
        real, failures = found.engine.database.commit, [1]

        def fail_once(records: Any, seq: int) -> None:
            if failures:
                failures.pop()
                raise StorageError("no")
            real(records, seq)

        found.engine.database.commit = fail_once  # type: ignore[method-assign]
        pairs = [(0, 1), (1, 2), (0, 2), (2, 1)]
        answers = await asyncio.gather(
            *(found.rewards(decision, *({"position": p, "reward": 1.0} for p in pair)) for pair in pairs)
        )
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 503]
        stats = await found.stats()
        assert (stats["rounds"], stats["open"]) == (3, 0)
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_ids_mean_the_same_whenever_they_are_sent(tmp_path: Path) -> None:
    """An id is offered once; in journals of earlier versions where it was shown twice the first is meant."""
    async with service(tmp_path) as found:
        decision = (await shown(found))["decision"]
        before = state(found)
        twice = await found.decide(["a", [1.0, 0.0, 0.0, 0.0], "a"], top=2)
        assert error_of(twice) == (422, "the arm 'a' is given twice; name each arm once")
        assert state(found) == before
        bandit = found.engine.bandit("b")
        waiting = bandit.open[_first(found)]
        waiting[2] = waiting[2]._replace(arm_id="a")
        for status in ("learned", "known"):
            answer = await found.rewards(decision, {"arm": "a", "reward": 1.0})
            assert answer.json()["rewards"] == [{"position": 0, "status": status}]
        assert bandit.policy.rounds == 1


@in_loop
async def test_rewards_again_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reads however many arms there are: where they were shown, and what is known."""
    async with service(tmp_path, rounds=False) as found:
        decision = (await shown(found, top=4))["decision"]
        given = [{"arm": arm, "reward": 1.0} for arm in "abcd"]
        assert (await found.rewards(decision, *given)).json()["status"] == "learned"
        journal, reads = found.engine.journal, []
        read = journal.read

        def counted(query: Any) -> Any:
            reads.append(query)
            return read(query)

        monkeypatch.setattr(journal, "read", counted)
        assert (await found.rewards(decision, *given)).json()["status"] == "known"
        assert len(reads) == 2


@in_loop
async def test_rewards_of_actions_by_name(tmp_path: Path) -> None:
    """As action or as arm, in a slate and alone; both at once are refused."""
    async with service(tmp_path) as found:
        await found.create(slates=True, actions=["red", "green"])
        asked = {"context": [1.0, 0.0, 0.0, 0.0], "top": 2}
        decision = (await found.http.post("/v1/bandits/b/decide", json=asked)).json()["decision"]
        both = await found.rewards(decision, {"action": "red", "arm": "red", "reward": 1.0})
        assert (error_of(both)[0], "by arm or by action, not by both" in error_of(both)[1]) == (422, True)
        answer = await found.rewards(decision, {"action": "green", "reward": 1.0})
        assert answer.json()["status"] == "learned"
        body = {"decision": decision, "action": "red", "reward": -1.0}
        assert (await found.http.post("/v1/bandits/b/reward", json=body)).json()["status"] == "learned"
        models = found.engine.bandit("b").policy
        assert (models["green"].theta[0] > 0.0, models["red"].theta[0] < 0.0) == (True, True)


@in_loop
async def test_a_slate_that_does_not_fit(tmp_path: Path) -> None:
    """The bound on the features of open decisions holds for all arms of a slate, and nothing is kept."""
    async with service(tmp_path, limits=Limits(open_bytes=2600)) as found:
        await shown(found, top=1)
        before = state(found)
        assert error_of(await found.decide(top=4))[0] == 413
        assert error_of(await found.decide(top=3))[0] == 429
        assert state(found) == before
        assert (await found.decide(top=2)).status_code == 200
