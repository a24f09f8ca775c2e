"""An evaluation on disk: the forest plot, its numbers as JSON, and one self-contained page."""

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from sketchbandit._version import __version__
from sketchbandit.drawing import save
from sketchbandit.evaluation.evaluation import Evaluation
from sketchbandit.evaluation.figure import forest
from sketchbandit.files import replace_file

FILES = ("forest.png", "forest.svg", "evaluation.json", "report.html")
"""What a report consists of."""


def write_report(
    found: Evaluation, folder: str | Path, *, title: str = "What would they have earned?"
) -> Path:
    """Write ``forest.png``, ``forest.svg``, ``evaluation.json`` and ``report.html``; return its path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _, svg = save(forest(found, title=title), folder / "forest")
    page = _template().render(
        title=title,
        version=__version__,
        notes=found.notes,
        verdicts=found.verdicts(),
        image=base64.b64encode(svg.read_bytes()).decode(),
        tables=found.tables(),
    )
    replace_file(folder / "evaluation.json", json.dumps(found.to_json(), indent=1).encode())
    path = folder / "report.html"
    replace_file(path, page.encode())
    return path


def _template() -> Any:
    text = files("sketchbandit.evaluation").joinpath("report.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)
