"""Figures that follow the reader's light or dark mode: the same SVG, its colours chosen by the browser."""

import re

DARK = {
    "#000000": "#e8e8e8",
    "#ffffff": "#14171a",
    "#4d4d4d": "#c4c4c4",
    "#666666": "#b0b0b0",
    "#7f7f7f": "#a0a0a0",
    "#808080": "#a0a0a0",
    "#b0b0b0": "#8a8a8a",
    "#0072b2": "#5ab4ee",
    "#d55e00": "#ff8c42",
    "#009e73": "#35cfa3",
    "#cc79a7": "#e59cc4",
    "#e69f00": "#f2b93b",
    "#56b4e9": "#8fd0f7",
}
"""What each colour of a figure becomes on a dark page; the others stay."""
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_PAPER = re.compile(r'(<g id="(?:figure|axes)_\d+">\s*)<g id="patch_\d+">.*?</g>', re.DOTALL)
"""The white behind the figure, and behind each panel."""


def following_mode(svg: str) -> str:
    """The figure without its white paper, with a colour for light and one for dark pages.

    It is for a browser: other readers of SVG may not know such colours.
    """
    svg = _PAPER.sub(r"\1", svg)
    used = sorted({"#000000"} | {found.lower() for found in _COLOUR.findall(svg)} & DARK.keys())
    light = "".join(f"--c{colour[1:]}:{colour};" for colour in used)
    dark = "".join(f"--c{colour[1:]}:{DARK[colour]};" for colour in used)
    ink = "fill:var(--c000000)"  # what says no colour is black
    style = f"<style>:root{{{light}{ink}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"

    def chosen(found: re.Match[str]) -> str:
        colour = found[0].lower()
        return f"var(--c{colour[1:]})" if colour in DARK else found[0]

    head, tag, rest = svg.partition("<defs>")
    return head + style + tag + _COLOUR.sub(chosen, rest)
