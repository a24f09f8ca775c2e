"""Every figure and table of the paper, and a few of ours, as data: one id each."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchbandit.data import CATALOGUE
from sketchbandit.errors import InputError
from sketchbandit.experiments.policies import ROUNDS
from sketchbandit.experiments.specs import Spec, Value, spec
from sketchbandit.policy.recipes import EXACT_UP_TO, SMALLEST_SIZE


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a figure draws as one line: a method, with the settings it is run with."""

    label: str
    members: tuple[Spec, ...]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    id, title, paper : str
        Its name on the command line; what it shows; where it stands in the paper ("ours" if it does not).
    environment : Spec
        Where it is played.
    series : tuple of Series
        Who plays.
    rounds, points : int
        How long, and how many times on the way a row is written.
    figure : str
        How it is drawn.
    kind : str
        That of its runs: "play" (ridge and beta tuned) or "approximate".
    spectrum : str
        Whether the spectrum of the chosen arms is measured: "no", at the "end", at "all" points.

    """

    id: str
    title: str
    environment: Spec
    series: tuple[Series, ...]
    rounds: int
    figure: str
    paper: str = "ours"
    points: int = 40
    kind: str = "play"
    spectrum: str = "no"

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Experiment":
        """The inverse of ``dataclasses.asdict``, also after a journey through JSON."""
        series = tuple(
            Series(label=s["label"], members=tuple(Spec.from_list(member) for member in s["members"]))
            for s in fields["series"]
        )
        return cls(**{**fields, "environment": Spec.from_list(fields["environment"]), "series": series})

    @property
    def data(self) -> str | None:
        """The data set that it needs; None for what is drawn at random."""
        name = self.environment.get("data")
        return None if name == "gaussian" else name

    @property
    def embedded(self) -> bool:
        """Whether it runs without any file or download."""
        return self.data is None or CATALOGUE[self.data].embedded


ADAPTIVE, ANYTIME, NEARLY_EXACT = "Adaptive", "Adaptive, anytime", "Adaptive, ε = 0.001"
OFUL = Series(label="OFUL", members=(spec("oful"),))
FLAT, POWER, LOW_RANK = (spec("gaussian", spectrum=name) for name in ("flat", "power-law", "low-rank"))
MNIST = spec("classification", data="mnist")


def _fixed(name: str, *sizes: int) -> tuple[Spec, ...]:
    return tuple(spec(name, size=size) for size in sizes)


def _dbs(compensation: int, *settings: tuple[int, float]) -> tuple[Spec, ...]:
    """DBSLinUCB-FD (0) or -RFD (1) with pairs of l0 and epsilon."""
    return tuple(
        spec("dbslinucb", compensation=compensation, size=size, epsilon=epsilon) for size, epsilon in settings
    )


def _adaptive(environment: Spec, **settings: Value) -> Spec:
    """The adaptive sketch, made to be one also where by default it is exact."""
    data = environment.get("data")
    small = data is not None and CATALOGUE[data].dim <= EXACT_UP_TO
    return spec("adaptive", **({"size": SMALLEST_SIZE} if small else {}), **settings)


def _alone(*policies: tuple[str, Spec]) -> tuple[Series, ...]:
    return tuple(Series(label=label, members=(policy,)) for label, policy in policies)


def _spaced(low: float, high: float, count: int = 10) -> tuple[int, ...]:
    return tuple(int(n) for n in np.linspace(low, high, count).round())


(DBS_FD,), (DBS_RFD,) = _dbs(0, (50, 8)), _dbs(1, (50, 8))
_FIXED_FD = [(f"SOFUL, l = {p.get('size')}", p) for p in _fixed("soful", 50, 450)]
_FIXED_RFD = [(f"CBSCFD, l = {p.get('size')}", p) for p in _fixed("cbscfd", 50, 450)]
_CBRAP = ("CBRAP, l = 50", spec("cbrap", size=50))
_BLOCKS = (("DBSLinUCB-FD", DBS_FD), ("DBSLinUCB-RFD", DBS_RFD))
_ALL_AT_50 = (
    OFUL,
    *_alone(
        ("CBRAP", _CBRAP[1]),
        ("SOFUL", spec("soful", size=50)),
        ("CBSCFD", spec("cbscfd", size=50)),
        *_BLOCKS,
    ),
)


def _pareto(data: str, paper: str, sizes: tuple[int, ...], first_sizes: tuple[int, ...]) -> Experiment:
    """Ten sizes of each fixed method; ten DBS from cheap (small l0, large epsilon) to exact; ours."""
    epsilons = np.linspace(25.0, 2.0, len(first_sizes)).round(1)
    environment = spec("classification", data=data)
    pairs = [(size, float(epsilon)) for size, epsilon in zip(first_sizes, epsilons, strict=True)]
    return Experiment(
        id=f"pareto-{data}",
        title=f"regret against time and space on {data}",
        paper=paper,
        environment=environment,
        series=(
            OFUL,
            Series(label="CBRAP", members=_fixed("cbrap", *sizes)),
            Series(label="SOFUL", members=_fixed("soful", *sizes)),
            Series(label="CBSCFD", members=_fixed("cbscfd", *sizes)),
            Series(label="DBSLinUCB-FD", members=_dbs(0, *pairs)),
            Series(label="DBSLinUCB-RFD", members=_dbs(1, *pairs)),
            Series(
                label=ADAPTIVE,
                members=tuple(
                    _adaptive(environment, horizon=ROUNDS, epsilon=e) for e in (32, 16, 12, 8, 6, 4, 2, 1)
                ),
            ),
        ),
        rounds=2000,
        figure="pareto",
        points=1,
    )


def _budget(name: str, environment: Spec, size: int, *others: tuple[str, Spec]) -> Experiment:
    """The adaptive sketch beside the paper's schedule, at the same epsilon."""
    return Experiment(
        id=f"adaptive-{name}",
        title="the adaptive sketch beside the paper's schedule, ε = 8 unless said",
        environment=environment,
        series=(
            OFUL,
            *_alone(
                (f"CBSCFD, l = {size}", spec("cbscfd", size=size)),
                ("DBSLinUCB-RFD", *_dbs(1, (size, 8))),
                (ADAPTIVE, _adaptive(environment, horizon=ROUNDS, epsilon=8)),
                (ANYTIME, _adaptive(environment, epsilon=8)),
                ("Adaptive, untuned default", spec("adaptive", ridge=1, beta=0.1)),
                *others,
            ),
        ),
        rounds=2000,
        figure="budget",
    )


