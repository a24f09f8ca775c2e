"""Rankings as arrays: the numbers of the verbs that tell one thing at a time."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.explore import ArmCandidates, Ranking
from sketchbandit.kernels import kernels
from tests.policies import saved

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 20
RULES: dict[str, Callable[[], sb.Explore]] = {
    "thompson": lambda: sb.Thompson("auto", seed=3),
    "thompson with a floor": lambda: sb.Thompson(0.3, floor=0.3, seed=3),
    "ucb": lambda: sb.UCB(0.3),
    "ucb with a floor": lambda: sb.UCB(0.3, floor=0.3, seed=3),
    "inverse gap": lambda: sb.InverseGap(20.0, seed=3),
    "greedy": lambda: sb.EpsilonGreedy(0.2, seed=3),
}
POLICIES: dict[str, Callable[[sb.Explore], sb.Policy]] = {
    "adaptive": lambda rule: sb.adaptive(DIM, explore=rule),
    "rows": lambda rule: sb.soful(3 * DIM, size=3, explore=rule, scaling="rows"),
    "float32": lambda rule: sb.oful(DIM, explore=rule, dtype=np.float32),
    "cbrap": lambda rule: sb.cbrap(DIM, size=5, explore=rule),
}


def trained(policy: sb.Policy, rounds: int = 120) -> tuple[sb.Policy, Any]:
    """A policy that has learned, and arms to ask it about."""
    random = np.random.default_rng(0)
    offered = random.standard_normal((rounds, 7, policy.dim)) * np.linspace(0.1, 2.0, policy.dim)
    for arms in offered:
        policy.update(arms[policy.select(arms)], float(random.random()))
    return policy, offered[-1]


def separately(policy: sb.Policy, arms: Any, places: Any) -> list[Any]:
    """Mean, width and score of some arms, each asked for by itself."""
    some = arms[list(places)]
    return [policy.mean(some), policy.width(some), policy.ucb(some)]


def assert_same(found: Ranking, index: Any, told: list[Any]) -> None:
    """These arms in this order, with these means, widths and scores."""
    np.testing.assert_array_equal(found.index, index)
    for one, other in zip(found[2:], told, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.cores
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", RULES)
def test_a_ranking_is_select_or_top_and_the_numbers_of_those_arms(name: str, rule: str) -> None:
    """The same draws, and the same numbers to the bit as mean, width and ucb of the arms chosen."""
    policy, arms = trained(POLICIES[name](RULES[rule]()))
    twin = copy.deepcopy(policy)
    for _ in range(30):
        found, chosen = policy.rank(arms, probabilities=False), twin.select(arms)
        assert_same(found, [chosen], separately(twin, arms, [chosen]))
    for k in (2, 7):
        found, best = policy.rank(arms, k, probabilities=False), twin.top(arms, k)
        assert_same(found, best, separately(twin, arms, best))
    assert saved(policy) == saved(twin)


@pytest.mark.parametrize("rule", RULES)
def test_sparse_arms_and_lists_are_ranked_alike(rule: str) -> None:
    """What is not an array of the policy's dtype goes the longer way."""
    policy, arms = trained(sb.soful(3 * DIM, size=3, explore=RULES[rule]()))
    twin, few = copy.deepcopy(policy), np.where(np.abs(arms) > 1.0, arms, 0.0)
    for k, given in ((1, sparse.csr_array(few)), (3, sparse.csr_array(few)), (1, few.tolist())):
        found, chosen = policy.rank(given, k, probabilities=False), twin.top(given, k)
        some = sparse.csr_array(few)[chosen] if sparse.issparse(given) else few[chosen]
        assert_same(found, chosen, [twin.mean(some), twin.width(some), twin.ucb(some)])


@pytest.mark.parametrize("rule", RULES)
def test_with_probabilities_it_is_the_choice_or_the_slate(rule: str) -> None:
    """Column by column."""
    policy, arms = trained(sb.adaptive(DIM, explore=RULES[rule]()))
    twin = copy.deepcopy(policy)
    assert [column.item() for column in policy.rank(arms)] == list(twin.choose(arms))
    found, slate = policy.rank(arms, 4), twin.slate(arms, 4)
    assert [list(row) for row in zip(*(column.tolist() for column in found), strict=True)] == [
        list(choice) for choice in slate
    ]


