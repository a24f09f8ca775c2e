"""Whether rows that no start needs any more, because a snapshot covers them, are as they were written."""

import logging

import sqlalchemy as sa

from sketchbandit.service.engine import Engine
from sketchbandit.service.replaying import rows_after
from sketchbandit.service.storage.checksums import ROWS, is_whole

log = logging.getLogger(__name__)

_ROWS = 2000  # a round


class Scrubber:
    """Looks at the whole journal once after the start, some rows a round.

    What was changed is logged and counted. The policy is right all the same: it has learned what was written
    then. What is newer than the snapshots is looked at by the start itself.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = engine.journal.applied
        self._left = list(ROWS)
        self._after = 0

    async def round(self) -> None:
        """Some rows of a table."""
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
                "a record was changed in the database; the policy has learned what was written, the log is "
                "wrong: restore the database from a backup",
                extra={"table": table.name, "record": seq},
            )
        self._engine.instruments.damaged_records.inc(len(damaged))
        if self._after >= last:
            self._left.pop(0)
            self._after = 0
