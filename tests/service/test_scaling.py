"""Scalings are records: a replay scales where it was scaled, however often the service was killed."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import sketchbandit as sb
from sketchbandit.features import Scaling
from sketchbandit.policy import PerAction
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.checking import check, same
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.offered import ArmSet
from sketchbandit_service.problems import TooLarge
from sketchbandit_service.rewards import Given
from sketchbandit_service.scaling_bytes import decode, encode
from sketchbandit_service.settings import MIB, Limits
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.database import InDoubt, StorageError
from sketchbandit_service.storage.records import ScalingRow
from tests.service.harness import DIM, Service, crashing, error_of, in_loop, service

AUTO: dict[str, Any] = {"parameters": {"scaling": "auto", "intercept": True}, "propensities": "none"}
NAMES = ["red", "green"]
STAGES = (0, 1, 1, 2, 5, 11)
"""Decisions of one life after another; a short warm-up needs 30 requests, of which a kill loses some."""


def features(seed: int, count: int = 5) -> Any:
    """Columns that are far apart, and not centred."""
    return np.random.default_rng(seed).standard_normal((count, DIM)) * [1.0, 1e3, 1e-3, 7.0] + [0, 5e3, 1, -9]


async def played(found: Service, seeds: range, *, answered: bool = True) -> None:
    """Decisions among arms, or actions; each has a reward, or none yet."""
    has_actions = found.engine.bandit("b").config.actions is not None
    for seed in seeds:
        rows = features(seed)
        body = (
            {"context": rows[0].tolist()} if has_actions else {"arms": arms_of(rows, is_sparse=seed % 3 == 1)}
        )
        decided = await found.http.post("/v1/bandits/b/decide", json=body)
        assert decided.status_code == 200, decided.text
        if answered:
            assert (await found.reward(decided.json()["decision"], float(seed % 4))).status_code == 200


def arms_of(rows: Any, *, is_sparse: bool) -> list[Any]:
    """As JSON."""
    if not is_sparse:
        return rows.tolist()  # type: ignore[no-any-return]
    return [{"indices": [0, 3], "values": row[[0, 3]].tolist()} for row in rows]


async def scalings(found: Service) -> list[ScalingRow]:
    """Those in the journal."""
    query = sa.select(tables.scalings).order_by(tables.scalings.c.seq)
    rows = await found.engine.journal.read(lambda connection: connection.execute(query).all())
    return [ScalingRow(*row[:-1]) for row in rows]  # without the checksum


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("settings", [AUTO, {**AUTO, "actions": NAMES}])
@in_loop
async def test_killed_at_every_stage_of_the_warm_up(tmp_path: Path, settings: dict[str, Any]) -> None:
    """What there is after a kill is what there was, to the bit; the scaling is found in the end."""
    killed, seed = BanditConfig(DIM, **settings).checked(Limits()).build(), 0
    for count in STAGES:

        async def life(
            found: Service, before: Any = killed, seeds: range = range(seed, seed + count)
        ) -> None:
            await found.create(**settings)
            policy = found.engine.bandit("b").policy
            assert policy.is_warming_up
            assert same(policy, before)
            await played(found, seeds)

        killed = (await crashing(tmp_path, life)).engine.bandit("b").policy
        seed += count
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("b")
        assert same(bandit.policy, killed)
        assert bandit.policy.rounds == seed
        await played(found, range(seed, seed + 40))
        rows = await scalings(found)
    assert not bandit.policy.is_warming_up
    assert [row.is_last for row in rows] == [False] * (len(rows) - 1) + [True]
    assert [row.arms for row in rows] == sorted({row.arms for row in rows})  # a kill makes none worse
    assert 5 <= len(rows) <= 12
    assert bandit.policy.scaling == decode(rows[-1].scaling, DIM)
    findings = check(tmp_path)
    assert all(finding.is_good for finding in findings), findings
    assert await replayed(tmp_path, bandit.policy)


@pytest.mark.parametrize("settings", [AUTO, {**AUTO, "actions": NAMES}])
@in_loop
async def test_snapshots_in_the_warm_up(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Each stop writes one: what was looked at is in it too, and the journal says the same of the rest."""
    seen = rounds = 0
    for seed in range(0, 28, 7):
        async with service(tmp_path) as found:
            await found.create(**settings)
            policy = found.engine.bandit("b").policy
            assert (policy.requests_seen, policy.rounds) == (seen, rounds)
            await played(found, range(seed, seed + 5))
            await played(found, range(seed + 5, seed + 7), answered=False)
            seen, rounds = policy.requests_seen, policy.rounds
    assert seen == 28
    findings = check(tmp_path)
    assert len(findings) == 7  # the modes, the file, the rows, three snapshots, the rest
    assert all(finding.is_good for finding in findings), findings


