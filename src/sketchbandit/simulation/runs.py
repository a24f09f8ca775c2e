"""One run: what is asked for, as data, and the rows it gives. Runs know nothing of the figures they serve."""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass

import numpy as np
from scipy import sparse

from sketchbandit._version import __version__
from sketchbandit.arrays import Rows, Scalars
from sketchbandit.environment import Environment
from sketchbandit.errors import SketchTooSmallWarning, WorldChangedWarning
from sketchbandit.linalg import fd_bound, gram_spectrum
from sketchbandit.simulation import (
    approximation,
    calibration,
    chance,
    droughts,
    environments,
    policies,
    rules,
)
from sketchbandit.simulation.loop import play
from sketchbandit.simulation.specs import Spec
from sketchbandit.simulation.streams import stream
from sketchbandit.simulation.tuning import Pair, Player, race

Row = Scalars


@dataclass(frozen=True)
class Run:
    """A contender in an environment with a seed.

    Attributes
    ----------
    kind : str
        "play": a policy plays and is timed. "chance": what a uniform choice earns. "tune": pairs of ridge
        and rule's number race for the least mean regret over several seeds; who cannot win is given up.
        "starve": a policy plays, for how long it earns nothing. "click": a policy plays, and its predictions
        are compared with the clicks.
        "approximate": a sketch reads rows.
    environment, contender : Spec
        Where, and what.
    rounds, seed : int
        How long, and which draw.
    points : int
        How many times on the way a row is written.
    spectrum : str
        Of the arms chosen: "no", or their rank and spectral error at the "end", or at "all" points.
    grid : tuple of (ridge, number)
        For "tune"; None for the number of a rule that has none.
    further_seeds : tuple of int
        For "tune": draws that are played besides.

    """

    kind: str
    environment: Spec
    contender: Spec
    rounds: int
    _: KW_ONLY
    seed: int
    points: int = 1
    spectrum: str = "no"
    grid: tuple[Pair, ...] = ()
    further_seeds: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Names the run: equal settings in the same version have the same key."""
        text = json.dumps([__version__, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def to_json(self) -> str:
        """For a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """The inverse of ``to_json``."""
        fields = json.loads(text)
        for name in ("environment", "contender"):
            fields[name] = Spec.from_list(fields[name])
        fields["grid"] = tuple((ridge, number) for ridge, number in fields["grid"])
        fields["further_seeds"] = tuple(fields["further_seeds"])
        return cls(**fields)


def perform(run: Run) -> list[Row]:
    """The rows of a run. Everything but the column ``seconds`` depends on the run alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SketchTooSmallWarning)  # what it says is a column of the rows
        warnings.simplefilter("ignore", WorldChangedWarning)
        rows = list(_KINDS[run.kind](run))
    common = {
        "run": run.key,
        "kind": run.kind,
        "environment": str(run.environment),
        "contender": str(_untuned(run)),
        "seed": run.seed,
        "rounds": run.rounds,
        "version": __version__,
    }
    return [{**common, **row} for row in rows]


def _untuned(run: Run) -> Spec:
    return run.contender if run.kind == "approximate" else policies.untuned(run.contender)


def _play(run: Run) -> Iterator[Row]:
    environment = stream(run.environment, run.seed)
    policies.warm_up(run.contender, per_action=environment.actions is not None)
    policy = policies.build_for(environment, run.contender, run.seed, run.rounds)
    chosen: list[Rows] = []
    every = max(1, run.rounds // run.points)
    watch = None if run.spectrum == "no" else lambda arm: chosen.append(arm.copy())  # not all of its round
    how = {"delay": run.contender.get(policies.DELAY, 0), "every": every, "watch": watch}
    for row in play(policy, environment, run.rounds, clock=time.thread_time, **how):
        last = row.round == run.rounds
        yield {
            "ridge": policy.ridge,
            "number": rules.number_played(policy),
            "round": row.round,
            "reward": row.total_reward,
            "regret": row.total_regret,
            "seconds": row.total_seconds,
            "bytes": row.bytes,
            "peak_bytes": row.peak_bytes,
            "sketch_size": row.sketch_size,
            "sketch_rows": row.sketch_rows,
            "certificate": row.certificate,
            "budget": row.budget,
            "warned": policy.health().heading_for_linear_regret,
            **(_spectrum(chosen, run.contender) if run.spectrum == "all" or (watch and last) else {}),
        }


def _chance(run: Run) -> Iterator[Row]:
    return chance.measure(stream(run.environment, run.seed), run.rounds, run.points)


def _spectrum(chosen: Sequence[Rows], contender: Spec) -> Row:
    """The rank of the arms chosen so far, and Delta_t of eq. (spectral error) for the contender's size."""
    stream = sparse.vstack(chosen) if sparse.issparse(chosen[0]) else np.asarray(chosen)
    sigma_sq = gram_spectrum(stream)
    tolerance = sigma_sq[0] * max(stream.shape) * np.finfo(np.float64).eps
    size = contender.get("size")
    delta = {} if size is None else {"delta": fd_bound(sigma_sq, int(size))}
    return {"rank": int((sigma_sq > tolerance).sum()), **delta}


def _tune(run: Run) -> Iterator[Row]:
    seeds, delay = (run.seed, *run.further_seeds), run.contender.get(policies.DELAY, 0)
    place = environments.build(run.environment, run.seed)

    def players(pair: Pair) -> list[Player]:
        contender = policies.tuned(run.contender, *pair)
        return [Player(policies.build_for(place, contender, seed, run.rounds), delay) for seed in seeds]

    def permutations() -> list[Environment]:
        return [environments.build(run.environment, seed) for seed in seeds]

    for (ridge, number), found in race(run.grid, players, permutations, run.rounds).items():
        yield {"ridge": ridge, "number": number, "round": found.rounds, "regret": found.regret}


def _click(run: Run) -> Iterator[Row]:
    environment = stream(run.environment, run.seed)
    policy = policies.build(run.contender, environment.dim, run.seed, run.rounds)
    played = {"ridge": policy.ridge, "number": rules.number_played(policy)}
    for row in calibration.measure(policy, environment, run.rounds, run.points):
        yield {**played, **row}


def _starve(run: Run) -> Iterator[Row]:
    environment = environments.build(run.environment, run.seed)
    policy = policies.build(run.contender, environment.dim, run.seed, run.rounds)
    number = rules.number_played(policy)
    measured = droughts.measure(policy, environment, run.rounds)
    yield {"ridge": policy.ridge, "number": number, "round": run.rounds, **measured}


def _approximate(run: Run) -> Iterator[Row]:
    return approximation.measure(run.environment, run.contender, run.rounds, seed=run.seed, points=run.points)


_KINDS: dict[str, Callable[[Run], Iterator[Row]]] = {
    "play": _play,
    "chance": _chance,
    "tune": _tune,
    "click": _click,
    "starve": _starve,
    "approximate": _approximate,
}
