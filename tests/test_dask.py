"""Dask: the same sketch from any collection on any scheduler, whoever dies; policies from logs in shards."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import LocalCluster
from numpy.typing import NDArray
from scipy import sparse

import sketchbandit as sb
from sketchbandit.dask import fit_logged, sketch
from sketchbandit.linalg import spectral_error
from sketchbandit.simulation.pool import Failure, Result, run_on_cluster
from sketchbandit.simulation.runs import Run, perform
from sketchbandit.simulation.specs import parse, spec
from sketchbandit.testing import make_rows
from sketchbandit_paper import verbs

DIM = 20
Matrix = NDArray[np.float64]
FD = partial(sb.FrequentDirections, size=5)


def matrix(count: int = 1000, dim: int = DIM, seed: int = 0) -> Matrix:
    """Rows with a spectrum that falls."""
    return make_rows("gaussian", count, dim, seed) * 0.8 ** np.arange(dim)


def assert_same(found: sb.Sketch, rows: Matrix, size: int = 5) -> None:
    """The sketch that a single reader makes, to rounding."""
    bulk = sb.BulkReader(sb.FrequentDirections(rows.shape[1], size=size))
    bulk.update(rows)
    wanted = bulk.finish()
    assert found.count == len(rows)
    assert found.error_bound == pytest.approx(wanted.error_bound, rel=1e-9)
    np.testing.assert_allclose(found.covariance(), wanted.covariance(), atol=1e-9 * wanted.mass)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes of one thread."""
    settings = {"distributed.worker.daemon": False, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made,
    ):
        yield made


def collections(rows: Matrix) -> dict[str, Any]:
    """The same rows as everything that is taken."""
    frame = pd.DataFrame(rows).add_prefix("c")
    halves = np.array_split(rows, 4)
    return {
        "array": da.from_array(rows, chunks=(170, DIM)),
        "array cut by columns": da.from_array(rows, chunks=(170, 7)),
        "one partition": da.from_array(rows, chunks=rows.shape),
        "dataframe": dd.from_pandas(frame, npartitions=6),
        "delayed blocks": [delayed(half) for half in halves],
        "blocks": halves,
        "mixed": [
            delayed(halves[0]),
            sparse.csr_matrix(halves[1]),
            delayed(frame[500:750]),
            halves[3].tolist(),
        ],
        "with empty ones": [[], rows[:0], delayed(rows[:600]), sparse.csr_array(rows[:0]), rows[600:], []],
        "one delayed": delayed(rows),
        "nullable dtypes": dd.from_pandas(frame.astype({"c0": "Float64"}), npartitions=3),
        "unknown lengths": _filtered(rows),
    }


def _filtered(rows: Matrix) -> Any:
    array = da.from_array(rows, chunks=(170, DIM))
    return array[array[:, 0] < np.inf]


@pytest.mark.parametrize("name", list(collections(matrix(40))))
def test_every_collection(name: str) -> None:
    """Arrays, dataframes and lists; sparse and dense mixed; partitions without rows."""
    rows = matrix()
    assert_same(sketch(collections(rows)[name], FD), rows)


@pytest.mark.parametrize("name", ["array", "dataframe", "mixed"])
def test_every_scheduler_gives_the_same_bits(name: str, cluster: LocalCluster) -> None:
    """In this thread, in several, in other processes by address."""
    collection = collections(matrix())[name]
    with dask.config.set(scheduler="synchronous"):
        here = sketch(collection, FD, split_every=3)
    with dask.config.set(scheduler="threads"):
        threads = sketch(collection, FD, split_every=3)
    there = sketch(collection, FD, split_every=3, address=cluster.scheduler_address)
    for other in (threads, there):
        np.testing.assert_array_equal(other.rows, here.rows)
        assert (other.count, other.mass, other.error_bound) == (here.count, here.mass, here.error_bound)


@pytest.mark.parametrize("split_every", [2, 100])
def test_certificate_of_streams(split_every: int, cluster: LocalCluster) -> None:
    """Wide rows, sketched as streams: certificates add up to an honest one, within mass/size."""
    rows = make_rows("gaussian", 900, 120, seed=1) * 0.95 ** np.arange(120)
    array = da.from_array(rows, chunks=(100, 120))
    found = sketch(
        array,
        partial(sb.FrequentDirections, size=6),
        split_every=split_every,
        address=cluster.scheduler_address,
    )
    assert found.count == 900
    assert 0.0 < spectral_error(rows, found.rows) <= found.error_bound <= found.mass / 6


