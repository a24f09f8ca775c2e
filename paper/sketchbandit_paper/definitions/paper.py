"""The paper's figures and tables, and the same on other data."""

from dataclasses import replace

import numpy as np

from sketchbandit.simulation.environments import FLAT, LOW_RANK, MNIST, POWER_LAW
from sketchbandit.simulation.policies import ROUNDS
from sketchbandit.simulation.specs import Spec, spec
from sketchbandit_paper.definitions import contenders as who
from sketchbandit_paper.experiment import Experiment, Series


def _spaced(low: float, high: float, count: int = 10) -> tuple[int, ...]:
    return tuple(int(n) for n in np.linspace(low, high, count).round())


def _pareto(
    data: str,
    *,
    sizes: tuple[int, ...],
    first_sizes: tuple[int, ...],
    paper: str = "ours",
    wide: bool = False,
) -> Experiment:
    """Ten sizes of each fixed method; ten DBS from cheap (small l0, large epsilon) to exact; ours.

    Wide: with the first sizes of the paper's text, where those of the other experiment are made for few
    dimensions.
    """
    epsilons = np.linspace(25.0, 2.0, len(first_sizes)).round(1)
    environment = spec("classification", data=data)
    pairs = [(size, float(epsilon)) for size, epsilon in zip(first_sizes, epsilons, strict=True)]
    ours = tuple(who.adaptive(environment, horizon=ROUNDS, epsilon=e) for e in (32, 16, 12, 8, 6, 4, 2, 1))
    return Experiment(
        id=f"pareto-{data}" + "-wide" * wide,
        title=f"regret against time and space on {data}" + ", the paper's l₀ = 50 to 200" * wide,
        paper=paper,
        environment=environment,
        series=(
            *who.alone(who.OFUL),
            *(
                Series(label=method, members=tuple(spec(method.lower(), size=size) for size in sizes))
                for method in ("CBRAP", "SOFUL", "CBSCFD")
            ),
            Series(label="DBSLinUCB-FD", members=who.blocks(0, *pairs)),
            Series(label="DBSLinUCB-RFD", members=who.blocks(1, *pairs)),
            Series(label=who.ADAPTIVE, members=ours),
        ),
        figure="pareto",
        points=1,
    )


def _ridges(name: str, environment: Spec, *, sizes: tuple[int, ...], ridges: tuple[float, ...]) -> Experiment:
    """Each method with every ridge, untuned: beta is 0.1."""
    fixed = (*who.sized("SOFUL", *sizes), *who.sized("CBSCFD", *sizes))
    return Experiment(
        id=f"ridge-{name}",
        title="what lambda does to each method, with beta = 0.1",
        environment=environment,
        series=tuple(
            Series(label=label, members=tuple(method.with_settings(ridge=r, beta=0.1) for r in ridges))
            for label, method in (who.OFUL, *fixed, who.BLOCKS_FD, who.BLOCKS_RFD)
        ),
        figure="ridges",
        points=1,
    )


def _matrix(data: str, *, paper: str = "ours") -> Experiment:
    """Frequent Directions beside blocks, reading the rows of a matrix."""
    return Experiment(
        id="matrix-approximation" + ("" if data == "gaussian" else f"-{data}"),
        title=f"spectral error of FD and DBS on {data} rows",
        paper=paper,
        environment=spec("rows", data=data, dim=500) if data == "gaussian" else spec("rows", data=data),
        series=who.alone(
            ("FD, l = 50", spec("fd", size=50)),
            *((f"DBS, ε = {e}", spec("dbs", size=16, epsilon=e)) for e in (5, 10, 20)),
        ),
        rounds=1250,
        figure="approximation",
        points=50,
        kind="approximate",
        own_colours=True,
    )


_WIDE, _WIDE_FIRST, _NARROW_FIRST = _spaced(10, 600), _spaced(50, 200), _spaced(4, 24)
_MNIST_METHODS = who.alone(who.OFUL, *who.sized("SOFUL", 20, 100, 150), who.BLOCKS_FD)
_PAPERS_KIBIBYTES = (4802.0, 682.9, 1528.3, 2529.3, 2842.0)

