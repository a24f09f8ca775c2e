"""Ways to explore: what a rule claims of its choices holds, and chance is apart from what is learned."""

import copy
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array

import sketchbandit as sb
from sketchbandit.explore.base import RULES, rule_of
from sketchbandit.policy.recipes import build
from sketchbandit.registry import setting_names
from tests.policies import EVERY, saved, train, unit

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
DIM = 6
WRONG: Any = "theorem"
THEOREM = sb.Confidence(noise=0.05, theta_norm=0.2)

RANDOM: dict[str, Callable[[], sb.Explore]] = {
    "ucb-floor": lambda: sb.UCB(0.3, floor=0.2, seed=1),
    "greedy-floor": lambda: sb.Greedy(floor=0.1, seed=1),
    "epsilon": lambda: sb.EpsilonGreedy(0.3, seed=1),
    "epsilon-floor": lambda: sb.EpsilonGreedy(0.3, floor=0.5, seed=1),
    "thompson": lambda: sb.Thompson(0.5, samples=5_000, seed=1),
    "thompson-floor": lambda: sb.Thompson(0.5, samples=5_000, floor=0.25, seed=1),
    "thompson-theorem": lambda: sb.Thompson(THEOREM, samples=5_000, seed=1),
    "gap": lambda: sb.InverseGap(20.0, seed=1),
    "gap-floor": lambda: sb.InverseGap(20.0, floor=0.25, seed=1),
    "gap-growing": lambda: sb.InverseGap(3.0, growth=0.5, seed=1),
    "gap-eliminating": lambda: sb.InverseGap(20.0, eliminate=0.3, seed=1),
    "gap-theorem": lambda: sb.InverseGap(THEOREM, eliminate=THEOREM, seed=1),
}
STILL: dict[str, Callable[[], sb.Explore]] = {"ucb": lambda: sb.UCB(0.3), "greedy": sb.Greedy}
EVERY_RULE = {**STILL, **RANDOM}

every_rule = pytest.mark.parametrize("rule", EVERY_RULE)
random_rules = pytest.mark.parametrize("rule", RANDOM)


def trained(rule: str, rounds: int = 25, **settings: Any) -> Any:
    """A policy that has learned a little: chance still matters."""
    return train(sb.cbscfd(DIM, size=4, explore=EVERY_RULE[rule](), **settings), rounds, DIM)


def some_arms(count: int, seed: int = 8) -> NDArray[np.float64]:
    """Unit arms."""
    return unit(np.random.default_rng(seed).standard_normal((count, DIM)))


ARMS = {
    "one": some_arms(1),
    "two": some_arms(2),
    "five": some_arms(5),
    "twins": some_arms(4)[[0, 1, 0, 2, 1, 3]],
    "all alike": some_arms(1)[[0, 0, 0]],
}


def assert_chosen_as_claimed(policy: Any, arms: Any, count: int) -> None:
    """Claimed probabilities against so many choices: chi-square, with the sampling error of the claim."""
    claimed = policy.probabilities(arms)
    assert claimed.sum() == pytest.approx(1.0, abs=1e-12)
    assert (claimed >= 0.0).all()
    chosen = policy.select_many(np.broadcast_to(arms, (count, *arms.shape)).copy())
    seen = np.bincount(chosen, minlength=len(arms))
    assert not seen[claimed == 0.0].any()
    often = claimed * count > 5.0
    is_exact = policy.explore.exact_probabilities or len(arms) <= 2
    noise = 1.0 if is_exact else 1.0 + count / policy.explore.samples
    excess = float((np.square(seen - count * claimed)[often] / (noise * count * claimed[often])).sum())
    assert stats.chi2.sf(excess, max(1, int(often.sum()) - 1)) > 1e-4
    assert seen[~often].sum() <= 60


@random_rules
@pytest.mark.parametrize("arms", ARMS)
def test_choices_are_as_probable_as_claimed(rule: str, arms: str) -> None:
    """40,000 choices, fewer where they take widths: one arm, two, duplicates, ties."""
    policy = trained(rule)
    if "thompson" in rule:
        policy.explore = rule_of({**policy.explore.settings(), "samples": 40_000})
    few = arms not in {"five", "twins"} or policy.explore.settings().get("eliminate") is not None
    assert_chosen_as_claimed(policy, ARMS[arms], 5_000 if few else 40_000)


