"""Writes the decision log as Parquet, for off-policy evaluation: ``sketchbandit service export``."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from pyarrow import parquet

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service.checking import looked_at
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.decision_ids import decision_id
from sketchbandit_service.recovery import config_of
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.tables import Query, StoredRow
from sketchbandit_service.types import Vector
from sketchbandit_service.vectors import decode, decode_all

_NO_INDICES = np.empty(0, dtype=np.int32)

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
"""One row per shown arm. That is one per decision, except for slates: their rows share ``decision`` and
differ in ``position``. ``propensity`` is conditional on the arms before; ``propensity_kind`` is exact,
estimate, or null if it is unknown. ``feature_indices`` is null for a dense arm. ``reward_kind`` is given,
default or null (open). ``rounds`` is the number of rewards the policy had learned from. ``arms`` or
``actions`` has everything that was offered, if the bandit logs it. With actions, the features are those of
the context."""


_SUFFIXES = ("", ".parquet", ".pq")


def export(state: Path, out: Path, *, database: str | None = None, bandit: str | None = None) -> int:
    """Write the log of one bandit, or of all. Returns the number of rows. The server may be running.

    Parameters
    ----------
    state : path
        The state folder of the server.
    out : path
        The Parquet file to write.
    database : str, optional
        The URL of the database, if it is not the SQLite file in the folder.
    bandit : str, optional
        The name of the bandit. By default all bandits.

    """
    if out.suffix.lower() not in _SUFFIXES:
        raise InputError(f"the log is written as Parquet, but the file is {out.name}; name it log.parquet")
    if not out.resolve().parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.resolve().parent}")
    with looked_at(state, database) as found:
        return found.read(lambda connection: _export(connection, out, bandit))


def _export(connection: sa.Connection, out: Path, wanted: str | None) -> int:
    rows = connection.execute(sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None))).all()
    chosen = [row for row in rows if wanted in (None, row.name)]
    if wanted is not None and not chosen:
        raise InputError(f"there is no bandit {wanted!r}; there are: {', '.join(row.name for row in rows)}")
    known = {row.id: (row.name, config_of(row)) for row in chosen}
    count = 0
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with parquet.ParquetWriter(temporary, SCHEMA) as writer:
            for page in tables.pages(connection, _decisions(list(known))):
                try:
                    writer.write_batch(_batch(page, known))
                except (TypeError, ValueError) as error:
                    raise SketchBanditError(
                        f"the log is damaged between decisions {page[0].seq} and {page[-1].seq}: {error}; "
                        "`sketchbandit service check` says more"
                    ) from error
                count += len(page)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _decisions(numbers: list[int]) -> Query:
    """The arms shown by these bandits, each with its outcome."""
    d, r, e = tables.decisions, tables.rewards, tables.estimates
    later = [r.c.reward.label("given"), r.c.kind, r.c.at.label("ended"), e.c.propensity.label("estimate")]
    query = sa.select(d, *later).join_from(d, r, r.c.decision == d.c.seq, isouter=True)
    return query.join(e, e.c.decision == d.c.seq, isouter=True).where(d.c.bandit.in_(numbers))


def _batch(rows: Sequence[StoredRow], known: Mapping[int, tuple[str, BanditConfig]]) -> pa.RecordBatch:
    """Some rows as columns. Numbers go from the journal's bytes to Arrow without becoming Python objects."""
    made = [_row(row, known[row.bandit][0]) for row in rows]
    columns = {name: pa.array([row[name] for row in made], SCHEMA.field(name).type) for name in made[0]}
    configs = [known[row.bandit][1] for row in rows]
    shown = _vectors([decode(row.features, config.dim) for row, config in zip(rows, configs, strict=True)])
    columns["feature_indices"], columns["feature_values"] = shown.flatten()
    logged = [
        decode_all(row.arms, config.dim) if row.arms and config.actions is None else None
        for row, config in zip(rows, configs, strict=True)
    ]
    inner = _vectors([arm for arms in logged for arm in arms or ()])
    ends = np.cumsum([0, *(len(arms or ()) for arms in logged)])
    is_null = pa.array([arms is None for arms in logged])
    columns["arms"] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), inner, mask=is_null)
    columns["actions"] = pa.array(
        [
            json.loads(row.arms) if row.arms and config.actions is not None else None
            for row, config in zip(rows, configs, strict=True)
        ],
        pa.list_(pa.string()),
    )
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _vectors(vectors: Sequence[Vector]) -> pa.StructArray:
    """Arms as their indices (null if dense) and their values."""
    is_dense = [isinstance(vector, np.ndarray) for vector in vectors]
    indices = [_NO_INDICES if isinstance(vector, np.ndarray) else vector.indices for vector in vectors]
    values = [vector if isinstance(vector, np.ndarray) else vector.data for vector in vectors]
    return pa.StructArray.from_arrays(
        [_lists(indices, pa.int32(), is_dense), _lists(values, pa.float64(), None)], ["indices", "values"]
    )


def _lists(arrays: Sequence[AnyArray], kind: pa.DataType, is_null: list[bool] | None) -> pa.ListArray:
    ends = pa.array(np.cumsum([0, *map(len, arrays)]), pa.int32())
    flat = pa.array(np.concatenate(arrays) if arrays else np.empty(0), kind)
    return pa.ListArray.from_arrays(
        ends, flat, mask=None if is_null is None else pa.array(is_null, pa.bool_())
    )


def _row(row: StoredRow, name: str) -> dict[str, object]:
    """The columns that hold one number or one string."""
    return {
        "bandit": name,
        "decision": decision_id(row.seq - row.position, row.tag),
        "position": row.position,
        "decided_at": round(row.at * 1e6),
        "arm_index": row.arm_index,
        "arm_id": row.arm_id,
        "arm_count": row.arm_count,
        "propensity": row.propensity or row.estimate,
        "propensity_kind": "exact" if row.propensity else None if row.estimate is None else "estimate",
        "score": row.score,
        "mean": row.mean,
        "width": row.width,
        "rounds": row.rounds,
        "reward": row.given,
        "reward_kind": row.kind,
        "rewarded_at": None if row.ended is None else round(row.ended * 1e6),
    }
