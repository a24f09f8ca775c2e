"""Data sets: where they are looked for, what is refused, and the download against a local OpenML."""

import hashlib
import http.server
import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.data import CATALOGUE, find, load
from sketchbandit.extras import how_to_install

SPAM = CATALOGUE["spam"]
HERE = os.environ.get("SKETCHBANDIT_DATA")


@pytest.fixture(autouse=True)
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no folder of data, and a server that is not there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SKETCHBANDIT_DATA", raising=False)
    monkeypatch.setenv("SKETCHBANDIT_OPENML", "http://127.0.0.1:9")
    return tmp_path


def arrays(rows: int = SPAM.rows, dim: int = SPAM.dim) -> tuple[Any, Any]:
    """Something of the shape of spam."""
    random = np.random.default_rng(0)
    return random.integers(0, 50, (rows, dim)) / 4.0, np.arange(rows) % 2


class OpenML:
    """A server that speaks OpenML's protocol for one data set."""

    def __init__(self, features: Any, labels: Any) -> None:
        lines = ["% a comment", "@RELATION spambase", ""]
        lines += [f"@ATTRIBUTE 'f {j}' REAL" for j in range(features.shape[1])]
        lines += ["@ATTRIBUTE class {0,1}", "@DATA"]
        lines += [
            ",".join([*(f"{value:g}" for value in row), f"'{label}'"])
            for row, label in zip(features, labels, strict=True)
        ]
        self.file = ("\n".join(lines) + "\n").encode()
        self.asked: list[str] = []
        self.proxy: bytes | None = None
        self.description: dict[str, Any] = {
            "id": "44",
            "default_target_attribute": "class",
            "md5_checksum": hashlib.md5(self.file, usedforsecurity=False).hexdigest(),
        }

    def answer(self, path: str, base: str) -> bytes | None:
        """The body for a path."""
        self.asked.append(path)
        if self.proxy is not None:
            return self.proxy
        if path == "/api/v1/json/data/44":
            described = {**self.description, "url": f"{base}/data/spambase.arff"}
            return json.dumps({"data_set_description": described}).encode()
        return self.file if path == "/data/spambase.arff" else None


@pytest.fixture
def openml(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenML]:
    """Listens on loopback while a test runs."""
    server = OpenML(*arrays())

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = server.answer(self.path, f"http://127.0.0.1:{listener.server_port}")
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    monkeypatch.setenv("SKETCHBANDIT_OPENML", f"http://127.0.0.1:{listener.server_port}")
    yield server
    listener.shutdown()
    listener.server_close()
    thread.join()


def test_digits_is_embedded() -> None:
    """No file and no connection needed; the copy is the one the reproduction was made with."""
    digits = load("digits")
    assert (digits.features.shape, digits.classes) == ((1797, 64), 10)
    assert digits.digest == CATALOGUE["digits"].digest
    assert find("digits").here


def test_download_is_checked_cached_and_told(openml: OpenML, no_data: Path) -> None:
    """The arrays come as they were sent; the second time nothing is asked; progress ends at the whole."""
    told: list[tuple[int, int]] = []
    features, labels = arrays()
    first = load("spam", progress=lambda come, total: told.append((come, total)))
    assert np.array_equal(first.features, features)
    assert np.array_equal(first.labels, labels)
    assert told[-1] == (len(openml.file), len(openml.file))
    assert [come for come, _ in told] == sorted(come for come, _ in told)
    cached = no_data / "cache" / "sketchbandit"
    assert [path.name for path in cached.iterdir()] == ["spam.npz"]
    asked = len(openml.asked)
    again = load("spam")
    assert again.digest == first.digest
    assert len(openml.asked) == asked
    assert find("spam").path == cached / "spam.npz"


def test_a_damaged_download_is_refused_and_not_cached(openml: OpenML, no_data: Path) -> None:
    """The md5 of the description decides."""
    openml.file = openml.file.replace(b"@DATA", b"@DATA\n% flipped")
    with pytest.raises(sb.FileError, match="came damaged"):
        load("spam")
    assert not (no_data / "cache").exists()


