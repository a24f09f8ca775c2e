"""kill -9 at any moment, full disks, databases that go away: nothing acknowledged is lost or doubled."""

import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from sketchbandit_service.checking import check
from sketchbandit_service.client import Client, Retries, ServiceError
from sketchbandit_service.client.calls import Call
from sketchbandit_service.exporting import export
from tests.service.crowd import DIM, NAME, Crowd
from tests.service.killing import create, kill_again_and_again
from tests.service.ledger import verify
from tests.service.postgres import Postgres
from tests.service.processes import Zygote, free_port

KILLS = 9
TAKEOVER = 5.0  # seconds
READY = Call("GET", "/readyz", dict)


@pytest.mark.parametrize("where", ["sqlite", "postgresql", "standby"])
def test_killed_again_and_again(
    forge: Zygote, tmp_path: Path, where: str, request: pytest.FixtureRequest
) -> None:
    """Clients with a ledger, servers killed at random moments: what they were told is what there is.

    Some run out of memory, so that a bandit is quarantined until the next one; a standby takes over in time.
    """
    database = None if where == "sqlite" else request.getfixturevalue("postgres_url")
    tale = kill_again_and_again(
        forge, tmp_path, kills=KILLS, database=database, with_standby=where == "standby"
    )
    assert tale.rewards >= tale.acknowledged >= 5 * KILLS
    assert tale.quarantined
    assert tale.promoted == 6
    assert where != "standby" or max(tale.away) < TAKEOVER


def test_killed_while_slates_are_drawn(forge: Zygote, tmp_path: Path) -> None:
    """Rules that draw, slates, actions, estimates: after every kill the state is what the journal says."""
    state, port = tmp_path / "state", free_port()
    patient = Retries(attempts=400, first=0.01, most=0.05)
    told: dict[str, dict[int, float]] = {}
    server = forge.start(state, port)
    with Client(server.url, retries=patient) as client:
        shop = client.create(NAME, DIM, slates=True, explore={"rule": "thompson", "floor": 0.1})
        banner = client.create("banner", DIM, actions=["a", "b"], explore="inverse-gap")
        arms = np.random.default_rng(0).standard_normal((6, DIM))
        for number in range(60):
            chosen = banner.select_action(arms[number % 6])
            assert banner.update(chosen, float(number % 2)) is True
            decision = shop.select(arms, top=3)
            told[decision.id] = {place: float(number + place) for place in range(number % 4)}
            if told[decision.id]:
                shop.update(decision, told[decision.id])
            if number % 12 == 11:
                banner.add_actions([f"new-{number}"])
                banner.retire_action("b" if number == 11 else f"new-{number - 12}")
                server.kill()
                assert all(finding.is_good for finding in check(state))
                server = forge.start(state, port)
        for decision_id, rewards in told.items():
            assert not rewards or shop.update(decision_id, rewards) is False  # none is lost
        stats = shop.stats()
        assert banner.actions()["actions"] == ["a", "new-59"]
        assert banner.stats()["rounds"] == 60
    server.stop()
    assert stats["decisions"] == 60
    assert stats["rounds"] == sum(map(len, told.values()))
    assert all(finding.is_good for finding in check(state))
    assert export(state, tmp_path / "log") == 240


def test_postgresql_restarts_under_load(
    forge: Zygote, tmp_path: Path, postgres_url: str, postgres_server: Postgres
) -> None:
    """The database crashes again and again: clients wait or try again, and nothing is lost."""
    state, port = tmp_path / "state", free_port()
    server = forge.start(state, port, database=postgres_url)
    create(server.url)
    crowd = Crowd(server.url)
    crowd.start()
    for pause in (0.5, 0.1, 0.9):
        time.sleep(pause)
        postgres_server.restart()
        crowd.await_rewards(20)
    crowd.stop()
    server.stop()
    verify(crowd.ledgers, state, postgres_url)


def test_a_database_that_is_gone_is_a_503(
    forge: Zygote, tmp_path: Path, postgres_url: str, postgres_server: Postgres
) -> None:
    """While PostgreSQL is down requests are refused with a reason; when it is back they succeed."""
    state, port = tmp_path / "state", free_port()
    server = forge.start(state, port, database=postgres_url)
    create(server.url, timeout=60.0)
    with Client(server.url, retries=Retries(attempts=1)) as client:
        bandit = client.bandit(NAME)
        open_decision = bandit.select([[1.0] * DIM])
        postgres_server.stop()
        try:
            for _ in range(2):
                with pytest.raises(ServiceError) as refused:
                    bandit.select([[1.0] * DIM])
                assert refused.value.status == 503
            with pytest.raises(ServiceError) as unready:
                client.call(READY)
            assert unready.value.status == 503
        finally:
            postgres_server.start()
        with Client(server.url) as patient:
            assert patient.bandit(NAME).update(open_decision, 1.0) is True
            patient.call(READY)
    server.stop()


