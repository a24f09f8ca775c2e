"""A database for reading, and for writing outside of the journal. Checks that its file still exists."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.connecting import make_engine, parse_url
from sketchbandit_service.storage.tables import Query, StoredRow

T = TypeVar("T")

HEAD: Query = sa.select(tables.service.c.format, tables.service.c.instance, tables.service.c.batch)
"""The columns that are the same in all formats."""
_FREE_PAGES = 1000  # pages freed at once; it takes about ten milliseconds


class StorageError(SketchBanditError):
    """A commit that did not happen."""


class Fenced(SketchBanditError):
    """Another process has written to the journal. This process must not go on."""


class Opened:
    """Connections to a database, and what can be done beside other processes."""

    def __init__(self, url: str, *, patience: float) -> None:
        self._url = parse_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._engine = make_engine(self._url, patience, writes=True)
        self._readers = make_engine(self._url, patience, writes=False)
        self.instance = ""
        self._file: tuple[int, int] | None = None
        self._is_closed = False
        self._in_use: set[sa.Connection] = set()
        """Connections other than the writer's."""

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    def close(self) -> None:
        """End all connections; those in use in other threads as soon as they are not."""
        self._is_closed = True
        self._end_idle()

    def _end_idle(self) -> None:
        self._engine.pool.dispose()
        self._readers.pool.dispose()

    def look(self) -> None:
        """Prepare for reading, beside a server that may be running. Nothing is locked or changed."""

        def head(connection: sa.Connection) -> StoredRow | None:
            is_there = sa.inspect(connection).has_table(tables.service.name)
            return connection.execute(HEAD).one_or_none() if is_there else None

        if (row := self.read(head)) is None:
            raise InputError(f"the database {self} holds no journal")
        self._recognise(row)

    def _recognise(self, row: StoredRow) -> None:
        """Check the format, and note which journal it is."""
        if row.format != tables.FORMAT:
            way_out = (
                "start `sketchbandit serve` on it once, which brings it up to date"
                if row.format < tables.FORMAT
                else "a later version has written it: use that version, or restore a backup"
            )
            raise InputError(
                f"the database {self} has format {row.format}, but this sketchbandit reads {tables.FORMAT}; "
                f"{way_out}"
            )
        self.instance = row.instance

    def read(self, query: Callable[[sa.Connection], T]) -> T:
        """The result of ``query`` on its own connection.

        It is tried once more if an old connection is dead.
        """
        is_last = False
        while True:
            try:
                with self._noted(self._readers.connect()) as connection:
                    return query(connection)
            except DBAPIError as error:
                if is_last or not error.connection_invalidated:
                    raise StorageError(f"cannot read the journal: {reason_of(error)}") from error
                is_last = True

    def write_apart(self, query: Callable[[sa.Connection], object]) -> None:
        """Write something outside of the journal, on its own connection."""
        try:
            with self._noted(self._engine.connect()) as connection, connection.begin():
                query(connection)
        except DBAPIError as error:
            raise StorageError(f"cannot write to the database: {reason_of(error)}") from error

    def give_back_space(self) -> bool:
        """Shrink the SQLite file by some free pages. Returns whether there are more.

        PostgreSQL does it by itself. Files of versions before 0.11 keep their free pages for new rows, until
        VACUUM is run.
        """
        if not self.is_sqlite:
            return False
        try:
            with closing(self._engine.raw_connection()) as connection:
                raw: Any = connection.dbapi_connection
                (before,) = raw.execute("PRAGMA freelist_count").fetchone()
                raw.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
                (after,) = raw.execute("PRAGMA freelist_count").fetchone()
        except (sqlite3.Error, DBAPIError) as error:
            raise StorageError(f"cannot give space back: {error}") from error
        return bool(0 < after < before)

    @contextmanager
    def _noted(self, connection: sa.Connection) -> Iterator[sa.Connection]:
        self._in_use.add(connection)
        try:
            with connection:
                yield connection
        finally:
            self._in_use.discard(connection)
            if self._is_closed:  # meanwhile
                self._end_idle()

    # -- the file -------------------------------------------------------------------------------------

    def is_there(self) -> bool:
        """Whether the opened file is still where it was. Always true for PostgreSQL."""
        return self.identity() == self._file

    def identity(self) -> tuple[int, int] | None:
        """The identity of the file, if there is one."""
        if not self.is_sqlite or not self._url.database:
            return None
        try:
            found = os.stat(self._url.database)  # noqa: PTH116  (at every commit: half the time of Path.stat)
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino

    def check_file(self) -> None:
        """Raise if the file is gone."""
        if not self.is_there():
            raise Fenced(
                f"the file of {self} was removed or replaced while it was in use, so nothing is written any "
                "more; put it back, and restart the server"
            )


def reason_of(error: DBAPIError | StorageError) -> str:
    """The reason in one line, without the statement."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
