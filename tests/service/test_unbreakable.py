"""One bandit in trouble is one bandit in trouble: the others, and the server, go on as if nothing were."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from sketchbandit.policy.policy import Policy
from sketchbandit_service.checking import check
from sketchbandit_service.storage.database import InDoubt, StorageError
from tests.service.harness import DIM, PLAIN, Service, error_of, in_loop, service

ODD = 3
"""Dimensions of the bandit that will be in trouble; the other has four."""
AT_ONCE = 1.0
"""Seconds: far less than the long work takes, far more than an answer on a busy machine."""
LONG = 4.0

_learn = Policy.update


def no_memory(policy: Any, arm: Any, reward: Any) -> None:
    """What a server under a memory limit may meet: here only the odd bandit does."""
    if policy.dim == ODD:
        raise MemoryError("of the test")
    _learn(policy, arm, reward)


async def begin(found: Service) -> None:
    """Two bandits that have learned five times each, with a snapshot."""
    await found.create("odd", dim=ODD, **PLAIN)
    await found.create("other", **PLAIN)
    await found.play(5, "odd")
    await found.play(5, "other")
    await found.upkeep.snapshot_all()


async def decide(found: Service) -> str:
    """A decision of the odd bandit."""
    return str((await found.decide(np.eye(ODD).tolist(), "odd")).json()["decision"])


def is_quarantined(answer: httpx.Response) -> bool:
    """Whether it is refused for that, with a message that says whose trouble it is and which."""
    status, message = error_of(answer)
    code = answer.json()["error"]["code"]
    return (status, code) == (503, "quarantined") and "odd" in message and "MemoryError" in message


def snapshots(state: Path) -> dict[str, int]:
    """How many files there are of each bandit, by the folder."""
    return {folder.name: len(list(folder.iterdir())) for folder in state.glob("snapshots/*")}


@in_loop
async def test_a_record_that_cannot_be_learned_fences_its_bandit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests are refused with the reason, the retry is not taken for known; a restart learns it."""
    async with service(tmp_path) as found:
        await begin(found)
        decided = await decide(found)
        with monkeypatch.context() as patch:
            patch.setattr(Policy, "update", no_memory)
            assert is_quarantined(await found.reward(decided, 1.0, "odd"))
        assert is_quarantined(await found.reward(decided, 1.0, "odd"))  # though the memory is there again
        assert is_quarantined(await found.decide(np.eye(ODD).tolist(), "odd"))
        before = snapshots(tmp_path)
        await found.play(5, "other", seed=1)
        await found.upkeep.snapshot_all()
        after = snapshots(tmp_path)
        assert len([name for name in before if after[name] != before[name]]) == 1, "only of the other"
        assert (await found.http.get("/readyz")).status_code == 200
    assert all(finding.is_good for finding in check(tmp_path))
    async with service(tmp_path) as found:
        assert (await found.reward(decided, 1.0, "odd")).json()["status"] == "known"
        assert (await found.stats("odd"))["rounds"] == 6
        assert (await found.stats("other"))["rounds"] == 10
        await found.play(3, "odd", seed=2)
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_a_record_that_cannot_be_replayed_stops_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bandit is quarantined by name, the others serve; with more memory a restart brings it back."""
    async with service(tmp_path) as found:
        await begin(found)
    for file in tmp_path.glob("snapshots/*/*"):
        file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Policy, "update", no_memory)
        async with service(tmp_path) as found:
            assert is_quarantined(await found.decide(np.eye(ODD).tolist(), "odd"))
            await found.play(5, "other", seed=1)
            assert (await found.stats("other"))["rounds"] == 10
    assert len(snapshots(tmp_path)) == 1 or 0 in snapshots(tmp_path).values()
    async with service(tmp_path) as found:
        assert (await found.stats("odd"))["rounds"] == 5
        await found.play(3, "odd", seed=2)
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_a_fenced_bandit_can_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its name is free again."""
    async with service(tmp_path) as found:
        await begin(found)
        decided = await decide(found)
        with monkeypatch.context() as patch:
            patch.setattr(Policy, "update", no_memory)
            assert is_quarantined(await found.reward(decided, 1.0, "odd"))
        assert (await found.http.delete("/v1/bandits/odd")).is_success
        assert (await found.create("odd", dim=ODD)).status_code == 201
        await found.play(3, "odd")
        assert (await found.stats("odd"))["rounds"] == 3


