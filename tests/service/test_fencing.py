"""A bandit whose policy is not what the journal says is out of service at once, whatever else fails."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchbandit.policy.policy import Policy
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.ordering import Lane
from sketchbandit_service.registry import Registry
from sketchbandit_service.storage.database import Database, InDoubt
from sketchbandit_service.storage.records import RewardRow
from tests.service.harness import DIM, PLAIN, in_loop, service


def no_memory(*_: Any, **__: Any) -> None:
    """What a server under a memory limit may meet anywhere."""
    raise MemoryError("of the test")


@in_loop
async def test_logging_fails_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is so short that the reason cannot be logged, the bandit is fenced all the same."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        decided = (await found.decide()).json()["decision"]
        with monkeypatch.context() as patch:
            patch.setattr(Policy, "update", no_memory)
            patch.setattr(logging.Logger, "error", no_memory)
            assert (await found.reward(decided, 1.0)).status_code == 503
        assert (await found.reward(decided, 1.0)).status_code == 503
        assert [*found.engine.registry.quarantined] == ["b"]
    assert not [*tmp_path.glob("snapshots/*/*")]
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").policy.rounds == 1


@in_loop
async def test_a_snapshot_in_the_turn_of_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied between the end of a job that failed and the fence is not written."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        decided = (await found.decide()).json()["decision"]
        bandit, ended = found.engine.bandit("b"), Lane._ended
        snapshots: list[asyncio.Future[bool]] = []
        monkeypatch.setattr(bandit, "_learn_seconds", 0.01)  # so that it is done in a thread

        def snapshot_first(lane: Lane, *arguments: Any) -> None:
            if not snapshots:
                snapshots.append(asyncio.ensure_future(found.upkeep.snapshot(bandit)))
            ended(lane, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(Lane, "_ended", snapshot_first)
            patch.setattr(Policy, "update", no_memory)
            assert (await found.reward(decided, 1.0)).status_code == 503
            assert await snapshots[0] is False
    async with service(tmp_path) as found:
        assert (found.engine.bandit("b").accounts.totals.rewards, found.engine.bandit("b").policy.rounds) == (
            1,
            1,
        )


@in_loop
async def test_a_new_bandit_that_cannot_be_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the journal, so it is out of service and says so; a restart has it, or it can be deleted."""
    async with service(tmp_path) as found:
        with monkeypatch.context() as patch:
            patch.setattr(Registry, "_adopt", no_memory)
            answer = await found.http.put("/v1/bandits/b", json={"dim": DIM})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "quarantined")
        assert (await found.http.put("/v1/bandits/b", json={"dim": DIM})).status_code == 503
        assert (await found.decide()).json()["error"]["code"] == "quarantined"
    async with service(tmp_path) as found:
        await found.play(2)


def test_an_error_after_a_commit_leaves_it_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is: the next batch is not taken for the one that was committed."""

    def row(seq: int) -> RewardRow:
        return RewardRow(seq, seq, 1, "given", 1.0, 1.0)

    database = Database(f"sqlite:///{tmp_path / 'journal.sqlite'}")
    database.open()
    database.commit([row(1)], 1)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "check_file", no_memory)
        with pytest.raises(InDoubt):
            database.commit([row(2)], 2)
    assert database.settle()
    database._drop()
    database.commit([row(3)], 3)
    found = database.read(
        lambda connection: connection.exec_driver_sql("SELECT seq FROM sketchbandit_rewards").scalars().all()
    )
    database.close()
    assert sorted(found) == [1, 2, 3]


@in_loop
async def test_decisions_that_wait_for_their_turn_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than ``max_open``, however long the bandit is busy, and their memory is counted."""
    async with service(tmp_path) as found:
        await found.create(max_open=5, **PLAIN)
        bandit, go_on = found.engine.bandit("b"), asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(bandit.lane, "is_busy", True)
        asked = [asyncio.ensure_future(found.decide()) for _ in range(20)]
        refused = 0
        while refused < 15:
            await asyncio.sleep(0.001)
            refused = sum(one.done() and one.result().status_code == 429 for one in asked)
        assert (bandit.on_the_way, found.engine.registry.open_bytes >= 5 * 1024) == (5, True)
        loop.call_soon(go_on.set)
        await go_on.wait()
        bandit.lane._go_on()
        answers = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 15
        assert (len(bandit.open), bandit.on_the_way, bandit.bytes_on_the_way) == (5, 0, 0)


@in_loop
async def test_lists_ask_no_model_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many bandits of many models are told as they were; what is new is found out in their lanes."""
    async with service(tmp_path) as found:
        await found.create(actions=["x", "y"], **PLAIN)
        decided = await found.http.post("/v1/bandits/b/decide", json={"context": [1.0, 0.0, 0.0, 0.0]})
        await found.reward(decided.json()["decision"], 1.0)
        bandit, asked, look = found.engine.bandit("b"), [], Bandit.look
        loop_thread = asyncio.current_task()

        def watched(bandit: Bandit) -> None:
            try:
                asked.append(asyncio.current_task() is loop_thread)
            except RuntimeError:  # no event loop: in a thread
                asked.append(False)
            look(bandit)

        monkeypatch.setattr(Bandit, "look", watched)
        for path in ("/v1/bandits", "/metrics"):
            assert (await found.http.get(path)).status_code == 200
            await bandit.lane.over()
        assert asked == [False]
        assert bandit.about().rounds == 1


@in_loop
async def test_stored_arms_that_were_written_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request that failed on its way has stored is offered, as it would be after a restart."""
    monkeypatch.setattr("sketchbandit_service.stock._MOST_ARMS", 2)
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        arms = {str(place): row for place, row in enumerate(np.eye(DIM).tolist())}
        journal, append, calls = found.engine.journal, found.engine.journal.append, []

        def fails_later(*arguments: Any, **options: Any) -> Any:
            calls.append(arguments)
            if len(calls) > 1:
                journal._waiting.extend([None] * 5000)  # type: ignore[list-item]
            try:
                return append(*arguments, **options)
            finally:
                while None in journal._waiting:
                    journal._waiting.remove(None)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(journal, "append", fails_later)
            assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).status_code == 429
        assert found.engine.bandit("b").arms.ids() == ["0", "1"]
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").arms.ids() == ["0", "1"]
