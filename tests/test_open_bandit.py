"""Logs of the Open Bandit Dataset: read as they are shipped, and judged position by position."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sketchbandit as sb
from sketchbandit.evaluation import evaluate
from sketchbandit.evaluation.open_bandit import at_positions, open_bandit_log, shown_shares

ITEMS = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two small logs in the layout of the data set."""
    monkeypatch.setenv("SKETCHBANDIT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    for policy in ("random", "bts"):
        rows = 900
        shares = np.full((3, ITEMS), 0.25) if policy == "random" else np.array([[4, 3, 2, 1]] * 3) / 10
        position = np.arange(rows) % 3
        item = np.array([random.choice(ITEMS, p=shares[place]) for place in position])
        click = random.random(rows) < 0.1 + 0.1 * item
        frame = pd.DataFrame(
            {
                "timestamp": pd.date_range("2019-11-24", periods=rows, freq="min", tz="UTC").astype(str),
                "item_id": item,
                "position": position + 1,
                "click": click.astype(int),
                "propensity_score": shares[position, item],
                "user_feature_0": np.array(["a", "b"])[random.integers(2, size=rows)],
                **{f"user-item_affinity_{i}": 0.0 for i in range(ITEMS)},
            }
        )
        place = tmp_path / "obd" / policy / "all"
        place.mkdir(parents=True)
        frame.to_csv(place / ("all.csv.gz" if policy == "bts" else "all.csv"))
    return tmp_path


def test_each_log_tells_of_the_other(folder: Path) -> None:
    """Estimates of one policy from the other's log agree with its own clicks; all methods, all positions."""
    del folder
    logs = {policy: sb.data.load_open_bandit(policy) for policy in ("random", "bts")}
    assert shown_shares(logs["bts"]).sum(axis=1) == pytest.approx([1.0] * 3)
    for of, by in (("bts", "random"), ("random", "bts")):
        log = open_bandit_log(logs[by])
        assert (log.dim, log.is_uniform) == (ITEMS + 3 + 2 + 1, by == "random")
        candidate = at_positions(shown_shares(logs[of]), logs[by])
        found = evaluate(log, {of: candidate}, ("ips", "snips", "dr", "drs"))
        for row in found:
            assert abs(row.value - logs[of].click.mean()) < 0.06, row


def test_what_is_not_here_or_not_such_a_log(folder: Path) -> None:
    """Where to put it; what it lacks."""
    assert sb.data.find_open_bandit("bts", "men") is None
    with pytest.raises(FileNotFoundError, match=r"obd/bts/men/men\.csv"):
        sb.data.load_open_bandit("bts", "men")
    with pytest.raises(sb.InputError, match="policies are random, bts"):
        sb.data.load_open_bandit("ucb")
    path = folder / "obd" / "random" / "all" / "all.csv"
    path.write_text("item_id,click\n1,0\n")
    with pytest.raises(sb.FileError, match="lacks timestamp, position, propensity_score"):
        sb.data.load_open_bandit("random")
    path.write_bytes(b"\x1f\x8b broken \x00")
    with pytest.raises(sb.FileError, match=r"all\.csv"):
        sb.data.load_open_bandit("random")


def test_logs_that_are_damaged(folder: Path) -> None:
    """Cut off within a row or after the header, or with a value that cannot be: a message, no traceback."""
    path = folder / "obd" / "random" / "all" / "all.csv"
    lines = path.read_text().splitlines()
    row = lines[1].split(",")
    for text, said in (
        ("\n".join([*lines[:4], ",".join(row[:4])]), "row 3 has no click: it was cut off"),
        (lines[0], "no rows"),
        ("\n".join([lines[0], ",".join([row[0], "yesterday", *row[2:]])]), "a timestamp is not a time"),
        ("\n".join([lines[0], ",".join([*row[:2], "9", *row[3:]])]), "item_id must be 0 to 3, got 9"),
        ("\n".join([lines[0], ",".join([*row[:3], "0", *row[4:]])]), "position must be 1 to 3, got 0"),
    ):
        path.write_text(text + "\n")
        with pytest.raises(sb.FileError, match=said):
            sb.data.load_open_bandit("random")
