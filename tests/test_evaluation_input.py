"""Logs from files, frames and a service; and what cannot be used is refused with a word of advice."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import sketchbandit as sb
from sketchbandit.evaluation import Log, evaluate, from_frame, read_log, replay, write_log
from sketchbandit.evaluation.parquet import ParquetArms
from sketchbandit.evaluation.report import write_report
from sketchbandit.evaluation.results import Difference, Estimate, differences, numbers
from tests.logs import ARMS, rival, world

GOOD: dict[str, Any] = {
    "arms": np.random.default_rng(0).standard_normal((40, 3, 2)),
    "chosen": np.arange(40) % 3,
    "reward": np.linspace(0.0, 1.0, 40),
    "probability": np.full(40, 1 / 3),
}


def changed(name: str, at: int, value: Any) -> Any:
    """A column with one value changed."""
    column = np.array(GOOD[name], dtype=float)
    column[at] = value
    return column


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"probability": changed("probability", 7, 0.0)}, r"probability 7 is 0\.0 \(1 such rows\).*above 0"),
        ({"probability": changed("probability", 7, np.nan)}, "probability 7 is nan"),
        ({"probability": changed("probability", 7, 1.5)}, r"probability 7 is 1\.5.*not a score"),
        ({"probability": [0.3] * 39 + [None]}, "probability 39 is missing"),
        ({"reward": changed("reward", 3, np.nan)}, "reward 3 is nan.*leave out"),
        ({"reward": changed("reward", 3, np.inf)}, "reward 3 is inf"),
        ({"reward": ["much"] * 40}, "real numbers"),
        ({"reward": np.zeros(39)}, "40 of chosen, 39 of reward"),
        ({"chosen": changed("chosen", 3, 1.5)}, "index of the arm"),
        ({"chosen": changed("chosen", 3, -1)}, "chosen 3 is -1"),
        ({"chosen": changed("chosen", 3, np.nan)}, r"chosen 3 is nan.*needs the index"),
        ({"chosen": [0] * 39 + [None]}, "chosen 39 is missing"),
        ({"reward": pd.array([1] * 39 + [None], dtype="Int64").astype(object)}, "reward 39 is missing"),
        ({"arms": np.array([["a", "b"]])}, "arms must be real numbers"),
        ({"arms": [[["a"]]] * 40}, "arms must be real numbers"),
        ({"arms": [[[1.0], [1.0, 2.0]]] * 40}, "decision 0: a set of arms must be numbers"),
        ({"arms": np.zeros((0, 2))}, "there are no arms"),
        ({"arms": GOOD["arms"][:30]}, "arms for 30 decisions, but 40"),
        ({"arms": None}, "give the arms that were offered"),
        ({"arms": 7}, "arms are an array"),
        ({"arms": None, "context": np.ones((40, 2))}, "context needs actions"),
        ({"time": np.arange(40)[::-1]}, "sort the rows by time"),
    ],
)
def test_columns_that_cannot_be_used(change: dict[str, Any], said: str) -> None:
    """Each with the value seen and the remedy."""
    with pytest.raises((ValueError, TypeError), match=said):
        Log(**{**GOOD, **change})


def test_arms_that_cannot_be_used() -> None:
    """They are read when they are needed, and refused by the number of the decision."""
    arms = GOOD["arms"].copy()
    arms[5, 1, 0] = np.nan
    with pytest.raises(sb.InputError, match="decision 5: its arms contain NaN"):
        evaluate(Log(**{**GOOD, "arms": arms}), {"u": "uniform"})
    with pytest.raises(sb.InputError, match=r"decision 2: arm 9 was chosen, and there are 3"):
        evaluate(Log(**{**GOOD, "chosen": np.where(np.arange(40) == 2, 9, 0)}), {"u": "uniform"})
    with pytest.raises(sb.InputError, match="empty"):
        Log(arms=np.zeros((0, 3, 2)), chosen=[], reward=[], probability=[])
    with pytest.raises(sb.InputError, match="none of the actions"):
        Log(context=np.ones((1, 2)), actions=["a"], chosen=["b"], reward=[1.0], probability=[1.0])


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (sb.oful(5), "reads arms of dimension 5, but those of the log have 2"),
        (sb.PerAction(["a"], lambda: sb.oful(2)), "no contexts"),
        ("greedy", "unknown candidate"),
        (np.full((39, 3), 1 / 3), "40 decisions need as many rows"),
        (np.full((40, 3), 0.5), r"decision 0: its probabilities sum to 1\.5"),
        (lambda _: [1.2, -0.2, 0.0], "not a probability"),
        (lambda _: [0.5, 0.5], "one probability for each of"),
        (3, "a candidate must be a policy"),
    ],
)
def test_candidates_that_cannot_be_judged(candidate: Any, said: str) -> None:
    """Each by its name."""
    with pytest.raises((ValueError, TypeError), match=f"(?s)mine.*{said}"):
        evaluate(Log(**GOOD), {"mine": candidate})


def test_settings_that_make_no_sense() -> None:
    """Methods, intervals, levels, models."""
    log = Log(**GOOD)
    for settings, said in (
        ({"methods": ("magic",)}, "unknown method 'magic'"),
        ({"methods": ()}, "no method"),
        ({"interval": "sure"}, "unknown interval"),
        ({"level": 1.0}, "level"),
        ({"folds": 1}, "folds"),
        ({"model": 3}, "model must be"),
        ({"model": lambda _: np.zeros(3)}, "one number per row"),
        (
            {"interval": "anytime", "methods": ("ips",), "reward_range": (0.0, 0.5)},
            "reward_range is 0 to 0.5",
        ),
        ({"interval": "anytime", "methods": ("dr",), "max_weight": 0.5}, "max_weight is 0.5"),
        ({"reward_range": (0.0, np.inf)}, "two finite numbers"),
        ({"reward_range": (1.0, 0.0)}, "least, most"),
        ({"reward_range": (0.0, 0.5, 1.0)}, "least, most"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            evaluate(log, {"u": "uniform"}, **settings)
    big = Log(**{**GOOD, "reward": 9.0 * GOOD["reward"]})
    with pytest.raises(sb.InputError, match=r"reward_range=\(least, most\)"):
        evaluate(big, {"u": "uniform"}, ("ips",), interval="anytime")
    with pytest.raises(sb.InputError, match="another name"):
        evaluate(log, {"logged": "uniform"})
    with pytest.raises(TypeError, match="by name"):
        evaluate(log, [rival()])  # type: ignore[arg-type]


# -- nothing can be said ------------------------------------------------------------------------------


def test_a_log_without_chance_says_nothing_of_others() -> None:
    """No interval, and the reason; of itself it says the mean reward."""
    log = Log(**{**GOOD, "probability": np.ones(40)})
    same = np.eye(3)[GOOD["chosen"]]
    found = evaluate(log, {"other": np.roll(same, 1, axis=1), "half": "uniform", "same": same}, ("ips", "dm"))
    assert "without chance" in found.weights["other"].verdict
    assert "without chance" in found.weights["half"].verdict
    assert np.isnan(found.of("half", "ips").low)
    assert np.isnan(found.of("half", "dm").low)
    assert np.isfinite(found.of("half", "dm").value)
    assert found.weights["same"].verdict == ""
    assert found.of("same", "ips").value == pytest.approx(log.reward.mean())
    assert "nothing can be said" in repr(found)
    assert found.to_json()["estimates"][0]["low"] is None
    with pytest.raises(sb.InputError, match="without chance"):
        replay(log, {"p": lambda: sb.oful(2)})


def test_too_few_and_never_logged_actions() -> None:
    """An effective size below 30; actions that the log never shows; weights that are not 1 on average."""
    few = evaluate(Log(**GOOD), {"first": [1.0, 0.0, 0.0]}, ("ips",), interval="normal")
    assert "effective sample size is 14, below 30" in few.weights["first"].verdict
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {"chosen": random.integers(2, size=500), "reward": random.random(500)}
    fixed = Log(arms=np.eye(3), probability=np.full(500, 0.5), **columns)
    unseen = evaluate(fixed, {"third": [0.4, 0.3, 0.3]}, ("ips",))
    assert unseen.weights["third"].unlogged == pytest.approx(0.3)
    assert "30% of its choices are actions that were never logged" in unseen.verdicts()["third"]
    arms = np.broadcast_to(np.eye(3), (500, 3, 3)).copy()
    hidden = evaluate(Log(arms=arms, probability=np.full(500, 0.5), **columns), {"third": [0.4, 0.3, 0.3]})
    assert "the mean weight is 0.70, not 1" in hidden.weights["third"].verdict
    none = evaluate(fixed, {"third": [0.0, 0.0, 1.0]}, ("ips", "snips", "clipped"))
    assert "no overlap" in none.weights["third"].verdict
    assert np.isnan([row.low for row in none]).all()


def test_one_decision_says_next_to_nothing(tmp_path: Path) -> None:
    """Not from minus infinity to infinity; and there is a picture all the same."""
    found = evaluate(Log(**GOOD).part(0, 1), {"u": "uniform"})
    assert found.logged.high - found.logged.low > 0.97
    assert np.isnan(found.of("u", "ips").low)
    normal = evaluate(Log(**GOOD).part(0, 1), {"u": "uniform"}, interval="normal")
    assert np.isnan([normal.logged.low, normal.logged.high]).all()
    assert "inf" not in repr(found)
    write_report(found, tmp_path)
    assert (tmp_path / "forest.png").stat().st_size > 5000


def test_equally_many_digits() -> None:
    """The values and their ends, in all rows; a difference has its sign."""
    row = Estimate("p", "ips", 0.7, 0.0451, 0.849, 10.0)
    one, other = row._replace(high=1.2), row._replace(low=np.nan, high=np.nan)
    assert numbers([row, one, other]) == [
        ["0.7000", "0.0451 to 0.8490"],
        ["0.7000", "0.0451 to 1.2000"],
        ["0.7000", "-"],
    ]
    assert numbers([row._replace(value=7.0, high=12345.6)]) == [["7", "0 to 12346"]]
    less = Difference("p", "logged", "ips", 0.02, -0.001, 0.041)
    header, (shown,) = differences([less], 0.95)
    assert dict(zip(header, shown, strict=True))["minus"] == "logged"
    assert shown[3:] == ["+0.02000", "-0.00100 to 0.04100", "no"]


# -- files --------------------------------------------------------------------------------------------


def test_parquet_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same estimates, in several pieces, forwards and again; ragged sets and contexts too."""
    monkeypatch.setattr("sketchbandit.evaluation.parquet._ROWS", 64)
    w = world(700, seed=2)
    write_log(w.log, tmp_path / "log.parquet")
    again = read_log(tmp_path / "log.parquet")
    methods = ("ips", "dr")
    assert list(evaluate(again, {"u": "uniform"}, methods)) == list(
        evaluate(w.log, {"u": "uniform"}, methods)
    )
    _, future = again.split(0.3)
    kept = evaluate(future, {"u": "uniform"}, methods)
    assert list(kept) == list(evaluate(w.log.split(0.3)[1], {"u": "uniform"}, methods))
    ragged = Log(
        arms=[arms[: 2 + i % 2] for i, arms in enumerate(GOOD["arms"])], **_columns(np.zeros(40, int))
    )
    write_log(ragged, tmp_path / "ragged.parquet")
    assert [len(c) for c in next(read_log(tmp_path / "ragged.parquet").chunks()).arms[:2]] == [2, 3]
    named = Log(context=GOOD["arms"][:, 0], actions=["x", "y", "z"], **_columns(GOOD["chosen"]))
    write_log(named, tmp_path / "named.parquet")
    back = read_log(tmp_path / "named.parquet")
    assert (back.actions, back.context_dim, back.dim) == (("x", "y", "z"), 2, 6)
    assert not list(tmp_path.glob(".*"))


