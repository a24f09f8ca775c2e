"""What survives a restart, to the bit; damaged snapshots; commits in doubt; rows that are dropped."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy import event

import sketchbandit as sb
from sketchbandit.errors import InputError
from sketchbandit_service.checking import check, same
from sketchbandit_service.engine import Engine
from sketchbandit_service.settings import Settings
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS
from sketchbandit_service.storage.connecting import default_url
from sketchbandit_service.storage.database import Database, Fenced, InDoubt, Refused, StorageError
from sketchbandit_service.storage.records import DecisionRow, Statements
from tests.service.harness import DIM, PLAIN, Service, crashing, error_of, in_loop, service
from tests.service.test_rewards import set_clock

POLICIES = [
    ("adaptive", {"size": 3, "epsilon": 1.0}),
    ("dbslinucb", {"size": 2, "epsilon": 1.0}),
    ("oful", {}),
    ("soful", {"size": 3}),
    ("cbrap", {"size": 3}),
]


def test_same_means_to_the_bit() -> None:
    """Two policies that differ in one entry, or in the sign of a zero, are not the same."""

    def learned(arm: list[float], reward: float = 1.0) -> Any:
        policy = sb.oful(2)
        policy.update(arm, reward)
        return policy

    assert same(learned([1.0, 0.0]), learned([1.0, 0.0]))
    assert not same(learned([1.0, 0.0]), learned([0.0, 1.0]))
    thin, negative = learned([1.0, 0.0]), learned([1.0, 0.0])
    scalars, arrays = negative.dump()
    negative.dump = lambda: (
        scalars,
        {name: np.where(array == 0, -0.0, array) for name, array in arrays.items()},
    )
    assert any((array == 0).any() for array in arrays.values())
    assert not same(thin, negative)
    assert not same(learned([1.0, 0.0]), sb.oful(2))


def test_rows_and_tables_have_the_same_columns() -> None:
    """Rows are inserted by position, their checksums after them."""
    for table, kind in ROWS.items():
        checksums = ("crc", "crc_logged") if kind is DecisionRow else ("crc",)
        assert (*kind._fields, *checksums) == tuple(table.columns.keys())


@pytest.mark.parametrize(("policy", "parameters"), POLICIES)
@in_loop
async def test_a_crash_changes_nothing(tmp_path: Path, policy: str, parameters: dict[str, Any]) -> None:
    """Policy, open decisions, counts and arms are as before; with and without a snapshot on the way."""

    async def work(found: Service) -> None:
        await found.create(policy=policy, parameters=parameters)
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"x": [1.0] * DIM, "y": {"f": 2.0}}})
        await found.play(25)
        await found.decide(["y"])  # open, and sparse
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.play(18, seed=1)
        await found.decide()

    before = await crashing(tmp_path / "a", work)
    old = before.engine.bandit("b")
    async with service(tmp_path / "a") as found:
        new = found.engine.bandit("b")
        assert same(new.policy, old.policy)
        assert (new.accounts.totals, new.accounts.timeline.dump()) == (
            old.accounts.totals,
            old.accounts.timeline.dump(),
        )
        assert new.arms.ids() == ["x", "y"]
        assert new.open.keys() == old.open.keys()
        assert len(new.open) == 2
        assert new.open_bytes == old.open_bytes
        for seq, opened in list(new.open.items()):
            answer = await found.reward(f"{seq:x}-{opened[0].tag}", 0.25)
            assert answer.json()["status"] == "learned"
        await found.play(5, seed=2)
        learned = new.policy
    async with service(tmp_path / "a") as again:  # after an orderly end
        assert same(again.engine.bandit("b").policy, learned)
        assert (await again.stats())["rounds"] == 50
    assert all(finding.is_good for finding in check(tmp_path / "a"))


@in_loop
async def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    """The one before is used, then none at all; the journal makes up for it, and `check` tells."""
    async with service(tmp_path) as found:
        await found.create()
        for seed in range(4):
            await found.play(10, seed=seed)
            await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.play(3)
        policy = found.engine.bandit("b").policy
    paths = sorted(tmp_path.glob("snapshots/*/*.safetensors"), reverse=True)
    assert len(paths) == 3  # rotated
    assert all(finding.is_good for finding in check(tmp_path))
    for damaged, path in enumerate(paths, 1):
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content[: len(content) - (damaged == 2)])  # one is cut short as well
        findings = check(tmp_path)
        assert sum(not finding.is_good for finding in findings) == 1  # those before were put aside
        again = Engine(Settings(tmp_path))
        await again.start()
        assert same(again.bandit("b").policy, policy)
        await again.drain()
        again.release()


@in_loop
async def test_two_bandits_with_snapshots_of_different_times(tmp_path: Path) -> None:
    """Each goes on from its own: what the other needs of the journal is not played to it again."""

    async def work(found: Service) -> None:
        await found.create("early")
        await found.create("late")
        await found.play(5, "early")
        await found.play(5, "late")
        await found.upkeep.snapshot(found.engine.bandit("early"))
        await found.play(5, "early", seed=1)
        await found.decide(name="late")
        await found.play(5, "late", seed=1)
        await found.upkeep.snapshot(found.engine.bandit("late"))

    old = await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        for name in ("early", "late"):
            new, before = found.engine.bandit(name), old.engine.bandit(name)
            assert same(new.policy, before.policy)
            assert (new.accounts.totals, new.open.keys()) == (before.accounts.totals, before.open.keys())


@in_loop
async def test_debris_of_a_snapshot_goes(tmp_path: Path) -> None:
    """A temporary file that a crash left is removed, and never read."""
    async with service(tmp_path) as found:
        await found.create()
        await found.play(3)
    (folder,) = tmp_path.glob("snapshots/*")
    debris = folder / ".00000000000000000009.safetensors.abc.tmp"
    debris.write_bytes(b"half")
    async with service(tmp_path) as found:
        assert (await found.stats())["rounds"] == 3
    assert not debris.exists()


@in_loop
async def test_check_notices_a_changed_journal(tmp_path: Path) -> None:
    """A reward altered in the database, and a reward without its decision."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        await found.play(6)
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("UPDATE sketchbandit_rewards SET reward = reward + 1e-9 WHERE seq = 5")
    connection.close()
    bad = [finding.details for finding in check(tmp_path) if not finding.is_good]
    assert bad[0].startswith("rewards 5: it does not match its checksum, so it was changed in the database")
    assert "damaged at record 5 of rewards" in bad[1]
    assert "service repair" in bad[1]
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("DELETE FROM sketchbandit_decisions WHERE seq = 2")
    connection.close()
    bad = [finding.details for finding in check(tmp_path) if not finding.is_good]
    assert "1 rewards have no decision before them" in bad[0]
    assert "damaged at record 3 of rewards: there is no open decision 2" in bad[1]


