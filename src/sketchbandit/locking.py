"""One process at a time in a folder."""

import io
import os
from pathlib import Path

from sketchbandit.errors import InputError


def lock_folder(folder: Path) -> io.TextIOWrapper:
    """Keep other processes out of ``folder`` until the file returned is closed, or the process ends."""
    lock = (folder / ".lock").open("a", encoding="utf-8")
    if os.name == "posix":  # on other systems users must not run two processes in one folder
        import fcntl  # noqa: PLC0415  (not everywhere)

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise InputError(f"{folder} is in use by another process") from None
    return lock