@pytest.mark.usefixtures("short_warm_up")
@in_loop
async def test_many_at_once(tmp_path: Path) -> None:
    """Decisions and rewards in flight together: one scaling at a time, and a replay has the same order."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        answers = await asyncio.gather(*(found.decide(features(seed).tolist()) for seed in range(10)))
        ids = [answer.json()["decision"] for answer in answers]
        for step in range(5):
            further = (found.decide(features(10 + 8 * step + place).tolist()) for place in range(8))
            given = (found.reward(name, float(place)) for place, name in enumerate(ids))
            answers = await asyncio.gather(
                *(call for pair in zip(further, given, strict=False) for call in pair)
            )
            assert all(answer.status_code == 200 for answer in answers)
            ids = [answer.json()["decision"] for answer in answers[::2]]
        rows, policy = await scalings(found), found.engine.bandit("b").policy
    assert not policy.is_warming_up
    assert [row.arms for row in rows] == sorted({row.arms for row in rows})
    assert [row.is_last for row in rows].count(True) == 1
    assert all(finding.is_good for finding in check(tmp_path))
    assert await replayed(tmp_path, policy)


async def replayed(state: Path, policy: Any) -> bool:
    """Whether the journal alone says the same."""
    for path in state.glob("snapshots/*/*"):
        path.unlink()
    async with service(state) as found:
        return same(found.engine.bandit("b").policy, policy)


@pytest.mark.parametrize("is_first", [True, False])
@in_loop
async def test_a_reward_beside_a_scaling(tmp_path: Path, is_first: bool) -> None:
    """Both wait for the same commit: the journal's order is that of memory."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        decision = (await found.decide(features(0).tolist())).json()["decision"]
        engine, bandit = found.engine, found.engine.bandit("b")
        rewarding = engine.rewards.take(bandit, decision, [Given(1.0)])
        deciding = engine.decisions.decide(bandit, ArmSet(features(1), None))
        await asyncio.gather(*([rewarding, deciding] if is_first else [deciding, rewarding]))
        await engine.journal.probe()
        query, rows = sa.select(tables.rewards.c.seq), await scalings(found)
        place = await engine.journal.read(lambda connection: connection.execute(query).scalar_one())
        assert [row.arms for row in rows] == [1, 2]
        assert (place < rows[1].seq) == is_first
    assert await replayed(tmp_path, bandit.policy)


@in_loop
async def test_a_scaling_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has changed; the next decision brings it."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        policy, database = found.engine.bandit("b").policy, found.engine.database
        before = policy.scaling

        def full(*_: Any) -> None:
            raise StorageError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(database, "commit", full)
            assert (await found.decide(features(0).tolist())).status_code == 503
        assert policy.scaling == before
        await found.upkeep.round()
        await played(found, range(1))
        (row,) = await scalings(found)
        assert row.arms == 2
        assert policy.scaling == decode(row.scaling, DIM)
        assert policy.scaling != before