@in_loop
async def test_deleted_bandits_go_for_good(tmp_path: Path) -> None:
    """Rows and snapshots too, after a crash in the middle as well; the name can be taken again."""

    async def work(found: Service) -> None:
        await found.create()
        await found.create("kept")
        await found.play(5)
        await found.play(5, "kept")
        await found.upkeep.snapshot(found.engine.bandit("b"))
        assert (await found.http.delete("/v1/bandits/b")).status_code == 200

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert list(found.engine.registry.bandits) == ["kept"]
        for _ in range(2):
            await found.upkeep.round()
        counts = found.engine.database.read(
            lambda connection: [
                connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in (tables.bandits, tables.decisions, tables.rewards)
            ]
        )
        assert counts == [1, 5, 5]
        await found.create()
        assert (await found.stats())["decisions"] == 0
    assert len(list(tmp_path.glob("snapshots/*"))) == 2
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_numbers_are_never_given_twice(tmp_path: Path) -> None:
    """Rows of a deleted bandit were the last ones: after a restart numbers go on above them all the same."""
    async with service(tmp_path) as found:
        await found.create("kept")
        await found.play(3, "kept")
        await found.create()
        await found.play(30)
        await found.http.delete("/v1/bandits/b")
        for _ in range(3):
            await found.upkeep.round()
        last = found.engine.journal.applied

    async def work(found: Service) -> None:
        assert found.engine.journal.applied >= last
        await found.play(6, "kept", seed=1)

    old = await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert found.engine.bandit("kept").policy.rounds == 9
        assert same(found.engine.bandit("kept").policy, old.engine.bandit("kept").policy)


