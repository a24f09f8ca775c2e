"""Catalogues and arrays of other libraries: the same choices as numpy arms in float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.arms import OfferedArms
from sketchbandit.arms import catalogue as catalogues
from sketchbandit.arms.store import make_store
from sketchbandit.array_api import is_foreign
from sketchbandit.policy import chooser
from tests.libraries import LIBRARIES, array_in, numbers_of

RULES: dict[str, Any] = {
    "ucb": lambda: sb.UCB(0.5),
    "wide": lambda: sb.UCB(20.0),
    "greedy": sb.Greedy,
    "thompson": lambda: sb.Thompson(0.5, seed=3),
    "gap": lambda: sb.InverseGap(10.0, seed=3),
    "eliminate": lambda: sb.InverseGap(10.0, eliminate=1.0, seed=3),
    "floor": lambda: sb.UCB(0.5, floor=0.5, seed=3),
}
RECIPES: dict[str, Any] = {
    "oful": sb.oful,
    "soful": lambda dim, **more: sb.soful(dim, size=8, **more),
    "rows": lambda dim, **more: sb.soful(dim, size=8, scaling="rows", intercept=True, **more),
    "columns": lambda dim, **more: sb.soful(dim, size=8, scaling="columns", intercept=True, **more),
    "constant": lambda dim, **more: sb.soful(dim, size=8, intercept=2.0, **more),
    "float32": lambda dim, **more: sb.LinUCB(sb.FrequentDirections(dim, size=8, dtype=np.float32), **more),
    "cbrap": lambda dim, **more: sb.cbrap(dim, size=8, **more),
}


def learned(recipe: str, rule: str, arms: Any, seed: int = 0) -> Any:
    """A policy that has learned something of such arms."""
    policy = RECIPES[recipe](arms.shape[1], explore=RULES[rule]())
    random = np.random.default_rng(seed)
    taste = random.standard_normal(arms.shape[1])
    for index in random.integers(len(arms), size=32).tolist():
        policy.select(arms)
        policy.update(arms[index], float(arms[index] @ taste))
    return policy


def drawn_arms(seed: int, count: int = 400, dim: int = 30) -> Any:
    """Arms whose columns matter less and less."""
    random = np.random.default_rng(seed)
    return (random.standard_normal((count, dim)) * 0.8 ** np.arange(dim)).astype(np.float32)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_catalogue_gives_the_choices_of_its_arms(recipe: str, rule: str, half: bool) -> None:
    """Every rule, scaling and inverse: select, choose and top agree with numpy."""
    arms = drawn_arms(1)
    mine, theirs = (learned(recipe, rule, arms) for _ in range(2))
    catalogue = sb.Catalogue(arms, half=half)
    for _ in range(3):
        assert mine.select(catalogue) == theirs.select(arms)
    assert mine.choose(catalogue).index == theirs.choose(arms).index
    if not mine.explore.draws:
        assert mine.top(catalogue, 7).tolist() == theirs.top(arms, 7).tolist()
        assert [c.index for c in mine.slate(catalogue, 3)] == [c.index for c in theirs.slate(arms, 3)]


@given(
    seed=st.integers(0, 10**6),
    exponent=st.integers(-12, 12),
    kind=st.sampled_from(["plain", "copies", "close", "zero"]),
    half=st.booleans(),
)
def test_the_screen_never_loses_the_best_arm(seed: int, exponent: int, kind: str, half: bool) -> None:
    """The law: whatever the arms, the index is that of float64, ties to the lowest."""
    random = np.random.default_rng(seed)
    arms = drawn_arms(seed, count=120, dim=12) * np.float32(10.0**exponent)
    if kind == "copies":
        arms = arms[random.integers(0, 5, len(arms))]
    elif kind == "close":  # apart by the last digits of float32 alone
        arms = arms[:1] * (1.0 + 2.0**-22 * random.integers(-3, 4, arms.shape)).astype(np.float32)
    elif kind == "zero":
        arms[random.random(len(arms)) < 0.5] = 0.0
    policy = sb.soful(12, size=5, ridge=10.0 ** (2 * exponent), beta=0.3)
    for index in random.integers(len(arms), size=10).tolist():
        policy.update(arms[index].astype(float), float(random.standard_normal()))
    catalogue = sb.Catalogue(arms, half=half)
    assert policy.select(catalogue) == policy.select(arms.astype(np.float64))
    assert policy.top(catalogue, 5).tolist() == policy.top(arms.astype(np.float64), 5).tolist()


@pytest.mark.parametrize("rule", ["ucb", "wide", "greedy", "thompson"])
@pytest.mark.parametrize("interaction", ["times", "beside", "outer"])
@pytest.mark.parametrize("recipe", ["oful", "soful", "rows", "columns", "constant"])
def test_a_context_gives_the_choices_of_formed_features(recipe: str, interaction: str, rule: str) -> None:
    """Product, concatenation and outer product: nothing is formed, and the choice is the same."""
    arms = drawn_arms(2, dim=6).astype(np.float64)
    random = np.random.default_rng(5)
    context = random.standard_normal(6 if interaction == "times" else 3)
    makers: dict[str, Any] = {
        "times": lambda: arms * context,
        "beside": lambda: np.hstack([np.tile(context, (len(arms), 1)), arms]),
        "outer": lambda: np.array([np.kron(context, arm) for arm in arms]),
    }
    formed = makers[interaction]()
    mine, theirs = (learned(recipe, rule, formed) for _ in range(2))
    for half in (False, True):
        offer = getattr(sb.Catalogue(arms.astype(np.float32), half=half), interaction)(context)
        exact = getattr(sb.Catalogue(arms), interaction)(context)
        np.testing.assert_allclose(exact.arm(3), formed[3])
        assert mine.select(exact) == theirs.select(formed)
        assert offer.dim == formed.shape[1]
        assert 0 <= mine.select(offer) < len(arms)
        theirs.select(formed)  # so that both have drawn as often
        np.testing.assert_allclose(mine.mean(exact), theirs.mean(formed), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mine.width(exact), theirs.width(formed), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("recipe", ["oful", "soful", "rows", "columns"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_other_libraries(library: str, recipe: str) -> None:
    """Numbers come back in the caller's library; choices are those of numpy."""
    arms = drawn_arms(3, count=9_000)
    policy, twin = learned(recipe, "ucb", arms[:300]), learned(recipe, "ucb", arms[:300])
    tensor = array_in(library, arms)
    for given_arms in (tensor, sb.Catalogue(tensor)):
        assert policy.select(given_arms) == twin.select(arms)
        assert policy.top(given_arms, 5).tolist() == twin.top(arms, 5).tolist()
        for verb in ("mean", "width", "ucb", "probabilities"):
            found = getattr(policy, verb)(given_arms)
            assert type(found) is type(tensor)
            tolerance = 1e-6 if found.dtype != tensor.dtype else 2e-3
            wanted = getattr(twin, verb)(arms)
            np.testing.assert_allclose(numbers_of(found), wanted, rtol=tolerance, atol=tolerance)
    policy.update(tensor[3, :], 1.0)
    twin.update(arms[3], 1.0)
    assert policy.select(tensor) == twin.select(arms)
    batch = array_in(library, arms[:60].reshape(3, 20, -1))
    assert policy.select_many(batch).tolist() == twin.select_many(arms[:60].reshape(3, 20, -1)).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_on_every_library(library: str, rule: str) -> None:
    """Thompson sampling and inverse gaps too, with the same generator."""
    arms = drawn_arms(4, count=9_000)
    policy, twin = learned("soful", rule, arms[:200]), learned("soful", rule, arms[:200])
    catalogue = sb.Catalogue(array_in(library, arms))
    for _ in range(3):
        assert policy.select(catalogue) == twin.select(arms)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_half_precision_copy_of_another_library(library: str) -> None:
    """bfloat16 for the quick look, the same choice; a library without it is named."""
    arms = drawn_arms(6, count=9_000)
    if library == "array_api_strict":
        with pytest.raises(sb.InputError, match="bfloat16"):
            sb.Catalogue(array_in(library, arms), half=True)
        return
    policy = learned("soful", "ucb", arms[:200])
    catalogue = sb.Catalogue(array_in(library, arms), half=True)
    assert policy.select(catalogue) == policy.select(arms)


