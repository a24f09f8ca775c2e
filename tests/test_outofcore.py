"""Matrices in files: every format gives the sketch of its rows, whatever is interrupted, killed or broken."""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import sparse
from typer.testing import CliRunner

import sketchbandit as sb
from sketchbandit import errors, outofcore
from sketchbandit.cli.app import app
from sketchbandit.linalg import spectral_error
from sketchbandit.outofcore import job
from sketchbandit.outofcore.sources import numpy_files, open_source
from sketchbandit.testing import make_rows

DIM = 12
Matrix = NDArray[np.float64]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 250 rows, so that there are several."""
    monkeypatch.setattr(job, "_LEAST_BYTES", 8 * DIM * 250)
    monkeypatch.setattr(job, "_MOST_BYTES", 8 * DIM * 250)


def matrix(count: int = 1000, dim: int = DIM, seed: int = 0) -> Matrix:
    """Rows with a spectrum that falls."""
    return make_rows("gaussian", count, dim, seed) * 0.7 ** np.arange(dim)


def oracle(rows: Any, size: int = 5) -> sb.Sketch:
    """Read here, at once."""
    bulk = sb.BulkReader(sb.FrequentDirections(rows.shape[1], size=size))
    bulk.update(rows)
    return bulk.finish()


def assert_same(found: sb.Sketch, wanted: sb.Sketch) -> None:
    """To rounding."""
    assert found.count == wanted.count
    assert found.mass == pytest.approx(wanted.mass, rel=1e-12)
    assert found.error_bound == pytest.approx(wanted.error_bound, rel=1e-9)
    np.testing.assert_allclose(found.covariance(), wanted.covariance(), atol=1e-10 * wanted.mass)


def assert_identical(found: sb.Sketch, wanted: sb.Sketch) -> None:
    """To the bit."""
    assert (found.count, found.mass, found.error_bound) == (wanted.count, wanted.mass, wanted.error_bound)
    np.testing.assert_array_equal(found.rows, wanted.rows)


def write_parquet(path: Path, rows: Matrix) -> None:
    """In row groups of 130."""
    table = pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])})
    parquet.write_table(table, path, row_group_size=130)


WRITERS: dict[str, Callable[[Path, Matrix], object]] = {
    "c.npy": np.save,
    "fortran.npy": lambda path, rows: np.save(path, np.asfortranarray(rows)),
    "big-endian.npy": lambda path, rows: np.save(path, rows.astype(">f8")),
    "sparse.npz": lambda path, rows: sparse.save_npz(path, sparse.csr_matrix(rows)),
    "csc.npz": lambda path, rows: sparse.save_npz(path, sparse.csc_array(rows)),
    "coo.npz": lambda path, rows: sparse.save_npz(path, sparse.coo_array(rows)),
    "dense.npz": lambda path, rows: np.savez_compressed(path, X=rows, y=np.ones(3)),
    "only.npz": lambda path, rows: np.savez(path, whatever=rows),
    "names.csv": lambda path, rows: pd.DataFrame(rows).add_prefix("c").to_csv(path, index=False),
    "bare.csv": lambda path, rows: np.savetxt(path, rows, delimiter=","),
    "semicolons.csv": lambda path, rows: np.savetxt(path, rows, delimiter=";"),
    "tabs.tsv": lambda path, rows: np.savetxt(path, rows, delimiter="\t"),
    "spaces.txt": np.savetxt,
    "windows.csv": lambda path, rows: path.write_bytes(
        b"\xef\xbb\xbf" + "\r\n".join(",".join(map(repr, row)) for row in rows.tolist()).encode()
    ),
    "groups.parquet": write_parquet,
    "index.parquet": lambda path, rows: (
        pd.DataFrame(rows, index=np.arange(len(rows)) ** 2).add_prefix("c").to_parquet(path)
    ),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", list(WRITERS))
def test_every_format(name: str, tmp_path: Path) -> None:
    """The rows of a file are the rows of the matrix."""
    rows = matrix()
    WRITERS[name](tmp_path / name, rows)
    assert_same(outofcore.sketch([tmp_path / name], size=5, jobs=1), oracle(rows))
    source = open_source(str(tmp_path / name))
    assert (source.rows, source.dim) == rows.shape


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_every_real_dtype(dtype: Any, tmp_path: Path) -> None:
    """Numbers are numbers."""
    rows = (10 * matrix()).clip(0, 200).astype(dtype)
    np.save(tmp_path / "x.npy", rows)
    assert_same(outofcore.sketch([tmp_path / "x.npy"], size=5, jobs=1), oracle(rows.astype(np.float64)))


@pytest.mark.usefixtures("here")
def test_mixed_sparse_and_dense(tmp_path: Path) -> None:
    """Files of any kind together, in the order given; empty ones add nothing."""
    rows = matrix()
    np.save(tmp_path / "a.npy", rows[:300])
    np.save(tmp_path / "b.npy", rows[:0])
    sparse.save_npz(tmp_path / "c.npz", sparse.csr_matrix(rows[300:500]))
    write_parquet(tmp_path / "d.parquet", rows[500:])
    (tmp_path / "e.csv").write_text(",".join(f"c{i}" for i in range(DIM)) + "\n", encoding="utf-8")
    write_parquet(tmp_path / "f.parquet", rows[:0])
    sparse.save_npz(tmp_path / "g.npz", sparse.csr_matrix(rows[:0]))
    assert_same(outofcore.sketch([str(tmp_path / "*")], size=5, jobs=2), oracle(rows))


@pytest.mark.usefixtures("here")
def test_names_or_a_row(tmp_path: Path) -> None:
    """0, 1, 2, ... may be either, and the user knows; a missing field of one is no empty line."""
    (tmp_path / "x.csv").write_text("0,1\n5,5\n7,2\n", encoding="utf-8")
    assert outofcore.sketch([tmp_path / "x.csv"], size=3, header=True, jobs=1).count == 2
    assert outofcore.sketch([tmp_path / "x.csv"], size=3, header=False, jobs=1).count == 3
    (tmp_path / "one.csv").write_text("x\n1\n\n3\n", encoding="utf-8")
    with pytest.raises(sb.InputError, match=r"one\.csv: row 1 contains nan"):
        outofcore.sketch([tmp_path / "one.csv"], size=3, jobs=1)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_budgets_know_every_line(ends: str, tmp_path: Path) -> None:
    """However lines end, the parts together stay within epsilon."""
    rows = make_rows("gaussian", 600, 60, seed=2)
    for number, some in enumerate(np.array_split(rows, 4)):
        lines = [",".join(map(repr, row)) for row in some.tolist()]
        text = lines[0] + "\n" + ends.join(lines[1:]) + ends
        (tmp_path / f"{number}.csv").write_bytes(text.encode())
    found = outofcore.sketch([str(tmp_path / "*.csv")], size=2, epsilon=300.0, jobs=2)
    assert found.count == 600
    assert spectral_error(rows, found.rows) <= found.error_bound * (1 + 1e-9) <= 300.0 * (1 + 1e-9)


@pytest.mark.usefixtures("here")
def test_small_files_share_a_part(tmp_path: Path) -> None:
    """So that little is written for them; the row of a bad one is still its own."""
    rows = matrix()
    for number, some in enumerate(np.array_split(rows, 40)):
        np.save(tmp_path / f"{number:02}.npy", some)
    sources = [open_source(str(path)) for path in sorted(tmp_path.glob("*.npy"))]
    made = job.divide(job.Plan(DIM, 1000, 5, None, "float64", None), sources, tmp_path)
    assert [part.rows for part in made] == [250] * 4
    assert_same(outofcore.sketch([str(tmp_path / "*.npy")], size=5), oracle(rows))
    some = rows[:25].copy()
    some[7] = np.inf
    np.save(tmp_path / "33.npy", some)
    with pytest.raises(sb.InputError, match=r"33\.npy: row 7 contains inf"):
        outofcore.sketch([str(tmp_path / "*.npy")], size=5)


def test_no_rows_at_all(tmp_path: Path) -> None:
    """A sketch of nothing."""
    np.save(tmp_path / "a.npy", np.empty((0, DIM)))
    found = outofcore.sketch([tmp_path / "a.npy"], size=5, out=tmp_path / "s.safetensors")
    assert (found.count, found.mass, len(found.rows)) == (0, 0.0, 0)
    assert sb.load(tmp_path / "s.safetensors").dim == DIM


def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    """Nor on which of them was faster: the parts are merged in their order."""
    np.save(tmp_path / "x.npy", matrix())
    one, two = (outofcore.sketch([tmp_path / "x.npy"], size=5, jobs=jobs) for jobs in (1, 2))
    assert_identical(one, two)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("epsilon", [None, 40.0])
def test_wide_matrices_are_read_as_streams(epsilon: float | None, tmp_path: Path) -> None:
    """More than 16·size columns: the certificate holds for the parts together, within what was allowed.

    Fewer than size rows are kept.
    """
    rows = make_rows("gaussian", 900, 60, seed=1) * 0.9 ** np.arange(60)
    np.save(tmp_path / "x.npy", rows)
    found = outofcore.sketch([tmp_path / "x.npy"], size=3, epsilon=epsilon, jobs=2)
    assert found.count == 900
    assert 0.0 < spectral_error(rows, found.rows) <= found.error_bound
    assert found.error_bound <= (found.mass / 3 if epsilon is None else epsilon)
    assert epsilon is not None or len(found.rows) < 3


def test_epsilon_keeps_as_few_rows_as_it_can(tmp_path: Path) -> None:
    """Where X'X is at hand: the smallest size whose sigma_l² is within it."""
    rows = matrix(dim=60)
    np.save(tmp_path / "x.npy", rows)
    sigma_sq = np.linalg.svd(rows, compute_uv=False) ** 2
    found = outofcore.sketch([tmp_path / "x.npy"], size=4, epsilon=1.01 * sigma_sq[12], jobs=1)
    assert found.error_bound == pytest.approx(sigma_sq[12])
    assert len(found.rows) == 12


