"""Threads share policies and sketches: every public call is atomic."""

import copy
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.kernels import kernels
from sketchbandit.kernels.backend import COLUMNS, PLAIN, ROWS
from sketchbandit.sketch.accounts import RowStats
from tests.policies import EVERY, Matrix, saved, unit

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

DIM, THREADS, CALLS = 40, 8, 60


@contextmanager
def switching_often() -> Iterator[None]:
    """Let another thread go on after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def all_at_once(*jobs: Callable[[], None]) -> None:
    """Run each in a thread of its own, and raise what the first of them raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        except BaseException as failure:  # what went wrong in a thread is raised below
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive(), "a thread waits for ever"
    if failures:
        raise failures[0]


class Recorder:
    """What was done to a policy, in the order in which it was done: noted while the lock is held."""

    def __init__(self, policy: Any) -> None:
        self.done: list[tuple[str, Any, Any]] = []
        sketch, learn, compress = policy.sketch, policy._learn, policy.sketch.compress

        def learning(arm: Any, reward: Any) -> Any:
            self.done.append(("update", np.array(arm), np.array(reward)))
            return learn(arm, reward)

        def compressing() -> Any:
            with sketch._lock:
                self.done.append(("compress", None, None))
                return compress()

        policy._learn, sketch.compress = learning, compressing

    def replay(self, policy: Any) -> Any:
        """The same, done by one thread to a fresh policy."""
        for verb, arm, reward in self.done:
            if verb == "compress":
                policy.sketch.compress()
            else:
                policy.update(arm, reward if reward.ndim else float(reward))
        return policy