def test_rounding_of_the_screen_is_within_its_bound() -> None:
    """The bound of the quick look holds for every arm, plain and in eight bits."""
    arms = drawn_arms(7, count=2_000, dim=200)
    vector = np.random.default_rng(1).standard_normal(200)
    exact = arms.astype(np.float64) @ vector
    for half in (False, True):
        store = make_store(arms, half=half)
        rough, per_norm, per_slack = store.screen(vector)
        allowed = store.norms * per_norm + (store.coarse.slack * per_slack if store.coarse else 0.0)
        assert (np.abs(rough - exact) <= allowed).all()
        assert (store.norms >= np.linalg.norm(arms.astype(np.float64), axis=1)).all()
        weights = np.abs(vector)
        assert (store.norms_of(weights) >= np.linalg.norm(arms * weights, axis=1)).all()


def test_changes_by_id() -> None:
    """Arms come, change and go; choices are those of the arms there are."""
    arms, policy = drawn_arms(8, count=50), learned("soful", "ucb", drawn_arms(8, count=50))
    for half in (False, True):
        catalogue = sb.Catalogue(arms[:40], ids=[f"a{i}" for i in range(40)], half=half)
        catalogue.add(arms[40:], [f"a{i}" for i in range(40, 50)])
        assert policy.select(catalogue) == policy.select(arms)
        catalogue.replace(2.0 * arms[3:5], ["a4", "a3"])
        now = arms.copy()
        now[[4, 3]] = 2.0 * arms[3:5]
        assert policy.top(catalogue, 9).tolist() == policy.top(now, 9).tolist()
        best = policy.select(catalogue)
        catalogue.retire([catalogue.ids[best]])
        left = np.delete(now, best, axis=0)
        assert policy.select(catalogue) == policy.select(left)
        assert len(catalogue) == 49
        assert catalogue.index_of("a0") == 0
        mask = np.arange(49) % 3 == 0
        some = catalogue.among(mask)
        assert policy.select(some) == policy.select(left[mask])
        assert some.ids[0] == "a0"


