"""Choosing among 10⁵ to 10⁷ arms: a catalogue beside the product of the arms with theta, on CPU or GPU.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.catalogues     # numpy, one thread
    python -m benchmarks.catalogues --device cuda:0            # torch

The choice is compared with that of float64 first. Times are medians; those on a GPU include the answer.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sketchbandit as sb


class Place:
    """Where the arms are: numpy, or torch on a device."""

    def __init__(self, device: str | None) -> None:
        self.torch: Any = None if device is None else importlib.import_module("torch")
        self.device = device

    def arms(self, count: int, dim: int, seed: int) -> Any:
        """Arms of length about one."""
        if self.torch is None:
            random = np.random.default_rng(seed)
            made = random.standard_normal((count, dim), dtype=np.float32)
            made /= np.float32(np.sqrt(dim))
            return made
        generator = self.torch.Generator(device=self.device).manual_seed(seed)
        return self.torch.randn(count, dim, generator=generator, device=self.device) / dim**0.5

    def some(self, arms: Any, rows: Any) -> Any:
        """Arms on the host, in float64."""
        if self.torch is None:
            return arms[rows].astype(np.float64)
        return arms[self.torch.as_tensor(rows, device=self.device)].double().cpu().numpy()

    def times_theta(self, arms: Any, theta: Any) -> Callable[[], Any]:
        """The product that no choice can do without."""
        if self.torch is None:
            short = theta.astype(np.float32)
            return lambda: arms @ short
        vector = self.torch.as_tensor(theta, dtype=self.torch.float32, device=self.device)
        return lambda: arms @ vector

    def seconds(self, call: Callable[[], Any], times: int) -> float:
        """The median of one call."""
        taken = []
        for _ in range(times + 3):
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            taken.append(time.perf_counter() - start)
        return float(np.median(taken[3:]))

    def wait(self) -> None:
        """Until the device is done."""
        if self.torch is not None:
            self.torch.cuda.synchronize()


def learned(dim: int, place: Place, arms: Any, rows: int = 100) -> Any:
    """A policy with some hundred rows, and rewards that follow a taste."""
    random = np.random.default_rng(1)
    policy, taste = sb.soful(dim, size=rows, beta=0.1), random.standard_normal(dim)
    some = place.some(arms, random.integers(0, len(arms), 3 * rows // 2))
    policy.update(some, some @ taste + 0.1 * random.standard_normal(len(some)))
    return policy


def agreement(place: Place, policy: Any, catalogues: list[Any], arms: Any, rounds: int) -> int:
    """Choices that are worse than the best of float64, over rounds of other rewards."""
    random, differing = np.random.default_rng(2), 0
    for _ in range(rounds):
        row = int(random.integers(len(arms)))
        policy.update(place.some(arms, np.array([row]))[0], float(random.standard_normal()))
        found = {policy.select(catalogue) for catalogue in catalogues}
        scores = _scores(place, policy, arms)
        most = float(scores.max())
        differing += sum(1 for index in found if float(scores[index]) < most - 1e-12 * abs(most))
    return differing


def _scores(place: Place, policy: Any, arms: Any) -> Any:
    """The upper confidence bound of every arm, in float64, a piece at a time, where they are."""
    matrix, theta = policy.precision.inverse.for_device(), policy.theta
    torch, found = place.torch, []
    if torch is not None:
        matrix, theta = (torch.as_tensor(value, device=place.device) for value in (matrix, theta))
    for start in range(0, len(arms), 1_000_000):
        some = arms[start : start + 1_000_000]
        wide = some.astype(np.float64) if torch is None else some.double()
        seen = wide @ matrix
        quadratics = ((wide * wide).sum(-1) - (seen * seen).sum(-1)) / policy.precision.shift
        found.append(wide @ theta + policy.radius * quadratics**0.5)
    return np.concatenate(found) if torch is None else torch.cat(found)


def measured(place: Place, count: int, dim: int, times: int, rounds: int) -> dict[str, Any]:
    """One line of the table, in milliseconds."""
    arms = place.arms(count, dim, seed=0)
    policy = learned(dim, place, arms)
    plain, half = sb.Catalogue(arms), sb.Catalogue(arms, half=True)
    user = np.random.default_rng(3).uniform(0.5, 1.5, dim)
    found: dict[str, Any] = {
        "arms": count,
        "dim": dim,
        "different": agreement(place, policy, [plain, half], arms, rounds),
    }
    calls: dict[str, Callable[[], Any]] = {
        "arms @ theta": place.times_theta(arms, policy.theta),
        "select": lambda: policy.select(plain),
        "select, half": lambda: policy.select(half),
        "select, times(user)": lambda: policy.select(plain.times(user)),
        "select, times(user), half": lambda: policy.select(half.times(user)),
        "top 100": lambda: policy.top(plain, 100),
    }
    if place.torch is None:
        calls["arms * user"] = lambda: arms * user.astype(np.float32)
        calls["select, numpy arms"] = lambda: policy.select(arms)
    users = np.random.default_rng(4).uniform(0.5, 1.5, (64, dim))
    calls["64 requests, times(user)"] = lambda: policy.select_many([plain.times(one) for one in users])
    for name, call in calls.items():
        found[name] = 1e3 * place.seconds(call, max(3, times // 10) if "64" in name else times)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="of torch, such as cuda:0; numpy unless it is given")
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--times", type=int, default=20, help="calls of which the median is taken")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in which choices are compared")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    given = parser.parse_args()
    place, lines = Place(given.device), []
    for count in given.counts:
        lines.append(measured(place, count, given.dim, given.times, given.rounds))
        for name, value in lines[-1].items():
            print(f"{name:28s} {value:,.3f}" if isinstance(value, float) else f"{name:28s} {value:,}")
        print(flush=True)
    if given.out:
        given.out.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