def test_another_data_set_under_the_id_is_refused(openml: OpenML) -> None:
    """Shape and classes must be those of the catalogue."""
    other = OpenML(*arrays(rows=30))
    openml.file, openml.description = other.file, other.description
    with pytest.raises(sb.FileError, match=r"shape \(30, 57\)"):
        load("spam")


def test_an_error_of_the_server_is_told(openml: OpenML) -> None:
    """404, and a description without what is needed."""
    with pytest.raises(FileNotFoundError, match=r"answered 404.*mfeat\.npz"):
        load("mfeat")
    openml.proxy = b"<html>please log in</html>"
    with pytest.raises(FileNotFoundError, match=r"did not answer with JSON.*spam\.npz"):
        load("spam")
    openml.proxy = None
    del openml.description["md5_checksum"]
    with pytest.raises(sb.FileError, match="lacks 'md5_checksum'"):
        load("spam")


def test_offline_and_not_cached_says_which_file_to_put_where(no_data: Path) -> None:
    """Both places are named, and how to make the file that OpenML does not have."""
    with pytest.raises(FileNotFoundError) as caught:
        load("mnist")
    message = str(caught.value)
    assert str(no_data / "cache" / "sketchbandit" / "mnist.npz") in message
    assert "SKETCHBANDIT_DATA" in message
    assert "(70000, 784)" in message
    with pytest.raises(FileNotFoundError, match="load_svmlight_file"):
        load("farm-ads")


