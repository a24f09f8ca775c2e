"""Logs in Parquet files: our own, and exports of a service. Arms are read in pieces.

Of an export, the first place of all decisions with a reward and a propensity becomes the log.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq
from scipy import sparse

from sketchbandit.arrays import AnyArray, Rows
from sketchbandit.errors import FileError, InputError, SketchBanditError
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.log_files import COLUMNS, check_dim, refuse_bandit, refuse_missing_columns
from sketchbandit.evaluation.logged_arms import Arms, Sets

_ITS_OWN = {"bandit", "position", "arm_index", "arm_id", "propensity"}  # no other kind of log has these
_SMALL = ["bandit", "position", "arm_index", "propensity", "reward"]
_OF_ACTIONS = ["arm_id", "feature_indices", "feature_values"]
_NOT_OFFERED = "what was offered is not in the log"

_ROWS = 1024  # rows decoded at once
_GROUP = 8192  # rows in a group that we write


def open_file(path: Path) -> pq.ParquetFile:
    """Open the file without a buffer, so that only a part of a row group is ever in memory."""
    try:
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(f"{path} is not a Parquet file, or was cut off: {error}") from error


class ParquetArms(Arms):
    """The column ``arms`` of a file, for the rows that count. It is fast if read in order."""

    def __init__(self, path: Path, rows: AnyArray, dim: int | None) -> None:
        self._path, self._rows = path, rows
        self._pieces: Iterator[pa.RecordBatch] = iter(())
        self._piece: list[Rows] = []
        self._first = 0  # the row number at which the piece begins
        self.count, self.dim = len(rows), 0
        self.dim = dim or self._found_dim()
        if dim is not None:
            check_dim(path, dim, self._dense_dim() or dim)

    def read(self, start: int, stop: int) -> Sets:
        """Continue reading, or start again."""
        wanted = self._rows[start:stop]
        found: list[Rows] = []
        at = 0
        if not len(wanted):
            return found
        if wanted[0] < self._first:
            self._pieces, self._piece, self._first = iter(()), [], 0
        while at < len(wanted):
            last = int(np.searchsorted(wanted, self._first + len(self._piece)))
            found += [self._piece[row - self._first] for row in wanted[at:last]]
            at = max(at, last)
            if at < len(wanted):
                self._next()
        return _stacked(found)

    def _next(self) -> None:
        """The next piece, or the first if there is none yet."""
        self._first += len(self._piece)
        if not self._piece:
            self._pieces, self._first = self._opened(), 0
        try:
            self._piece = sets_of(next(self._pieces).column(0), self.dim)
        except StopIteration:
            raise FileError(f"{self._path} ends before row {self._first}: it was cut off") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise FileError(f"{self._path} is damaged from row {self._first} on: {error}") from error

    def _opened(self) -> Iterator[pa.RecordBatch]:
        yield from open_file(self._path).iter_batches(batch_size=_ROWS, columns=["arms"])

    def _some_arms(self) -> Iterator[pa.Array]:
        """The arms of the rows that count, some at a time, never none."""
        first = 0
        for batch in self._opened():
            low, high = np.searchsorted(self._rows, [first, first + batch.num_rows])
            arms = batch.column(0).take(pa.array(self._rows[low:high] - first)).flatten()
            if len(arms):
                yield arms
            first += batch.num_rows

    def _found_dim(self) -> int:
        """For dense arms, the length of the first; for sparse arms, the largest index plus one."""
        most = 0
        for arms in self._some_arms():
            dense = _length_of_dense(arms)
            if dense is not None:
                return dense
            flat = arms.field("indices").flatten()
            most = max(most, int(flat.to_numpy().max()) + 1 if len(flat) else 0)
        return most

    def _dense_dim(self) -> int | None:
        """The length of a dense arm among the first; None if they are sparse."""
        arms = next(self._some_arms(), None)
        return None if arms is None else _length_of_dense(arms)


def _length_of_dense(arms: pa.Array) -> int | None:
    """The length of the first dense arm; None if all are sparse."""
    if not pa.types.is_struct(arms.type):
        return len(arms[0])
    is_dense = arms.field("indices").is_null().to_numpy(zero_copy_only=False)
    return len(arms.field("values")[int(is_dense.argmax())]) if is_dense.any() else None


def sets_of(column: pa.ListArray, dim: int) -> list[Rows]:
    """The sets of arms of a column: lists of lists of numbers, or of indices and values. null is no set."""
    arms = column.flatten()
    values = arms.field("values") if pa.types.is_struct(arms.type) else arms
    flat = values.flatten().to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    lengths = values.value_lengths().to_numpy(zero_copy_only=False)
    counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum([0, *counts])
    is_sparse = pa.types.is_struct(arms.type) and arms.field("indices").null_count < len(arms)
    if not is_sparse:
        if len(lengths) and not (lengths == dim).all():
            raise InputError(f"an arm has {lengths[lengths != dim][0]} numbers, but the first has {dim}")
        rows: Rows = flat.reshape(len(lengths), dim)
    else:
        indices = _indices(arms.field("indices"), dim)
        if len(indices) != len(flat) or (len(indices) and indices.max() >= dim):
            raise InputError(f"the indices of sparse arms do not fit their values, or dimension {dim}")
        rows = sparse.csr_array((flat, indices, np.cumsum([0, *lengths])), shape=(len(lengths), dim))
    return [rows[ends[i] : ends[i + 1]] for i in range(len(counts))]


def _indices(column: pa.ListArray, dim: int) -> AnyArray:
    """The values of all arms, concatenated. An arm without indices is dense."""
    if not column.null_count:
        found: AnyArray = column.flatten().to_numpy(zero_copy_only=False)
        return found
    every = np.arange(dim)
    return np.concatenate([every if some is None else np.array(some, int) for some in column.to_pylist()])


def _stacked(sets: list[Rows]) -> Sets:
    """An array, if all sets are dense and have equally many arms; else the list."""
    alike = all(isinstance(arms, np.ndarray) and arms.shape == sets[0].shape for arms in sets)
    return np.stack(sets) if alike else sets


def read(path: Path, *, bandit: str | None, dim: int | None) -> Log:
    """Read a log of either kind."""
    file = open_file(path)
    names = file.schema_arrow.names
    if _is_export(names):
        return _read_export(file, path, bandit=bandit, dim=dim)
    refuse_bandit(path, bandit)
    missing = [name for name in COLUMNS if name not in names]
    refuse_missing_columns(path, missing, names)
    if not {"arms", "context"} & set(names):
        raise InputError(
            f"{path}: there is no column arms, nor context and actions; the file has {', '.join(names)}"
        )
    _check_kinds(path, file.schema_arrow)
    try:
        some = file.read([n for n in (*COLUMNS, "time", "context", "actions") if n in names])
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(f"{path} is damaged: {error}") from error
    columns = {n: some[n].to_numpy() for n in (*COLUMNS, "time") if n in names}
    if "arms" in names:
        return Log(arms=ParquetArms(path, np.arange(some.num_rows), dim), **columns)
    contexts = _contexts(path, some["context"].combine_chunks())
    offered = some["actions"].to_pylist()
    without = next((row for row, names in enumerate(offered) if not names), None)
    if without is not None:
        raise InputError(f"{path}: row {without} has no actions; give the names of those that were offered")
    return Log.of_actions(contexts, offered, **columns)


def _check_kinds(path: Path, schema: pa.Schema) -> None:
    """Raise if the columns of arms or contexts are not lists of numbers, before they are read."""
    wanted = {"arms": "a list of lists of numbers"} if "arms" in schema.names else {}
    wanted = wanted or {"context": "a list of numbers", "actions": "a list of names"}
    for name, what in wanted.items():
        if name not in schema.names:
            raise InputError(f"{path}: a log of contexts needs a column {name}, with {what} per row")
        kind, depth = schema.field(name).type, 0
        while hasattr(kind, "value_type"):
            kind, depth = kind.value_type, depth + 1
        is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        good = {
            "arms": (depth == 2 and is_number) or (depth == 1 and pa.types.is_struct(kind)),
            "context": depth == 1 and is_number,
            "actions": depth == 1,
        }
        if not good[name]:
            raise InputError(f"{path}: {name} must be {what} per row, got {schema.field(name).type}")


def _contexts(path: Path, column: pa.ListArray) -> AnyArray:
    """Rows of numbers of equal length."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    off = np.flatnonzero((lengths != lengths[:1]) | (lengths == 0))
    if len(off):
        raise InputError(
            f"{path}: row {off[0]} has a context of {lengths[off[0]]} numbers, but the first has {lengths[0]}"
        )
    flat: AnyArray = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return flat.reshape(len(lengths), -1) if len(lengths) else flat.reshape(0, 1)


