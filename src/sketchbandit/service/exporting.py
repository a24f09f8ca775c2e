"""The decision log as Parquet, for off-policy evaluation: ``sketchbandit service export``."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from pyarrow import parquet

from sketchbandit.errors import InputError
from sketchbandit.service.checking import opened
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.decision_ids import decision_id
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.tables import in_order
from sketchbandit.service.vectors import Vector, decode, decode_all

_PAGE = 200  # rows may have all their arms with them

_ARM = pa.struct([("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))])
SCHEMA = pa.schema(
    [
        ("bandit", pa.string()),
        ("decision", pa.string()),
        ("position", pa.int32()),
        ("decided_at", pa.timestamp("us", tz="UTC")),
        ("arm_index", pa.int32()),
        ("arm_id", pa.string()),
        ("arm_count", pa.int32()),
        ("feature_indices", pa.list_(pa.int32())),
        ("feature_values", pa.list_(pa.float64())),
        ("propensity", pa.float64()),
        ("propensity_kind", pa.string()),
        ("score", pa.float64()),
        ("mean", pa.float64()),
        ("width", pa.float64()),
        ("rounds", pa.int64()),
        ("reward", pa.float64()),
        ("reward_kind", pa.string()),
        ("rewarded_at", pa.timestamp("us", tz="UTC")),
        ("arms", pa.list_(_ARM)),
        ("actions", pa.list_(pa.string())),
    ]
)
"""One row an arm shown, so one a decision but for slates, whose rows have the ``decision`` in common and a
``position`` each. ``propensity`` is given those before it; ``propensity_kind`` is exact, estimate, or null
where it is not known. ``feature_indices`` is null where the arm is dense; ``reward_kind`` is given, default
or null (open); ``rounds`` is what the policy had learned from; ``arms`` or ``actions``, all that were
offered, is there if the bandit logs them; where it has actions, the features are those of the context."""


def export(state: Path, out: Path, *, database: str | None = None, bandit: str | None = None) -> int:
    """Write the log of one bandit, or of all, and give the number of rows.

    Parameters
    ----------
    state : path
        The folder of a server that is not running.
    out : path
        The Parquet file to be written.
    database : str, optional
        The URL, if it is not the SQLite file in the folder.
    bandit : str, optional
        Of this one only.

    """
    if not out.resolve().parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.resolve().parent}")
    with opened(state, database) as found:
        return found.read(lambda connection: _export(connection, out, bandit))


def _export(connection: sa.Connection, out: Path, wanted: str | None) -> int:
    rows = connection.execute(sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None))).all()
    known = {row.id: (row.name, BanditConfig.from_json(row.config)) for row in rows}
    if wanted is not None:
        known = {number: found for number, found in known.items() if found[0] == wanted}
        if not known:
            raise InputError(
                f"there is no bandit {wanted!r}; there are: {', '.join(row.name for row in rows)}"
            )
    count = 0
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with parquet.ParquetWriter(temporary, SCHEMA) as writer:
            decisions = _decisions(connection, list(known))
            while rows := list(islice(decisions, _PAGE)):
                made = [_row(row, *known[row.bandit]) for row in rows]
                writer.write_table(pa.Table.from_pylist(made, SCHEMA))
                count += len(rows)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _decisions(connection: sa.Connection, numbers: list[int]) -> Iterator[Any]:
    """The arms shown by these bandits, each with what became of it."""
    d, r, e = tables.decisions, tables.rewards, tables.estimates
    later = [r.c.reward.label("given"), r.c.kind, r.c.at.label("ended"), e.c.propensity.label("estimate")]
    query = sa.select(d, *later).join_from(d, r, r.c.decision == d.c.seq, isouter=True)
    query = query.join(e, e.c.decision == d.c.seq, isouter=True)
    return in_order(connection, query.where(d.c.bandit.in_(numbers)), d.c.seq, _PAGE)


def _row(row: Any, name: str, config: BanditConfig) -> dict[str, Any]:
    chosen, has_arms = _arm(decode(row.features, config.dim)), config.actions is None
    kind = "exact" if row.propensity else None if row.estimate is None else "estimate"
    return {
        "bandit": name,
        "decision": decision_id(row.seq - row.position, row.tag),
        "position": row.position,
        "decided_at": round(row.at * 1e6),
        "arm_index": row.arm_index,
        "arm_id": row.arm_id,
        "arm_count": row.arm_count,
        "feature_indices": chosen["indices"],
        "feature_values": chosen["values"],
        "propensity": row.propensity or row.estimate,
        "propensity_kind": kind,
        "score": row.score,
        "mean": row.mean,
        "width": row.width,
        "rounds": row.rounds,
        "reward": row.given,
        "reward_kind": row.kind,
        "rewarded_at": None if row.ended is None else round(row.ended * 1e6),
        "arms": [_arm(arm) for arm in decode_all(row.arms, config.dim)] if row.arms and has_arms else None,
        "actions": json.loads(row.arms) if row.arms and not has_arms else None,
    }


def _arm(vector: Vector) -> dict[str, Any]:
    if isinstance(vector, np.ndarray):
        return {"indices": None, "values": vector}
    return {"indices": vector.indices, "values": vector.data}
