"""Base class of sketches that collect rows of other libraries on their device until they are read."""

from abc import abstractmethod
from typing import Any

import numpy as np

from sketchbandit.array_api import Library, dtype_name
from sketchbandit.arrays import AnyArray
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.device_gram import MOST_DIM, Gathering, device_norms_sq, device_rows
from sketchbandit.sketch.rows import read_rows
from sketchbandit.thread_safety import SharedLock


class DeviceSketch(Sketch):
    """A sketch that takes rows of torch, JAX or CuPy on their device, up to dim = 16384.

    The rows are summed up in X'X on the device. They go into the sketch as soon as the lock is taken, which
    every public call does: every read, copy, merge and save. So each read after new rows costs a shrink, and
    may lose something.
    """

    _lock: SharedLock
    _gathered: Gathering | None = None

    @abstractmethod
    def _add_gathered(self, gathered: Gathering) -> None:
        """Add the rows whose X'X is on a device, and their row_stats: all or nothing."""

    def _update_foreign(self, rows: Any) -> Change:
        library, rows = device_rows(rows, self._dim)
        if not rows.shape[0]:
            return NO_CHANGE
        if self._dim > MOST_DIM:
            return self.update(library.to_host(rows))
        if self._dtype == np.float32 and dtype_name(rows) == "float64":
            rows = library.cast(rows, library.xp.float32)
        norms_sq = device_norms_sq(library, rows)
        if not np.isfinite(norms_sq).all():
            return self._update_too_long(library.to_host(rows))
        self._lock.acquire()  # plainly: the gathered rows stay gathered
        try:
            fits = self._gather(library, rows, norms_sq)
        finally:
            self._lock.release()
        return Change(rebuilt=True) if fits else self.update(library.to_host(rows))

    def _update_too_long(self, rows: AnyArray) -> Change:
        """Handle rows that are infinite on the device: raise with the reason, or take them in float64."""
        read_rows(rows, self._dim, self._dtype)
        return self.update(rows)

    def _gather(self, library: Library, rows: Any, norms_sq: Any) -> bool:
        """Add rows to the gathered ones. Return False if they do not fit into float32."""
        mass, gathered = float(norms_sq.sum()), self._gathered
        self.row_stats.check(mass + (gathered.row_stats.mass if gathered else 0.0))
        if gathered is not None and (gathered.is_full or not gathered.is_for(library)):
            with self._lock:
                gathered = None
        fresh = gathered is None
        gathered = gathered or Gathering(library, self._dim, self._dtype)
        if not gathered.has_room(rows, mass):
            return False
        gathered.add(rows, norms_sq)
        if fresh:
            self._gathered = gathered
            self._lock.put_off(self._settle)
        return True

    def _settle(self) -> None:
        """Put the gathered rows into the sketch."""
        gathered = self._gathered
        if gathered is None:
            return
        waiting = gathered.waiting
        if waiting is None:
            self._add_gathered(gathered)
            self._gathered = None
            return
        for rows in waiting:
            for chunk, norms_sq in read_rows(rows, self._dim, self._dtype).chunks():
                self.take(chunk, norms_sq)
            gathered.drop_first()  # what is broken off here goes on with the next
        self._gathered = None

    def _unlocked(self) -> dict[str, Any]:
        return {**super()._unlocked(), "_gathered": None}  # copies are made after all rows went in
