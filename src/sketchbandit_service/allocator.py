"""The memory of the C library: how it is kept, and when it goes back to the system."""

import asyncio
import ctypes
from typing import Any

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # constants of malloc.h
_LARGE = 1 << 20  # a piece of this many bytes gets its own mapping, which is gone when it is freed
_EVERY = 5.0  # seconds


def set_up() -> Any:
    """Make glibc keep little memory for threads, and none of the large pieces. None on another system."""
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_ARENA_MAX, 2)
    except (OSError, AttributeError):
        return None
    return library


async def give_back(library: Any) -> None:
    """Return the memory that small pieces of large requests have left behind, periodically."""
    loop = asyncio.get_running_loop()
    while library is not None:
        await asyncio.sleep(_EVERY)
        await loop.run_in_executor(None, library.malloc_trim, 0)