def test_factories() -> None:
    """From nothing, from dim, from dim and the number of the partition; dyadic blocks keep their bound."""
    rows = matrix()
    array = da.from_array(rows, chunks=(100, DIM))
    assert_same(sketch(array, lambda: sb.FrequentDirections(DIM, size=5)), rows)
    random = sketch(array, lambda dim, part: sb.RandomProjection(dim, size=400, seed=part))
    assert np.linalg.norm(random.covariance() - rows.T @ rows, 2) < 0.5 * random.mass
    dyadic = sketch(array, lambda dim: sb.DyadicBlockSketch(dim, size=4, epsilon=5.0))
    assert spectral_error(rows, dyadic.rows) <= dyadic.error_bound <= 10 * 10.0
    with pytest.raises(sb.MergeError, match="same seed"):
        sketch(array, partial(sb.RandomProjection, size=5))


def test_bad_partitions_are_named() -> None:
    """NaN, another width, another dtype: with the partition, or the file it came from, and the row."""
    rows = matrix(100)
    spoilt = rows.copy()
    spoilt[37, 2] = np.nan
    good = delayed(rows)
    for bad, message in (
        (spoilt, "b.npy: row 37 contains nan"),
        (sparse.csr_matrix(spoilt), "b.npy: row 37 contains nan"),
        (rows[:, :5], "b.npy: its rows have length 5, but those of a.npy 20"),
        (rows.astype(str), "b.npy: rows must be real numbers"),
        (rows * 1j, "b.npy: rows must be real numbers, got an array of dtype complex128"),
        (np.ones((2, 3, 4)), "b.npy: not a matrix"),
    ):
        with pytest.raises(sb.SketchBanditError, match=message):
            sketch([good, delayed(bad)], FD, names=["a.npy", "b.npy"])
    array = da.concatenate([da.from_array(rows, chunks=50), da.from_array(spoilt, chunks=50)])
    with pytest.raises(sb.InputError, match="partition 2: row 37 contains nan"):
        sketch(array, FD)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that does not answer is given up at once."""
    monkeypatch.setattr("sketchbandit.dask.partitions._PATIENCE", 0.2)


@pytest.mark.usefixtures("impatient")
def test_bad_input() -> None:
    """Said before anything is computed."""
    array = da.from_array(matrix(), chunks=(100, DIM))
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    for collection, factory, message in (
        (array[:, 0], FD, "must be a matrix"),
        (frame["a"], FD, "not a series"),
        (frame, FD, "these are not: b"),
        ([], FD, "no partitions"),
        ([[], []], FD, "there are no rows"),
        (matrix(), FD, "not ndarray"),
        (array, None, "factory must be callable"),
        (array, lambda: 3, "must make a fresh sketchbandit.Sketch, but made 3"),
        (
            array,
            lambda: sb.ExactSketch(7),
            "rows have length 20, but factory makes a sketchbandit.Sketch for 7",
        ),
    ):
        with pytest.raises(sb.SketchBanditError, match=message):
            sketch(collection, factory)  # type: ignore[arg-type]
    with pytest.raises(sb.InputError, match="10 partitions, but 1 names"):
        sketch(array, FD, names=["a"])
    with pytest.raises(sb.InputError, match="split_every must be at least 2"):
        sketch(array, FD, split_every=1)
    with pytest.raises(sb.SketchBanditError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        sketch(array, FD, address="tcp://127.0.0.1:9")


def deadly(rows: Matrix, marker: str) -> Matrix:
    """Kills the worker that computes it, the first time."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def test_a_worker_killed_in_the_middle(tmp_path: Path, cluster: LocalCluster) -> None:
    """The result is complete and identical."""
    pieces = np.array_split(matrix(), 12)
    undisturbed = sketch([delayed(piece) for piece in pieces], FD, split_every=3)
    blocks = [delayed(piece) for piece in pieces]
    blocks[7] = delayed(deadly)(pieces[7], str(tmp_path / "marker"))
    found = sketch(blocks, FD, split_every=3, address=cluster.scheduler_address)
    assert (tmp_path / "marker").exists()
    np.testing.assert_array_equal(found.rows, undisturbed.rows)
    assert (found.count, found.error_bound) == (1000, undisturbed.error_bound)


