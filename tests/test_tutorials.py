"""The tutorials run, end in a picture, and have the pages that the scripts say; and the tool for that."""

import re
from pathlib import Path

import pytest
from tutorials.build import TutorialError, build, check_page, main, page_name, read_cells, scripts

ROOT = Path(__file__).parents[1]
PICTURE = re.compile(r"!\[([^\]\n]+)\]\(\.\./images/tutorials/([\w.-]+\.png)\)")
SCRIPT = """# %% [markdown]
# # A title
#
# Prose about `rounds`.

# %%
rounds = 4_000  # short: 3
text = "# no comment"

# %%
for number in range(2):
    print("round", number, "of", rounds)

# %% [markdown]
# The end: [next](../bandits.md).
"""
PLOT = """
# %%
import matplotlib.pyplot as plt

plt.plot([1, 2], [3, 4])
plt.title("It grows [a lot]")
plt.show()
"""


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_a_tutorial_runs_in_short_form_and_draws(script: Path, tmp_path: Path) -> None:
    """Every script runs, with the values of the short form, and ends in at least one figure."""
    page = build(script, tmp_path, short=True)
    pictures = PICTURE.findall(page.read_text(encoding="utf-8"))
    assert pictures, "a tutorial ends in a picture"
    for _, name in pictures:
        assert (tmp_path / "images" / "tutorials" / name).stat().st_size > 5_000


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_the_committed_page_is_that_of_the_script(script: Path) -> None:
    """Prose and code are those of the script, every picture is there, and the page says where to go on."""
    page = ROOT / "docs" / "tutorials" / f"{page_name(script)}.md"
    check_page(script, page)
    text = page.read_text(encoding="utf-8")
    pictures = PICTURE.findall(text)
    assert pictures, "a tutorial ends in a picture"
    for _, name in pictures:
        assert (ROOT / "docs" / "images" / "tutorials" / name).stat().st_size > 5_000
    first, *_, last = read_cells(script)
    assert not first.is_code
    assert first.source.startswith("# "), "a page begins with its title"
    assert "minutes" in first.source, "it says how long it takes to read"
    assert not last.is_code
    links = re.findall(
        r"\]\(([^)#]+)", "".join(cell.source for cell in read_cells(script) if not cell.is_code)
    )
    assert "](" in last.source, "it ends with what to read next"
    for link in links:
        assert link.startswith("https://") or (page.parent / link).is_file(), f"no such page: {link}"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A small tutorial with an underscore in its name."""
    path = tmp_path / "two_words.py"
    path.write_text(SCRIPT + PLOT, encoding="utf-8")
    return path


def test_a_page_has_prose_code_output_and_figure(script: Path, tmp_path: Path) -> None:
    """What a cell printed stands under its code, and its figure with the title as alternative text."""
    page = build(script, tmp_path / "out", short=False)
    assert page == tmp_path / "out" / "tutorials" / "two-words.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# A title\n\nProse about `rounds`.\n\n```python\nrounds = 4_000\n")
    assert 'text = "# no comment"\n```\n\n```python\nfor number' in text
    assert "```\n\n```text\nround 0 of 4000\nround 1 of 4000\n```\n\nThe end" in text
    assert "![It grows (a lot)](../images/tutorials/two-words.png)" in text
    assert "# short:" not in text
    picture = tmp_path / "out" / "images" / "tutorials" / "two-words.png"
    before = picture.read_bytes()
    build(script, tmp_path / "out", short=False)
    assert picture.read_bytes() == before  # the same figure gives the same file
    check_page(script, page)


def test_short_form_uses_the_values_behind_the_comment(script: Path, tmp_path: Path) -> None:
    """They are put into the code that runs, not into the code that is shown."""
    text = build(script, tmp_path / "out", short=True).read_text(encoding="utf-8")
    assert "rounds = 4_000\n" in text
    assert "round 0 of 3\n" in text


def test_several_figures_are_numbered(script: Path, tmp_path: Path) -> None:
    """Figures of one cell and of several: -2, -3 and so on."""
    script.write_text(SCRIPT + PLOT + PLOT + "plt.figure()\nplt.plot([1])\nplt.title('third')\n", "utf-8")
    text = build(script, tmp_path / "out", short=False).read_text(encoding="utf-8")
    assert [name for _, name in PICTURE.findall(text)] == [
        "two-words.png",
        "two-words-2.png",
        "two-words-3.png",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prose about", "Prose on"),
        ("range(2)", "range(3)"),
        ("4_000", "5_000"),
        ("The end:", "The very end:"),
        (PLOT, PLOT + "\n# %% [markdown]\n# One more word.\n"),
        (PLOT, ""),
    ],
)
def test_a_page_that_drifted_is_noticed(script: Path, tmp_path: Path, old: str, new: str) -> None:
    """Another word, value or cell in the script: the page has to be made anew."""
    page = build(script, tmp_path / "out", short=False)
    script.write_text(script.read_text(encoding="utf-8").replace(old, new), "utf-8")
    with pytest.raises(TutorialError, match=r"two-words\.md .*python -m tutorials\.build two_words"):
        check_page(script, page)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x = 1\ny = x / 0", r"two_words\.py, cell 6, line 26: ZeroDivisionError"),
        ("def f():\n    return z\n\n\nf()", r"cell 6, line 26: NameError: name 'z'"),
        ("x = (1", r"cell 6, line 25: SyntaxError"),
        ("import warnings\nwarnings.warn('odd', stacklevel=1)", r"cell 6, line 26: UserWarning: odd"),
        ("plt.figure()", r"cell 6, line 25: the figure has no title"),
        ("f(3)  # short: 3", r'line 25: "# short:" needs the form'),
    ],
)
def test_an_error_names_its_cell_and_line(script: Path, tmp_path: Path, cell: str, message: str) -> None:
    """Lines are those of the script, also inside functions."""
    script.write_text(SCRIPT + PLOT + f"\n# %%\n{cell}\n", encoding="utf-8")
    with pytest.raises(TutorialError, match=message):
        build(script, tmp_path / "out", short=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print(1)\n", "there are no cells"),
        ("import os\n# %%\n", "line 1: code before the first cell"),
        ("# %% [markdown]\nprint(1)\n", "line 2: a line of a Markdown cell"),
        ("# %% [raw]\n", "line 1: .* is not"),
    ],
)
def test_a_script_in_another_form_is_refused(script: Path, text: str, message: str) -> None:
    """The message says which line it is."""
    script.write_text(text, encoding="utf-8")
    with pytest.raises(TutorialError, match=message):
        read_cells(script)


def test_the_command_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name ends with a list of the tutorials."""
    with pytest.raises(SystemExit):
        main(["nonesuch"])
    error = capsys.readouterr().err
    assert "no tutorial 'nonesuch'" in error
    assert all(script.stem in error for script in scripts())
