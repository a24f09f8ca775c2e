"""How features are scaled: learned from the first requests in a warm-up, then fixed."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sketchbandit.arms import Arms
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.kernels.view import PLAIN
from sketchbandit.policy.exploring import Exploring
from sketchbandit.scaling import Reader, Scaling


class Scalable(Exploring):
    """Base class of learners that read features through a scaling, if they have one.

    A scaling that has to be learned takes means and standard deviations from the arms of the first requests.
    It is fitted again whenever there are 1.4 times as many requests. Each time, the rounds so far are learned
    again with the new scaling. After 200 requests the scaling is fixed, and never changes again.
    """

    _reader: Reader | None = None
    _lens = PLAIN
    _is_warming = False
    _scales_itself = True  # if False, the caller watches ``scaling_due`` and calls ``read_by``

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The number of rewards learned from."""

    @property
    def scaling(self) -> Scaling | None:
        """The scaling of the features; None if they are used as they are.

        It can be set during the warm-up, or before the first reward.
        """
        return None if self._reader is None else self._reader.shown

    @scaling.setter
    def scaling(self, scaling: Scaling) -> None:
        with self._lock:
            if not isinstance(scaling, Scaling):
                raise InputTypeError(
                    f"scaling is {scaling!r:.60}; give a Scaling, for instance the scaling of another policy"
                )
            scaling.check_final()
            self.read_by(scaling)

    @property
    def is_warming_up(self) -> bool:
        """Whether the scaling is still being learned (the warm-up)."""
        return self._is_warming

    @property
    def scaling_due(self) -> tuple[Scaling, bool] | None:
        """The scaling that the requests so far suggest, and whether it is the last; None if none is due.

        This is for callers that apply scalings themselves with ``read_by``.
        """
        reader = self._reader
        return (self._fit(reader), reader.is_last) if reader is not None and reader.is_due else None

    @property
    def requests_seen(self) -> int:
        """The number of requests that the scaling is being learned from; 0 once it is fixed."""
        return 0 if self._reader is None else self._reader.seen

    def read_by(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Use the scaling that was due, and learn the rounds so far again with it.

        ``seen`` is the value of ``requests_seen`` when the scaling was due, if it has changed since.
        """
        if self._is_part:
            raise InputError("this model belongs to a PerAction; set the scaling there: models.scaling = ...")
        if self._reader is None:
            raise InputError('this policy has no scaling to replace; make it with scaling="auto"')
        self._reader.check(scaling)
        if not self._is_warming and self.rounds:
            if scaling == self._reader.scaling:
                return
            raise InputError(
                f"{self.rounds} rewards were learned from with the present scaling, so it cannot change; "
                "make a new policy with the new scaling"
            )
        self._check_readable(self._reader, scaling)
        self._reader.read_by(scaling, is_last=is_last, seen=seen)
        self._start_anew()

    def _check_readable(self, reader: Reader, scaling: Scaling) -> None:
        """Raise if the rounds so far could not be learned with this scaling."""
        before, reader.scaling = reader.scaling, scaling
        try:
            self._check_kept()
        except InputError as error:
            raise InputError(f"the rounds so far cannot be read with that scaling: {error}") from error
        finally:
            reader.scaling = before

    @abstractmethod
    def _check_kept(self) -> None:
        """Raise if the kept rounds could not be learned again with the present scaling."""

    @abstractmethod
    def _fit(self, reader: Reader) -> Scaling:
        """The scaling that fits the arms seen in the warm-up and the kept rounds."""

    @abstractmethod
    def _start_anew(self) -> None:
        """Learn the rounds so far again, with the present scaling."""

    # -- the warm-up --------------------------------------------------------------------------------

    def _saw(self, *offered: Arms) -> None:
        """Take note of requests, during the warm-up: the arms of each. The choices are already made."""
        if self._is_warming and self._reader is not None:
            for arms in offered:
                for request in self._requests_of(arms.raw):
                    self._reader.saw(request)
            self._scale_if_due()

    def _requests_of(self, arms: Any) -> Iterable[Any]:
        """The requests that these arms (K, dim) belong to."""
        return (arms,)

    def _to_be_kept(self, rows: Any) -> Iterator[Any]:
        """Yield a copy of each row of the warm-up. Learn from it before asking for the next."""
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
            self.read_by(self._fit(reader), is_last=is_last)
        except InputError:  # with such large numbers the new scaling would overflow: keep the present one
            reader.read_by(reader.scaling, is_last=is_last)
            self._start_anew()

    # -- merging ------------------------------------------------------------------------------------

    def _check_same_scaling(self, other: Any) -> None:
        """Raise unless both use the same scaling. Only then do their sums add up."""
        mine, theirs = self._reader, other._reader
        if mine is None and theirs is None:
            return
        if mine is None or theirs is None:
            raise MergeError("cannot merge: one has a scaling or an intercept, and the other has none")
        if self._is_warming and other._is_warming and mine.wanted != theirs.wanted:
            raise MergeError(f"cannot merge: scaling is {mine.wanted!r} here and {theirs.wanted!r} there")
        if mine.scaling != theirs.scaling or self._is_warming != other._is_warming:
            raise MergeError(
                "cannot merge: the two have learned with different scalings; give both the same scaling "
                "while they warm up: policy.scaling = other.scaling = known"
            )

    def _merge_warm_up(self, other: Any) -> None:
        if self._reader is not None and not self._is_part:
            self._reader.merge(other._reader)
            self._scale_if_due()