def test_a_catalogue_of_a_file(tmp_path: Any) -> None:
    """A memory-mapped file is not read into memory, and chosen from all the same."""
    arms = drawn_arms(9, count=500)
    np.save(tmp_path / "arms.npy", arms)
    mapped = np.load(tmp_path / "arms.npy", mmap_mode="r")
    policy = learned("soful", "ucb", arms[:100])
    catalogue = sb.Catalogue(mapped)
    assert catalogue.arms.store.array is mapped
    assert policy.select(catalogue) == policy.select(arms)


@pytest.mark.usefixtures("short_warm_up")
def test_a_warm_up_sees_a_catalogue() -> None:
    """The default learns its scaling from a catalogue as from an array."""
    arms = drawn_arms(10)
    mine, theirs = (sb.adaptive(30, explore=sb.UCB("auto")) for _ in range(2))
    catalogue = sb.Catalogue(arms)
    for _ in range(30):
        chosen = mine.select(catalogue)
        assert chosen == theirs.select(arms)
        mine.update(catalogue.arm(chosen), float(arms[chosen, 0]))
        theirs.update(arms[chosen], float(arms[chosen, 0]))
    assert mine.scaling == theirs.scaling
    assert not mine.is_warming_up


def test_bad_input_changes_nothing() -> None:
    """Each is named, and the catalogue stays as it was."""
    arms = drawn_arms(11, count=6, dim=4)
    spoiled = arms.copy()
    spoiled[2, 1] = np.nan
    with pytest.raises(sb.RowError, match=r"arm 2 contains nan \(id 'c'\)"):
        sb.Catalogue(spoiled, ids=list("abcdef"))
    with pytest.raises(sb.InputError, match="'a' is given twice"):
        sb.Catalogue(arms, ids=list("abcdea"))
    with pytest.raises(sb.InputError, match="6 arms need 6 ids, got 1"):
        sb.Catalogue(arms, ids=["a"])
    with pytest.raises(sb.InputTypeError, match="dtype"):
        sb.Catalogue(arms.astype(complex))
    with pytest.raises(sb.InputError, match="at least one arm"):
        sb.Catalogue(arms[:0])
    with pytest.raises(sb.InputError, match=r"\(K, dim\)"):
        sb.Catalogue(arms[0])
    catalogue = sb.Catalogue(arms, ids=list("abcdef"))
    for change in (
        lambda: catalogue.add(spoiled[:3], ["x", "y", "z"]),
        lambda: catalogue.add(arms[:1], ["a"]),
        lambda: catalogue.add(arms[:1, :2], ["x"]),
        lambda: catalogue.replace(spoiled[2:3], ["a"]),
        lambda: catalogue.replace(arms[:1], ["nobody"]),
        lambda: catalogue.retire(["nobody"]),
        lambda: catalogue.retire(list("abcdef")),
        lambda: catalogue.among(np.zeros(6, dtype=bool)),
        lambda: catalogue.among([3, 1]),
        lambda: catalogue.times([1.0, 2.0]),
        lambda: catalogue.times([1.0, 2.0, np.nan, 1.0]),
        lambda: catalogue.beside([1.0]).times([1.0] * 4),
    ):
        with pytest.raises(sb.InputError):
            change()
    assert list(catalogue.ids) == list("abcdef")
    np.testing.assert_array_equal(catalogue.arms.store.array, arms)
    with pytest.raises(sb.InputError, match="arms have length 4, but dim is 5"):
        sb.oful(5).select(catalogue)
    with pytest.raises(sb.InputError, match="do not mix"):
        catalogue.add(array_in("array_api_strict", arms), list("uvwxyz"))
    with pytest.raises(sb.InputTypeError, match="dtype"):
        sb.oful(4).select(array_in("array_api_strict", np.ones((2, 4), dtype=np.int64)))


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("rule", ["ucb", "wide", "greedy", "thompson"])
@pytest.mark.parametrize("recipe", ["oful", "soful", "rows", "columns"])
@pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
def test_many_requests_at_once_choose_as_one_by_one(library: str, recipe: str, rule: str) -> None:
    """Requests to one catalogue, each with its weights; equal arms go to the first of them."""
    arms = drawn_arms(7, count=3_000).astype(np.float32)
    arms[5] = arms[2_000]
    random = np.random.default_rng(8)
    policy, twin = (learned(recipe, rule, arms[:200].astype(np.float64)) for _ in range(2))
    catalogue = sb.Catalogue(arms if library == "numpy" else array_in(library, arms))
    users = random.uniform(-1.5, 1.5, (7, arms.shape[1]))
    users[3] = arms[5] / np.linalg.norm(arms[5])
    offers = [catalogue, *(catalogue.times(user) for user in users)]
    rng, same = np.random.default_rng(9), np.random.default_rng(9)
    wanted = [twin.select(offer, random=same) for offer in offers]
    assert policy.select_many(offers, random=rng).tolist() == wanted
    if rule != "thompson" and library == "numpy":
        formed = [arms.astype(np.float64), *(arms.astype(np.float64) * user for user in users)]
        assert wanted == [twin.select(some) for some in formed]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("interaction", ["times", "beside", "outer"])
