"""How an extra is installed: one sentence, for all messages that name one."""

import shlex
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def how_to_install(extra: str, root: Path = _ROOT) -> str:
    """The command that installs an extra, to be copied from a message.

    A package that runs from a clone names that clone, so the command works in every folder. Elsewhere it is
    said that a clone is needed: the package is not on an index yet.

    >>> how_to_install("service", Path("/nowhere"))
    "pip install '.[service]' (in a clone of sketchbandit)"
    """
    if not _is_clone(root):
        return f"pip install '.[{extra}]' (in a clone of sketchbandit)"
    place = "." if Path.cwd() == root else str(root)
    return f"pip install -e {shlex.quote(f'{place}[{extra}]')}"


def _is_clone(root: Path) -> bool:
    settings = root / "pyproject.toml"
    return settings.is_file() and 'name = "sketchbandit"' in settings.read_text(encoding="utf-8")
