"""How features are read: learned in a warm-up from what is offered, then fixed."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchbandit.arms import Arms
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.kernels.view import PLAIN
from sketchbandit.policy.exploring import Exploring
from sketchbandit.scaling import Reader, Scaling


class Scalable(Exploring):
    """What reads features through a scaling, where it has one.

    Of a scaling that has to be learned the first arms offered tell means and deviations. It is fitted anew
    whenever as many arms again were seen, and each time what was learned so far is learned anew with it.
    After 200 arms it is fixed, and never changes again.
    """

    _reader: Reader | None = None
    _lens = PLAIN
    _is_warming = False
    _scales_itself = True  # else whoever has it does so, when ``scaling_due`` is not None

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rewards were learned from."""

    @property
    def scaling(self) -> Scaling | None:
        """How features are read; None: as they are.

        Another may be set during the warm-up, or before the first reward.
        """
        return None if self._reader is None else self._reader.shown

    @scaling.setter
    def scaling(self, scaling: Scaling) -> None:
        with self._lock:
            if not isinstance(scaling, Scaling):
                raise InputTypeError(f"scaling is {scaling!r:.60}; give a Scaling, such as that of a policy")
            scaling.check_final()
            self.read_by(scaling)

    @property
    def is_warming_up(self) -> bool:
        """Whether the scaling is still being learned."""
        return self._is_warming

    @property
    def scaling_due(self) -> tuple[Scaling, bool] | None:
        """The scaling that the arms seen so far suggest, when it is time for it, and whether it is the last.

        None otherwise. For whoever does not leave that to the policy (``read_by``).
        """
        reader = self._reader
        return (reader.fit(), reader.is_last) if reader is not None and reader.is_due else None

    @property
    def arms_seen(self) -> int:
        """Arms that the scaling is being learned from; 0 when it is fixed."""
        return 0 if self._reader is None else self._reader.seen

    def read_by(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Take the scaling that was due: what was learned so far is learned anew with it.

        ``seen``: ``arms_seen`` when it was due, if that is not now.
        """
        if self._is_part:
            raise InputError("this model is one of several; set the scaling of all: models.scaling = ...")
        if self._reader is None:
            raise InputError('there is no scaling to be replaced; make the policy with scaling="auto"')
        self._reader.check(scaling)
        if not self._is_warming and self.rounds:
            if scaling == self._reader.scaling:
                return
            raise InputError(
                f"{self.rounds} rewards were learned from with the scaling there is; make another policy "
                "with this one"
            )
        self._check_readable(self._reader, scaling)
        self._reader.read_by(scaling, is_last=is_last, seen=seen)
        self._start_anew()

    def _check_readable(self, reader: Reader, scaling: Scaling) -> None:
        """Refuse a scaling by which what was learned so far could not be learned."""
        before, reader.scaling = reader.scaling, scaling
        try:
            self._check_kept()
        except InputError as error:
            raise InputError(f"what was learned so far cannot be read by that scaling: {error}") from error
        finally:
            reader.scaling = before

    @abstractmethod
    def _check_kept(self) -> None:
        """Refuse what could not be learned again, with the scaling as it is now."""

    @abstractmethod
    def _start_anew(self) -> None:
        """Learn again, with the scaling as it is now, what was learned so far."""

    # -- the warm-up --------------------------------------------------------------------------------

    def _saw(self, *offered: Arms) -> None:
        """Arms that were offered, if it warms up; the choice among them is made."""
        if self._is_warming and self._reader is not None:
            for arms in offered:
                self._reader.saw(arms.raw)
            self._scale_if_due()

    def _to_be_kept(self, rows: Any) -> Iterator[Any]:
        """Those that are learned from before the warm-up is over, a copy of each: learn from it at once."""
        for i in range(rows.shape[0]):
            row = rows[[i]].astype(np.float64)
            if self._reader is not None:
                self._reader.learned(row)
            self._scale_if_due()
            if not self._is_warming:
                return
            yield row

    def _scale_if_due(self) -> None:
        reader = self._reader
        if reader is None or not reader.is_due or not self._scales_itself or self._is_part:
            return
        is_last = reader.is_last
        try:
            self.read_by(reader.fit(), is_last=is_last)
        except InputError:  # numbers so large that what was learned does not fit: it stays as it is
            reader.read_by(reader.scaling, is_last=is_last)
            self._start_anew()

    # -- merging ------------------------------------------------------------------------------------

    def _check_same_scaling(self, other: Any) -> None:
        """Both read features alike, so that what they learned adds up."""
        mine, theirs = self._reader, other._reader
        if mine is None and theirs is None:
            return
        if mine is None or theirs is None:
            raise MergeError("cannot merge: one has a scaling, or an intercept, that the other has not")
        if self._is_warming and other._is_warming and mine.wanted != theirs.wanted:
            raise MergeError(f"cannot merge: scaling is {mine.wanted!r} here and {theirs.wanted!r} there")
        if mine.scaling != theirs.scaling or self._is_warming != other._is_warming:
            raise MergeError(
                "cannot merge what was learned with different scalings; give both the same while they warm "
                "up: policy.scaling = other.scaling = known"
            )

    def _merge_warm_up(self, other: Any) -> None:
        if self._reader is not None and not self._is_part:
            self._reader.merge(other._reader)
            self._scale_if_due()
