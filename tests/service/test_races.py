"""Requests that meet: every interleaving of the event loop must come out right."""

import asyncio
import gc
import threading
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from sketchbandit_service.checking import check, same
from sketchbandit_service.decision_ids import decision_id
from sketchbandit_service.problems import Unavailable
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.database import InDoubt, StorageError
from sketchbandit_service.storage.records import Statements
from tests.service.harness import DIM, PLAIN, Service, crashing, error_of, in_loop, service

EYE = np.eye(DIM).tolist()


async def after(turns: int, request: Any) -> httpx.Response:
    """The request, some turns of the loop later."""
    for _ in range(turns):
        await asyncio.sleep(0)
    answer: httpx.Response = await request
    return answer


@in_loop
async def test_copies_of_a_reward_at_every_moment(tmp_path: Path) -> None:
    """Before, while and right after the first is committed: one is learned, and nothing hangs."""
    async with service(tmp_path) as found:
        await found.create()
        for turns in range(60):
            decision = (await found.decide()).json()["decision"]
            copies = [after(turns * copy % 97, found.reward(decision, 1.0)) for copy in range(8)]
            answers = await asyncio.wait_for(asyncio.gather(*copies), 20)
            assert sorted(answer.json()["status"] for answer in answers) == ["known"] * 7 + ["learned"]
        assert (await found.stats())["rounds"] == 60


@in_loop
async def test_expiry_amid_traffic_replays_in_the_same_order(tmp_path: Path) -> None:
    """Defaults and rewards mixed, snapshots between them: a restart gives the same bits."""

    async def work(found: Service) -> None:
        await found.create(reward_timeout=0.02, default_reward=0.5, parameters={"size": 2, "epsilon": 0.5})
        random = np.random.default_rng(0)

        async def client() -> None:
            for _ in range(40):
                decided = (await found.decide(random.standard_normal((3, DIM)).tolist())).json()
                await asyncio.sleep(random.uniform(0.0, 0.03))
                answer = await found.reward(decided["decision"], float(random.standard_normal()))
                assert answer.status_code in (200, 410)

        async def upkeep() -> None:
            while True:
                await found.upkeep.expire(found.engine.bandit("b"))
                await found.upkeep.snapshot(found.engine.bandit("b"))
                await asyncio.sleep(0.001)

        task = asyncio.create_task(upkeep())
        await asyncio.gather(*(client() for _ in range(10)))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await found.engine.journal.append(Statements(()), lambda _: None)  # all before it is applied
        assert found.engine.bandit("b").accounts.totals.defaults > 10

    old = await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, old.engine.bandit("b").policy)
        assert found.engine.bandit("b").accounts.totals == old.engine.bandit("b").accounts.totals
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_one_key_and_a_commit_that_fails(tmp_path: Path) -> None:
    """Four requests with one key, of which the first fails: the others agree on one decision."""
    async with service(tmp_path) as found:
        await found.create()
        real, failures = found.engine.database.commit, [1]

        def fail_once(records: Any, seq: int) -> None:
            if failures:
                failures.pop()
                raise StorageError("no")
            real(records, seq)

        found.engine.database.commit = fail_once  # type: ignore[method-assign]
        headers = {"idempotency-key": "k"}
        asked = [
            after(turns, found.http.post("/v1/bandits/b/decide", json={"arms": EYE}, headers=headers))
            for turns in (0, 1, 2, 3)
        ]
        answers = await asyncio.gather(*asked)
        assert [answer.status_code for answer in answers].count(503) <= 1
        assert len({answer.json()["decision"] for answer in answers if answer.is_success}) == 1
        assert (await found.stats())["open"] == 1


