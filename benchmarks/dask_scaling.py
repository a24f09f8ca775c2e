"""One worker and two on the same array, the certificate against the true spectrum, and a worker killed.

    python -m benchmarks.dask_scaling

Workers are processes of one thread on this machine; the array lies in their memory before the clock starts.
"""

import os
import signal
import threading
import time
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import sketchbandit as sb
from sketchbandit.dask import sketch

ROWS, DIM, SIZE, CHUNK = 480_000, 1000, 100, 20_000
TURNS = 3


def main() -> None:
    """Measure and check."""
    factory = partial(sb.FrequentDirections, size=SIZE)
    seconds, made = {}, {}
    for workers in (1, 2):
        with cluster(workers) as running, Client(running):
            array = persisted()
            best = np.inf
            for _ in range(TURNS):
                start = time.perf_counter()
                made[workers] = sketch(array, factory)
                best = min(best, time.perf_counter() - start)
            seconds[workers] = best
            print(f"{workers} worker(s): {best:.2f} s, {ROWS / best:,.0f} rows/s", flush=True)
            if workers == 2:
                check(array, made[2])
                rivals(array)
    assert np.array_equal(made[1].rows, made[2].rows), "the number of workers changed the answer"
    print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one; the same bits")
    with cluster(2) as running, Client(running):
        killed(running, factory, made[2])


def cluster(workers: int) -> Any:
    """So many processes of one thread."""
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40)


def lazy() -> Any:
    """The array: Gaussian rows with a spectrum that falls slowly, the same whoever makes them."""
    scale = 1.0 / np.sqrt(np.arange(1, DIM + 1))
    return da.random.default_rng(0).standard_normal((ROWS, DIM), chunks=(CHUNK, DIM)) * scale


def persisted() -> Any:
    """In the memory of the workers."""
    array = lazy().persist()
    wait(array)
    return array


def rivals(array: Any) -> None:
    """What Dask itself offers for the same question, on the same two workers."""
    for name, question in (
        ("X'X by dask.array", array.T @ array),
        (f"da.linalg.svd_compressed, k = {SIZE}", da.linalg.svd_compressed(array, SIZE)[2]),
    ):
        start = time.perf_counter()
        question.compute()
        print(f"{name}: {time.perf_counter() - start:.2f} s", flush=True)


def check(array: Any, made: sb.Sketch) -> None:
    """S'S ⪯ X'X ⪯ S'S + e I."""
    covariance = np.zeros((DIM, DIM))
    for block in array.to_delayed().ravel():
        rows = block.compute()
        covariance += rows.T @ rows
    loss = np.linalg.eigvalsh(covariance - made.rows.T @ made.rows)
    assert loss[0] >= -1e-9 * made.mass, "S'S exceeds X'X"
    assert loss[-1] <= made.error_bound * (1 + 1e-9), "X'X exceeds S'S + e I"
    print(
        f"true error {loss[-1]:.6g}, certificate {made.error_bound:.6g} "
        f"({made.error_bound / made.mass:.2g} of the mass)"
    )


def killed(running: Any, factory: Any, wanted: sb.Sketch) -> None:
    """Kill a worker a second after the work has begun."""
    victim = next(iter(running.workers.values())).pid

    def kill() -> None:
        time.sleep(1.5)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    start = time.perf_counter()
    found = sketch(lazy(), factory)
    taken = time.perf_counter() - start
    killer.join()
    assert taken > 1.5, "it was over before the worker was killed"
    assert np.array_equal(found.rows, wanted.rows), "another answer"
    assert (found.count, found.error_bound) == (wanted.count, wanted.error_bound), "another answer"
    print(f"a worker killed after 1.5 s of {taken:.1f}: the same bits")


if __name__ == "__main__":
    main()