@pytest.mark.usefixtures("openml")
def test_the_named_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SKETCHBANDIT_DATA before the cache; what it lacks is looked for further on."""
    load("spam")  # into the cache
    features, labels = arrays()
    (tmp_path / "mine").mkdir()
    np.savez_compressed(tmp_path / "mine" / "spam.npz", X=features + 1, y=labels)
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(tmp_path / "mine"))
    assert np.array_equal(load("spam").features, features + 1)
    assert load("spam").name == "spam"
    (tmp_path / "mine" / "spam.npz").unlink()
    assert np.array_equal(load("spam").features, features)
    np.savez_compressed(tmp_path / "mine" / "spam.npz", X=features[:9], y=labels[:9])
    with pytest.raises(sb.FileError, match="is not spam"):
        load("spam")


def test_unknown_names_list_the_known() -> None:
    """And say that a file will do."""
    with pytest.raises(sb.InputError, match=r"'minst'.*digits, mnist, cnae-9, mfeat, spam, farm-ads.*\.csv"):
        load("minst")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_the_users_own_files(tmp_path: Path, suffix: str) -> None:
    """The same rows and labels, whatever the format; labels may be words."""
    features, labels = arrays(rows=20, dim=3)
    words = np.where(labels == 0, "ham", "spam")
    path = tmp_path / f"mine{suffix}"
    table = pd.DataFrame(features, columns=["a", "b", "c"]).assign(kind=words)
    if suffix == ".npz":
        np.savez(path, X=features, kind=words)
    elif suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    read = load(str(path), label="kind")
    assert np.array_equal(read.features, features)
    assert np.array_equal(read.labels, labels)
    with pytest.raises(sb.InputError, match=r"no label column 'sort'; it has .*kind"):
        load(str(path), label="sort")
    with pytest.raises(sb.InputError, match=r"None is called label, y, class, target; name it.*kind"):
        load(str(path))


def test_sparse_archives(tmp_path: Path) -> None:
    """The CSR layout, as scipy's save_npz plus labels."""
    features = sparse.random_array((15, 40), density=0.2, rng=np.random.default_rng(0)).tocsr()
    arrays_ = {name: getattr(features, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "thin.npz", y=np.arange(15) % 3, **arrays_)
    read = load(str(tmp_path / "thin.npz"))
    assert np.array_equal(read.features.toarray(), features.toarray())
    assert read.classes == 3
    np.savez(tmp_path / "bad.npz", y=np.arange(15) % 3, **{**arrays_, "shape": (15, 7)})
    with pytest.raises(sb.FileError, match="no CSR matrix"):
        load(str(tmp_path / "bad.npz"))


def test_tables_as_people_write_them(tmp_path: Path) -> None:
    """Suffixes in capitals, columns with numbers for names; row numbers are not a feature."""
    features, labels = arrays(rows=6, dim=2)
    table = pd.DataFrame(features).assign(y=labels)
    table.to_csv(tmp_path / "mine.CSV", index=False)
    assert load(str(tmp_path / "mine.CSV")).features.shape == (6, 2)
    pd.DataFrame(np.column_stack([features, labels])).to_parquet(tmp_path / "mine.parquet")
    assert load(str(tmp_path / "mine.parquet"), label="2").classes == 2
    table.to_csv(tmp_path / "numbered.csv")
    with pytest.raises(sb.InputError, match="looks like row numbers"):
        load(str(tmp_path / "numbered.csv"))


def test_without_the_extras_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a file in the named folder needs none of them."""
    features, labels = arrays()
    np.savez_compressed(tmp_path / "spam.npz", X=features, y=labels)
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(tmp_path))
    for name in ("platformdirs", "sklearn", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    assert load("spam").classes == 2
    for name in ("digits", "mnist"):
        with pytest.raises(ModuleNotFoundError, match=re.escape(how_to_install("experiments"))):
            load(name)


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    """NaN with its place, words among the features, one class, no labels, no numbers, a missing file."""
    features, labels = arrays(rows=6, dim=2)
    path = tmp_path / "bad.csv"

    def write(**columns: Any) -> str:
        pd.DataFrame({"a": features[:, 0], "b": features[:, 1], "y": labels, **columns}).to_csv(
            path, index=False
        )
        return str(path)

    holed = features[:, 1].copy()
    holed[4] = np.nan
    with pytest.raises(sb.InputError, match=r"bad\.csv: row 4, column b is nan"):
        load(write(b=holed))
    with pytest.raises(sb.InputError, match="these columns are not: colour"):
        load(write(colour=["red"] * 6))
    with pytest.raises(sb.InputError, match="every row has the label 1"):
        load(write(y=1))
    with pytest.raises(sb.InputError, match="row 2 has no label in 'y'"):
        load(write(y=[0, 1, None, 0, 1, 0]))
    with pytest.raises(sb.InputError, match="6 different labels"):
        load(write(y=[1, 2, 3, 4, 5, 6]))
    path.write_text("a,b,y\n", encoding="utf-8")
    with pytest.raises(sb.InputError, match="no rows"):
        load(str(path))
    with pytest.raises(sb.InputError, match="labels of its own"):
        load("digits", label="y")
    path.write_text("", encoding="utf-8")
    with pytest.raises(sb.FileError, match="cannot be read"):
        load(str(path))
    with pytest.raises(FileNotFoundError, match="no such file"):
        load(str(tmp_path / "absent.npz"))
    np.savez(tmp_path / "no_x.npz", y=labels)
    with pytest.raises(sb.InputError, match="no array X"):
        load(str(tmp_path / "no_x.npz"))
    (tmp_path / "damaged.npz").write_bytes(b"PK not an archive")
    with pytest.raises(sb.FileError, match="damaged"):
        load(str(tmp_path / "damaged.npz"))


def test_the_layout_of_an_array_makes_no_difference(tmp_path: Path) -> None:
    """Rows by rows or columns by columns: the same numbers, and the same digest."""
    features, labels = arrays(rows=20, dim=3)
    for name, array in (("c", features), ("f", np.asfortranarray(features))):
        np.savez(tmp_path / f"{name}.npz", X=array, y=labels)
    one, other = (load(str(tmp_path / f"{name}.npz")) for name in "cf")
    assert other.features.flags.c_contiguous
    assert one.digest == other.digest


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """An archive with objects in it is refused, not executed."""
    trap = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "trap.npz", X=trap, y=trap)
    with pytest.raises(sb.FileError, match="plain arrays"):
        load(str(tmp_path / "trap.npz"))


@pytest.mark.skipif(HERE is None, reason="SKETCHBANDIT_DATA names no folder")
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "digits"])
def test_real_copies_are_the_catalogues(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest in the catalogue is that of the copy that the reproduction was made with."""
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(HERE))
    assert load(name).digest == CATALOGUE[name].digest
