"""What a timing was measured on."""

import os
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from sketchbandit.kernels import kernels


@lru_cache(maxsize=1)
def describe() -> str:
    """Processor, cores, system, Python, numpy, and whether the loops of a round are compiled."""
    loops = f"numba {version('numba')}" if kernels() is not None else "loops in numpy"
    cores = os.cpu_count() or 1
    return (
        f"{_processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}, "
        f"numpy {version('numpy')}, {loops}"
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
