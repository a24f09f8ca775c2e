"""The results of a reproduction, as the figures, tables and claims read them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sketchbandit._version import __version__
from sketchbandit.arrays import Vector
from sketchbandit.errors import FileError
from sketchbandit.simulation.policies import DELAY
from sketchbandit.simulation.rules import number_of
from sketchbandit.simulation.specs import Spec, is_chance
from sketchbandit_paper import plan
from sketchbandit_paper.definitions import EXPERIMENTS
from sketchbandit_paper.experiment import Experiment
from sketchbandit_paper.profiles import Profile
from sketchbandit_paper.readings import Reading
from sketchbandit_paper.store import MANIFEST, Store

if TYPE_CHECKING:
    import pandas as pd


class MeanWithError(NamedTuple):
    """A mean over permutations with half the width of its 95 % interval (Student's t)."""

    mean: float
    half: float

    def __format__(self, how: str) -> str:
        return f"{self.mean:{how}} ± {self.half:{how}}" if np.isfinite(self.half) else f"{self.mean:{how}}"


def estimate(values: Iterable[float]) -> MeanWithError:
    """Mean and half width; the width is nan for a single value and where there is nothing finite."""
    sample = np.asarray(list(values), dtype=np.float64)
    if len(sample) < 2 or not np.isfinite(sample).all():
        return MeanWithError(float(sample.mean()), float("nan"))
    half = stats.t.ppf(0.975, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample))
    return MeanWithError(float(sample.mean()), float(half))


class Curve(NamedTuple):
    """One quantity of one contender over the rounds: mean and 95 % band over permutations."""

    rounds: Vector
    mean: Vector
    half: Vector


class Results:
    """Rows and the settings they were made with."""

    def __init__(
        self,
        rows: "pd.DataFrame",
        profile: Profile,
        experiments: Iterable[Experiment],
        digests: Mapping[str, str] | None = None,
    ) -> None:
        self.digests = digests or {}
        """Of the data sets played on, by name."""
        self.all_rows = rows
        self.profile = profile
        self.experiments = {experiment.id: experiment for experiment in experiments}
        self._known_keys: dict[tuple[str, Spec], list[str]] = {}  # both asked for again and again
        self._known_rows: dict[tuple[str, Spec], pd.DataFrame] = {}

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """Those in a folder that ``reproduce`` wrote."""
        store = Store(folder)
        manifest = store.manifest()
        if manifest is None:
            raise FileError(f"{folder} holds no results: there is no {MANIFEST}")
        if manifest.get("version") != __version__:
            raise FileError(
                f"{folder} was written by sketchbandit {manifest.get('version')} and this is {__version__}; "
                "read it with that version"
            )
        unknown = [name for name in manifest["ids"] if name not in EXPERIMENTS]
        if unknown:
            raise FileError(
                f"{folder} holds results of {', '.join(unknown)}, which this version does not know; read it "
                "with the version that wrote it"
            )
        experiments = [EXPERIMENTS[name] for name in manifest["ids"]]
        if "experiment" in manifest:
            experiments.append(Experiment.from_dict(manifest["experiment"]))
        grids = {name: tuple(manifest["profile"][name]) for name in ("betas", "ridges")}
        read_so = Reading(**manifest["profile"]["reading"])
        profile = Profile(**{**manifest["profile"], **grids, "reading": read_so})
        rows = store.frame()
        if rows.empty:
            raise FileError(f"{folder} holds no finished runs")
        return cls(rows, profile, experiments, manifest.get("data", {}))

    @cached_property
    def choices(self) -> plan.Choices:
        """The ridge and rule's number found best."""
        return plan.choices(self.all_rows)

    def has(self, name: str) -> bool:
        """Whether there is anything to show of an experiment."""
        return name in self.experiments and any(True for _ in self.series(name))

    def missing(self, name: str) -> int:
        """How many runs of an experiment are not here: those that failed, or were never made."""
        members = plan.members_of(self.experiments[name], self.profile)
        seeds = plan.permutations_of(self.experiments[name], self.profile)
        return sum(seeds - len(self._where.keys() & set(self._keys(name, member))) for member in members)

    def of(self, name: str, member: Spec) -> "pd.DataFrame":
        """The rows of the runs that an experiment reports of one contender."""
        if (name, member) not in self._known_rows:
            found = [self._where[key] for key in self._keys(name, member) if key in self._where]
            self._known_rows[name, member] = self.all_rows.iloc[np.concatenate(found) if found else []]
        return self._known_rows[name, member]

    def finals(self, name: str, member: Spec, column: str = "regret") -> Vector:
        """A quantity at the end of the run, for each permutation in order of the seed."""
        rows = self.of(name, member)
        last = rows[rows["round"] == rows["rounds"]].sort_values("seed")
        return last[column].to_numpy(dtype=np.float64)

    def final(self, name: str, member: Spec, column: str = "regret") -> MeanWithError:
        """Its mean and interval."""
        return estimate(self.finals(name, member, column))

    def curve(self, name: str, member: Spec, column: str = "regret") -> Curve:
        """A quantity over the rounds."""
        rows = self.of(name, member)
        rounds = np.unique(rows["round"].to_numpy(dtype=np.float64))
        points = [estimate(rows[column][rows["round"] == number]) for number in rounds]
        return Curve(rounds, np.array([p.mean for p in points]), np.array([p.half for p in points]))

    def series(self, name: str) -> Iterator[tuple[str, list[Spec]]]:
        """Each line of the figure with those of its members that have results."""
        for series in plan.series_of(self.experiments[name], self.profile):
            members = [m for m in series.members if not self._where.keys().isdisjoint(self._keys(name, m))]
            if members:
                yield series.label, members

    def _keys(self, name: str, member: Spec) -> list[str]:
        if (name, member) not in self._known_keys:
            runs = plan.runs_of(self.experiments[name], member, self.profile, self.choices)
            self._known_keys[name, member] = [run.key for run in runs]
        return self._known_keys[name, member]

    @cached_property
    def _where(self) -> dict[str, NDArray[np.intp]]:
        """The rows of each run, by position."""
        groups = self.all_rows.groupby("run").indices
        return {str(key): np.asarray(places, dtype=np.intp) for key, places in groups.items()}

    def machines(self) -> list[str]:
        """Where the rows were made."""
        return sorted(set(self.all_rows["machine"].dropna()))


