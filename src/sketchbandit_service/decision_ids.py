"""Ids of decisions: the place in the journal, and a tag that cannot be guessed."""

import re
import secrets
from collections.abc import Iterator

_DECISION_ID = re.compile(r"([1-9a-f][0-9a-f]{0,14})-([0-9a-f]{12})")


def new_tags() -> Iterator[str]:
    """An endless sequence of tags. Many are drawn at a time, because every draw is a system call."""
    while True:
        drawn = secrets.token_hex(6 * 512)
        for start in range(0, len(drawn), 12):
            yield drawn[start : start + 12]


def decision_id(seq: int, tag: str) -> str:
    """The id of a decision that clients see."""
    return f"{seq:x}-{tag}"


def parse_decision_id(text: str) -> tuple[int, str] | None:
    """The place in the journal and the tag. None if the text cannot be an id of a decision."""
    match = _DECISION_ID.fullmatch(text)
    return None if match is None else (int(match[1], 16), match[2])
