"""Parameters that a docstring describes together are listed one by one, each with a type of its own.

``rows, columns`` in one line saves space in a terminal. In the reference every name would get the type and
the default of the first, so such entries are taken apart here, when griffe reads the sources.
"""

import re
from typing import Any

import griffe

SECTIONS = {"Parameters", "Other Parameters", "Attributes"}
GROUPED = re.compile(r"(?P<names>\**\w+(?:, \**\w+)+)(?P<kind> : .*)?")


def one_by_one(text: str) -> str:
    """The same text, with an entry for each name of a grouped entry."""
    lines = text.splitlines()
    written: list[str] = []
    margin: str | None = None  # of the section that we are in
    at = 0
    while at < len(lines):
        line = lines[at]
        content = line.lstrip()
        here = line[: len(line) - len(content)]
        at += 1
        if at < len(lines) and re.fullmatch(r"---+", lines[at].strip()):
            margin = here if content in SECTIONS else None
        found = GROUPED.fullmatch(content.rstrip())
        if margin is None or here != margin or found is None:
            written.append(line)
            continue
        said = []
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith(f"{margin} ")):
            said.append(lines[at])
            at += 1
        text_of_each = said
        while text_of_each and not text_of_each[-1].strip():
            text_of_each = text_of_each[:-1]
        for name in found["names"].split(", "):
            written += [f"{margin}{name}{found['kind'] or ''}", *text_of_each]
        written += said[len(text_of_each) :]
    return "\n".join(written)


class OneByOne(griffe.Extension):
    """Takes the grouped entries of every docstring apart."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object, as soon as its members are known."""
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)


class SharedSettings(griffe.Extension):
    """Shows the settings that recipes share where they stand as ``**settings: Unpack[...]``."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called once for each package, when all of its modules are known."""
        if pkg.path != "sketchbandit":
            return
        home = pkg["policy.policy"]
        shared = home["LinUCB"].members["__init__"].parameters
        members = pkg["policy.recipes"].members.values()
        functions = [one for one in members if not one.is_alias and one.is_function]
        for function in (*functions, pkg["policy.projected.ProjectedLinUCB"].members["__init__"]):
            if any(one.name == "settings" for one in function.parameters):
                del function.parameters["settings"]
                for name in (*home["Settings"].members, *home["CommonSettings"].members):
                    if name not in function.parameters:
                        function.parameters.add(shared[name])
