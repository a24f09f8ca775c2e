"""The documentation as a site: it builds without a warning, works offline, and has a page for every name."""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import griffe
import pytest

import sketchbandit as sb
from sketchbandit.errors import InputError
from sketchbandit.files import lock_folder

ROOT = Path(__file__).resolve().parents[1]
WORDS = {  # what people look for, and a page that should be among those found
    "install": "index.html",
    "save": "reference/policies/LinUCB.html",
    "drift": "beyond-results.html",
    "thompson": "reference/explore/Thompson.html",
    "disjoint": "reference/policies/PerAction.html",
    "logistic": "reference/rewards/Logistic.html",
}


def build(folder: Path) -> None:
    """Run what `make docs` runs."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder / "site"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "said").write_text(f"{done.returncode}\n{done.stderr}", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all processes that run tests, and beside it what the build said."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "documentation"
    shared.mkdir(exist_ok=True)
    while True:
        try:
            lock = lock_folder(shared)
            break
        except InputError:  # another process builds it
            time.sleep(0.2)
    with lock:
        if not (shared / "said").exists():
            build(shared)
    return shared


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    """Every page by its path."""
    site = folder / "site"
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")
    }


@pytest.fixture(scope="module")
def entries(folder: Path) -> list[dict[str, Any]]:
    """What search looks through."""
    index = (folder / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(index)["docs"]
    return found


def hook(name: str) -> ModuleType:
    """A module of docs/hooks, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def anchors(page: str) -> frozenset[str]:
    """The ids of a page."""
    return frozenset(map(unescape, re.findall(r'\sid="([^"]+)"', page)))


def test_the_build_is_strict_and_says_nothing(folder: Path) -> None:
    """No warning: not of a link, an anchor, a page outside the navigation, or a docstring."""
    code, _, said = (folder / "said").read_text(encoding="utf-8").partition("\n")
    assert code == "0", said
    assert "WARNING" not in said


def test_nothing_comes_from_elsewhere(folder: Path, pages: dict[str, str]) -> None:
    """Scripts, styles, fonts and pictures are files of the site."""
    loaded = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\ssrc="([^"]*)"|<link\b[^>]*\shref="([^"]*)"')
    for path, page in pages.items():
        for found in loaded.finditer(page):
            assert not re.match(r"(https?:)?//", found[1] or found[2]), f"{path}: {found[0]}"
    sheets = [*(folder / "site").rglob("*.css")]
    assert sheets
    for sheet in sheets:
        assert not re.search(
            r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")
        ), sheet


def test_every_link_of_the_built_pages_leads_somewhere(pages: dict[str, str], folder: Path) -> None:
    """The strict build checks those of Markdown; this checks those of docstrings and templates too."""
    broken = []
    for path, page in pages.items():
        if path == "404.html":  # its links count from the root of a server
            continue
        here = (folder / "site" / path).parent
        for link in set(re.findall(r'<a\b[^>]*\shref="([^"]*)"', page)):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = unquote(unescape(link)).partition("#")
            target = (here / file).resolve() if file else folder / "site" / path
            if target.is_dir() or not target.exists():
                broken.append((path, link))
            elif anchor and target.suffix == ".html":
                other = pages[target.relative_to((folder / "site").resolve()).as_posix()] if file else page
                if anchor not in anchors(other):
                    broken.append((path, link))
    assert not broken


def public_objects() -> list[set[str]]:
    """The public classes and functions, those of public modules too: the paths by which each is known."""
    return [
        {
            f"{at.__name__}.{known}"
            for at in (holder, sb)
            for known in at.__all__
            if getattr(at, known) is thing
        }
        | {f"{thing.__module__}.{thing.__qualname__}"}
        for holder in (sb, sb.data, sb.evaluation, sb.theory)
        for name in holder.__all__
        if hasattr(thing := getattr(holder, name), "__qualname__")
    ]


def test_every_public_name_has_a_page(pages: dict[str, str]) -> None:
    """With its source on it."""
    wanted = public_objects()
    assert len(wanted) > 90
    reference = {path: page for path, page in pages.items() if path.startswith("reference/")}
    known = {anchor for page in reference.values() for anchor in anchors(page)}
    assert not [paths for paths in wanted if not paths & known]
    assert not [path for path, page in reference.items() if "mkdocstrings-source" not in page]
    for name in ("LinUCB", "adaptive", "PerAction"):  # one page each
        assert f"sketchbandit.{name}" in anchors(pages[f"reference/policies/{name}.html"])


def test_doctests_are_code_not_quotations(pages: dict[str, str]) -> None:
    """A bare `>>>` would be a quotation three times nested."""
    examples = 0
    for path, page in pages.items():
        if path.startswith("reference"):
            assert "<blockquote" not in page, path
            outside = re.sub(r"<pre\b.*?</pre>", "", page, flags=re.DOTALL)
            assert "&gt;&gt;&gt;" not in outside, path
            examples += page.count('class="language-pycon')
    assert examples > 50


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("Says.\n\n>>> 1\n1", "Says.\n\n```pycon\n>>> 1\n1\n```"),
        ("Says:\n>>> 1\n1\n\nMore.", "Says:\n\n```pycon\n>>> 1\n1\n```\n\nMore."),
        ("- item\n\n  >>> 1\n  1\n", "- item\n\n  ```pycon\n  >>> 1\n  1\n  ```"),
        ("```\n>>> 1\n```", "```\n>>> 1\n```"),
        (">>> a\n\n>>> b", "```pycon\n>>> a\n```\n\n```pycon\n>>> b\n```"),
        ("No example.", "No example."),
    ],
)
def test_fences_are_added_where_they_are_missing(docstring: str, markdown: str) -> None:
    """And nowhere else; to do it twice changes nothing."""
    fenced = hook("doctests").fenced
    assert fenced(docstring) == markdown
    assert fenced(markdown) == markdown


