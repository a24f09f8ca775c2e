"""How many decisions and rewards a second the service takes, durably, and how long each waits.

``python -m benchmarks.service_load --connections 32 256 --against OTHER/CHECKOUT`` does it beside another
version, ``--candidates`` beside a server whose bandit has two. Both servers are there all the time and are
driven in turns. What was acknowledged must be what was
learned, or nothing is reported. Server and clients share this machine: a server process, and one process of
clients that cost as little as they can.
"""

import argparse
import asyncio
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.service_http import connect, create, request, rounds
from benchmarks.service_process import Server

_WARM_UP = 2.0  # seconds
_HERE, _OTHER, _SHADOWED = "this version", "the other", "with two"
_CANDIDATES: dict[str, dict[str, Any]] = {
    "small": {"policy": "soful", "parameters": {"size": 20}},
    "greedy": {"policy": "adaptive", "explore": "epsilon-greedy"},
}


@dataclass
class Load:
    """What the clients saw."""

    seconds: float = 0.0
    pairs: int = 0
    decides: list[float] = field(default_factory=list)
    """Seconds that each took."""
    rewards: list[float] = field(default_factory=list)
    refused: int = 0
    """Answers 429."""
    failed: int = 0
    """Any other answer but 200."""
    server_cpu: float = 0.0
    """Seconds that the server computed, and its event loop alone, and the clients."""
    loop_cpu: float = 0.0
    client_cpu: float = 0.0

    @property
    def rate(self) -> float:
        """Pairs a second."""
        return self.pairs / self.seconds if self.seconds else 0.0

    def percentile(self, q: float) -> float:
        """Of all requests, in milliseconds."""
        return percentile([*self.decides, *self.rewards], q)

    def count(self, status: int) -> bool:
        """Take down an answer; whether it was a success."""
        self.refused += status == 429
        self.failed += status not in (200, 429)
        return status == 200

    def __str__(self) -> str:
        waits = [f"{percentile(took, q):6.1f}" for took in (self.decides, self.rewards) for q in (50, 99)]
        costs = [
            f"{1e6 * cpu / max(self.pairs, 1):6.0f}"
            for cpu in (self.server_cpu, self.loop_cpu, self.client_cpu)
        ]
        return f"{self.rate:7,.0f} {' '.join(waits)}   {' '.join(costs)}"


_HEAD = (
    f"{'':14} {'pairs/s':>7} {'decide':>6} {'p99':>6} {'reward':>6} {'p99':>6}   "
    f"{'server':>6} {'loop':>6} {'client':>6}   (milliseconds; microseconds of CPU a pair)"
)


def percentile(seconds: list[float], q: float) -> float:
    """In milliseconds."""
    return 1e3 * float(np.percentile(seconds, q)) if seconds else float("nan")


def bodies(dim: int, arms: int, count: int = 64) -> list[bytes]:
    """JSON requests with random arms of length one."""
    random = np.random.default_rng(0)
    made = []
    for _ in range(count):
        matrix = random.standard_normal((arms, dim))
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        made.append(json.dumps({"arms": matrix.tolist()}).encode())
    return made


async def drive(
    url: str,
    name: str,
    *,
    connections: int,
    seconds: float,
    dim: int,
    arms: int,
    rewarded: float = 1.0,
    load: Load | None = None,
) -> Load:
    """Pairs of decide and reward, one after another on every connection; ``load`` is filled on the way."""
    host = urlsplit(url).netloc
    decides = [request("POST", f"/v1/bandits/{name}/decide", body, host) for body in bodies(dim, arms)]
    load = load or Load()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = await connect(url)
        random = np.random.default_rng(number)
        while (started := time.perf_counter()) < end:
            status, answer = await connection.send(decides[int(random.integers(len(decides)))])
            load.decides.append(time.perf_counter() - started)
            if not load.count(status):
                await asyncio.sleep(0.01)
                continue
            if random.random() >= rewarded:
                continue
            decision = answer[13 : answer.index(b'"', 13)]
            body = b'{"decision":"%s","reward":%d}' % (decision, random.integers(2))
            started = time.perf_counter()
            status, _ = await connection.send(request("POST", f"/v1/bandits/{name}/reward", body, host))
            load.rewards.append(time.perf_counter() - started)
            load.pairs += load.count(status)
        connection.transport.close()

    started = time.perf_counter()
    await asyncio.gather(*map(client, range(connections)))
    load.seconds = time.perf_counter() - started
    return load


