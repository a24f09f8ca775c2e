"""The export of a service as a log: the first place of all decisions with a reward and a propensity."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import FileError, InputError
from sketchbandit.evaluation import checking
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.sources import Arms

_ITS_OWN = {"bandit", "position", "arm_index", "arm_id", "propensity"}  # no other kind of log has these
_SMALL = ["bandit", "position", "arm_index", "propensity", "reward"]
_OF_ACTIONS = ["arm_id", "feature_indices", "feature_values"]
_NOT_OFFERED = "what was offered is not in the log"


def is_export(names: Sequence[str]) -> bool:
    """Whether a file with these columns is the export of a service, perhaps without some of them."""
    there = set(names)
    return {"propensity", "arm_index"} <= there or (
        len(there & _ITS_OWN) > 1 and not there & {"chosen", "probability"}
    )


def read_export(
    file: Any,
    path: Path,
    arms_of: Callable[[AnyArray, int | None], Arms],
    *,
    bandit: str | None,
    dim: int | None,
) -> Log:
    """Read the log of one bandit."""
    names = file.schema_arrow.names
    checking.refuse_missing_columns(path, [name for name in _SMALL if name not in names], names)
    try:
        table = file.read(_SMALL)
        is_theirs = _of(table["bandit"], bandit, path)
        is_first = pc.equal(table["position"], 0).to_numpy()
        has_reward = pc.is_valid(table["reward"]).to_numpy()
        has_chance = pc.is_valid(table["propensity"]).to_numpy()
        counts = _counts(file, "arms"), _counts(file, "actions")
        needed = _OF_ACTIONS if counts[1].any() else ["arms"]
        checking.refuse_missing_columns(path, [name for name in needed if name not in names], names)
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
        else Log(arms=arms_of(rows, dim), **columns)
    )
    log.left_out.update({why: count for why, count in left_out.items() if count})
    return log


def _of(bandits: Any, wanted: str | None, path: Path) -> AnyArray:
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


def _counts(file: Any, column: str) -> AnyArray:
    """The length of the list in every row, read in pieces; zeros if there is no such column."""
    if column not in file.schema_arrow.names:
        return np.zeros(file.metadata.num_rows, dtype=np.int64)
    found = [
        pc.fill_null(pc.list_value_length(batch.column(0)), 0).to_numpy(zero_copy_only=False)
        for batch in file.iter_batches(batch_size=1024, columns=[column])
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _of_actions(file: Any, rows: AnyArray, columns: dict[str, Any], path: Path, dim: int | None) -> Log:
    """Contexts and named actions: the features are those of the context."""
    more = file.read([*_OF_ACTIONS, "actions"]).take(pa.array(rows))
    offered = more["actions"].to_pylist()
    pairs = list(zip(more["feature_indices"].to_pylist(), more["feature_values"].to_pylist(), strict=True))
    width = dim or max(len(values) if where is None else max(where, default=0) + 1 for where, values in pairs)
    for where, values in pairs:
        if where is None:
            checking.check_dim(path, dim, len(values))
    contexts = np.zeros((len(rows), width))
    for context, (where, values) in zip(contexts, pairs, strict=True):
        context[slice(len(values)) if where is None else where] = values
    chosen = [each.index(name) for each, name in zip(offered, more["arm_id"].to_pylist(), strict=True)]
    columns = {**columns, "chosen": chosen}
    return Log.of_actions(contexts, offered, **columns)