@random_rules
@pytest.mark.usefixtures("backend")
def test_nothing_is_known_yet(rule: str) -> None:
    """Before the first reward all means are 0; numpy and the compiled loops."""
    assert_chosen_as_claimed(trained(rule, 0), ARMS["twins"], 2_000)


@random_rules
@pytest.mark.parametrize("name", EVERY)
def test_every_recipe_takes_every_rule(name: str, rule: str) -> None:
    """Few choices, all kinds of sketches, dense and sparse arms, lists."""
    if name == "cbrap" and "theorem" in rule:
        return  # it has none, and says so: test_bad_settings
    recipes = {"cbrap": sb.cbrap, "oful": sb.oful, "soful": sb.soful, "dbs-rfd": sb.dbslinucb}
    make: Any = recipes.get(name, sb.adaptive)
    settings = {} if name == "oful" else {"size": 4}
    policy = train(make(DIM, ridge=0.7, explore=RANDOM[rule](), **settings), 30, DIM)
    arms, twins = ARMS["five"], [copy.deepcopy(policy) for _ in range(3)]
    dense, sparse, listed = (
        [twin.select(convert(arms)) for _ in range(20)]
        for twin, convert in zip(twins, (np.asarray, csr_array, np.ndarray.tolist), strict=True)
    )
    assert dense == sparse == listed
    assert policy.probabilities(arms) == pytest.approx(policy.probabilities(csr_array(arms)), abs=0.04)


