"""Plays what is missing, one run after another, and keeps every result."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.bakeoff.ceiling import classifier
from benchmarks.bakeoff.contestants import UNIFORM, Contestant
from benchmarks.bakeoff.libraries import LIBRARIES, InstallError, python_with
from benchmarks.bakeoff.players import Ceiling, PolicyPlayer, Uniform
from benchmarks.bakeoff.playing import LocalPlayer, Played, play, play_elsewhere
from benchmarks.bakeoff.remote import PlayError, Worker
from benchmarks.bakeoff.rivals.loop import TooSlowError
from benchmarks.bakeoff.store import Key, Result, Store, key
from benchmarks.bakeoff.streams import Condition, Stream

TRIES = 3
"""So many failed runs on a data set, and none that did not fail, are enough."""
FINAL = ("too slow", "MemoryError", "not installed")
"""One of these is enough."""


class Limits(NamedTuple):
    """What a slow contestant may take, in seconds."""

    run: float
    """A run that takes longer is stopped, and counts as failed."""
    cell: float
    """Of a contestant on a data set under a condition: once that is spent, the runs left are left out."""


class Run(NamedTuple):
    """What is to be played."""

    contestant: Contestant
    stream: Stream
    condition: Condition
    rounds: int

    @property
    def key(self) -> Key:
        """Of its result."""
        return key(self.contestant, self.stream, self.condition.name, self.rounds)


def missing(runs: Sequence[Run], store: Store) -> list[Run]:
    """Those without a result."""
    return [run for run in runs if run.key not in store.results]


def left_out(run: Run, store: Store, limits: Limits) -> str:
    """Why the run is not played although it is missing; empty if it is. The default always plays."""
    if run.contestant.kind == "default":
        return ""
    name, data, condition = run.contestant.name, run.stream.data, run.condition.name
    same = [
        one
        for one in store.results.values()
        if one.key[:4] == run.key[:4] and one.rounds == run.rounds and one.contestant == name
    ]
    failed = [one.error for one in same if one.error]
    if len(failed) == len(same) and (len(failed) >= TRIES or any(one.startswith(FINAL) for one in failed)):
        return f"it cannot play {data}: {failed[0]}"
    if sum(one.took for one in same if one.condition == condition) > limits.cell:
        return f"its {limits.cell:g} s on {data} are spent"
    return ""


class Watch(Protocol):
    """Told of every run that is over."""

    def advance(self, count: int) -> None:
        """So many more."""


class Arena:
    """Plays runs; the workers of the rivals stay alive from run to run."""

    def __init__(self, environments: Path) -> None:
        self._environments = environments
        self._workers: dict[str, Worker | str] = {}

    def play(self, run: Run, limit: float) -> Played:
        """Play it with a fresh player; PlayError or TooSlowError where that fails."""
        contestant, seed = run.contestant, run.stream.player_seed
        environment = run.stream.environment(contestant.normalise)
        if contestant.family in LIBRARIES:
            worker = self._workers[contestant.family]
            if isinstance(worker, str):
                raise PlayError(f"not installed: {worker}")
            request = {
                "rival": contestant.rival,
                "settings": contestant.settings,
                "seed": seed,
                "limit": limit,
            }
            return play_elsewhere(worker, request, environment, run.rounds, run.condition)
        player: LocalPlayer
        if contestant.make is not None:
            player = PolicyPlayer(contestant.make(environment.dim), seed)
        elif contestant.name == UNIFORM:
            player = Uniform(seed)
        else:
            player = Ceiling(classifier(run.stream.data), run.stream.target)
        return play(player, environment, run.rounds, run.condition, limit)

    def prepare(self, contestant: Contestant) -> None:
        """Install and start what it plays with."""
        family = contestant.family
        if family not in LIBRARIES:
            return
        if family not in self._workers:
            library = LIBRARIES[family]
            try:
                self._workers[family] = Worker(python_with(library, self._environments), library.module)
            except InstallError as error:
                self._workers[family] = str(error)
        worker = self._workers[family]
        if isinstance(worker, Worker):
            worker.start()

    def close(self) -> None:
        """Stop every worker."""
        for worker in self._workers.values():
            if isinstance(worker, Worker):
                worker.close()


@contextmanager
def arena(environments: Path) -> Iterator[Arena]:
    """An arena whose workers end with it."""
    made = Arena(environments)
    try:
        yield made
    finally:
        made.close()


def play_run(run: Run, place: Arena, limit: float) -> Result:
    """One run, as a result; what goes wrong is part of it."""
    settled = Result(*run.key)
    place.prepare(run.contestant)  # which may take minutes, and counts for nobody
    start = time.monotonic()
    try:
        played = place.play(run, limit)
    except (PlayError, TooSlowError, MemoryError, ValueError) as error:
        known = isinstance(error, PlayError | TooSlowError)
        said = str(error) if known else f"{type(error).__name__}: {error}"
        return _replace(settled, error=said, took=time.monotonic() - start)
    return _replace(settled, **played._asdict(), took=time.monotonic() - start)


def _replace(result: Result, **changes: object) -> Result:
    return Result(**{**vars(result), **changes})


def play_missing(runs: Sequence[Run], store: Store, place: Arena, limits: Limits, watch: Watch) -> None:
    """Play every run that has no result yet, unless a limit leaves it out."""
    for run in missing(runs, store):
        if not left_out(run, store, limits):
            limit = math.inf if run.contestant.kind == "default" else limits.run
            store.add(play_run(run, place, limit))
        watch.advance(1)


SPEED = Condition("speed")
SPEED_ROUNDS, TURNS = 300, 2


def measure_speed(
    contestants: Sequence[Contestant], data: str, speeds: Store, results: Store, place: Arena
) -> None:
    """The first rounds of the first stream, the faster of two turns; without those who cannot play there."""
    for contestant in contestants:
        run = Run(contestant, Stream(data, 0, 0), SPEED, SPEED_ROUNDS)
        failed = [one for one in results.results.values() if one.key[:4] == run.key[:4] and one.error]
        if run.key in speeds.results or any(one.error.startswith(FINAL) for one in failed):
            continue
        turns = [play_run(run, place, math.inf) for _ in range(TURNS)]
        speeds.add(min(turns, key=lambda turn: turn.seconds))
