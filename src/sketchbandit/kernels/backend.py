"""Whether the compiled loops are used."""

import importlib
import os
from functools import cache
from typing import Any


@cache
def kernels() -> Any:
    """The module ``compiled`` if numba is there (extra ``[fast]``), else None: numpy then does the same.

    SKETCHBANDIT_COMPILED=0 in the environment forces numpy.
    """
    if os.environ.get("SKETCHBANDIT_COMPILED", "1").lower() in ("0", "false", "no", "off"):
        return None
    try:
        return importlib.import_module("sketchbandit.kernels.compiled")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        return None
