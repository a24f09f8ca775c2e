"""Old rows go some at a time, and looking for them costs the same however long the journal is."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sketchbandit_service import retention
from sketchbandit_service.storage import tables
from tests.service.harness import PLAIN, Service, in_loop, service


def seqs(found: Service) -> list[int]:
    """The decisions that are there."""
    query = sa.select(tables.decisions.c.seq).order_by(tables.decisions.c.seq)
    return list(found.engine.database.read(lambda connection: connection.execute(query).scalars().all()))


@in_loop
async def test_a_round_reads_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is something to drop or not; and one after another all that is old goes."""
    monkeypatch.setattr(retention, "_MOST_DROPPED", 5)
    async with service(tmp_path, rounds=False, retention_seconds=1000.0, snapshots_kept=1) as found:
        await found.create(**PLAIN)
        waits = (await found.decide()).json()["decision"]
        await found.play(20)
        bandit, keeper = found.engine.bandit("b"), retention.Retention(found.engine)
        await found.upkeep.snapshot(bandit)
        read: list[int] = []
        look = found.engine.journal.read

        async def counted(query: Any) -> Any:
            rows = await look(query)
            read.append(len(rows))
            return rows

        monkeypatch.setattr(found.engine.journal, "read", counted)
        before = seqs(found)
        await keeper.drop_old()
        assert (seqs(found), read) == (before, [5])  # nothing is old yet
        monkeypatch.setattr(found.engine.clock, "_offset", found.engine.clock._offset + 2000.0)
        for _ in range(6):
            await keeper.drop_old()
        assert max(read) <= 5
        assert seqs(found) == before[:1], "all but the one that waits"
        assert (await found.reward(waits, 1.0)).status_code == 200