@pytest.mark.parametrize(
    ("dim", "settings"), [(DIM, {}), (120, {"epsilon": 400.0}), (120, {"dtype": "float32"})]
)
def test_centred_rows(dim: int, settings: dict[str, Any], tmp_path: Path) -> None:
    """S'S <= Xc'Xc <= S'S + e I for the dense Xc, summed up or as a stream; also if it was interrupted."""
    rows = matrix(1200, dim) * 10.0 + np.linspace(-50.0, 50.0, dim) ** 3
    np.save(tmp_path / "a.npy", rows[:300])
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix(rows[300:900]))
    np.savetxt(tmp_path / "c.csv", rows[900:901], delimiter=",")
    np.save(tmp_path / "d.npy", rows[901:])
    np.save(tmp_path / "e.npy", rows[:0])
    names, out = [tmp_path / name for name in ("a.npy", "b.npz", "c.csv", "d.npy", "e.npy")], tmp_path / "s"
    wanted: dict[str, Any] = {"size": 6, "center": True, **settings}
    found = outofcore.sketch(names, jobs=1, **wanted)
    centred = rows - rows.mean(axis=0)
    assert found.count == 1200
    assert found.mass == pytest.approx((centred**2).sum(), rel=1e-5 if "dtype" in settings else 1e-10)
    gap = np.linalg.eigvalsh(centred.T @ centred - found.covariance())
    rounding = (1e-5 if "dtype" in settings else 1e-12) * found.mass
    assert gap[0] >= -rounding
    assert gap[-1] <= found.error_bound + rounding
    assert found.error_bound <= settings.get("epsilon", found.mass / 6)
    if settings:
        return
    with pytest.raises(KeyboardInterrupt):
        outofcore.sketch(names, out=out, jobs=1, watcher=Interrupting(700), **wanted)
    with pytest.raises(sb.InputError, match="is of a job with center True, and this one has False"):
        outofcore.sketch(names, out=out, resume=True, size=6)
    assert_identical(outofcore.sketch(names, out=out, resume=True, jobs=2, **wanted), found)