@pytest.mark.parametrize("rule", RULES)
def test_a_long_ranking_by_all_widths_is_that_by_a_few(rule: str) -> None:
    """UCB looks at all widths at once where most arms are wanted; the order is the same, ties included."""
    policy, arms = trained(sb.oful(DIM, explore=RULES[rule]()))
    many = np.concatenate([arms, 0.5 * arms, arms])
    scores = policy.ucb(many)
    if isinstance(policy.explore, sb.UCB) and not policy.explore.floor:
        expected = np.argsort(-scores, kind="stable")
        for k in (2, 12, 21):
            np.testing.assert_array_equal(policy.rank(many, k).index, expected[:k])
    found = policy.rank(many, 21, probabilities=False)
    assert sorted(found.index.tolist()) == list(range(21))
    np.testing.assert_array_equal(found.score, scores[found.index])


@pytest.mark.parametrize("rule", RULES)
def test_actions_are_ranked_by_their_places(rule: str) -> None:
    """Among those that were asked about, with the numbers of each action's model."""
    names: list[str | int] = ["a", "b", "c", "d"]
    models = sb.PerAction(names, lambda: sb.adaptive(DIM, explore=RULES[rule]()))
    random = np.random.default_rng(1)
    contexts = random.standard_normal((200, DIM))
    for x in contexts:
        models.update(x, models.select(x), float(random.random()))
    twin, x = copy.deepcopy(models), contexts[-1]
    for some in (None, ["d", "b", "c"]):
        offered: list[Any] = some or names
        for _ in range(20):
            found = models.rank(x, actions=some, probabilities=False)
            action = twin.select(x, some)
            told = [verb(x, [action]) for verb in (twin.mean, twin.width, twin.ucb)]
            assert_same(found, [offered.index(action)], told)
        found, chosen = models.rank(x, 3, some, probabilities=False), twin.top(x, 3, some)
        told = [verb(x, chosen) for verb in (twin.mean, twin.width, twin.ucb)]
        assert_same(found, [offered.index(action) for action in chosen], told)
        choice = twin.choose(x, some)
        found = models.rank(x, actions=some)
        assert offered[found.index[0]] == choice.action
        assert [column.item() for column in found[1:]] == list(choice[1:])


def test_what_is_refused_draws_nothing() -> None:
    """As every verb: the policy and its generator stay as they were."""
    policy, arms = trained(sb.adaptive(DIM, seed=0))
    before = saved(policy)
    for k, bad in ((0, arms), (8, arms), (1, arms * np.nan), (1, arms[:0]), (2, arms[:, :3])):
        with pytest.raises(sb.SketchBanditError):
            policy.rank(bad, k, probabilities=False)
    assert saved(policy) == before


@pytest.mark.parametrize("kind", ["tied", "few values", "all differ"])
@pytest.mark.parametrize("name", ["rows", "float32"])
def test_the_best_of_many_are_the_best_of_all(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties to the lowest index; where a loop is compiled, few widths are asked for one by one."""
    policy, _ = trained(POLICIES[name](RULES["ucb"]()))
    random, asked = np.random.default_rng(1), []
    arms = {
        "tied": np.ones((2000, policy.dim)),
        "few values": random.integers(0, 2, (2000, 1)) * np.ones(policy.dim) + np.eye(policy.dim)[0],
        "all differ": random.standard_normal((2000, policy.dim)),
    }[kind]
    scores = policy.ucb(arms)
    width = ArmCandidates.width

    def counted(self: ArmCandidates, index: int) -> float:
        asked.append(index)
        return width(self, index)

    monkeypatch.setattr(ArmCandidates, "width", counted)
    for k in (1, 2, 15, 16, 17, 100, 500):
        asked.clear()
        found = policy.top(arms, k).tolist()
        assert found == np.lexsort((np.arange(len(arms)), -scores))[:k].tolist()
        assert kernels() is None or len(asked) <= 17