# -- policies -----------------------------------------------------------------------------------------------


def log(count: int = 300) -> tuple[Matrix, NDArray[np.int64], Matrix]:
    """Arms offered, the index chosen, the reward."""
    random = np.random.default_rng(3)
    return (
        random.standard_normal((count, 4, DIM)),
        random.integers(0, 4, count),
        random.standard_normal(count),
    )


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_policy_from_shards(where: str, request: pytest.FixtureRequest) -> None:
    """Is that of the whole log."""
    address = request.getfixturevalue("cluster").scheduler_address if where == "cluster" else None
    arms, chosen, rewards = log()
    played = arms[np.arange(300), chosen]
    whole = sb.oful(DIM, ridge=0.5, beta=0.3)
    whole.update(played, rewards)
    make = partial(sb.oful, ridge=0.5, beta=0.3)
    parts = [da.from_array(chosen, chunks=100), da.from_array(rewards, chunks=30)]
    offered = da.from_array(arms, chunks=(70, 2, 11))
    found = fit_logged(offered, parts[0], parts[1], make, split_every=2, address=address)
    blocks = [delayed(played[:90]), sparse.csr_matrix(played[90:]), []]
    from_lists = fit_logged(blocks, None, [rewards[:90].tolist(), rewards[90:], []], make)
    for policy in (found, from_lists):
        assert policy.rounds == 300
        np.testing.assert_allclose(policy.theta, whole.theta, atol=1e-10)
        np.testing.assert_allclose(policy.ucb(arms[0]), whole.ucb(arms[0]), atol=1e-9)


def test_a_sketched_policy_from_shards_is_certified() -> None:
    """Certificates add, and hold for the arms played."""
    arms, chosen, rewards = log()
    played = arms[np.arange(300), chosen]
    blocks = [(played[i : i + 60], rewards[i : i + 60]) for i in range(0, 300, 60)]
    policy = fit_logged(
        [b[0] for b in blocks],
        None,
        [b[1] for b in blocks],
        lambda dim: sb.dbslinucb(dim, size=4, epsilon=50.0),
    )
    assert spectral_error(played, policy.sketch.rows) <= policy.sketch.error_bound


def test_logs_that_do_not_fit() -> None:
    """Named by partition and row."""
    arms, chosen, rewards = log(60)
    parts = [da.from_array(array, chunks=(20, *array.shape[1:])) for array in (arms, chosen, rewards)]
    wrong = chosen.copy()
    wrong[25] = 4
    for arguments, message in (
        ((parts[0], da.from_array(wrong, chunks=20), parts[2]), "partition 1: row 5: arm 4 was chosen, of 4"),
        (
            (parts[0], parts[1], da.from_array(rewards[:50], chunks=20)),
            "arms are of 60 rounds, but rewards of 50",
        ),
        (([arms], [chosen], [rewards[:5], rewards[5:]]), "arms have 1 partitions, but rewards 2"),
        (([arms], [chosen], [rewards[:5]]), "partition 0: .*5"),
        (([arms], [chosen * 1.0], [rewards]), "partition 0: chosen must be 60 integers"),
        (([arms[:, 0]], [chosen], [rewards]), "partition 0: arms must be .rounds, arms, dim."),
        ((arms, chosen, rewards), "arms must be a Dask array or a list"),
        (([arms], [chosen], [rewards * np.nan]), "partition 0: .*nan"),
        (
            ([arms[:, 0], arms[:, 0, :7]], None, [rewards, rewards]),
            "partition 1: its rows have length 7, but those of partition 0 20",
        ),
        (([[]], None, [[]]), "there are no rounds"),
        (([arms], None, [rewards]), "partition 0: the arms chosen must be"),
    ):
        with pytest.raises(sb.SketchBanditError, match=message):
            fit_logged(*arguments, factory=sb.oful)  # type: ignore[misc]