class Measured:
    """A server, and what it has acknowledged."""

    def __init__(
        self, server: Server, *, connections: int, dim: int, arms: int, has_candidates: bool = False
    ) -> None:
        self._server = server
        self._options: dict[str, Any] = {"connections": connections, "dim": dim, "arms": arms}
        self._acknowledged = 0
        asyncio.run(create(server.url, "load", {"dim": dim}))
        for name, settings in _CANDIDATES.items() if has_candidates else ():
            asyncio.run(create(server.url, f"load/candidates/{name}", settings))
        self.drive(_WARM_UP)

    def drive(self, seconds: float) -> Load:
        """One turn; the answer is checked before anything is told."""
        (server, loop), client = self._server.cpu_seconds, time.process_time()
        load = asyncio.run(drive(self._server.url, "load", seconds=seconds, **self._options))
        (server_after, loop_after), client_after = self._server.cpu_seconds, time.process_time()
        load.server_cpu, load.loop_cpu = server_after - server, loop_after - loop
        load.client_cpu = client_after - client
        self._acknowledged += load.pairs
        learned = asyncio.run(rounds(self._server.url, "load"))
        assert learned == self._acknowledged, "what was acknowledged is not what was learned"
        assert not load.failed, f"{load.failed} requests failed"
        return load


def compare(
    sources: dict[str, Path | None],
    *,
    connections: int,
    turns: int = 3,
    seconds: float = 8.0,
    dim: int = 64,
    arms: int = 10,
    database: str | None = None,
) -> dict[str, list[Load]]:
    """Drive versions in turns, and print every turn."""
    print(f"\n{connections} connections, d = {dim}, K = {arms}, JSON, durable\n{_HEAD}")
    loads: dict[str, list[Load]] = {name: [] for name in sources}
    with ExitStack() as stack:
        measured = {}
        for name, source in sources.items():
            server = stack.enter_context(Server(database=database, source=source))
            measured[name] = Measured(
                server, connections=connections, dim=dim, arms=arms, has_candidates=name == _SHADOWED
            )
        for _ in range(turns):
            for name, one in measured.items():
                loads[name].append(one.drive(seconds))
                print(f"{name:14} {loads[name][-1]}", flush=True)
    for name, found in loads.items():
        busy = median(load.loop_cpu / load.seconds for load in found)
        rate, p99 = median(load.rate for load in found), median(load.percentile(99) for load in found)
        print(f"{name}: {rate:,.0f} pairs a second, p99 {p99:.1f} ms; its event loop computes {busy:.0%}")
    return loads


def main(arguments: list[str] | None = None) -> None:
    """Print pairs a second and how long a request waits, and their ratio to another version."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_load", description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[32])
    parser.add_argument("--against", type=Path, help="the root of another checkout")
    parser.add_argument("--candidates", action="store_true", help="beside one with two candidates")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of one turn")
    options = parser.parse_args(arguments)
    sources: dict[str, Path | None] = {_HERE: None}
    if options.against is not None:
        sources[_OTHER] = options.against
    if options.candidates:
        sources[_SHADOWED] = None
    for connections in options.connections:
        loads = compare(sources, connections=connections, turns=options.turns, seconds=options.seconds)
        if options.against is not None:
            here, other = (median(load.rate for load in loads[name]) for name in (_HERE, _OTHER))
            print(f"{connections} connections: {here / other:.2f} times the pairs a second of the other")
        if options.candidates:
            alone, shadowed = (median(load.rate for load in loads[name]) for name in (_HERE, _SHADOWED))
            print(f"{connections} connections: {shadowed / alone:.2f} times the pairs a second without")


if __name__ == "__main__":
    main()
