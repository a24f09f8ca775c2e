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
    r'(?P<before>\(?)<(?P<tag>span|div) class="arithmatex">'
    r"\\[(\[](?P<latex>.*?)\\[)\]]"
    r"</(?P=tag)>(?P<after>[.,;:)]*)",
    re.DOTALL,
)
# The converter takes these for letters, which have no space around them.
RELATIONS = re.compile(r"<mi>(&#x02AAF;|&#x02AB0;)</mi>")
FUNCTIONS = re.compile(r"<mi>(ln|log|exp)</mi>")
SPACED = r'<mo lspace="0.17em" rspace="0.17em">\1</mo>'


def mathml(latex: str, *, in_line: bool) -> str:
    """One equation."""
    made = convert(latex, display="inline" if in_line else "block")
    return FUNCTIONS.sub(SPACED, RELATIONS.sub(r"<mo>\1</mo>", made))


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """The page with its equations drawn."""

    def drawn(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"]).strip()
        in_line = found["tag"] == "span"
        try:
            made = mathml(latex, in_line=in_line)
        except Exception as error:  # the converter raises many kinds, none with the equation in it
            raise PluginError(
                f"{page.file.src_uri}: cannot read the equation {latex!r}: {error!r}"
            ) from error
        if in_line:  # a full stop stays in the line of what it ends
            return f'<span class="equation">{found["before"]}{made}{found["after"]}</span>'
        return f'{found["before"]}<div class="equation">{made}</div>{found["after"]}'

    return MARKED.sub(drawn, content)