def _columns(chosen: Any) -> dict[str, Any]:
    return {"chosen": chosen, "reward": GOOD["reward"], "probability": GOOD["probability"]}


def test_damaged_files(tmp_path: Path) -> None:
    """Cut off, of another kind, without a column, or changed meanwhile: a message that says so."""
    path = tmp_path / "log.parquet"
    write_log(world(50, seed=3).log, path)
    whole = path.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(sb.FileError, match="cut off"):
        read_log(tmp_path / "cut.parquet")
    log = read_log(path)
    path.write_bytes(whole[:200])
    with pytest.raises(sb.FileError, match="cut off"):
        list(log.chunks())
    parquet.write_table(pa.table({"chosen": [1], "reward": [1.0]}), tmp_path / "thin.parquet")
    with pytest.raises(sb.InputError, match="no column probability"):
        read_log(tmp_path / "thin.parquet")
    np.savez(tmp_path / "log.npz", **GOOD)
    assert len(read_log(tmp_path / "log.npz")) == 40
    np.savez(tmp_path / "thin.npz", arms=GOOD["arms"])
    with pytest.raises(sb.InputError, match="no chosen, reward, probability"):
        read_log(tmp_path / "thin.npz")
    (tmp_path / "bad.npz").write_bytes(b"no zip")
    with pytest.raises(sb.FileError, match="damaged"):
        read_log(tmp_path / "bad.npz")
    with pytest.raises(sb.InputError, match=r"one of \.parquet"):
        read_log("log.json")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_log(tmp_path / "absent.parquet")
    with pytest.raises(sb.InputError, match="service evaluate"):
        read_log(tmp_path)
    with pytest.raises(sb.InputError, match=r"the name is log\.csv"):
        write_log(Log(**GOOD), tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"arms": [[1.0, 2.0], [3.0, 4.0]]}, "arms must be a list of lists of numbers per row, got list<"),
        ({"arms": [1.0, 2.0]}, "arms must be a list of lists of numbers per row, got double"),
        ({"arms": [[["a"]], [["b"]]]}, "arms must be a list of lists"),
        ({"context": [[1.0], [2.0]]}, "a log of contexts needs a column actions"),
        ({"context": [1.0, 2.0], "actions": [["a"], ["a"]]}, "context must be a list of numbers"),
        ({"context": [[1.0, 2.0], [3.0]], "actions": [["a"]] * 2}, "row 1 has a context of 1 numbers"),
        ({"context": [[1.0, 2.0], None], "actions": [["a"]] * 2}, "row 1 has a context of 0 numbers"),
        ({"context": [[1.0], [2.0]], "actions": [["a"], None]}, "row 1 has no actions"),
    ],
)
def test_columns_of_another_kind(columns: dict[str, Any], said: str, tmp_path: Path) -> None:
    """By the file, the column and what it must be; nothing of Arrow's own."""
    table = pa.table({"chosen": [0, 0], "reward": [1.0, 0.0], "probability": [0.5, 0.5], **columns})
    parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(sb.InputError, match=said):
        read_log(tmp_path / "log.parquet")


