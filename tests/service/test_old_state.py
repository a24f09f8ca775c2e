"""State folders of the version before open, and go on."""

import copy
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import sketchbandit as sb
from sketchbandit.errors import InputError
from sketchbandit_service.api.answers import decision_answer
from sketchbandit_service.checking import _is_near, check, same
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.exporting import export
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.snapshots import SnapshotFolder
from tests.files.write_state import KINDS, answers, rounds
from tests.service import old_state
from tests.service.harness import AS_THEY_ARE, PLAIN, Service, crashing, in_loop, service


@in_loop
async def test_an_old_folder_opens(tmp_path: Path) -> None:
    """Learned, open and logged as it was; exploration keeps its meaning; new settings have their defaults."""
    alone = old_state.write(tmp_path / "state")
    async with service(tmp_path / "state") as found:
        bandit = found.engine.bandit("b")
        assert np.array_equal(bandit.policy.theta, alone.theta)
        assert (bandit.policy.explore.floor, bandit.policy.radius) == (0.25, 0.5)
        assert (bandit.config.slates, bandit.config.explore, bandit.accounts.totals.decisions) == (
            False,
            None,
            5,
        )
        arms = np.diag([9.0, 1.0, 1.0]).tolist()
        answers = [(await found.decide(arms)).json() for _ in range(40)]
        assert {round(12 * answer["propensity"], 9) for answer in answers} == {10.0, 1.0}
        same = {"parameters": {"beta": 0.5}, "exploration": 0.25, "reward_timeout": None}
        again = await found.http.put("/v1/bandits/b", json={"dim": old_state.DIM, **same})
        assert again.status_code == 200  # clients create it at every start
        assert (await found.reward(old_state.OPEN, 1.0)).json()["status"] == "learned"
        assert (await found.reward("2-000000000002", 0.0)).json()["status"] == "known"
        await found.play(5)
    assert all(finding.is_good for finding in check(tmp_path / "state"))
    assert export(tmp_path / "state", tmp_path / "log") == 50


@in_loop
async def test_a_key_of_an_old_decision(tmp_path: Path) -> None:
    """The answer has the shape of today, with null for what was not written then."""
    old_state.write(tmp_path / "state")
    with sqlite3.connect(tmp_path / "state" / "journal.sqlite") as connection:
        connection.execute("UPDATE sketchbandit_decisions SET request = 'd' WHERE request IS NOT NULL")
    connection.close()
    async with service(tmp_path / "state") as found:
        decided = await found.engine.decisions._known(found.engine.bandit("b"), "k", "d")
        assert decided is not None
        answer = json.loads(decision_answer(found.engine.bandit("b"), decided))
        assert answer["decision"] == old_state.OPEN
        assert answer["top"][1] == {
            "position": None,
            "mean": None,
            "propensity": None,
            "index": 0,
            "arm": None,
            "score": 0.4,
        }


def test_looking_at_an_old_folder_changes_nothing(tmp_path: Path) -> None:
    """`check` and `export` say what to do."""
    old_state.write(tmp_path / "state")
    before = (tmp_path / "state" / "journal.sqlite").read_bytes()
    with pytest.raises(InputError, match=r"format 1.*start `sketchbandit serve` on it once"):
        check(tmp_path / "state")
    with pytest.raises(InputError, match="format 1"):
        export(tmp_path / "state", tmp_path / "log")
    assert (tmp_path / "state" / "journal.sqlite").read_bytes() == before


