"""The service killed again and again under load: ``python -m benchmarks.service_kills --kills 50``.

Clients keep a ledger of what they were told while servers are killed with ``kill -9``, every third runs out
of memory, candidates are added and promoted, and, on PostgreSQL with a standby, another takes over. In the
end the ledgers are compared with the journal, and the policies with some that were never killed. Any
difference ends it with an error.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import psycopg
from tests.service import postgres
from tests.service.killing import kill_again_and_again
from tests.service.processes import zygote
from threadpoolctl import threadpool_limits

WHERE = ("sqlite", "postgresql", "standby")
_TAKEOVER = 5.0  # seconds


def main() -> None:
    """Print a line for each kind of service."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--only", nargs="+", choices=WHERE, default=list(WHERE))
    parser.add_argument("--no-faults", action="store_true", help="no server runs out of memory")
    options = parser.parse_args()
    with threadpool_limits(1), postgres.server() as found:  # as the servers have: equal bits
        for where in options.only:
            if where == "sqlite":
                _report(where, None, options)
            elif isinstance(found, str):
                print(f"{where}: left out, {found}")
            else:
                _empty(found.url)
                _report(where, found.url, options)


def _report(where: str, database: str | None, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="sketchbandit-") as folder, zygote(Path(folder)) as forge:
        tale = kill_again_and_again(
            forge,
            Path(folder),
            kills=options.kills,
            database=database,
            with_standby=where == "standby",
            faults_too=not options.no_faults,
        )
    away = f"{np.median(tale.away):.2f} s in the median, {max(tale.away):.2f} s at most"
    print(
        f"{where}: {options.kills} kills, {tale.acknowledged:,} decisions acknowledged with their rewards, "
        f"{tale.promoted} candidates promoted, 0 lost, 0 doubled; {tale.quarantined:,} answers 503 "
        f"quarantined; {'the standby took over after' if where == 'standby' else 'away for'} {away}",
        flush=True,
    )
    assert where != "standby" or max(tale.away) < _TAKEOVER, "the standby took over late"


def _empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


if __name__ == "__main__":
    main()