@in_loop
async def test_one_key_and_a_commit_in_doubt(tmp_path: Path) -> None:
    """The same request again, as the answer asks for, finds the decision that was made."""
    async with service(tmp_path) as found:
        await found.create()
        database = found.engine.database
        real = database.commit

        def lose_answer(records: Any, seq: int) -> None:
            database.commit = real  # type: ignore[method-assign]
            real(records, seq)
            database._batch -= 1  # as if nobody had heard
            database._is_unsure = True
            database._drop()
            raise InDoubt("the answer was lost")

        database.commit = lose_answer  # type: ignore[method-assign]
        headers = {"idempotency-key": "k"}

        async def ask() -> httpx.Response:
            return await found.http.post("/v1/bandits/b/decide", json={"arms": EYE}, headers=headers)

        assert error_of(await ask())[0] == 503
        while (answer := await ask()).status_code == 503:
            await asyncio.sleep(0.01)
        ((seq, opened),) = found.engine.bandit("b").open.items()
        assert answer.json()["decision"] == decision_id(seq, opened[0].tag)


@in_loop
async def test_a_record_that_is_refused_harms_no_other(tmp_path: Path) -> None:
    """In one batch with it, others are committed; it alone fails."""
    async with service(tmp_path) as found:
        await found.create()
        row = {"id": 10**6, "name": "b", "config": "{}", "created": 0.0}  # the name is taken
        bad = found.engine.journal.append(
            Statements((tables.bandits.insert().values(row),)), lambda _: pytest.fail("it was applied")
        )
        answers = await asyncio.gather(*(found.decide() for _ in range(5)), bad, return_exceptions=True)
        assert [answer.status_code for answer in answers[:5] if isinstance(answer, httpx.Response)] == [
            200
        ] * 5
        assert "refused" in str(answers[5])
        assert (await found.http.get("/readyz")).status_code == 200
        assert (await found.stats())["open"] == 5