def test_the_command_centres(tmp_path: Path) -> None:
    """The printed mass is that of the centred rows. A bad row is named as without it."""
    rows = matrix() + 7.0
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",")
    payload = (tmp_path / "x.csv").read_bytes()
    centred = rows - rows.mean(axis=0)
    for name, stdin in (("x.csv", b""), ("-", payload)):
        done = command(name, "--center", "--size", "5", stdin=stdin, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"{(centred**2).sum():.6g}" in done.stdout.decode()
        assert "mass (of the centred rows)" in done.stdout.decode()
        made = sb.load(tmp_path / "sketch.safetensors", sb.Sketch)
        assert made.error_bound == pytest.approx(oracle(centred).error_bound)
    rows[3, 2] = np.nan
    np.save(tmp_path / "x.npy", rows)
    assert b"x.npy: row 3 contains nan" in command("x.npy", "--center", folder=tmp_path).stderr


def test_float32_takes_half_the_space(tmp_path: Path) -> None:
    """And keeps the bracket to its precision."""
    rows = matrix()
    np.save(tmp_path / "x.npy", rows)
    found = outofcore.sketch([tmp_path / "x.npy"], size=5, dtype="float32", jobs=1)
    assert found.rows.dtype == np.float32
    assert spectral_error(rows, found.rows) <= found.error_bound * (1 + 1e-5)


def test_large_files_are_read_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a thread that is ahead: the same chunks, from any row to any other; it ends when nobody reads."""
    rows = make_rows("gaussian", 3000, 13, seed=4)
    np.save(tmp_path / "x.npy", rows)
    monkeypatch.setattr(numpy_files, "is_worth_reading_ahead", lambda _: True)
    monkeypatch.setattr(numpy_files, "BLOCK_BYTES", 5000)
    source = open_source(str(tmp_path / "x.npy"))
    for start, stop in ((0, 3000), (1, 2), (17, 2999), (2990, 3000)):
        found = [(chunk.rows.copy(), chunk.first) for chunk in source.chunks(start, stop)]
        np.testing.assert_array_equal(np.concatenate([part for part, _ in found]), rows[start:stop])
        assert [first for _, first in found] == list(
            np.cumsum([start, *(len(part) for part, _ in found)])[:-1]
        )
    chunks = source.chunks(0, 3000)
    next(chunks)
    name = f"reading {tmp_path / 'x.npy'}"
    assert [thread.name for thread in threading.enumerate()].count(name) == 1
    chunks.close()  # type: ignore[attr-defined]
    assert name not in [thread.name for thread in threading.enumerate()]
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(100_000)
    with pytest.raises(sb.FileError, match="has become shorter while it was read"):
        list(source.chunks(0, 3000))
    (tmp_path / "x.npy").unlink()
    with pytest.raises(FileNotFoundError):
        list(source.chunks(0, 3000))


def test_what_is_worth_reading_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a quarter of the memory, where the system can."""
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 20)
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1025}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert not numpy_files.is_worth_reading_ahead(tmp_path / "sparse")
    pages["SC_PHYS_PAGES"] = 1000
    assert numpy_files.is_worth_reading_ahead(tmp_path / "sparse") is hasattr(os, "O_DIRECT")


# -- bad input ----------------------------------------------------------------------------------------------


def test_a_bad_row_is_named_with_its_file(tmp_path: Path) -> None:
    """Counted from the start of the file, in whatever part of it."""
    rows = matrix()
    np.save(tmp_path / "a.npy", rows)
    rows[777, 3] = np.nan
    np.save(tmp_path / "b.npy", rows)
    with pytest.raises(sb.InputError, match=r"b\.npy: row 777 contains nan"):
        outofcore.sketch([str(tmp_path / "?.npy")], size=5, jobs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["sparse.npz", "dense.npz", "bare.csv", "names.csv", "groups.parquet"])
