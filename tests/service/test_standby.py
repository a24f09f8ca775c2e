"""A second server on the same PostgreSQL: it follows exactly, takes over, and fences the first."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest

import sketchbandit as sb
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service import replica
from sketchbandit_service.api.app import Api
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.checking import same
from sketchbandit_service.client import AsyncClient, Retries, ServiceError
from sketchbandit_service.engine import Engine
from sketchbandit_service.policy_set import Learning
from sketchbandit_service.settings import Settings
from sketchbandit_service.standby import _EVERY, Follower
from sketchbandit_service.storage.database import Database, Fenced, StorageError
from sketchbandit_service.storage.records import Row
from sketchbandit_service.storage.snapshots import Snapshot, SnapshotTable, snapshots_of
from sketchbandit_service.upkeep import Upkeep
from tests.service.harness import AS_THEY_ARE, DIM, PLAIN, Direct, Service, error_of, in_loop, service
from tests.service.processes import Zygote, free_port

_ENDS_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
_SECOND = "http://localhost:1"
ARMS = np.eye(DIM).tolist()


class Second:
    """A server that is a standby at first."""

    def __init__(self, state: Path, url: str) -> None:
        self.engine = Engine(Settings(state, database=url, storage_patience=0.3), seed=0)
        transport = Direct(Api(self.engine), self.engine)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        self.start: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self) -> None:
        """Follow, then serve."""
        self.start = asyncio.create_task(self.engine.start(standby=True))

    @property
    def follower(self) -> Follower:
        """While it is a standby."""
        assert self.engine.follower is not None
        return self.engine.follower

    @property
    def bandits(self) -> dict[str, Bandit]:
        """As it has them."""
        return bandits_of(self.follower)

    async def has_applied(self, batch: int) -> None:
        """Wait until it has read so far."""

        def is_there() -> bool:
            assert not self.start.done(), self.start
            return getattr(getattr(self.engine.follower, "replica", None), "batch", -1) >= batch

        await until(is_there)

    async def takes_over(self, within: float = 5.0) -> Service:
        """Wait for that; a service that can be asked."""
        await asyncio.wait_for(asyncio.shield(self.start), within)
        return Service(self.engine, self.http, Upkeep(self.engine))

    async def end(self) -> None:
        """Whatever it is by now."""
        if not self.start.done():
            self.start.cancel()
        await asyncio.gather(self.start, return_exceptions=True)
        if self.engine.is_ready:
            await self.engine.drain()
            self.engine.release()
        await self.http.aclose()


async def until(is_true: Callable[[], bool]) -> None:
    """Wait until something is so, ten seconds at most."""
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@asynccontextmanager
async def standby(state: Path, url: str, *, begins: bool = True) -> AsyncIterator[Second]:
    """One that follows whoever has the database."""
    second = Second(state, url)
    if begins:
        second.begin()
    try:
        yield second
    finally:
        await second.end()


def bandits_of(follower: Follower) -> dict[str, Bandit]:
    """By name."""
    assert follower.replica is not None
    return {bandit.name: bandit for bandit in follower.replica.bandits.values()}


def batch_of(found: Service) -> int:
    """The last commit of a server."""
    return found.engine.database._batch


def sql(url: str, query: str) -> Any:
    """The first row of an answer of the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()