def test_probabilities_by_the_formulas() -> None:
    """Inverse gaps, growing and among arms that were not ruled out; epsilon; the floor on top."""
    policy, arms = trained("gap"), ARMS["five"]
    means = policy.mean(arms)
    gaps = means.max() - means

    def by_hand(gaps: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
        chances = 1.0 / (len(gaps) + gamma * gaps)
        chances[gaps.argmin()] += 1.0 - chances.sum()
        return chances

    assert policy.probabilities(arms) == pytest.approx(by_hand(gaps, 20.0))
    with_floor = trained_alike(policy, sb.InverseGap(20.0, floor=0.25))
    assert with_floor.probabilities(arms) == pytest.approx(0.75 * by_hand(gaps, 20.0) + 0.05)
    growing = trained_alike(policy, sb.InverseGap(3.0, growth=0.5))
    assert growing.probabilities(arms) == pytest.approx(by_hand(gaps, 3.0 * np.sqrt(policy.rounds)))
    eliminating = trained_alike(policy, sb.InverseGap(20.0, eliminate=0.1))
    widths = policy.width(arms)
    left = means + 0.1 * widths >= (means - 0.1 * widths).max()
    assert 1 < left.sum() < 5
    expected = np.zeros(5)
    expected[left] = by_hand(gaps[left], 20.0)
    assert eliminating.probabilities(arms) == pytest.approx(expected)
    epsilon = trained_alike(policy, sb.EpsilonGreedy(0.3, floor=0.5))
    assert epsilon.probabilities(arms) == pytest.approx(0.13 + 0.35 * (gaps == 0.0))


def trained_alike(policy: Any, rule: sb.Explore) -> Any:
    """The same policy with another rule: what is learned does not depend on it."""
    scalars, arrays = policy.dump()
    made = sb.cbscfd(DIM, size=4, explore=rule)
    rules, _ = made.dump()
    learned = {name: value for name, value in scalars.items() if name != "random"}
    chance = {name: value for name, value in rules.items() if name in {"explore", "beta", "random"}}
    return sb.LinUCB.undump({**learned, **chance}, arrays)


def test_two_arms_of_thompson_in_closed_form() -> None:
    """P(one's score is larger) = Phi(difference of means / its standard deviation)."""
    policy, arms = trained("thompson"), ARMS["two"]
    apart = arms[0] - arms[1]
    ahead = float(apart @ policy.theta) / (0.5 * policy.width(apart))
    assert policy.probabilities(arms) == pytest.approx([stats.norm.cdf(ahead), stats.norm.cdf(-ahead)])


def test_the_sampled_probability_has_the_error_it_states() -> None:
    """Estimates from 1,000 draws scatter by sqrt(p(1 - p) / 1000) about that from two million."""
    policy, arms = trained("thompson"), ARMS["five"]
    exact = trained_alike(policy, sb.Thompson(0.5, samples=2_000_000)).probabilities(arms)
    few = trained_alike(policy, sb.Thompson(0.5, samples=1_000))
    scatter = []
    for seed in range(200):  # the estimate depends on the scores alone: another order is another estimate
        order = np.random.default_rng(seed).permutation(5)
        scatter.append(few.probabilities(arms[order])[order.argsort()] - exact)
    measured = np.sqrt(np.mean(np.square(scatter), axis=0))
    assert measured == pytest.approx(np.sqrt(exact * (1.0 - exact) / 1_000), rel=0.35)
    mine = few.probabilities(arms)
    assert few.scores(arms).standard_errors() == pytest.approx(np.sqrt(mine * (1.0 - mine) / 1_000))
    assert not policy.scores(ARMS["two"]).standard_errors().any()
    assert not trained("gap").scores(arms).standard_errors().any()


@every_rule
def test_a_choice_says_what_select_chooses(rule: str) -> None:
    """Index, probability, mean, width and score; select is the index alone, generator included."""
    policy, arms = trained(rule), ARMS["twins"]
    twin = copy.deepcopy(policy)
    for _ in range(10):
        choice = policy.choose(arms)
        assert choice.index == twin.select(arms)
        index, probability, mean, width, score = choice
        assert probability == policy.scores(arms).propensity(index)
        assert probability == pytest.approx(policy.probabilities(arms)[index], abs=1.0 / 5_000)
        assert mean == policy.mean(arms)[index]
        assert width == pytest.approx(policy.width(arms)[index])
        assert score == pytest.approx(mean + policy.radius * width)
    assert saved(policy) == saved(twin)


@every_rule
@pytest.mark.usefixtures("backend")
def test_asking_leaves_no_trace(rule: str) -> None:
    """Learning depends on updates alone, whatever was asked in between; probabilities draw nothing."""
    one, other = trained(rule), trained(rule)
    arms, random = ARMS["five"], np.random.default_rng(0)
    for step in range(20):
        before = saved(one)
        one.probabilities(arms)
        one.scores(arms).probabilities()
        one.select(arms, random=random)
        one.choose(arms, random=random)
        one.top(arms, 3, random=random)
        one.slate(arms, 2, random=random)
        one.select_many([arms, arms[:2]], random=random)
        one.choose_many([arms], random=random)
        assert saved(one) == before  # the caller's generator moved, not the policy's
        for policy in (one, other):
            policy.update(arms[step % 5], float(step % 2))
    assert saved(one) == saved(other)


@every_rule
@pytest.mark.usefixtures("backend")
def test_many_requests_are_as_one_by_one(rule: str) -> None:
    """select_many and choose_many equal a loop, generator included; arrays, lists, sparse sets."""
    policy = trained(rule)
    block = unit(np.random.default_rng(3).standard_normal((40, DIM))).reshape(8, 5, DIM)
    mixed: list[Any] = [block[0], block[1][:3], csr_array(block[2]), block[3].tolist()]
    for batch in (block, list(block), mixed):
        many, loop, chosen, slow = (copy.deepcopy(policy) for _ in range(4))
        assert many.select_many(batch).tolist() == [loop.select(arms) for arms in batch]
        assert chosen.choose_many(batch) == [slow.choose(arms) for arms in batch]
        assert saved(many) == saved(loop) == saved(chosen) == saved(slow)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a_batch_may_share_one_draw(floor: float) -> None:
    """per="batch": the same set is answered alike all over a batch, but for the uniform share."""
    policy = trained_alike(trained("thompson"), sb.Thompson(0.5, per="batch", floor=floor, seed=1))
    arms = ARMS["five"]
    batch = np.broadcast_to(arms, (200, 5, DIM)).copy()
    seen = []
    for _ in range(60):
        chosen = policy.select_many(batch)
        common = np.bincount(chosen, minlength=5)
        seen.append(int(common.argmax()))
        assert common.max() == 200 if not floor else 120 <= common.max() <= 176
    assert len(set(seen)) > 1
    twin = copy.deepcopy(policy)
    choices = policy.choose_many([arms, csr_array(arms), arms.tolist()])
    assert [c.index for c in choices] == twin.select_many([arms, csr_array(arms), arms.tolist()]).tolist()
    assert choices[0].probability == policy.scores(arms).propensity(choices[0].index)


@random_rules
@pytest.mark.parametrize("name", ["soful", "oful", "adaptive"])
def test_loading_goes_on_where_it_stopped(name: str, rule: str, tmp_path: Path) -> None:
    """In the middle of a stream, bit for bit, generator included."""
    settings = {} if name == "oful" else {"size": 4}
    make: Callable[..., Any] = getattr(sb, name)
    policy = train(make(DIM, explore=RANDOM[rule](), **settings), 30, DIM)
    policy.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p", sb.LinUCB)
    assert loaded.explore.settings() == policy.explore.settings()
    for one in (policy, loaded):
        train(one, 30, DIM, seed=4)
    assert saved(policy) == saved(loaded)


def test_seeds() -> None:
    """Equal seeds choose alike, others not; None is new every time; a caller's generator is used as it is."""
    arms = ARMS["five"]

    def choices(seed: int | None, **given: Any) -> list[int]:
        policy = sb.oful(DIM, explore=sb.Thompson(1.0, seed=seed))
        return [policy.select(arms, **given) for _ in range(40)]

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)
    assert choices(None) != choices(None)
    given = [choices(seed, random=np.random.default_rng(7)) for seed in (1, 2)]
    assert given[0] == given[1]
    assert sb.oful(DIM).random is None  # nothing is left to chance
    assert sb.oful(DIM, explore=sb.UCB(floor=0.1)).random is not None