@in_loop
async def test_a_scaling_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to its commit was lost: when that is settled it takes effect, once."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        policy, database = found.engine.bandit("b").policy, found.engine.database
        real = database.commit

        def commit(records: Any, seq: int) -> None:
            real(records, seq)
            database._batch -= 1
            database._is_unsure = True
            database._drop()
            monkeypatch.undo()
            raise InDoubt("the answer was lost")

        monkeypatch.setattr(database, "commit", commit)
        assert (await found.decide(features(0).tolist())).status_code == 503
        while (await found.http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)
        (row,) = await scalings(found)
        assert policy.scaling == decode(row.scaling, DIM)
        await played(found, range(2))
        assert [row.arms for row in await scalings(found)] == [1, 2, 3]
    assert await replayed(tmp_path, policy)


@in_loop
async def test_rewards_alone_bring_a_scaling(tmp_path: Path) -> None:
    """What was looked at is gone with a kill; arms that rewards come for count then, without a decision."""

    async def life(found: Service) -> None:
        await found.create(**AUTO)
        for seed in range(5):
            await found.decide(features(seed, 1).tolist())
            await asyncio.sleep(0)  # the scaling before is over then

    for _ in range(2):
        await crashing(tmp_path, life)
    async with service(tmp_path) as found:
        bandit = found.engine.bandit("b")
        for first in list(bandit.open):
            await found.engine.rewards.close(bandit, first, 0, "given", 1.0)
        await found.engine.journal.probe()
        assert [row.arms for row in await scalings(found)] == [1, 2, 3, 4, 5, 7, 9]
        assert (bandit.policy.requests_seen, bandit.policy.rounds) == (10, 10)
    assert await replayed(tmp_path, bandit.policy)


@in_loop
async def test_what_it_says(tmp_path: Path) -> None:
    """In the settings and in the stats: how far the warm-up is, then what it has found; nothing without."""
    async with service(tmp_path) as found:
        await found.create("plain", policy="oful")
        await found.create("rows", policy="oful", parameters={"scaling": "rows"})
        made = await found.create(**AUTO)
        assert made.json()["scaling"] == "auto, warming up: 0 of 200 requests seen, and a constant of 1"
        await played(found, range(0, 60, 3))
        assert (await found.stats())["scaling"].startswith("auto, warming up: 20 of 200 requests seen")
        await played(found, range(0, 540, 3))
        assert (await found.stats())["scaling"] == "columns, and a constant of 1"
        shown = {
            one["name"]: one["scaling"] for one in (await found.http.get("/v1/bandits")).json()["bandits"]
        }
        assert shown == {"plain": "as they are", "rows": "rows", "b": "columns, and a constant of 1"}
        await found.create("models", actions=NAMES)
        assert (await found.stats("models"))["scaling"].startswith("auto, warming up: 0 of 200")


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"scaling": "cols"}, 'scaling must be "auto", "rows", "columns" or null, got \'cols\''),
        ({"scaling": {"centre": [0], "factor": [1]}}, "or null"),
        ({"scaling": True}, "or null"),
        ({"intercept": "yes"}, "intercept must be true, false or a number (the constant)"),
        ({"intercept": -1}, "from 0 to 1e"),
        ({"intercept": 1e300}, "from 0 to 1e"),
        ({"intercept": None}, "got None"),
    ],
)
@in_loop
async def test_refused(tmp_path: Path, parameters: dict[str, Any], why: str) -> None:
    """With what is possible; there is no such bandit then."""
    async with service(tmp_path) as found:
        answer = await found.http.put("/v1/bandits/b", json={"dim": DIM, "parameters": parameters})
        status, message = error_of(answer)
        assert status == 422
        assert why in message
        assert (await found.http.get("/v1/bandits/b")).status_code == 404


def test_a_warm_up_has_to_fit_too() -> None:
    """Its arms are held in memory; unit rows need none."""
    limits = Limits(bandit_bytes=4 * MIB)
    wanted: dict[str, Any] = {"size": 2, "scaling": "columns"}
    config = BanditConfig(2000, "soful", wanted)
    with pytest.raises(TooLarge, match=r'14 MiB.*scaling to "rows"'):
        config.checked(limits)
    BanditConfig(2000, "soful", {**wanted, "scaling": "rows"}).checked(limits)


