"""Checks the journal and the snapshots: ``sketchbandit service check``."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.files import lock_folder
from sketchbandit.policy import PerAction, Policy
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.candidate import candidate_of
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.origins import begin
from sketchbandit_service.recovery import belongs, build, read_arms, read_snapshot, reason_of
from sketchbandit_service.replaying import Since, replay, since
from sketchbandit_service.scaling_bytes import decode as decode_scaling
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS, is_log_whole, unsealed
from sketchbandit_service.storage.connecting import JOURNAL, default_url
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.records import DecisionRow, ScalingRow
from sketchbandit_service.storage.snapshots import Snapshot, Snapshots, snapshots_of
from sketchbandit_service.storage.tables import StoredRow, all_rows
from sketchbandit_service.types import AnyPolicy
from sketchbandit_service.vectors import decode

_BACKUP = "restore the database from a backup"
_SAMPLE = "reader.sample."
_PROBES, _ROUNDING = 4, 1e-6


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    is_good: bool
    details: str


@contextmanager
def opened(state: Path, database: str | None) -> Iterator[Database]:
    """The database of a state folder that no server is using."""
    _check_folder(state, database)
    with lock_folder(state):
        found = Database(database or default_url(state))
        found.open(may_create=False)
        try:
            _check_mark(state, found)
            yield found
        finally:
            found.close()


@contextmanager
def looked_at(state: Path, database: str | None) -> Iterator[Database]:
    """The database of a state folder, for reading. A server may be using it."""
    _check_folder(state, database)
    found = Database(database or default_url(state))
    try:
        found.look()
        _check_mark(state, found)
        yield found
    finally:
        found.close()


def _check_folder(state: Path, database: str | None) -> None:
    if not state.is_dir():
        raise InputError(f"there is no folder {state}")
    if database is None and not (state / JOURNAL).is_file():
        raise InputError(f"{state} holds no journal; give --database if the database is elsewhere")


def _check_mark(state: Path, found: Database) -> None:
    if not belongs(state, found):
        raise InputError(f"{state} and {found} do not belong to the same server")


def check(
    state: Path, database: str | None = None, *, tell: Callable[[str], None] = lambda _: None
) -> list[Finding]:
    """Check everything. Nothing is changed.

    It runs the database's own check, and checks every row and the checksum of every snapshot. For every
    bandit it replays the journal from the oldest snapshot (or from the beginning) to each newer one. The
    result must equal the snapshot, bit by bit if this machine and version wrote it, and otherwise up to
    rounding.

    Parameters
    ----------
    state : path
        The state folder of a server that is not running.
    database : str, optional
        The URL of the database, if it is not the SQLite file in the folder.
    tell : callable
        Called with what is being checked.

    """
    with opened(state, database) as found:
        return found.read(lambda connection: list(_check(connection, state, found, tell)))


def _check(
    connection: sa.Connection, state: Path, database: Database, tell: Callable[[str], None]
) -> Iterator[Finding]:
    yield _check_modes(state)
    if database.is_sqlite:
        tell("the database file")
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalar_one()
        yield Finding("database file", said == "ok", str(said) if said == "ok" else f"{said}; {_BACKUP}")
    bandits, service = {}, connection.execute(sa.select(tables.service)).one()
    for row in connection.execute(sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None))).all():
        try:
            bandits[row.id] = build(row)
        except Exception as error:  # the same as at a start
            yield Finding(row.name, False, reason_of(error))
    tell("the rows of the journal")
    yield _check_rows(connection, {number: bandit.config for number, bandit in bandits.items()})
    snapshots = snapshots_of(state, database)
    for bandit in bandits.values():
        tell(f"bandit {bandit.name}")
        try:
            yield from _check_bandit(connection, snapshots, bandit, service)
        except Exception as error:
            yield Finding(f"{bandit.name}: journal", False, reason_of(error))


def _check_modes(state: Path) -> Finding:
    """Check that only the owner may write the state."""
    paths = [path for path in (state, *state.rglob("*")) if path.stat().st_mode & 0o022]
    details = (
        f"others may write {paths[0]}; run: chmod -R go-w {state}" if paths else "only the owner may write"
    )
    return Finding("file modes", not paths, details)


def _check_rows(connection: sa.Connection, configs: dict[int, BanditConfig]) -> Finding:
    """Check that every row is as it was written and readable, and that rewards follow their decisions."""
    counts, decisions, bad = dict.fromkeys(ROWS, 0), 0, []
    for table in ROWS:
        for values in all_rows(connection, table):
            counts[table] += 1
            decisions += table is tables.decisions and values.position == 0
            if fault := _fault(table, values, configs):
                bad.append(f"{table.name.removeprefix('sketchbandit_')} {values.seq}: {fault}")
    d, r = tables.decisions, tables.rewards
    strays = sa.select(sa.func.count()).select_from(r).join(d, d.c.seq == r.c.decision, isouter=True)
    strange = strays.where(
        r.c.bandit.in_(list(configs)), sa.or_(d.c.seq.is_(None), d.c.bandit != r.c.bandit, d.c.seq > r.c.seq)
    )
    if lost := connection.execute(strange).scalar_one():
        bad.append(f"{lost} rewards have no decision before them")
    good = f"{decisions} decisions, {counts[d]} arms shown, {counts[r]} rewards"
    return Finding("journal", not bad, f"{'; '.join(bad[:5])}; {_BACKUP}" if bad else good)


def _fault(table: sa.Table, values: StoredRow, configs: dict[int, BanditConfig]) -> str:
    """What is wrong with a row. Empty if nothing is."""
    try:
        row = unsealed(table, values)
        if isinstance(row, DecisionRow):
            if not is_log_whole(row, values.crc_logged):
                return "its logged arms do not match their checksum: they were changed in the database"
            if row.bandit in configs:
                decode(row.features, configs[row.bandit].dim)
        elif isinstance(row, ScalingRow) and row.bandit in configs:
            decode_scaling(row.scaling, configs[row.bandit].dim)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _check_bandit(
    connection: sa.Connection, snapshots: Snapshots, bandit: Bandit, service: StoredRow
) -> Iterator[Finding]:
    """Replay the journal from the start, and compare it with every snapshot on the way."""
    read_arms(connection, bandit)
    whole = []
    for seq in reversed(snapshots.places(bandit.number)):
        try:
            whole.append(read_snapshot(connection, snapshots, bandit, seq, service))
        except (SketchBanditError, OSError) as error:
            yield Finding(
                f"{bandit.name}: snapshot at record {seq}",
                False,
                f"{error}; a start sets it aside, and uses the snapshot before it",
            )
    start, origin = Since(bandit.number), "the beginning"
    if service.dropped > bandit.number or not _has_begun(connection, bandit):
        if not whole:
            yield Finding(
                bandit.name, False, f"no snapshot is intact, and the journal is too short; {_BACKUP}"
            )
            return
        first = whole.pop(0)
        bandit.restore(first)
        start, origin = since(connection, bandit, first), f"record {first.seq}"
    for snapshot in whole:
        replay(connection, {bandit.number: bandit}, {bandit.number: start}, until=snapshot.seq)
        pairs = [(bandit.policy, snapshot.policy)]
        if has_them := _has_candidates(bandit, snapshot):
            pairs += [(one.policy, snapshot.candidates[one.number]) for one in bandit.shadows]
        is_same = has_them and all(same(*pair) for pair in pairs)
        is_good = is_same or (has_them and all(_is_near(*pair) for pair in pairs))
        details = f"{'equals' if is_good else 'differs from'} the journal from {origin} on"
        if is_same:
            details += ", bit by bit"
        elif is_good:
            details += ", up to rounding; another machine or version has written it"
        else:
            details += f"; find out which of the two was changed: {_BACKUP}"
        yield Finding(f"{bandit.name}: snapshot at record {snapshot.seq}", is_good, details)
        start = Since(snapshot.seq)
    replay(connection, {bandit.number: bandit}, {bandit.number: start})
    learned = f"{bandit.policy.rounds} rewards learned, {len(bandit.open)} decisions open"
    yield Finding(f"{bandit.name}: journal", True, learned)


def _has_begun(connection: sa.Connection, bandit: Bandit) -> bool:
    """Whether the journal still has everything that the bandit learned when it was created."""
    try:
        begin(connection, bandit)
    except SketchBanditError:
        return False
    return True


def _has_candidates(bandit: Bandit, snapshot: Snapshot) -> bool:
    """Whether a snapshot has the candidates of a bandit, whatever their policies have learned."""
    told = [
        {name: value for name, value in one.items() if name != "refused"}
        | {"settings": candidate_of(one, bandit.config).settings}  # as this version writes them
        for one in snapshot.state.get("candidates", ())
    ]
    numbers = {candidate.number for candidate in bandit.shadows}
    known = [json.loads(json.dumps(one.dump())) for one in bandit.shadows]
    return told == known and numbers == snapshot.candidates.keys()


def same(one: AnyPolicy, other: AnyPolicy) -> bool:
    """Whether two policies are equal bit by bit, except for the arms of a warm-up: no journal has those."""
    scalars, arrays = _recorded(one)
    other_scalars, other_arrays = _recorded(other)
    return (
        repr(scalars) == repr(other_scalars)
        and arrays.keys() == other_arrays.keys()
        and all(
            (array.dtype, array.shape) == (other_arrays[name].dtype, other_arrays[name].shape)
            and array.tobytes() == other_arrays[name].tobytes()
            for name, array in arrays.items()
        )
    )


def _is_near(one: AnyPolicy, other: AnyPolicy) -> bool:
    """Whether two policies say the same of some arms up to rounding.

    What another machine or version has written may hold other numbers for the same policy, such as rows of a
    sketch with other signs.
    """
    models, others = _models(one), _models(other)
    probes = np.random.default_rng(0).standard_normal((_PROBES, one.dim))
    return models.keys() == others.keys() and all(
        mine.rounds == theirs.rounds
        and _are_near(mine.mean(probes), theirs.mean(probes))
        and _are_near(mine.width(probes), theirs.width(probes))
        for mine, theirs in ((models[name], others[name]) for name in models)
    )


def _are_near(numbers: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    return np.allclose(numbers, others, rtol=_ROUNDING, atol=_ROUNDING * float(np.abs(numbers).max()))


def _models(policy: AnyPolicy) -> dict[str | int, Policy]:
    """The models by action; a policy over arms is one model."""
    return dict(policy.policies) if isinstance(policy, PerAction) else {"": policy}


def _recorded(policy: AnyPolicy) -> tuple[Scalars, Arrays]:
    """The part of a policy that follows from the journal."""
    scalars, arrays = policy.dump()
    return _stripped(scalars), {name: held for name, held in arrays.items() if _SAMPLE not in name}


def _stripped(saved: Any) -> Any:
    """The state without what a snapshot of an earlier version cannot have, as far as nothing depends on it.

    These are the arms of a warm-up, when actions were added, and the default for a baseline that is on or off
    already. Without a baseline, these are also the moments of the rewards, which up to 0.14 each action had
    for itself, and the lengths of the arms.
    """
    if not isinstance(saved, dict):
        return saved
    left_out = {"sample", "added_at", "wants_baseline"}
    if not saved.get("baseline", True):
        left_out |= {"reward_scale", "arm_lengths"}
    elif not saved.get("reward_scale", {}).get("baseline", True):  # of models for actions
        left_out.add("reward_scale")
    return {name: _stripped(value) for name, value in saved.items() if name not in left_out}