@in_loop
async def test_an_old_snapshot_gets_the_rule_of_its_bandit(tmp_path: Path) -> None:
    """It was written by a policy that knew of no share drawn uniformly; what it learned is untouched."""
    old_state.write(tmp_path / "state")
    async with service(tmp_path / "state"):
        pass
    ((bandit, seq),) = old_state.taken(tmp_path / "state")
    folder = SnapshotFolder(tmp_path / "state")
    snapshot = old_state.as_before_open_lists(folder.read(bandit, seq))
    plain = BanditConfig(old_state.DIM, parameters={"beta": 0.5})
    history = dict(snapshot.state["history"])
    del history["windows"], history["shares"]
    history["buckets"] = [bucket[:3] for bucket in history["buckets"]]
    state = {**snapshot.state, "history": history}
    folder.write(bandit, snapshot._replace(policy=plain.with_rule(snapshot.policy), state=state))
    assert folder.read(bandit, seq).policy.random is None
    async with service(tmp_path / "state") as found:
        policy = found.engine.bandit("b").policy
        assert (policy.explore.floor, policy.rounds) == (0.25, 4)
        assert (await found.stats())["decisions"] == 5
    assert all(finding.is_good for finding in check(tmp_path / "state"))


@pytest.mark.parametrize("has_snapshots", [True, False])
@in_loop
async def test_bandits_of_0_9_mean_what_they_meant(tmp_path: Path, has_snapshots: bool) -> None:
    """Without a word of it: features as they are, UCB, a ridge of 1, whatever is usual now."""
    state = tmp_path / "state"
    async with service(state) as found:
        plain = {**PLAIN, "parameters": {**AS_THEY_ARE, "ridge": 1.0, "baseline": False}}
        await found.create(**plain)
        await found.create("models", actions=["a", "b"], **plain)
        await found.play(6)
        policy = found.engine.bandit("b").policy
    old_state.as_format_2(state)
    with pytest.raises(InputError, match=r"format 2.*start `sketchbandit serve` on it once"):
        check(state)
    for path in state.glob("snapshots/*/*"):
        if not has_snapshots:
            path.unlink()
    async with service(state) as found:
        assert same(found.engine.bandit("b").policy, policy)
        assert (await found.create()).status_code == 200  # clients create it at every start
        await found.create("new")
        told = {name: await found.stats(name) for name in ("b", "models", "new")}
        assert [one["explore"] for one in told.values()] == ["ucb", "ucb", "thompson"]
        assert [one["scaling"][:11] for one in told.values()] == ["as they are", "as they are", "auto, warmi"]
        await found.play(6)
    assert all(finding.is_good for finding in check(state))


@in_loop
async def test_a_folder_of_0_10(tmp_path: Path) -> None:
    """Rows without checksums are taken as they are; what waited at a snapshot is found in the journal."""

    async def work(found: Service) -> None:
        await found.create(slates=True)
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"x": [1.0] * 4}})
        slate = (await found.decide(top=3)).json()["decision"]
        await found.rewards(slate, {"position": 1, "reward": 1.0})
        await found.play(5)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.rewards(slate, {"position": 2, "reward": 1.0})

    before = (await crashing(tmp_path, work)).engine.bandit("b")
    old_state.as_format_3(tmp_path)
    async with service(tmp_path) as found:
        new = found.engine.bandit("b")
        assert same(new.policy, before.policy)
        assert [list(waiting) for waiting in new.open.values()] == [[0]]
        assert new.arms.ids() == ["x"]
        await found.play(3)
    assert all(finding.is_good for finding in check(tmp_path))
    assert export(tmp_path, tmp_path / "log") == 11


@in_loop
async def test_a_folder_of_0_12_opens(tmp_path: Path) -> None:
    """As it was; candidates can be added, and its log can be learned from."""

    async def work(found: Service) -> None:
        await found.create(**PLAIN)
        await found.play(5)
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await found.play(5, seed=1)

    before = (await crashing(tmp_path, work)).engine.bandit("b")
    old_state.as_format_4(tmp_path)
    with pytest.raises(InputError, match=r"format 4.*start `sketchbandit serve` on it once"):
        check(tmp_path)
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, before.policy)
        assert (await found.http.put("/v1/bandits/b/candidates/c", json={})).status_code == 201
        new = await found.http.put("/v1/bandits/new", json={"dim": 4, "from": "b", **PLAIN})
        assert new.json()["from"]["rewards"] == 10
        await found.play(3)
    assert all(finding.is_good for finding in check(tmp_path))


