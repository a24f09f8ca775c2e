"""Ten minutes of more than the service can take: it refuses with 429, and its memory stays where it is."""

import argparse
import asyncio
import time

import numpy as np

from benchmarks.service_http import create
from benchmarks.service_load import Load, drive
from benchmarks.service_process import Server

_CONNECTIONS = 200
_DIM, _ARMS = 64, 10
_SETTINGS = {"dim": _DIM, "max_open": 20_000, "reward_timeout": 20.0}
_WARM_UP = 0.2  # of the time, after which memory must not grow
_MOST_GROWTH = 0.05


def main() -> None:
    """Overload a server, write down its memory, and fail if it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--database", help="a PostgreSQL URL; by default SQLite")
    arguments = parser.parse_args()
    seconds = 60.0 * arguments.minutes
    with Server(database=arguments.database) as server:
        load, memory = asyncio.run(_soak(server, seconds))
    assert not load.failed, f"{load.failed} requests failed with something else than 429"
    assert load.refused, "the server was never overloaded"
    times, sizes = np.array(memory).T
    settled = times >= _WARM_UP * seconds
    half = len(sizes[settled]) // 2
    early, late = np.median(sizes[settled][:half]), np.median(sizes[settled][half:])
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        at = int(np.searchsorted(times, share * times[-1]))
        print(f"{times[at] / 60:5.1f} min: {sizes[at] / 1e6:7.1f} MB")
    print(
        f"{load.pairs / load.seconds:,.0f} pairs a second over {load.seconds / 60:.1f} minutes, "
        f"{load.refused:,} requests refused with 429, p99 {load.percentile(99):.0f} ms; memory "
        f"{early / 1e6:.1f} MB in the first half after warming up, {late / 1e6:.1f} MB in the second"
    )
    assert late <= (1.0 + _MOST_GROWTH) * early, "memory grows"


async def _soak(server: Server, seconds: float) -> tuple[Load, list[tuple[float, int]]]:
    memory: list[tuple[float, int]] = []
    await create(server.url, "soak", dict(_SETTINGS))
    started = time.perf_counter()

    async def watch() -> None:
        while True:
            memory.append((time.perf_counter() - started, server.resident_bytes))
            await asyncio.sleep(1.0)

    watching = asyncio.create_task(watch())
    load = await drive(
        server.url, "soak", connections=_CONNECTIONS, seconds=seconds, dim=_DIM, arms=_ARMS, rewarded=0.3
    )
    watching.cancel()
    return load, memory


if __name__ == "__main__":
    main()
