"""The rivals' libraries, each in a virtual environment of its own."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Library(NamedTuple):
    """What is installed to play one family of rivals."""

    name: str
    module: str
    """The file in ``rivals`` that plays it."""
    requirements: tuple[str, ...]
    """The library first, pinned."""

    @property
    def version(self) -> str:
        """Of the library itself."""
        return self.requirements[0].partition("==")[2]


_NUMBERS = ("numpy==2.4.6", "scipy==1.17.1")
LIBRARIES = {
    library.name: library
    for library in (
        Library("Vowpal Wabbit", "with_vowpal", ("vowpal-wabbit-next==0.7.0", *_NUMBERS)),
        Library("bayesianbandits", "with_bayesianbandits", ("bayesianbandits==1.5.0", *_NUMBERS)),
        Library("contextualbandits", "with_contextualbandits", ("contextualbandits==0.3.30", *_NUMBERS)),
        Library("river", "with_river", ("river==0.26.1", *_NUMBERS)),
        Library("coba", "with_coba", ("coba==8.1.0", *_NUMBERS)),
    )
}


class InstallError(Exception):
    """A library could not be installed; the message is the last line of what pip said."""


def python_with(library: Library, folder: Path) -> Path:
    """The Python of the library's environment under ``folder``, which is made if it is not there."""
    place = folder / library.module.removeprefix("with_")
    python, stamp = place / "bin" / "python", place / "installed"
    wanted = hashlib.sha256("\n".join(library.requirements).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(place, ignore_errors=True)
    commands = (
        [sys.executable, "-m", "venv", str(place)],
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *library.requirements,
        ],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own
        if done.returncode:
            said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise InstallError(said[-1] if said else f"{command[0]} failed with status {done.returncode}")
    stamp.write_text(wanted)
    return python
