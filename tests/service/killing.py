"""A server killed again and again under clients that keep a ledger: alone, or with a standby behind it."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sketchbandit_service.client import Client, ServiceError
from sketchbandit_service.client.synchronous import Bandit
from tests.service import faults
from tests.service.crowd import BESIDE, DIM, NAME, Crowd, Ledger, Reach
from tests.service.ledger import verify
from tests.service.processes import ServerProcess, Zygote, free_port

PARAMETERS = {"size": 4, "epsilon": 2.0}
_FAULT_EVERY = 3  # servers: each third meets a fault of memory
_REWARDS_BEFORE_FAULT = 20
_IN_FLIGHT = 0.05  # seconds, by which answers of the killed server have been read


def create(url: str, timeout: float = 1.0, name: str = NAME, *, slates: bool = False) -> None:
    """A bandit that the crowd plays with."""
    with Client(url) as client:
        client.create(
            name, DIM, parameters=PARAMETERS, reward_timeout=timeout, default_reward=-0.5, slates=slates
        )


CANDIDATES: dict[str, dict[str, Any]] = {
    "small": {"policy": "soful", "parameters": {"size": 3}, "explore": {"rule": "ucb", "floor": 0.1}},
    "wide": {"policy": "oful", "explore": "epsilon-greedy"},
    "late": {},
}


class Operator:
    """Adds candidates and promotes them, whatever happens to the servers, again until it is acknowledged."""

    def __init__(self, urls: Sequence[str], name: str) -> None:
        self._ledger = Ledger(name)
        self._reach = Reach(urls, self._ledger)
        self._thread = threading.Thread(target=self._run)
        self.promoted = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is done."""
        self._thread.join(timeout=60)
        self._reach.close()
        assert not self._thread.is_alive()
        assert not self._ledger.failures, self._ledger.failures

    def _run(self) -> None:
        try:
            self._put("small")
            self._put("wide")
            self._promote("small", keep="first")
            self._put("late")
            self._promote("first", keep="again")
            self._promote("wide")
        except Exception as error:
            self._ledger.failures.append(repr(error))

    def _put(self, name: str) -> None:
        self._do(lambda bandit: bandit.put_candidate(name, **CANDIDATES[name]))

    def _promote(self, name: str, keep: str | None = None) -> None:
        self._do(lambda bandit: bandit.promote(name, keep=keep))
        self.promoted += 1

    def _do(self, change: Callable[[Bandit], object]) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self._reach.ask(change)
            except ServiceError as error:
                if error.status != 409 or "warming up" not in str(error) or time.monotonic() > deadline:
                    raise
            else:
                break
            time.sleep(0.02)
        time.sleep(0.3)


@dataclass
class Tale:
    """What happened."""

    acknowledged: int = 0
    rewards: int = 0
    """In the journal, defaults too."""
    quarantined: int = 0
    """Answers that said so."""
    promoted: int = 0
    """Candidates."""
    away: list[float] = field(default_factory=list)
    """Seconds from each kill to the next reward acknowledged."""


class Alone:
    """One server, started again after each kill."""

    def __init__(self, forge: Zygote, folder: Path, database: str | None) -> None:
        self._forge = forge
        self._database = database or ""
        self.state = folder / "state"
        self._port = free_port()
        self.urls = [f"http://127.0.0.1:{self._port}"]
        self._server: ServerProcess

    def start(self, fault: int | None) -> None:
        """The first."""
        extra = faults.extra(after=fault)
        self._server = self._forge.start(self.state, self._port, database=self._database, extra=extra)

    def kill(self) -> None:
        """The one that there is."""
        self._server.kill()

    def revive(self, fault: int | None) -> bool:
        """Start it again; whether the one that answers now meets a fault."""
        self.start(fault)
        return fault is not None

    def stop(self) -> None:
        """In order."""
        self._server.stop()


class Pair:
    """Two servers on one database, each with a folder of its own: the second takes over at each kill."""

    def __init__(self, forge: Zygote, folder: Path, database: str) -> None:
        self._forge = forge
        self._database = database
        self._places = [(folder / "one", free_port()), (folder / "two", free_port())]
        self.urls = [f"http://127.0.0.1:{port}" for _, port in self._places]
        self._servers: list[ServerProcess] = []
        self._is_faulty = False  # the standby

    @property
    def state(self) -> Path:
        """Of the first one."""
        return self._places[0][0]

    def start(self, fault: int | None) -> None:
        """Both."""
        self._servers = [self._start(0, fault), self._start(1, None, standby=True)]

    def kill(self) -> None:
        """The first: the second is the first now."""
        self._servers[0].kill()
        self._places.reverse()
        self._servers.reverse()

    def revive(self, fault: int | None) -> bool:
        """Bring the one that was killed back, behind the other; whether that one meets a fault."""
        has_fault, self._is_faulty = self._is_faulty, fault is not None
        self._servers[1] = self._start(1, fault, standby=True)
        return has_fault

    def stop(self) -> None:
        """In order: the standby before it would take over."""
        for server in reversed(self._servers):
            server.stop()

    def _start(self, place: int, fault: int | None, *, standby: bool = False) -> ServerProcess:
        state, port = self._places[place]
        extra = faults.extra(after=fault, snapshots="database", standby=standby)
        return self._forge.start(state, port, database=self._database, extra=extra)


def kill_again_and_again(
    forge: Zygote,
    folder: Path,
    *,
    kills: int,
    database: str | None = None,
    with_standby: bool = False,
    faults_too: bool = True,
) -> Tale:
    """Two bandits, slates, candidates, servers that run out of memory; in the end everything is compared."""
    draw = random.Random(7)  # noqa: S311  (nothing secret)
    tale = Tale()
    servers = Pair(forge, folder, database or "") if with_standby else Alone(forge, folder, database)
    servers.start(None)
    for name in (NAME, BESIDE):
        create(servers.urls[0], name=name, slates=True)
    crowd = Crowd(*servers.urls, names=(NAME, BESIDE), slates=True)
    crowd.start()
    operators = [Operator(servers.urls, name) for name in (NAME, BESIDE)]
    for operator in operators:
        operator.start()
    for left in reversed(range(kills)):
        crowd.await_rewards(5)  # so that every kill is one under traffic
        time.sleep(draw.uniform(0.0, 0.2))
        has_fault = faults_too and left % _FAULT_EVERY == 2  # the last two are sound
        tale.away.append(_strike(servers, crowd, has_fault=has_fault))
    time.sleep(0.5)
    for operator in operators:
        operator.finish()
        tale.promoted += operator.promoted
    crowd.stop()
    servers.stop()
    tale.acknowledged, tale.quarantined = crowd.acknowledged, crowd.quarantined
    tale.rewards = verify(crowd.ledgers, servers.state, database)
    return tale


def _strike(servers: Alone | Pair, crowd: Crowd, *, has_fault: bool) -> float:
    """Kill a server and go on; the seconds without one."""
    struck = time.monotonic()
    servers.kill()
    time.sleep(_IN_FLIGHT)
    fault = _REWARDS_BEFORE_FAULT if has_fault else None
    is_faulty = False
    if isinstance(servers, Alone):
        is_faulty = servers.revive(fault)
    crowd.await_rewards(1)
    away = time.monotonic() - struck
    if isinstance(servers, Pair):
        is_faulty = servers.revive(fault)
    if is_faulty:
        crowd.await_quarantine()
    return away
