"""One BLAS thread while a log is judged: with small matrices, threads mostly wait for each other."""

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for BLAS inside the block, if threadpoolctl is installed (extra "evaluation")."""
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpoolctl.threadpool_limits(1, user_api="blas")
    return limits
