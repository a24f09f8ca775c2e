"""Reading a large file past the page cache, by a thread that is a few blocks ahead of whoever computes.

Through a memory map, a file that is not in the cache takes nearly as long to page in as its sketch to
compute, and it pushes everything else out. Asked for directly, the disk delivers while the processor works.
"""

import errno
import mmap
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

from sketchbandit.errors import FileError

BLOCK_BYTES = 1 << 25
_BLOCKS = 3  # one in use, one ready, one on its way
_PAGE = 4096  # what direct reads are aligned to
_SHARE_OF_MEMORY = 4
_Block = tuple[mmap.mmap, memoryview]


def is_worth_it(path: Path) -> bool:
    """Whether the file is large beside the memory of the machine, and the system can read directly."""
    if not (hasattr(os, "O_DIRECT") and hasattr(os, "preadv")):
        return False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return path.stat().st_size > memory // _SHARE_OF_MEMORY


def read_ahead(path: Path, start: int, stop: int, block: int) -> Iterator[memoryview]:
    """The bytes ``start`` to ``stop`` in blocks of ``block``; each is good until the next is asked for."""
    reader = _Reader(path, start, stop, block)
    reader.start()
    try:
        while (come := reader.full.get()) is not None:
            if isinstance(come, BaseException):
                raise come
            buffer, view = come
            yield view
            reader.free.put(buffer)
    finally:
        reader.stopped = True
        reader.free.put(None)  # it may be waiting for one
        reader.join()


class _Reader(threading.Thread):
    def __init__(self, path: Path, start: int, stop: int, block: int) -> None:
        super().__init__(daemon=True, name=f"reading {path}")
        self._path, self._first, self._last, self._block = path, start, stop, block
        self.free: queue.SimpleQueue[mmap.mmap | None] = queue.SimpleQueue()
        self.full: queue.SimpleQueue[_Block | BaseException | None] = queue.SimpleQueue()
        self.stopped = False
        for _ in range(_BLOCKS):
            self.free.put(mmap.mmap(-1, block + 2 * _PAGE))

    def run(self) -> None:
        try:
            self._handle = _open(self._path)
            try:
                for at in range(self._first, self._last, self._block):
                    buffer = self.free.get()
                    if self.stopped or buffer is None:
                        return
                    self.full.put((buffer, self._fill(buffer, at, min(at + self._block, self._last))))
            finally:
                os.close(self._handle)
            self.full.put(None)
        except BaseException as error:
            self.full.put(error)

    def _fill(self, buffer: mmap.mmap, start: int, stop: int) -> memoryview:
        first = start // _PAGE * _PAGE
        whole = memoryview(buffer)[: -(-(stop - first) // _PAGE) * _PAGE]
        got = 0
        while got < stop - first:
            try:
                some = os.preadv(self._handle, [whole[got:]], first + got)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                os.close(self._handle)  # a file system that takes the flag and then cannot
                self._handle = os.open(self._path, os.O_RDONLY)
                continue
            if not some:
                raise FileError(f"{self._path} has become shorter while it was read")
            got += some
        return whole[start - first : stop - first]


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:  # a file system that cannot
        return os.open(path, os.O_RDONLY)
