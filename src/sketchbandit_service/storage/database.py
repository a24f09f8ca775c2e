"""The database of the journal. It has one writer, which can tell of every commit whether it happened."""

import secrets
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError

from sketchbandit.errors import InputError
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.connecting import break_connection, take_lock, try_lock
from sketchbandit_service.storage.opened import HEAD, Fenced, Opened, StorageError, reason_of
from sketchbandit_service.storage.records import Record
from sketchbandit_service.storage.writing import write

__all__ = ["Database", "Fenced", "InDoubt", "Refused", "StorageError"]

_PAUSE = 0.1  # seconds
_LEFT_OUT = 2  # batches: one in doubt may or may not exist, and a second writer must be noticed either way


class InDoubt(StorageError):
    """A commit of which it is not known yet whether it happened. ``Database.settle`` finds out."""


class Refused(StorageError):
    """A commit that the database refused because of its content. Trying again would not help."""


Lost = OperationalError | InterfaceError | InternalError | StorageError
_LOST = (OperationalError, InterfaceError, InternalError, StorageError)


class Database(Opened):
    """Writes batches, each with the next number, and reads.

    The number of the last batch is in the table ``service``, and every commit advances it. So a commit whose
    answer was lost can be looked up afterwards, and a second writer is noticed at once.

    Parameters
    ----------
    url : str
        ``sqlite:///...`` or ``postgresql://...``.
    patience : float
        Seconds to wait for a database that is gone or locked.

    """

    def __init__(self, url: str, *, patience: float = 3.0) -> None:
        super().__init__(url, patience=patience)
        self._patience = patience
        self._connection: sa.Connection | None = None
        self._batch = -1
        self._is_unsure = False
        mark = "?" if self.is_sqlite else "%s"  # plain text, because every commit executes it
        self._advancing = (
            f"UPDATE {tables.service.name} SET batch = {mark}, seq = {mark} "  # noqa: S608  (our names)
            f"WHERE id = 1 AND batch = {mark}"
        )

    # -- opening --------------------------------------------------------------------------------------

    def open(self, *, may_create: bool = True) -> None:
        """Keep other servers out, and make missing tables."""
        try:
            connection = self._connection or self._connect()  # ``try_lock`` may have made it
            with connection.begin():
                if may_create:
                    tables.create(connection)
                elif not sa.inspect(connection).has_table(tables.service.name):
                    raise InputError(f"the database {self} holds no journal")
                row = connection.execute(HEAD).one_or_none()
                if row is None:
                    new = {"id": 1, "format": tables.FORMAT, "instance": secrets.token_hex(16)}
                    connection.execute(tables.service.insert().values(batch=0, seq=0, dropped=0, **new))
                elif may_create and row.format < tables.FORMAT:
                    tables.migrate(connection)
                row = connection.execute(HEAD).one()
        except DBAPIError as error:
            self._drop()
            raise StorageError(f"cannot open the database {self}: {reason_of(error)}") from error
        self._recognise(row)
        self._batch = row.batch
        self._file = self.identity()
        if may_create:
            self._fence(connection)

    def _fence(self, connection: sa.Connection) -> None:
        """Skip a number, so that an earlier writer cannot take the next one for its own."""
        batch = self._batch + _LEFT_OUT
        try:
            with connection.begin():
                connection.execute(tables.service.update().values(batch=batch))
        except DBAPIError as error:
            self._drop()
            raise StorageError(f"cannot write to the database {self}: {reason_of(error)}") from error
        self._batch = batch

    def try_lock(self) -> bool:
        """Whether this server is from now on the only one on a PostgreSQL. Call ``open`` next."""
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            is_taken = try_lock(self._connection)
        except DBAPIError as error:
            self._drop()
            raise StorageError(f"cannot reach the database {self}: {reason_of(error)}") from error
        if self._is_closed:  # meanwhile, by another thread
            self._drop()
        return is_taken and not self._is_closed

    def close(self) -> None:
        """Release the database for others."""
        super().close()
        self._drop()

    # -- writing --------------------------------------------------------------------------------------

    def commit(self, records: Sequence[Record], seq: int) -> None:
        """Write and commit, or raise StorageError. InDoubt if it cannot be found out whether it happened.

        ``seq`` is the highest number that was given to a record so far, in this batch or not.
        """
        give_up = time.monotonic() + self._patience
        number, is_again = self._batch + 1, False
        while True:
            try:
                connection = self._connected()
                if is_again and self._batch == number:
                    return  # the apparent failure had been committed
                is_again = True
                with connection.begin():
                    self._advance(connection, number, seq)
                    self._is_unsure = True  # after an error from here on, the outcome is unknown
                    write(connection, records)
                self.check_file()  # nothing is acknowledged that is in a removed file
            except _LOST as error:
                self._drop()
                self._look_again(number, error, give_up)
            except (
                DBAPIError,
                TypeError,
                ValueError,
                OverflowError,
                struct.error,
            ) as error:  # a statement failed: it was rolled back
                self._is_unsure = False
                reason = reason_of(error) if isinstance(error, DBAPIError) else str(error)
                raise Refused(reason) from error
            except Fenced:
                raise
            except Exception as error:  # such as MemoryError: a new connection will see what happened
                self._drop()
                raise (InDoubt if self._is_unsure else StorageError)(repr(error)) from error
            else:
                self._batch = number
                self._is_unsure = False
                return

    def abandon(self) -> None:
        """Break all connections, from another thread, so that a hanging commit or query returns."""
        for connection in (self._connection, *tuple(self._in_use)):
            if connection is not None:
                with suppress(Exception):  # it may go away at this very moment
                    break_connection(connection)

    def settle(self) -> bool:
        """Whether the batch that was InDoubt was committed. StorageError while that cannot be seen."""
        number = self._batch + 1
        try:
            self._connected()
        except DBAPIError as error:
            raise StorageError(reason_of(error)) from error
        return self._batch == number

    def verify(self) -> None:
        """Check that this is still the only writer. Fenced if not, StorageError if that cannot be seen."""
        if self._is_unsure:
            return  # ``settle`` has to find out with a new connection
        try:
            connection = self._connected()
            with connection.begin():
                self._compare(connection)
        except DBAPIError as error:
            self._drop()
            raise StorageError(reason_of(error)) from error

    def _look_again(self, number: int, error: Lost, give_up: float) -> None:
        """After a failed attempt: return if it should be tried again, or if it had succeeded after all."""
        while True:
            try:
                self._connected()
                break
            except _LOST as still:
                if time.monotonic() >= give_up:
                    kind = InDoubt if self._is_unsure else StorageError
                    raise kind(reason_of(still)) from error
                time.sleep(_PAUSE)
        if self._batch != number and not (self._is_lost(error) and time.monotonic() < give_up):
            raise StorageError(reason_of(error)) from error

    def _connected(self) -> sa.Connection:
        """The writer's connection. A new one first checks whether the last batch was committed."""
        if self._connection is None:
            self.check_file()  # a new connection would create an empty file
            connection = self._connect()
            try:
                with connection.begin():
                    self._batch = self._compare(connection)
            except (DBAPIError, Fenced):
                self._drop()
                raise
            self._is_unsure = False
        assert self._connection is not None  # noqa: S101  (for the type checker)
        return self._connection

    def _compare(self, connection: sa.Connection) -> int:
        """The number of the last batch, which must be this server's."""
        found: int = connection.execute(sa.select(tables.service.c.batch)).scalar_one()
        if found != self._batch and not (found == self._batch + 1 and self._is_unsure):
            raise Fenced(
                f"the journal is at batch {found}, and this server wrote {self._batch}: another server uses "
                "the same database; stop one of them and restart the other"
            )
        return found

    def _advance(self, connection: sa.Connection, number: int, seq: int) -> None:
        if connection.exec_driver_sql(self._advancing, (number, seq, number - 1)).rowcount != 1:
            raise Fenced("another server has written to the same database; stop one of them")

    # -- connections ----------------------------------------------------------------------------------

    def _connect(self) -> sa.Connection:
        self._connection = connection = self._engine.connect()
        try:
            if not self.is_sqlite:
                self._take_lock(connection)
        except (DBAPIError, StorageError, Fenced):
            self._drop()
            raise
        return connection

    def _take_lock(self, connection: sa.Connection) -> None:
        if self._batch >= 0:  # a server that has taken over would not release the lock: do not wait
            with connection.begin():
                self._compare(connection)
        if not take_lock(connection):
            raise StorageError(f"the database {self} is in use by another server")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()  # really closed: a lock must not stay with a pooled connection
                connection.close()
            except DBAPIError:
                pass  # it was dead already

    def _is_lost(self, error: Lost) -> bool:
        """Whether the connection was lost (and may come back), as opposed to a full disk."""
        return not self.is_sqlite and (isinstance(error, StorageError) or error.connection_invalidated)