def test_lengths_of_one_are_bounded_from_both_sides(interaction: str, scale: float) -> None:
    """Arms of every length, scaled to one: some are zero, some nearly so, and the best of them is chosen."""
    random = np.random.default_rng(10)
    arms = (random.standard_normal((500, 6)) * 10.0 ** random.uniform(-9, 3, (500, 1))).astype(np.float32)
    arms[::50] = 0.0
    context = random.standard_normal(6 if interaction == "times" else 2) * scale
    wide = arms.astype(np.float64)
    makers: dict[str, Any] = {
        "times": lambda: wide * context,
        "beside": lambda: np.hstack([np.tile(context, (len(wide), 1)), wide]),
        "outer": lambda: np.array([np.kron(context, arm) for arm in wide]),
    }
    formed = makers[interaction]()
    policy = sb.oful(formed.shape[1], scaling="rows", beta=0.2)
    for _ in range(40):
        policy.update(formed[int(random.integers(500))], float(random.standard_normal()))
        offer = getattr(sb.Catalogue(arms), interaction)(context)
        chosen, wanted = policy.select(offer), policy.select(formed)
        assert chosen == wanted or np.isclose(
            policy.ucb(formed[chosen]), policy.ucb(formed[wanted]), rtol=1e-12
        )


@pytest.mark.parametrize("interaction", ["times", "beside", "outer"])
def test_several_arms_to_learn_from(interaction: str) -> None:
    """Those that ``arm`` gives one by one, of some of the arms too."""
    arms = drawn_arms(4, count=30, dim=5)
    offer = getattr(sb.Catalogue(arms).among([1, 4, 7, 20]), interaction)(np.arange(5.0))
    wanted = np.stack([offer.arm(index) for index in (3, 0)])
    np.testing.assert_array_equal(offer.arms_at([3, 0]), wanted)
    with pytest.raises(sb.InputError, match="index is 4, but there are 4 arms"):
        offer.arms_at([0, 4])
    with pytest.raises(TypeError, match="a list of indices"):
        offer.arms_at([0.5])