def test_a_bad_row_in_every_format(name: str, tmp_path: Path) -> None:
    """NaN at row 777."""
    rows = matrix()
    rows[777, 3] = np.nan
    WRITERS[name](tmp_path / name, rows)
    with pytest.raises(sb.InputError, match=r": row 777 contains nan"):
        outofcore.sketch([tmp_path / name], size=5, jobs=1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"garbage", "a.npy is damaged or not an npy file"),
        ("a.npz", b"garbage", "a.npz is damaged or not an npz file"),
        ("a.parquet", b"garbage", "a.parquet is damaged or not a Parquet file"),
        ("a.csv", b"", "it is empty"),
        ("a.csv", b"1,2,3\n1,x,3\n", "a.csv: row 1, column 1: 'x' is not a number; .*: --drop 1$"),
        ("a.csv", b"1,2,3\n1,2\n", r"a\.csv: row 1: .*Expected 3 columns, got 2"),
        ("a.csv", b"a,b,c\n1,2,3\n" * 9, "a.csv: row 1, column a: 'a' is not a number; .*: --drop a$"),
        ("a.csv", b"1,2,3\n1,,3\n", "row 1 contains nan"),
        (
            "a.csv",
            b"id,2,3\n1,2,3\n",
            r"words and numbers \(id, 2, 3, ...\): say --header if .*, --no-header if",
        ),
        ("a.csv", b"0,1,2\n1,2,3\n", "its first line is 0, 1, 2: names of columns, or a row. Say --header"),
        ("a.csv", b"a,b,c\n1,2,3\n1,,3\n", "row 1 contains nan in column b; rows must be finite"),
        ("a.csv", b"NA,NA,NA\n1,2,3\n", "row 0 contains nan"),
        ("a.csv", b"1,2,3\r4,5,6\r", "a.csv: its first line cannot be read"),
        ("a.csv", b"\xff\xfe1,2", "not a text of numbers"),
        ("a.csv", b"# hello\n1,2,3\n", "begins with a comment"),
        ("a.csv", b",x,y\n0,1,2\n", "first column has no name"),
        ("a.txt", b"1  2 3\n", "several spaces"),
        ("a.xlsx", b"", "cannot read .xlsx"),
    ],
)
@pytest.mark.usefixtures("here")
def test_unreadable_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    """Each is named, beside one that is good."""
    np.save(tmp_path / "good.npy", np.ones((5, 3)))
    (tmp_path / name).write_bytes(content)
    with pytest.raises((sb.SketchBanditError, OSError), match=message):
        outofcore.sketch([tmp_path / "good.npy", tmp_path / name], size=2, jobs=1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((5, 4)), r"bad.npy: its rows have length 4, but .*good.npy has 3"),
        (np.ones(3), "bad.npy: not a matrix"),
        (np.ones((5, 3)) * 1j, "bad.npy: its entries must be real numbers, but the dtype is complex128"),
        (np.array([["a", "b", "c"]]), "bad.npy: its entries must be real numbers"),
        (np.array([[None, 1, 2]]), "bad.npy"),
    ],
)
def test_matrices_that_do_not_belong(bad: Any, message: str, tmp_path: Path) -> None:
    """Another width, another dtype: found before any row is read."""
    np.save(tmp_path / "good.npy", np.ones((5, 3)))
    np.save(tmp_path / "bad.npy", bad, allow_pickle=True)
    with pytest.raises(sb.SketchBanditError, match=message):
        outofcore.sketch([tmp_path / "good.npy", tmp_path / "bad.npy"], size=2)


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    """Cut short; columns in another order; several arrays; columns that are no numbers."""
    rows = matrix(100)
    np.save(tmp_path / "short.npy", rows)
    with (tmp_path / "short.npy").open("r+b") as file:
        file.truncate(5000)
    np.savez(tmp_path / "two.npz", a=rows, b=rows)
    np.save(tmp_path / "ok.npy", rows)
    np.savez_compressed(tmp_path / "damaged.npz", X=rows)
    payload = bytearray((tmp_path / "damaged.npz").read_bytes())
    payload[600:800] = b"x" * 200
    (tmp_path / "damaged.npz").write_bytes(payload)
    write_parquet(tmp_path / "a.parquet", rows)
    pd.DataFrame(rows).add_prefix("d").to_parquet(tmp_path / "b.parquet")
    pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet(tmp_path / "words.parquet")
    for names, message in (
        (["short.npy"], "short.npy is cut short: 5,000 bytes"),
        (["two.npz"], "two.npz: which array. It has a, b"),
        (["a.parquet", "b.parquet"], "b.parquet: column 0 is called 'd0', but 'c0' in"),
        (["ok.npy", "a.parquet", "b.parquet"], "b.parquet: column 0 is called 'd0', but 'c0' in"),
        (["damaged.npz"], "damaged.npz is damaged"),
        (
            ["words.parquet"],
            "words.parquet: these columns are not numbers: b. .*: --drop b, or --drop-text for",
        ),
        (["no*.npy"], "no file matches"),
        (["missing.npy"], "no such file"),
        (["a.parquet", "a.parquet"], "a.parquet again: its rows would count twice"),
        (["a.parquet", "./a.parquet"], "a.parquet again: its rows would count twice"),
        (["a.parquet", "-"], "read alone"),
        ([], "nothing to read"),
    ):
        paths = [name if name == "-" else str(tmp_path / name) for name in names]
        with pytest.raises((sb.SketchBanditError, OSError), match=message):
            outofcore.sketch(paths, size=5)
    with pytest.raises(sb.InputError, match="is a folder; name the files in it"):
        outofcore.sketch([tmp_path], size=5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1}, "size must be at least 2"),
        ({"epsilon": 0.0}, "epsilon must be finite, above 0"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"dtype": "int8"}, "dtype must be"),
        ({"out": "missing/s.safetensors"}, "there is no folder missing"),
        ({"out": "."}, "it is a folder"),
        ({"out": "/dev/null"}, "no ordinary file"),
        ({"resume": True}, "nothing to resume without out"),
        ({"resume": True, "fresh": True, "out": "s"}, "choose one"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Said before anything is read."""
    np.save(tmp_path / "x.npy", np.ones((5, 3)))
    with pytest.raises(sb.SketchBanditError, match=message):
        outofcore.sketch([tmp_path / "x.npy"], **settings)


# -- columns that are left out ------------------------------------------------------------------------------


def frame(count: int = 300) -> pd.DataFrame:
    """Numbers between an id, words, days and a column of words that are mostly missing."""
    rows = matrix(count)
    made = pd.DataFrame(rows).add_prefix("c")
    made.insert(0, "id", np.arange(count))
    made.insert(3, "user, full name", [f"user {i}" for i in range(count)])
    made["day"] = pd.date_range("2024-01-01", periods=count)
    made["note"] = ["so so" if i % 50 == 7 else None for i in range(count)]
    return made


TEXT = ("user, full name", "day", "note")
TABLE_WRITERS: dict[str, Callable[[Path, pd.DataFrame], object]] = {
    "x.csv": lambda path, table: table.to_csv(path, index=False),
    "x.tsv": lambda path, table: table.to_csv(path, index=False, sep="\t"),
    "x.parquet": lambda path, table: table.to_parquet(path, row_group_size=70),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", list(TABLE_WRITERS))
def test_columns_are_left_out(name: str, tmp_path: Path) -> None:
    """By name, or because they are words and days; what is left is the sketch of the other columns."""
    path = tmp_path / name
    TABLE_WRITERS[name](path, frame())

    class Told(outofcore.Watcher):
        columns: tuple[str, ...] = ()

        def left_out(self, columns: Sequence[str]) -> None:
            self.columns = tuple(columns)

    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"drop": ["id", *TEXT]}, ("id", *TEXT)),
        ({"drop": "id", "drop_text": True}, ("id", *TEXT)),
        ({"drop": ["note", "id"], "drop_text": True}, ("note", "id", "user, full name", "day")),
    ]
    for settings, columns in cases:
        watcher = Told()
        found = outofcore.sketch(path, size=5, jobs=1, watcher=watcher, **settings)
        assert_same(found, oracle(matrix(300)))
        assert watcher.columns == columns
    quoted = re.escape("""--drop '"user, full name",day,note'""")
    listed = "user, full name, day, note"
    with pytest.raises(
        sb.InputError, match=f"these columns are not numbers: {listed}. .*: {quoted}, or --drop-text"
    ):
        outofcore.sketch(path, size=5, drop="id")
    with pytest.raises(sb.InputError, match="there is no column 'ID' to drop: there are id, c0, c1, user"):
        outofcore.sketch(path, size=5, drop=["ID"])
    with pytest.raises(sb.InputError, match="no column is left"):
        outofcore.sketch(path, size=5, drop=["id", *(f"c{i}" for i in range(DIM))], drop_text=True)


@pytest.mark.usefixtures("here")
def test_text_in_one_file_is_left_out_of_all(tmp_path: Path) -> None:
    """Also where the others have nothing in that column; files of arrays have no names, only a width."""
    one, two = frame(), frame().assign(note=None, id=1)
    one.to_csv(tmp_path / "one.csv", index=False)
    two.to_csv(tmp_path / "two.csv", index=False)
    one.drop(columns="day").to_parquet(tmp_path / "without-days.parquet")
    np.save(tmp_path / "array.npy", matrix(300))
    found = outofcore.sketch([str(tmp_path / "*.*")], size=5, drop="id", drop_text=True)
    assert_same(found, oracle(np.tile(matrix(300), (4, 1))))
    with pytest.raises(sb.InputError, match="'id' to drop: columns have names in text and Parquet only"):
        outofcore.sketch(tmp_path / "array.npy", size=5, drop="id")


@pytest.mark.usefixtures("here")
def test_columns_without_names_go_by_number(tmp_path: Path) -> None:
    """Text that begins with a row; a column without a name has the empty one."""
    path = tmp_path / "x.csv"
    path.write_text("bob,1,2\neve,3,4\n,5,6\n", encoding="utf-8")
    wanted = oracle(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), size=2)
    with pytest.raises(sb.InputError, match="words and numbers"):
        outofcore.sketch(path, size=2, drop_text=True)
    with pytest.raises(sb.InputError, match=r"these columns are not numbers: 0\. "):
        outofcore.sketch(path, size=2, header=False)
    chosen: list[dict[str, Any]] = [{"drop": "0"}, {"drop_text": True}]
    for settings in chosen:
        assert_same(outofcore.sketch(path, size=2, header=False, jobs=1, **settings), wanted)
    path.write_text(",a,b\n0,1,2\n1,3,4\n2,5,6\n", encoding="utf-8")
    assert_same(outofcore.sketch(path, size=2, header=True, drop="", jobs=1), wanted)


@pytest.mark.usefixtures("here")
def test_a_column_of_both_is_an_error_that_names_it(tmp_path: Path) -> None:
    """It is not taken for text: who drops text columns wants to keep a number that is mistyped once."""
    path = tmp_path / "x.csv"
    path.write_text("id,a,b\nu,1,2\nv,3,4\nw,5,o6\n", encoding="utf-8")
    with pytest.raises(sb.FileError, match=r"row 2, column b: 'o6' is not a number; .*: --drop b$"):
        outofcore.sketch(path, size=2, drop_text=True, jobs=1)
    words = "u,1\n" * 200_000 + "7,2\n"  # a number far below words changes nothing
    path.write_text("id,a\n" + words, encoding="utf-8")
    assert outofcore.sketch(path, size=2, drop_text=True, jobs=1).mass == 200_000 + 4
    path.write_text("id,a\n" + "7,1\n" * 200_000 + "u,2\n", encoding="utf-8")
    with pytest.raises(sb.FileError, match="row 200000, column id: 'u' is not a number"):
        outofcore.sketch(path, size=2, jobs=1)


def test_a_job_goes_on_with_the_columns_it_began_with(tmp_path: Path) -> None:
    """Other columns are refused, however they were chosen."""
    for part in range(4):
        frame(250).iloc[:, :-2].to_csv(tmp_path / f"{part}.csv", index=False)
    names, out = [tmp_path / f"{part}.csv" for part in range(4)], tmp_path / "s.safetensors"
    chosen: dict[str, Any] = {"drop": "id", "drop_text": True}
    with pytest.raises(KeyboardInterrupt):
        outofcore.sketch(names, size=5, out=out, jobs=1, watcher=Interrupting(600), **chosen)
    message = r"is of a job with drop \['id', 'user, full name'\], and this one has \['user, full name'\]"
    with pytest.raises(sb.InputError, match=message):
        outofcore.sketch(names, size=5, out=out, resume=True, drop_text=True)
    watcher = Interrupting(10_000)
    same = ("id", "user, full name")
    found = outofcore.sketch(names, size=5, out=out, resume=True, drop=same, watcher=watcher)
    assert watcher.done > 0
    assert_same(found, oracle(np.tile(matrix(250), (4, 1))))


def test_a_frame_is_no_path() -> None:
    """Its columns are not taken for files."""
    with pytest.raises(sb.InputTypeError, match=r"paths of files, got DataFrame; .*FrequentDirections"):
        outofcore.sketch(frame())  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_a_column_that_outweighs_all_others_is_said(tmp_path: Path) -> None:
    """By its name, with the option that leaves it out; not where columns are alike."""
    table = pd.DataFrame({"a": np.arange(9.0), "b": np.ones(9) * 5, "user id": 70_000 + np.arange(9)})
    table.to_csv(tmp_path / "x.csv", index=False)
    asked = ["sketch", str(tmp_path / "x.csv"), "--out", str(tmp_path / "s.safetensors"), "--jobs", "1"]
    said = CliRunner().invoke(app, asked).output
    assert "Note: column user id has over 99% of the mass" in said
    assert "--drop 'user id'" in said
    assert "Note" not in CliRunner().invoke(app, [*asked, "--drop", "user id"]).output


def test_the_command_leaves_columns_out(tmp_path: Path) -> None:
    """Prints which; refuses words with the option to add, and takes that option as it stands."""
    frame().to_csv(tmp_path / "x.csv", index=False)
    payload = (tmp_path / "x.csv").read_bytes()
    refused = command("x.csv", "--drop", "id", folder=tmp_path)
    assert refused.returncode == 2
    assert b"Traceback" not in refused.stderr
    (advice,) = re.findall(r"(--drop .*), or --drop-text", refused.stderr.decode())
    done = command("x.csv", "--drop", "id", *shlex.split(advice), "--size", "5", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "columns left out: id, user, full name, day, note" in done.stdout.decode()
    assert_same(sb.load(tmp_path / "sketch.safetensors", sb.Sketch), oracle(matrix(300)))
    done = command("-", "--drop", "id", "--drop-text", "--size", "5", stdin=payload, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_same(sb.load(tmp_path / "sketch.safetensors", sb.Sketch), oracle(matrix(300)))


# -- interruptions ------------------------------------------------------------------------------------------


class Interrupting(outofcore.Watcher):
    """Presses Ctrl-C after some rows."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.rows: int | None = None
        self.done = 0

    def begin(self, rows: int | None, done: int) -> None:
        """Remember what was done before."""
        self.rows, self.done = rows, done

    def advance(self, rows: int) -> None:
        """Count down."""
        self.left -= rows
        if self.left <= 0:
            raise KeyboardInterrupt


def test_interrupted_and_resumed(tmp_path: Path) -> None:
    """What was finished is not read again, and the result is that of an undisturbed job, to the bit."""
    np.save(tmp_path / "x.npy", matrix())
    out = tmp_path / "s.safetensors"
    undisturbed = outofcore.sketch([tmp_path / "x.npy"], size=5)
    with pytest.raises(KeyboardInterrupt):
        outofcore.sketch([tmp_path / "x.npy"], size=5, out=out, jobs=1, watcher=Interrupting(600))
    assert not out.exists()
    finished = 250 * len(list((tmp_path / "s.safetensors.parts").glob("*.safetensors")))
    assert finished in {500, 750}, "the third is told before it is written, which the worker may just manage"
    with pytest.raises(sb.InputError, match="go on with --resume, or throw them away with --fresh"):
        outofcore.sketch([tmp_path / "x.npy"], size=5, out=out)
    with pytest.raises(sb.InputError, match="is of a job with size 5, and this one has 6: start anew"):
        outofcore.sketch([tmp_path / "x.npy"], size=6, out=out, resume=True)
    watcher = Interrupting(10_000)
    assert_identical(
        outofcore.sketch([tmp_path / "x.npy"], size=5, out=out, resume=True, watcher=watcher), undisturbed
    )
    assert watcher.done == finished
    assert watcher.left == 10_000 - (1000 - finished)
    assert_identical(sb.load(out, sb.Sketch), undisturbed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.safetensors", "x.npy"]


def test_what_has_changed_is_read_again(tmp_path: Path) -> None:
    """A mended file beside finished ones; a damaged part; --fresh begins with nothing."""
    rows = matrix()
    for name, some in (
        ("a", rows[:500]),
        ("b", np.where(np.arange(500)[:, None] == 400, np.nan, rows[500:])),
    ):
        np.save(tmp_path / f"{name}.npy", some)
    names, out = [tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path / "s.safetensors"
    with pytest.raises(sb.InputError, match=r"b\.npy: row 400 contains nan"):
        outofcore.sketch(names, size=5, out=out, jobs=1)
    parts_there = sorted((tmp_path / "s.safetensors.parts").glob("*.safetensors"))
    assert len(parts_there) == 3
    parts_there[0].write_bytes(b"damaged")
    np.save(tmp_path / "b.npy", rows[500:])
    watcher = Interrupting(10_000)
    assert_same(outofcore.sketch(names, size=5, out=out, resume=True, watcher=watcher), oracle(rows))
    assert watcher.done == 250
    with pytest.raises(KeyboardInterrupt):
        outofcore.sketch(names, size=5, out=out, jobs=1, watcher=Interrupting(600))
    assert_same(sb.load(out, sb.Sketch), oracle(rows))  # the result of the job before is still there
    watcher = Interrupting(10_000)
    outofcore.sketch(names, size=5, out=out, fresh=True, watcher=watcher)
    assert watcher.done == 0


def test_a_job_that_finished_nothing_leaves_nothing(tmp_path: Path) -> None:
    """There is nothing to go on with."""
    np.save(tmp_path / "x.npy", np.full((3, 3), np.nan))
    with pytest.raises(sb.InputError, match="row 0 contains nan"):
        outofcore.sketch(tmp_path / "x.npy", size=5, out=tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    """Is not mixed with what it was."""
    np.save(tmp_path / "x.npy", matrix())

    class Writing(outofcore.Watcher):
        def advance(self, rows: int) -> None:
            assert rows
            np.save(tmp_path / "x.npy", 1000.0 * matrix())

    with pytest.raises(sb.FileError, match=r"x\.npy has changed since the job began"):
        outofcore.sketch([tmp_path / "x.npy"], size=5, jobs=1, watcher=Writing())


def test_nothing_of_others_is_deleted(tmp_path: Path) -> None:
    """Inputs, strange files where the parts would lie, parts of another job while standard input is read."""
    np.save(tmp_path / "x.npy", matrix())
    before = (tmp_path / "x.npy").read_bytes()
    with pytest.raises(sb.InputError, match="is read: the sketch cannot be written over it"):
        outofcore.sketch([tmp_path / "x.npy"], size=5, out=tmp_path / ".." / tmp_path.name / "x.npy")
    assert (tmp_path / "x.npy").read_bytes() == before
    folder = tmp_path / "s.safetensors.parts"
    folder.mkdir()
    (folder / "thesis.safetensors").write_text("mine", encoding="utf-8")
    for fresh in (False, True):
        with pytest.raises(sb.InputError, match=r"holds thesis\.safetensors, which is not of a job"):
            outofcore.sketch([tmp_path / "x.npy"], size=5, out=tmp_path / "s.safetensors", fresh=fresh)
    assert (folder / "thesis.safetensors").read_text(encoding="utf-8") == "mine"
    with pytest.raises(KeyboardInterrupt):
        outofcore.sketch([tmp_path / "x.npy"], size=5, out=tmp_path / "t", jobs=1, watcher=Interrupting(600))
    done = command("-", "--out", "t", "--plot", "t.png", stdin=before, folder=tmp_path)
    assert done.returncode == 2
    assert b"interrupted job" in done.stderr
    assert outofcore.sketch([tmp_path / "x.npy"], size=5, out=tmp_path / "t", resume=True).count == 1000
    assert not (tmp_path / "t.parts").exists()


def test_what_a_watcher_raises_is_raised(tmp_path: Path) -> None:
    """And not taken for the death of a worker."""
    np.save(tmp_path / "x.npy", matrix())

    class Clumsy(outofcore.Watcher):
        def advance(self, rows: int) -> None:
            raise ValueError(f"{rows} are too many")

    with pytest.raises(ValueError, match="are too many"):
        outofcore.sketch([tmp_path / "x.npy"], size=5, watcher=Clumsy())


KILLED = """
import os, signal, sys
from sketchbandit import errors, outofcore
from sketchbandit.outofcore import job
job._LEAST_BYTES = job._MOST_BYTES = 8 * 12 * 250
class Killing(outofcore.Watcher):
    left = 600
    def advance(self, rows):
        self.left -= rows
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
outofcore.sketch([sys.argv[1]], size=5, out=sys.argv[2], jobs=1, watcher=Killing())
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    """Also when there was no time to say goodbye."""
    np.save(tmp_path / "x.npy", matrix())
    out = tmp_path / "s.safetensors"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "x.npy"), str(out)], check=False, timeout=60
    )
    assert killed.returncode == -9
    assert not out.exists()
    found = outofcore.sketch([tmp_path / "x.npy"], size=5, out=out, resume=True)
    assert_identical(found, outofcore.sketch([tmp_path / "x.npy"], size=5))


def set_trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    """Workers kill themselves in the middle of a part, where the condition holds."""
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(
        "import os, pathlib, signal\n"
        "from sketchbandit.outofcore.sources import MatrixSource\n"
        "original = MatrixSource.read_into\n"
        "def read_into(source, update, start, stop, tell):\n"
        "    def deadly(rows):\n"
        f"        marker = pathlib.Path({str(tmp_path / 'marker')!r} + str(start))\n"
        f"        if {condition}:\n"
        "            marker.touch()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        tell(rows)\n"
        "    original(source, update, start, stop, deadly)\n"
        "MatrixSource.read_into = read_into\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'trap'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_a_worker_killed_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is complete and identical."""
    np.save(tmp_path / "x.npy", matrix())
    undisturbed = outofcore.sketch([tmp_path / "x.npy"], size=5)
    set_trap(tmp_path, monkeypatch, "start in (250, 500) and not marker.exists()")
    assert_identical(outofcore.sketch([tmp_path / "x.npy"], size=5, jobs=2), undisturbed)
    assert (tmp_path / "marker250").exists()
    assert (tmp_path / "marker500").exists()


def test_a_part_that_kills_every_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is named after three of them."""
    np.save(tmp_path / "x.npy", matrix())
    message = r"x\.npy, rows 250 to 500: 3 workers died .*fewer jobs"
    with monkeypatch.context() as trap:
        set_trap(tmp_path, trap, "start == 250")
        with pytest.raises(sb.SketchBanditError, match=message):
            outofcore.sketch([tmp_path / "x.npy"], size=5, jobs=2, out=tmp_path / "s.safetensors")
    found = outofcore.sketch([tmp_path / "x.npy"], size=5, out=tmp_path / "s.safetensors", resume=True)
    assert_same(found, oracle(matrix()))


def test_two_jobs_for_one_file(tmp_path: Path) -> None:
    """The second is turned away."""
    np.save(tmp_path / "x.npy", matrix())
    out = tmp_path / "s.safetensors"

    class Second(outofcore.Watcher):
        complaint = ""

        def begin(self, rows: int | None, done: int) -> None:
            assert (rows, done) == (1000, 0)
            with pytest.raises(sb.InputError) as raised:
                outofcore.sketch([tmp_path / "x.npy"], size=5, out=out)
            Second.complaint = str(raised.value)

    outofcore.sketch([tmp_path / "x.npy"], size=5, out=out, watcher=Second())
    assert "is in use by another process" in Second.complaint


MEMORY = """
import json, resource, sys
from sketchbandit.outofcore import job, worker
from sketchbandit.outofcore.sources import numpy_files
numpy_files.is_worth_reading_ahead = lambda path: False
plan = job.Plan(1000, 40_000, 20, None, "float64", None)
piece = job.Piece(sys.argv[1], 0, 40_000, job.stamp_of(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
worker.handle(job.Shard(plan, (piece,), sys.argv[2]).to_json(), lambda news: None)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_memory_is_that_of_a_few_chunks(tmp_path: Path) -> None:
    """A file of 320 MB takes less than 60 MB, mapped pages included."""
    path = tmp_path / "x.npy"
    mapped = np.lib.format.open_memmap(path, "w+", np.float64, (40_000, 1000))
    mapped[:] = 1.0
    mapped.flush()
    del mapped
    line = [sys.executable, "-c", MEMORY, str(path), str(tmp_path / "part.safetensors")]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=120, env=one_thread)
    assert int(done.stdout) < 60


# -- the command --------------------------------------------------------------------------------------------


def command(*arguments: str, stdin: bytes = b"", folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line."""
    line = [sys.executable, "-m", "sketchbandit", "sketch", *arguments]
    return subprocess.run(line, check=False, capture_output=True, input=stdin, cwd=folder, timeout=120)


def test_the_command(tmp_path: Path) -> None:
    """Rows, mass, certificate, singular values with intervals that hold; a picture beside the sketch."""
    rows = matrix()
    np.save(tmp_path / "x.npy", rows)
    done = command("x.npy", "--size", "5", "--out", "s.safetensors", "--top", "2", folder=tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    sketch = sb.load(tmp_path / "s.safetensors", sb.Sketch)
    assert_same(sketch, oracle(rows))
    sigma = np.linalg.svd(rows, compute_uv=False)
    for said in (
        "1,000 of length 12",
        f"{sketch.mass:.6g}",
        f"({sketch.error_bound / sketch.mass:.3g} of the mass)",
    ):
        assert said in text
    intervals = [line.split("│")[2:4] for line in text.splitlines() if line.startswith(("│ 1 ", "│ 2 "))]
    assert len(intervals) == 2
    for value, (low, high) in zip(sigma, intervals, strict=False):
        assert float(low) <= value * (1 + 1e-5)
        assert value <= float(high) * (1 + 1e-5)
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["npy", "csv", "cut", "two"])
def test_standard_input(kind: str, tmp_path: Path) -> None:
    """Numpy's format or text, told apart by itself; an early end is an error."""
    rows = matrix()
    np.save(tmp_path / "x.npy", rows)
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",")
    payload = (tmp_path / ("x.csv" if kind == "csv" else "x.npy")).read_bytes() * (1 + (kind == "two"))
    done = command(
        "-", "--size", "5", "--top", "0", stdin=payload[: 50_000 if kind == "cut" else None], folder=tmp_path
    )
    if kind == "two":
        assert done.returncode == 2
        assert b"goes on after the 1,000 rows" in done.stderr
        return
    if kind == "cut":
        assert done.returncode == 2
        assert b"standard input ended early: 1,000 rows were announced" in done.stderr
        assert not (tmp_path / "sketch.safetensors").exists()
        return
    assert done.returncode == 0, done.stderr
    assert_same(sb.load(tmp_path / "sketch.safetensors", sb.Sketch), oracle(rows))


def complaint(*arguments: str) -> str:
    """What the command says, in this process, before it ends with status 2."""
    done = CliRunner().invoke(app, ["sketch", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    return done.output


def test_complaints_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message and status 2, no traceback."""
    np.save(tmp_path / "x.npy", np.array([[1.0, np.inf]]))
    done = command("x.npy", folder=tmp_path)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"Error: x.npy: row 0 contains inf; rows must be finite" in done.stderr
    monkeypatch.chdir(tmp_path)
    for plot, message in (
        ("sketch.safetensors", "would both be"),
        ("x.xyz", "its suffix must be"),
        ("no/x.png", "no folder no"),
        ("x.npy", "suffix"),
    ):
        assert message in complaint("x.npy", "--plot", plot)


@pytest.mark.parametrize("name", errors.__all__)
def test_what_a_worker_raised_is_raised_here(name: str) -> None:
    """Every exception of ours can be made again from its text, those made of parts too."""
    made = errors.RowError("row", 3, "contains nan") if name == "RowError" else getattr(errors, name)("what")
    again = job._error(f"{name}: {made}")
    assert str(again) == str(made)
    assert isinstance(again, sb.InputError if name == "RowError" else type(made))
