"""Online Newton on sketches beside scikit-learn's SGD, exact online Newton and Vowpal Wabbit.

SKETCHBANDIT_DATA=data python -m benchmarks.newton [--rows N] [--data farm-ads spam mnist]

Every contender predicts each row before it learns from it, in the same shuffled order: the part of the rows
predicted wrongly is the progressive error. Rows are divided by the root of their mean squared norm, counts
(spam) after log(1 + x). Of the settings of each contender that are tried the best one is told. rows/s is of
learning alone, in seconds of CPU time, all rows in one call where there is such a call, on one thread. Before
anything is timed, sketched steps are compared to dense ones.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from sketchbandit.sklearn import SketchedNewtonClassifier
from sketchbandit.sklearn.online_newton import LogisticLoss, OnlineNewton

DATA = ("farm-ads", "spam", "mnist")
ALPHAS = (0.01, 0.1, 1.0)
MOST_EXACT = 3000  # columns of a d x d matrix for each class
SIZE = 50


class Learner(Protocol):
    """What is played: labels are numbers from 0 on."""

    def predict(self, row: Any) -> int:
        """The label of one row, (1, d)."""

    def learn(self, rows: Any, labels: NDArray[np.int64]) -> None:
        """One row or more, and their labels."""

    @property
    def nbytes(self) -> int:
        """Of what was learned."""


class Stream(NamedTuple):
    """Rows in the order in which they are played."""

    name: str
    rows: Any
    labels: NDArray[np.int64]
    classes: NDArray[np.int64]


class OfScikitLearn:
    """A classifier with partial_fit, which is told the classes with the first rows."""

    def __init__(self, model: Any, stream: Stream) -> None:
        self.model = model
        self._more: dict[str, Any] = {"classes": stream.classes}

    def predict(self, row: Any) -> int:
        """Zero before anything was learned."""
        return 0 if self._more else int(self.model.predict(row)[0])

    def learn(self, rows: Any, labels: NDArray[np.int64]) -> None:
        """All in one call."""
        self.model.partial_fit(rows, labels, **self._more)
        self._more = {}


class Ours(OfScikitLearn):
    """SketchedNewtonClassifier."""

    def __init__(self, stream: Stream, alpha: float, **settings: Any) -> None:
        super().__init__(SketchedNewtonClassifier(alpha, **settings), stream)

    @property
    def nbytes(self) -> int:
        """Of sketches, weights and inverses."""
        return int(self.model.nbytes_)


class SGD(OfScikitLearn):
    """SGDClassifier, logistic loss, its own schedule of learning rates."""

    def __init__(self, stream: Stream, alpha: float) -> None:
        super().__init__(SGDClassifier(loss="log_loss", alpha=alpha, random_state=0), stream)

    @property
    def nbytes(self) -> int:
        """Of the weights."""
        return int(self.model.coef_.nbytes + self.model.intercept_.nbytes)


class VowpalWabbit:
    """``--oaa`` or binary, logistic loss; its adaptive, normalised updates, or with options of its own."""

    def __init__(self, stream: Stream, options: tuple[str, ...]) -> None:
        import vowpal_wabbit_next as vw  # noqa: PLC0415  an extra

        bits = max(18, int(np.ceil(np.log2(stream.rows.shape[1] * len(stream.classes)))))
        kind = ["--oaa", str(len(stream.classes))] if len(stream.classes) > 2 else ["--binary"]
        self._vw, self._several = vw, len(stream.classes) > 2
        self._workspace = vw.Workspace(
            ["--quiet", "--loss_function=logistic", "-b", str(bits), *kind, *options]
        )

    def predict(self, row: Any) -> int:
        """Its labels are 1, 2, ... or -1 and 1."""
        found: Any = self._workspace.predict_one(self._example(row, 0))
        return int(found) - 1 if self._several else int(found > 0.0)

    def learn(self, rows: Any, labels: NDArray[np.int64]) -> None:
        """One example after the other, built without text."""
        for i, label in enumerate(labels.tolist()):
            self._workspace.learn_one(self._example(rows[[i]], label))

    @property
    def nbytes(self) -> int:
        """Of the table of weights."""
        return int(self._workspace.weights().nbytes)

    def _example(self, row: Any, label: int) -> Any:
        example, vw = self._vw.Example(), self._vw
        places = row.indices if sparse.issparse(row) else np.flatnonzero(row[0])
        values = row.data if sparse.issparse(row) else row[0, places]
        features: Any = example["f"]
        features.push_many_features(places.astype(np.uint64), values.astype(np.float32))
        example.set_label(
            vw.MulticlassLabel(label + 1) if self._several else vw.SimpleLabel(2.0 * label - 1.0)
        )
        return example


def contenders(stream: Stream) -> Iterator[tuple[str, list[Callable[[], Learner]]]]:
    """Names, and the settings that are tried."""
    horizon = len(stream.labels)
    kinds: dict[str, Callable[[float], dict[str, Any]]] = {
        "adaptive": lambda alpha: {"sketch": _adaptive(10.0 * alpha, horizon)},
        "dbs": lambda alpha: {"sketch": "dbs", "size": SIZE, "epsilon": 10.0 * alpha},
        f"fd, l = {SIZE}": lambda _: {"sketch": "fd", "size": SIZE},
    }
    if stream.rows.shape[1] <= MOST_EXACT:
        kinds["exact"] = lambda _: {"sketch": "exact"}
    for name, settings in kinds.items():
        yield f"online Newton, {name}", [_ours(stream, alpha, settings(alpha)) for alpha in ALPHAS]
    yield "SGDClassifier", [_sgd(stream, alpha) for alpha in (1e-6, 1e-5, 1e-4, 1e-3)]
    if importlib.util.find_spec("vowpal_wabbit_next") is not None:
        rates = [("-l", rate) for rate in ("0.1", "0.5", "2")]
        yield "Vowpal Wabbit", [_vowpal(stream, rate) for rate in rates]


def _adaptive(epsilon: float, horizon: int) -> Callable[[int], sb.AdaptiveSketch]:
    return lambda dim: sb.AdaptiveSketch(dim, epsilon=epsilon, horizon=horizon)


def _ours(stream: Stream, alpha: float, settings: dict[str, Any]) -> Callable[[], Learner]:
    return lambda: Ours(stream, alpha, **settings)


def _sgd(stream: Stream, alpha: float) -> Callable[[], Learner]:
    return lambda: SGD(stream, alpha)


def _vowpal(stream: Stream, options: tuple[str, ...]) -> Callable[[], Learner]:
    return lambda: VowpalWabbit(stream, options)


def read(name: str, most: int | None) -> Stream:
    """The rows of a data set, shuffled and scaled."""
    data = sb.data.load(name)
    order = np.random.default_rng(0).permutation(data.features.shape[0])[:most]
    rows: Any = data.features[order].astype(np.float64)
    if name == "spam":
        rows = np.log1p(rows)
    squares = rows.power(2) if sparse.issparse(rows) else rows**2
    rows = rows / np.sqrt(float(squares.sum()) / len(order))
    rows = rows.tocsr() if sparse.issparse(rows) else rows
    return Stream(name, rows, data.labels[order], np.arange(data.classes))


def progressive_error(learner: Learner, stream: Stream) -> float:
    """The part of the rows that were predicted wrongly before they were learned from."""
    wrong = 0
    for i, label in enumerate(stream.labels.tolist()):
        row = stream.rows[[i]]
        wrong += learner.predict(row) != label
        learner.learn(row, stream.labels[i : i + 1])
    return wrong / len(stream.labels)


def gate() -> None:
    """Sketched steps with a sketch that loses nothing are those of a dense matrix, or there is no table."""
    random, dim, alpha, bound = np.random.default_rng(0), 30, 0.1, 5.0
    newton = OnlineNewton(sb.FrequentDirections(dim, size=dim + 1), alpha, LogisticLoss(), bound=bound)
    A, w = alpha * np.eye(dim), np.zeros(dim)
    for x in random.standard_normal((200, dim)):
        y = 1.0 if x[0] + random.standard_normal() > 0.0 else -1.0
        direction, z = np.linalg.solve(A, x), float(np.clip(x @ w, -bound, bound))
        w = w - (x @ w - z) / (x @ direction) * direction
        A += LogisticLoss().local(z, bound) * np.outer(x, x)
        w = w + y / (1.0 + np.exp(y * z)) * np.linalg.solve(A, x)
        newton.learn(x, y)
    assert np.allclose(newton.theta, w, rtol=1e-7, atol=1e-9), "not the dense method"


def main() -> None:
    """Check the answer, then print a table for every data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newton", description=__doc__)
    parser.add_argument("--rows", type=int, help="at most so many of each data set")
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    asked = parser.parse_args()
    gate()
    with threadpool_limits(1):
        for name in asked.data:
            stream = read(name, asked.rows)
            shape = f"{len(stream.labels):,} rows of {stream.rows.shape[1]:,}"
            print(f"\n{name}: {shape}, {len(stream.classes)} classes")
            print(f"{'contender':28} {'error':>8} {'rows/s':>9} {'MB':>9}")
            for contender, settings in contenders(stream):
                print(f"{contender:28} {_best(settings, stream)}", flush=True)


def _best(settings: list[Callable[[], Learner]], stream: Stream) -> str:
    """The setting with the least error."""
    errors = [progressive_error(make(), stream) for make in settings]
    learner = settings[int(np.argmin(errors))]()
    start = time.process_time()
    learner.learn(stream.rows, stream.labels)
    seconds = time.process_time() - start
    return f"{min(errors):8.4f} {len(stream.labels) / seconds:9,.0f} {learner.nbytes / 1e6:9.2f}"


if __name__ == "__main__":
    main()