@in_loop
async def test_an_older_copy_of_the_database(tmp_path: Path) -> None:
    """Snapshots ahead of a restored journal are put aside, and what comes after is not lost."""
    async with service(tmp_path) as found:
        await found.create()
        await found.play(10)
    backup = (tmp_path / "journal.sqlite").read_bytes()
    async with service(tmp_path) as found:
        await found.play(20, seed=1)
    for path in tmp_path.glob("journal.sqlite-*"):
        path.unlink()
    (tmp_path / "journal.sqlite").write_bytes(backup)
    assert any("ahead of the journal" in finding.details for finding in check(tmp_path))

    async def work(found: Service) -> None:
        assert found.engine.bandit("b").policy.rounds == 10
        await found.play(40, seed=2)

    old = await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").policy.rounds == 50
        assert same(found.engine.bandit("b").policy, old.engine.bandit("b").policy)
    assert list(tmp_path.glob("snapshots/*/*.unusable"))


@in_loop
async def test_a_snapshot_of_another_bandit(tmp_path: Path) -> None:
    """Whatever number it has, it is not taken for one's own."""
    async with service(tmp_path / "a") as found:
        await found.create()
        await found.play(5)
        policy = found.engine.bandit("b").policy
    async with service(tmp_path / "b") as found:
        await found.create()
        await found.play(3, seed=1)
    (mine,) = (tmp_path / "a").glob("snapshots/*/*.safetensors")
    (other,) = (tmp_path / "b").glob("snapshots/*/*.safetensors")
    mine.write_bytes(other.read_bytes())
    async with service(tmp_path / "a") as found:
        assert same(found.engine.bandit("b").policy, policy)


@in_loop
async def test_stored_arms_keep_their_order(tmp_path: Path) -> None:
    """Replaced ones too, so that an index means the same after a restart."""
    async with service(tmp_path) as found:
        await found.create()

        async def put(*ids: str) -> None:
            arms = {arm: [1.0] * DIM for arm in ids}
            assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).status_code == 200

        await put("x", "y")
        await put("c", "x")
        await found.http.delete("/v1/bandits/b/arms/y")
        await asyncio.gather(put("a", "y"), put("y", "b"))
        order = found.engine.bandit("b").arms.ids()
        assert order[:2] == ["x", "c"]
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").arms.ids() == order
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"new": [1.0] * DIM}})
        assert found.engine.bandit("b").arms.ids() == [*order, "new"]
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").arms.ids() == [*order, "new"]


@in_loop
async def test_the_mark_of_a_folder(tmp_path: Path) -> None:
    """Left empty by a power cut it is no obstacle; one of another journal is."""
    async with service(tmp_path) as found:
        await found.create()
        await found.play(2)
    (tmp_path / "instance").write_text("", encoding="utf-8")
    async with service(tmp_path) as found:
        assert found.engine.bandit("b").policy.rounds == 2
    (tmp_path / "instance").write_text("0" * 32, encoding="utf-8")
    with pytest.raises(InputError, match="snapshots of another journal"):
        await Engine(Settings(tmp_path)).start()
    with pytest.raises(InputError, match="do not belong to the same server"):
        check(tmp_path)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """`check` of a database that holds no journal makes none."""
    sqlite3.connect(tmp_path / "journal.sqlite").close()
    with pytest.raises(InputError, match="holds no journal"):
        check(tmp_path)
    assert not Database(default_url(tmp_path)).read(
        lambda connection: sa.inspect(connection).get_table_names()
    )


@in_loop
async def test_a_damaged_stored_arm_is_named(tmp_path: Path) -> None:
    """Not a bare error from inside."""
    async with service(tmp_path) as found:
        await found.create()
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"x": [1.0] * DIM}})
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("UPDATE sketchbandit_arms SET features = x'44'")
    connection.close()
    async with service(tmp_path) as found:
        assert "stored arm 'x' of bandit 'b' is damaged" in found.engine.registry.quarantined["b"].reason


