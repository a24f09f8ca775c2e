"""The service without HTTP: bandits that decide, learn, expire and are kept."""

import asyncio
import io
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from sketchbandit.errors import InputError
from sketchbandit.locking import lock_folder
from sketchbandit.service.bandit import Bandit, decision_id, parse_decision_id
from sketchbandit.service.clock import Clock
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.journal import Journal
from sketchbandit.service.metrics import Instruments
from sketchbandit.service.problems import (
    Busy,
    Conflict,
    Expired,
    Invalid,
    NotFound,
    Problem,
    TooLarge,
    Unavailable,
)
from sketchbandit.service.recovery import recover, snapshot_folder
from sketchbandit.service.settings import Settings
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.database import Database, StorageError, default_url
from sketchbandit.service.storage.tables import DEFAULT, GIVEN, DecisionRow, RewardRow
from sketchbandit.service.storage.writing import Statements
from sketchbandit.service.vectors import ArmSet, Vector, encode, nbytes
from sketchbandit.service.warmup import warm_up

log = logging.getLogger(__name__)

LEARNED, KNOWN = "learned", "known"


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to a decision."""

    decision: str
    index: int
    arm: str | None
    score: float
    mean: float
    propensity: float
    top: list[dict[str, Any]] | None


class Engine:
    """All bandits of one state folder. Every method runs on one event loop."""

    def __init__(self, settings: Settings, *, seed: int | None = None) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.instruments = Instruments()
        self.instruments.watch(lambda: list(self.bandits.values()))
        self.bandits: dict[str, Bandit] = {}
        self.clock = Clock()
        self._random = np.random.default_rng(seed)
        self._closing: dict[int, asyncio.Future[None]] = {}
        self._creating: dict[str, asyncio.Future[None]] = {}
        self._deciding: dict[tuple[int, str], asyncio.Future[Decided]] = {}
        self._dropped = 0
        self.is_ready = False
        self.body_bytes = 0
        """Of requests that are being read."""

    # -- life -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the state folder, read everything back, begin."""
        state = self.settings.state
        state.mkdir(parents=True, exist_ok=True)
        log.info("starting; the first time on a machine loops are compiled, which takes ten seconds")
        warm_up()
        self._lock = lock_folder(state)
        try:
            self.database = Database(
                self.settings.database or default_url(state), patience=self.settings.storage_patience
            )
            self.database.open()
            try:
                self._recognise()
                self._recover()
            except BaseException:
                self.database.close()
                raise
        except BaseException:
            self._lock.close()
            raise
        self.journal.start()
        self.is_ready = True

    async def drain(self) -> None:
        """Take nothing more, and commit what waits."""
        self.is_ready = False
        await self.journal.close()

    def release(self) -> None:
        """Let go of the database and the folder."""
        self.database.close()
        self._lock.close()

    def _recognise(self) -> None:
        """Snapshots and journal must belong together."""
        mark = self.settings.state / "instance"
        if not mark.exists():
            mark.write_text(self.database.instance, encoding="utf-8")
        elif (found := mark.read_text(encoding="utf-8").strip()) != self.database.instance:
            raise InputError(
                f"{self.settings.state} holds snapshots of another journal ({found[:8]}…) than "
                f"{self.database} ({self.database.instance[:8]}…); give the database that belongs to it, or "
                "an empty folder"
            )

    def _recover(self) -> None:
        found = recover(self.database, self.settings.state, keep=self.settings.snapshots_kept)
        self.bandits = {bandit.name: bandit for bandit in found.bandits}
        self._dropped = found.dropped
        self.clock = Clock(found.last_time)
        self.journal = Journal(
            self.database,
            last_seq=found.last_seq,
            most_waiting=self.limits.waiting,
            instruments=self.instruments,
        )
        self.deleted = found.deleted
        log.info("state read", extra={"bandits": len(found.bandits), "records": found.last_seq})

    # -- bandits --------------------------------------------------------------------------------------

    def bandit(self, name: str) -> Bandit:
        """By name."""
        try:
            return self.bandits[name]
        except KeyError:
            raise NotFound(f"there is no bandit {name!r}; create it with PUT /v1/bandits/NAME") from None

    async def create(self, name: str, config: BanditConfig) -> tuple[Bandit, bool]:
        """A bandit of that name and those settings, and whether it is new."""
        config.check(self.limits)
        while (other := self._creating.get(name)) is not None:
            await asyncio.wait([other])  # what came of it is seen below
        if name in self.bandits:
            if self.bandits[name].config != config:
                raise Conflict(
                    f"bandit {name!r} exists with other settings; DELETE it first, or choose another name"
                )
            return self.bandits[name], False
        if len(self.bandits) + len(self._creating) >= self.limits.bandits:
            raise Conflict(f"this server keeps up to {self.limits.bandits} bandits; DELETE one first")
        bandit = Bandit(self.journal.next_seq(), name, config, created=self.clock.now())
        row = {"id": bandit.number, "name": name, "config": config.to_json(), "created": bandit.created}

        def apply() -> None:
            self.bandits[name] = bandit
            log.info("bandit created", extra={"bandit": name, "policy": config.policy, "dim": config.dim})

        future = self.journal.append(Statements((tables.bandits.insert().values(row),)), apply)
        self._creating[name] = future
        future.add_done_callback(lambda _: self._creating.pop(name, None))
        await future
        return bandit, True

    async def delete(self, name: str) -> None:
        """Forget a bandit, its decisions and its snapshots."""
        bandit = self.bandit(name)
        arms, bandits = tables.arms, tables.bandits
        statements = Statements(
            (
                bandits.update().where(bandits.c.id == bandit.number).values(name=None),
                arms.delete().where(arms.c.bandit == bandit.number),
            )
        )

        def apply() -> None:
            if self.bandits.get(name) is bandit:
                del self.bandits[name]
                self.deleted.append(bandit.number)
                log.info("bandit deleted", extra={"bandit": name})

        await self.journal.append(statements, apply)
        snapshot_folder(self.settings.state, bandit.number, 1).delete()

    # -- stored arms ----------------------------------------------------------------------------------

    async def put_arms(self, name: str, arms: Mapping[str, Vector]) -> int:
        """Store arms under their ids, replacing those known; how many there are now."""
        bandit = self.bandit(name)
        count = len(bandit.arms) + sum(arm not in bandit.arms for arm in arms)
        if count > self.limits.arms:
            raise TooLarge(f"{count} arms; a bandit stores up to {self.limits.arms}")
        added = sum(nbytes(vector) for vector in arms.values())
        if bandit.arms.nbytes + added > self.limits.bandit_bytes:
            raise TooLarge(f"the arms of {name!r} would take more than {self.limits.bandit_bytes} bytes")
        place = self.journal.next_seq() * self.limits.arms  # in the order in which they came
        rows = tuple(
            {"bandit": bandit.number, "arm": arm, "place": place + at, "features": encode(vector)}
            for at, (arm, vector) in enumerate(arms.items())
        )

        def apply() -> int:
            bandit.arms.put(arms)
            return len(bandit.arms)

        stored: int = await self.journal.append(Statements((), rows), apply)
        return stored

    async def remove_arm(self, name: str, arm: str) -> None:
        """Forget a stored arm; decisions for it stay open."""
        bandit = self.bandit(name)
        bandit.arms.row(arm)
        table = tables.arms
        where = (table.c.bandit == bandit.number) & (table.c.arm == arm)
        await self.journal.append(
            Statements((table.delete().where(where),)),
            lambda: bandit.arms.remove(arm) if arm in bandit.arms else None,
        )

    # -- decisions ------------------------------------------------------------------------------------

    async def decide(
        self,
        bandit: Bandit,
        arms: ArmSet,
        *,
        top: int | None = None,
        key: str | None = None,
        request: str = "",
    ) -> Decided:
        """Choose an arm. With a ``key`` that an open decision has, that decision again.

        ``request`` is a digest of what was asked, so that a key used for something else is noticed.
        """
        if key is not None and (known := await self._known(bandit, key, request)) is not None:
            return known
        self.admit(bandit)
        choice = bandit.choose(arms, top or 1, self._random)
        chosen = choice.ranking[0]
        features = arms.row(chosen.index)
        row = DecisionRow(
            seq=self.journal.next_seq(),
            bandit=bandit.number,
            tag=secrets.token_hex(6),
            at=self.clock.now(),
            arm_index=chosen.index,
            arm_id=chosen.arm,
            arm_count=len(arms),
            features=encode(features),
            score=choice.score,
            mean=choice.mean,
            propensity=choice.propensity,
            rounds=bandit.policy.rounds,
            key=key,
            request=None if key is None else request,
            top=json.dumps([asdict(ranked) for ranked in choice.ranking]) if top else None,
            arms=_npy(arms) if bandit.config.log_arms else None,
        )
        return await self._record(bandit, row, features)

    def admit(self, bandit: Bandit, count: int = 1) -> None:
        """Refuse decisions that could not be kept."""
        bandit.admit(count)
        self.journal.admit(count)
        if sum(other.open_bytes for other in self.bandits.values()) >= self.limits.open_bytes:
            raise Busy(
                f"the features of open decisions take {self.limits.open_bytes} bytes; send rewards, or wait "
                "until old decisions expire"
            )

    async def _record(self, bandit: Bandit, row: DecisionRow, features: Vector) -> Decided:
        def apply() -> Decided:
            if self.bandits.get(bandit.name) is not bandit:
                raise NotFound(f"bandit {bandit.name!r} was deleted meanwhile")
            bandit.opened(row, features)
            return _decided(row)

        future = self.journal.append(row, apply)
        bandit.on_the_way += 1
        future.add_done_callback(lambda _: bandit.arrived())
        if row.key is not None:
            place = (bandit.number, row.key)
            self._deciding[place] = future
            future.add_done_callback(lambda _: self._deciding.pop(place, None))
        decided: Decided = await future
        return decided

    async def _known(self, bandit: Bandit, key: str, request: str) -> Decided | None:
        """The decision that was made for this key before, if it is open or on its way."""
        if (future := self._deciding.get((bandit.number, key))) is not None:
            try:
                await asyncio.shield(future)
            except Problem:
                return None
        if key not in bandit.keys:
            return None
        seq, digest = bandit.keys[key]
        if digest != request:
            raise Conflict(f"the idempotency key {key!r} was used with another request; use a new one")
        table = tables.decisions
        row = await self._read(lambda c: c.execute(sa.select(table).where(table.c.seq == seq)).one())
        return _decided(DecisionRow(*row))

    # -- rewards --------------------------------------------------------------------------------------

    async def reward(self, bandit: Bandit, decision: str, value: float) -> str:
        """Learn from a reward once: LEARNED, or KNOWN if the same was there before."""
        if not abs(value) <= self.limits.magnitude:
            raise Invalid(
                f"the reward is {value}; rewards are numbers up to {self.limits.magnitude:g} in size"
            )
        parsed = parse_decision_id(decision)
        if parsed is None:
            raise NotFound(f"{decision!r} is not the id of a decision")
        seq, tag = parsed
        while (other := self._closing.get(seq)) is not None:  # the same decision is being answered right now
            try:
                await asyncio.shield(other)
            except Problem:
                continue  # that failed, so this one may try
        opened = bandit.open.get(seq)
        if opened is None:
            return await self._answer_again(bandit, seq, tag, value)
        if opened.tag != tag:
            raise NotFound(f"there is no decision {decision!r}")
        now = self.clock.now()
        if bandit.deadline(opened.at) <= now:
            raise Expired(_too_late(decision, bandit))
        await self.close(bandit, RewardRow(self.journal.next_seq(), seq, bandit.number, GIVEN, value, now))
        return LEARNED

    async def close(self, bandit: Bandit, row: RewardRow) -> None:
        """Record the end of an open decision, and learn from it."""
        future = self.journal.append(row, lambda: self._closed(bandit, row))
        self._closing[row.decision] = future
        future.add_done_callback(lambda _: self._closing.pop(row.decision, None))
        await future

    def _closed(self, bandit: Bandit, row: RewardRow) -> None:
        if self.bandits.get(bandit.name) is not bandit:
            raise NotFound(f"bandit {bandit.name!r} was deleted meanwhile")
        bandit.closed(row)

    def is_closing(self, seq: int) -> bool:
        """Whether an answer to the decision is being written."""
        return seq in self._closing

    async def _answer_again(self, bandit: Bandit, seq: int, tag: str, value: float) -> str:
        """A reward for a decision that is not open."""
        name = decision_id(seq, tag)
        d, r = tables.decisions, tables.rewards
        query = sa.select(r.c.kind, r.c.reward).join_from(d, r, r.c.decision == d.c.seq)
        query = query.where(d.c.seq == seq, d.c.bandit == bandit.number, d.c.tag == tag)
        found = await self._read(lambda connection: connection.execute(query).one_or_none())
        if found is None:
            if bandit.number < seq < self._dropped:
                raise Expired(f"decision {name} is so old that it was dropped from the journal")
            raise NotFound(f"bandit {bandit.name!r} has no decision {name!r}")
        if found.kind == DEFAULT:
            raise Expired(_too_late(name, bandit))
        if found.reward != value:
            raise Conflict(f"decision {name} has the reward {found.reward!r} already, not {value!r}")
        return KNOWN

    async def _read(self, query: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, self.database.read, query)
        except StorageError as error:
            raise Unavailable(str(error)) from error

    def dropped_below(self, seq: int) -> None:
        """Old decisions were dropped from the journal."""
        self._dropped = seq


def _decided(row: DecisionRow) -> Decided:
    return Decided(
        decision=decision_id(row.seq, row.tag),
        index=row.arm_index,
        arm=row.arm_id,
        score=row.score,
        mean=row.mean,
        propensity=row.propensity,
        top=None if row.top is None else json.loads(row.top),
    )


def _too_late(decision: str, bandit: Bandit) -> str:
    return (
        f"decision {decision} has expired: no reward came within {bandit.config.reward_timeout:g} seconds, "
        f"and the default ({bandit.config.default_reward}) was taken"
    )


def _npy(arms: ArmSet) -> bytes:
    """All arms of a decision, as a file of numpy's format."""
    dense = arms.matrix if isinstance(arms.matrix, np.ndarray) else arms.matrix.toarray()
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(dense), allow_pickle=False)
    return buffer.getvalue()
