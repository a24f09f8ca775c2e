"""What hostile clients do to the others: ``python -m benchmarks.service_hostile --minutes 10``.

A thousand connections all the time. First ordinary ones: 40 are busy, the others ask now and then. The peak
of memory then is the yardstick. Then 940 of them are hostile, and the busy ones go on as before.
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.service_attacks import ATTACKS, STORED, attack
from benchmarks.service_http import connect, create, request
from benchmarks.service_load import Load, drive, percentile
from benchmarks.service_long import AS_THEY_ARE, store
from benchmarks.service_process import Beside, Server

_PAIRS, _RANKINGS, _PATRONS = 32, 8, sum(ATTACKS.values())
_DIM = 16  # of the stored arms
_OFTEN, _NOW_AND_THEN = 0.5, 10.0  # seconds
_SHARE = 0.2  # of the time is ordinary load alone
_MOST_GROWTH = 1.2
_LEAST_RATE, _MOST_MS = 0.1, 2000.0  # of what it was alone; at p99
_PATIENCE = 60.0  # seconds for the last answers
_PAUSE = 2.0  # seconds: old clients have gone, or new ones have come before hostile ones take their places
_GIVE_UP = 6e9  # bytes: what a machine that others use too can spare


@dataclass
class Phase:
    """How ordinary clients fared for a while, and the memory of the server."""

    name: str
    load: Load = field(default_factory=Load)
    rankings: list[float] = field(default_factory=list)
    """Seconds that each took."""
    statuses: Counter[int] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    """From second to second."""
    peak: int = 0
    trouble: str = ""

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.load.rate:,.0f} pairs a second, p99 {self.load.percentile(99):.0f} ms; "
            f"{len(self.rankings)} rankings, p99 {percentile(self.rankings, 99):.0f} ms; memory "
            f"{np.median(self.memory) / 1e6:,.0f} MB in the median, {self.peak / 1e6:,.0f} at its peak"
        )


async def prepare(url: str) -> None:
    """The bandits, and the arms that are stored."""
    await create(url, "shop", {"dim": 64, "reward_timeout": 30.0})
    await create(
        url, "stock", {"dim": _DIM, "explore": "ucb", "reward_timeout": 30.0, "parameters": AS_THEY_ARE}
    )
    await store(url, "stock", STORED, _DIM)


async def run(server: Server, phase: Phase, seconds: float, patrons: int) -> None:
    """Ordinary load for so long; the peak of memory is counted anew."""
    server.forget_peak()
    url, statuses = server.url, phase.statuses
    ranking = _decide(url, "stock", {"top": 100})
    visit = _decide(url, "shop", {"arms": [[0.1] * 64] * 10})
    busy = [_repeat(ranking, url, _OFTEN, statuses, phase.rankings) for _ in range(_RANKINGS)]
    others = [_repeat(visit, url, _NOW_AND_THEN, statuses, []) for _ in range(patrons)]
    tasks = [asyncio.create_task(other) for other in (_watch(server, phase), *busy, *others)]
    play = drive(url, "shop", seconds=seconds, connections=_PAIRS, dim=64, arms=10, load=phase.load)
    started = time.monotonic()
    try:
        await asyncio.wait_for(play, seconds + _PATIENCE)
    except (TimeoutError, OSError) as error:
        phase.trouble = f"ordinary clients got no answer any more: {error!r}"
    phase.load.seconds = time.monotonic() - started
    phase.peak = server.peak_bytes if server.process.poll() is None else max(phase.memory)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            phase.trouble = phase.trouble or f"an ordinary client failed: {outcome!r}"


async def _watch(server: Server, phase: Phase) -> None:
    while True:
        phase.memory.append(server.resident_bytes)
        if phase.memory[-1] > _GIVE_UP:
            print(f"the server holds {phase.memory[-1] / 1e6:,.0f} MB: it is killed", flush=True)
            server.process.kill()
            return
        await asyncio.sleep(1.0)


def _decide(url: str, name: str, body: object) -> bytes:
    return request("POST", f"/v1/bandits/{name}/decide", json.dumps(body).encode(), urlsplit(url).netloc)


async def _repeat(asked: bytes, url: str, pause: float, statuses: Counter[int], took: list[float]) -> None:
    """One decision after another on a connection that stays, with pauses between."""
    connection = await connect(url)
    try:
        while True:
            await asyncio.sleep(random.uniform(0.0, 2.0 * pause))  # noqa: S311  (nothing secret)
            started = time.monotonic()
            status, _ = await connection.send(asked)
            took.append(time.monotonic() - started)
            statuses[status] += 1
    finally:
        connection.transport.abort()


def main() -> None:
    """Print both phases; fail if hostile clients take memory, or the answers of the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="with hostile clients")
    parser.add_argument("--against", type=Path, help="another checkout, whose version is to be run instead")
    options = parser.parse_args()
    seconds = 60.0 * options.minutes
    alone, among = Phase("ordinary clients alone"), Phase("among hostile ones")
    with Server(source=options.against) as server:
        asyncio.run(prepare(server.url))
        asyncio.run(run(server, alone, max(10.0, _SHARE * seconds), _PATRONS))
        print(alone, flush=True)
        time.sleep(_PAUSE)
        with Beside(attack, server.url, _PAUSE) as attackers:
            asyncio.run(run(server, among, seconds, 0))
            print(among, flush=True)
            answered: Counter[tuple[str, int]] = attackers.finish()
    for (what, status), count in sorted(answered.items()):
        print(f"  {what:24} {status or 'closed':>6} {count:8,}")
    judge(alone, among, answered)


def judge(alone: Phase, among: Phase, answered: Counter[tuple[str, int]]) -> None:
    """The rules."""
    growth = among.peak / alone.peak
    print(f"peak of memory: {growth:.2f} times that of ordinary clients")
    assert not among.trouble, among.trouble
    assert not [what for what, status in answered if status == 500], "an attack was answered 500"
    assert not among.load.failed, f"{among.load.failed} ordinary requests failed"
    assert set(among.statuses) <= {200, 429}, f"ordinary requests were answered {dict(among.statuses)}"
    assert among.load.rate >= _LEAST_RATE * alone.load.rate, "ordinary clients are hardly served"
    assert among.load.percentile(99) < _MOST_MS, "ordinary clients wait"
    assert growth < _MOST_GROWTH, "hostile clients take memory"


if __name__ == "__main__":
    main()
