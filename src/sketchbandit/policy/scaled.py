"""A policy that scales arms: the scaling is learned in a warm-up and then stays."""

import copy
import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arms import (
    Arms,
    Offer,
    is_scalar,
    is_vector,
    offered_array,
    read_arms,
    read_reward,
    read_rewards,
)
from sketchbandit.array_api import check_real_dtype, is_foreign, library_of
from sketchbandit.arrays import Arrays, Scalars, Vector, taken_from, under
from sketchbandit.errors import InputError, RowError, TooFewDigitsWarning
from sketchbandit.estimate import Estimate
from sketchbandit.policy.blank import Blank
from sketchbandit.policy.health import Complaints, Health
from sketchbandit.policy.joined import JoinedPolicy
from sketchbandit.policy.verdicts import dropped_sentence, out_of_range_sentence
from sketchbandit.scaling import RangeWatch, Reader, Scaling
from sketchbandit.scaling.sample import as_arrays, from_arrays, stacked
from sketchbandit.sketch.rows import RowBatch, complaint, read_rows, row_source

_FEW_NUMBERS = 1 << 18  # arms on a device with at most so many numbers are copied to the host at once


class Kept(NamedTuple):
    """A round of the warm-up, which is learned again with every new scaling."""

    arm: Any
    """Before scaling, shape (1, dim)."""
    reward: float
    at: int | None = None
    """The round of the clock that all models of a ``PerAction`` forget by; None if there is no such clock."""

    def later(self, rounds: int) -> "Kept":
        """The same by a clock that is so many rounds ahead."""
        return self if self.at is None else self._replace(at=max(self.at + rounds, 0))


