"""health() watches the predictions: it notices a world that changes, and does not cry wolf."""

import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.policy.watch import BLOCK, PredictionWatch
from tests.policies import Matrix, saved, unit

Played = Iterator[tuple[Matrix, Callable[[int], float]]]


def linear(count: int, seed: int) -> Played:
    """Gaussian arms."""
    return of(sb.GaussianArms(dim=8, arms=6, seed=seed, noise=0.1), count)


def _entry(values: Any, index: int) -> float:
    return float(values[index])


def of(environment: Any, count: int) -> Played:
    """The rounds of an environment."""
    for drawn in environment.rounds(count):
        yield drawn.arms, drawn.reward


def constant(count: int, seed: int) -> Played:
    """A reward that no arm without an intercept explains."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield random.standard_normal((5, 8)), lambda _: 1.0


def bent(count: int, seed: int) -> Played:
    """Rewards that are not linear in the arms."""
    random = np.random.default_rng(seed)
    theta = random.standard_normal(8)
    for _ in range(count):
        arms = unit(random.standard_normal((6, 8)))
        means = np.abs(arms @ theta) + np.sin(4.0 * arms @ theta) + 0.1 * random.standard_normal()
        yield arms, partial(_entry, means)


def labels(count: int, seed: int, *, switch: int | None = None) -> Played:
    """Classification: one of ten kinds of arms is right; another one, after a switch."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((10, 20))
    for number in range(count):
        kinds = random.permutation(10)
        arms = unit(centres[kinds] + 0.8 * random.standard_normal((10, 20)))
        right = 3 if switch is None or number < switch else 5
        yield arms, partial(_entry, kinds == right)


def clicks(base: float) -> Callable[[int, int], Played]:
    """Clicks that become more as the policy learns, and noisier with that."""
    return lambda count, seed: of(
        sb.Clicks(sb.GaussianArms(dim=8, arms=6, seed=seed), base_rate=base, lift=4.0, seed=seed), count
    )


def tails(count: int, seed: int) -> Played:
    """Outliers that spoil the predictions of many rounds."""
    wild = sb.HeavyTails(sb.GaussianArms(dim=8, arms=6, seed=seed), degrees=1.5, scale=0.1, seed=seed)
    return of(wild, count)


STATIONARY: dict[str, Callable[[int, int], Played]] = {
    "linear": linear,
    "constant": constant,
    "bent": bent,
    "labels": labels,
    "clicks at 2 %": clicks(0.02),
    "clicks at 10 %": clicks(0.1),
    "tails": tails,
}
POLICIES: dict[str, Callable[[int], Any]] = {
    "ucb": lambda dim: sb.oful(dim, beta=0.3),
    "thompson": lambda dim: sb.adaptive(dim, seed=0),
    "lossy": lambda dim: sb.soful(dim, size=4, beta=0.2),
    "compensated": lambda dim: sb.cbscfd(dim, size=4, beta=0.2),
    "forgetting": lambda dim: sb.oful(dim, beta=0.3, forget=0.99),
}


def play(policy: Any, rounds: Played, *, late: int = 0) -> Any:
    """Rewards come so many rounds late."""
    waiting = []
    for arms, reward in rounds:
        chosen = policy.select(arms)
        waiting.append((arms[chosen], reward(chosen)))
        if len(waiting) > late:
            policy.update(*waiting.pop(0))
    return policy


@pytest.mark.parametrize("world", STATIONARY)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
def test_a_world_that_stays_is_no_news(world: str, name: str) -> None:
    """Whether the model fits or not, and while it learns: no warning, which would be an error."""
    for seed, late in ((0, 0), (1, 20)):
        rounds = STATIONARY[world](1000, seed)
        policy = play(POLICIES[name](20 if world == "labels" else 8), rounds, late=late)
        assert not policy.health().world_changed
        assert policy.health().changed_at is None


@pytest.mark.parametrize("noise", ["normal", "rare", "heavy"])
def test_false_alarms_are_as_rare_as_is_said(noise: str) -> None:
    """400,000 rounds of errors that keep their size: at most one in a million rounds is said, none comes."""
    random = np.random.default_rng(1)
    for _ in range(20):
        watch = PredictionWatch()
        draws: dict[str, Any] = {
            "normal": random.standard_normal(20_000),
            "rare": (random.random(20_000) < 0.03) - 0.03,
            "heavy": random.standard_t(3.0, 20_000),
        }
        for error in draws[noise].tolist():
            watch.see(0.5 + error, error, 0.01)
            if len(watch.pending) == BLOCK:
                watch.close(1.0)
                assert not watch.has_changed


