r"""Equations become MathML when the site is built: browsers draw it themselves, without any script.

A page writes LaTeX: ``$x'\theta$`` within a line, ``$$...$$`` on lines of its own. The Markdown extension
arithmatex marks both, and this hook replaces what it has marked.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """The page with its equations drawn."""

    def drawn(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"]).strip()
        in_line = found["tag"] == "span"
        try:
            mathml = convert(latex, display="inline" if in_line else "block")
        except Exception as error:  # the converter raises many kinds, none with the equation in it
            raise PluginError(
                f"{page.file.src_uri}: cannot read the equation {latex!r}: {error!r}"
            ) from error
        return f'<{found["tag"]} class="equation">{mathml}</{found["tag"]}>'

    return MARKED.sub(drawn, content)