@pytest.mark.parametrize(
    ("docstring", "apart"),
    [
        ("Parameters\n----------\na, b\n    Says.", "Parameters\n----------\na\n    Says.\nb\n    Says."),
        (
            "Parameters\n----------\na, *b : int\n    Says.\n\n    More.\n\n"
            "Returns\n-------\nint, str\n    No.",
            "Parameters\n----------\na : int\n    Says.\n\n    More.\n*b : int\n    Says.\n\n    More.\n\n"
            "Returns\n-------\nint, str\n    No.",
        ),
        ("Parameters\n----------\na : int\n    One, two", "Parameters\n----------\na : int\n    One, two"),
        ("one, two", "one, two"),
    ],
)
def test_parameters_described_together_are_taken_apart(docstring: str, apart: str) -> None:
    """In sections of parameters alone; to do it twice changes nothing."""
    one_by_one = hook("parameters").one_by_one
    assert one_by_one(docstring) == apart
    assert one_by_one(apart) == apart


def parameters_of(page: str) -> dict[str, tuple[str, str, str]]:
    """Of a page about one function: the type, the default and the text of each parameter."""
    listed = page[page.index("Parameters:") : page.index("Returns:")]
    entry = re.compile(r"(\w+) \((.*?)(?:, default: (.*?))? ?\) \u2013 (.*)")
    items = re.findall(r'<li class="doc-section-item field-body">(.*?)</li>', listed, re.DOTALL)
    texts = [" ".join(unescape(re.sub("<[^>]*>", "", item)).split()) for item in items]
    found = [entry.fullmatch(text) for text in texts]
    assert all(found), texts
    return {one[1]: (one[2], one[3] or "", one[4]) for one in found if one}


def test_the_reference_has_the_types_of_the_signatures(pages: dict[str, str]) -> None:
    """Also where a docstring describes several parameters in one entry."""
    settings = griffe.load_extensions(str(ROOT / "docs/hooks/parameters.py"))  # those that recipes share
    library = griffe.load("sketchbandit", search_paths=[ROOT / "src"], extensions=settings)
    recipes = library["policy.recipes"]
    for name in ("soful", "cbscfd", "dbslinucb", "cbrap"):
        page = pages[f"reference/policies/{name}.html"]
        shown = parameters_of(page)
        assert set(shown) == {parameter.name for parameter in recipes[name].parameters}
        for parameter in recipes[name].parameters:
            kind, default, said = shown[parameter.name]
            assert kind == str(parameter.annotation)
            assert default == str(parameter.default or "").removeprefix("np.")
            assert (said == "As for oful.") == (
                parameter.name not in {"size", "epsilon", "compensation", "seed"}
            )
        assert 'As for <a href="../policies/oful.html#sketchbandit.oful"><code>oful</code></a>' in page
    shown = parameters_of(pages["reference/policies/adaptive.html"])
    assert shown["forget"][:2] == ("float", "None")
    assert shown["scaling"][:2] == ("str or Scaling or None", "'auto'")
    assert shown["intercept"][:2] == ("bool or float", "True")


def test_the_reference_does_not_list_the_machinery(pages: dict[str, str]) -> None:
    """What files and threads need is not for users; authors of a rule or model see what they may write."""
    listed = {
        anchor.rpartition(".")[2]
        for path, page in pages.items()
        if path.startswith("reference/")
        for anchor in anchors(page)
    }
    assert {"add", "retire", "save", "merge"} <= listed
    assert not {"content", "read_by", "scaling_due"} & listed
    assert "sketchbandit.PerAction.undump" not in anchors(pages["reference/policies/PerAction.html"])
    assert "sketchbandit.Estimate.dump" in anchors(pages["reference/rewards/Estimate.html"])


@pytest.mark.parametrize(("word", "page"), WORDS.items())
def test_search_finds_what_people_look_for(word: str, page: str, entries: list[dict[str, Any]]) -> None:
    """In the title or the text of a page that answers."""
    found = {
        entry["location"].partition("#")[0]
        for entry in entries
        if re.search(rf"\b{word}", f"{entry['title']} {entry['text']}", re.IGNORECASE)
    }
    assert page in found


def test_search_does_not_know_test_classes_and_source_code(entries: list[dict[str, Any]]) -> None:
    """The shipped laws are documented, but nobody looks for test_merge; no more for lines of code."""
    assert not [entry["location"] for entry in entries if "testing" in entry["location"]]
    text = " ".join(entry["text"] for entry in entries)
    assert "holds_the_lock" in (ROOT / "src/sketchbandit/policy/per_action.py").read_text(encoding="utf-8")
    assert "holds_the_lock" not in text


def test_equations_are_drawn_without_a_script(pages: dict[str, str]) -> None:
    """They are MathML, all of them."""
    page = pages["mathematics.html"]
    assert page.count("<math ") > 100
    assert "<msqrt>" in page
    assert not [path for path, text in pages.items() if "arithmatex" in text]


def test_the_version_and_the_changelog_are_in_sight(pages: dict[str, str]) -> None:
    """On every page, beside the search; the version comes from the package."""
    for path, page in pages.items():
        shown = re.search(r'<a class="release" href="([^"]*)"[^>]*>\s*([^<]*?)\s*</a>', page)
        assert shown, path
        assert shown[1].endswith("changelog.html")
        assert shown[2] == sb.__version__
    assert f">{sb.__version__}" in pages["changelog.html"]
    assert f"version {sb.__version__}" in " ".join(pages["index.html"].split())
