"""The command ``sketchbandit``."""

import os
import sys

from sketchbandit.extras import how_to_install
from sketchbandit.processes import ONE_THREAD


def main() -> None:
    """Run the command line, or say which extra it needs."""
    os.environ.update(ONE_THREAD)  # before numpy is loaded: the matrices are small, more threads only wait
    try:
        from sketchbandit.cli.app import app  # noqa: PLC0415  (the extra may be missing)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sketchbandit"):
            raise
        sys.exit(
            f"the command line needs {error.name}: {how_to_install('experiments')}\n"
            "(the extra files is enough for `sketch`, and service for the decision service)"
        )
    app()
