"""The k best arms without the width of every arm."""

import math
from typing import Any

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.ridge import RidgeSystem, Scan


def optimistic_bounds(scan: Scan, radius: float, shift: float) -> Vector:
    """mean + radius·|x| / sqrt(rho) >= the score of every arm, to the last bit: width² <= |x|² / rho."""
    bounds: Vector = np.sqrt(scan.norms_sq / shift)
    bounds *= radius
    bounds += scan.means
    return bounds


def best_arms(system: RidgeSystem, scan: Scan, bounds: Vector, radius: float, count: int) -> list[int]:
    """The ``count`` arms of the largest scores, best first, ties to the lowest index (design: cost model).

    The arms with the largest bounds are scored first; an arm whose bound is below the ``count``-th best
    score found so far cannot be among the best, and its width is never computed. The shadow of the best
    arm is left with the system, for the update that will follow.
    """
    first = np.argsort(-bounds, kind="stable")[:count].tolist() if count > 1 else [int(bounds.argmax())]
    best: tuple[float, int, Any] = (-math.inf, -1, None)
    found: list[tuple[float, int]] = []  # (-score, index), the best first

    def consider(index: int) -> None:
        nonlocal best
        shadow = system.shadow(scan, index)
        quadratic = system.quadratic(shadow, float(scan.norms_sq[index]))
        score = float(scan.means[index]) + radius * math.sqrt(quadratic)
        found.append((-score, index))
        if score > best[0] or (score == best[0] and index < best[1]):
            best = (score, index, shadow)

    for index in first:
        consider(index)
    found.sort()
    worst = -found[-1][0]
    rivals = np.flatnonzero(bounds >= worst)
    if len(rivals) > count:
        done = set(first)
        promising = rivals[np.argsort(-bounds[rivals], kind="stable")]
        for index in promising.tolist():
            if bounds[index] < worst:
                break
            if index not in done:
                consider(index)
                found.sort()
                del found[count:]
                worst = -found[-1][0]
    system.remember(scan, best[1], best[2])
    return [index for _, index in found]