@in_loop
async def test_rounds_of_upkeep_wait_for_each_other(tmp_path: Path) -> None:
    """Two at once took one snapshot twice; rows that an older file still needed were dropped then."""
    async with service(tmp_path, retention_seconds=0.1, snapshot_seconds=0.0) as found:
        await found.create()
        for seed in range(4):
            await found.play(3, seed=seed)
            await asyncio.gather(*(found.upkeep.round() for _ in range(3)))
            taken = [snapshot.seq for snapshot in found.engine.bandit("b").snapshots]
            assert len(set(taken)) == len(taken)
            await asyncio.sleep(0.11)
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_old_decisions_are_dropped(tmp_path: Path) -> None:
    """After the retention, when no snapshot needs them; late rewards are told that; a restart is exact."""
    async with service(tmp_path, rounds=False, retention_seconds=0.2, snapshot_seconds=0.05) as found:
        time = set_clock(found)  # so that a slow machine does not make decisions old
        await found.create()
        old = (await found.decide()).json()["decision"]
        await found.reward(old, 1.0)
        still_open = (await found.decide()).json()["decision"]
        for seed in range(4):
            await found.play(8, seed=seed)
            time.at += 0.06
            await found.upkeep.round()
        time.at += 0.25
        await found.upkeep.round()
        assert error_of(await found.reward(old, 1.0))[0] == 410
        left = found.engine.database.read(
            lambda connection: connection.execute(sa.select(tables.decisions.c.seq)).scalars().all()
        )
        needed = [seq for seq in left if seq > found.engine.bandit("b").snapshots[0].seq]
        assert len(left) == len(needed) + 1  # those that a snapshot needs, and the one that is open
        assert len(needed) in {8, 16}  # another snapshot comes if anything was written after the last one
        await found.reward(still_open, 0.5)
        for seed in range(4, 8):
            await found.play(4, seed=seed)
            time.at += 0.06
            await found.upkeep.round()
        time.at += 0.25
        await found.upkeep.round()
        policy = found.engine.bandit("b").policy
        assert error_of(await found.reward(still_open, 0.5))[0] == 410
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, policy)
        stats = await found.stats()
        assert (stats["decisions"], stats["rounds"]) == (50, 50)
        assert error_of(await found.reward(old, 1.0))[0] == 410
    assert all(finding.is_good for finding in check(tmp_path))
    for path in tmp_path.glob("snapshots/*/*.safetensors"):
        path.write_bytes(b"damaged")
    assert not all(finding.is_good for finding in check(tmp_path))
    async with service(tmp_path) as found:
        assert "put its snapshots back" in found.engine.registry.quarantined["b"].reason


class Unreliable(sqlite3.Connection):
    """Commits, and then says that it failed."""

    is_failing = False

    def commit(self) -> None:
        """Commit."""
        super().commit()
        if Unreliable.is_failing:
            Unreliable.is_failing = False
            raise sqlite3.OperationalError("the answer was lost")


@pytest.fixture
def unreliable(tmp_path: Path) -> Database:
    """A database whose answers can be lost, and that can be away."""
    found = Database(default_url(tmp_path), patience=0.2)

    def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
        del dialect, record, arguments
        if found.is_away:  # type: ignore[attr-defined]
            raise sqlite3.OperationalError("unable to open database file")
        options["factory"] = Unreliable

    found.is_away = False  # type: ignore[attr-defined]
    event.listen(found._engine, "do_connect", connect)
    Unreliable.is_failing = False
    found.open()
    return found


def bandit_row(number: int) -> Statements:
    """Something to be committed."""
    row = {"id": number, "name": f"b{number}", "config": "{}", "created": 0.0}
    return Statements((tables.bandits.insert().values(row),))


def count(database: Database) -> int:
    """Bandits in the database."""
    found: int = database.read(
        lambda connection: connection.execute(
            sa.select(sa.func.count()).select_from(tables.bandits)
        ).scalar_one()
    )
    return found


def test_a_lost_answer_is_looked_up(unreliable: Database) -> None:
    """A commit that happened is taken as such, whatever the connection said."""
    Unreliable.is_failing = True
    unreliable.commit([bandit_row(1)], 1)
    unreliable.commit([bandit_row(2)], 2)
    assert count(unreliable) == 2
    unreliable.close()


def test_a_commit_in_doubt_is_settled_later(unreliable: Database) -> None:
    """Where it cannot be looked up it is in doubt, until the database is back."""
    Unreliable.is_failing = True
    unreliable.is_away = True  # type: ignore[attr-defined]
    with pytest.raises(InDoubt):
        unreliable.commit([bandit_row(1)], 1)
    with pytest.raises(StorageError):
        unreliable.settle()
    unreliable.is_away = False  # type: ignore[attr-defined]
    assert unreliable.settle() is True
    unreliable.commit([bandit_row(2)], 2)
    assert count(unreliable) == 2
    unreliable.close()


