"""What several tests of the service share."""

from collections.abc import Iterator

import pytest

from tests.service import postgres
from tests.service.postgres import Postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """One PostgreSQL server for all tests of a process."""
    with postgres.server() as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> str:
    """An empty database on it."""
    import psycopg  # noqa: PLC0415  (only where there is a server)

    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres_server.url
