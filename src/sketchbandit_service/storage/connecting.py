"""Where the journal is, how SQLite and PostgreSQL are connected, and the lock that keeps others out."""

import os
import socket
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from sketchbandit.errors import InputError

JOURNAL = "journal.sqlite"
"""The file of the default database, in the state folder."""
_LOCK = 7_352_001  # the number of our advisory lock
_TRY_LOCK = sa.text("SELECT pg_try_advisory_lock(:number)")
_LOCK_PATIENCE = 2.0  # seconds
_LONGEST = 30_000  # milliseconds for one statement that waits for nobody
_OF_A_WRITER = {
    "tcp_keepalives_idle": 1,
    "tcp_keepalives_interval": 1,
    "tcp_keepalives_count": 2,
    "tcp_user_timeout": 3000,
    "idle_in_transaction_session_timeout": 3000,
}
"""With these, PostgreSQL ends the session of a vanished machine, and frees its lock, within 3 s."""


def default_url(state: Path) -> str:
    """SQLite inside the state folder."""
    return f"sqlite:///{(state / JOURNAL).resolve()}"


def parse_url(text: str) -> sa.URL:
    """The URL of a database that can hold the journal."""
    try:
        url = sa.make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise InputError(f"the journal can be in SQLite or PostgreSQL, not in {url.get_backend_name()}")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise InputError(
            "the database must be a URL such as postgresql://user@host/name or sqlite:////folder/file"
        ) from error
    return url


def make_engine(url: sa.URL, patience: float, *, writes: bool) -> sa.Engine:
    """Connections to a database. ``patience``: seconds for which SQLite waits for another writer."""
    if url.get_backend_name() != "sqlite":
        return _postgresql(url, patience, writes=writes)
    engine = sa.create_engine(url, connect_args={"timeout": patience, "check_same_thread": False})

    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # we send BEGIN ourselves
        if not writes:  # a damaged text is found by its row's checksum, and must not end the whole query
            connection.text_factory = _decoded
        if connection.execute("PRAGMA page_count").fetchone() == (0,):  # elsewhere it would only write
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _postgresql(url: sa.URL, patience: float, *, writes: bool) -> sa.Engine:
    """Connections that notice when the other end is gone, and whose statements wait for a limited time.

    Readers see one state of the database, however long they read.
    """
    milliseconds = max(1, round(1000 * patience))
    settings = {"lock_timeout": milliseconds, "statement_timeout": max(10 * milliseconds, _LONGEST)}
    if writes:
        settings |= _OF_A_WRITER
    arguments = {
        "connect_timeout": max(2, round(patience)),  # libpq takes no less
        "tcp_user_timeout": milliseconds,
        "keepalives_idle": 1,
        "keepalives_interval": 1,
        "keepalives_count": max(1, round(patience)),
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }
    engine = sa.create_engine(url, connect_args=arguments, pool_size=2)
    if writes:
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def break_connection(connection: sa.Connection) -> None:
    """End what a connection is doing, whatever it is."""
    raw: Any = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        raw.interrupt()
        return
    handle = os.dup(raw.pgconn.socket)
    with socket.socket(fileno=handle) as other_end:
        other_end.shutdown(socket.SHUT_RDWR)


def take_lock(connection: sa.Connection) -> bool:
    """Whether this is the only server on a PostgreSQL. It may notice late that the last one was killed."""
    until = time.monotonic() + _LOCK_PATIENCE
    while not (is_taken := try_lock(connection)) and time.monotonic() < until:
        time.sleep(0.02)
    return is_taken


def try_lock(connection: sa.Connection) -> bool:
    """Take the lock of a PostgreSQL, if nobody has it."""
    is_taken = connection.execute(_TRY_LOCK, {"number": _LOCK}).scalar_one()
    connection.commit()
    return bool(is_taken)
