"""Races: baselines, reward rates, standardised columns, and the contextual protocol beside the paper's."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import sketchbandit as sb
from sketchbandit.cli.app import app
from sketchbandit.data import DataSet, load
from sketchbandit.environment import ContextualClassification
from sketchbandit.simulation import environments
from sketchbandit.simulation.environments import said_of_scales, standardised
from sketchbandit.simulation.loop import LateRewards
from sketchbandit.simulation.runs import Run, perform
from sketchbandit.simulation.specs import parse, spec
from sketchbandit_paper import compare, report
from sketchbandit_paper.results import Results
from sketchbandit_paper.tables import table

RANDOM = np.random.default_rng(0)
LABELS = np.arange(90) % 3
FEATURES = RANDOM.standard_normal((90, 6)) + 4.0 * np.eye(6)[LABELS]
"""Three clusters that are easily told apart."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The clusters in a file, one column in other units."""
    path = tmp_path / "mine.csv"
    table_of(FEATURES * [1, 1, 1, 1, 1, 1000.0]).to_csv(path, index=False)
    return path


def table_of(features: Any) -> pd.DataFrame:
    """With its labels."""
    return pd.DataFrame(features, columns=list("abcdef")).assign(label=LABELS)


def contextual(seed: int = 0, **settings: Any) -> ContextualClassification:
    """The clusters, one at a time."""
    return ContextualClassification(FEATURES, LABELS, seed=seed, **settings)


# -- the environment ----------------------------------------------------------------------------------------


def test_a_context_is_one_sample_and_its_label_pays() -> None:
    """Drawn with replacement, normalised, the same from the same seed; frequent labels come more often."""
    rounds = list(contextual(seed=3).rounds(300))
    unit = FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True)
    for drawn in rounds:
        (row,) = np.flatnonzero(np.isclose(unit, drawn.arms).all(axis=1))
        assert drawn.means.tolist() == [float(label == LABELS[row]) for label in range(3)]
        assert [drawn.regret(action) for action in range(3)] == (1.0 - drawn.means).tolist()
        assert drawn.arm(2) == (drawn.arms, 2)
    again, other = list(contextual(seed=3).rounds(20)), list(contextual(seed=4).rounds(20))
    assert all(np.array_equal(one.arms, two.arms) for one, two in zip(rounds, again, strict=False))
    assert not all(np.array_equal(one.arms, two.arms) for one, two in zip(rounds, other, strict=False))
    shares = np.mean([drawn.means for drawn in rounds], axis=0)
    assert np.allclose(shares, 1 / 3, atol=0.1)
    frequent = ContextualClassification(np.eye(10), [0] * 9 + [1])
    assert 0.8 < np.mean([drawn.means[0] for drawn in frequent.rounds(500)]) < 0.97


# -- the contextual protocol --------------------------------------------------------------------------------


def save(tmp_path: Path, features: Any = FEATURES) -> Path:
    """As a file of one's own."""
    path = tmp_path / "rows.npz"
    if sparse.issparse(features):
        rows = features.tocsr()
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape}
        np.savez(path, **parts, y=LABELS)
    else:
        np.savez(path, X=features, y=LABELS)
    return path


def rows_of(path: Path, contender: str, **settings: Any) -> list[dict[str, Any]]:
    """The rows of a run under the contextual protocol."""
    environment = spec("contextual", data=str(path))
    run = Run(kind="play", environment=environment, contender=parse(contender), rounds=200, seed=1, points=4)
    return perform(Run(**{**vars(run), **settings}))


def test_regret_counts_wrong_answers(tmp_path: Path) -> None:
    """Beside a loop by hand over a model per action; regret and reward are the wrong and the right ones."""
    models = sb.PerAction(range(3), lambda: sb.soful(6, size=4))
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for drawn in contextual(seed=1).rounds(200):
            action = int(models.select(drawn.arms))
            wrong.append(action != int(np.argmax(drawn.means)))
            models.update(drawn.arms, action, float(drawn.means[action]))
    rows = rows_of(save(tmp_path), "soful:size=4")
    assert [row["regret"] for row in rows] == [sum(wrong[: row["round"]]) for row in rows]
    assert [row["reward"] for row in rows] == [row["round"] - row["regret"] for row in rows]
    last = rows[-1]
    assert last["sketch_rows"] == sum(one.sketch.row_count for one in models.policies.values())
    assert last["certificate"] == max(one.certificate for one in models.health().values())
    assert last["peak_bytes"] >= last["bytes"] == models.nbytes