EXPERIMENTS = (
    Experiment(
        id="synthetic-fd",
        title="regret of FD-based methods",
        paper="Fig. 1 (a)",
        environment=FLAT,
        series=who.alone(who.OFUL, *who.sized("SOFUL", 50, 450), who.BLOCKS_FD, *who.sized("CBRAP", 50)),
        rounds=4000,
        spectrum="end",
    ),
    Experiment(
        id="synthetic-rfd",
        title="regret of RFD-based methods",
        paper="Fig. 1 (b)",
        environment=FLAT,
        series=who.alone(who.OFUL, *who.sized("CBSCFD", 50, 450), who.BLOCKS_RFD, *who.sized("CBRAP", 50)),
        rounds=4000,
        spectrum="end",
    ),
    Experiment(
        id="spectral-error",
        title="log Δ / log t of SOFUL's arms",
        paper="Fig. 1 (c)",
        environment=FLAT,
        series=who.alone(*((f"l = {size}", spec("soful", size=size)) for size in (50, 200, 350, 450))),
        rounds=4000,
        figure="exponents",
        points=25,
        spectrum="all",
        own_colours=True,
    ),
    Experiment(
        id="power-law",
        title="regret where the spectrum of the arms decays",
        environment=POWER_LAW,
        series=who.ALL_AT_50,
    ),
    Experiment(
        id="low-rank",
        title="regret where the arms have rank 20",
        environment=LOW_RANK,
        series=who.ALL_AT_50,
    ),
    _ridges("synthetic", FLAT, sizes=(50,), ridges=(0.02, 0.2, 2.0, 20.0, 200.0)),
    Experiment(
        id="mnist-epsilon",
        title="regret and time of DBSLinUCB-FD against epsilon and l0",
        paper="Fig. 3 (a), (b)",
        environment=MNIST,
        series=tuple(
            Series(label=f"l₀ = {size}", members=who.blocks(0, *((size, e) for e in (2, 4, 8, 12, 16, 25))))
            for size in (50, 100, 200)
        ),
        figure="epsilons",
        points=1,
        own_colours=True,
    ),
    _pareto("mnist", sizes=_WIDE, first_sizes=_WIDE_FIRST, paper="Fig. 3 (c), (d)"),
    _pareto("cnae-9", sizes=_WIDE, first_sizes=_WIDE_FIRST, paper="Fig. 6 (a), (d)"),
    _pareto("mfeat", sizes=_spaced(5, 47), first_sizes=_NARROW_FIRST, paper="Fig. 6 (b), (e)"),
    _pareto("spam", sizes=_spaced(5, 57), first_sizes=_NARROW_FIRST, paper="Fig. 6 (c), (f)"),
    _pareto("mfeat", sizes=_spaced(5, 47), first_sizes=_WIDE_FIRST, paper="Fig. 6 (b), (e)", wide=True),
    _pareto("spam", sizes=_spaced(5, 57), first_sizes=_WIDE_FIRST, paper="Fig. 6 (c), (f)", wide=True),
    _pareto("digits", sizes=_spaced(5, 64), first_sizes=_NARROW_FIRST),
    _matrix("gaussian", paper="Fig. 4"),
    _matrix("digits"),
    Experiment(
        id="mnist-curves",
        title="regret and running time on mnist",
        paper="Fig. 5",
        environment=MNIST,
        series=_MNIST_METHODS,
        figure="timed",
        spectrum="end",
    ),
    Experiment(
        id="mnist-space",
        title="space on mnist",
        paper="Table 2",
        environment=MNIST,
        series=tuple(
            replace(series, reported=kibibytes)
            for series, kibibytes in zip(_MNIST_METHODS, _PAPERS_KIBIBYTES, strict=True)
        ),
        figure="space",
        spectrum="end",
    ),
    _ridges("mnist", MNIST, sizes=(20, 100), ridges=(0.0002, 0.002, 0.02, 0.2, 2.0, 20.0, 200.0)),
    Experiment(
        id="algorithms",
        title="the table of algorithms, its bounds evaluated, beside what was measured",
        paper="Table 1",
        environment=FLAT,
        series=who.ALL_AT_50,
        rounds=4000,
        figure="algorithms",
        spectrum="end",
    ),
)