@pytest.mark.parametrize("half", [False, True])
@given(
    scales=st.tuples(st.integers(-25, 17), st.integers(-20, 12), st.integers(-20, 20)),
    scaling=st.sampled_from([None, "rows"]),
    seed=st.integers(0, 10**6),
)
def test_scales_that_float32_does_not_have(
    scales: tuple[int, int, int], scaling: Any, half: bool, seed: int
) -> None:
    """Tiny and huge arms, rewards and contexts: the score chosen is the largest, to rounding."""
    random, (arms_at, rewards_at, context_at) = np.random.default_rng(seed), scales
    arms = random.standard_normal((60, 6)) * 10.0**arms_at
    context = random.standard_normal(6) * 10.0**context_at
    formed, unit = arms * context, 1.0 if scaling else 10.0 ** (2 * (arms_at + context_at))
    policy = sb.soful(6, size=6, ridge=unit, explore=sb.UCB(10.0**rewards_at), scaling=scaling)
    policy.update(formed[:3], random.standard_normal(3) * 10.0**rewards_at)
    catalogue = sb.Catalogue(arms, half=half)
    for offer, wanted in ((catalogue.times(context), formed), (catalogue, arms)):
        scores = policy.ucb(wanted)
        for chosen in (policy.select(offer), *policy.select_many([offer, offer])):
            assert scores[chosen] >= scores.max() - 1e-9 * abs(scores.max())


