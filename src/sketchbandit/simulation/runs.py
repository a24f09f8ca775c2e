"""One run: what is asked for, as data, and the rows it gives. Runs know nothing of the figures they serve."""

import hashlib
import json
import math
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit import data
from sketchbandit._version import __version__
from sketchbandit.arrays import Matrix, Rows, Scalars
from sketchbandit.environment import Environment, Round
from sketchbandit.errors import InputError, SketchTooSmallWarning, WorldChangedWarning
from sketchbandit.linalg import covariance_error, fd_bound, gram_spectrum, normalised, row_norms_sq
from sketchbandit.policy import Policy
from sketchbandit.simulation import environments, policies, rules
from sketchbandit.simulation.environments import stream
from sketchbandit.simulation.loop import LateRewards, play
from sketchbandit.simulation.specs import Spec
from sketchbandit.sketch import DyadicBlockSketch, FrequentDirections, Sketch

Row = Scalars
Pair = tuple[float, float | None]
"""Ridge and the rule's number."""


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
        "contender": str(run.contender if run.kind == "approximate" else policies.untuned(run.contender)),
        "seed": run.seed,
        "rounds": run.rounds,
        "version": __version__,
    }
    return [{**common, **row} for row in rows]


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
    for row in calibration(policy, environment, run.rounds, run.points):
        yield {**played, **row}


def _starve(run: Run) -> Iterator[Row]:
    environment = environments.build(run.environment, run.seed)
    policy = policies.build(run.contender, environment.dim, run.seed, run.rounds)
    number = rules.number_played(policy)
    measured = droughts(policy, environment, run.rounds)
    yield {"ridge": policy.ridge, "number": number, "round": run.rounds, **measured}


_KINDS: dict[str, Callable[[Run], Iterator[Row]]] = {
    "play": _play,
    "chance": lambda run: chance(stream(run.environment, run.seed), run.rounds, run.points),
    "tune": _tune,
    "click": _click,
    "starve": _starve,
    "approximate": lambda run: approximation(
        run.environment, run.contender, run.rounds, seed=run.seed, points=run.points
    ),
}


# -- tuning ------------------------------------------------------------------------------------------

_LOOK = 8  # after one round in so many it is seen who leads


class RaceResult(NamedTuple):
    """How far a pair came, and its mean regret until then; the best one came to the end."""

    rounds: int
    regret: float


class Player:
    """One policy on one permutation."""

    def __init__(self, policy: Policy | policies.ActionPolicy, delay: int) -> None:
        self._policy = policy
        self._rewards = LateRewards(delay)
        self.regret = 0.0

    def play(self, drawn: Round) -> None:
        """One round."""
        chosen = self._policy.select(drawn.arms)
        arrived = self._rewards.send(drawn.arm(chosen), drawn.reward(chosen))
        if arrived is not None:
            self._policy.update(*arrived)
        self.regret += drawn.regret(chosen)


def race(
    pairs: Sequence[Pair],
    players: Callable[[Pair], list[Player]],
    environments: Callable[[], list[Environment]],
    rounds: int,
) -> dict[Pair, RaceResult]:
    """The best pair of a grid, without playing every pair to its end.

    Pairs play side by side. Regret never falls, so a pair whose regret so far is above what another one has
    at the end cannot be the best, and is given up. What is found is what playing everything would find.
    After an eighth of the rounds whoever leads then plays alone to the end: that is the regret to beat.

    Parameters
    ----------
    pairs : sequence of pairs
        The grid.
    players : function
        From a pair to new players, one for each permutation.
    environments : function
        The permutations, from their beginning.
    rounds : int
        How long each is played.

    """
    running = {pair: players(pair) for pair in pairs}
    found: dict[Pair, RaceResult] = {}
    to_beat = inf
    for number, drawn in enumerate(_rounds(environments(), rounds), start=1):
        for pair, here in list(running.items()):
            regret = _play_round(here, drawn)
            if number == rounds or regret > to_beat:
                found[pair] = RaceResult(number, regret / len(here))
                del running[pair]
        if number == rounds // _LOOK and len(running) > 1:
            leader = min(running, key=lambda pair: _total(running[pair]))
            alone = players(leader)
            for again in _rounds(environments(), rounds):
                to_beat = _play_round(alone, again)
    return {pair: found[pair] for pair in pairs}


def _rounds(environments: Sequence[Environment], rounds: int) -> Iterator[tuple[Round, ...]]:
    """One round of each at a time."""
    return zip(*(environment.rounds(rounds) for environment in environments), strict=True)


def _play_round(players: Sequence[Player], drawn: Sequence[Round]) -> float:
    """One round of each; the sum of their regrets so far."""
    for player, one in zip(players, drawn, strict=True):
        player.play(one)
    return _total(players)


def _total(players: Sequence[Player]) -> float:
    return sum(player.regret for player in players)


# -- what a run measures ------------------------------------------------------------------------------


