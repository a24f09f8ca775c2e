"""The version and the changelog: each has one place in the project, and the site shows it."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files


def on_config(config: Any) -> Any:
    """Give the templates the version of the package."""
    source = Path(config.config_file_path).parent / "src" / "sketchbandit" / "_version.py"
    found = re.search(r'__version__ = "(.+)"', source.read_text(encoding="utf-8"))
    if not found:
        raise PluginError(f"no version in {source}")
    config.extra["release"] = found[1]
    # The theme has a place in its header for a repository. Ours has the version there: partials/source.html.
    config.repo_url = "changelog.md"
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the changelog as a page; its links are those of the folder above."""
    text = (Path(config.config_file_path).parent / "CHANGELOG.md").read_text(encoding="utf-8")
    page = re.sub(r"\]\(docs/", "](", text)
    files.append(File.generated(config, "changelog.md", content=page))
    return files


def on_page_markdown(markdown: str, **keywords: Any) -> str:
    """Write the version where a page asks for it."""
    return markdown.replace("{{ version }}", keywords["config"].extra["release"])