def test_models_per_action_are_one_policy_over_blocks(tmp_path: Path) -> None:
    """The oracle: OFUL over arms that hold the context in the block of their action chooses alike."""
    blocks, regret = sb.oful(18, baseline=True), 0.0
    for drawn in contextual(seed=1).rounds(200):
        arms = np.kron(np.eye(3), drawn.arms)
        chosen = blocks.select(arms)
        regret += drawn.regret(chosen)
        blocks.update(arms[chosen], drawn.reward(chosen))
    assert rows_of(save(tmp_path), "oful")[-1]["regret"] == regret > 0.0


def test_rewards_may_be_late(tmp_path: Path) -> None:
    """The action is remembered with its context."""
    models, mail, regret = sb.PerAction(range(3), lambda: sb.oful(6)), LateRewards(20), 0.0
    for drawn in contextual(seed=1).rounds(200):
        action = models.select(drawn.arms)
        regret += drawn.regret(int(action))
        arrived = mail.send(drawn.arm(int(action)), drawn.reward(int(action)))
        if arrived is not None:
            models.update(arrived[0].context, arrived[0].action, arrived[1])
    assert rows_of(save(tmp_path), "oful:delay=20")[-1]["regret"] == regret


def test_sparse_contexts_are_read_as_dense_ones_are(tmp_path: Path) -> None:
    """The same regret from a CSR file."""
    dense, thin = tmp_path / "dense", tmp_path / "sparse"
    dense.mkdir()
    thin.mkdir()
    found = [
        rows_of(save(folder, features), "oful")[-1]["regret"]
        for folder, features in ((dense, FEATURES), (thin, sparse.csr_array(FEATURES)))
    ]
    assert found[0] == found[1]


@pytest.mark.usefixtures("here")
def test_every_policy_plays_and_learns_contextually(tmp_path: Path) -> None:
    """On clusters all are right more often than chance, tuned or not; chance is right one time in three."""
    asked = ["adaptive", "oful", "soful:size=4", "cbscfd:size=4", "dbslinucb:size=4", "cbrap:size=5"]
    asked += ["adaptive:explore=thompson,scale=0.1", "oful:rewards=logistic"]
    settings: dict[str, Any] = {"data": str(save(tmp_path)), "protocol": "contextual", "jobs": 1}
    done = compare(asked, rounds=400, permutations=2, out=tmp_path / "all", **settings)
    rates = rates_of(done.results)
    assert rates.pop("Uniform") == pytest.approx(1 / 3, abs=0.0006)
    assert len(rates) == len(asked) + 1
    assert min(rates.values()) > 0.5
    assert rates["OFUL"] > 0.9
    tuned = compare(["oful"], rounds=40, permutations=1, tune=True, out=tmp_path / "tuned", **settings)
    assert (tuned.results.all_rows["kind"] == "tune").sum() == 45
    assert "labels as actions" in done.path.read_text(encoding="utf-8")
    assert "target label" not in done.path.read_text(encoding="utf-8")


def rates_of(results: Results) -> dict[str, float]:
    """The reward rate of each, as the table has it."""
    header, rows = table(results, "compare")
    return {row[0]: float(row[header.index("reward rate")]) for row in rows}


# -- baselines ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_a_race_has_two_references(tmp_path: Path) -> None:
    """Greedy and uniform, last, and their own rows; none where they are not wanted; nobody is there twice."""
    settings: dict[str, Any] = {"rounds": 100, "permutations": 2, "jobs": 1}
    done = compare(["oful"], out=tmp_path / "a", **settings)
    assert [label for label, _ in done.results.series("compare")] == ["OFUL", "Greedy", "Uniform"]
    rates = rates_of(done.results)
    assert rates["Uniform"] == 0.1
    assert min(rates["OFUL"], rates["Greedy"]) > 0.3
    frame = done.results.all_rows
    greedy = frame[frame["contender"] == "adaptive:explore=greedy"]
    rows = perform(
        Run(
            kind="play",
            environment=spec("classification", data="digits"),
            contender=parse("adaptive:explore=greedy,ridge=none"),
            rounds=100,
            seed=1,
        )
    )
    assert greedy[(greedy["seed"] == 1) & (greedy["round"] == 100)]["regret"].item() == rows[-1]["regret"]
    alone = compare(["oful"], baselines=False, out=tmp_path / "b", **settings)
    assert [label for label, _ in alone.results.series("compare")] == ["OFUL"]
    asked = compare(["uniform", "oful"], out=tmp_path / "c", **settings)
    assert [label for label, _ in asked.results.series("compare")] == ["Uniform", "OFUL", "Greedy"]


# -- columns ------------------------------------------------------------------------------------------------