class ScaledPolicy(JoinedPolicy):
    """Reads arms through a scaling. During the warm-up it keeps the arms and rewards it has learned from."""

    _blank: Blank | None = None  # the empty parts to start again with, during the warm-up
    _is_projected = False  # whether arms are projected before they are scored
    _watches_ranges = False  # whether features are clipped, so that they can leave their range
    _kept: list[Kept]  # during the warm-up

    def _begin(self, *parts: Any, **options: Any) -> None:
        super()._begin(*parts, **options)
        self._kept = []
        self._ranges = RangeWatch()

    def _read_by(self, reader: Reader | None, blank: Blank | None) -> None:
        """Read arms with this reader from now on."""
        self._reader, self._blank = reader, blank
        if reader is not None:
            self._dim = reader.dim
            self._plain_dim = reader.dim if self._plain_dim >= 0 else -1
            self._lens = reader.scaling.lens
            self._is_warming = reader.sample is not None
            self._watches_ranges = reader.scaling.kind == "columns"

    def _make_blank(self, reader: Reader | None) -> Blank | None:
        """The empty parts for a later restart; None if there will be none. Nothing may be learned yet."""
        if reader is None or reader.sample is None:
            return None
        return Blank(copy.deepcopy(self._precision.sketch), self._unbound_estimate())

    def _unbound_estimate(self) -> Estimate:
        """A copy that is bound to no precision and has learned nothing."""
        estimate = copy.copy(self._estimate)
        del estimate.precision, estimate.reward_scale
        estimate.reward_mass = estimate.arm_lengths = 0.0
        return copy.deepcopy(estimate)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including those of the sketch."""
        if self._reader is None or self._is_part:
            return super().nbytes
        blank = 0 if self._blank is None else self._blank.sketch.nbytes
        return super().nbytes + self._reader.nbytes + self._kept_nbytes + blank

    @property
    def _kept_nbytes(self) -> int:
        return sum(held.nbytes for one in self._kept for held in as_arrays(one.arm).values())

    def health(self) -> Health:
        """Report the error bound, how it grows, and what this means for the regret (``Health``)."""
        found, reader = super().health(), self._reader
        if reader is None:
            return found
        found = found._replace(scaling=reader.said, out_of_range=self._named(self._ranges.left))
        if reader.scaling.dropped and found.enough_digits:
            return found._replace(sentence=self._said_of_dropped(reader.scaling), enough_digits=False)
        if found.out_of_range and found.enough_digits and not found.heading_for_linear_regret:
            sentence = out_of_range_sentence(found.out_of_range, self._dim)
            return found._replace(
                sentence=f"{sentence} {found.sentence}" if found.world_changed else sentence
            )
        return found

    def _named(self, columns: tuple[int, ...]) -> tuple[Any, ...]:
        """The names of columns, or their places if they have none."""
        names = self._columns.names
        return columns if names is None else tuple(names[column] for column in columns)

    def _said_of_dropped(self, scaling: Scaling) -> str:
        return dropped_sentence(self._named(scaling.dropped))

    def _complaints_of_dropped(self) -> Complaints:
        """The warning that columns are dropped, once the scaling is fixed; it comes once."""
        reader, watch = self._reader, self._watch
        if reader is None or self._is_warming or watch.has_warned_of_digits or not reader.scaling.dropped:
            return ()
        watch.has_warned_of_digits = True
        return (TooFewDigitsWarning(self._said_of_dropped(reader.scaling)),)

    # -- reading ------------------------------------------------------------------------------------

    def _read(self, arms: Any, *, may_be_empty: bool = False) -> Arms:
        if type(arms) is not np.ndarray and (isinstance(arms, Offer) or is_foreign(arms)):
            return self._read_offered(arms, may_be_empty=may_be_empty)
        read = read_arms(self._columns.align(arms), self._dim, self._dtype, may_be_empty=may_be_empty)
        return read if self._reader is None else self._reader.scaling.read(read)

    def _read_offered(self, arms: Any, *, may_be_empty: bool) -> Arms:
        """Read arms of a catalogue or of another array library; a few of them are copied to the host."""
        if isinstance(arms, Offer):
            offered = arms.arms
        else:
            check_real_dtype(arms)
            library = library_of(arms)
            if arms.ndim != 2 or math.prod(arms.shape) <= _FEW_NUMBERS or self._is_projected:
                return self._read(library.to_host(arms), may_be_empty=may_be_empty)
            offered = offered_array(arms)
        if offered.dim != self._dim:
            raise InputError(f"arms have length {offered.dim}, but dim is {self._dim}")
        if self._is_projected:
            return self._read(offered.raw_rows(slice(None)))
        return offered if self._reader is None else self._reader.scaling.read(offered)

    def _read_rows(self, arms: Any) -> RowBatch:
        if self._reader is None:
            return read_rows(arms, self._dim, self._dtype, "arms")
        source = row_source(arms, self._dim, "arms")
        is_short = self._dtype == np.float32 and source.dtype != np.float32
        with np.errstate(over="ignore"):  # reported below
            read = source.astype(np.float32) if is_short else source  # rounded as a single arm would be
        try:
            return RowBatch(self._reader.scaling.apply(read), self._dtype, "arms")
        except RowError as error:
            raise complaint(source, error.row, self._dtype, "arm") from None

    # -- the warm-up --------------------------------------------------------------------------------

    def _learn_warming_up(self, arm: Any, reward: Any) -> Complaints:
        """Learn, and keep the arms and rewards unless the warm-up ends now."""
        source = row_source(self._columns.align(arm), self._dim, "arms")
        is_one = is_scalar(reward) or is_vector(arm)
        rewards = read_rewards([read_reward(reward)] if is_one else reward, source.shape[0])
        self._check_many(self._read_rows(source), rewards)
        complaints: Complaints = ()
        kept = 0
        for row in self._to_be_kept(source):
            complaints += self._learn_and_keep(row, float(rewards[kept]))
            kept += 1
        if kept < len(rewards):
            complaints += self._learn_any(source[kept:], rewards[kept:])
        return complaints

    def _learn_and_keep(self, row: Any, reward: float, at: int | None = None) -> Complaints:
        """Learn from one arm (1, dim) and its reward, and keep both. The caller gives the arm away."""
        complaints = self._learn_any(row, reward)
        self._kept.append(Kept(row, reward, at))
        return complaints

    @abstractmethod
    def _learn_any(self, arm: Any, reward: Any) -> Complaints:
        """Learn from one arm, or from many."""

    @abstractmethod
    def _check_many(self, batch: RowBatch, rewards: Vector) -> None:
        """Raise if an arm or a reward cannot be learned from."""

    def _check_kept(self) -> None:
        """Raise if the kept rounds could not be learned again with the present scaling."""
        if self._kept:
            arms, rewards = self._kept_rounds
            self._check_many(self._read_rows(arms), rewards)

    def _fit(self, reader: Reader) -> Scaling:
        return reader.fit([self._kept_rounds], self._ridge)

    @property
    def _kept_rounds(self) -> tuple[Any, Vector]:
        """The arms (n, dim) and the rewards that were learned from in the warm-up."""
        arms, rewards = [one.arm for one in self._kept], [one.reward for one in self._kept]
        return stacked(arms, self._dim), np.array(rewards)

    def _start_anew(self) -> None:
        """Learn the kept rounds again, with the present scaling."""
        kept, blank, reader = self._kept, self._blank, self._reader
        if blank is None:  # nothing was learned so far
            self._read_by(reader, None)
            return
        self._begin_again(copy.deepcopy(blank.sketch), copy.deepcopy(blank.estimate))
        self._read_by(reader, blank)
        self._kept = kept if self._is_warming else []
        self._reward_scale.is_held = self._is_part  # that of a ``PerAction`` has counted these rewards
        try:
            for one in sorted(kept, key=lambda one: one.at or 0):
                self._learn_again(one)
        finally:
            self._reward_scale.is_held = False
        if not self._is_warming:
            self._watch.has_warned = self._watch.has_warned_of_digits = False  # the next look warns again
            self._blank = None

    def _learn_again(self, kept: Kept) -> None:
        if kept.at is not None:
            self._forget_until(kept.at)
        self._learn_any(kept.arm, kept.reward)
        if self._clock is not None and kept.at is not None:
            self._clock.seen = kept.at + 1

    @abstractmethod
    def _forget_until(self, now: int) -> None:
        """Count the rounds of a shared clock up to now. Forget if that is due, before the next reward."""

    # -- files --------------------------------------------------------------------------------------

    def _saved_warm_up(self) -> tuple[Scalars, Arrays]:
        """The kept rounds of the warm-up, as a file holds them."""
        if not self._kept:
            return {}, {}
        arrays: Arrays = {}
        is_sparse = [sparse.issparse(one.arm) for one in self._kept]
        for kind in set(is_sparse):
            alike = [one.arm for one in self._kept if sparse.issparse(one.arm) == kind]
            arrays |= under("kept", as_arrays(stacked(alike, self._dim)))
        rewards, at = [one.reward for one in self._kept], [one.at for one in self._kept]
        own = {"kept": rewards, "kept_at": at, "kept_dim": self._dim, "kept_sparse": is_sparse}
        return own, arrays

    def _restore_warm_up(self, scalars: Scalars, arrays: Arrays) -> None:
        if "kept" not in scalars:
            return
        held, ahead = taken_from("kept", arrays), {}
        for kind in set(scalars["kept_sparse"]):
            rows = from_arrays(held, scalars["kept_dim"]) if kind else held["rows"]
            ahead[kind] = iter([rows[[i]] for i in range(rows.shape[0])])
        rewards, kinds = scalars["kept"], scalars["kept_sparse"]
        at = scalars.get("kept_at", [None] * len(rewards))  # not in files of 0.14
        self._kept = [Kept(next(ahead[kind]), *more) for kind, *more in zip(kinds, rewards, at, strict=True)]
