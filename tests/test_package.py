"""What a stranger meets first: exported names, README, files, errors, the wheel."""

import ast
import copy
import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit import files
from sketchbandit.cli.app import COMMANDS
from sketchbandit.extras import how_to_install
from sketchbandit.testing import snapshot

ROOT = Path(__file__).parents[1]


def test_exported_names() -> None:
    """The public surface, pinned."""
    assert set(sb.__all__) == {
        "ActionChoice",
        "Block",
        "Candidates",
        "Catalogue",
        "Offer",
        "Choice",
        "EpsilonGreedy",
        "Greedy",
        "InverseGap",
        "Thompson",
        "Estimate",
        "Explore",
        "Linear",
        "Logistic",
        "Poisson",
        "Robust",
        "PerAction",
        "Policy",
        "Precision",
        "UCB",
        "register",
        "BulkReader",
        "Change",
        "Classification",
        "Confidence",
        "AdaptiveSketch",
        "DyadicBlockSketch",
        "Environment",
        "ExactSketch",
        "FileError",
        "FrequentDirections",
        "GaussianArms",
        "Clicks",
        "HeavyTails",
        "Rotating",
        "Switching",
        "Health",
        "IncrementalSVD",
        "InputError",
        "InputTypeError",
        "LinUCB",
        "MergeError",
        "MergeKindError",
        "RoundResult",
        "ProjectedLinUCB",
        "RandomProjection",
        "Round",
        "RowError",
        "Scaling",
        "Sketch",
        "SketchBanditError",
        "SketchTooSmallWarning",
        "Spectrum",
        "TooFewDigitsWarning",
        "WorldChangedWarning",
        "__version__",
        "cbrap",
        "cbscfd",
        "data",
        "adaptive",
        "dbslinucb",
        "evaluation",
        "load",
        "oful",
        "play",
        "soful",
        "spectrum",
        "theory",
    }
    assert all(hasattr(sb, name) for name in sb.__all__)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("README.md", marks=pytest.mark.cores),
        *sorted(p.name for p in (ROOT / "docs").glob("*.md")),
    ],
)
def test_python_examples_run(page: str, tmp_path: Path) -> None:
    """Every python block of the README and the docs runs, in order, in one interpreter."""
    path = ROOT / page if page == "README.md" else ROOT / "docs" / page
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    if page == "README.md":
        assert blocks
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if page == "README.md":  # it shows what its example prints
        (shown,) = re.findall(r"```text\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        assert done.stdout == shown


def test_the_readme_can_be_read_at_once() -> None:
    """At most 900 words; the two commands come first; no line of prose is longer than 110 characters."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    top = text.split("## ", 1)[0]
    assert "\nmake run " in top
    assert "\nmake test " in top
    assert max(len(line) for line in text.splitlines() if not line.startswith(("|", "!["))) <= 110


def test_changelog_and_citation_name_this_version() -> None:
    """One version, said in one place and repeated correctly where people read it."""
    assert f"## {sb.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {sb.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_core_imports_nothing_optional() -> None:
    """What it exports needs numpy, scipy and safetensors alone."""
    code = (
        "import sys\n"
        "from sketchbandit import *\n"
        "optional = {'matplotlib', 'sklearn', 'typer', 'rich', 'hypothesis', 'pytest', 'threadpoolctl'}\n"
        "optional |= {'numba', 'pandas', 'pyarrow', 'jinja2', 'platformdirs'}\n"
        "optional |= {'pydantic', 'sqlalchemy', 'httpx', 'dask', 'distributed'}\n"
        "assert not optional & set(sys.modules), optional & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_imported_when_they_are_used() -> None:
    """`import sketchbandit` alone loads no numpy; each name is then that of its module, and is listed."""
    code = (
        "import sys, sketchbandit as sb\n"
        "assert not {'numpy', 'scipy', 'safetensors'} & set(sys.modules)\n"
        "assert set(sb.__all__) <= set(dir(sb))\n"
        "assert sb.oful.__module__ == 'sketchbandit.policy.recipes' and 'oful' in vars(sb)\n"
        "assert sb.sketch.FrequentDirections is sb.FrequentDirections\n"
        "assert not hasattr(sb, 'nonsense')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for name, module in sb._HOMES.items():
        assert getattr(sb, name) is getattr(importlib.import_module(f"sketchbandit.{module}"), name)
    source = ast.parse(Path(sb.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in source.body if isinstance(node, ast.If))
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}
    modules = dict.fromkeys(sb._MODULES, "sketchbandit")
    named = {name: f"sketchbandit.{module}" for name, module in sb._HOMES.items()}
    assert homes == {**modules, **named}, "type checkers see the same names in the same places"
    assert all(alias.asname == alias.name for node in imports for alias in node.names), "and may import them"


@pytest.mark.parametrize("extra", ["service", "client"])
def test_the_hint_to_install_works(extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clone it names the clone, from everywhere; elsewhere it says that a clone is needed."""
    monkeypatch.chdir(ROOT)
    assert how_to_install(extra) == f"pip install -e '.[{extra}]'"
    monkeypatch.chdir(tmp_path)
    assert how_to_install(extra) == f"pip install -e '{ROOT}[{extra}]'"
    assert how_to_install(extra, tmp_path) == f"pip install '.[{extra}]' (in a clone of sketchbandit)"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n', encoding="utf-8")
    assert "in a clone" in how_to_install(extra, tmp_path), "the package lies inside another project"


def test_every_hint_names_an_extra_that_exists() -> None:
    """And all messages ask the same function."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        used |= set(re.findall(r"""how_to_install\(["'](\w+)["']""", text))
        assert "pip install" not in text or path.name == "extras.py", path
    used |= {entry.extra for entry in COMMANDS.values()}
    assert used <= set(extras["optional-dependencies"])
    assert {"service", "client", "dask", "sklearn", "testing", "files"} <= used


def test_the_wheel_holds_the_package(tmp_path: Path) -> None:
    """The built wheel has the code, its type marker and its licence, and imports on its own."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        tmp_path,
        ROOT,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert f"-{sb.__version__}-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "sketchbandit/py.typed" in names
    assert "sketchbandit_paper/report.html.jinja" in names
    assert "sketchbandit/evaluation/report.html.jinja" in names
    pages = ("index.html", "dashboard.css", "dashboard.js")
    assert {f"sketchbandit_service/dashboard/{page}" for page in pages} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    code = "import sketchbandit as sb; assert 'site' in sb.__file__; sb.ExactSketch(3).update([1, 2, 3])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_every_error_is_ours_and_pythons() -> None:
    """The tree of errors: each is a SketchBanditError and the builtin that Python users expect."""
    assert issubclass(sb.InputError, ValueError)
    assert issubclass(sb.InputTypeError, TypeError)
    assert issubclass(sb.MergeError, ValueError)
    assert issubclass(sb.MergeKindError, TypeError)
    assert issubclass(sb.FileError, ValueError)
    for error in (sb.InputError, sb.InputTypeError, sb.MergeKindError, sb.FileError):
        assert issubclass(error, sb.SketchBanditError)


def test_messages_say_what_was_seen() -> None:
    """A width, a NaN with its row, a setting that differs."""
    sketch = sb.FrequentDirections(3, size=2)
    with pytest.raises(sb.InputError, match="length 4, but dim is 3"):
        sketch.update(np.zeros(4))
    with pytest.raises(sb.InputError, match="row 1 contains nan"):
        sketch.update([[1, 2, 3], [1, float("nan"), 3]])
    with pytest.raises(sb.InputError, match=r"row 0 is too long.*1e\+200"):
        sketch.update([1e200, 0, 0])
    with pytest.raises(sb.InputError, match="overflow"):
        sketch.update(np.full((3, 3), 7e153))
    with pytest.raises(sb.MergeError, match="size is 2 here and 3 there"):
        sketch.merge(sb.FrequentDirections(3, size=3))
    with pytest.raises(sb.MergeKindError, match="ExactSketch into FrequentDirections"):
        sketch.merge(sb.ExactSketch(3))
    with pytest.raises(sb.InputError, match="overflows float32"):
        sb.FrequentDirections(3, dtype=np.float32).update([1e39, 0, 0])


def test_copies_share_nothing() -> None:
    """copy.copy is as independent as copy.deepcopy: an update of one leaves the other honest."""
    sketch = sb.FrequentDirections(3, size=2)
    sketch.update(np.eye(3))
    before = snapshot(sketch)
    copy.copy(sketch).update(1e3 * np.ones((5, 3)))
    assert snapshot(sketch) == before


def test_inputs_that_need_a_word_of_advice() -> None:
    """An object array, masked entries and an empty list."""
    sketch = sb.FrequentDirections(3, size=2)
    with pytest.raises(sb.InputTypeError, match="to_numpy"):
        sketch.update(np.array([1.0, True, 2], dtype=object))
    with pytest.raises(sb.InputError, match="masked"):
        sketch.update(np.ma.masked_equal(np.array([1.0, 0.0, 2.0]), 0.0))
    sketch.update(np.ma.masked_equal(np.array([1.0, 3.0, 2.0]), 0.0))
    sketch.update([])
    assert sketch.count == 1


def test_repr_tells_settings_and_state() -> None:
    """What one wants to see at a prompt."""
    sketch = sb.DyadicBlockSketch(30, size=4, epsilon=2.0)
    sketch.update(np.eye(30))
    text = repr(sketch)
    assert "dim=30" in text
    assert "epsilon=2.0" in text
    assert "30 rows seen" in text


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk fails in the middle, the file that was there is whole and no debris is left."""
    path = tmp_path / "s"
    sketch = sb.FrequentDirections(3, size=2)
    sketch.save(path)
    before = path.read_bytes()
    sketch.update(np.ones(3))

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        sketch.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_saving_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    """And so does saving onto a folder; the message names what the user named."""
    with pytest.raises(FileNotFoundError, match=r"no folder .*absent"):
        sb.ExactSketch(3).save(tmp_path / "absent" / "s")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        sb.ExactSketch(3).save(tmp_path)


def test_a_valid_file_with_invalid_contents_is_refused(tmp_path: Path) -> None:
    """A well-formed file whose contents make no sketch raises FileError, not whatever comes up inside."""
    path = tmp_path / "s"
    settings = {"dim": 3, "size": 2, "compensation": 0.0, "dtype": "float64"}
    good = {"settings": settings, "count": 1, "mass": 1.0, "state": {"error": 0.0}}
    rows = np.ones((1, 3))
    for scalars, arrays in (
        ({**good, "state": {}}, {"rows": rows}),
        ({**good, "count": -1}, {"rows": rows}),
        ({**good, "settings": {**settings, "nonsense": 1}}, {"rows": rows}),
        (good, {}),
        (good, {"rows": np.ones((1, 4))}),
        (good, {"rows": np.ones((5, 3))}),
        (good, {"rows": np.full((1, 3), np.nan)}),
    ):
        files.write(path, "frequent-directions", scalars, arrays)
        with pytest.raises(sb.SketchBanditError):
            sb.load(path)
    files.write(path, "unheard-of", good, {"rows": rows})
    with pytest.raises(sb.FileError, match="unheard-of"):
        sb.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("service", "sketchbandit_service"),
        ("service.settings", "sketchbandit_service"),
        ("client", "sketchbandit_service.client"),
        ("experiments", "sketchbandit_paper"),
        ("experiments.verbs", "sketchbandit_paper"),
    ],
)
def test_a_package_that_moved_says_where_it_is(old: str, new: str) -> None:
    """However it is imported; and the new place can be imported."""
    importlib.import_module(new)
    parent, _, name = f"sketchbandit.{old}".rpartition(".")
    asked = rf"is now {re.escape(new)}: import it from there"
    with pytest.raises(ImportError, match=asked):
        importlib.import_module(f"sketchbandit.{old}")
    with pytest.raises(ImportError, match=asked):
        __import__(parent, fromlist=[name])  # from parent import name