@in_loop
async def test_it_follows_bit_for_bit_and_takes_over(tmp_path: Path, postgres_url: str) -> None:
    """Rewards, scalings, actions, stored arms, bandits that come and go; then the first server stops."""
    async with AsyncExitStack() as life, standby(tmp_path / "b", postgres_url, begins=False) as second:
        first = await life.enter_async_context(service(tmp_path / "a", database=postgres_url))
        await first.create("warm")  # scales by itself
        await first.create("gone")
        await first.play(30, "warm")
        second.begin()
        await second.has_applied(batch_of(first))
        await first.create("late", slates=True, reward_timeout=None, **PLAIN)
        await first.create("acting", actions=["x", "y"], **PLAIN)
        await first.create("rough", rewards="robust", **PLAIN)
        await first.play(20, "rough")
        await first.play(60, "warm", seed=1)
        shown = (await first.decide(name="late", top=3)).json()["decision"]
        await first.rewards(shown, {"position": 2, "reward": 1.0}, name="late")
        for path, body in (("actions", {"actions": ["z"]}), ("decide", {"context": [1.0, 0, 0, 0]})):
            assert (await first.http.post(f"/v1/bandits/acting/{path}", json=body)).is_success
        arms = {"arms": dict(zip("abc", ARMS, strict=False))}
        assert (await first.http.put("/v1/bandits/late/arms", json=arms)).is_success
        assert (await first.http.delete("/v1/bandits/late/arms/a")).is_success
        assert (await first.http.delete("/v1/bandits/gone")).is_success
        await first.settle()
        await second.has_applied(batch_of(first))
        here, there = first.engine.registry.bandits, second.bandits
        assert set(there) == set(here) == {"warm", "late", "acting", "rough"}
        for name, bandit in here.items():
            assert same(bandit.policy, there[name].policy)
            assert (bandit.accounts.totals, bandit.keys) == (there[name].accounts.totals, there[name].keys)
            assert bandit.open == there[name].open
            assert bandit.accounts.timeline.dump() == there[name].accounts.timeline.dump()
        assert there["warm"].policy.rounds == 90
        assert there["acting"].policy.actions == ("x", "y", "z")
        await until(lambda: second.bandits["late"].arms.ids() == ["b", "c"])  # arms may come a little later
        await life.aclose()
        then = await second.takes_over()
        assert set(then.engine.registry.bandits) == {"warm", "late", "acting", "rough"}
        assert (await then.http.get("/readyz")).status_code == 200
        await then.play(5, "warm", seed=2)
        assert (await then.stats("warm"))["rounds"] == 95
        assert (await then.rewards(shown, {"position": 0, "reward": 1.0}, name="late")).is_success


@in_loop
async def test_it_follows_candidates(tmp_path: Path, postgres_url: str) -> None:
    """Their policies and values, a promotion, and a bandit that began with a log; then it goes on."""
    small = {"policy": "soful", "parameters": {"size": 2}}
    async with AsyncExitStack() as life, standby(tmp_path / "b", postgres_url, begins=False) as second:
        first = await life.enter_async_context(service(tmp_path / "a", database=postgres_url))
        await first.create(**PLAIN, exploration=0.5, reward_timeout=None)
        for name, settings in (("small", small), ("other", {"policy": "oful"}), ("gone", {})):
            await first.http.put(f"/v1/bandits/b/candidates/{name}", json=settings)
        await first.play(10)
        second.begin()
        await second.has_applied(batch_of(first))
        await first.http.delete("/v1/bandits/b/candidates/gone")
        await first.play(10, seed=1)
        await first.http.post("/v1/bandits/b/candidates/small/promote", json={"keep": "before"})
        await first.http.put("/v1/bandits/new", json={"dim": DIM, "from": "b", **small})
        await first.play(10, seed=2)
        first.engine.judge.close()
        await first.engine.journal.probe()
        await second.has_applied(batch_of(first))
        here, there = first.engine.registry.bandits, second.bandits
        assert [one.name for one in there["b"].shadows] == ["other", "before"]
        for name, bandit in here.items():
            assert same(bandit.policy, there[name].policy)
            assert bandit.config == there[name].config
            for mine, theirs in zip(bandit.shadows, there[name].shadows, strict=True):
                assert same(mine.policy, theirs.policy)
                assert mine.dump() == theirs.dump()
        assert there["new"].policy.rounds == 20
        assert there["b"].shadows.by_name["other"].dump()["value"][0][0] > 0  # decisions that count
        await life.aclose()
        then = await second.takes_over()
        await then.play(5, seed=3)
        assert (await then.stats())["policy"] == "soful"


