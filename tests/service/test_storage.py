"""Decisions that wait for long, snapshots anywhere, databases that hang, files that go, clocks that leap."""

import asyncio
import math
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from pyarrow import parquet

from sketchbandit_service.checking import check, same
from sketchbandit_service.exporting import export
from sketchbandit_service.storage import checksums, tables
from sketchbandit_service.storage.connecting import default_url
from sketchbandit_service.storage.database import Database, Fenced, StorageError
from sketchbandit_service.storage.records import (
    ADDED,
    PROMOTED,
    ActionRow,
    CandidateRow,
    ChanceRow,
    DecisionRow,
    EstimateRow,
    Record,
    RewardRow,
    ScalingRow,
    Slate,
)
from tests.service.harness import PLAIN, Service, crashing, error_of, in_loop, service
from tests.service.postgres import Postgres


def count(found: Service, table: sa.Table) -> int:
    """Its rows."""
    query = sa.select(sa.func.count()).select_from(table)
    return int(found.engine.database.read(lambda connection: connection.execute(query).scalar_one()))


ODD: list[Record] = [
    Slate(
        (DecisionRow(1, 9, "t", -0.0, 0, None, 1, b"", 1, 5e-324, 0.1 + 0.2, 2**62, None, None, None, None),)
    ),
    Slate(
        (DecisionRow(2, 9, "é", 1e300, 0, "", 1, b"\0\xff", np.float64(0.1), 0, 0, 0, "k", "r", "[]", b"a"),)
    ),
    RewardRow(3, 1, 9, "given", 1, 1.7e9),
    RewardRow(4, 2, 9, "default", None, 1.7e9, 1),
    EstimateRow(5, 1, 9, np.float64(1 / 3)),
    ActionRow(6, 9, "ü\n", ADDED),
    ScalingRow(7, 9, b"\x01", 3, True),
    ScalingRow(8, 9, b"", 3, False),
    CandidateRow(9, 9, "c", ADDED, "{}", None, 1.7e9),
    CandidateRow(10, 9, "c", PROMOTED, None, "é", -0.0),
    ChanceRow(11, 9, b"\0\xff"),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_checksums(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    """Odd values come back as they were; any other value in any column is noticed."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else default_url(tmp_path)
    with closing(Database(url)) as database:
        database.open()
        database.commit(ODD, 11)
        found = {
            table: database.read(lambda connection, table=table: list(tables.all_rows(connection, table)))  # type: ignore[misc]
            for table in checksums.ROWS
        }
    for table, rows in found.items():
        assert rows
        for values in rows:
            row = checksums.unsealed(table, values)
            if isinstance(row, DecisionRow):
                assert checksums.is_log_whole(row, values.crc_logged)
                assert not checksums.is_log_whole(row._replace(top=_other(row.top)), values.crc_logged)
                assert not checksums.is_log_whole(row._replace(arms=_other(row.arms)), values.crc_logged)
            for place, (name, value) in enumerate(zip(row._fields, row, strict=True)):
                if not isinstance(row, DecisionRow) or name not in checksums.LOGGED:
                    changed = [*values[:place], _other(value), *values[place + 1 :]]
                    with pytest.raises(ValueError, match="checksum"):
                        checksums.unsealed(table, changed)


def _other(value: Any) -> Any:
    """The smallest change."""
    if value is None:
        return ""
    if isinstance(value, str | bytes):
        return value * 2 or None
    return math.nextafter(value, math.inf) if isinstance(value, float) else int(value) ^ 1


@in_loop
async def test_an_old_open_decision_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart reads it and what follows the snapshot, not all that lies between."""

    async def work(found: Service) -> None:
        await found.create(slates=True, **PLAIN)
        slate = (await found.decide(top=3)).json()["decision"]
        await found.rewards(slate, {"position": 0, "reward": 1.0})
        await found.play(20)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.rewards(slate, {"position": 2, "reward": 1.0})
        await found.play(2, seed=1)

    old = await crashing(tmp_path, work)
    read: list[int] = []
    real = checksums.unsealed

    def watched(table: sa.Table, values: Any) -> Any:
        read.append(values.seq)
        return real(table, values)

    monkeypatch.setattr(checksums, "unsealed", watched)
    async with service(tmp_path) as found:
        assert len(read) == 2 + 1 + 4 + 2  # the last of each kind say what time it was
        new, before = found.engine.bandit("b"), old.engine.bandit("b")
        assert same(new.policy, before.policy)
        assert new.open == before.open
    assert all(finding.is_good for finding in check(tmp_path))


@pytest.mark.parametrize("error", [MemoryError(), OSError("no space left"), RuntimeError("anything")])
@in_loop
async def test_a_snapshot_that_fails_concerns_one_bandit(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, tried again after a pause that grows, and others have theirs."""
    async with service(tmp_path, rounds=False, snapshot_updates=1) as found:
        for name in ("b", "other"):
            await found.create(name)
        real = found.engine.snapshots.write

        def write(bandit: int, snapshot: Any) -> None:
            if bandit == found.engine.bandit("b").number:
                raise error
            real(bandit, snapshot)

        found.engine.snapshots.write = write  # type: ignore[method-assign]
        for name in ("b", "other"):
            await found.play(2, name)
        for _ in range(3):
            await found.upkeep.round()
        assert found.engine.bandit("other").snapshots
        first = found.upkeep._put_offs[found.engine.bandit("b").number]
        assert not await found.upkeep.snapshot(found.engine.bandit("b"))
        assert found.upkeep._put_offs[found.engine.bandit("b").number].pause == 2 * first.pause
        said = [record for record in caplog.records if "snapshot could not be written" in record.message]
        assert len(said) == 1
        found.engine.snapshots.write = real  # type: ignore[method-assign]
        assert await found.upkeep.snapshot(found.engine.bandit("b"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@in_loop
async def test_snapshots_in_the_database(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    """In parts, rotated, checked, put aside; a server may change from one place to the other."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    request.getfixturevalue("monkeypatch").setattr("sketchbandit_service.storage.snapshots._PART", 700)
    common: Any = {"database": url}
    async with service(tmp_path, snapshots="folder", **common) as found:
        await found.create(**PLAIN)
        await found.decide()
        await found.play(3)
    async with service(tmp_path, snapshots="database", **common) as found:
        for seed in range(4):
            await found.play(2, seed=seed)
            await found.upkeep.snapshot(found.engine.bandit("b"))
        policy, number = found.engine.bandit("b").policy, found.engine.bandit("b").number
        assert len(found.engine.snapshots.places(number)) == 3
        assert count(found, tables.snapshots) > 3
    assert not list(tmp_path.glob("snapshots/*/*"))
    assert all(finding.is_good for finding in check(tmp_path, url))
    database = Database(url or default_url(tmp_path))
    part = tables.snapshots
    newest = database.read(
        lambda connection: connection.execute(sa.select(sa.func.max(part.c.seq))).scalar_one()
    )
    damage = part.update().where(part.c.seq == newest, part.c.part == 1).values(content=b"?" * 700)
    database.write_apart(lambda connection: connection.execute(damage))
    lost = part.delete().where(part.c.seq < newest, part.c.part == 0)
    database.write_apart(lambda connection: connection.execute(lost))
    database.close()
    assert sum(not finding.is_good for finding in check(tmp_path, url)) == 1
    async with service(tmp_path, snapshots="database", **common) as found:
        assert same(found.engine.bandit("b").policy, policy)
        assert len(found.engine.bandit("b").open) == 1
        await found.http.delete("/v1/bandits/b")
        for _ in range(2):
            await found.upkeep.round()
        assert count(found, part) == 0


@contextmanager
def stopped(server: Postgres) -> Iterator[None]:
    """Every process of a PostgreSQL server is frozen: it accepts connections and answers nothing."""
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    processes = [postmaster, *map(int, children)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_a_database_that_hangs(postgres_server: Postgres, postgres_url: str) -> None:
    """Its connection is broken from another thread; when it is back nothing is lost or doubled."""
    database = Database(postgres_url, patience=0.2)
    database.open()
    with stopped(postgres_server):
        started = time.monotonic()
        threading.Timer(0.2, database.abandon).start()
        with pytest.raises(StorageError):
            database.commit([ActionRow(1, 1, "x", ADDED)], 1)
        assert time.monotonic() - started < 5
    while True:
        try:
            database.settle()
            break
        except StorageError:
            time.sleep(0.05)
    database.commit([ActionRow(2, 1, "y", ADDED)], 2)
    rows = database.read(
        lambda connection: connection.execute(sa.select(tables.actions.c.seq)).scalars().all()
    )
    assert rows in ([2], [1, 2])
    database.close()


def test_a_lock_that_nobody_lets_go_of(postgres_url: str) -> None:
    """The database answers, but not this statement: it is given up within the patience."""
    database = Database(postgres_url, patience=0.3)
    database.open()
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE sketchbandit_actions")
        started = time.monotonic()
        with pytest.raises(StorageError, match="timeout"):
            database.commit([ActionRow(1, 1, "x", ADDED)], 1)
        assert time.monotonic() - started < 3
    database.commit([ActionRow(1, 1, "x", ADDED)], 1)
    database.close()


def test_a_connection_in_use_ends_with_the_database(postgres_url: str) -> None:
    """A standby that is stopped in the middle of a step closes the database while its thread reads on."""
    database, reads, may_end = Database(postgres_url), threading.Event(), threading.Event()
    database.open()

    def query(connection: sa.Connection) -> int:
        reads.set()
        assert may_end.wait(10)
        return int(connection.execute(sa.text("SELECT 7")).scalar_one())

    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(database.read, query)
        assert reads.wait(10)
        database.close()
        may_end.set()
        assert result.result(10) == 7
    assert not database.try_lock()
    mine = "SELECT count(*) FROM pg_stat_activity WHERE client_addr IS NOT NULL AND pid <> pg_backend_pid()"
    with psycopg.connect(postgres_url, autocommit=True) as other:
        for _ in range(500):  # PostgreSQL needs a moment to see that a connection is closed
            if (row := other.execute(mine).fetchone()) == (0,):
                break
            time.sleep(0.01)
    assert row == (0,)


@pytest.mark.parametrize("is_replaced", [False, True])
@in_loop
async def test_a_lost_file(tmp_path: Path, is_replaced: bool) -> None:
    """Nothing is acknowledged into a file that is gone, and an idle server notices too."""
    async with service(tmp_path) as found:
        await found.create()
        journal = tmp_path / "journal.sqlite"
        content = journal.read_bytes()
        journal.rename(tmp_path / "elsewhere")
        if is_replaced:
            journal.write_bytes(content)
            await asyncio.wait_for(_not_ready(found), 3)
        assert "removed or replaced" in error_of(await found.decide())[1]
        assert error_of(await found.http.get("/readyz"))[0] == 503
        (tmp_path / "elsewhere").rename(journal)


async def _not_ready(found: Service) -> None:
    while (await found.http.get("/readyz")).status_code == 200:
        await asyncio.sleep(0.05)


def test_a_file_that_goes_during_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is in a file that nobody will find: it is not acknowledged."""
    database = Database(default_url(tmp_path))
    database.open()
    answers = iter([False])
    monkeypatch.setattr(database, "is_there", lambda: next(answers))
    with pytest.raises(Fenced, match="removed or replaced"):
        database.commit([ActionRow(1, 1, "x", ADDED)], 1)
    database.close()


def age(state: Path, days: float) -> None:
    """Make everything in the journal older, as if the service had been off for so long."""
    with sqlite3.connect(state / "journal.sqlite") as connection:
        for table in ("decisions", "rewards"):
            older = f"UPDATE sketchbandit_{table} SET crc = NULL, at = at - ?"  # noqa: S608
            connection.execute(older, (days * 86_400,))
        connection.execute("UPDATE sketchbandit_bandits SET created = created - ?", (days * 86_400,))
    connection.close()


@pytest.mark.parametrize("is_right", [True, False])
@in_loop
async def test_a_clock_far_ahead(tmp_path: Path, is_right: bool) -> None:
    """Nothing expires by it until somebody says that it is right; a wrong one that is set leaves no trace."""
    async with service(tmp_path) as found:
        await found.create(reward_timeout=3600.0, default_reward=0.0)
        await found.decide()
    age(tmp_path, 400)
    for opened in (1, 2):
        async with service(tmp_path) as found:
            await found.play(1)
            await found.upkeep.round()
            assert len(found.engine.bandit("b").open) == opened
            assert time.time() - found.engine.clock.now() > 399 * 86_400
            await found.decide()
    if is_right:
        async with service(tmp_path, accept_clock=True) as found:
            await found.upkeep.round()
            assert not found.engine.bandit("b").open
        return
    age(tmp_path, -400)  # the clock is set right
    async with service(tmp_path) as found:
        assert abs(time.time() - found.engine.clock.now()) < 3600
        await found.upkeep.round()
        assert len(found.engine.bandit("b").open) == 3


@in_loop
async def test_a_service_that_was_off_for_a_while(tmp_path: Path) -> None:
    """What has expired meanwhile has expired."""
    async with service(tmp_path) as found:
        await found.create(reward_timeout=3600.0, default_reward=0.0)
        await found.decide()
    age(tmp_path, 20)
    async with service(tmp_path) as found:
        await found.upkeep.round()
        assert not found.engine.bandit("b").open


@in_loop
async def test_deleting_gives_space_back(tmp_path: Path) -> None:
    """The file becomes shorter."""
    async with service(tmp_path) as found:
        await found.create(log_arms=True, dim=300, **PLAIN)
        arms = [[1.0] * 300] * 200
        await asyncio.gather(*(found.decide(arms) for _ in range(10)))
        pages = "PRAGMA page_count"
        read = found.engine.database.read
        before = read(lambda connection: connection.exec_driver_sql(pages).scalar_one())
        await found.http.delete("/v1/bandits/b")
        for _ in range(4):
            await found.upkeep.round()
        assert read(lambda connection: connection.exec_driver_sql(pages).scalar_one()) < before / 10


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@in_loop
async def test_export_beside_a_running_service(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """It sees one state of the journal, takes no lock, and holds some rows at a time, dense and sparse."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    request.getfixturevalue("monkeypatch").setattr(tables, "_MOST_BYTES", 2000)
    dense, sparse = [0.5, 0.25, 0.0, 1.0], {"indices": [1, 3], "values": [2.0, -1.0]}
    async with service(tmp_path, database=url) as found:
        await found.create(log_arms=True, **PLAIN)
        await found.create("other", log_arms=False, **PLAIN)
        for arms in ([dense, dense], [sparse, sparse]):
            for name in ("b", "other"):
                for _ in range(6):
                    await found.decide(arms, name)
        assert await asyncio.to_thread(export, tmp_path, tmp_path / "log", database=url) == 24
        assert (await found.decide()).status_code == 200
    told = parquet.read_table(tmp_path / "log").to_pylist()
    assert [row["feature_values"] for row in told] == 12 * [dense] + 12 * [[2.0, -1.0]]
    assert [row["feature_indices"] for row in told] == 12 * [None] + 12 * [[1, 3]]
    kept = {"indices": None, "values": dense}, {"indices": [1, 3], "values": [2.0, -1.0]}
    assert [row["arms"] for row in told] == [
        *(6 * [2 * [kept[0]]] + 6 * [None]),
        *(6 * [2 * [kept[1]]] + 6 * [None]),
    ]
    assert parquet.ParquetFile(tmp_path / "log").num_row_groups > 1
