"""Doctests in docstrings become code blocks.

In Markdown a line that begins with ``>>>`` is a quotation in a quotation in a quotation. Docstrings are
written for people who read them in a terminal, so the fences are added here, when griffe reads the sources.
"""

from typing import Any

import griffe


def fenced(text: str) -> str:
    """The same text, with each doctest between fences; what is fenced already stays as it is."""
    lines: list[str] = []
    margin: str | None = None  # of the doctest that we are in
    in_fence = False
    for line in text.splitlines():
        content = line.lstrip()
        if margin is not None and not content:
            lines.append(f"{margin}```")
            margin = None
        elif margin is None and content.startswith("```"):
            in_fence = not in_fence
        elif margin is None and not in_fence and content.startswith(">>>"):
            margin = line[: len(line) - len(content)]
            if lines and lines[-1].strip():
                lines.append("")  # a fence needs a blank line above it after a paragraph
            lines.append(f"{margin}```pycon")
        lines.append(line)
    if margin is not None:
        lines.append(f"{margin}```")
    return "\n".join(lines)


class FencedDoctests(griffe.Extension):
    """Fences the doctests of every object that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object, as soon as its members are known."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