def forget_recorder(policy: Any) -> Any:
    """A policy whose methods are its class's again."""
    del vars(policy)["_learn"], vars(policy.sketch)["compress"]
    return policy


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", EVERY)
def test_every_verb_in_eight_threads(name: str, tmp_path: Path) -> None:
    """Whatever eight threads do at once, the policy is what one would have made of the same updates."""
    make = EVERY[name]
    policy = make(DIM, size=4, ridge=1.0, beta=0.3)
    recorder = Recorder(policy)
    pristine = make(DIM, size=4, ridge=1.0, beta=0.3)

    def learn(seed: int) -> None:
        random = np.random.default_rng(seed)
        for call in range(CALLS):
            arms = unit(random.standard_normal((5, DIM)))
            chosen = policy.select(arms)
            assert 0 <= chosen < 5
            if call % 10 == 9:
                policy.update(arms, arms[:, 0])
            else:
                policy.update(arms[chosen], 0.5)

    def ask(seed: int) -> None:
        arms = unit(np.random.default_rng(seed).standard_normal((6, DIM)))
        for _ in range(CALLS):
            assert np.isfinite(policy.mean(arms)).all()
            assert (policy.width(arms) >= 0.0).all()
            assert sorted(policy.top(arms, 6).tolist()) == list(range(6))
            assert np.linalg.norm(policy.theta) < 1e3
            assert policy.radius == 0.3
            assert policy.nbytes > 0
            assert policy.rounds >= 0
            assert policy.health().certificate >= 0.0
            assert repr(policy)

    def look(seed: int) -> None:
        del seed
        for _ in range(CALLS):
            sketch = policy.sketch
            rows = sketch.rows
            before = rows.copy()
            assert (np.diag(sketch.covariance()) >= -1e-9).all()
            assert sum(map(len, sketch.parts)) >= 0
            assert sketch.alpha <= sketch.error_bound
            assert repr(sketch)
            assert np.array_equal(rows, before), "rows that were given out have changed"

    def keep(seed: int) -> None:
        for call in range(CALLS // 10):
            path = tmp_path / f"{seed}-{call}"
            policy.sketch.compress()
            policy.save(path)
            for twin in (sb.load(path, sb.Policy), copy.copy(pristine)):
                assert np.isfinite(twin.theta).all()

    def join(seed: int) -> None:
        del seed
        for _ in range(CALLS // 10):
            other = copy.deepcopy(pristine)
            other.merge(policy)
            assert other.rounds <= len(recorder.done) * 5

    with switching_often():
        all_at_once(
            *(lambda seed=seed: learn(seed) for seed in range(3)),
            *(lambda seed=seed: ask(seed) for seed in range(2)),
            lambda: look(0),
            lambda: keep(0),
            lambda: join(0),
        )
    assert policy.rounds == 3 * (CALLS + 4 * CALLS // 10)
    assert saved(forget_recorder(policy)) == saved(recorder.replay(pristine))


@pytest.mark.parametrize("name", EVERY)
def test_copies_are_made_between_two_updates(name: str) -> None:
    """A deep copy or a pickle taken while others learn is a policy after so many rounds, not a mixture."""
    policy = EVERY[name](DIM, size=4, ridge=1.0, beta=0.3)
    arms = unit(np.random.default_rng(0).standard_normal((200, DIM)))
    copies: list[Any] = []

    def learn() -> None:
        for arm in arms:
            policy.update(arm, float(arm[0]))

    def copy_it() -> None:
        for _ in range(15):
            copies.append(copy.deepcopy(policy))
            copies.append(pickle.loads(pickle.dumps(policy)))  # noqa: S301  (our own bytes)

    with switching_often():
        all_at_once(learn, copy_it)
    assert len(copies) == 30
    alone, stages = EVERY[name](DIM, size=4, ridge=1.0, beta=0.3), {}
    stages[0] = saved(alone)
    for arm in arms:
        alone.update(arm, float(arm[0]))
        stages[alone.rounds] = saved(alone)
    for twin in copies:
        assert saved(twin) == stages[twin.rounds]


SKETCHES: dict[str, Callable[[], Any]] = {
    "fd": lambda: sb.FrequentDirections(DIM, size=4),
    "svd": lambda: sb.IncrementalSVD(DIM, size=6),
    "dbs": lambda: sb.DyadicBlockSketch(DIM, size=4, epsilon=3.0),
    "adaptive": lambda: sb.AdaptiveSketch(DIM, size=4, epsilon=3.0),
    "exact": lambda: sb.ExactSketch(DIM),
    "projection": lambda: sb.RandomProjection(DIM, size=4),
    "bulk": lambda: sb.BulkReader(sb.FrequentDirections(DIM, size=4)),
}


@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_lose_no_row(name: str) -> None:
    """Rows from eight threads: all are counted, and the certificate holds for all of them together."""
    sketch = SKETCHES[name]()
    parts = np.split(unit(np.random.default_rng(0).standard_normal((1600, DIM))), THREADS)

    def feed(rows: Matrix) -> None:
        for some in np.split(rows, 100):
            sketch.update(some)

    with switching_often():
        all_at_once(*(lambda rows=rows: feed(rows) for rows in parts))
    whole = sketch.finish() if name == "bulk" else sketch
    rows = np.concatenate(parts)
    assert whole.count == 1600
    assert whole.mass == pytest.approx(1600.0)
    if np.isfinite(whole.error_bound):
        loss = np.linalg.eigvalsh(rows.T @ rows - whole.rows.T @ whole.rows)
        assert loss[0] >= -1e-9
        assert loss[-1] <= whole.error_bound + 1e-9


@pytest.mark.parametrize("make", [*EVERY.values()])
def test_two_that_merge_each_other_do_not_wait_for_ever(make: Callable[..., Any]) -> None:
    """Locks are taken in one order, whoever merges into whom."""
    one, other = (make(8, size=3, ridge=1.0, beta=0.3) for _ in range(2))

    def merge(mine: Any, theirs: Any) -> None:
        for _ in range(30):
            mine.merge(theirs)

    with switching_often():
        all_at_once(lambda: merge(one, other), lambda: merge(other, one))


OF_ARMS = {"select", "choose", "probabilities", "scores", "mean", "margin", "width", "ucb"}


def calls(thing: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every public method and property of an object, with arguments that will do."""
    arms = np.eye(DIM)[:3]
    arguments: dict[str, tuple[Any, ...]] = {
        "update": (arms,) if isinstance(thing, (sb.Sketch, sb.BulkReader)) else (arms[0], 1.0),
        "merge": (copy.deepcopy(thing),),
        "top": (arms, 2),
        "slate": (arms, 2),
        "rank": (arms, 2),
        "select_many": (arms[np.newaxis],),
        "choose_many": (arms[np.newaxis],),
        "probabilities_many": (arms[np.newaxis],),
        "add_gram": (np.eye(DIM), RowStats(np.dtype(np.float64))),
        "save": ("/nowhere/at/all",),
        "check_room": (1.0,),
        "forget": (0.5,),
        "read_by": (sb.Scaling.rows(DIM),),
    }
    for name in dir(type(thing)):
        member = getattr(type(thing), name)
        if name.startswith("_") or hasattr(member, "_needs_the_lock"):  # not for others
            continue
        if name in {"kind", "dim", "dtype"} or inspect.ismethod(member):
            continue  # what never changes, and class methods
        if isinstance(member, property):
            yield name, partial(getattr, thing, name)
        elif callable(member):
            given = arguments.get(name, (arms,) if name in OF_ARMS else ())
            yield name, partial(getattr(thing, name), *given)


THINGS: dict[str, Callable[[], Any]] = {
    **SKETCHES,
    **{f"policy {n}": partial(make, DIM, size=4, ridge=1.0, beta=0.3) for n, make in EVERY.items()},
}


@pytest.mark.parametrize("name", [n for n in THINGS if n != "projection"])
def test_nobody_gets_past_the_lock(name: str) -> None:
    """While one thread holds the lock, no public call of another comes back."""
    thing = THINGS[name]()
    came_back: list[str] = []
    waiting: list[threading.Thread] = []

    def call(verb: str, action: Callable[[], Any]) -> None:
        with suppress(OSError, sb.InputError):  # no place to save to, no scaling to replace
            action()
        came_back.append(verb)

    todo = list(calls(thing))
    assert len(todo) > 5
    with thing._lock:
        for verb, action in todo:
            waiting.append(threading.Thread(target=call, args=(verb, action), daemon=True))
            waiting[-1].start()
        waiting[-1].join(0.2)
        assert not came_back
    for thread in waiting:
        thread.join(10.0)
    assert sorted(came_back) == sorted(verb for verb, _ in todo)


def test_a_sketch_of_ones_own_is_locked_too() -> None:
    """Whoever derives a sketch need not think of threads."""

    class Mine(sb.FrequentDirections):
        kind = "mine-and-locked"

        @property
        def trace(self) -> float:
            """Reads twice."""
            return float((self.rows**2).sum())

    sketch, seen = Mine(3, size=2), []
    sketch.update(np.eye(3))
    reader = threading.Thread(target=lambda: seen.append(sketch.trace), daemon=True)
    with sketch._lock:
        reader.start()
        reader.join(0.1)
        assert not seen
    reader.join(10.0)
    assert len(seen) == 1


def test_compiled_loops_look_before_they_read() -> None:
    """Arrays of the wrong size are refused, not read past their end."""
    compiled = kernels()
    assert compiled is not None
    x, short, rows, square = np.ones(8), np.ones(7), np.ones((5, 8)), np.eye(8)
    y, u, one = np.empty(5), np.empty(5), np.empty(1)
    factor, narrow = np.eye(5), np.ones((5, 7))
    sets, found = np.array([0, 2, 5]), np.empty(2, dtype=np.intp)
    level = (0.0, 0.0, 0.0)
    sums = (*(x.copy() for _ in range(4)), *level)
    wrong: list[Callable[[], Any]] = [
        lambda: compiled.norm_sq(x, short),
        lambda: compiled.project_arms(rows, np.ones((7, 3)), np.empty((5, 3))),
        lambda: compiled.project_arms(rows, np.ones((8, 3)), np.empty((4, 3))),
        lambda: compiled.scan(rows, PLAIN, short, y, u),
        lambda: compiled.scan(rows, PLAIN, x, y[:4], u),
        lambda: compiled.scan(rows, np.array([COLUMNS, 1.0, 0.0]), x, y, u),
        lambda: compiled.scan(rows, np.array([ROWS, 1.0, 1.0]), x, y, u),
        lambda: compiled.fill_row(x, np.array([ROWS, 1.0, 1.0]), x.copy()),
        lambda: compiled.fill_rows(rows, np.zeros(2), rows.copy()),
        lambda: compiled.leverage_rows(x, 8.0, narrow, factor, 5, 1.0, y, u),
        lambda: compiled.leverage_rows(x, 8.0, rows[:4], factor, 5, 1.0, y, u),
        lambda: compiled.leverage_rows(x, 8.0, rows, factor[:4], 5, 1.0, y, u),
        lambda: compiled.leverage_rows(x, 8.0, rows, factor, 5, 1.0, y[:4], u),
        lambda: compiled.search_rows(rows, PLAIN, x, rows[:4], factor, 5, 1.0, 0.1, x.copy(), y, u, one),
        lambda: compiled.search_rows(rows, PLAIN, x, rows, factor, 5, 1.0, 0.1, short, y, u, one),
        lambda: compiled.search_rows(narrow, PLAIN, x, rows, factor, 5, 1.0, 0.1, x.copy(), y, u, one),
        lambda: compiled.grow_rows(x, 1.0, rows, factor, 5, 1.0, 1.0, 1.0, u, *sums),
        lambda: compiled.grow_rows(x, 1.0, rows, np.eye(6), 5, 1.0, 1.0, 1.0, u, short, *sums[1:]),
        lambda: compiled.grow_rows(x, 1.0, rows, np.eye(6), 5, 1.0, 1.0, 1.0, u, *sums[:3], short, *level),
        lambda: compiled.grow_rows(x, 1.0, rows[:4], np.eye(6), 5, 1.0, 1.0, 1.0, u, *sums),
        lambda: compiled.leverage_dense(x, square[:7], rows, 5, x.copy(), u),
        lambda: compiled.leverage_dense(x, square, rows, 6, x.copy(), np.empty(6)),
        lambda: compiled.leverage_dense(x, square, rows, 5, x.copy(), u[:4]),
        lambda: compiled.search_dense(
            rows, PLAIN, x, square, narrow, 5, 1.0, 0.1, 9, x.copy(), x.copy(), u, one
        ),
        lambda: compiled.grow_dense(x, 1.0, rows, 5, 1.0, 1.0, x.copy(), u, *sums),
        lambda: compiled.grow_dense(x, 1.0, rows, 4, 1.0, 1.0, x.copy(), u, short, *sums[1:]),
        lambda: compiled.grow_dense(x, 1.0, rows, 4, 1.0, 1.0, x.copy(), u, *sums[:3], short, *level),
        lambda: compiled.search_many_rows(rows, PLAIN, sets, x, rows[:4], factor, 5, 1.0, 0.1, found),
        lambda: compiled.search_many_rows(rows, PLAIN, sets + 1, x, rows, factor, 5, 1.0, 0.1, found),
        lambda: compiled.search_many_rows(
            rows, PLAIN, sets[::-1].copy(), x, rows, factor, 5, 1.0, 0.1, found
        ),
        lambda: compiled.search_many_rows(rows, PLAIN, sets, x, rows, factor, 5, 1.0, 0.1, found[:1]),
        lambda: compiled.search_many_dense(rows, PLAIN, sets, x, square, narrow, 5, 1.0, 0.1, 9, found),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="wrong size"):
            call()
    assert not compiled.equal(x, short)