def test_the_defaults_of_its_day() -> None:
    """They are kept with a bandit; one that has none was created when there was no scaling."""
    config = BanditConfig(3).checked(Limits())
    assert config.defaults["scaling"] == "auto"
    assert config.defaults["explore"]["rule"] == "thompson"
    again = BanditConfig.from_json(config.to_json())
    assert again == config
    assert again.build().is_warming_up
    assert again.build().ridge == again.defaults["ridge"] == sb.adaptive(3).ridge
    before = BanditConfig.from_json('{"dim": 3}')
    policy = before.build()
    assert (policy.scaling, policy.explore.kind, policy.radius, policy.ridge) == (None, "ucb", 0.1, 1.0)
    assert not before.differences(config)
    assert before.differences(BanditConfig(3, parameters={"scaling": "auto"}).checked(Limits()))
    floor = BanditConfig(3, exploration=0.25).checked(Limits()).build()
    assert (floor.explore.kind, floor.explore.floor) == ("thompson", 0.25)
    radius = BanditConfig(3, parameters={"beta": 0.5}, actions=NAMES).checked(Limits()).build()
    assert isinstance(radius, PerAction)
    assert (radius.explore.kind, radius.is_warming_up) == ("ucb", True)


@pytest.mark.parametrize(
    "scaling",
    [Scaling.rows(2), Scaling.none(2, constant=0.1), Scaling.columns([1 / 3, 1e-300], [3.0, 0.0], bound=0.1)],
)
def test_bytes(scaling: Scaling) -> None:
    """Exact; anything else is refused."""
    payload = encode(scaling)
    assert decode(payload, 2) == scaling
    for damaged in (b"", payload[:-1], b"2" + payload[1:], payload[:-8], payload + bytes(8)):
        with pytest.raises(ValueError, match=r"2 columns|no sense"):
            decode(damaged, 2)


def test_nothing_comes_after_the_last() -> None:
    """A scaling that is fixed stays."""
    bandit = Bandit(1, "b", BanditConfig(2, parameters={"scaling": "columns"}), created=0.0)
    rows = [
        ScalingRow(2, 1, encode(Scaling.columns([0.0, at], [1.0, 1.0], constant=0.5)), 9, True)
        for at in (1, 2)
    ]
    for row in rows:
        learn = bandit.book(row)
        assert learn is not None
        learn()
    assert bandit.policy.scaling == decode(rows[0].scaling, 2)


@in_loop
async def test_a_damaged_scaling_is_named(tmp_path: Path) -> None:
    """By `check`, and at a start that needs it."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        await played(found, range(3))
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        (seq,) = connection.execute("SELECT max(seq) FROM sketchbandit_scalings").fetchone()
        connection.execute(
            "UPDATE sketchbandit_scalings SET scaling = x'3100', crc = NULL WHERE seq = ?", (seq,)
        )
    connection.close()
    bad = [finding for finding in check(tmp_path) if not finding.is_good]
    assert f"scalings {seq}: 2 bytes do not hold" in bad[0].details
    for path in tmp_path.glob("snapshots/*/*"):
        path.unlink()
    async with service(tmp_path) as found:
        reason = found.engine.registry.quarantined["b"].reason
        assert f"damaged at record {seq} of scalings: 2 bytes do not hold" in reason


@in_loop
async def test_deleted_with_its_bandit(tmp_path: Path) -> None:
    """No row stays."""
    async with service(tmp_path) as found:
        await found.create(**AUTO)
        await played(found, range(3))
        assert await scalings(found)
        await found.http.delete("/v1/bandits/b")
        for _ in range(3):
            await found.upkeep.round()
        assert await scalings(found) == []