@every_rule
@pytest.mark.usefixtures("backend")
def test_slates(rule: str) -> None:
    """No arm twice; top is the same; each place has the probability of a choice among the arms left."""
    policy, arms = trained(rule), ARMS["five"]
    twin = copy.deepcopy(policy)
    for _ in range(5):
        places = policy.slate(arms, 4)
        assert [place.index for place in places] == twin.top(arms, 4).tolist()
        left = list(range(5))
        for place in places:
            chance = policy.probabilities(arms[left])[left.index(place.index)]
            assert place.probability == pytest.approx(chance, abs=0.04 if "thompson" in rule else 1e-9)
            left.remove(place.index)
    assert sorted(policy.top(arms, 5)) == list(range(5))


@random_rules
def test_importance_weights_are_unbiased(rule: str) -> None:
    """The value of the uniform policy from a log of each rule: within four standard errors of the truth."""
    policy, random = trained(rule), np.random.default_rng(2)
    rewards = np.array([0.1, 0.9, 0.4, 0.3, 0.8])
    floor = policy.explore.uniform_share
    if policy.probabilities(ARMS["five"]).min() < 1e-3:
        return  # where hardly anything else is ever chosen, a log says nothing: what the floor is for
    drawn = policy.select_many(np.broadcast_to(ARMS["five"], (5_000, 5, DIM)).copy())
    paid = (random.random(len(drawn)) < rewards[drawn]).astype(float)
    weighted = 0.2 * paid / policy.probabilities(ARMS["five"])[drawn]
    assert abs(weighted.mean() - 0.5) < 4.0 * weighted.std() / np.sqrt(len(drawn))
    assert not floor or weighted.max() <= 1.0 / floor + 1e-9  # no weight is more than K / floor


def test_some_rules_leave_a_log_that_can_be_used() -> None:
    """What the test above must not pass by: most of the rules are put to it."""
    usable = [rule for rule in RANDOM if trained(rule).probabilities(ARMS["five"]).min() >= 1e-3]
    assert len(usable) >= 8, usable


def test_a_long_ranking_with_a_floor_is_uniform_among_those_left() -> None:
    """Every place: the rule's next, or in a share of all any that is left, alike."""
    policy = trained_alike(trained("ucb"), sb.UCB(0.3, floor=0.6, seed=3))
    arms = some_arms(6)
    order = trained("ucb").top(arms, 6).tolist()
    seen = np.zeros((6, 6))
    turns = 6_000
    for _ in range(turns):
        left = list(order)
        for place, choice in enumerate(policy.slate(arms, 6)):
            expected = 0.6 / len(left) + 0.4 * (choice.index == left[0])
            assert choice.probability == pytest.approx(expected)
            seen[place, left.index(choice.index)] += 1
            left.remove(choice.index)
    for place in range(5):
        chances = np.full(6 - place, 0.6 / (6 - place)) + 0.4 * np.eye(6 - place)[0]
        assert stats.chisquare(seen[place, : 6 - place], turns * chances).pvalue > 1e-4