@in_loop
async def test_a_bandit_whose_log_is_gone(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may have dropped what it began with by the time a standby looks: snapshots have it."""
    refused: list[str] = []

    def begin(_: object, bandit: Bandit) -> None:
        if bandit.origin is not None:
            refused.append(bandit.name)
            raise SketchBanditError("its log is gone")

    monkeypatch.setattr(replica, "begin", begin)
    async with (
        service(tmp_path / "a", database=postgres_url, snapshots="database") as first,
        standby(tmp_path / "b", postgres_url) as second,
    ):
        await first.create(**PLAIN)
        await first.play(5)
        await second.has_applied(batch_of(first))
        await first.http.put("/v1/bandits/new", json={"dim": DIM, "from": "b", **PLAIN})
        await first.play(2, "new")
        await second.has_applied(batch_of(first))
        assert refused == ["new"]
        assert same(second.bandits["new"].policy, first.engine.bandit("new").policy)


@in_loop
async def test_a_standby_refuses_all_but_health(tmp_path: Path, postgres_url: str) -> None:
    """503 with what to do, while it follows; the database sees no write of it."""
    async with (
        service(tmp_path / "a", database=postgres_url) as first,
        standby(tmp_path / "b", postgres_url) as second,
    ):
        await first.create()
        await second.has_applied(batch_of(first))
        assert second.engine.follower is not None
        assert (await second.http.get("/healthz")).status_code == 200
        for method, path in (("GET", "/readyz"), ("GET", "/v1/bandits"), ("POST", "/v1/bandits/b/decide")):
            answer = await second.http.request(method, path, json={"arms": ARMS})
            assert answer.json()["error"]["code"] == "standby"
            status, message = error_of(answer)
            assert status == 503
            assert "ask the other address" in message
        assert second.follower.behind.batches == 0
        assert second.follower.behind.seconds < 2


@in_loop
async def test_alone_it_serves_at_once(tmp_path: Path, postgres_url: str) -> None:
    """On an empty database too: both servers of a pair are started the same way."""
    async with standby(tmp_path, postgres_url) as only:
        then = await only.takes_over(within=60)
        await then.create()
        assert (await then.decide()).is_success
    with pytest.raises(InputError, match=r"needs PostgreSQL.*leave out --standby"):
        await Engine(Settings(tmp_path / "c")).start(standby=True)


@in_loop
async def test_takes_over_from_a_killed_one(
    tmp_path: Path, postgres_url: str, forge: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within five seconds, with all that was acknowledged, and the same decision for the same key.

    The policy is the one fed by hand, to the bit; that of clicks learns each reward once, and in order.
    """
    alone = sb.adaptive(DIM, **AS_THEY_ARE, explore=sb.UCB(), rewards=sb.Logistic())
    first = forge.start(tmp_path / "a", free_port(), database=postgres_url)
    async with (
        standby(tmp_path / "b", postgres_url) as second,
        AsyncClient([first.url, _SECOND], retries=Retries(attempts=300, most=0.2)) as client,
    ):
        client._http = httpx.AsyncClient(mounts={_SECOND: Direct(Api(second.engine), second.engine)})
        shop = await client.create("b", DIM, rewards=sb.Logistic(), **PLAIN)
        made = [await shop.select(np.eye(DIM), key=f"key-{number}") for number in range(20)]
        for decision in made[:10]:
            assert await shop.update(decision, 1.0)
        looks = 0

        def has_lock(follower: Follower) -> bool:
            nonlocal looks
            looks += 1
            return original(follower)

        original = Follower.has_lock
        monkeypatch.setattr(Follower, "has_lock", has_lock)
        first.kill()
        again = [await shop.select(np.eye(DIM), key=f"key-{number}") for number in range(10, 20)]
        assert looks * _EVERY < 5  # seconds
        assert again == made[10:]
        assert [await shop.update(decision, 1.0) for decision in made[9:11]] == [False, True]
        assert (await shop.stats())["rounds"] == 11
        for decision in made[:11]:
            alone.update(np.eye(DIM)[decision.index], 1.0)
        assert same((await second.takes_over()).engine.bandit("b").policy, alone)


@in_loop
async def test_a_frozen_server_is_fenced(tmp_path: Path, postgres_url: str, forge: Zygote) -> None:
    """Its session ended while it was stopped; when it goes on nothing that it says is an acknowledgement."""
    first = forge.start(tmp_path / "a", free_port(), database=postgres_url)
    once = Retries(attempts=1)
    async with (
        AsyncClient(first.url, retries=once) as client,
        standby(tmp_path / "b", postgres_url) as second,
    ):
        shop = await client.create("b", DIM, **PLAIN)
        decisions = [await shop.select(np.eye(DIM)) for _ in range(8)]
        assert await shop.update(decisions[0], 1.0)
        os.kill(first.pid, signal.SIGSTOP)
        asked = [asyncio.create_task(shop.update(decision, 0.5)) for decision in decisions[1:4]]
        asked_more = asyncio.create_task(shop.select(np.eye(DIM)))
        await asyncio.sleep(0.1)  # they are on their way
        assert sql(postgres_url, _ENDS_SESSIONS) == (True,)
        then = await second.takes_over()
        assert (await then.reward(decisions[1].id, 0.5)).is_success
        os.kill(first.pid, signal.SIGCONT)
        outcomes = await asyncio.gather(*asked, asked_more, return_exceptions=True)
        assert all(isinstance(outcome, ServiceError) and outcome.status in {0, 503} for outcome in outcomes)
        await until(lambda: not first.is_alive())  # so that a supervisor starts it again
        assert "another server uses the same database" in forge.last_words(first)
        rewards = sql(postgres_url, "SELECT count(*) FROM sketchbandit_rewards")
        shown = sql(postgres_url, "SELECT count(*) FROM sketchbandit_decisions")
        assert (rewards, shown) == ((2,), (8,))
        assert (await then.stats())["rounds"] == 2


@in_loop
async def test_an_idle_server_notices_too(tmp_path: Path, postgres_url: str) -> None:
    """Nobody asks it for anything; it is not ready any more, and says so to whoever runs it."""
    async with service(tmp_path / "a", database=postgres_url) as first:
        await first.create()
        async with standby(tmp_path / "b", postgres_url) as second:
            await second.has_applied(batch_of(first))
            first.engine.journal.verify = _never  # type: ignore[method-assign]
            sql(postgres_url, _ENDS_SESSIONS)
            await second.takes_over()
            del first.engine.journal.verify
            await asyncio.wait_for(first.engine.journal.is_over.wait(), 3)
            assert error_of(await first.http.get("/readyz"))[0] == 503
    assert not list((tmp_path / "a").glob("snapshots/*/*"))  # it left that to the other


async def _never() -> None:
    """What a frozen process looks at."""


@in_loop
async def test_the_first_server_keeps_a_database_that_was_away(tmp_path: Path, postgres_url: str) -> None:
    """All sessions end; the first server comes back before the standby tries, and that one still follows."""
    async with service(tmp_path / "a", database=postgres_url) as first:
        await first.create(**PLAIN)
        async with standby(tmp_path / "b", postgres_url) as second:
            await second.has_applied(batch_of(first))
            all_of_them = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            assert sql(postgres_url, all_of_them)[0] >= 3
            await first.play(3)
            await second.has_applied(batch_of(first))
            (bandit,) = second.bandits.values()
            assert same(bandit.policy, first.engine.bandit("b").policy)


def test_a_number_is_left_out(postgres_url: str) -> None:
    """A commit in doubt is not taken for done because another server has written the next one."""
    one = Database(postgres_url, patience=0.1)
    one.open()
    one._is_unsure = True  # a commit was sent, and no answer came
    one._drop()
    other = Database(postgres_url)
    other.open()
    for _ in range(3):
        with pytest.raises(Fenced):
            one.settle()
        other.commit([], 0)
    other.close()
    with pytest.raises(Fenced):
        one.settle()
    one.close()


def test_rows_dropped_unread_are_noticed(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A standby that slept through the retention reads everything anew, instead of missing a reward."""
    asyncio.run(_sleeps_through(tmp_path, postgres_url, caplog))


async def _sleeps_through(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(tmp_path / "a", database=url)
    async with service(tmp_path / "a", database=url, snapshots_kept=1, retention_seconds=0.01) as first:
        await first.create(**PLAIN)
        decided = await first.decide()
        follower = _follower(url, settings.state)
        follower.catch_up()
        (bandit,) = bandits_of(follower).values()
        assert len(bandit.open) == 1
        await first.reward(decided.json()["decision"], 1.0)
        await first.play(3)
        for _ in range(3):
            await first.upkeep.snapshot_all()
            await asyncio.sleep(0.02)
            await first.upkeep.round()
        assert sql(url, "SELECT dropped FROM sketchbandit_service")[0] > 0
        with caplog.at_level(logging.WARNING):
            follower.catch_up()
        assert "reads everything again" in caplog.text
        assert "dropped before this server read them" in caplog.records[-1].reason  # type: ignore[attr-defined]
        (bandit,) = bandits_of(follower).values()
        assert same(bandit.policy, first.engine.bandit("b").policy)
        follower._database.close()


@in_loop
async def test_a_record_that_cannot_be_applied(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is learned by halves: everything is read anew, and then it is what the first server has."""
    async with service(tmp_path / "a", database=postgres_url) as first:
        await first.create(**PLAIN)
        follower = _follower(postgres_url, tmp_path / "b")
        (tmp_path / "b").mkdir()
        follower.catch_up()
        await first.play(4)
        book, calls = Bandit.book, iter(range(100))

        def fails_once(bandit: Bandit, row: Row) -> Learning | None:
            if next(calls) == 5:
                raise MemoryError
            return book(bandit, row)

        monkeypatch.setattr(Bandit, "book", fails_once)
        follower.catch_up()
        (bandit,) = bandits_of(follower).values()
        assert next(calls) > 8
        assert (bandit.accounts.totals.rewards, bandit.policy.rounds) == (4, 4)
        assert same(bandit.policy, first.engine.bandit("b").policy)
        follower._database.close()


@pytest.mark.parametrize("error", [StorageError("canceling statement"), MemoryError()])
@in_loop
async def test_what_could_not_be_read_once(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A bandit is not given up for good: it is tried again, when the standby takes over at the latest."""
    settings: dict[str, Any] = {"database": postgres_url, "snapshots": "database"}
    async with service(tmp_path / "a", **settings) as first:
        await first.create(**PLAIN)
        await first.play(3)
        await first.upkeep.snapshot(first.engine.bandit("b"))
        (tmp_path / "b").mkdir()
        follower, read, calls = _follower(postgres_url, tmp_path / "b"), SnapshotTable.read, iter(range(100))

        def fails_once(store: SnapshotTable, bandit: int, seq: int) -> Snapshot:
            if next(calls) == 0:
                raise error
            return read(store, bandit, seq)

        monkeypatch.setattr(SnapshotTable, "read", fails_once)
        follower._step()
        await first.play(2, seed=1)
        follower.catch_up(is_last=True)
        (bandit,) = bandits_of(follower).values()
        assert same(bandit.policy, first.engine.bandit("b").policy)
        assert follower.replica is not None
        assert follower._database.read(follower.replica.all).quarantined == []
        follower._database.close()


def _follower(url: str, state: Path) -> Follower:
    database = Database(url)
    return Follower(database, state, snapshots_of(state, database))