def _anytime(rounds: int) -> Experiment:
    """Knowing the horizon or not, where it is shorter and longer than the others' 2000 rounds; untuned."""
    unaware = _adaptive(MNIST, epsilon=8, ridge=0.2, beta=0.01)
    return Experiment(
        id=f"anytime-{rounds}",
        title=f"what it costs not to know that {rounds} rounds will come",
        environment=MNIST,
        series=_alone((ADAPTIVE, unaware.with_settings(horizon=ROUNDS)), (ANYTIME, unaware)),
        rounds=rounds,
        figure="budget",
    )


def _ridges(
    name: str, environment: Spec, methods: tuple[tuple[str, Spec], ...], ridges: tuple[float, ...]
) -> Experiment:
    """Each method with every ridge, untuned: beta is 0.1."""
    return Experiment(
        id=f"ridge-{name}",
        title="what lambda does to each method, with beta = 0.1",
        environment=environment,
        series=tuple(
            Series(
                label=label, members=tuple(method.with_settings(ridge=ridge, beta=0.1) for ridge in ridges)
            )
            for label, method in methods
        ),
        rounds=2000,
        figure="ridges",
        points=1,
    )


def _matrix(data: str, paper: str) -> Experiment:
    return Experiment(
        id="matrix-approximation" + ("" if data == "gaussian" else f"-{data}"),
        title=f"spectral error of FD and DBS on {data} rows",
        paper=paper,
        environment=spec("rows", data=data, dim=500) if data == "gaussian" else spec("rows", data=data),
        series=_alone(
            ("FD, l = 50", spec("fd", size=50)),
            *((f"DBS, ε = {e}", spec("dbs", size=16, epsilon=e)) for e in (5, 10, 20)),
        ),
        rounds=1250,
        figure="approximation",
        points=50,
        kind="approximate",
    )


_WIDE, _WIDE_FIRST = _spaced(10, 600), _spaced(50, 200)
_MNIST_METHODS = _alone(
    ("OFUL", spec("oful")),
    *((f"SOFUL, l = {size}", spec("soful", size=size)) for size in (20, 100, 150)),
    ("DBSLinUCB-FD", DBS_FD),
)

