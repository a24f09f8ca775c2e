"""Starts from a damaged, changed or replaced journal: whose trouble it is, and what is read."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sketchbandit_service import recovery, replaying
from sketchbandit_service.checking import check, same
from sketchbandit_service.repairing import repair
from sketchbandit_service.storage.connecting import default_url
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.snapshots import snapshots_of
from tests.service.harness import PLAIN, Service, crashing, in_loop, service

B = "(SELECT id FROM sketchbandit_bandits WHERE name = 'b')"


def change(state: Path, statement: str) -> int:
    """Do something to the journal by hand; how many rows it concerned."""
    connection = sqlite3.connect(state / "journal.sqlite")
    with connection:
        count = connection.execute(statement).rowcount
    connection.close()
    return count


async def with_open_decisions(found: Service) -> None:
    """Two bandits with a snapshot each, that knows of three open decisions."""
    for name in ("b", "other"):
        await found.create(name, **PLAIN, reward_timeout=1000.0, default_reward=0.0)
        await found.play(3, name)
        for _ in range(3):
            await found.decide(name=name)
        await found.upkeep.snapshot(found.engine.bandit(name))


@pytest.mark.parametrize("in_database", [False, True])
@in_loop
async def test_several_rows_are_missing(tmp_path: Path, in_database: bool) -> None:
    """Their bandit is quarantined, the other serves; repair brings it back, wherever snapshots are."""
    settings: dict[str, Any] = {"snapshots": "database" if in_database else "folder"}
    await crashing(tmp_path, with_open_decisions, **settings)
    gone = f"SELECT seq FROM sketchbandit_decisions WHERE bandit = {B} ORDER BY seq DESC LIMIT 2"  # noqa: S608
    assert change(tmp_path, f"DELETE FROM sketchbandit_decisions WHERE seq IN ({gone})") == 2  # noqa: S608
    async with service(tmp_path, **settings) as found:
        assert [*found.engine.registry.quarantined] == ["b"]
        assert len(found.engine.bandit("other").open) == 3
    assert all(finding.is_good for finding in repair(tmp_path, bandit="b", set_aside=True))
    async with service(tmp_path, **settings) as found:
        assert found.engine.registry.quarantined == {}
        assert (len(found.engine.bandit("b").open), found.engine.bandit("b").policy.rounds) == (1, 3)


@pytest.mark.parametrize("to", ["77", "(SELECT id FROM sketchbandit_bandits WHERE name = 'other')"])
@in_loop
async def test_a_reward_that_was_given_to_another_bandit(tmp_path: Path, to: str) -> None:
    """The one that it was taken from is quarantined, not the one that it was given to."""

    async def work(found: Service) -> None:
        await found.create(**PLAIN)
        await found.create("other", **PLAIN)
        await found.play(3)
        await found.play(3, "other")

    await crashing(tmp_path, work)
    newest = f"SELECT max(seq) FROM sketchbandit_rewards WHERE bandit = {B}"  # noqa: S608
    assert change(tmp_path, f"UPDATE sketchbandit_rewards SET bandit = {to} WHERE seq = ({newest})") == 1  # noqa: S608
    async with service(tmp_path) as found:
        assert [*found.engine.registry.quarantined] == ["b"]
        assert found.engine.bandit("other").policy.rounds == 3
    assert not all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_a_time_that_was_changed_moves_no_clock(tmp_path: Path) -> None:
    """A damaged row a lifetime ahead expires nothing of other bandits."""
    await crashing(tmp_path, with_open_decisions)
    for table in ("decisions", "rewards"):
        newest = f"SELECT max(seq) FROM sketchbandit_{table} WHERE bandit = {B}"  # noqa: S608
        assert change(tmp_path, f"UPDATE sketchbandit_{table} SET at = at + 1e9 WHERE seq = ({newest})") == 1  # noqa: S608
    change(tmp_path, f"UPDATE sketchbandit_bandits SET created = created + 1e9 WHERE id = {B}")  # noqa: S608
    async with service(tmp_path) as found:
        await found.upkeep.round()
        assert len(found.engine.bandit("other").open) == 3


@in_loop
async def test_a_new_bandit_makes_no_start_read_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs nothing from before it was created."""

    async def work(found: Service) -> None:
        await found.create(**PLAIN)
        await found.play(10)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.create("new", **PLAIN)
        await found.play(2, "new")

    await crashing(tmp_path, work)
    read, real = [], replaying._after

    def counted(*arguments: Any) -> Any:
        for one in real(*arguments):
            read.append(one)
            yield one

    monkeypatch.setattr(replaying, "_after", counted)
    async with service(tmp_path) as found:
        assert len(read) == 4
        assert found.engine.bandit("new").policy.rounds == 2


@in_loop
async def test_a_snapshot_of_another_course_of_the_journal(tmp_path: Path) -> None:
    """The database was replaced by an older copy and went on: a snapshot of what was is not taken for it."""
    state, aside = tmp_path / "state", tmp_path / "aside"
    aside.mkdir()
    async with service(state) as found:
        await found.create(**PLAIN)
        await found.play(3)
    shutil.copy(state / "journal.sqlite", aside / "journal.sqlite")
    async with service(state) as found:
        await found.play(4, seed=1)
    shutil.copytree(state / "snapshots", aside / "snapshots")  # as on a machine that is switched off now
    for path in [*state.glob("journal.sqlite*"), *state.glob("snapshots/*/*")]:
        path.unlink()
    shutil.copy(aside / "journal.sqlite", state / "journal.sqlite")

    async def work(found: Service) -> None:
        await found.play(9, seed=2)

    there = await crashing(state, work)
    shutil.rmtree(state / "snapshots")
    shutil.copytree(aside / "snapshots", state / "snapshots")
    database = Database(default_url(state))
    database.open()
    again = database.read(
        lambda connection: recovery.recover_from(connection, snapshots_of(state, database), is_owner=False)
    )
    database.close()
    assert same(again.bandits[0].policy, there.engine.bandit("b").policy)


@in_loop
async def test_repair_without_setting_aside_changes_nothing(tmp_path: Path) -> None:
    """A damaged snapshot stays where it is."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        await found.play(3)
    (path,) = tmp_path.glob("snapshots/*/*")
    path.write_bytes(path.read_bytes()[:-1])
    assert all(finding.is_good for finding in repair(tmp_path))
    assert [*tmp_path.glob("snapshots/*/*")] == [path]


@in_loop
async def test_a_record_that_a_snapshot_covers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No start needs it, and its bandit goes on; that it was changed is found soon, logged and counted."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        await found.play(5)
        await found.upkeep.round()
        assert b"sketchbandit_damaged_records_total 0.0" in (await found.http.get("/metrics")).content
    where = "seq = (SELECT min(seq) FROM sketchbandit_rewards)"
    assert change(tmp_path, f"UPDATE sketchbandit_rewards SET reward = 5 WHERE {where}") == 1  # noqa: S608
    async with service(tmp_path) as found:
        for _ in range(20):
            await found.upkeep.round()
        assert found.engine.bandit("b").policy.rounds == 5
        told = (await found.http.get("/metrics")).content
        assert b"sketchbandit_damaged_records_total 1.0" in told
        assert b"sketchbandit_quarantined_bandits 0.0" in told
    assert [record.table for record in caplog.records if "was changed" in record.message] == [  # type: ignore[attr-defined]
        "sketchbandit_rewards"
    ]
