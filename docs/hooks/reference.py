"""The reference: a page for each public object, made from what the package exports.

``__all__`` of the package, and of the parts named below, is the list of names. A group takes the names that
are defined in its modules, so a new name gets its page by itself. A public name of ``sketchbandit`` without
a group fails the build.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import sketchbandit

PACKAGE = "sketchbandit"
OTHERS = {"sketchbandit_service": "src", "sketchbandit_paper": "paper"}  # beside it: modules named in full
LIST = "<!-- the list of all pages -->"  # reference.md has it where the list goes
SOURCE = '<details class="mkdocstrings-source"'
NAMED_PAGE = re.compile(r"\bdocs/([a-z-]+)\.md\b(?![^<]*</(?:span|code|a)>)")  # in running text
LIKE = re.compile(r"\b(as for) <code>([\w.]+)</code>", re.IGNORECASE)  # another object's parameters
# What files and threads need: public for the other parts of the package, not for its users.
MACHINERY = ("content", "read_by", "scaling_due")
STATE = ("dump", "undump")  # shown where an author of a class may write them
WRITTEN_BY_AUTHORS = {"rewards", "explore"}
NOT_OBJECTS = {"data", "evaluation", "theory"}  # modules: their own names have pages


@dataclass(frozen=True)
class Group:
    """Pages that stand together in the navigation."""

    title: str
    folder: str
    says: str
    defined: tuple[str, ...] = ()  # names of the package that are defined in these modules: a page each
    exported: tuple[str, ...] = ()  # modules whose own names have a page each
    modules: tuple[str, ...] = ()  # modules that are one page
    parts: tuple[str, ...] = ()  # packages that have a page for each of their modules
    first: tuple[str, ...] = ()  # names that come before the others
    found_by_search: bool = True


GROUPS = (
    Group(
        "Policies",
        "policies",
        "What chooses arms and learns from rewards.",
        defined=("policy", "loading", "features", "precision", "theory.confidence"),
        first=("adaptive", "oful", "soful", "cbscfd", "dbslinucb", "cbrap", "PerAction", "LinUCB", "Policy"),
    ),
    Group(
        "Exploration rules",
        "explore",
        "How a choice follows from means and widths.",
        defined=("explore",),
        first=("Thompson", "UCB", "InverseGap", "EpsilonGreedy", "Greedy"),
    ),
    Group(
        "Reward models",
        "rewards",
        "What kind of number a reward is: any, a click, a count, one with outliers.",
        defined=("estimate",),
        first=("Linear", "Logistic", "Poisson", "Robust"),
    ),
    Group("Catalogues", "arms", "Sets of arms that stay the same for many rounds.", defined=("arms",)),
    Group(
        "Sketches",
        "sketches",
        "Small summaries of a stream of rows, each with a bound on its error.",
        defined=("sketch",),
        first=("AdaptiveSketch", "FrequentDirections", "DyadicBlockSketch"),
    ),
    Group(
        "Matrices larger than memory",
        "large",
        "Files, Dask collections, and estimators for scikit-learn.",
        exported=("sklearn", "outofcore", "dask"),
    ),
    Group(
        "Evaluation from logs",
        "evaluation",
        "What another policy would have earned.",
        exported=("evaluation",),
        modules=(
            "evaluation.estimators",
            "evaluation.sequences",
            "evaluation.open_bandit",
            "evaluation.report",
            "simulation.judging",
        ),
        first=("Log", "evaluate", "train_and_judge", "replay", "read_log", "from_frame"),
    ),
    Group(
        "The decision service",
        "service",
        "The client, and the server's settings.",
        exported=("sketchbandit_service.client", "sketchbandit_service"),
        first=("Client", "Bandit", "Decision"),
    ),
    Group(
        "Environments and data",
        "environments",
        "Where arms and rewards come from in experiments.",
        defined=("simulation.loop", "environment"),
        modules=("data", "sketchbandit_paper.verbs"),
        first=("play", "RoundResult"),
    ),
    Group("Theory", "theory", "The theorems as functions: radii and regret bounds.", parts=("theory",)),
    Group("Errors and warnings", "errors", "What is raised, and when.", defined=("errors",)),
    Group("Linear algebra", "linalg", "The functions below the sketches.", parts=("linalg",)),
    Group(
        "Laws for your own sketch",
        "testing",
        "Test classes for authors of a sketch.",
        modules=("testing",),
        found_by_search=False,
    ),
)
# Names that are defined together and share a page: they are small, or differ in their capital letters alone.
FAMILIES = {
    "sketchbandit.errors": "Errors and warnings",
    "sketchbandit.explore.choice": "Choice and ActionChoice",
    "sketchbandit.sketch.singular_values": "spectrum and Spectrum",
    "sketchbandit.arms.catalogue": "Catalogue and Offer",
    "sketchbandit.evaluation.replay_method": "replay and Replay",
}


@dataclass
class Page:
    """One page: its title, and the objects on it."""

    title: str
    path: str
    objects: list[str] = field(default_factory=list)
    summary: str = ""
    options: str = ""
    found_by_search: bool = True
    hidden: tuple[str, ...] = MACHINERY  # members that are not shown

    @property
    def markdown(self) -> str:
        """What mkdocstrings turns into the page."""
        head = f"---\ntitle: {self.title}\n"
        if not self.found_by_search:
            head += "search:\n  exclude: true\n"
        head += "---\n\n"
        alone = len(self.objects) == 1
        heading = "" if alone else f"# {self.title}\n\n"
        return head + heading + "\n".join(self._block(name, 1 if alone else 2) for name in self.objects)

    def _block(self, name: str, level: int) -> str:
        shown = f'      filters: ["!^_", "!^({"|".join(self.hidden)})$"]\n'
        return f"::: {name}\n    options:\n      heading_level: {level}\n{shown}{self.options}"


class Reference:
    """All pages, in their groups."""

    def __init__(self, root: Path) -> None:
        loader = griffe.GriffeLoader(search_paths=[root / "src", *(root / part for part in OTHERS.values())])
        self._packages = {name: loader.load(name) for name in (PACKAGE, *OTHERS)}
        loader.resolve_aliases()
        self._placed: set[str] = set()  # canonical paths
        self.groups = [(group, list(self._pages_of(group))) for group in GROUPS]
        paths = [page.path.lower() for page in self.pages]
        doubled = {path for path in paths if paths.count(path) > 1}
        lost = [name for name in self._names_of(PACKAGE) if self._object(PACKAGE, name) not in self._placed]
        if doubled or lost:
            raise PluginError(
                f"docs/hooks/reference.py: two pages have one path: {doubled}; no group: {lost}"
            )

    @property
    def pages(self) -> list[Page]:
        """Those of all groups."""
        return [page for _, pages in self.groups for page in pages]

    def _pages_of(self, group: Group) -> Iterator[Page]:
        pages: dict[str, Page] = {}
        prefixes = tuple(f"{PACKAGE}.{module}" for module in group.defined)
        wanted = [
            (PACKAGE, name)
            for name in self._names_of(PACKAGE)
            if any(f"{self._object(PACKAGE, name)}.".startswith(f"{prefix}.") for prefix in prefixes)
        ]
        for module in group.exported:
            path = _full(module)
            wanted += [(path, name) for name in self._names_of(path)]
        rank = {name: place for place, name in enumerate(group.first)}
        for parent, name in sorted(wanted, key=lambda pair: rank.get(pair[1], len(rank))):
            target = self._object(parent, name)
            if target in self._placed:
                continue
            self._placed.add(target)
            home = target.rpartition(".")[0]
            title = FAMILIES.get(home, name)
            key = home if home in FAMILIES else f"{parent}.{name}"
            if key not in pages:
                pages[key] = self._page(title, group, self._file_name(parent, name, home))
                pages[key].summary = self._summary(target)
            # A function that is named like its module can only be found where it is defined.
            pages[key].objects.append(target if home.endswith(f".{name}") else f"{parent}.{name}")
        yield from pages.values()
        for module in group.modules:
            yield self._page_of_module(module, group, self._exports(_full(module)))
        for part in group.parts:
            yield from self._pages_of_part(part, group)

    def _pages_of_part(self, part: str, group: Group) -> Iterator[Page]:
        members: dict[str, list[str]] = {}
        for name in self._exports(f"{PACKAGE}.{part}") or []:
            target = self._object(f"{PACKAGE}.{part}", name)
            if target not in self._placed:
                self._placed.add(target)
                home = target.rpartition(".")[0].removeprefix(f"{PACKAGE}.")
                members.setdefault(home, []).append(name)
        for home in sorted(members):
            yield self._page_of_module(home, group, members[home])

    def _page_of_module(self, module: str, group: Group, members: list[str] | None) -> Page:
        path = _full(module)
        page = self._page(module, group, module.rpartition(".")[2])
        page.objects.append(path)
        page.summary = self._summary(path)
        if members is not None:
            page.options = f"      members: [{', '.join(members)}]\n"
        return page

    def _page(self, title: str, group: Group, file_name: str) -> Page:
        path = f"reference/{group.folder}/{file_name}.md"
        hidden = MACHINERY if group.folder in WRITTEN_BY_AUTHORS else (*MACHINERY, *STATE)
        return Page(title, path, found_by_search=group.found_by_search, hidden=hidden)

    def _file_name(self, parent: str, name: str, home: str) -> str:
        if home in FAMILIES:
            return home.rpartition(".")[2]
        part = parent.rpartition(".")[2]
        return f"{part}-{name}" if parent.count(".") and part in {"dask", "outofcore"} else name

    def _exports(self, path: str) -> list[str] | None:
        if path == PACKAGE:
            return sketchbandit.__all__
        names = self._module(path).exports
        return None if names is None else [str(name) for name in names]

    def _names_of(self, path: str) -> list[str]:
        """The classes and functions that a module exports."""
        module = self._module(path)
        names = [name for name in self._exports(path) or [] if name not in NOT_OBJECTS]
        return [name for name in names if not module[name].is_attribute]

    def _module(self, path: str) -> griffe.Object | griffe.Alias:
        package, _, below = path.partition(".")
        return self._packages[package][below] if below else self._packages[package]

    def _object(self, parent: str, name: str) -> str:
        """Where a name is defined."""
        found = self._module(parent)[name]
        if found.is_module:  # a function that is named like its module hides behind it
            return f"{found.canonical_path}.{name}"
        return str(found.canonical_path)

    def _summary(self, path: str) -> str:
        docstring = self._module(path).docstring
        if docstring is None:
            raise PluginError(f"{path} has no docstring")
        sentence = docstring.value.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        return NAMED_PAGE.sub(r"[\1](\1.md)", sentence)

    def linked(self, content: str, path: str) -> str:
        """The page with a link wherever it says "as for" of another object that has a page."""
        here = next(page for page in self.pages if page.path == path)
        home = here.objects[0].rpartition(".")[0]

        def link(found: re.Match[str]) -> str:
            named = [
                (page, name) for page in self.pages for name in page.objects if name.endswith(f".{found[2]}")
            ]
            beside = [(page, name) for page, name in named if name.rpartition(".")[0] == home]
            meant = beside or named
            if len(meant) != 1:
                return found[0]
            ((page, name),) = meant
            address = f"../{page.path.removeprefix('reference/').removesuffix('.md')}.html#{name}"
            return f'{found[1]} <a href="{address}"><code>{found[2]}</code></a>'

        return LIKE.sub(link, content)

    def listed(self) -> str:
        """The list of all pages, in Markdown."""
        lines: list[str] = []
        for group, pages in self.groups:
            lines += [f"## {group.title}", "", group.says, "", "| name | what it is |", "| --- | --- |"]
            lines += [f"| [`{page.title}`]({page.path}) | {page.summary} |" for page in pages]
            lines.append("")
        return "\n".join(lines)


def _full(module: str) -> str:
    return module if module.partition(".")[0] in OTHERS else f"{PACKAGE}.{module}"


_made: dict[str, Reference] = {}


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, below the page that lists them."""
    root = Path(config.config_file_path).parent
    made = _made[config.config_file_path] = Reference(root)
    for entry in config.nav:
        if "Reference" in entry:
            entry["Reference"] = [
                {"All pages": entry["Reference"]},
                *({group.title: [{page.title: page.path} for page in pages]} for group, pages in made.groups),
            ]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages themselves."""
    for page in _made[config.config_file_path].pages:
        files.append(File.generated(config, page.path, content=page.markdown))
    return files


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Write the list where the page asks for it."""
    if LIST not in markdown:
        return markdown
    return markdown.replace(LIST, _made[config.config_file_path].listed())


def on_page_content(content: str, *, page: Any, config: Any, **_: Any) -> str:
    """Link the pages and objects that docstrings name, and keep source code out of the search index."""
    if not page.file.src_uri.startswith("reference/"):
        return content
    content = content.replace(SOURCE, f"{SOURCE} data-search-exclude")
    content = _made[config.config_file_path].linked(content, page.file.src_uri)
    return NAMED_PAGE.sub(lambda found: f'<a href="../../{found[1]}.html">{found[1]}</a>', content)
