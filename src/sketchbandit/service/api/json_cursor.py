"""JSON read piece by piece: nothing of a long text is parsed in one go, and no more than a piece is held.

The parser in C keeps the interpreter's lock until it is done, and makes objects that take many times the
memory of the text. So a text is walked through member by member and element by element.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from sketchbandit.service.api.request_models import Number
from sketchbandit.service.problems import Invalid, Malformed

LONGEST_TEXT = 10_000
"""Characters of a name or a text."""

_STEP = 1 << 16  # characters that are parsed at once
_OBJECTS = 24  # bytes of objects for a character, at most: of empty lists
_ELEMENT = 64  # bytes of one in a list
_MEMBER = 250  # bytes of one in an object
_DEPTH = 8  # of lists and objects in each other: twice what any request has
_NUMBER = 5000  # characters of a number
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN_TEXT = re.compile(rf'"([^"\\\x00-\x1f]{{0,{LONGEST_TEXT}}})"')
_ESCAPED = 6 * LONGEST_TEXT + 2
_NUMBERS = TypeAdapter(Annotated[list[Number], Field(fail_fast=True)])
_decode = json.JSONDecoder().raw_decode


class Cursor:
    """A place in a JSON text. ``pay`` is told what long values take; ``pace`` is called between pieces."""

    def __init__(
        self, body: bytes, pay: Callable[[int], None], pace: Callable[[], None] | None = None
    ) -> None:
        self._pay = pay
        self._pace = pace or _at_once
        self.text = _text(body, self._pace)
        self.at = 0

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def members(self) -> Iterator[str]:
        """The names in an object; after each, who asked reads what it stands for."""
        if self.peek() != "{":
            self.skip()  # or it is no JSON at all
            raise Invalid("Input should be an object")
        self.at += 1
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            if self.peek() != '"':
                raise self._wrong("a name in quotes is expected")
            name = self._string()
            if self.peek() != ":":
                raise self._wrong("a colon is expected")
            self.at += 1
            yield name
            if self._is_last("}"):
                return

    def elements(self) -> Iterator[int]:
        """The places in a list; after each, who asked reads the element."""
        self.at += 1
        if self.peek() == "]":
            self.at += 1
            return
        place = 0
        while True:
            yield place
            place += 1
            if self._is_last("]"):
                return

    def value(self, depth: int = _DEPTH) -> Any:
        """What stands here, whole."""
        kind = self.peek()
        if kind == '"':
            return self._string()
        if kind not in ("[", "{"):
            return self._scalar()
        if (found := self._short(kind, is_kept=depth < _DEPTH)) is not None:
            return found
        if not depth:
            raise self._wrong("lists and objects are nested too deeply")
        if kind == "[":
            return self._list(depth)
        return dict(self._paid_members(depth))

    def numbers(self) -> list[float] | None:
        """The list of numbers that stands here, read fast; None, and nothing is read, if it is none."""
        end = self.text.find("]", self.at, self.at + _STEP) + 1
        try:
            found = _NUMBERS.validate_json(self.text[self.at : end])
        except ValidationError:
            return None
        self.at = end
        return found

    def skip(self, depth: int = _DEPTH) -> None:
        """Pass over what stands here."""
        kind = self.peek()
        if kind not in ("[", "{") or not depth:
            self.value(depth)
        elif self._short(kind) is None:
            for _ in self.elements() if kind == "[" else self.members():
                self.skip(depth - 1)

    def finish(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self._wrong("something follows the end")

    def _short(self, kind: str, *, is_kept: bool = False) -> Any:
        """A list or an object that ends soon, parsed at once; None if it does not.

        ``is_kept``: it is one of many that are held together, and so to be paid for.
        """
        end = self.text.find("]" if kind == "[" else "}", self.at, self.at + _STEP) + 1
        if not end:
            return None
        if is_kept:
            self._pay(_OBJECTS * (end - self.at))
        try:
            found, used = _decode(self.text[self.at : end])
        except (ValueError, RecursionError):
            return None  # the bracket was of something inside, or in a text
        self.at += used
        return found

    def _paid_members(self, depth: int) -> Iterator[tuple[str, Any]]:
        for name in self.members():
            self._pay(_MEMBER)
            yield name, self.value(depth - 1)

    def _list(self, depth: int) -> list[Any]:
        """A long list, or one of lists: numbers many at a time, other things one by one."""
        found: list[Any] = []
        begin, at = self.at, self.at + 1
        while (cut := self.text.rfind(",", at, at + _STEP)) > 0:
            try:
                some, used = _decode(f"[{self.text[at:cut]}]")
            except (ValueError, RecursionError):
                break
            if used != cut - at + 2 or not some:
                break
            self._pay(_ELEMENT * len(some))
            found += some
            begin, at = cut, cut + 1
            self._pace()
        self.at = begin + 1
        if not found and self.peek() == "]":
            self.at += 1
            return found
        while True:
            self._pay(_ELEMENT)
            found.append(self.value(depth - 1))
            if self._is_last("]"):
                return found

    def _is_last(self, closing: str) -> bool:
        """Pass a comma or the closing bracket."""
        self._pace()
        found = self.peek()
        if found not in (",", closing):
            raise self._wrong(f"a comma or {closing} is expected")
        self.at += 1
        return found == closing

    def _string(self) -> str:
        if match := _PLAIN_TEXT.match(self.text, self.at):
            self.at = match.end()
            return str(match[1])
        try:
            found, used = scanstring(self.text[self.at : self.at + _ESCAPED], 1)
        except ValueError as error:
            if len(self.text) - self.at > _ESCAPED:
                raise Invalid(f"a text has up to {LONGEST_TEXT} characters") from None
            raise self._wrong(str(error).partition(":")[0]) from None
        self.at += used
        return str(found)

    def _scalar(self) -> Any:
        try:
            found, used = _decode(self.text[self.at : self.at + _NUMBER])
        except ValueError as error:
            raise self._wrong(str(error).partition(":")[0]) from None
        self.at += used
        return found

    def _wrong(self, what: str) -> Malformed:
        return Malformed(f"Invalid JSON: {what} at character {self.at}")


def _text(body: bytes, pace: Callable[[], None]) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    parts = []
    try:
        for start in range(0, len(body) + 1, 1 << 20):
            parts.append(decoder.decode(body[start : start + (1 << 20)], start + (1 << 20) > len(body)))
            pace()
    except UnicodeDecodeError:
        raise Malformed("Invalid JSON: the body is not UTF-8") from None
    return "".join(parts)


def _at_once() -> None:
    """A short text needs no pauses."""