def test_an_offer_has_the_ids_of_its_arms_whatever_happens_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue changes in another thread while the offer is made."""
    catalogue = sb.Catalogue(np.arange(4.0)[:, None], ids=list("abcd"))
    made = OfferedArms

    def interrupted(*given: Any) -> Any:
        arms = made(*given)
        monkeypatch.setattr(catalogues, "OfferedArms", made)
        catalogue.retire(["a"])
        return arms

    monkeypatch.setattr(catalogues, "OfferedArms", interrupted)
    offer = catalogue.times([1.0])
    assert [offer.arm(index)[0] for index in range(len(offer))] == [0.0, 1.0, 2.0, 3.0]
    assert list(offer.ids) == list("abcd")
    assert list(catalogue.ids) == list("bcd")


@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.parametrize("seed", range(6))
def test_columns_far_from_zero(seed: int) -> None:
    """A float32 policy standardises them: hardly a digit is left, and the choice is that of numpy arms."""
    random, count, dim = np.random.default_rng(seed), 2000, 4
    arms = random.standard_normal((count, dim)) + np.array([2000.0, 1000.0, 0.0, 0.0])
    context = random.uniform(0.5, 1.5, dim)
    policy = sb.soful(dim, size=4, scaling="columns", explore=sb.UCB(0.1), dtype=np.float32)
    for _ in range(20):
        offered = arms[random.integers(0, count, 50)] * context
        policy.update(offered[policy.select(offered)], float(random.standard_normal()))
    close = arms[int(np.argmax(policy.mean(arms * context)))] + 1e-3 * random.standard_normal((count, dim))
    offer = sb.Catalogue(close).times(context)
    assert policy.select(offer) == policy.select(close * context)
    assert policy.top(offer, 5).tolist() == policy.top(close * context, 5).tolist()


def test_a_context_that_makes_squares_vanish() -> None:
    """The length of an arm is lost in float32: then nothing is concluded from it."""
    arms = np.zeros((3, 21), np.float32)
    arms[1, 1:], arms[0, 1:] = 2.2e-6, 2.2e-4
    arms[0, 1:3], arms[2] = -2.2e-4, -arms[1]
    context = np.full(21, 1.1e-8)
    context[0] = 9e8
    taste = np.full(21, 1 / np.sqrt(20))
    taste[0] = 0.0
    policy = sb.oful(21, scaling="rows", explore=sb.Greedy())
    policy.update(taste, 1.0)
    assert policy.select(sb.Catalogue(arms).times(context)) == policy.select(arms.astype(float) * context)


def test_arms_too_short_for_a_library_without_float64() -> None:
    """They are refused by name; zero is no problem."""
    arms = np.ones((3, 4), np.float32)
    arms[1] = 0.0
    assert len(sb.Catalogue(array_in("jax", arms))) == 3
    arms[2] = 1e-20
    with pytest.raises(sb.RowError, match=r"arm 2 is too short \(id 'c'\).*rescale the arms"):
        sb.Catalogue(array_in("jax", arms), ids=list("abc"))


@pytest.mark.parametrize("rule", [sb.Greedy, lambda: sb.UCB(0.3)])
def test_equal_arms_come_to_the_host_in_pieces(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All scores are equal: the first arms win, and never are all arms formed at once."""
    monkeypatch.setattr(chooser, "_NUMBERS_ON_HOST", 4000)
    arms = np.ones((5000, 8), np.float32)
    policy = sb.soful(8, size=4, explore=rule())
    seen: list[int] = []
    plain = OfferedArms.raw_rows

    def counted(offered: Any, which: Any) -> Any:
        rows = plain(offered, which)
        seen.append(len(rows))
        return rows

    monkeypatch.setattr(OfferedArms, "raw_rows", counted)
    catalogue = sb.Catalogue(arms)
    assert policy.top(catalogue, 3).tolist() == [0, 1, 2]
    assert policy.select(catalogue) == 0
    assert max(seen, default=0) <= 503
    policy.update(np.ones(8), 1.0)
    assert policy.top(catalogue, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("module", ["cupy", "torch"])
def test_a_library_that_does_not_say_that_it_follows_the_standard(module: str) -> None:
    """Its arrays are known by the package of their class."""
    kind = type("ndarray", (), {"__module__": f"{module}._core.core", "shape": (2, 3)})
    assert is_foreign(kind())
    assert not is_foreign(np.ones(2))
    assert not is_foreign([1.0])
