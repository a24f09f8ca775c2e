"""The theorem's radius before and after it knew what the sketch had lost: ``python -m benchmarks.radius``.

For each stream: the information L in the radius and the radius itself after all rounds, with e in every
direction (as the paper has it, and versions up to 0.6) and with what was really lost spread out. Beside them
the regret of a constant beta and of both radii, mean and worst over the permutations.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from sketchbandit.precision.precision import GrowingGram

ROUNDS, PERMUTATIONS, RIDGE, BETA = 2000, 5, 1.0, 0.1
CONFIDENCE = sb.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=0.01)


class WithEverywhere(sb.LinUCB):
    """The radius of 0.6: ln det((lambda + e) I + S'S), and no other bound."""

    kind = "benchmark-radius-of-0.6"

    def _realised_radius(self, confidence: sb.Confidence) -> float:
        return confidence.radius(
            dim=self.dim,
            ridge=self.ridge,
            alpha=self.sketch.alpha,
            error_bound=self.sketch.error_bound,
            log_det=self._log_det(),
        )

    def _log_det(self) -> float:
        if self.sketch.is_dense:
            return self.precision.log_det
        gram = GrowingGram(self.sketch.row_products())
        return gram.log_det(self.dim, self.ridge + self.sketch.error_bound)


class Row(NamedTuple):
    """One sketch on one stream."""

    stream: str
    sketch: str
    information_before: float
    information: float
    radius_before: float
    radius: float
    constant: tuple[float, float]
    theorem_before: tuple[float, float]
    theorem: tuple[float, float]


def sketches(dim: int) -> dict[str, Callable[[], sb.Sketch]]:
    """Fresh ones, of a size that the dimension allows."""
    size = 50 if dim > 300 else 10
    return {
        "exact (OFUL)": lambda: sb.ExactSketch(dim),
        f"FD {size} (SOFUL)": lambda: sb.FrequentDirections(dim, size=size),
        f"SCFD {size} (CBSCFD)": lambda: sb.FrequentDirections(dim, size=size, compensation=1.0),
        "adaptive, ε = 8": lambda: sb.AdaptiveSketch(dim, epsilon=8.0, horizon=ROUNDS),
    }


def environments() -> Iterator[tuple[str, list[sb.Environment]]]:
    """The four data sets where they are here, and three spectra."""
    for name in ("mnist", "cnae-9", "mfeat", "spam"):
        if sb.data.find(name).here:
            data = sb.data.load(name)
            first = sb.Classification(data.features, data.labels)
            yield name, [first.reseeded(seed) for seed in range(PERMUTATIONS)]
    for spectrum in ("flat", "power-law", "low-rank"):
        yield spectrum, [sb.GaussianArms(spectrum=spectrum, seed=seed) for seed in range(PERMUTATIONS)]


def rows() -> Iterator[Row]:
    """Play everything."""
    for name, worlds in environments():
        dim = worlds[0].dim
        for sketch, make in sketches(dim).items():
            regrets: dict[str, list[float]] = {}
            last: Any = None
            for world in worlds:
                contenders = {
                    "constant": sb.LinUCB(make(), ridge=RIDGE, beta=BETA),
                    "before": WithEverywhere(make(), ridge=RIDGE, beta=CONFIDENCE),
                    "after": sb.LinUCB(make(), ridge=RIDGE, beta=CONFIDENCE),
                }
                for contender, policy in contenders.items():
                    *_, end = sb.play(policy, world, ROUNDS)
                    regrets.setdefault(contender, []).append(end.total_regret)
                last = contenders
            before, after = last["before"], last["after"]
            offset = dim * math.log(RIDGE)
            trace = dim * math.log1p(after.sketch.mass / (dim * RIDGE))
            yield Row(
                name,
                sketch,
                before._log_det() - offset,
                min(after.precision.log_det - offset, trace),
                before.radius,
                after.radius,
                *((float(np.mean(found)), max(found)) for found in regrets.values()),
            )


def main() -> None:
    """Print the table, ready for the documentation."""
    print(f"{ROUNDS} rounds, {PERMUTATIONS} permutations, ridge {RIDGE:g}; regret: mean (worst)")
    print("| | | L before | L | radius before | radius | beta = 0.1 | theorem before | theorem |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for row in rows():
            numbers = f"{row.information_before:.0f} | {row.information:.0f} | "
            numbers += f"{row.radius_before:.2f} | {row.radius:.2f}"
            regrets = " | ".join(
                f"{mean:.0f} ({worst:.0f})" for mean, worst in (row.constant, row.theorem_before, row.theorem)
            )
            print(f"| {row.stream} | {row.sketch} | {numbers} | {regrets} |", flush=True)


if __name__ == "__main__":
    main()
