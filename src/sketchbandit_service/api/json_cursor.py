"""Reads JSON piece by piece. A long text is never parsed in one go.

The JSON parser in C holds the interpreter's lock until it is done, and its objects take many times the memory
of the text. So a text is read member by member and element by element.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from sketchbandit_service.api.request_models import Number
from sketchbandit_service.problems import Invalid, Malformed
from sketchbandit_service.types import Json, JsonObject

LONGEST_TEXT = 10_000
"""Most characters of a name or a string."""

_STEP = 1 << 16  # most characters that are parsed at once
_FEW = 32  # characters of a long list or object tried at first; the number doubles after each success
_NESTED = 300_000  # most lists and objects inside others in a body; each takes microseconds to read
_OBJECTS = 24  # most bytes of objects per character of text: for empty lists
_ELEMENT = 64  # bytes of an element of a list
_MEMBER = 250  # bytes of a member of an object
_DEPTH = 8  # deepest nesting of lists and objects: twice what any request needs
_SCALARS = (64, 5000)  # characters of a number: usually, and at most
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN_TEXT = re.compile(rf'"([^"\\\x00-\x1f]{{0,{LONGEST_TEXT}}})"')
_ESCAPED = 6 * LONGEST_TEXT + 2
_TEXTS = (64, 1024, 16_384, _ESCAPED)  # numbers of characters in which the end of a string is looked for
_NUMBERS = TypeAdapter(Annotated[list[Number], Field(fail_fast=True)])
_decode: Callable[[str], tuple[Json, int]] = json.JSONDecoder().raw_decode


class Cursor:
    """A place in a JSON text.

    ``pay`` is told the memory of long values; ``pace`` is called between pieces.
    """

    def __init__(
        self, body: bytes, pay: Callable[[int], None], pace: Callable[[], None] | None = None
    ) -> None:
        self._pay = pay
        self._pace = pace or _at_once
        self.text = _text(body, self._pace)
        self.at = 0
        self._nested = 0

    def peek(self) -> str:
        """The next character that is not a space. Empty at the end."""
        if (found := self.text[self.at : self.at + 1]) > " ":
            return found
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def members(self) -> Iterator[str]:
        """The names in an object. After each name, the caller reads its value."""
        if self.peek() != "{":
            self.skip()  # raises if it is not JSON at all
            raise Invalid("Input should be an object")
        self.at += 1
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            yield self._member()
            if self._is_last("}"):
                return

    def elements(self) -> Iterator[int]:
        """The places in a list. After each place, the caller reads the element."""
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

    def value(self, depth: int = _DEPTH) -> Json:
        """The whole value at the cursor."""
        kind = self.peek()
        if kind == '"':
            return self._string()
        if kind not in ("[", "{"):
            return self._scalar()
        self._count_nested(depth)
        if (found := self._short(kind, is_kept=depth < _DEPTH)) is not None:
            return found
        if not depth:
            raise self._wrong("lists and objects are nested too deeply")
        return self._list(depth) if kind == "[" else self._object(depth)

    def numbers(self) -> list[float] | None:
        """The list of numbers at the cursor, read fast.

        None if it is something else; then nothing is read.
        """
        end = self.text.find("]", self.at, self.at + _STEP) + 1
        try:
            found = _NUMBERS.validate_json(self.text[self.at : end])
        except ValidationError:
            return None
        self.at = end
        return found

    def skip(self, depth: int = _DEPTH) -> None:
        """Skip the value at the cursor."""
        kind = self.peek()
        if kind not in ("[", "{") or not depth:
            self.value(depth)
            return
        self._count_nested(depth)
        if self._short(kind) is None:
            for _ in self.elements() if kind == "[" else self.members():
                self.skip(depth - 1)

    def finish(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise self._wrong("there is something after the end")

    def _short(self, kind: str, *, is_kept: bool = False) -> Json:
        """A list or an object that ends soon, parsed at once. None if it is longer.

        ``is_kept``: it is one of many that are kept together, so it must be paid for.
        """
        end = self.text.find("]" if kind == "[" else "}", self.at, self.at + _STEP) + 1
        if not end:
            return None
        if is_kept:
            self._pay(_OBJECTS * (end - self.at))
        try:
            found, used = _decode(self.text[self.at : end])
        except (ValueError, RecursionError):
            return None  # the bracket belongs to something inside, or to a string
        self.at += used
        return found

    def _count_nested(self, depth: int) -> None:
        self._nested += depth < _DEPTH
        if self._nested > _NESTED:
            raise Invalid(f"more than {_NESTED} lists and objects inside others; send less at once")

    def _object(self, depth: int) -> JsonObject:
        """A long object, or one of lists. Numbers and strings are read many at a time, others one by one."""
        found: JsonObject = {}
        self.at += 1
        step = _FEW
        while self.peek() != "}" or found:
            if some := self._some("{", "}", step, _MEMBER):
                found.update(some)
                step = min(2 * step, _STEP)
                continue
            step = _FEW
            self._pay(_MEMBER)
            name = self._member()
            found[name] = self.value(depth - 1)
            if self._is_last("}"):
                return found
        self.at += 1
        return found

    def _list(self, depth: int) -> list[Json]:
        """A long list, or one of lists. Numbers and strings are read many at a time, others one by one."""
        found: list[Json] = []
        self.at += 1
        step = _FEW
        while self.peek() != "]" or found:
            if some := self._some("[", "]", step, _ELEMENT):
                found += some
                step = min(2 * step, _STEP)
                continue
            step = _FEW
            self._pay(_ELEMENT)
            found.append(self.value(depth - 1))
            if self._is_last("]"):
                return found
        self.at += 1
        return found

    def _some(self, opening: str, closing: str, step: int, price: int) -> Any:
        """Items up to the last comma in the next ``step`` characters. None if an item contains others."""
        cut = self.text.rfind(",", self.at, self.at + step)
        some = self.text[self.at : cut] if cut > 0 else "["
        if "[" in some or "{" in some:
            return None
        try:
            found: Any
            found, used = _decode(f"{opening}{some}{closing}")
        except ValueError:
            return None
        if used != len(some) + 2:
            return None
        self._pay(price * len(found) + len(some) * (1 if self.text.isascii() else 4))
        self.at = cut + 1
        self._pace()
        return found

    def _member(self) -> str:
        """A name, and the colon after it."""
        if self.peek() != '"':
            raise self._wrong("expected a name in quotes")
        name = self._string()
        if self.peek() != ":":
            raise self._wrong("expected a colon")
        self.at += 1
        return name

    def _is_last(self, closing: str) -> bool:
        """Step over a comma or the closing bracket. True if it was the bracket."""
        self._pace()
        found = self.peek()
        if found not in (",", closing):
            raise self._wrong(f"expected a comma or {closing}")
        self.at += 1
        return found == closing

    def _string(self) -> str:
        if match := _PLAIN_TEXT.match(self.text, self.at):
            self.at = match.end()
            return str(match[1])
        for width in _TEXTS:
            try:
                found, used = scanstring(self.text[self.at : self.at + width], 1)
            except ValueError as error:
                if len(self.text) - self.at <= width:
                    raise self._wrong(str(error).partition(":")[0]) from None
            else:
                self.at += used
                return str(found)
        raise Invalid(f"a string has more than {LONGEST_TEXT} characters; send a shorter one")

    def _scalar(self) -> Json:
        for width in _SCALARS:
            try:
                found, used = _decode(self.text[self.at : self.at + width])
            except ValueError as error:
                raise self._wrong(str(error).partition(":")[0]) from None
            if used <= width - 4:  # otherwise digits, a point or an exponent may follow
                break
        self.at += used
        return found

    def _wrong(self, what: str) -> Malformed:
        return Malformed(f"Invalid JSON: {what} at character {self.at}")


def _text(body: bytes, pace: Callable[[], None]) -> str:
    if body.isascii():
        return body.decode("ascii")  # one copy, without pieces
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
    """Do nothing: a short text needs no pauses."""
