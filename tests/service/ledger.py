"""Clients that write down what they were told, and the comparison with what the service kept."""

import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from sketchbandit.client import Client, Retries, ServiceError
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.checking import check, same
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.decision_ids import parse_decision_id
from sketchbandit.service.storage import snapshots, tables
from sketchbandit.service.storage.connecting import default_url
from sketchbandit.service.storage.database import Database
from sketchbandit.service.storage.records import ScalingRow
from sketchbandit.service.vectors import decode

DIM = 12
NAME = "ledger"


@dataclass
class Ledger:
    """What one client asked for, and what was acknowledged."""

    asked: set[str] = field(default_factory=set)
    """Idempotency keys."""
    decided: dict[str, str] = field(default_factory=dict)
    """Decision by key, acknowledged."""
    meant: dict[str, float] = field(default_factory=dict)
    """Reward by decision, sent."""
    rewarded: dict[str, float] = field(default_factory=dict)
    """Reward by decision, acknowledged."""
    expired: set[str] = field(default_factory=set)
    """Decisions whose reward was refused because it came too late."""
    failures: list[str] = field(default_factory=list)


class Crowd:
    """Clients in threads that decide and reward until they are told to stop."""

    def __init__(self, url: str, clients: int = 6) -> None:
        self._url = url
        self._is_over = threading.Event()
        self.ledgers = [Ledger() for _ in range(clients)]
        self._threads = [
            threading.Thread(target=self._run, args=(number, ledger))
            for number, ledger in enumerate(self.ledgers)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every client finish its round."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    @property
    def acknowledged(self) -> int:
        """Rewards so far."""
        return sum(len(ledger.rewarded) for ledger in self.ledgers)

    def await_rewards(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = self.acknowledged + count
        deadline = time.monotonic() + 30
        while self.acknowledged < wanted:
            failures = [failure for ledger in self.ledgers for failure in ledger.failures]
            assert not failures, failures
            assert time.monotonic() < deadline, "no rewards are taken any more"
            time.sleep(0.005)

    def _run(self, number: int, ledger: Ledger) -> None:
        random = np.random.default_rng(number)
        patient = Retries(attempts=400, first=0.01, most=0.05)
        try:
            with Client(self._url, retries=patient, timeout=5.0) as client:
                bandit = client.bandit(NAME)
                while not self._is_over.is_set():
                    self._round(bandit, ledger, random)
        except Exception as error:
            ledger.failures.append(repr(error))

    @staticmethod
    def _round(bandit: Any, ledger: Ledger, random: np.random.Generator) -> None:
        key = uuid.uuid4().hex
        arms = random.standard_normal((4, DIM))
        ledger.asked.add(key)
        decision = bandit.select(arms, key=key)
        ledger.decided[key] = decision.id
        if random.random() < 0.1:
            return  # nobody answers
        reward = float(random.standard_normal())
        ledger.meant[decision.id] = reward
        try:
            bandit.update(decision, reward)
        except ServiceError as error:
            if error.status != 410:
                raise
            ledger.expired.add(decision.id)  # the server was away for longer than the timeout
            return
        ledger.rewarded[decision.id] = reward
        if random.random() < 0.1:
            assert bandit.update(decision, reward) is False


def verify(ledgers: list[Ledger], state: Path, database: str | None) -> int:
    """No acknowledged decision or reward is lost, none is there twice; the policy is the one never killed.

    Gives the number of rewards. The server must have been stopped.
    """
    failures = [failure for ledger in ledgers for failure in ledger.failures]
    assert not failures, failures
    found = Database(database or default_url(state))
    found.open()
    try:
        decisions, rewards, scalings, bandit = found.read(_rows)
    finally:
        found.close()
    by_seq = {row.seq: row for row in decisions}
    assert len(by_seq) == len(decisions)
    keys = [row.key for row in decisions]
    assert len(set(keys)) == len(keys), "a decision was made twice for one key"
    given = {row.decision: row.reward for row in rewards if row.kind == "given"}
    assert len({row.decision for row in rewards}) == len(rewards), "a reward is there twice"
    meant: dict[int, float] = {}
    for ledger in ledgers:
        assert set(keys) >= set(ledger.decided)
        for key, decision in ledger.decided.items():
            assert by_seq[_seq(decision)].key == key
        for decision, reward in ledger.rewarded.items():
            assert given[_seq(decision)] == reward, "an acknowledged reward is lost"
        for decision in ledger.expired:
            assert _seq(decision) not in given, "a reward that was refused was learned"
        meant |= {_seq(decision): reward for decision, reward in ledger.meant.items()}
    assert set(keys) <= set().union(*(ledger.asked for ledger in ledgers))
    assert all(meant[decision] == reward for decision, reward in given.items())
    assert scalings, "no arms were scaled"
    never_killed = bandit.policy
    for row in sorted([*rewards, *scalings], key=lambda row: int(row.seq)):
        if isinstance(row, ScalingRow):
            bandit.book(row)()
        elif row.reward is not None:
            never_killed.update(decode(by_seq[row.decision].features, DIM), row.reward)
    newest = max(state.glob("snapshots/*/*.safetensors"))
    assert same(snapshots.read(newest).policy, never_killed), "the policy differs from one never killed"
    assert all(finding.is_good for finding in check(state, database))
    return len(rewards)


def _rows(connection: sa.Connection) -> tuple[list[Any], list[Any], list[ScalingRow], Bandit]:
    d, r, s = tables.decisions, tables.rewards, tables.scalings
    decisions = list(connection.execute(sa.select(d).order_by(d.c.seq)).all())
    rewards = list(connection.execute(sa.select(r).order_by(r.c.seq)).all())
    scalings = [ScalingRow(*row) for row in connection.execute(sa.select(s)).all()]
    config = BanditConfig.from_json(connection.execute(sa.select(tables.bandits.c.config)).scalar_one())
    return decisions, rewards, scalings, Bandit(1, NAME, config, created=0.0)


def _seq(decision: str) -> int:
    parsed = parse_decision_id(decision)
    assert parsed is not None
    return parsed[0]
