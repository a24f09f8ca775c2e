"""Results on disk: Parquet parts that only ever appear whole, and a manifest that says what they are of."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from sketchbandit._version import __version__
from sketchbandit.errors import FileError, InputError
from sketchbandit.files import lock_folder, replace_file
from sketchbandit.simulation.pool import describe_machine
from sketchbandit.simulation.runs import Row

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "kind", "environment", "contender")),
        *((name, pa.int64()) for name in ("seed", "rounds", "round")),
        *((name, pa.float64()) for name in ("ridge", "number", "reward", "regret", "seconds")),
        *((name, pa.int64()) for name in ("bytes", "peak_bytes", "sketch_size", "sketch_rows", "rank")),
        *((name, pa.float64()) for name in ("certificate", "budget", "delta", "error", "bound")),
        ("warned", pa.bool_()),
        *((name, pa.int64()) for name in ("dry_at_first", "dry_at_most")),
        ("log_loss", pa.float64()),
        *((name, pa.string()) for name in ("calibration", "version", "machine")),
    ]
)
MANIFEST = "manifest.json"
ANSWER = "figures/answer"
"""The figure that a report opens with, without its ending."""
_PARTS = "runs"
_MOST_PARTS = 64


class Store:
    """The folder of one reproduction. A run is in it whole or not at all, whatever kills the process.

    Finished runs are written as a Parquet file of their own, synced and renamed; when there are many, they
    are gathered into one. A lock keeps a second process out; it goes with the process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts = folder / _PARTS
        self._lock: io.TextIOWrapper | None = None
        self._next = 0
        self._count = 0
        self.finished: set[str] = set()

    # -- opening --------------------------------------------------------------------------------------

    def open(self, settings: dict[str, Any], *, resume: bool = False, fresh: bool = False) -> Self:
        """Ready to take results of these settings; refuses a folder that holds others.

        An empty or new folder is taken as it is. One with results needs ``resume``, which goes on with them
        if version and settings are the same, or ``fresh``, which deletes them.
        """
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.folder)
        except OSError as error:
            raise InputError(f"cannot write to {self.folder}: {error.strerror}") from error
        try:
            self._begin(settings, resume=resume, fresh=fresh)
        except BaseException:
            self.close()
            raise
        return self

    def lock(self) -> Self:
        """Keep others out without changing anything; the folder must be there."""
        if not self._parts.is_dir():
            raise FileError(f"{self.folder} holds no results")
        self._lock = lock_folder(self.folder)
        return self

    def close(self) -> None:
        """Let another process in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- results --------------------------------------------------------------------------------------

    def add(self, results: Sequence[list[Row]]) -> None:
        """Append the rows of finished runs; they are on the disk when this returns."""
        here = {"machine": describe_machine()}  # unless a row says that it comes from elsewhere
        rows = [{**here, **row} for result in results for row in result]
        if not rows:
            return
        self._write(pa.Table.from_pylist(rows, schema=SCHEMA))
        self.finished |= {row["run"] for row in rows}
        if self._count > _MOST_PARTS:
            self._gather()

    def frame(self) -> "pd.DataFrame":
        """Every row, in an order that does not depend on which run finished first."""
        if not self._part_files():
            return pd.DataFrame(SCHEMA.empty_table().to_pandas())
        table: pd.DataFrame = self._read().to_pandas()
        keys = ["environment", "contender", "kind", "seed", "ridge", "number", "run", "round"]
        # A process that died while gathering leaves runs in two files; the rows are the same.
        table = table.drop_duplicates(subset=["run", "ridge", "number", "round"])
        return table.sort_values(keys, kind="stable").reset_index(drop=True)

    def manifest(self) -> dict[str, Any] | None:
        """What the results are of; None in a folder without any."""
        path = self.folder / MANIFEST
        if not path.is_file():
            if self._part_files():
                raise FileError(
                    f"{self.folder} has result files but no {MANIFEST} that says of what; use another folder"
                )
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileError(f"{path} is damaged: {error}") from error
        return found

    # -- inside ---------------------------------------------------------------------------------------

    def _begin(self, settings: dict[str, Any], *, resume: bool, fresh: bool) -> None:
        if fresh:
            self._clear()
        before = self.manifest()
        mine = [name for name in ("report.html", "report.md") if (self.folder / name).exists()]
        if before is None and mine:
            raise InputError(f"{self.folder} has a {mine[0]} that is not ours; choose another folder (--out)")
        if before is not None:
            self._check(before, settings, resume=resume)
            ids = [*dict.fromkeys([*before["ids"], *settings["ids"]])]
            settings = {**settings, "ids": ids, "data": {**before["data"], **settings["data"]}}
        manifest = {"version": __version__, "machine": describe_machine(), **settings}
        replace_file(self.folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
        for leftover in self._parts.glob(".*.tmp"):
            leftover.unlink()
        names = self._part_files()
        self._next = max((int(path.stem.split("-")[1]) for path in names), default=-1) + 1
        self._count = len(names)
        if names:
            self.finished = set(self._read()["run"].to_pylist())

    def _check(self, before: dict[str, Any], settings: dict[str, Any], *, resume: bool) -> None:
        if not resume:
            raise InputError(
                f"{self.folder} holds results already: resume them (--resume), delete them (--fresh), or "
                "choose another folder (--out)"
            )
        wanted = json.loads(json.dumps({"version": __version__, **settings}))
        for name, digest in wanted["data"].items():
            if before["data"].get(name, digest) != digest:
                raise InputError(f"{self.folder} holds results on another copy of {name}; use another folder")
        for name in sorted((before.keys() | wanted.keys()) - {"ids", "machine", "data"}):
            if before.get(name) != wanted.get(name):
                name, there, here = _difference(name, before.get(name), wanted.get(name))  # noqa: PLW2901
                raise InputError(
                    f"{self.folder} holds results with {name} = {there}, and now it is {here}: "
                    "delete them (--fresh) or choose another folder (--out)"
                )

    def _part_files(self) -> list[Path]:
        return sorted(self._parts.glob("part-*.parquet"))

    def _read(self) -> "pa.Table":
        tables = []
        for path in self._part_files():
            try:
                tables.append(parquet.read_table(path, schema=SCHEMA))
            except (pa.ArrowInvalid, OSError) as error:
                raise FileError(
                    f"{path} is damaged ({error}); delete it and --resume does its runs again"
                ) from None
        return pa.concat_tables(tables)

    def _write(self, table: "pa.Table") -> None:
        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        replace_file(self._parts / f"part-{self._next:08d}.parquet", buffer.getvalue())
        self._next += 1
        self._count += 1

    def _gather(self) -> None:
        """One file for many. The new one is there before the old ones go."""
        old = self._part_files()
        self._write(self._read())
        for path in old:
            path.unlink()
        self._count = 1

    def _clear(self) -> None:
        """Delete what we wrote, and nothing else: it may be the user's own folder."""
        before = self.manifest()
        if before is None:
            return
        names = [*before["ids"], before.get("experiment", {}).get("id", "")]
        for name in filter(None, names):
            for made in (f"figures/{name}.png", f"figures/{name}.svg", f"tables/{name}.csv"):
                (self.folder / made).unlink(missing_ok=True)
        for ending in ("png", "svg"):
            (self.folder / f"{ANSWER}.{ending}").unlink(missing_ok=True)
        for path in (*self._part_files(), *(self.folder / name for name in ("report.html", "report.md"))):
            path.unlink(missing_ok=True)
        (self.folder / MANIFEST).unlink()


def _difference(name: str, there: Any, here: Any) -> tuple[str, str, str]:
    """What differs first, and how: by name where both have one, else in full, shortened."""
    if isinstance(there, dict) and isinstance(here, dict):
        if (names := (str(there.get("name")), str(here.get("name"))))[0] != names[1]:
            return name, *names
        key = next(key for key in sorted(there.keys() | here.keys()) if there.get(key) != here.get(key))
        return _difference(f"{name}.{key}", there.get(key), here.get(key))
    return name, _short(there), _short(here)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 80 else text[:77] + "..."
