"""Bandits that cannot be started: set aside while all others serve, and brought back."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sketchbandit.errors import InputError
from sketchbandit.policy import LinUCB
from sketchbandit_service.checking import check, same
from sketchbandit_service.engine import Engine
from sketchbandit_service.repairing import repair
from sketchbandit_service.settings import Settings
from tests.service.harness import DIM, PLAIN, Service, crashing, in_loop, service


def change(state: Path, statement: str) -> None:
    """Do something to the journal by hand."""
    connection = sqlite3.connect(state / "journal.sqlite")
    with connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


async def two_bandits(found: Service) -> None:
    """A snapshot of both on the way, records after it, a decision that waits since before it."""
    for name in ("b", "other"):
        await found.create(name, **PLAIN)
        await found.decide(name=name)
        await found.play(4, name)
        await found.upkeep.snapshot(found.engine.bandit(name))
        await found.play(3, name, seed=1)


def reward_of(state: Path, bandit: str) -> int:
    """The last reward of a bandit."""
    connection = sqlite3.connect(state / "journal.sqlite")
    (found,) = connection.execute(
        "SELECT max(r.seq) FROM sketchbandit_rewards r JOIN sketchbandit_bandits b ON b.id = r.bandit "
        "WHERE b.name = ?",
        (bandit,),
    ).fetchone()
    connection.close()
    return int(found)


@pytest.mark.parametrize(
    ("damage", "cure", "reason"),
    [
        (
            "UPDATE sketchbandit_rewards SET reward = reward + 1 WHERE seq = {seq}",
            "UPDATE sketchbandit_rewards SET reward = reward - 1 WHERE seq = {seq}",
            "damaged at record {seq} of rewards: it does not match its checksum",
        ),
        (
            "UPDATE sketchbandit_bandits SET config = '{{' || config WHERE name = 'b'",
            "UPDATE sketchbandit_bandits SET config = substr(config, 2) WHERE name = 'b'",
            "the settings of bandit 'b' cannot be read",
        ),
        (
            "UPDATE sketchbandit_rewards SET kind = CAST(x'ff' AS TEXT) WHERE seq = {seq}",
            "UPDATE sketchbandit_rewards SET kind = 'given' WHERE seq = {seq}",
            "damaged at record {seq} of rewards: it does not match its checksum",
        ),
    ],
)
@in_loop
async def test_damage_concerns_one_bandit(tmp_path: Path, damage: str, cure: str, reason: str) -> None:
    """It is quarantined by name, the other one goes on; without the damage it is what it was, to the bit."""
    old = await crashing(tmp_path, two_bandits)
    seq = reward_of(tmp_path, "b")
    change(tmp_path, damage.format(seq=seq))
    async with service(tmp_path, retention_seconds=0.01, snapshot_seconds=0.0) as found:
        assert reason.format(seq=seq) in found.engine.registry.quarantined["b"].reason
        assert list(found.engine.registry.bandits) == ["other"]
        for seed in range(5):
            await found.play(2, "other", seed=seed)
            await found.upkeep.round()
    assert any(
        not finding.is_good and reason.format(seq=seq) in finding.details for finding in check(tmp_path)
    )
    change(tmp_path, cure.format(seq=seq))
    async with service(tmp_path) as found:
        assert not found.engine.registry.quarantined
        new, before = found.engine.bandit("b"), old.engine.bandit("b")
        assert same(new.policy, before.policy)
        assert (new.accounts.totals, new.open.keys()) == (before.accounts.totals, before.open.keys())
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_more_memory_and_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that memory does not suffice for is not the record's fault: nothing of it is set aside."""
    old = await crashing(tmp_path, two_bandits)
    before = old.engine.bandit("b")
    real, dim = LinUCB.update, DIM

    def update(policy: Any, *arguments: Any) -> None:
        if policy.rounds == before.policy.rounds - 1 and policy.dim == dim:
            raise MemoryError
        real(policy, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LinUCB, "update", update)
        async with service(tmp_path) as found:
            assert "not enough memory" in found.engine.registry.quarantined["b"].reason
        findings = repair(tmp_path, bandit="b", set_aside=True)
        assert [finding.is_good for finding in findings] == [False]
        assert "not enough memory" in findings[0].details
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, before.policy)


@in_loop
async def test_repair(tmp_path: Path) -> None:
    """It says which record is to blame; on demand it sets that aside, and the bandit starts without it."""
    old = await crashing(tmp_path, two_bandits)
    before = old.engine.bandit("b")
    seq, waiting = reward_of(tmp_path, "b"), min(before.open)
    change(tmp_path, f"UPDATE sketchbandit_rewards SET reward = 7 WHERE seq = {seq}")  # noqa: S608
    change(tmp_path, f"UPDATE sketchbandit_decisions SET features = x'44' WHERE seq = {waiting}")  # noqa: S608
    told = repair(tmp_path)
    assert [(finding.what, finding.is_good) for finding in told] == [("b", False), ("other", True)]
    assert f"record {waiting} of decisions" in told[0].details
    assert repair(tmp_path) == told  # it has changed nothing
    told = repair(tmp_path, set_aside=True)
    assert all(finding.is_good for finding in told)
    details = [finding.details.replace(str(tmp_path), "") for finding in told]
    assert [str(seq) in one for one in details] == [False, True, False, False]
    lines = [json.loads(line) for line in (tmp_path / "set-aside-b.jsonl").read_text().splitlines()]
    assert [(line["seq"], line["table"]) for line in lines] == [
        (waiting, "sketchbandit_decisions"),
        (seq, "sketchbandit_rewards"),
    ]
    assert lines[0]["features"] == {"base64": "RA=="}
    async with service(tmp_path) as found:
        new = found.engine.bandit("b")
        assert new.policy.rounds == before.policy.rounds - 1
        assert waiting not in new.open
        assert len(new.open) == 1  # whose reward was set aside: it can be given again
        await found.play(3)
    with pytest.raises(InputError, match="no bandit 'c'"):
        repair(tmp_path, bandit="c")


@pytest.mark.parametrize("broken", [b"\xff\xfe\x00", None])
@in_loop
async def test_a_broken_mark_is_a_message(tmp_path: Path, broken: bytes | None) -> None:
    """Which journal a folder belongs to cannot be read: the message says what to do."""
    async with service(tmp_path) as found:
        await found.create()
    mark = tmp_path / "instance"
    mark.unlink()
    mark.mkdir() if broken is None else mark.write_bytes(broken)
    with pytest.raises(InputError, match="remove it if they belong to"):
        await Engine(Settings(tmp_path)).start()