def revenue(count: int, seed: int, *, size: float, chance: float, arms: Any = None) -> Played:
    """A large reward in few rounds, whatever is chosen, and else little noise."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        reward = size * (random.random() < chance) + 0.1 * random.standard_normal()
        drawn = unit(random.standard_normal((6, 8))) if arms is None else arms
        yield drawn, lambda _, reward=reward: float(reward)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["ucb", "default"])
@pytest.mark.parametrize("arms", [None, np.eye(8)], ids=["drawn", "fixed"])
@pytest.mark.parametrize(("size", "chance"), [(1000.0, 0.001), (100.0, 0.01)])
def test_rare_large_rewards_are_no_news(size: float, chance: float, arms: Any, name: str) -> None:
    """One spoils the predictions of hundreds of rounds: it was taken for a change, in most of these runs."""
    for seed in range(4):
        policy: Any = sb.oful(8, beta=0.3) if name == "ucb" else sb.adaptive(8, seed=seed)
        play(policy, revenue(3000, seed, size=size, chance=chance, arms=arms))
        assert policy.health().changed_at is None


def flipped(count: int, seed: int, *, at: int, noise: Callable[[np.random.Generator], float]) -> Played:
    """theta* changes its sign."""
    random = np.random.default_rng(seed)
    theta = unit(random.standard_normal((1, 10)))[0]
    for number in range(count):
        arms = unit(random.standard_normal((6, 10)))
        means = (theta if number < at else -theta) @ arms.T
        yield arms, partial(_entry, means + noise(random))


@pytest.mark.parametrize(
    ("at", "noise"),
    [
        (1200, lambda random: 0.1 * random.standard_normal()),
        (2040, lambda random: 0.1 * random.standard_normal()),  # the reference ends with some rounds of it
        (1200, lambda random: 0.1 * random.standard_t(3.0)),  # outliers before and after
    ],
)
def test_a_flip_is_noticed_within_300_rounds(at: int, noise: Callable[[np.random.Generator], float]) -> None:
    """Also just before a mark, and among outliers: there it was never noticed."""
    for seed in range(3):
        policy = sb.adaptive(10, seed=seed)
        with pytest.warns(sb.WorldChangedWarning):
            play(policy, flipped(at + 300, seed, at=at, noise=noise))
        assert (policy.health().changed_at or 0) > at


def test_a_watch_goes_on_as_if_never_stopped() -> None:
    """To the bit, through JSON, after every block: an outlier that spoils 200 rounds, and later a change."""
    noise = 0.1 * np.random.default_rng(0).standard_normal(4000)
    noise[2200] = 50.0
    errors = noise.copy()
    errors[2201:2400] += 0.5
    errors[3600:] += 0.5
    watch, kept = PredictionWatch(), PredictionWatch()
    noticed = []
    for by, error in zip(noise.tolist(), errors.tolist(), strict=True):
        for one in (watch, kept):
            one.see(0.5 + by, error, 0.01)
        if len(kept.pending) == BLOCK:
            for one in (watch, kept):
                one.close(1.0)
            noticed.append(watch.has_changed)
            kept = PredictionWatch.undump(json.loads(json.dumps(watch.dump())))
            assert json.dumps(kept.dump()) == json.dumps(watch.dump())
            assert kept.has_changed == watch.has_changed
    assert 3600 < (noticed.index(True) + 1) * BLOCK <= 3800
    old = watch.dump()
    del old["suspects"]  # as in files of 0.14
    assert PredictionWatch.undump(old).dump() == {**watch.dump(), "suspects": (0.0, 0.0, 0.0)}


@pytest.mark.parametrize("name", ["ucb", "thompson"])
@pytest.mark.parametrize("world", ["linear", "labels"])
def test_a_switch_is_noticed(world: str, name: str) -> None:
    """A switch after 1,200 rounds is noticed in the next 400; once, with what to do about it."""
    if world == "labels":
        dim, rounds = 20, labels(1600, 0, switch=1200)
    else:
        first, then = (sb.GaussianArms(dim=8, arms=6, seed=seed, noise=0.1) for seed in (0, 1))
        dim, rounds = 8, of(sb.Switching(first, then, at=1200), 1600)
    policy = POLICIES[name](dim)
    with pytest.warns(sb.WorldChangedWarning, match=r"policy\.reset\(\)") as caught:
        play(policy, rounds)
    assert [warning.filename for warning in caught] == [__file__]
    health = policy.health()
    assert health.world_changed
    assert health.changed_at is not None
    assert 1200 < health.changed_at <= 1600
    assert "forget=" in health.sentence
    assert "sublinear" not in health.sentence
    policy.reset()
    assert not policy.health().world_changed


def test_what_forgets_is_not_warned_but_says_so() -> None:
    """It follows by itself; health tells, and calms down when it has followed."""
    policy = sb.oful(20, forget=0.996)
    play(policy, labels(2300, 0, switch=1200))
    noticed = policy.health().changed_at
    assert noticed is not None
    assert 1200 < noticed <= 1500
    assert not policy.health().world_changed  # three memories later
    near = play(sb.oful(20, forget=0.996), labels(noticed + 10, 0, switch=1200))
    assert near.health().world_changed
    assert "forgets, so it adapts" in near.health().sentence


def test_arms_never_seen_are_not_blamed_on_the_world() -> None:
    """The same theta*, but arms in new directions: large errors where x'A^-1 x is large are no change."""
    random = np.random.default_rng(0)
    theta, policy = 3.0 * np.ones(40), sb.oful(40, beta=0.1)
    for number in range(1500):
        arms = np.zeros((4, 40))
        some = slice(0, 5) if number < 1000 else slice(5, 40)
        arms[:, some] = unit(random.standard_normal((4, some.stop - some.start)))
        chosen = policy.select(arms)
        policy.update(arms[chosen], float(arms[chosen] @ theta + 0.1 * random.standard_normal()))
    assert policy.health().changed_at is None