@pytest.mark.parametrize("model", [sb.Logistic(), sb.Poisson(), sb.Robust()], ids=lambda one: one.kind)
def test_models_that_learn_in_one_pass_take_one_partition(model: sb.Estimate) -> None:
    """Several are refused before anything is computed, with the remedy; one is the policy by hand."""
    arms, _, _ = log(60)
    played, clicks = arms[:, 0], (np.arange(60) % 3 == 0).astype(np.float64)
    computed = []

    def block(part: Matrix) -> Matrix:
        computed.append(len(part))
        return part

    def make(dim: int) -> sb.LinUCB:
        return sb.oful(dim, rewards=model)

    chunks = (20, DIM)
    parts = da.from_array(played, chunks=chunks).map_blocks(block, dtype=np.float64, meta=played[:0])
    rewards = da.from_array(clicks, chunks=20)
    with pytest.raises(sb.MergeError, match=r"learns in one pass.*3 partitions.*arms.rechunk\({0: -1}\)"):
        fit_logged(parts, None, rewards, make)
    assert not computed
    with pytest.raises(sb.MergeError, match="2 partitions"):  # of a length that is not known before
        fit_logged([delayed(played[:30]), delayed(played[30:])], None, [clicks[:30], clicks[30:]], make)
    found = fit_logged(parts.rechunk({0: -1}), None, rewards, make)
    by_hand = make(DIM)
    by_hand.update(played, clicks)
    assert np.array_equal(found.theta, by_hand.theta)


def test_policies_that_forget_take_one_partition() -> None:
    """A log is one stream: what its first partition has seen is older than the last."""
    arms, _, rewards = log(60)
    played = da.from_array(arms[:, 0], chunks=(20, DIM))

    def make(dim: int) -> sb.LinUCB:
        return sb.oful(dim, forget=0.9)

    with pytest.raises(
        sb.MergeError, match=r"forget is 0.9: .*leave out forget; or the log has 3 partitions"
    ):
        fit_logged(played, None, da.from_array(rewards, chunks=20), make)
    found = fit_logged(played.rechunk({0: -1}), None, da.from_array(rewards, chunks=20), make)
    by_hand = make(DIM)
    by_hand.update(arms[:, 0], rewards)
    assert np.array_equal(found.theta, by_hand.theta)


def test_rewards_of_a_log_that_the_model_has_no_place_for() -> None:
    """Named by the partition."""
    arms, _, rewards = log(20)
    with pytest.raises(
        sb.InputError, match=r"partition 0: the reward is .*Logistic takes rewards from 0 to 1"
    ):
        fit_logged([arms[:, 0]], None, [rewards], lambda dim: sb.oful(dim, rewards=sb.Logistic()))


# -- experiments --------------------------------------------------------------------------------------------


def test_experiments_on_a_cluster_give_the_same_rows(cluster: LocalCluster) -> None:
    """Every row but for the seconds; a run that fails there is a failure, as here."""
    environment = spec("classification", data="digits")
    runs = [
        Run("play", environment, parse("soful:size=5,ridge=1,beta=0.1"), 30, seed=1),
        Run("tune", environment, parse("oful"), 20, seed=2, grid=((0.1, 0.2), (1.0, 0.2))),
    ]
    bad = Run("play", environment, parse("soful:size=1,ridge=1,beta=0.1"), 30, seed=3)
    done = [found for some in run_on_cluster([*runs, bad], cluster.scheduler_address) for found in some]
    (failure,) = [found for found in done if isinstance(found, Failure)]
    assert failure.run == bad
    assert "size must be at least 2" in failure.reason
    there = {found.run.key: found.rows for found in done if isinstance(found, Result)}
    for run in runs:
        here = perform(run)
        assert [_but_for_time(row) for row in there[run.key]] == [_but_for_time(row) for row in here]
        assert all(row["machine"] for row in there[run.key])
    assert not list(run_on_cluster([], "tcp://127.0.0.1:9"))


def _but_for_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"seconds", "machine"}}


def test_commands_that_are_given_a_cluster(
    tmp_path: Path, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way of a comparison; a scheduler that is not there, and too many ways at once, are said."""
    settings: dict[str, Any] = {"rounds": 10, "permutations": 1, "out": tmp_path / "x"}
    done = verbs.compare(["oful"], dask=cluster.scheduler_address, **settings)
    assert not done.failures
    assert done.results.all_rows["round"].max() == 10
    settings["fresh"] = True
    monkeypatch.setattr("sketchbandit.dask.partitions._PATIENCE", 0.2)
    with pytest.raises(sb.InputError, match="choose one"):
        verbs.compare(["oful"], dask="tcp://127.0.0.1:9", jobs=2, **settings)
    with pytest.raises(sb.SketchBanditError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        verbs.compare(["oful"], dask="tcp://127.0.0.1:9", **settings)
