"""DataFrames: columns mean what their names say, in whatever order they come."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sketchbandit as sb
from tests.policies import EVERY, saved

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

NAMES = ["age", "price", "clicks", "stock"]


def frame(count: int = 30, seed: int = 0) -> pd.DataFrame:
    """Rows with names."""
    return pd.DataFrame(np.random.default_rng(seed).standard_normal((count, 4)), columns=NAMES)


def make(name: str) -> Any:
    """A small policy."""
    return EVERY[name](4, size=3, ridge=1.0, beta=0.3)


@pytest.mark.parametrize("name", EVERY)
def test_columns_in_another_order_mean_the_same(name: str) -> None:
    """Select, top, mean, update: a frame, a row of it, several rows; in any order of columns."""
    known, shuffled = make(name), make(name)
    arms, other = frame(), frame()[["stock", "age", "clicks", "price"]]
    for policy, later in ((known, arms), (shuffled, other)):
        policy.update(arms, arms["age"].to_numpy())
        policy.update(later.iloc[3], 1.0)
        policy.update(later.iloc[[4]], 1.0)
        policy.update(later, later["price"].to_numpy())
    assert saved(known) == saved(shuffled)
    assert known.columns == tuple(NAMES)
    for ask in ("mean", "width", "ucb", "select"):
        assert np.array_equal(getattr(known, ask)(arms), getattr(shuffled, ask)(other))
    assert np.array_equal(known.top(arms, 3), known.top(other, 3))
    assert np.array_equal(known.mean(arms.to_numpy()), known.mean(other))


@pytest.mark.parametrize("name", ["soful", "cbrap"])
def test_other_columns_are_refused(name: str) -> None:
    """A name that was not there before, or is missing: the message says which, and nothing changes."""
    policy = make(name)
    policy.select(frame())  # the first to name them
    before = saved(policy)
    with pytest.raises(sb.InputError, match="'price' missing; 'cost' unknown"):
        policy.update(frame().rename(columns={"price": "cost"}), np.zeros(30))
    with pytest.raises(sb.InputError, match="'stock' missing; 'clicks' there twice"):
        policy.select(frame()[["age", "price", "clicks", "clicks"]])
    assert saved(policy) == before


@pytest.mark.parametrize("name", ["soful", "cbrap"])
def test_a_rejected_frame_leaves_no_names(name: str) -> None:
    """A call that raises has changed nothing, names included."""
    policy, bad = make(name), frame()
    bad.iloc[2, 1] = np.nan
    with pytest.raises(sb.InputError):
        policy.update(bad, np.zeros(30))
    with pytest.raises(sb.InputError):
        policy.select(bad)
    with pytest.raises(sb.InputError, match="length 3"):
        policy.select(frame()[NAMES[:3]])
    assert policy.columns is None


@pytest.mark.parametrize("name", ["soful", "cbrap"])
def test_names_are_saved_and_merged(name: str, tmp_path: Path) -> None:
    """A loaded policy knows them; two that know different ones do not merge."""
    policy, other, silent = make(name), make(name), make(name)
    policy.update(frame(), np.zeros(30))
    policy.save(tmp_path / "p")
    assert sb.load(tmp_path / "p").columns == tuple(NAMES)
    other.update(frame()[NAMES[::-1]], np.zeros(30))
    before = saved(policy)
    with pytest.raises(ValueError, match="different columns"):
        policy.merge(other)
    assert saved(policy) == before
    silent.merge(policy)
    assert silent.columns == tuple(NAMES)


@pytest.mark.parametrize(
    "sketch",
    [lambda: sb.FrequentDirections(4, size=3), lambda: sb.BulkReader(sb.FrequentDirections(4, size=3))],
)
def test_sketches_know_names_too(sketch: Callable[[], Any], tmp_path: Path) -> None:
    """Of a stream as of a matrix that is read in pieces."""
    known, shuffled = sketch(), sketch()
    for made, later in ((known, frame(seed=1)), (shuffled, frame(seed=1)[NAMES[::-1]])):
        made.update(frame())
        made.update(later)
    one, other = (made.finish() if isinstance(made, sb.BulkReader) else made for made in (known, shuffled))
    assert np.array_equal(one.rows, other.rows)
    assert one.columns == tuple(NAMES)
    one.save(tmp_path / "s")
    assert sb.load(tmp_path / "s", sb.Sketch).columns == tuple(NAMES)


def test_positions_are_no_names_but_have_an_order() -> None:
    """Columns 0, 1, ... in any order are positions; other integers, alone or among strings, are names."""
    policy: Any = make("soful")
    plain = pd.DataFrame(np.random.default_rng(0).standard_normal((6, 4)))
    policy.update(plain, np.zeros(6))
    assert np.array_equal(policy.width(plain), policy.width(plain[[2, 0, 3, 1]]))
    policy.update(plain.to_numpy(), np.zeros(6))
    policy.update([[1.0, 0.0, 0.0, 0.0]], [0.0])
    assert not policy.columns
    mixed = plain.rename(columns={0: "a", 1: "b", 2: 7, 3: 9})
    policy.update(mixed, np.zeros(6))
    assert policy.columns == ("a", "b", 7, 9)
    assert np.array_equal(policy.width(mixed), policy.width(mixed[[9, "a", 7, "b"]]))


def test_frames_of_several_kinds_of_numbers() -> None:
    """Booleans and nullable integers beside floats are numbers; what is none is refused by its name."""
    policy, rows = make("soful"), frame()
    kinds = rows.assign(age=rows["age"] > 0, stock=pd.array(range(30), dtype="Int64"))
    policy.update(kinds, np.zeros(30))
    policy.update(kinds.iloc[0], 1.0)
    expected = make("soful")
    expected.update(kinds.astype(float), np.zeros(30))
    expected.update(kinds.iloc[0].astype(float), 1.0)
    assert saved(policy) == saved(expected)
    with pytest.raises(sb.InputTypeError, match=r"column 'age'.*frame.astype"):
        policy.select(rows.assign(age="old"))
    with pytest.raises(sb.InputError, match="contains nan"):
        policy.select(rows.assign(stock=pd.array([None] * 30, dtype="Int64"), age=True))


def test_spectrum_takes_sketches_only() -> None:
    """And says where a policy's is."""
    with pytest.raises(sb.InputTypeError, match=r"policy\.sketch"):
        sb.spectrum(make("soful"))
    with pytest.raises(sb.InputError, match="at least 0"):
        sb.spectrum(sb.FrequentDirections(4, size=3), -1)