def test_the_watch_is_saved(tmp_path: Path) -> None:
    """In the middle of a block, and with an error that overflows; files without it begin to watch."""
    policy = play(POLICIES["ucb"](20), labels(1230, 0, switch=1200))
    policy.save(tmp_path / "p")
    loaded: Any = sb.load(tmp_path / "p")
    assert saved(loaded) == saved(policy)
    rest = list(labels(1500, 0, switch=1200))[1230:]
    noticed = set()
    for one in (policy, loaded):
        with pytest.warns(sb.WorldChangedWarning):
            play(one, iter(rest))
        noticed.add(one.health().changed_at)
    assert len(noticed) == 1
    scalars, arrays = policy.dump()
    del scalars["world"]
    assert not type(policy).undump(scalars, arrays).health().world_changed
    wild = sb.oful(2)
    wild.update([1.0, 0.0], 1e160)
    wild.update([-1.0, 1.0], 1e160)
    wild._watch.drift.see(1.0, float("inf"), 0.0)
    assert saved(type(wild).undump(*wild.dump())) == saved(wild)
    for _ in range(200):
        wild.update([1.0, 1.0], 1e159)
    assert wild.health().changed_at is None


def test_merged_policies_watch_anew() -> None:
    """What errors to expect of both together is not known; what was noticed is kept."""
    policies = [play(POLICIES["ucb"](8), linear(300, 0)) for _ in range(2)]
    policies[1]._watch.drift.changed_at = 250
    policies[0].merge(policies[1])
    assert policies[0].health().changed_at == 250
    assert policies[0]._watch.drift._reference is None


def test_models_of_actions_say_which() -> None:
    """The warning names the action whose rewards have changed."""
    random = np.random.default_rng(0)
    models = sb.PerAction(["a", "b"], lambda: sb.oful(3))
    theta = np.array([1.0, -1.0, 0.5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(1600):
            x = random.standard_normal(3)
            sign = -1.0 if number > 1000 else 1.0
            models.update(x, "a", float(sign * (x @ theta) + 0.1 * random.standard_normal()))
            models.update(x, "b", float(x @ theta + 0.1 * random.standard_normal()))
    assert len(caught) == 1
    assert str(caught[0].message).startswith("action 'a': The world has changed")
    assert not models.health()["b"].world_changed