@pytest.mark.parametrize("has_snapshots", [True, False])
@in_loop
async def test_a_folder_of_0_14_goes_on(tmp_path: Path, has_snapshots: bool) -> None:
    """Its policies say what they said: no baseline, and each action forgets by its own rewards."""
    state = tmp_path / "state"
    shutil.copytree(Path(__file__).parents[1] / "files" / "0.14.0" / "state", state)
    wanted = json.loads((state / "answers.json").read_text(encoding="utf-8"))
    for path in state.glob("snapshots/*/*"):
        if not has_snapshots:
            path.unlink()
    async with service(state) as found:
        said = answers(found)
        assert said.keys() == wanted.keys()
        for name, one in wanted.items():
            assert said[name]["rounds"] == one["rounds"], name
            for which in ("theta", "ucb"):
                np.testing.assert_allclose(said[name][which], one[which], rtol=1e-8, atol=1e-10)
        told = [(await found.http.get(f"/v1/bandits/{name}")).json()["defaults"] for name in KINDS]
        assert [one["baseline"] for one in told] == [False] * 3
        assert [one.get("one_clock") for one in told] == [None, None, False]
        await rounds(found, 40, 50)
        assert [(await found.stats(name))["baseline"] for name in KINDS] == [None] * 3
        answer = await found.http.put("/v1/bandits/new", json={"dim": 12, "from": "arms"})
        assert answer.json()["defaults"]["baseline"] is True
        assert (await found.stats("new"))["baseline"] > 5.0
        before = answers(found)
    assert all(finding.is_good for finding in check(state))
    for path in state.glob("snapshots/*/*"):
        path.unlink()
    async with service(state) as found:
        now = answers(found)
        for name, one in before.items():
            np.testing.assert_allclose(now[name]["theta"], one["theta"], rtol=1e-8, atol=1e-10)


@in_loop
async def test_columns_are_added_on_postgresql_too(tmp_path: Path, postgres_url: str) -> None:
    """The same statements, on a journal that was made without them."""
    async with service(tmp_path, database=postgres_url) as found:
        await found.create(**PLAIN)
        await found.play(3)
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for column in ("slate", "position", "width", "crc", "crc_logged"):
            connection.exec_driver_sql(f"ALTER TABLE sketchbandit_decisions DROP COLUMN {column}")
        for column in ("position", "crc"):
            connection.exec_driver_sql(f"ALTER TABLE sketchbandit_rewards DROP COLUMN {column}")
        for column in ("arms_version", "source"):
            connection.exec_driver_sql(f"ALTER TABLE sketchbandit_bandits DROP COLUMN {column}")
        connection.exec_driver_sql(
            "DROP TABLE sketchbandit_estimates, sketchbandit_actions, sketchbandit_scalings, "
            "sketchbandit_snapshots, sketchbandit_candidates, sketchbandit_chances"
        )
        connection.execute(tables.service.update().values(format=1))
    engine.dispose()
    async with service(tmp_path, database=postgres_url) as found:
        await found.play(3)
        assert (await found.stats())["rounds"] == 6
    assert all(finding.is_good for finding in check(tmp_path, postgres_url))


def test_many_rounds_do_not_hide_what_differs() -> None:
    """Means are compared in their own unit, not in that of the number of rounds."""
    one = sb.oful(3)
    one.update(np.tile(np.eye(3), (1_000, 1)), [1.0] * 3_000)
    other = copy.deepcopy(one)
    assert _is_near(one, other)
    other.estimate.b[0] += 1.0
    other.estimate._derive()
    assert not _is_near(one, other)
    other = copy.deepcopy(one)
    other._posterior.rounds += 1
    assert not _is_near(one, other)