@in_loop
async def test_doubt_in_a_batch_that_is_taken_apart(tmp_path: Path) -> None:
    """A refused record, then a lost answer: nothing more is committed until that is settled."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        database = found.engine.database
        real, calls = database.commit, []

        def commit(records: Any, seq: int) -> None:
            calls.append(len(records))
            real(records, seq)
            if len(calls) == 2:  # the first record by itself
                database._batch -= 1
                database._is_unsure = True
                database._drop()
                raise InDoubt("the answer was lost")

        for _ in range(3):
            await found.decide()
        bandit = found.engine.bandit("b")
        database.commit = commit  # type: ignore[method-assign]
        row = {"id": 10**6, "name": "b", "config": "{}", "created": 0.0}  # the name is taken
        futures = [found.engine.rewards.close(bandit, seq, 0, "given", 1.0) for seq in bandit.open]
        bad = Statements((tables.bandits.insert().values(row),))
        futures.append(found.engine.journal.append(bad, lambda _: None))
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        assert calls == [4, 1]
        assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
        while (await found.http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)
        assert (bandit.accounts.totals.rewards, len(bandit.open)) == (1, 2)
        assert len(found.engine.database.read(lambda c: c.execute(tables.rewards.select()).all())) == 1
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_arms_that_arrive_for_another_bandit(tmp_path: Path) -> None:
    """Deleted and made anew with another dimension while the body was on its way: not stored."""
    async with service(tmp_path) as found:
        await found.create()
        gate = asyncio.Event()

        async def body() -> Any:
            yield b'{"arms": {"x": [1, 0, 0, 0]'
            await gate.wait()
            yield b"}}"

        headers = {"content-type": "application/json"}
        put = asyncio.create_task(found.http.put("/v1/bandits/b/arms", content=body(), headers=headers))
        decide = asyncio.create_task(_decide_later(found, gate))
        await asyncio.sleep(0.05)
        await found.http.delete("/v1/bandits/b")
        await found.http.put("/v1/bandits/b", json={"dim": DIM + 1})
        gate.set()
        assert error_of(await put)[0] == 422  # of another dimension
        assert error_of(await decide)[0] == 422
        for _ in range(3):
            await found.upkeep.round()
        for table in (tables.decisions, tables.arms):
            rows = found.engine.database.read(lambda c, t=table: c.execute(t.select()).all())  # type: ignore[misc]
            assert rows == []
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").config.dim == DIM + 1


async def _decide_later(found: Service, gate: asyncio.Event) -> httpx.Response:
    async def body() -> Any:
        yield b'{"arms": [[1, 0, 0, 0]]'
        await gate.wait()
        yield b"}"

    headers = {"content-type": "application/json"}
    return await found.http.post("/v1/bandits/b/decide", content=body(), headers=headers)


@in_loop
async def test_a_batch_lets_others_in(tmp_path: Path) -> None:
    """While many items are worked on, another request gets its answer."""
    async with service(tmp_path) as found:
        await found.create()
        finished: list[str] = []

        async def batch() -> None:
            body = {"decisions": [{"arms": EYE}] * 300}
            await found.http.post("/v1/bandits/b/decide/batch", json=body)
            finished.append("batch")

        async def single() -> None:
            await asyncio.sleep(0)
            await found.http.get("/healthz")
            finished.append("single")

        await asyncio.gather(batch(), single())
        assert finished == ["single", "batch"]


@in_loop
async def test_a_database_that_hangs_is_noticed(tmp_path: Path) -> None:
    """Clients hear 503 when patience is over, not when it answers; what it wrote after all is not doubled."""
    async with service(tmp_path) as found:
        await found.create()
        journal, database = found.engine.journal, found.engine.database
        journal._patience = 0.1
        answers, real, abandoned = threading.Event(), database.commit, []

        def hang(records: Any, seq: int) -> None:
            answers.wait(30)
            real(records, seq)

        database.commit = hang  # type: ignore[method-assign]
        database.abandon = lambda: abandoned.append(1)  # type: ignore[method-assign]
        headers = {"idempotency-key": "k"}
        decide = partial(found.http.post, "/v1/bandits/b/decide", json={"arms": EYE}, headers=headers)
        status, message = error_of(await decide())
        assert (status, "send the same request again" in message, abandoned) == (503, True, [1])
        assert error_of(await decide())[0] == 503
        assert (await found.http.get("/readyz")).status_code == 503
        assert (await found.http.get("/healthz")).status_code == 200
        answers.set()
        while (answer := await decide()).status_code == 503:
            await asyncio.sleep(0.01)
        ((seq, opened),) = found.engine.bandit("b").open.items()
        assert answer.json()["decision"] == decision_id(seq, opened[0].tag)
        assert (await found.http.get("/readyz")).status_code == 200


@in_loop
async def test_a_read_that_hangs_is_a_503(tmp_path: Path) -> None:
    """A database may hang while it reads, too."""
    async with service(tmp_path) as found:
        await found.create()
        decided = (await found.decide()).json()
        assert (await found.reward(decided["decision"], 1.0)).status_code == 200
        answers = threading.Event()

        def _waits(_: Any) -> Any:
            return answers.wait(30)

        found.engine.journal._patience = 0.1
        found.engine.database.read = _waits  # type: ignore[method-assign,assignment]
        assert error_of(await found.reward(decided["decision"], 1.0))[0] == 503
        answers.set()


@in_loop
async def test_a_deleted_bandit_gives_its_memory_back_at_once(tmp_path: Path) -> None:
    """Its policy goes without the garbage collector, which a server hardly ever asks for all it can find."""
    async with service(tmp_path) as found:
        await found.create("gone", **PLAIN)
        await found.play(3, "gone")
        policy = weakref.ref(found.engine.bandit("gone").policy)
        gc.collect()
        gc.disable()
        try:
            answer = await found.http.delete("/v1/bandits/gone")
            assert answer.status_code in (200, 204)
            for _ in range(100):
                if policy() is None:
                    break
                await asyncio.sleep(0.02)
            assert policy() is None
        finally:
            gc.enable()
