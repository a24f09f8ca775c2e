"""The command ``sketchbandit``."""

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from sketchbandit.cli.app import app  # noqa: PLC0415  (the extra may be missing)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sketchbandit"):
            raise
        sys.exit(
            f"the command line needs {error.name}: pip install 'sketchbandit[experiments]', "
            "'sketchbandit[files]' for `sketch` alone, or 'sketchbandit[service]' for the decision service"
        )
    app()