@in_loop
async def test_long_work_of_one_bandit_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it learns, the other decides and learns, and the server says that it is well; all in order."""
    go_on = threading.Event()

    def learn_slowly(policy: Any, arm: Any, reward: Any) -> None:
        if policy.dim == ODD:
            go_on.wait(LONG)
        _learn(policy, arm, reward)

    async def timely(request: Any) -> httpx.Response:
        started = time.monotonic()
        answer: httpx.Response = await request
        assert time.monotonic() - started < AT_ONCE
        assert answer.is_success, answer.text
        return answer

    async with service(tmp_path) as found:
        await begin(found)
        monkeypatch.setattr(Policy, "update", learn_slowly)
        found.engine.bandit("odd")._learn_seconds = LONG  # as estimated for a policy that is so slow
        decided = [await decide(found) for _ in range(3)]
        held = [asyncio.create_task(found.reward(one, 1.0, "odd")) for one in decided]
        try:
            while not found.engine.bandit("odd").lane.is_busy:
                await asyncio.sleep(0.001)
            held.append(asyncio.create_task(found.decide(np.eye(ODD).tolist(), "odd")))
            for _ in range(5):
                await timely(found.http.get("/healthz"))
                await timely(found.http.get("/readyz"))
                opened = (await timely(found.decide(np.eye(DIM).tolist(), "other"))).json()
                await timely(found.reward(opened["decision"], 1.0, "other"))
            assert not any(task.done() for task in held)
        finally:
            go_on.set()
            answers = await asyncio.gather(*held)
        assert [answer.status_code for answer in answers] == [200] * 4
        assert (await found.stats("odd"))["rounds"] == 8
        assert (await found.stats("other"))["rounds"] == 10
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_a_reward_in_doubt_is_not_refused_for_good(tmp_path: Path) -> None:
    """Its commit has happened and nobody knows yet: sent again after its time, it is not 410, then known."""
    async with service(tmp_path) as found:
        await found.create("b", reward_timeout=0.2, **PLAIN)
        decided = (await found.decide()).json()["decision"]
        database = found.engine.database
        commit, settle = database.commit, database.settle

        def lose_answer(records: Any, seq: int) -> None:
            commit(records, seq)
            database._batch -= 1  # as if nobody had heard
            database._is_unsure = True
            database._drop()
            raise InDoubt("the answer was lost")

        def not_yet() -> bool:
            raise StorageError("not there")

        database.commit, database.settle = lose_answer, not_yet  # type: ignore[method-assign]
        assert (await found.reward(decided, 1.0)).status_code == 503
        database.commit = commit  # type: ignore[method-assign]
        await asyncio.sleep(0.25)
        assert (await found.reward(decided, 1.0)).status_code == 503
        database.settle = settle  # type: ignore[method-assign]
        while (answer := await found.reward(decided, 1.0)).status_code == 503:
            await asyncio.sleep(0.02)
        assert answer.json()["status"] == "known"
        assert (await found.stats())["rounds"] == 1


@in_loop
async def test_a_snapshot_in_the_very_turn_of_a_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is booked is learned in the snapshot, also where learning takes long and has not begun."""
    async with service(tmp_path) as found:
        await begin(found)
        bandit, taken = found.engine.bandit("odd"), []
        monkeypatch.setattr(bandit, "_learn_seconds", 1.0)
        book = bandit.book

        def book_and_snapshot(row: Any) -> Any:
            asyncio.get_running_loop().call_soon(
                lambda: taken.append(asyncio.ensure_future(bandit.snapshot(row.seq)))
            )
            return book(row)

        decision = await decide(found)
        monkeypatch.setattr(bandit, "book", book_and_snapshot)
        assert (await found.reward(decision, 1.0, "odd")).status_code == 200
        (snapshot,) = await asyncio.gather(*taken)
        assert snapshot.policy.rounds == bandit.accounts.totals.learned == bandit.policy.rounds


@in_loop
async def test_a_busy_bandit_holds_up_no_upkeep(tmp_path: Path) -> None:
    """Decisions of another expire, and its snapshot is written, while one works."""
    go_on = threading.Event()
    async with service(tmp_path, snapshot_seconds=0.0) as found:
        await begin(found)
        await found.create("hasty", reward_timeout=0.01, default_reward=0.5)
        await found.decide(name="hasty")
        await found.decide(np.eye(ODD).tolist(), "odd")
        lane = found.engine.bandit("odd").lane
        held = lane.put(lambda: go_on.wait(30), 1.0)
        await asyncio.sleep(0.02)
        for _ in range(3):
            await found.upkeep.round(patience=0.3)
        hasty = found.engine.bandit("hasty")
        assert (hasty.accounts.totals.defaults, len(hasty.snapshots)) >= (1, 1)
        assert lane.is_busy
        go_on.set()
        await held
