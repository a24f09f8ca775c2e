"""Logged probabilities against draws: a grid of rules, models, doors and degenerate cases, and its statistic.

``tests/test_propensities.py`` plays it with few draws, ``benchmarks/propensities.py`` with many.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array

import sketchbandit as sb
from sketchbandit_service.choosing import chances
from sketchbandit_service.choosing import choose as choose_in_service
from sketchbandit_service.offered import ActionSet, ArmSet

Array = NDArray[np.float64]
Random = np.random.Generator
Logged = tuple[Any, float]
"""What was chosen, and the probability that the door gives it."""

DIM = 6
_RARE = 5.0  # expected choices below which arms share a cell
_MANY = 50.0  # expected choices from which on their share is nearly Gaussian
_NOISE = 4.0  # standard errors
_TOGETHER = 500  # draws

RULES: dict[str, Callable[[int], sb.Explore]] = {
    "UCB, floor": lambda _: sb.UCB(0.3, floor=0.2),
    "Greedy, floor": lambda _: sb.Greedy(floor=0.1),
    "EpsilonGreedy": lambda _: sb.EpsilonGreedy(0.3),
    "Thompson": lambda samples: sb.Thompson(0.5, samples=samples),
    "Thompson, floor": lambda samples: sb.Thompson(0.5, samples=samples, floor=0.05),
    "InverseGap": lambda _: sb.InverseGap(20.0),
    "InverseGap, floor": lambda _: sb.InverseGap(20.0, growth=0.5, floor=0.05),
    "InverseGap, eliminate": lambda _: sb.InverseGap(20.0, eliminate=0.3),
}
MODELS: dict[str, Callable[[], sb.Estimate]] = {
    "Linear": sb.Linear,
    "Logistic": sb.Logistic,
    "Poisson": sb.Poisson,
    "Robust": sb.Robust,
}


class Play(NamedTuple):
    """A door of a policy that has stopped learning: so many draws, and one draw with its probability.

    Both draw alike from a generator.
    """

    draw: Callable[[Random, int], list[Any]]
    log: Callable[[Random], Logged]


class Cell(NamedTuple):
    """One case of the grid."""

    rule: str
    model: str
    door: str
    case: str

    def __str__(self) -> str:
        return ", ".join(self)


# -- cases: how arms degenerate, and what the policy has learned ------------------------------------------


def _unit(count: int, seed: int = 8) -> Array:
    rows: Array = np.random.default_rng(seed).standard_normal((count, DIM))
    unit: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _counts(seed: int = 5) -> Array:
    counts: Array = np.random.default_rng(seed).poisson(1.0, (3, DIM)) + np.eye(3, DIM)
    return counts


class Case(NamedTuple):
    """Arms, and a policy for them."""

    arms: Array | NDArray[np.float32]
    settings: dict[str, Any]
    rounds: int = 25


AS_THEY_ARE = {"scaling": None, "intercept": False}
ROWS = {"scaling": "rows"}

CASES: dict[str, Case] = {
    "five arms": Case(_unit(5), AS_THEY_ARE),
    "copies": Case(_unit(4)[[0, 1, 0, 2, 1, 3]], AS_THEY_ARE),
    "multiples": Case(
        np.concatenate([_counts(), 3.0 * _counts(), 7.0 * _counts()])[[2, 3, 7, 0, 4, 8]], ROWS
    ),
    "float32": Case(
        (np.concatenate([_unit(3), 3.0 * _unit(3)]) / 7.0).astype(np.float32), {**ROWS, "dtype": np.float32}
    ),
    "zeros": Case(np.array([[0.0], [1.0], [0.0], [1.0], [0.0]]) * _unit(5), AS_THEY_ARE),
    "ties": Case(np.eye(5, DIM), AS_THEY_ARE, rounds=0),
    "one arm": Case(_unit(1), AS_THEY_ARE),
    "warming up": Case(_unit(5), {"scaling": "columns"}),
    "forgotten": Case(_unit(5), {**AS_THEY_ARE, "forget": 0.9}, rounds=60),
}


def learned(cell: Cell, samples: int) -> Any:
    """The policy of a cell, which has stopped learning; a ``PerAction`` for that door."""
    case, random = CASES[cell.case], np.random.default_rng(3)

    def make() -> Any:
        return sb.adaptive(
            DIM, explore=RULES[cell.rule](samples), rewards=MODELS[cell.model](), **case.settings
        )

    is_split = "action" in cell.door
    policy: Any = sb.PerAction([f"a{i}" for i in range(len(case.arms))], make) if is_split else make()
    policy._scales_itself = False  # a warm-up goes on, as in the service
    for number in range(case.rounds):
        row = np.abs(_unit(1, seed=100 + number)[0]) if case.settings.get("scaling") == "rows" else None
        row = _unit(1, seed=100 + number)[0] if row is None else row
        reward = float(random.random() < 0.3 + 0.4 * max(row[0], 0.0))
        policy.update(row, *([f"a{number % len(case.arms)}"] if is_split else []), reward)
    return policy


# -- doors ------------------------------------------------------------------------------------------------


def _of_one(policy: Any, arms: Any) -> Play:
    def log(random: Random) -> Logged:
        choice = policy.choose(arms, random=random)
        return choice[0], choice.probability

    def draw(random: Random, count: int) -> list[Any]:
        if isinstance(policy, sb.PerAction):
            found: list[Any] = policy.select_many(np.tile(arms, (count, 1)), random=random)
            return found
        many = np.repeat(arms[np.newaxis], count, axis=0) if isinstance(arms, np.ndarray) else [arms] * count
        return policy.select_many(many, random=random).tolist()  # type: ignore[no-any-return]

    return Play(draw, log)


def _one_by_one(draw: Callable[[Random], Any], log: Callable[[Random], Logged]) -> Play:
    return Play(lambda random, count: [draw(random) for _ in range(count)], log)


def _slate(policy: Any, arms: Any) -> Play:
    count = min(2, len(policy.actions) if isinstance(policy, sb.PerAction) else len(arms))

    def log(random: Random) -> Logged:
        places = policy.slate(arms, count, random=random)
        return tuple(place[0] for place in places), float(np.prod([p.probability for p in places]))

    def draw(random: Random) -> Any:
        found = policy.top(arms, count, random=random)
        return tuple(found if isinstance(found, list) else found.tolist())

    return _one_by_one(draw, log)


def _batch(policy: Any, arms: Any) -> Play:
    def log(random: Random) -> Logged:
        (choice,) = policy.choose_many([arms], random=random)
        return choice[0], choice.probability

    return _one_by_one(lambda random: policy.select(arms, random=random), log)


def _service(policy: Any, arms: Any) -> Play:
    offered: Any = ArmSet(np.asarray(arms, dtype=np.float64), None)
    if isinstance(policy, sb.PerAction):
        offered = ActionSet(arms, [str(name) for name in policy.actions])

    def draw(random: Random) -> Any:
        return int(choose_in_service(policy, offered, 1, random).index[0])

    def log(random: Random) -> Logged:
        found = choose_in_service(policy, offered, 1, random)
        if policy.explore.exact_probabilities:
            return int(found.index[0]), float(found.propensity[0])
        asked, options = offered.question(policy)
        index = int(found.index[0])
        return index, next(chances(policy.scores(asked, **options), [index]))

    return _one_by_one(draw, log)


def _context(policy: Any, arms: Any) -> Array:
    del policy
    context: Array = np.asarray(arms, dtype=np.float64)[-1]
    return context


DOORS: dict[str, Callable[[Any, Any], Play]] = {
    "arrays": _of_one,
    "sparse": lambda policy, arms: _of_one(policy, csr_array(arms)),
    "catalogue": lambda policy, arms: _of_one(policy, sb.Catalogue(arms)),
    "batch": _batch,
    "slate": _slate,
    "slate of a catalogue": lambda policy, arms: _slate(policy, sb.Catalogue(arms)),
    "service": _service,
    "actions": lambda policy, arms: _of_one(policy, _context(policy, arms)),
    "slate of actions": lambda policy, arms: _slate(policy, _context(policy, arms)),
    "service, actions": lambda policy, arms: _service(policy, _context(policy, arms)),
}


_ALIKE = ("five arms", "copies", "multiples")
CASES_OF: dict[str, tuple[str, ...]] = {
    "arrays": tuple(CASES),
    "sparse": tuple(CASES),
    "catalogue": tuple(CASES),
    "batch": (*_ALIKE, "float32", "warming up"),
    "slate": (*_ALIKE, "zeros"),
    "slate of a catalogue": _ALIKE,
    "service": (*_ALIKE, "warming up"),
    "actions": ("five arms", "zeros", "ties", "one arm", "warming up", "forgotten"),
    "slate of actions": ("five arms", "zeros"),
    "service, actions": ("five arms", "warming up"),
}
"""What can go wrong at each door. Actions have one context: no arms that could be copies."""


def grid() -> Iterator[Cell]:
    """Every rule at every door in its cases; every rule and model where arms are multiples."""
    for rule in RULES:
        for door, cases in CASES_OF.items():
            yield from (Cell(rule, "Linear", door, case) for case in cases)
        for model in list(MODELS)[1:]:
            yield from (Cell(rule, model, door, "multiples") for door in ("arrays", "sparse", "catalogue"))
            yield Cell(rule, model, "actions", "five arms")


# -- the statistic ----------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """Draws against what was logged."""

    p_value: float
    """Of chi-square. Zero if something was logged with 0, or with more than one in all."""
    off: float
    """How far the mean of 1{a}/p is from 1, for the worst arm with p > 0.001."""
    excess: float
    """The same, beyond four standard errors."""


def judge(cell: Cell, draws: int, samples: int) -> Verdict:
    """Draw, and ask for the logged probability of everything that was drawn, where it was first drawn.

    Sampled probabilities have an error of their own: then cells have the variance of a difference between
    two samples, n·p·(1 + n/samples) for the share that is sampled.
    """
    policy = learned(cell, samples)
    rule = policy.explore
    play = DOORS[cell.door](policy, CASES[cell.case].arms)
    random, counts = np.random.default_rng(crc32(str(cell).encode())), Counter[Any]()
    logged: dict[Any, float] = {}
    while (drawn := counts.total()) < draws:
        count, state = min(_TOGETHER, draws - drawn), random.bit_generator.state
        keys = play.draw(random, count)
        counts.update(keys)
        after = random.bit_generator.state
        for key in set(keys) - logged.keys():
            random.bit_generator.state = state
            before = keys.index(key)
            assert not before or play.draw(random, before) == keys[:before]
            again, logged[key] = play.log(random)
            assert again == key, f"{cell}: the draw of {key} is logged as {again}"
        random.bit_generator.state = after
    error = 0.0 if rule.exact_probabilities else draws * (1.0 - rule.uniform_share) / samples
    error *= 2.0 if cell.door.startswith("slate") else 1.0
    return _verdict(counts, logged, draws, error)


def _verdict(counts: Counter[Any], logged: dict[Any, float], draws: int, error: float) -> Verdict:
    seen, chance = np.array([counts[key] for key in logged], dtype=float), np.array(list(logged.values()))
    unseen = 1.0 - float(chance.sum())
    if (chance <= 0.0).any() or unseen < -1e-6 - 4.0 * np.sqrt(error / draws):
        return Verdict(0.0, np.inf, np.inf)
    expected, is_rare = draws * chance, draws * chance < _RARE
    rest = draws * max(unseen, 0.0) + float(expected[is_rare].sum())
    cells = np.append(expected[~is_rare], rest if rest > _RARE else [])
    found = np.append(seen[~is_rare], float(seen[is_rare].sum()) if rest > _RARE else [])
    square = float((np.square(found - cells) / (cells * (1.0 + error))).sum())
    p_value = float(stats.chi2.sf(square, len(cells) - 1)) if len(cells) > 1 else 1.0
    if rest <= _RARE:
        p_value = min(p_value, float(stats.poisson.sf(seen[is_rare].sum() - 1.0, max(rest, 1e-9) + 1e-6)))
    often = (chance > 1e-3) & (expected > _MANY)
    noise = _NOISE * np.sqrt((1.0 - chance) * (1.0 + error) / expected)
    off = np.abs(seen / expected - 1.0)
    excess = np.maximum(off - noise, 0.0)[often]
    return Verdict(p_value, float(off[often].max(initial=0.0)), float(excess.max(initial=0.0)))