_DEFINED = (
    Experiment(
        id="synthetic-fd",
        title="regret of FD-based methods",
        paper="Fig. 1 (a)",
        environment=FLAT,
        series=(OFUL, *_alone(*_FIXED_FD, ("DBSLinUCB-FD", DBS_FD), _CBRAP)),
        rounds=4000,
        figure="curves",
        spectrum="end",
    ),
    Experiment(
        id="synthetic-rfd",
        title="regret of RFD-based methods",
        paper="Fig. 1 (b)",
        environment=FLAT,
        series=(OFUL, *_alone(*_FIXED_RFD, ("DBSLinUCB-RFD", DBS_RFD), _CBRAP)),
        rounds=4000,
        figure="curves",
        spectrum="end",
    ),
    Experiment(
        id="spectral-error",
        title="log Δ / log t of SOFUL's arms",
        paper="Fig. 1 (c)",
        environment=FLAT,
        series=_alone(*((f"l = {size}", spec("soful", size=size)) for size in (50, 200, 350, 450))),
        rounds=4000,
        figure="exponents",
        points=25,
        spectrum="all",
    ),
    Experiment(
        id="power-law",
        title="regret where the spectrum of the arms decays",
        environment=POWER,
        series=_ALL_AT_50,
        rounds=2000,
        figure="curves",
    ),
    Experiment(
        id="low-rank",
        title="regret where the arms have rank 20",
        environment=LOW_RANK,
        series=_ALL_AT_50,
        rounds=2000,
        figure="curves",
    ),
    _ridges(
        "synthetic",
        FLAT,
        (("OFUL", spec("oful")), *_FIXED_FD[:1], *_FIXED_RFD[:1], *_BLOCKS),
        (0.02, 0.2, 2.0, 20.0, 200.0),
    ),
    Experiment(
        id="mnist-epsilon",
        title="regret and time of DBSLinUCB-FD against epsilon and l0",
        paper="Fig. 3 (a), (b)",
        environment=MNIST,
        series=tuple(
            Series(label=f"l₀ = {size}", members=_dbs(0, *((size, e) for e in (2, 4, 8, 12, 16, 25))))
            for size in (50, 100, 200)
        ),
        rounds=2000,
        figure="epsilons",
        points=1,
    ),
    _pareto("mnist", "Fig. 3 (c), (d)", _WIDE, _WIDE_FIRST),
    _pareto("cnae-9", "Fig. 6 (a), (d)", _WIDE, _WIDE_FIRST),
    _pareto("mfeat", "Fig. 6 (b), (e)", _spaced(5, 47), _spaced(4, 24)),
    _pareto("spam", "Fig. 6 (c), (f)", _spaced(5, 57), _spaced(4, 24)),
    _pareto("digits", "ours", _spaced(5, 64), _spaced(4, 24)),
    _matrix("gaussian", "Fig. 4"),
    _matrix("digits", "ours"),
    Experiment(
        id="mnist-curves",
        title="regret and running time on mnist",
        paper="Fig. 5",
        environment=MNIST,
        series=_MNIST_METHODS,
        rounds=2000,
        figure="timed",
        spectrum="end",
    ),
    Experiment(
        id="mnist-space",
        title="space on mnist",
        paper="Table 2",
        environment=MNIST,
        series=_MNIST_METHODS,
        rounds=2000,
        figure="space",
        spectrum="end",
    ),
    _ridges(
        "mnist",
        MNIST,
        (
            ("OFUL", spec("oful")),
            *((f"SOFUL, l = {size}", spec("soful", size=size)) for size in (20, 100)),
            *((f"CBSCFD, l = {size}", spec("cbscfd", size=size)) for size in (20, 100)),
            *_BLOCKS,
        ),
        (0.0002, 0.002, 0.02, 0.2, 2.0, 20.0, 200.0),
    ),
    Experiment(
        id="algorithms",
        title="the table of algorithms, its bounds evaluated, beside what was measured",
        paper="Table 1",
        environment=FLAT,
        series=_ALL_AT_50,
        rounds=4000,
        figure="algorithms",
        spectrum="end",
    ),
    _budget("flat", FLAT, 50, (NEARLY_EXACT, _adaptive(FLAT, horizon=ROUNDS, epsilon=0.001))),
    _budget("power-law", POWER, 50),
    _budget("low-rank", LOW_RANK, 50),
    _budget("mnist", MNIST, 50),
    _budget("cnae-9", spec("classification", data="cnae-9"), 50),
    _budget("mfeat", spec("classification", data="mfeat"), 10),
    _budget("spam", spec("classification", data="spam"), 10),
    _budget("digits", spec("classification", data="digits"), 10),
    _anytime(500),
    _anytime(8000),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.id: experiment for experiment in _DEFINED}


def choose(ids: list[str]) -> list[Experiment]:
    """The experiments of these ids; ``all``: every one; ``embedded``, or none: those that need no files.

    >>> [experiment.id for experiment in choose(["mnist-space"])]
    ['mnist-space']
    """
    chosen: dict[str, Experiment] = {}
    for name in ids or ["embedded"]:
        if name == "all":
            chosen |= EXPERIMENTS
        elif name == "embedded":
            chosen |= {key: experiment for key, experiment in EXPERIMENTS.items() if experiment.embedded}
        elif name in EXPERIMENTS:
            chosen[name] = EXPERIMENTS[name]
        else:
            raise InputError(
                f"unknown experiment {name!r}; choose from all, embedded, {', '.join(EXPERIMENTS)}"
            )
    return [experiment for key, experiment in EXPERIMENTS.items() if key in chosen]