def test_a_long_ranking_takes_no_more_memory_than_its_arms() -> None:
    """All of 20,000 arms in order, with a floor: places keep nothing but two numbers."""
    policy = sb.oful(2, explore=sb.EpsilonGreedy(0.2, seed=0))
    arms = np.random.default_rng(0).standard_normal((20_000, 2))
    tracemalloc.start()
    ranking = policy.top(arms, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(ranking.tolist()) == list(range(20_000))
    assert peak < 20e6


def test_what_arms_share_costs_no_digits() -> None:
    """A feature of 1.7e9, a time in seconds, that all arms have: claims hold as well as without it."""
    features = np.random.default_rng(0).standard_normal((4, 4))
    arms = np.column_stack([np.full(4, 1.7e9), features])
    for some in (arms, arms[:2]):
        assert_chosen_as_claimed(sb.oful(5, explore=sb.Thompson(0.5, seed=0, samples=50_000)), some, 20_000)


def test_near_twins_in_closed_form() -> None:
    """Arms that differ by 1e-9: the sign of the difference decides, or chance does."""
    policy = trained("thompson", 40)
    arms = some_arms(1)[[0, 0]]
    arms[1] += 1e-9 * some_arms(1, seed=9)[0]
    apart = arms[0] - arms[1]
    ahead = float(apart @ policy.theta) / (0.5 * policy.width(apart))
    assert policy.probabilities(arms)[0] == pytest.approx(stats.norm.cdf(ahead), abs=1e-4)


def test_many_arms_that_look_alike() -> None:
    """2,000 unit arms before the first reward: comparing all with all would take minutes."""
    policy = sb.oful(200, explore=sb.Thompson(1.0, seed=0))
    arms = np.vstack([np.eye(200), np.eye(200), -np.eye(200)])
    draws = policy.scores(arms).draws
    assert draws is not None
    assert draws.first.tolist() == [*range(200), *range(200), *range(400, 600)]


def test_a_rule_is_replaced_not_changed() -> None:
    """Settings of a policy's rule stay; another rule takes over what was learned, and the generator."""
    policy = trained("epsilon")
    with pytest.raises(sb.InputError, match=r"policy.explore = EpsilonGreedy\(epsilon=0.0\)"):
        policy.explore.epsilon = 0.0
    before, theta = policy.random.bit_generator.state, policy.theta
    rule = sb.InverseGap(5.0)
    policy.explore = rule
    rule.gamma = 6.0  # the policy has a copy
    assert policy.explore.gamma == 5.0
    assert policy.random.bit_generator.state == before
    assert (policy.theta == theta).all()
    policy.explore = sb.UCB(0.7)
    assert (policy.radius, policy.beta, policy.random) == (0.7, 0.7, None)
    policy.explore = sb.UCB(floor=0.5, seed=3)  # the radius stays
    assert policy.radius == 0.7
    assert policy.random.bit_generator.state == np.random.default_rng(3).bit_generator.state
    policy.explore = sb.Thompson(THEOREM)
    assert policy.radius > 0.0
    for wrong in ("thompson", sb.Thompson, None):
        with pytest.raises(sb.InputTypeError, match="explore is"):
            policy.explore = wrong
    with pytest.raises(sb.InputTypeError, match="CBRAP takes a constant beta"):
        sb.cbrap(DIM, size=3).explore = sb.UCB(THEOREM)
    models: Any = sb.PerAction(["a", "b"], lambda: sb.oful(DIM))
    models.update(ARMS["one"][0], "a", 1.0)
    models.explore = sb.EpsilonGreedy(0.5, seed=1)
    assert models.probabilities(ARMS["one"][0]).tolist() == [0.75, 0.25]
    with pytest.raises(sb.InputError, match=r"belongs to a PerAction; set the rule there: models\.explore"):
        models["a"].explore = sb.UCB(2.0)
    models.explore = sb.UCB(2.0)
    assert models.ucb(ARMS["one"][0]).tolist() == pytest.approx([1.0 + np.sqrt(2.0), 1.0 + 2.0])


def test_likely_slips() -> None:
    """A choice in place of its arm or action, beta set by itself, play with a model per action."""
    arms = np.eye(5)
    policy: Any = sb.oful(5, explore=sb.Thompson(0.1, seed=0))
    before = saved(policy)
    choice = policy.choose(arms, random=np.random.default_rng(0))
    with pytest.raises(sb.InputTypeError, match=r"give the arm itself: arms\[choice.index\]"):
        policy.update(choice, 1.0)
    with pytest.raises(sb.InputTypeError, match=r"policy.explore = sb.UCB\(0.5\)"):
        policy.beta = 0.5
    assert saved(policy) == before
    models = sb.PerAction(["a", "b"], lambda: sb.oful(5))
    with pytest.raises(sb.InputTypeError, match=r"give its name, choice.action"):
        models.update(arms[0], models.choose(arms[0]), 1.0)  # type: ignore[arg-type]
    with pytest.raises(sb.InputTypeError, match="play needs a policy over arms"):
        next(sb.play(models, sb.GaussianArms(dim=5, arms=2), 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"PerAction.__init__\(\) got an unexpected keyword"):
        sb.PerAction(["a"], lambda: sb.oful(5), explore=sb.Greedy())  # type: ignore[call-arg]
    assert repr(sb.Greedy()) == "Greedy()"


def test_replicas_are_reseeded() -> None:
    """Copies choose alike, until they are told not to."""
    one = trained("thompson", 3)
    other = copy.deepcopy(one)
    arms = ARMS["five"]
    assert [one.select(arms) for _ in range(30)] == [other.select(arms) for _ in range(30)]
    other.reseed(5)
    assert [one.select(arms) for _ in range(60)] != [other.select(arms) for _ in range(60)]
    with pytest.raises(sb.InputError, match="seed must be at least 0"):
        other.reseed(-1)


def test_a_policy_says_how_it_explores() -> None:
    """In its repr: beta where that is all, else the rule."""
    assert "beta=0.1)" in repr(sb.oful(2))
    assert "explore=Thompson(scale=0.2, seed=1))" in repr(sb.oful(2, explore=sb.Thompson(0.2, seed=1)))
    assert "explore=UCB(beta=0.1, floor=0.5), seed=0)" in repr(sb.cbrap(9, size=2, explore=sb.UCB(floor=0.5)))


class Own(sb.Explore):
    """A rule of a user's, with a setting that is a dict."""

    kind = "test-own"

    def __init__(self, chances: Any = None, *, floor: float = 0.0, seed: int | None = None) -> None:
        super().__init__(floor=floor, seed=seed)
        self.chances = chances

    def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The first ones."""
        del candidates, random
        return list(range(count))

    def probabilities(self, candidates: sb.Candidates) -> Any:
        """As given."""
        del candidates
        return self.chances["first"]


def test_a_rule_of_the_users_is_checked(tmp_path: Path) -> None:
    """Its settings come back from a file, its name and its probabilities are looked at."""
    made = build("soful", 3, size=2, explore=Own({"first": [1.0, 0.0, 0.0]}), floor=0.5)
    made.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p", sb.LinUCB)
    assert (
        loaded.explore.settings()
        == made.explore.settings()
        == {
            "rule": "test-own",
            "chances": {"first": [1.0, 0.0, 0.0]},
            "floor": 0.5,
            "seed": None,
        }
    )
    choice = loaded.choose(np.eye(3))
    assert choice.probability == pytest.approx([2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0][choice.index])
    assert rule_of("test-own").floor == 0.0
    for wrong in ([0.9, 0.9, 0.9], [0.5, 0.5], [-0.5, 1.0, 0.5], [np.nan, 1.0, 0.0]):
        with pytest.raises(sb.InputError, match=r"Own.probabilities must return 3 numbers that sum to one"):
            sb.oful(3, explore=Own({"first": wrong})).choose(np.eye(3))
    with pytest.raises(sb.InputTypeError, match=r"Own.chances is .* which a file cannot hold"):
        sb.oful(3, explore=Own({"first": np.ones(3)})).save(tmp_path / "q")
    one = sb.oful(3, explore=Own(np.ones(3)))
    one.merge(sb.oful(3, explore=Own(np.ones(3), seed=4)))
    with pytest.raises(sb.MergeError, match="explore is"):
        one.merge(sb.oful(3, explore=Own(np.zeros(3))))


def test_subclasses_of_thompson_are_heard() -> None:
    """What they choose and claim is theirs."""

    class First(sb.Thompson):
        """Plays the first arm, and says so."""

        kind = "test-first"

        def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> list[int]:
            """Always."""
            del candidates, random
            return list(range(count))

        def probabilities(self, candidates: sb.Candidates) -> Any:
            """Surely."""
            return np.eye(len(candidates))[0]

    policy = sb.oful(3, explore=First(per="batch", seed=0))
    assert policy.probabilities(np.eye(3)).tolist() == [1.0, 0.0, 0.0]
    assert policy.select_many([np.eye(3)] * 9).tolist() == [0] * 9


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: sb.Thompson(-1.0), "scale must be finite, at least 0, got -1.0"),
        (lambda: sb.Thompson(float("nan")), "scale must be finite"),
        (lambda: sb.Thompson(WRONG), "scale must be a real number"),
        (lambda: sb.Thompson(per="user"), 'per must be "request" or "batch", got \'user\''),
        (lambda: sb.Thompson(samples=0), "samples must be at least 1"),
        (lambda: sb.InverseGap(-1.0), "gamma must be finite, at least 0"),
        (lambda: sb.InverseGap(float("nan")), "gamma must be finite"),
        (lambda: sb.InverseGap(growth=2.0), "growth must be finite, at least 0 and at most 1"),
        (lambda: sb.InverseGap(eliminate=-1.0), "eliminate must be finite, at least 0"),
        (lambda: sb.InverseGap(THEOREM, growth=0.5), "leave out growth"),
        (lambda: sb.InverseGap(THEOREM, eliminate=0.1), "give eliminate the same one"),
        (lambda: sb.EpsilonGreedy(1.5), "epsilon must be finite, at least 0 and at most 1, got 1.5"),
        (lambda: sb.UCB(-0.1), "beta must be finite, at least 0"),
        (lambda: sb.Greedy(floor=1.1), "floor must be finite, at least 0 and at most 1"),
        (lambda: sb.Greedy(floor=float("nan")), "floor must be finite"),
        (lambda: sb.Greedy(seed=-1), "seed must be at least 0"),
        (lambda: sb.Greedy(seed=WRONG), "seed must be an integer"),
        (
            lambda: sb.oful(3, beta=0.2, explore=sb.Thompson(0.1)),
            "beta is 0.2, but explore=Thompson.*leave out beta",
        ),
        (lambda: sb.cbrap(3, size=2, explore=sb.Thompson(THEOREM)), "CBRAP takes a constant beta"),
        (
            lambda: sb.cbrap(9, size=2, explore=WRONG),
            "explore is 'theorem'; give a rule, for instance sb.Thompson",
        ),
        (lambda: rule_of("softmax"), "unknown exploration rule 'softmax'; choose from ucb, thompson"),
        (lambda: rule_of({"rule": "ucb", "scale": 1}), "ucb has no setting 'scale'; it takes beta, floor"),
        (lambda: rule_of({"scale": 1}), "explore must be a rule, its name, or a mapping"),
        (lambda: build("oful", 3, explore="thompson", gamma=1), "oful has no setting 'gamma'; it takes"),
        (lambda: build("oful", 3, scale=1), "oful has no setting 'scale'"),
    ],
)
def test_bad_settings(make: Callable[[], Any], complaint: str) -> None:
    """Refused at once, with what may be written."""
    with pytest.raises((ValueError, TypeError), match=complaint) as caught:
        make()
    assert isinstance(caught.value, sb.SketchBanditError)


@random_rules
@pytest.mark.usefixtures("backend")
def test_refused_calls_draw_nothing(rule: str) -> None:
    """The generator stands where it stood, and so does everything else."""
    policy, arms = trained(rule), ARMS["five"]
    broken = arms.copy()
    broken[3, 2] = np.nan
    before = saved(policy)
    asked: list[Callable[[], Any]] = [
        lambda: policy.select(broken),
        lambda: policy.choose(broken),
        lambda: policy.top(broken, 2),
        lambda: policy.top(arms, 6),
        lambda: policy.slate(arms, 0),
        lambda: policy.probabilities(broken),
        lambda: policy.select_many([arms, broken]),
        lambda: policy.select_many([arms, arms[:, :2]]),
        lambda: policy.choose_many([arms, arms, broken]),
        lambda: policy.select(arms[:, :3]),
        lambda: policy.select(arms, random=3),
    ]
    for ask in asked:
        with pytest.raises((ValueError, TypeError)) as caught:
            ask()
        assert isinstance(caught.value, sb.SketchBanditError)
    assert saved(policy) == before


def test_a_catalogue_is_drawn_from_but_not_worked_out() -> None:
    """The joint distribution of 2,001 scores is refused, before anything is drawn; a choice is not."""
    policy = sb.oful(3, explore=sb.Thompson(0.5, seed=1))
    arms = np.random.default_rng(0).standard_normal((2_001, 3))
    before = saved(policy)
    asked: list[Callable[[], Any]] = [
        lambda: policy.choose(arms),
        lambda: policy.probabilities(arms),
        lambda: policy.slate(arms, 2),
        lambda: policy.scores(arms),
    ]
    for ask in asked:
        with pytest.raises(sb.InputError, match="at most 2,000 arms, and there are 2,001; use select"):
            ask()
    assert saved(policy) == before
    assert len({policy.select(arms) for _ in range(20)} | set(policy.top(arms, 5).tolist())) > 5


def test_a_rule_that_fails_draws_nothing() -> None:
    """A rule of the user's that draws, and then breaks down or answers nonsense."""

    class Broken(sb.Explore):
        """Draws, and fails."""

        answer: Any = None

        def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> list[int]:
            """Never."""
            del candidates, count
            random.random(100)
            if self.answer is None:
                raise RuntimeError
            return [99]

    policy: Any = sb.oful(2, explore=Broken(seed=1))
    state = policy.random.bit_generator.state
    with pytest.raises(RuntimeError):
        policy.select(np.eye(2))
    policy.explore.answer = 1
    with pytest.raises(sb.InputError, match="must return 1 different indices"):
        policy.select(np.eye(2))
    with pytest.raises(sb.InputError, match="Broken cannot compute its probabilities; give it a method"):
        policy.probabilities(np.eye(2))
    assert policy.random.bit_generator.state == state


def test_merging_compares_rules() -> None:
    """Seeds may differ, settings may not."""
    one = sb.oful(2, explore=sb.Thompson(0.1, seed=1))
    one.merge(sb.oful(2, explore=sb.Thompson(0.1, seed=2)))
    for other in (sb.Thompson(0.1, floor=0.1), sb.InverseGap(1.0), sb.UCB(0.1)):
        with pytest.raises(sb.MergeError, match=r"cannot merge policies: (explore|beta) is"):
            one.merge(sb.oful(2, explore=other))


# -- by name ----------------------------------------------------------------------------------------


def test_rules_by_name() -> None:
    """A name, a mapping, flat settings, and settings that the recipe has too; there and back."""
    assert set(RULES.built_in) == {"ucb", "thompson", "inverse-gap", "epsilon-greedy", "greedy"}
    assert setting_names(RULES.named("epsilon-greedy")) == ("epsilon", "floor", "seed")
    for rule in EVERY_RULE.values():
        assert rule_of(rule().settings()).settings() == rule().settings()
    made = build("adaptive", 20, **{"explore": "epsilon-greedy", "explore.epsilon": 0.25, "epsilon": 2.0})
    assert (made.explore.epsilon, made.sketch.epsilon) == (0.25, 2.0)
    assert build("cbrap", 20, size=3, explore="greedy", floor=0.5, seed=4).explore.seed is None
    assert build("soful", 20, explore={"rule": "thompson", "scale": 2}, floor=0.5).explore.scale == 2.0
    assert build("oful", 3, explore=sb.UCB(0.7)).radius == 0.7
    assert sb.oful(3, beta=0.7, explore=sb.UCB(floor=0.1)).explore.beta == 0.7


def test_what_a_subclass_overrides_is_what_it_plays() -> None:
    """A choose from a mixin, or another gamma: choices, batches and logged probabilities follow."""

    class Third:
        def choose(self, candidates: Any, count: int, random: Any) -> list[int]:
            del candidates, random
            return [2, 1, 0][:count]

    arms = np.diag([3.0, 2.0, 1.0])
    for kind in (sb.UCB, sb.Greedy, sb.EpsilonGreedy):
        rule: Any = type("Mixed", (Third, kind), {})
        policy = sb.oful(3, explore=rule())
        assert rule.chooses_by is None
        assert policy.select_many([arms] * 3, random=np.random.default_rng(1)).tolist() == [2, 2, 2]

    class Capped(sb.InverseGap):
        kind = "capped"

        def gamma_now(self, candidates: Any) -> float:
            del candidates
            return 2.0

    policy = sb.oful(2, explore=Capped(1e6, seed=0))
    policy.update(np.eye(2)[0], -1.0)
    chance = policy.probabilities(np.eye(2))[0]
    drawn = policy.select_many([np.eye(2)] * 4000)
    assert abs((drawn == 0).mean() - chance) < 0.05
    np.testing.assert_array_equal(policy.probabilities_many([np.eye(2)])[0], policy.probabilities(np.eye(2)))


def test_copies_that_get_a_random_rule_draw_apart() -> None:
    """A copied policy that drew nothing before has no generator to go on with."""
    plain = sb.oful(2)
    copies = [copy.deepcopy(plain), copy.deepcopy(plain), plain]
    drawn = []
    for one in copies:
        one.explore = sb.Thompson(1.0)
        drawn.append([one.select(np.eye(2)) for _ in range(40)])
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]
