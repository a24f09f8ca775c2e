"""What notebooks show of an object: small HTML tables, escaped, in the colours of the page."""

from collections.abc import Sequence
from html import escape
from math import isfinite

Facts = Sequence[tuple[str, str]]
"""What is told, and its value."""

_CELL = ' style="text-align: left; vertical-align: top"'


def card(title: str, facts: Facts) -> str:
    """A table of facts under a title.

    >>> "&lt; 5</td>" in card("Sketch", [("rows", "< 5")])
    True
    """
    rows = "".join(
        f"<tr><th{_CELL}>{escape(name)}</th><td{_CELL}>{escape(value)}</td></tr>" for name, value in facts
    )
    return f"<table><caption{_CELL}>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a line of headings under a title."""
    head = "".join(f"<th{_CELL}>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td{_CELL}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<table><caption{_CELL}>{escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def sentence(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def amount(nbytes: int) -> str:
    """A number of bytes for people.

    >>> amount(999), amount(12_345), amount(3_210_000_000)
    ('999 bytes', '12.3 kB', '3.2 GB')
    """
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} bytes"


def certificate(bound: float) -> str:
    """A bound on an error.

    >>> certificate(0.5), certificate(float("inf"))
    ('error at most 0.5', 'none')
    """
    return f"error at most {bound:.4g}" if isfinite(bound) else "none"