def test_doubt_and_another_writer(unreliable: Database, tmp_path: Path) -> None:
    """Whose commit it was that is found there cannot be told: this server must not go on."""
    Unreliable.is_failing = True
    unreliable.is_away = True  # type: ignore[attr-defined]
    with pytest.raises(InDoubt):
        unreliable.commit([bandit_row(1)], 1)
    other = Database(default_url(tmp_path))
    other.open()
    other.commit([bandit_row(2)], 2)
    other.close()
    unreliable.is_away = False  # type: ignore[attr-defined]
    with pytest.raises(Fenced, match="another server"):
        unreliable.settle()
    unreliable.close()


def test_a_failed_statement_is_no_doubt(unreliable: Database) -> None:
    """Refused by the database, so not committed, neither it nor what came with it."""
    unreliable.commit([bandit_row(1)], 1)
    with pytest.raises(Refused, match="UNIQUE"):
        unreliable.commit([bandit_row(2), bandit_row(1)], 2)
    unreliable.commit([bandit_row(3)], 3)
    assert count(unreliable) == 2
    unreliable.close()


def test_another_writer_is_noticed(unreliable: Database, tmp_path: Path) -> None:
    """Somebody else has committed: this server must not go on."""
    other = Database(default_url(tmp_path))
    other.open()
    other.commit([bandit_row(1)], 1)
    other.close()
    with pytest.raises(Fenced, match="another server"):
        unreliable.commit([bandit_row(2)], 2)
    unreliable.close()


@in_loop
async def test_clients_hear_of_doubt_and_nothing_is_counted_twice(tmp_path: Path) -> None:
    """503 in doubt; once settled the decision is there, and the same request finds it."""
    async with service(tmp_path) as found:
        await found.create()
        decision = (await found.decide()).json()["decision"]
        database = found.engine.database
        real, settle = database.commit, database.settle

        def lose_answer(records: Any, seq: int) -> None:
            real(records, seq)
            database._batch -= 1  # as if nobody had heard
            database._is_unsure = True
            database._drop()
            raise InDoubt("the answer was lost")

        def unreachable() -> bool:
            raise StorageError("no answer yet")

        database.commit = lose_answer  # type: ignore[method-assign]
        database.settle = unreachable  # type: ignore[method-assign]
        status, message = error_of(await found.reward(decision, 0.5))
        assert (status, "not known yet" in message) == (503, True)
        assert error_of(await found.http.get("/readyz"))[0] == 503
        database.commit = real  # type: ignore[method-assign]
        assert (await found.stats())["rounds"] == 0
        again = await found.decide()  # whatever it is: it may have happened already
        assert error_of(again)[0] == 503
        database.settle = settle  # type: ignore[method-assign]
        while (await found.http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)
        assert (await found.stats())["rounds"] == 1
        assert (await found.decide()).status_code == 200
        assert (await found.reward(decision, 0.5)).json()["status"] == "known"
        assert (await found.http.get("/readyz")).status_code == 200
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_sqlite_says_full(tmp_path: Path) -> None:
    """SQLITE_FULL on commit: a clear 503, nothing changed, and on it goes when there is room."""
    async with service(tmp_path) as found:
        await found.create(log_arms=True)
        connection = found.engine.database._connection
        assert connection is not None
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.rollback()
        event.listen(
            found.engine.database._engine,
            "connect",
            lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages}"),
        )
        found.engine.database._drop()
        arms = np.ones((500, DIM)).tolist()
        status, message = error_of(await found.decide(arms))
        assert status == 503
        assert "full" in message
        assert (await found.stats())["decisions"] == 0
        assert error_of(await found.http.get("/readyz"))[0] == 503
        found.engine.database._drop()
        event.listen(
            found.engine.database._engine,
            "connect",
            lambda raw, _: raw.execute("PRAGMA max_page_count=100000"),
        )
        await found.upkeep.round()  # tries by itself
        assert (await found.http.get("/readyz")).status_code == 200
        assert (await found.decide(arms)).status_code == 200


def test_urls_of_databases() -> None:
    """What cannot be a journal is said so; passwords are never shown."""
    for url in ("nonsense", "mysql://u@h/d", "sqlite+nothing:///x"):
        with pytest.raises(InputError):
            Database(url)
    assert "secret" not in str(Database("postgresql://user:secret@host/name"))


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """A journal of a later version is not touched."""
    database = Database(default_url(tmp_path))
    database.open()
    database.commit([Statements((tables.service.update().values(format=99),))], 0)
    database.close()
    with pytest.raises(InputError, match="format 99"):
        Database(default_url(tmp_path)).open()