def test_names_in_files(tmp_path: Path) -> None:
    """Chosen by name among what each decision offered; names that are numbers go there and back."""
    numbers = {"reward": [1.0, 0.0], "probability": [0.5, 0.5], "context": [[1.0], [2.0]]}
    table = pa.table({"chosen": ["a", "b"], "actions": [["a", "c"], ["b", "a"]], **numbers})
    parquet.write_table(table, tmp_path / "named.parquet")
    log = read_log(tmp_path / "named.parquet")
    assert log.chosen.tolist() == [0, 0]
    assert next(log.chunks()).chosen_rows.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    table = pa.table({"chosen": ["a", "c"], "actions": [["a", "c"], ["b", "a"]], **numbers})
    parquet.write_table(table, tmp_path / "named.parquet")
    with pytest.raises(sb.InputError, match=r"decision 1: 'c' was chosen, and is none of .*'b', 'a'"):
        read_log(tmp_path / "named.parquet")
    numbered = Log(context=GOOD["arms"][:, 0], actions=[10, 20, 30], **_columns(GOOD["chosen"]))
    write_log(numbered, tmp_path / "numbered.parquet")
    back = read_log(tmp_path / "numbered.parquet")
    assert back.actions == (10, 20, 30)
    assert np.array_equal(back.chosen, GOOD["chosen"])