def write(log: Log, path: Path) -> None:
    """Write our own format, from which ``read`` returns the same log."""
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(f"a log is written as Parquet, but the name is {path.name}; call it log.parquet")
    temporary = path.with_name(f".{path.name}.tmp")
    numbers = [("chosen", pa.int64()), ("reward", pa.float64()), ("probability", pa.float64())]
    by_context = log.context_dim is not None and log.actions is not None
    kind = pa.int64() if all(isinstance(name, int) for name in log.actions or ()) else pa.string()
    lists = [("context", pa.list_(pa.float64())), ("actions", pa.list_(kind))]
    schema = pa.schema(numbers + (lists if by_context else [("arms", pa.list_(pa.list_(pa.float64())))]))
    try:
        with pq.ParquetWriter(temporary, schema) as writer:
            for chunk in log.chunks():
                columns = [pa.array(column) for column in (chunk.chosen, chunk.reward, chunk.probability)]
                if by_context:
                    columns += [
                        pa.array(list(chunk.contexts), lists[0][1]),
                        pa.array(chunk.offered, lists[1][1]),
                    ]
                else:
                    if sparse.issparse(chunk.rows):
                        raise InputError(
                            "sparse arms are not written; keep them as the service's export has them"
                        )
                    inner = _list_array(
                        chunk.rows.reshape(-1).astype(np.float64), np.full(len(chunk.rows), log.dim)
                    )
                    columns.append(_list_array(inner, chunk.counts))
                writer.write_table(pa.table(columns, schema=schema), row_group_size=_GROUP)
        temporary.replace(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SketchBanditError(f"{path} cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _list_array(values: pa.Array | AnyArray, lengths: AnyArray) -> pa.ListArray:
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(ends, values if isinstance(values, pa.Array) else pa.array(values))


def _is_export(names: Sequence[str]) -> bool:
    """Whether a file with these columns is the export of a service, perhaps without some of them."""
    there = set(names)
    return {"propensity", "arm_index"} <= there or (
        len(there & _ITS_OWN) > 1 and not there & {"chosen", "probability"}
    )


def _read_export(file: pq.ParquetFile, path: Path, *, bandit: str | None, dim: int | None) -> Log:
    """Read the log of one bandit."""
    names = file.schema_arrow.names
    refuse_missing_columns(path, [name for name in _SMALL if name not in names], names)
    try:
        table = file.read(_SMALL)
        is_theirs = _of(table["bandit"], bandit, path)
        is_first = pc.equal(table["position"], 0).to_numpy()
        has_reward = pc.is_valid(table["reward"]).to_numpy()
        has_chance = pc.is_valid(table["propensity"]).to_numpy()
        counts = _counts(file, "arms"), _counts(file, "actions")
        needed = _OF_ACTIONS if counts[1].any() else ["arms"]
        refuse_missing_columns(path, [name for name in needed if name not in names], names)
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(f"{path} is damaged: {error}") from error
    has_arms = (counts[0] > 0) | (counts[1] > 0)
    reasons = {
        "places after the first": ~is_first,
        _NOT_OFFERED: ~has_arms,
        "the reward is not known yet": ~has_reward,
        "the propensity is not known": ~has_chance,
    }
    kept, left_out = is_theirs.copy(), {}
    for why, is_out in reasons.items():
        left_out[why] = int((kept & is_out).sum())
        kept &= ~is_out
    if not kept.any():
        said = "; ".join(
            f"{count:,} row{'s' * (count > 1)}: {why}" for why, count in left_out.items() if count
        )
        remedy = "; what was offered is logged by bandits created with log_arms"
        raise InputError(
            f"{path}: no decision of it can be used ({said}){remedy if left_out[_NOT_OFFERED] else ''}"
        )
    rows = np.flatnonzero(kept)
    some = table.take(pa.array(rows))
    columns = {
        "chosen": some["arm_index"].to_numpy(),
        "reward": some["reward"].to_numpy(),
        "probability": some["propensity"].to_numpy(),
    }
    log = (
        _of_actions(file, rows, columns, path, dim)
        if (counts[1][rows] > 0).all()
        else Log(arms=ParquetArms(path, rows, dim), **columns)
    )
    log.left_out.update({why: count for why, count in left_out.items() if count})
    return log


def _of(bandits: pa.ChunkedArray, wanted: str | None, path: Path) -> AnyArray:
    """The rows of the bandit."""
    names = sorted(pc.unique(bandits).to_pylist())
    if not names:
        raise InputError(f"{path}: the log is empty: it has no decisions")
    if wanted is None and len(names) > 1:
        raise InputError(f"{path} has several bandits; say which one: {', '.join(names)}")
    if wanted is not None and wanted not in names:
        raise InputError(f"{path} has no bandit {wanted!r}; it has {', '.join(names)}")
    found: AnyArray = pc.equal(bandits, wanted or names[0]).to_numpy()
    return found


def _counts(file: pq.ParquetFile, column: str) -> AnyArray:
    """The length of the list in every row, read in pieces; zeros if there is no such column."""
    if column not in file.schema_arrow.names:
        return np.zeros(file.metadata.num_rows, dtype=np.int64)
    found = [
        pc.fill_null(pc.list_value_length(batch.column(0)), 0).to_numpy(zero_copy_only=False)
        for batch in file.iter_batches(batch_size=1024, columns=[column])
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _of_actions(
    file: pq.ParquetFile, rows: AnyArray, columns: dict[str, AnyArray], path: Path, dim: int | None
) -> Log:
    """Contexts and named actions: the features are those of the context."""
    more = file.read([*_OF_ACTIONS, "actions"]).take(pa.array(rows))
    offered = more["actions"].to_pylist()
    pairs = list(zip(more["feature_indices"].to_pylist(), more["feature_values"].to_pylist(), strict=True))
    width = dim or max(len(values) if where is None else max(where, default=0) + 1 for where, values in pairs)
    for where, values in pairs:
        if where is None:
            check_dim(path, dim, len(values))
    contexts = np.zeros((len(rows), width))
    for context, (where, values) in zip(contexts, pairs, strict=True):
        context[slice(len(values)) if where is None else where] = values
    chosen = [each.index(name) for each, name in zip(offered, more["arm_id"].to_pylist(), strict=True)]
    return Log.of_actions(contexts, offered, **{**columns, "chosen": np.array(chosen)})