def chance(environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
    """What a uniform choice earns, the reference of every comparison, in rows like those of a policy.

    They hold the exact expectation over the choice, so that nothing is drawn.

    >>> from sketchbandit.environment import Classification
    >>> (row,) = chance(Classification(np.eye(4), [0, 1, 2, 3]), rounds=100, points=1)
    >>> row["reward"], row["regret"]
    (25.0, 75.0)
    """
    every = max(1, rounds // points)
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        arms = range(len(drawn.means))
        reward += float(np.mean([drawn.reward(arm) for arm in arms]))
        regret += float(np.mean([drawn.regret(arm) for arm in arms]))
        if number % every == 0 or number == rounds:
            held = dict.fromkeys(("bytes", "peak_bytes", "sketch_size", "sketch_rows"), 0)
            yield {
                "round": number,
                "reward": reward,
                "regret": regret,
                "seconds": 0.0,
                "warned": False,
                **held,
            }


DROUGHT = 500
"""Rounds without any reward that count as starving."""


def droughts(policy: Policy, environment: Environment, rounds: int) -> dict[str, float]:
    """Play, and count the rounds before the first reward, and the longest stretch of rounds without any."""
    first = longest = lasting = 0
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        earned = drawn.reward(chosen)
        policy.update(drawn.arm(chosen), earned)
        reward, regret = reward + earned, regret + drawn.regret(chosen)
        lasting = 0 if earned else lasting + 1
        first, longest = number if lasting == number else first, max(longest, lasting)
    return {"reward": reward, "regret": regret, "dry_at_first": first, "dry_at_most": longest}


EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Between the bins of the predictions."""
LEAST = 0.001
"""For the log loss, predictions are clipped to [LEAST, 1 - LEAST]."""


class Calibration:
    """Counts, predictions and clicks in each bin, and the log loss."""

    def __init__(self) -> None:
        self.log_loss = 0.0
        self._bins = [[0, 0.0, 0.0] for _ in range(len(EDGES) + 1)]

    def see(self, predicted: float, reward: float) -> None:
        """A prediction, and what came."""
        found = self._bins[bisect_right(EDGES, predicted)]
        found[0] += 1
        found[1] += predicted
        found[2] += reward
        chance = min(max(predicted, LEAST), 1.0 - LEAST)
        self.log_loss -= reward * math.log(chance) + (1.0 - reward) * math.log1p(-chance)

    def to_json(self) -> str:
        """For a column of the results: count, sum of the predictions and sum of the clicks of each bin."""
        return json.dumps(self._bins)


def calibration(policy: Policy, environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
    """Play, and compare the mean reward that was predicted of each arm chosen with the reward."""
    found, every = Calibration(), max(1, rounds // points)
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        arm, earned = drawn.arm(chosen), drawn.reward(chosen)
        found.see(float(policy.mean(arm)), earned)
        policy.update(arm, earned)
        reward, regret = reward + earned, regret + drawn.regret(chosen)
        if number % every == 0 or number == rounds:
            row = {"round": number, "reward": reward, "regret": regret, "log_loss": found.log_loss}
            yield {**row, "calibration": found.to_json()}


class Studied(NamedTuple):
    """A sketch, the paper's name for it, and the paper's bound on its error."""

    kind: Callable[..., Sketch]
    title: str
    bound_sign: str
    bound: Callable[[Spec, Matrix], float]


def _delta(contender: Spec, covariance: Matrix) -> float:
    """Delta_t of eq. (spectral error)."""
    spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return fd_bound(spectrum, int(contender.get("size")))


SKETCHES = {
    "fd": Studied(FrequentDirections, title="FD", bound_sign="Δ", bound=_delta),
    "dbs": Studied(  # Thm. 1
        DyadicBlockSketch, title="DBS", bound_sign="2ε", bound=lambda dbs, _: 2.0 * float(dbs.get("epsilon"))
    ),
}


def matrix(environment: Spec, count: int, seed: int) -> Matrix:
    """``rows:data=gaussian,dim=500`` or ``rows:data=digits``: that many unit rows, in random order."""
    random = np.random.default_rng(seed)
    name = str(environment.get("data"))
    if name == "gaussian":
        rows = random.standard_normal((count, int(environment.get("dim", 500))))
    else:
        stored = data.load(name).features
        if not isinstance(stored, np.ndarray):
            raise InputError(f"{name} is sparse; its covariance would not fit: choose a dense data set")
        rows = stored.astype(np.float64)
        rows = rows[row_norms_sq(rows) > 0.0]
        rows = rows[random.permutation(len(rows))[:count]]
    return normalised(rows)


def approximation(
    environment: Spec, contender: Spec, count: int, *, seed: int, points: int
) -> Iterator[Scalars]:
    """Stream the matrix through the sketch; a row at each point."""
    rows = matrix(environment, count, seed)
    dim = rows.shape[1]
    studied = SKETCHES[contender.name]
    sketch = studied.kind(dim, **dict(contender.settings))
    covariance = np.zeros((dim, dim))
    every = max(1, len(rows) // points)
    for start in range(0, len(rows), every):
        block = rows[start : start + every]
        covariance += block.T @ block
        sketch.update(block)
        yield {
            "round": sketch.count,
            "error": covariance_error(covariance, sketch.rows),
            "certificate": sketch.error_bound,
            "bound": studied.bound(contender, covariance),
            "sketch_size": sketch.size,
            "sketch_rows": len(sketch.rows),
            "bytes": sketch.nbytes,
        }
