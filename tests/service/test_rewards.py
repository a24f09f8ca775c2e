"""Rewards that come late, out of order, or never; bounds on what is open; time."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit_service.ordering import Clock
from sketchbandit_service.settings import Limits
from sketchbandit_service.storage.database import StorageError
from tests.service.harness import (
    AS_THEY_ARE,
    DIM,
    PLAIN,
    Service,
    crashing,
    error_of,
    in_loop,
    service,
)


class Time:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        """Now."""
        return self.at


def set_clock(found: Any) -> Time:
    """Give the service a clock that stands still."""
    time = Time()
    clock: Clock = found.engine.clock
    clock._offset, clock._monotonic = clock.now() - time.at, time
    return time


@in_loop
async def test_nobody_answers(tmp_path: Path) -> None:
    """After the timeout the default is learned, once; a late reward is told so."""
    async with service(tmp_path) as found:
        time = set_clock(found)
        await found.create(**PLAIN, reward_timeout=10.0, default_reward=-1.0)
        decided = (await found.decide()).json()
        time.at += 9.9
        await found.upkeep.round()
        assert (await found.stats())["open"] == 1
        time.at += 0.1
        assert error_of(await found.reward(decided["decision"], 1.0))[0] == 410  # though nobody swept yet
        await found.upkeep.round()
        await found.upkeep.round()
        stats = await found.stats()
        assert (stats["open"], stats["defaults"], stats["rounds"], stats["mean_reward"]) == (0, 1, 1, -1.0)
        assert error_of(await found.reward(decided["decision"], 1.0))[0] == 410
        alone = sb.adaptive(DIM, **AS_THEY_ARE)
        alone.update(np.eye(DIM)[decided["index"]], -1.0)
        assert np.array_equal(found.engine.bandit("b").policy.theta, alone.theta)


@in_loop
async def test_the_last_decisions_outlive_a_restart(tmp_path: Path) -> None:
    """From a snapshot, and from the journal alone: places of a slate, outcomes, propensities, open ones."""

    async def work(found: Service) -> None:
        await found.play(9)
        await found.decide()

    async with service(tmp_path) as found:
        time = set_clock(found)
        await found.create(explore="thompson", slates=True, reward_timeout=60.0, default_reward=0.0)
        decided = (await found.decide(top=2)).json()
        await found.rewards(decided["decision"], {"position": 1, "reward": 1.0})
        time.at += 61.0
        await found.upkeep.round()
        await found.settle()
        before = await found.stats()
        assert [(one["position"], one["reward"], one["kind"]) for one in before["recent"]] == [
            (1, 1.0, "given"),
            (0, 0.0, "default"),
        ]
        assert sum(before["history"]["defaults"]) == 1
        assert sum(before["history"]["rewards"]) == 2
    async with service(tmp_path) as found:
        again = await found.stats()
        assert again["recent"] == before["recent"]
        assert sum(again["history"]["defaults"]) == 1
    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        told = (await found.stats())["recent"]
        assert len(told) == 12
        assert told[-2:] == before["recent"]


@in_loop
async def test_many_expire_at_once(tmp_path: Path) -> None:
    """However many: all of them in one round of upkeep, in their order."""
    async with service(tmp_path, limits=Limits(waiting=5000)) as found:
        time = set_clock(found)
        await found.create(reward_timeout=1.0)
        await asyncio.gather(*(found.decide() for _ in range(1200)))
        time.at += 2.0
        await found.upkeep.round()
        stats = await found.stats()
        assert (stats["open"], stats["defaults"], stats["open_bytes"]) == (0, 1200, 0)


@in_loop
async def test_no_default_means_nothing_is_learned(tmp_path: Path) -> None:
    """default_reward null closes the decision; reward_timeout null keeps it open."""
    async with service(tmp_path) as found:
        time = set_clock(found)
        await found.create(reward_timeout=1.0, default_reward=None)
        await found.create("patient", reward_timeout=None)
        await found.decide()
        kept = (await found.decide(name="patient")).json()["decision"]
        time.at += 1e8
        await found.upkeep.round()
        stats = await found.stats()
        assert (stats["open"], stats["defaults"], stats["rounds"]) == (0, 1, 0)
        assert (await found.reward(kept, 1.0, "patient")).status_code == 200


@in_loop
async def test_out_of_order_rewards_are_learned_as_they_come(tmp_path: Path) -> None:
    """The policy is that of the order of rewards, whatever the order of decisions."""
    random = np.random.default_rng(0)
    sets = random.standard_normal((20, 5, DIM))
    async with service(tmp_path) as found:
        parameters = {"size": 2, "epsilon": 0.5, **AS_THEY_ARE}
        await found.create(parameters=parameters)
        decided = [(await found.decide(arms.tolist())).json() for arms in sets]
        alone = sb.adaptive(DIM, **parameters)
        for place in random.permutation(20).tolist():
            answer = decided[place]
            assert (await found.reward(answer["decision"], float(place))).status_code == 200
            alone.update(sets[place][answer["index"]], float(place))
        assert np.array_equal(found.engine.bandit("b").policy.theta, alone.theta)


@in_loop
async def test_open_decisions_are_bounded(tmp_path: Path) -> None:
    """Beyond max_open 429 with Retry-After, until a reward or the timeout makes room."""
    async with service(tmp_path) as found:
        time = set_clock(found)
        await found.create(max_open=3, reward_timeout=5.0)
        decisions = [(await found.decide()).json()["decision"] for _ in range(3)]
        refused = await found.decide()
        assert error_of(refused)[0] == 429
        assert refused.headers["retry-after"] == "1"
        assert (await found.stats())["open"] == 3
        await found.reward(decisions[1], 1.0)
        assert (await found.decide()).status_code == 200
        assert (await found.decide()).status_code == 429
        time.at += 5.0
        await found.upkeep.round()
        assert (await found.stats())["open"] == 0
        answers = await asyncio.gather(*(found.decide() for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 5  # at once, too


@in_loop
async def test_memory_of_open_decisions_is_bounded(tmp_path: Path) -> None:
    """Over all bandits, by bytes."""
    async with service(tmp_path, limits=Limits(open_bytes=2000)) as found:
        await found.create()
        await found.create("c")
        statuses = [(await found.decide(name=name)).status_code for name in "bcbcbcbc"]
        assert 429 in statuses
        assert statuses == sorted(statuses)


@in_loop
async def test_waiting_records_are_bounded(tmp_path: Path) -> None:
    """When commits are slow, what cannot wait is refused with 429."""
    async with service(tmp_path, limits=Limits(waiting=4)) as found:
        await found.create()
        real = found.engine.database.commit
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(records: Any, seq: int) -> None:
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
            real(records, seq)

        found.engine.database.commit = slow  # type: ignore[method-assign]
        tasks = [asyncio.create_task(found.decide()) for _ in range(1)]
        await asyncio.sleep(0.05)  # the first is being committed, and more wait
        tasks += [asyncio.create_task(found.decide()) for _ in range(10)]
        await asyncio.sleep(0.1)
        gate.set()
        statuses = sorted([(await task).status_code for task in tasks])
        assert statuses == [200] * 5 + [429] * 6


@in_loop
async def test_a_reward_on_its_way_when_time_is_over(tmp_path: Path) -> None:
    """It came in time: expiry leaves the decision alone while the reward is being written."""
    async with service(tmp_path) as found:
        time = set_clock(found)
        await found.create(reward_timeout=1.0, default_reward=-1.0)
        decision = (await found.decide()).json()["decision"]
        real, gate, loop = found.engine.database.commit, asyncio.Event(), asyncio.get_running_loop()

        def slow(records: Any, seq: int) -> None:
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
            real(records, seq)

        found.engine.database.commit = slow  # type: ignore[method-assign]
        rewarded = asyncio.create_task(found.reward(decision, 1.0))
        await asyncio.sleep(0.05)
        time.at += 5.0
        assert await found.upkeep.expire(found.engine.bandit("b")) == 0
        gate.set()
        assert (await rewarded).json()["status"] == "learned"
        stats = await found.stats()
        assert (stats["rewards"], stats["defaults"], stats["mean_reward"]) == (1, 0, 1.0)


@in_loop
async def test_the_same_reward_twice_at_once(tmp_path: Path) -> None:
    """One is learned, the other is known; two different ones: one is a conflict."""
    async with service(tmp_path) as found:
        await found.create()
        decision = (await found.decide()).json()["decision"]
        answers = await asyncio.gather(*(found.reward(decision, 1.0) for _ in range(4)))
        assert sorted(answer.json()["status"] for answer in answers) == ["known"] * 3 + ["learned"]
        decision = (await found.decide()).json()["decision"]
        one, other = await asyncio.gather(found.reward(decision, 1.0), found.reward(decision, 2.0))
        assert sorted([one.status_code, other.status_code]) == [200, 409]
        assert (await found.stats())["rounds"] == 2


@in_loop
async def test_a_reward_after_a_failed_one(tmp_path: Path) -> None:
    """While one waits for a commit that fails, another one for the same decision takes its turn."""
    async with service(tmp_path) as found:
        await found.create()
        decision = (await found.decide()).json()["decision"]
        real = found.engine.database.commit
        failures = [1]

        def fail_once(records: Any, seq: int) -> None:
            if failures:
                failures.pop()
                raise StorageError("no")
            real(records, seq)

        found.engine.database.commit = fail_once  # type: ignore[method-assign]
        one, other = await asyncio.gather(found.reward(decision, 1.0), found.reward(decision, 2.0))
        assert (one.status_code, other.status_code) == (503, 200)
        assert (await found.stats())["mean_reward"] == 2.0


@in_loop
async def test_deleted_while_a_decision_is_on_its_way(tmp_path: Path) -> None:
    """It is told that the bandit is gone, and so is a reward for it."""
    async with service(tmp_path) as found:
        await found.create()
        decision = (await found.decide()).json()["decision"]
        gone, decided, rewarded = await asyncio.gather(
            found.http.delete("/v1/bandits/b"), found.decide(), found.reward(decision, 1.0)
        )
        assert gone.status_code == 200
        assert {decided.status_code, rewarded.status_code} <= {200, 404}
        assert error_of(await found.reward(decision, 1.0))[0] == 404


def test_a_clock_set_back() -> None:
    """Time goes on steadily while the process runs, and from the journal's last record after a restart."""
    wall, steady = Time(), Time()
    clock = Clock(wall=wall, monotonic=steady)
    first = clock.now()
    wall.at -= 5000.0
    steady.at += 2.0
    assert clock.now() == first + 2.0
    again = Clock(clock.now(), wall=wall, monotonic=steady)
    assert again.now() == first + 2.0


@in_loop
async def test_a_restart_with_the_clock_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions neither expire at once nor live for ever, and times in the journal do not go back."""
    async with service(tmp_path) as found:
        await found.create(reward_timeout=60.0)
        await found.decide()
        before = found.engine.clock.now()
    monkeypatch.setattr("time.time", lambda: before - 86_400.0)
    async with service(tmp_path) as found:
        assert found.engine.clock.now() >= before - 1.0
        await found.upkeep.round()
        stats = await found.stats()
        assert (stats["open"], stats["defaults"]) == (1, 0)
        bandit = found.engine.bandit("b")
        (waiting,) = bandit.open.values()
        assert 0.0 < bandit.deadline(waiting[0].at) - found.engine.clock.now() <= 60.0