def test_columns_are_standardised_as_by_hand() -> None:
    """Mean 0 and deviation 1; a constant column becomes zero; sparse ones are divided only."""
    features = np.column_stack([FEATURES * [1, 2, 3, 4, 5, 1000], np.full(90, 7.0)])
    found = standardised(features)
    expected = (features[:, :6] - features[:, :6].mean(axis=0)) / features[:, :6].std(axis=0)
    assert np.allclose(found[:, :6], expected)
    assert not found[:, 6].any()
    thin = sparse.csr_array(np.where(features > 1.0, features, 0.0))
    divided = standardised(thin)
    assert np.array_equal(divided.indices, thin.indices)
    deviations = thin.toarray().std(axis=0)
    by_hand = np.divide(thin.toarray(), deviations, out=np.zeros((90, 7)), where=deviations > 1e-9)
    assert np.allclose(divided.toarray()[:, :6], by_hand[:, :6])
    constant = np.column_stack([np.full(90, 0.1), np.arange(90)])
    for kept in (standardised(constant), standardised(sparse.csr_array(constant)).toarray()):
        assert not kept[:, 0].any(), "rounding is no deviation"
    bytes_of = np.random.default_rng(1).integers(0, 255, (20, 3)).astype(np.uint8)
    assert np.allclose(standardised(bytes_of).std(axis=0), 1.0)


@pytest.mark.parametrize("protocol", ["paper", "contextual"])
@pytest.mark.usefixtures("here")
def test_to_standardize_is_to_do_so_before(tmp_path: Path, file: Path, protocol: str) -> None:
    """The race on a file with --standardize is that on the standardised file."""
    read = load(str(file)).features
    by_hand = (read - read.mean(axis=0)) / read.std(axis=0)
    np.savez(tmp_path / "by-hand.npz", X=by_hand, y=LABELS)
    settings: dict[str, Any] = {"rounds": 150, "permutations": 2, "jobs": 1, "protocol": protocol}
    with_flag = compare(["oful"], data=str(file), standardize=True, out=tmp_path / "a", **settings)
    before = compare(["oful"], data=str(tmp_path / "by-hand.npz"), out=tmp_path / "b", **settings)
    plain = compare(["oful"], data=str(file), out=tmp_path / "c", **settings)
    regrets = [
        done.results.finals("compare", parse("oful:ridge=1")).tolist() for done in (with_flag, before, plain)
    ]
    assert np.allclose(regrets[0], regrets[1], atol=1), "but for roundings"
    arms = [
        next(iter(environments.build(done.results.experiments["compare"].environment, 0).rounds(1))).arms
        for done in (with_flag, before)
    ]
    assert np.allclose(*arms)
    assert sum(regrets[0]) < sum(regrets[2]), "one column no longer decides everything"
    title = environments.title(with_flag.results.experiments["compare"].environment)
    assert "columns standardised" in title
    assert not with_flag.notes


@pytest.mark.usefixtures("here")
def test_columns_far_apart_are_said(tmp_path: Path, file: Path) -> None:
    """On the console, in the report and in the one made anew, with the remedy; not where they are alike."""
    out = tmp_path / "race"
    arguments = ["compare", "--policy", "oful", "--data", str(file), "--rounds", "20", "--permutations", "1"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(out), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Note: the columns of mine.csv are far apart in scale: entries of column f are" in said
    assert "--standardize" in said
    text = " ".join((out / "report.html").read_text(encoding="utf-8").split())
    assert "beta and lambda as given; every row of length one, synthetic noise 0.1;" in text
    assert "has its own target label" in text
    for page in ((out / "report.html"), report(out).path):
        assert "far apart in scale" in page.read_text(encoding="utf-8")
    assert not said_of_scales(load("digits"))
    for features in (FEATURES, sparse.csr_array(FEATURES)):
        assert not said_of_scales(DataSet("alike", features, LABELS))
        scaled = features * np.array([1, 1, 0.01, 1, 1, 1.0])
        assert "column 2 about" in said_of_scales(DataSet("small", scaled, LABELS))
    assert not said_of_scales(DataSet("empty", np.zeros((5, 2)), LABELS[:5]))
    rare = np.ones((1000, 3))
    rare[:, 2] = 0.0
    rare[0, 2] = 1e-6
    assert not said_of_scales(DataSet("rare", rare, np.arange(1000) % 2)), "one entry is no scale"


@pytest.mark.usefixtures("here")
def test_a_race_of_the_version_before_is_read(tmp_path: Path) -> None:
    """A manifest without notes: what is missing has its default."""
    compare(["oful"], rounds=20, permutations=1, jobs=1, out=tmp_path)
    path = tmp_path / "manifest.json"
    text = path.read_text(encoding="utf-8")
    assert '"notes": [],' in text
    path.write_text(text.replace('"notes": [],', ""), encoding="utf-8")
    assert Results.read(tmp_path).experiments["compare"].notes == ()
