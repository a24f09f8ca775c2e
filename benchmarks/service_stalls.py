"""Whether one bandit can hold up the others: ``python -m benchmarks.service_stalls --out results``.

One server. Eight connections play with one bandit while another does long things, one kind after the other.
A process of its own asks ``/healthz`` every 5 ms. Where an answer was late, the polls that it held up count
too, each with the time that it would have waited.
"""

import argparse
import asyncio
import socket
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import matplotlib as mpl
import numpy as np

from benchmarks.service_http import address, create, request
from benchmarks.service_load import drive, percentile
from benchmarks.service_long import Long, ManyArms, RankAll, Rebuilds
from benchmarks.service_process import Beside, Server
from sketchbandit.drawing import COLOURS, STYLE, panels, save

EVERY = 0.005
_PATIENCE = 120.0  # seconds that a phase may take until the first long thing is done
_LIMIT_MS, _LEAST_SHARE = 50.0, 0.5
_KINDS = {"rebuilds": Rebuilds, "arms": ManyArms, "ranking": RankAll}

Polls = list[tuple[float, float]]
"""When ``/healthz`` was asked, and the seconds that the answer took."""


@dataclass
class Phase:
    """What happened between two moments."""

    what: str
    start: float
    end: float
    rate: float
    """Pairs a second of the other bandit."""
    took: list[float] = field(default_factory=list)
    """Seconds of each long thing."""
    polls: Polls = field(default_factory=list)

    @property
    def waits(self) -> list[float]:
        """Of all polls, those that were held up too."""
        return [
            float(took - late)
            for _, took in self.polls
            for late in np.arange(0.0, max(took, EVERY / 2), EVERY)
        ]

    def row(self, undisturbed: float) -> str:
        """A line of the table."""
        waits = " ".join(f"{percentile(self.waits, q):8.1f}" for q in (50, 99, 100))
        each = f"{len(self.took)} of {median(self.took):.1f} s" if self.took else ""
        return f"{self.what:12} {each:>14} {waits} {self.rate:9,.0f} {self.rate / undisturbed:6.2f}"


def poll(pipe: Pipe, url: str) -> None:
    """Ask every 5 ms until something comes through the pipe, then tell all."""
    asked = request("GET", "/healthz", b"", urlsplit(url).netloc)
    found: Polls = []
    with socket.create_connection(address(url)) as connection:
        pipe.send("begun")
        while not pipe.poll():
            started = time.monotonic()
            connection.sendall(asked)
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            found.append((started, time.monotonic() - started))
            time.sleep(max(0.0, started + EVERY - time.monotonic()))
    pipe.send(found)


async def play(url: str, what: str, seconds: float, long: Long | None = None) -> Phase:
    """The other bandit for so long, and until one long thing is done."""
    task = None if long is None else asyncio.create_task(long.run())
    start, pairs = time.monotonic(), 0
    while True:
        load = await drive(url, "other", seconds=seconds, connections=8, dim=64, arms=10)
        assert not load.failed, f"{load.failed} requests failed"
        pairs += load.pairs
        end = time.monotonic()
        if long is None or long.seconds or end - start > _PATIENCE:
            break
    phase = Phase(what, start, end, pairs / (end - start))
    if long is not None and task is not None:
        long.stop()
        await task
        assert long.statuses[200], f"{what} was answered {dict(long.statuses)}"
        phase.took = long.seconds
    return phase


def measure(url: str, kinds: list[str], seconds: float) -> list[Phase]:
    """All phases, each long one after an undisturbed one."""
    asyncio.run(create(url, "other", {"dim": 64}))
    longs = {}
    for kind in kinds:
        print(f"preparing: {(_KINDS[kind].__doc__ or '').splitlines()[0]}", flush=True)
        longs[kind] = _KINDS[kind](url)
        asyncio.run(longs[kind].prepare())
    asyncio.run(play(url, "", 2.0))
    phases = []
    with Beside(poll, url) as polling:
        for kind in kinds:
            phases.append(asyncio.run(play(url, "undisturbed", seconds / 2)))
            phases.append(asyncio.run(play(url, kind, seconds, longs[kind])))
        polls = polling.finish()
    for phase in phases:
        phase.polls = [(at, took) for at, took in polls if phase.start <= at < phase.end]
    return phases


def draw(phases: list[Phase], out: Path) -> None:
    """How long ``/healthz`` took, over time."""
    with mpl.rc_context(STYLE):
        figure, axes = panels(len(phases), width=2.8)
        for axis, phase in zip(axes, phases, strict=True):
            at = [when - phase.start for when, _ in phase.polls]
            axis.semilogy(at, [1e3 * took for _, took in phase.polls], ".", ms=2, color=COLOURS[0])
            axis.axhline(_LIMIT_MS, color=COLOURS[1], lw=1)
            axis.set(title=phase.what, xlabel="seconds", ylim=(0.1, 1e5))
        axes[0].set_ylabel("/healthz, milliseconds")
        print(f"drawn: {save(figure, out / 'service-stalls')[0]}")


def main() -> None:
    """Print a table and draw; fail where others were held up."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_stalls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase, at least")
    parser.add_argument("--only", nargs="+", choices=list(_KINDS), default=list(_KINDS))
    parser.add_argument("--against", type=Path, help="another checkout, whose version is to be run instead")
    parser.add_argument("--out", type=Path, help="a folder for the figure")
    options = parser.parse_args()
    with Server("--max-bandit-mib", "4096", source=options.against) as server:
        phases = measure(server.url, options.only, options.seconds)
    undisturbed = median(phase.rate for phase in phases[::2])
    print(
        f"\n{'':12} {'long things':>14} {'/healthz':>8} {'p99':>8} {'worst':>8} {'pairs/s':>9} {'share':>6}"
    )
    for phase in phases:
        print(phase.row(undisturbed))
    if options.out is not None:
        draw(phases, options.out)
    for phase in phases:
        late = percentile(phase.waits, 99)
        assert late < _LIMIT_MS, f"{phase.what}: /healthz took {late:.0f} ms at p99"
        assert phase.rate >= _LEAST_SHARE * undisturbed, f"{phase.what}: {phase.rate:,.0f} pairs a second"


if __name__ == "__main__":
    main()
