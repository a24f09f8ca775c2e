"""Clients that play with bandits whatever happens to the servers, and write down what they were told."""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from sketchbandit_service.client import Client, Decision, Retries, ServiceError
from sketchbandit_service.client.synchronous import Bandit

T = TypeVar("T")

DIM = 12
NAME, BESIDE = "ledger", "beside"
"""The bandits that crowds play with; mostly the first alone."""
_ARMS, _SHOWN = 4, 3
_PATIENCE = 60.0  # seconds until an answer must have come
_AGAIN = {0, 429, 502, 503, 504}


@dataclass
class Ledger:
    """What one client asked a bandit for, and what was acknowledged."""

    name: str = NAME
    asked: set[str] = field(default_factory=set)
    """Idempotency keys."""
    decided: dict[str, str] = field(default_factory=dict)
    """Decision by key, acknowledged."""
    meant: dict[str, dict[int, float]] = field(default_factory=dict)
    """Rewards by decision and position, sent."""
    rewarded: set[str] = field(default_factory=set)
    """Decisions whose rewards were acknowledged."""
    expired: set[str] = field(default_factory=set)
    """Decisions whose reward was refused because it came too late."""
    quarantined: int = 0
    """How often the bandit was out of service."""
    failures: list[str] = field(default_factory=list)


class Reach:
    """One client of the servers at these addresses: it asks until one of them answers."""

    def __init__(self, urls: Sequence[str], ledger: Ledger) -> None:
        self._stack = ExitStack()
        once = Retries(attempts=1)
        clients = [self._stack.enter_context(Client(url, retries=once, timeout=5.0)) for url in urls]
        self._bandits = [client.bandit(ledger.name) for client in clients]
        self._ledger = ledger

    def ask(self, question: Callable[[Bandit], T]) -> T:
        """The answer; the question is idempotent."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return question(self._bandits[0])
            except ServiceError as error:
                if error.status not in _AGAIN or time.monotonic() > deadline:
                    raise
                self._ledger.quarantined += error.code == "quarantined"
                self._bandits.append(self._bandits.pop(0))
            time.sleep(0.02)

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()


class Crowd:
    """Clients in threads that decide and reward until they are told to stop."""

    def __init__(
        self, *urls: str, clients: int = 6, names: Sequence[str] = (NAME,), slates: bool = False
    ) -> None:
        self._urls = urls
        self._slates = slates
        self._is_over = threading.Event()
        self.ledgers = [Ledger(names[number % len(names)]) for number in range(clients)]
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
            thread.join(timeout=_PATIENCE)
            assert not thread.is_alive()

    @property
    def acknowledged(self) -> int:
        """Decisions whose rewards were, so far."""
        return sum(len(ledger.rewarded) for ledger in self.ledgers)

    @property
    def quarantined(self) -> int:
        """How often that was the answer, so far."""
        return sum(ledger.quarantined for ledger in self.ledgers)

    def await_rewards(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = self.acknowledged + count
        self.wait(lambda: self.acknowledged >= wanted, "no rewards are taken any more")

    def await_quarantine(self) -> None:
        """Wait until a bandit is out of service, and another goes on."""
        wanted = self.quarantined + 1
        self.wait(lambda: self.quarantined >= wanted, "no bandit was quarantined")
        self.await_rewards(5)

    def expect_no_failure(self) -> None:
        """No client has stopped."""
        failures = [failure for ledger in self.ledgers for failure in ledger.failures]
        assert not failures, failures

    def wait(self, until: Callable[[], bool], otherwise: str) -> None:
        """Look again and again, for thirty seconds at most."""
        deadline = time.monotonic() + 30
        while not until():
            self.expect_no_failure()
            assert time.monotonic() < deadline, otherwise
            time.sleep(0.005)

    def _run(self, number: int, ledger: Ledger) -> None:
        random = np.random.default_rng(number)
        reach = Reach(self._urls, ledger)
        try:
            while not self._is_over.is_set():
                self._round(reach, ledger, random)
        except Exception as error:
            ledger.failures.append(repr(error))
        finally:
            reach.close()

    def _round(self, reach: Reach, ledger: Ledger, random: np.random.Generator) -> None:
        key, arms = uuid.uuid4().hex, random.standard_normal((_ARMS, DIM))
        top = _SHOWN if self._slates and random.random() < 0.5 else None
        ledger.asked.add(key)
        decision: Decision = reach.ask(lambda bandit: bandit.select(arms, top=top, key=key))
        ledger.decided[key] = decision.id
        if random.random() < 0.1:
            return  # nobody answers
        shown = range(_SHOWN) if top else range(1)
        meant = {
            place: float(random.standard_normal()) for place in shown if not place or random.random() < 0.5
        }
        ledger.meant[decision.id] = meant
        reward = meant if top else meant[0]
        try:
            reach.ask(lambda bandit: bandit.update(decision, reward))
        except ServiceError as error:
            if error.status != 410:
                raise
            ledger.expired.add(decision.id)  # the server was away for longer than the timeout
            return
        ledger.rewarded.add(decision.id)
        if random.random() < 0.1:
            assert reach.ask(lambda bandit: bandit.update(decision, reward)) is False
