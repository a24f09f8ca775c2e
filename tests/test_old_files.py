"""Files of the last two versions: they load, say what they said, and go on as they would have gone on."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit import files
from sketchbandit.policy.learner import POLICIES
from sketchbandit.sketch.base import SKETCHES
from tests.files.write import FAMILIES, ROUNDS

FOLDER = Path(__file__).parent / "files"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if (path / "answers.json").is_file())


def answers_of(version: str) -> dict[str, Any]:
    """What its files said."""
    found: dict[str, Any] = json.loads((FOLDER / version / "answers.json").read_text(encoding="utf-8"))
    return found


BY_ROWS = ("0.12.0", "0.13.0", "0.14.0")
"""Versions that counted the arms of a warm-up instead of its requests."""
CASES = [(version, name) for version in VERSIONS for name in answers_of(version)]


def assert_same(found: dict[str, Any], wanted: dict[str, Any], rounding: float) -> None:
    """Numbers to rounding; the rest as it is."""
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        if isinstance(value, (float, list)) and name != "actions":
            np.testing.assert_allclose(found[name], value, rtol=rounding, atol=rounding, err_msg=name)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize(("version", "name"), CASES)
@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.filterwarnings("ignore::sketchbandit.WorldChangedWarning")
def test_a_file_of_an_earlier_version_goes_on(version: str, name: str, tmp_path: Path) -> None:
    """Its numbers, its next choices, and its numbers after them; and it can be saved again.

    A warm-up goes on by the rules of this version: what was seen counts, and the scaling may come out better.
    """
    wanted = answers_of(version)[name]
    _, feed, describe = FAMILIES[wanted["family"]]
    thing: Any = sb.load(FOLDER / version / f"{name}.safetensors")
    assert thing.kind == wanted["kind"]
    rounding = 1e-5 if "float32" in name else 1e-9
    assert_same(describe(thing), wanted["saved"], rounding)
    thing.save(tmp_path / "again.safetensors")
    assert_same(describe(sb.load(tmp_path / "again.safetensors")), wanted["saved"], rounding)
    if version in BY_ROWS and getattr(thing, "is_warming_up", False):
        seen = thing.requests_seen
        feed(thing, 2, ROUNDS)
        assert thing.rounds == wanted["later"]["rounds"]
        assert thing.requests_seen == seen + ROUNDS > ROUNDS
        for seed in range(3, 6):
            feed(thing, seed, ROUNDS)
        assert not thing.is_warming_up
        return
    assert feed(thing, 2, ROUNDS) == wanted["chosen"]
    assert_same(describe(thing), wanted["later"], rounding)


def test_the_last_two_versions_have_files_of_every_kind() -> None:
    """Of every kind of sketch and policy that is ours; a release adds a folder."""
    changelog = (FOLDER.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[?v?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    missing = set(released[:2]) - set(VERSIONS)
    assert not missing, f"write the files of {missing} with tests/files/write.py, from a clone of it"
    ours = {*SKETCHES.built_in, *POLICIES.built_in}
    assert len(ours) >= 9
    for version in released[:2]:
        assert ours <= {answer["kind"] for answer in answers_of(version).values()}


def test_a_file_of_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do: it is not guessed at."""
    newer = files.FORMAT_VERSION + 1
    monkeypatch.setattr(files, "FORMAT_VERSION", newer)
    sb.FrequentDirections(3, size=2).save(tmp_path / "s")
    monkeypatch.undo()
    message = f"format version {newer}, and this sketchbandit reads up to {newer - 1}; upgrade sketchbandit"
    with pytest.raises(sb.FileError, match=message):
        sb.load(tmp_path / "s")
