"""What clients were told, compared with what the service kept."""

import asyncio
import copy
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from sketchbandit.service.bandit import Bandit
from sketchbandit.service.checking import check, same
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.decision_ids import parse_decision_id
from sketchbandit.service.engine import Engine
from sketchbandit.service.settings import Settings
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.connecting import default_url
from sketchbandit.service.storage.database import Database
from sketchbandit.service.storage.records import ScalingRow
from sketchbandit.service.vectors import decode
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
        assert same(recovered[name], journal.replayed()), "the policy differs from one never killed"
    assert all(finding.is_good for finding in check(state, database))
    return count


class _Journal(NamedTuple):
    """All rows of one bandit, which has learned nothing of them yet."""

    bandit: Bandit
    decisions: list[Any]
    rewards: list[Any]
    scalings: list[ScalingRow]

    def replayed(self) -> Any:
        """A policy that has learned all of it, one row after another."""
        features = {row.seq: decode(row.features, DIM) for row in self.decisions}
        for row in sorted([*self.rewards, *self.scalings], key=lambda row: int(row.seq)):
            if isinstance(row, ScalingRow):
                learn = self.bandit.book(row)
                assert learn is not None
                learn()
            elif row.reward is not None:
                self.bandit.policy.update(features[row.decision], row.reward)
        return self.bandit.policy


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


def _rows(connection: sa.Connection) -> tuple[list[Any], list[Any], list[ScalingRow], Bandit]:
    d, r, s = tables.decisions, tables.rewards, tables.scalings
    decisions = list(connection.execute(sa.select(d).order_by(d.c.seq)).all())
    rewards = list(connection.execute(sa.select(r).order_by(r.c.seq)).all())
    scalings = [ScalingRow(*row[:-1]) for row in connection.execute(sa.select(s)).all()]
    config = BanditConfig.from_json(connection.execute(sa.select(tables.bandits.c.config)).scalar_one())
    return decisions, rewards, scalings, Bandit(1, NAME, config, created=0.0)


def _seq(decision: str) -> int:
    parsed = parse_decision_id(decision)
    assert parsed is not None
    return parsed[0]
