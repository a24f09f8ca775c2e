"""The database of the journal: one writer, whose every commit is known to have happened or not."""

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.connecting import break_connection, make_engine, parse_url, take_lock
from sketchbandit.service.storage.records import Record
from sketchbandit.service.storage.writing import write

T = TypeVar("T")

_PAUSE = 0.1  # seconds
_FREE_PAGES = 1000  # given back at once: some ten milliseconds
_HEAD = sa.select(tables.service.c.format, tables.service.c.instance, tables.service.c.batch)


class StorageError(SketchBanditError):
    """A commit that did not happen."""


class InDoubt(StorageError):
    """A commit of which nobody knows yet whether it happened; ``Database.settle`` will tell."""


class Refused(StorageError):
    """A commit that the database refused because of what is in it; trying again would not help."""


class Fenced(SketchBanditError):
    """Another process has written to the journal: this one must not go on."""


Lost = OperationalError | InterfaceError | InternalError | StorageError
_LOST = (OperationalError, InterfaceError, InternalError, StorageError)


class Database:
    """Writes batches, each under the next number, and reads.

    The number of the last batch stands in the table ``service`` and is advanced by every commit. So a commit
    whose answer was lost can be looked up afterwards, and a second writer is noticed at once.

    Parameters
    ----------
    url : str
        ``sqlite:///...`` or ``postgresql://...``.
    patience : float
        Seconds to wait for a database that is gone or locked.

    """

    def __init__(self, url: str, *, patience: float = 3.0) -> None:
        self._url = parse_url(url)
        self._patience = patience
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._engine = make_engine(self._url, patience, writes=True)
        self._readers = make_engine(self._url, patience, writes=False)
        self._connection: sa.Connection | None = None
        self._batch = -1
        self._is_unsure = False
        self.instance = ""
        self._file: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    # -- opening --------------------------------------------------------------------------------------

    def open(self, *, may_create: bool = True) -> None:
        """Keep other servers out, and make the tables where they are missing."""
        try:
            connection = self._connect()
            with connection.begin():
                if may_create:
                    tables.create(connection)
                elif not sa.inspect(connection).has_table(tables.service.name):
                    raise InputError(f"the database {self} holds no journal")
                row = connection.execute(_HEAD).one_or_none()
                if row is None:
                    new = {"id": 1, "format": tables.FORMAT, "instance": secrets.token_hex(16)}
                    connection.execute(tables.service.insert().values(batch=0, seq=0, dropped=0, **new))
                elif may_create and row.format < tables.FORMAT:
                    tables.migrate(connection)
                row = connection.execute(_HEAD).one()
        except DBAPIError as error:
            raise StorageError(f"cannot open the database {self}: {_reason(error)}") from error
        self._recognise(row)
        self._batch = row.batch
        self._file = self._identity()

    def look(self) -> None:
        """Be ready to read, beside a server that may be running; nothing is locked or changed."""

        def head(connection: sa.Connection) -> Any:
            is_there = sa.inspect(connection).has_table(tables.service.name)
            return connection.execute(_HEAD).one_or_none() if is_there else None

        if (row := self.read(head)) is None:
            raise InputError(f"the database {self} holds no journal")
        self._recognise(row)

    def _recognise(self, row: Any) -> None:
        """Whose journal it is, if its format can be read."""
        if row.format != tables.FORMAT:
            way_out = (
                "start `sketchbandit serve` on it once, which brings it up to date"
                if row.format < tables.FORMAT
                else "a later version has written it: use that one, or restore a backup"
            )
            raise InputError(
                f"the database {self} has format {row.format}, and this sketchbandit reads {tables.FORMAT}; "
                f"{way_out}"
            )
        self.instance = row.instance

    def close(self) -> None:
        """Let others in."""
        self._drop()
        self._engine.dispose()
        self._readers.dispose()

    def is_there(self) -> bool:
        """Whether the file that was opened is still where it was; on PostgreSQL yes."""
        return self._identity() == self._file

    def _identity(self) -> tuple[int, int] | None:
        """Which file it is, if it is one."""
        if not self.is_sqlite or not self._url.database:
            return None
        try:
            found = os.stat(self._url.database)  # noqa: PTH116  (at every commit: half the time of Path.stat)
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        if not self.is_there():
            raise Fenced(
                f"the file of {self} was removed or replaced while it was in use; nothing is written any "
                "more: put it back, and restart the server"
            )

    # -- reading --------------------------------------------------------------------------------------

    def read(self, query: Callable[[sa.Connection], T]) -> T:
        """What ``query`` makes of a connection of its own; tried again once if an old connection is dead."""
        is_last = False
        while True:
            try:
                with self._readers.connect() as connection:
                    return query(connection)
            except DBAPIError as error:
                if is_last or not error.connection_invalidated:
                    raise StorageError(f"cannot read the journal: {_reason(error)}") from error
                is_last = True

    # -- writing --------------------------------------------------------------------------------------

    def write_apart(self, query: Callable[[sa.Connection], object]) -> None:
        """Write something that is no part of the journal, on a connection of its own."""
        try:
            with self._engine.begin() as connection:
                query(connection)
        except DBAPIError as error:
            raise StorageError(f"cannot write to the database: {_reason(error)}") from error

    def give_back_space(self) -> bool:
        """Make the file of SQLite shorter by some free pages; whether there are more.

        PostgreSQL does it by itself. Files of versions before 0.11 keep their free pages for new rows, until
        somebody says VACUUM.
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

    def commit(self, records: Sequence[Record], seq: int) -> None:
        """Write and commit, or raise StorageError; InDoubt if it cannot be found out which.

        ``seq`` is the highest number that was given to a record so far, in this batch or not.
        """
        give_up = time.monotonic() + self._patience
        number = self._batch + 1
        while True:
            try:
                connection = self._connected()
                self._check_file()
                if self._batch == number:
                    return  # what looked like a failure had been committed
                with connection.begin():
                    self._advance(connection, number, seq)
                    self._is_unsure = True  # from here on an error leaves it open
                    write(connection, records)
                self._check_file()  # nobody is told of what is in a file that is gone
            except _LOST as error:
                self._drop()
                self._look_again(number, error, give_up)
            except (DBAPIError, ValueError, OverflowError) as error:  # of a statement: it was rolled back
                self._is_unsure = False
                reason = _reason(error) if isinstance(error, DBAPIError) else str(error)
                raise Refused(reason) from error
            else:
                self._batch = number
                self._is_unsure = False
                return

    def abandon(self) -> None:
        """Break the writer's connection, from another thread, so that a commit that hangs comes back."""
        if (connection := self._connection) is not None:
            with suppress(Exception):  # it may be gone this very moment
                break_connection(connection)

    def settle(self) -> bool:
        """Whether the batch that was InDoubt had been committed; StorageError while that cannot be seen."""
        number = self._batch + 1
        try:
            self._connected()
        except DBAPIError as error:
            raise StorageError(_reason(error)) from error
        return self._batch == number

    def _look_again(self, number: int, error: Lost, give_up: float) -> None:
        """After a failed attempt: return if it should be tried again, or if it had succeeded after all."""
        while True:
            try:
                self._connected()
                break
            except _LOST as still:
                if time.monotonic() >= give_up:
                    kind = InDoubt if self._is_unsure else StorageError
                    raise kind(_reason(still)) from error
                time.sleep(_PAUSE)
        if self._batch != number and not (self._is_lost(error) and time.monotonic() < give_up):
            raise StorageError(_reason(error)) from error

    def _connected(self) -> sa.Connection:
        """The writer's connection; a new one has looked whether the last batch was committed."""
        if self._connection is None:
            connection = self._connect()
            try:
                with connection.begin():
                    found = connection.execute(sa.select(tables.service.c.batch)).scalar_one()
            except DBAPIError:
                self._drop()
                raise
            if found == self._batch + 1 and self._is_unsure:
                self._batch = found
            elif found != self._batch:
                raise Fenced(
                    f"the journal is at batch {found}, and this server wrote {self._batch}: another server "
                    "uses the same database; stop one of them and restart the other"
                )
            self._is_unsure = False
        assert self._connection is not None  # noqa: S101  (for the type checker)
        return self._connection

    def _advance(self, connection: sa.Connection, number: int, seq: int) -> None:
        table = tables.service
        where = (table.c.id == 1) & (table.c.batch == number - 1)
        if connection.execute(table.update().where(where).values(batch=number, seq=seq)).rowcount != 1:
            raise Fenced("another server has written to the same database; stop one of them")

    # -- connections ----------------------------------------------------------------------------------

    def _connect(self) -> sa.Connection:
        self._connection = self._engine.connect()
        if not self.is_sqlite and not take_lock(self._connection):
            self._drop()
            raise StorageError(f"the database {self} is in use by another server")
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()  # closed for good: a lock must not stay with a pooled connection
                connection.close()
            except DBAPIError:
                pass  # it was dead already

    def _is_lost(self, error: Lost) -> bool:
        """Whether the connection went away (and may come back), as opposed to a disk that is full."""
        return not self.is_sqlite and (isinstance(error, StorageError) or error.connection_invalidated)


def _reason(error: DBAPIError | StorageError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
