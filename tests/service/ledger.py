"""What clients were told, compared with what the service kept."""

import asyncio
import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from sketchbandit.errors import SketchTooSmallWarning, WorldChangedWarning
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.checking import check, same
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.decision_ids import parse_decision_id
from sketchbandit_service.engine import Engine
from sketchbandit_service.scaling_bytes import decode as decode_scaling
from sketchbandit_service.settings import Settings
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.connecting import default_url
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.records import CandidateRow, ScalingRow
from sketchbandit_service.vectors import decode
from tests.service.crowd import DIM, Ledger


def verify(ledgers: list[Ledger], state: Path, database: str | None) -> int:
    """No acknowledged decision or reward is lost, none is there twice; the policies are those never killed.

    Gives the number of rewards. The server must have been stopped.
    """
    failures = [failure for ledger in ledgers for failure in ledger.failures]
    assert not failures, failures
    found = Database(database or default_url(state))
    found.open()
    try:
        kept = found.read(_journals)
    finally:
        found.close()
    recovered = asyncio.run(_recovered(state, database))
    count = 0
    for name, journal in kept.items():
        count += _compare([ledger for ledger in ledgers if ledger.name == name], journal)
        assert journal.scalings, "no arms were scaled"
        mine, theirs = recovered[name], journal.replayed()
        assert mine.keys() == theirs.keys(), "the candidates differ"
        for policy in mine:
            assert same(mine[policy], theirs[policy]), (
                f"{policy or 'the policy'} differs from one never killed"
            )
    assert all(finding.is_good for finding in check(state, database))
    return count


class _Journal(NamedTuple):
    """All rows of one bandit, which has learned nothing of them yet."""

    bandit: Bandit
    decisions: list[Any]
    rewards: list[Any]
    scalings: list[ScalingRow]
    candidates: list[CandidateRow]

    def replayed(self) -> dict[str, Any]:
        """Policies that have learned all of it by hand, one row after another; that which decides is ""."""
        features, found = (
            {row.seq: decode(row.features, DIM) for row in self.decisions},
            {"": self.bandit.policy},
        )
        for row in sorted([*self.rewards, *self.scalings, *self.candidates], key=lambda row: int(row.seq)):
            if isinstance(row, ScalingRow):
                if found[""].is_warming_up:
                    found[""].read_by(decode_scaling(row.scaling, DIM), is_last=row.is_last, seen=row.arms)
            elif isinstance(row, CandidateRow):
                self._changed(found, row)
            elif row.reward is not None:
                for policy in found.values():
                    with suppress(SketchTooSmallWarning, WorldChangedWarning):
                        policy.update(features[row.decision], row.reward)
        return found

    def _changed(self, found: dict[str, Any], row: CandidateRow) -> None:
        if row.change == "added":
            settings = json.loads(row.settings or "")["policy"]
            found[row.name] = self.bandit.original.with_policy(settings).build()
        elif row.change == "removed":
            del found[row.name]
        else:
            before, found[""] = found[""], found.pop(row.name)
            if row.kept is not None:
                found[row.kept] = before


def _compare(ledgers: list[Ledger], journal: _Journal) -> int:
    """What clients were told with what there is; how many rewards there are."""
    by_seq = {row.seq: row for row in journal.decisions}
    assert len(by_seq) == len(journal.decisions)
    keys = [row.key for row in journal.decisions if not row.position]
    assert len(set(keys)) == len(keys), "a decision was made twice for one key"
    given = {row.decision: row.reward for row in journal.rewards if row.kind == "given"}
    assert len({row.decision for row in journal.rewards}) == len(journal.rewards), "a reward is there twice"
    meant: dict[int, float] = {}
    for ledger in ledgers:
        assert set(keys) >= set(ledger.decided), "an acknowledged decision is lost"
        for key, decision in ledger.decided.items():
            assert by_seq[_seq(decision)].key == key
        for decision, rewards in ledger.meant.items():
            rows = {_seq(decision) + place: reward for place, reward in rewards.items()}
            meant |= rows
            if decision in ledger.rewarded:
                assert all(given[row] == reward for row, reward in rows.items()), "a reward is lost"
            if decision in ledger.expired and len(rows) == 1:
                assert not given.keys() & rows, "a reward that was refused was learned"
    assert set(keys) <= set().union(*(ledger.asked for ledger in ledgers))
    assert all(meant[decision] == reward for decision, reward in given.items())
    return len(journal.rewards)


def _journals(connection: sa.Connection) -> dict[str, _Journal]:
    found = {}
    for row in connection.execute(sa.select(tables.bandits)).all():
        bandit = Bandit(row.id, row.name, BanditConfig.from_json(row.config), created=row.created)
        decisions, rewards, scalings, candidates = (
            list(connection.execute(sa.select(table).where(table.c.bandit == row.id).order_by(table.c.seq)))
            for table in (tables.decisions, tables.rewards, tables.scalings, tables.candidates)
        )
        scaled = [ScalingRow(*one[:-1]) for one in scalings]
        changed = [CandidateRow(*one[:-1]) for one in candidates]
        found[row.name] = _Journal(bandit, decisions, rewards, scaled, changed)
    return found


async def _recovered(state: Path, database: str | None) -> dict[str, dict[str, Any]]:
    """The policies of a server that starts now: of each bandit that which decides, "", and its candidates."""
    engine = Engine(Settings(state, database=database))
    await engine.start()
    try:
        return {
            name: copy.deepcopy({"": bandit.policy, **{one.name: one.policy for one in bandit.shadows}})
            for name, bandit in engine.registry.bandits.items()
        }
    finally:
        await engine.drain()
        engine.release()


def _seq(decision: str) -> int:
    parsed = parse_decision_id(decision)
    assert parsed is not None
    return parsed[0]