def test_sparse_arms_of_an_export(tmp_path: Path) -> None:
    """Indices and values become CSR sets; the largest index says the dimension."""
    kind = pa.list_(pa.struct([("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]))
    arms = [[{"indices": [0, 4], "values": [1.0, 2.0]}, {"indices": [1], "values": [3.0]}], None]
    parquet.write_table(pa.table({"arms": pa.array(arms, kind)}), tmp_path / "a.parquet")
    found = ParquetArms(tmp_path / "a.parquet", np.array([0]), None)
    (only,) = found.read(0, 1)
    assert found.dim == 5
    assert only.toarray().tolist() == [[1, 0, 0, 0, 2], [0, 3, 0, 0, 0]]
    mixed = [[{"indices": [1], "values": [3.0]}, {"indices": None, "values": [1.0, 2.0, 3.0]}]]
    parquet.write_table(pa.table({"arms": pa.array(mixed, kind)}), tmp_path / "b.parquet")
    (both,) = ParquetArms(tmp_path / "b.parquet", np.array([0]), None).read(0, 1)
    assert both.toarray().tolist() == [[0, 3, 0], [1, 2, 3]]


def test_frames() -> None:
    """A column of arms, or columns of a context and named actions."""
    w = world(60, seed=4)
    numbers = {"chosen": w.log.chosen, "reward": w.log.reward, "p": w.log.probability}
    frame = pd.DataFrame({**numbers, "arms": list(w.arms)})
    log = from_frame(frame, arms="arms", probability="p")
    one, other = (evaluate(some, {"u": "uniform"}) for some in (log, w.log))
    assert [row.value for row in one] == pytest.approx([row.value for row in other], abs=1e-12)
    with pytest.raises(sb.InputError, match="no column probability"):
        from_frame(frame, arms="arms")
    named = pd.DataFrame({"age": w.arms[:, 0, 0], "shown": np.array(list("abcd"))[w.log.chosen], **numbers})
    found = from_frame(named, context=["age"], chosen="shown", probability="p")
    assert (found.actions, found.dim) == (tuple("abcd"), ARMS)
    numbered = named.assign(shown=np.array([10, 20, 30, 40])[w.log.chosen])
    found = from_frame(numbered, context=["age"], chosen="shown", probability="p")
    assert found.actions == (10, 20, 30, 40)
    assert np.array_equal(found.chosen, w.log.chosen)
    with pytest.raises(sb.InputError, match="some of shown are missing"):
        from_frame(named.assign(shown=None), context=["age"], chosen="shown", probability="p")


def test_a_csv_file(tmp_path: Path) -> None:
    """Columns of the context beside the known ones; an action by its name is a candidate."""
    random = np.random.default_rng(9)
    frame = pd.DataFrame({"age": random.random(300), "hour": random.integers(24, size=300)})
    frame = frame.assign(chosen=random.choice(["mail", "push"], 300), probability=0.5)
    frame = frame.assign(reward=np.where(frame["chosen"] == "push", 1.0, 0.0))
    frame.to_csv(tmp_path / "log.csv", index=False)
    log = read_log(tmp_path / "log.csv")
    assert (log.actions, log.context_dim, len(log)) == (("mail", "push"), 2, 300)
    found = evaluate(log, {"always push": "push", "always mail": "mail"}, ("snips",))
    assert [row.value for row in found] == [1.0, 0.0]
    with pytest.raises(
        sb.InputError, match="unknown candidate 'fax'; give a policy, 'uniform', or an action: m"
    ):
        evaluate(log, {"x": "fax"})
    with pytest.raises(
        sb.InputError, match=r"'city' has 'Rome'; make a column of each value: pandas\.get_dum"
    ):
        from_frame(frame.assign(city="Rome"), context=["age", "city"])
    frame.drop(columns="probability").to_csv(tmp_path / "thin.csv", index=False)
    with pytest.raises(sb.InputError, match="no column probability"):
        read_log(tmp_path / "thin.csv")
    frame[["chosen", "reward", "probability"]].to_csv(tmp_path / "bare.csv", index=False)
    with pytest.raises(sb.InputError, match="no column of the context"):
        read_log(tmp_path / "bare.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(sb.FileError, match="not a CSV file"):
        read_log(tmp_path / "empty.csv")


def test_an_action_that_was_not_always_offered_is_no_candidate() -> None:
    """The decision is named."""
    log = Log.of_actions(
        np.ones((4, 1)),
        [["a", "b"], ["a", "b"], ["b"], ["a", "b"]],
        chosen=["a", "b", "b", "a"],
        reward=np.ones(4),
        probability=[0.5, 0.5, 1.0, 0.5],
    )
    assert evaluate(log, {"x": "b"}, ("ips",))[0].value == 0.75
    with pytest.raises(sb.InputError, match="x, decision 2: 'a' was not offered"):
        evaluate(log, {"x": "a"}, ("ips",))


def test_frames_that_were_read_from_a_file(tmp_path: Path) -> None:
    """pandas reads a list of lists as an array of arrays."""
    w = world(60, seed=4)
    numbers = {"chosen": w.log.chosen, "reward": w.log.reward, "probability": w.log.probability}
    pd.DataFrame({**numbers, "arms": [arms.tolist() for arms in w.arms]}).to_parquet(tmp_path / "f.parquet")
    log = from_frame(pd.read_parquet(tmp_path / "f.parquet"), arms="arms")
    assert np.array_equal(np.array(next(log.chunks()).arms), w.arms)


# -- exports of a service -----------------------------------------------------------------------------


def exported(folder: Path, without: str = "", **changes: Any) -> Path:
    """Two decisions among two arms of four features, as a service exports them, with a column left out."""
    columns: dict[str, Any] = {
        "bandit": ["shop", "shop"],
        "position": [0, 0],
        "arm_index": [0, 1],
        "arm_id": [None, None],
        "propensity": [0.5, 0.5],
        "reward": [1.0, 0.0],
        "arms": [[{"indices": None, "values": [1.0, 2.0, 3.0, 4.0]}] * 2] * 2,
        "actions": pa.nulls(2, pa.list_(pa.string())),
        **changes,
    }
    kind = pa.list_(pa.struct([("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]))
    columns["arms"] = pa.array(columns["arms"], kind)
    table = pa.table({name: values for name, values in columns.items() if name != without})
    parquet.write_table(table, folder / "export.parquet")
    return folder / "export.parquet"


@pytest.mark.parametrize("name", ["reward", "position", "arms", "propensity", "arm_index", "bandit"])
def test_an_export_without_a_column(name: str, tmp_path: Path) -> None:
    """By the name that the export gives it, and no other."""
    assert len(read_log(exported(tmp_path))) == 2
    with pytest.raises(sb.InputError, match=f"there is no column {name}; the file has "):
        read_log(exported(tmp_path, without=name))


def test_an_export_without_a_decision_that_can_be_used(tmp_path: Path) -> None:
    """log_arms is named where that is the reason, and only there."""
    path = exported(tmp_path, position=[0, 1], reward=pa.array([None, 1.0], pa.float64()))
    with pytest.raises(
        sb.InputError, match=r"\(1 row: places after the first; 1 row: the reward is not known yet\)$"
    ):
        read_log(path)
    with pytest.raises(sb.InputError, match=r"\(2 rows: what was offered is not in the log\).*log_arms"):
        read_log(exported(tmp_path, arms=[None, None]))


def test_a_dimension_that_is_not_that_of_the_log(tmp_path: Path) -> None:
    """Refused when the log is read: of exports, of our own files, of contexts, and of arrays."""
    said = "its arms have {} features, but dim .--dim. is 3; leave it out, or give {}"
    with pytest.raises(sb.InputError, match=said.format(4, 4)):
        read_log(exported(tmp_path), dim=3)
    write_log(Log(**GOOD), tmp_path / "log.parquet")
    named = Log(context=GOOD["arms"][:, 0], actions=["x", "y", "z"], **_columns(GOOD["chosen"]))
    write_log(named, tmp_path / "named.parquet")
    np.savez(tmp_path / "log.npz", **GOOD)
    for name in ("log.parquet", "named.parquet", "log.npz"):
        assert len(read_log(tmp_path / name, dim=2)) == 40
        with pytest.raises(sb.InputError, match=said.format(2, 2)):
            read_log(tmp_path / name, dim=3)


@pytest.mark.parametrize(
    "offered",
    [
        {"arms": np.ones((20, 3, 2))},
        {"arms": np.ones((3, 2))},
        {"arms": [np.ones((3, 2))] * 20},
        {"context": np.ones((20, 2)), "actions": ["a", "b", "c"]},
    ],
)
def test_an_arm_that_is_not_there_is_refused_at_once(offered: dict[str, Any]) -> None:
    """When the log is made, not when it is used."""
    with pytest.raises(sb.InputError, match="decision 0: arm 5 was chosen, and there are 3"):
        Log(**offered, chosen=[5] * 20, reward=np.zeros(20), probability=np.full(20, 0.5))