def test_a_full_disk_is_a_503_and_then_it_goes_on(forge: Zygote, tmp_path: Path) -> None:
    """Files that cannot grow: clear refusals, nothing half done; with room again all is well."""
    state, port = tmp_path / "state", free_port()
    server = forge.start(state, port)
    create(server.url)
    crowd = Crowd(server.url, clients=3)
    crowd.start()
    time.sleep(0.3)
    sizes = [path.stat().st_size for path in state.glob("journal.sqlite*")]
    server.limit_files(max(sizes) // 4096 * 4096)
    with Client(server.url, retries=Retries(attempts=1)) as client:
        deadline = time.monotonic() + 20
        while True:
            assert time.monotonic() < deadline, "the disk never seemed full"
            with suppress(ServiceError):
                client.bandit(NAME).select([[1.0] * DIM], key="of-the-test")
                continue
            with pytest.raises(ServiceError, match="nothing was changed") as refused:
                client.bandit(NAME).select([[1.0] * DIM], key="of-the-test")
            assert refused.value.status == 503
            break
    assert server.is_alive()
    server.limit_files(-1)
    crowd.await_rewards(50)
    crowd.stop()
    crowd.ledgers[0].asked.add("of-the-test")
    server.stop()
    verify(crowd.ledgers, state, None)


def test_a_locked_database_is_a_503(forge: Zygote, tmp_path: Path) -> None:
    """Another program holds SQLite's lock: refused after the patience, and fine when it lets go."""
    state, port = tmp_path / "state", free_port()
    server = forge.start(state, port)
    create(server.url)
    other = sqlite3.connect(state / "journal.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Client(server.url, retries=Retries(attempts=1)) as client:
        with pytest.raises(ServiceError, match="locked") as refused:
            client.bandit(NAME).select([[1.0] * DIM])
        assert refused.value.status == 503
        other.execute("ROLLBACK")
        other.close()
        with Client(server.url) as patient:  # it recovers by itself, without any traffic
            patient.call(READY)
        decision = client.bandit(NAME).select([[1.0] * DIM])
        assert client.bandit(NAME).update(decision, 1.0) is True
        assert client.bandit(NAME).stats()["decisions"] == 1
    server.stop()


def test_two_servers_on_one_folder(forge: Zygote, tmp_path: Path) -> None:
    """The second refuses; the first goes on."""
    state = tmp_path / "state"
    first = forge.start(state, free_port())
    with pytest.raises(RuntimeError, match="in use by another process"):
        forge.start(state, free_port())
    create(first.url)
    first.kill()
    again = forge.start(state, free_port())  # the lock went with the process
    with Client(again.url) as client:
        assert [found["name"] for found in client.bandits()] == [NAME]
    again.stop()


def test_a_lock_that_is_let_go_late(forge: Zygote, tmp_path: Path, postgres_url: str) -> None:
    """PostgreSQL may hold the lock of a killed server for a moment: the next one waits for it."""
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as killed:
        assert killed.execute(sa.text("SELECT pg_try_advisory_lock(7352001)")).scalar_one()
        gone = threading.Timer(0.5, killed.invalidate)
        gone.start()
        forge.start(tmp_path / "state", free_port(), database=postgres_url).stop()
        gone.join()
    engine.dispose()


def test_two_servers_on_one_database(forge: Zygote, tmp_path: Path, postgres_url: str) -> None:
    """Two folders, one PostgreSQL database: the second refuses too, and so does a folder of another."""
    first = forge.start(tmp_path / "one", free_port(), database=postgres_url)
    with pytest.raises(RuntimeError, match="in use by another server"):
        forge.start(tmp_path / "two", free_port(), database=postgres_url)
    first.stop()
    alone = forge.start(tmp_path / "alone", free_port())
    alone.stop()
    with pytest.raises(RuntimeError, match="snapshots of another journal"):
        forge.start(tmp_path / "alone", free_port(), database=postgres_url)
