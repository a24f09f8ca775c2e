"""What several tests of the service share."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from tests.service import postgres
from tests.service.postgres import Postgres
from tests.service.processes import Zygote, zygote
from tests.service.sockets import Serving, serving


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


@pytest.fixture(scope="session")
def forge_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """One process that has imported everything, for all tests of a process."""
    with zygote(tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def forge(forge_of_all: Zygote) -> Iterator[Zygote]:
    """Starts servers; those that a failed test leaves behind are killed."""
    yield forge_of_all
    forge_of_all.kill_all()


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def make_loop(request: pytest.FixtureRequest) -> Any:
    """Both event loops."""
    return request.param


@pytest.fixture
def server(make_loop: Any) -> Iterator[Serving]:
    """A server with small limits."""
    with serving(make_loop) as made:
        yield made
