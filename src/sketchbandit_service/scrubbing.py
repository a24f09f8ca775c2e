"""Checks old rows, which no start reads because a snapshot covers them, for changes in the database."""

import logging

import sqlalchemy as sa

from sketchbandit_service.engine import Engine
from sketchbandit_service.replaying import rows_after
from sketchbandit_service.storage.checksums import ROWS, is_whole

log = logging.getLogger(__name__)

_ROWS = 2000  # per round


class Scrubber:
    """Checks the whole journal once after the start, some rows per round.

    Changed rows are logged and counted. The policy is still right, because it learned what was written then.
    Rows that are newer than the snapshots are checked at the start.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = engine.journal.applied
        self._left = list(ROWS)
        self._after = 0

    async def round(self) -> None:
        """Check some rows of a table."""
        if not self._left:
            return
        table, after, last = self._left[0], self._after, self._last

        def look(connection: sa.Connection) -> tuple[int, list[int]]:
            seq, damaged = last, []
            for count, row in enumerate(rows_after(connection, table, after, last), 1):
                if not is_whole(table, row):
                    damaged.append(row.seq)
                if count == _ROWS:
                    seq = row.seq
                    break
            return seq, damaged

        self._after, damaged = await self._engine.journal.read(look)
        for seq in damaged:
            log.error(
                "a record was changed in the database; the policy is right, because it learned what was "
                "written then, but the log is wrong: restore the database from a backup",
                extra={"table": table.name, "record": seq},
            )
        self._engine.instruments.damaged_records.inc(len(damaged))
        if self._after >= last:
            self._left.pop(0)
            self._after = 0