def summary(results: Results, name: str) -> list[dict[str, Any]]:
    """One line for each contender: what it was played with, and mean regret, time and space at the end."""
    return [
        {
            "label": label + _differing(member, members),
            "learns": not is_chance(member),
            "ridge": results.final(name, member, "ridge").mean,
            "number": results.final(name, member, "number").mean,
            "sign": number.sign if (number := number_of(member)) else "",
            "regret": results.final(name, member, "regret"),
            "regrets": results.finals(name, member),
            "worst": float(results.finals(name, member).max()),
            "rate": float((results.finals(name, member, "reward") / _rounds(results, name, member)).mean()),
            "seconds_a_round": float(
                (results.finals(name, member, "seconds") / _rounds(results, name, member)).mean()
            ),
            "beside": estimate_of_difference(results, name, member),
            "warned": int(results.finals(name, member, "warned").sum()),
            "permutations": len(results.finals(name, member)),
            "seconds": results.final(name, member, "seconds"),
            "kibibytes": results.final(name, member, "peak_bytes").mean / 1024.0,
            "rows": results.final(name, member, "sketch_rows").mean,
            "certificate": results.final(name, member, "certificate").mean,
        }
        for label, members in results.series(name)
        for member in members
    ]


def _rounds(results: Results, name: str, member: Spec) -> float:
    return float(results.of(name, member)["rounds"].iloc[0])


def estimate_of_difference(results: Results, name: str, member: Spec) -> MeanWithError:
    """Its regret less that of the first contender, paired by permutation; nan where a run is missing."""
    first = next(results.series(name))[1][0]
    here, there = results.finals(name, member), results.finals(name, first)
    return estimate(here - there) if len(here) == len(there) else MeanWithError(np.nan, np.nan)


def _differing(member: Spec, members: list[Spec]) -> str:
    """What tells a member from the others of its series."""
    signs = {"size": "l" if member.get("epsilon") is None else "l₀", "epsilon": "ε", "ridge": "λ"}
    signs[DELAY] = "delay"
    shown = [key for key in signs if len({other.get(key) for other in members}) > 1]
    return "".join(f", {signs[key]} = {member.get(key)}" for key in shown)
