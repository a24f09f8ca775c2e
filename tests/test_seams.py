"""Precision, estimate and exploration: each against a dense oracle, and what joins them."""

import copy
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.kernels import choose_again, kernels
from sketchbandit.policy.recipes import RECIPES, build
from sketchbandit.testing import Stream, streams
from tests.policies import EVERY, rounds, saved, train, unit

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

SKETCHES: dict[str, Callable[[int, int], sb.Sketch]] = {
    "fd": lambda dim, size: sb.FrequentDirections(dim, size=size),
    "scfd": lambda dim, size: sb.FrequentDirections(dim, size=size, compensation=1.0),
    "blocks": lambda dim, size: sb.DyadicBlockSketch(dim, size=size, epsilon=4.0),
    "exact": lambda dim, _: sb.ExactSketch(dim),
    "float32": lambda dim, size: sb.FrequentDirections(dim, size=size, dtype=np.float32),
}


class Numbers:
    """In place of a random generator: numbers that somebody chose."""

    def __init__(self, numbers: Any) -> None:
        self._numbers = list(numbers)

    def standard_normal(self, count: int) -> Any:
        """The next ones, and zeros when there are no more."""
        some, self._numbers = self._numbers[:count], self._numbers[count:]
        return np.array(some + [0.0] * (count - len(some)))


@pytest.mark.parametrize("name", SKETCHES)
@given(stream=streams(max_dim=12, max_size=3), ridge=st.sampled_from([0.1, 1.0, 30.0]))
def test_precision_is_the_inverse(name: str, stream: Stream, ridge: float) -> None:
    """Quadratic forms, products, draws and determinants are those of a dense A, whatever came before."""
    rows = stream.rows / max(1.0, float(np.abs(stream.rows).max(initial=0.0)))
    sketch = SKETCHES[name](stream.dim, stream.size)
    policy = sb.LinUCB(sketch, ridge=ridge)
    for row in rows:
        policy.update(row, 0.5)
    precision = policy.precision
    inverse = np.linalg.inv(ridge * np.eye(stream.dim) + sketch.covariance())
    xs = np.random.default_rng(0).standard_normal((3, stream.dim))
    for x in xs:
        assert np.allclose(precision.apply(x), inverse @ x, rtol=1e-8, atol=1e-10)
        assert precision.quadratic(x) == pytest.approx(float(x @ inverse @ x), rel=1e-7)
    # A draw is H z for normal z; its covariance is HH'.
    most = stream.dim + 2 * sketch.row_count
    generators: list[Any] = [Numbers(numbers) for numbers in np.eye(most)]
    half = np.array([precision.sample_direction(generator) for generator in generators])
    assert np.allclose(half.T @ half, inverse, rtol=1e-6, atol=1e-8)
    kept = rows.astype(sketch.dtype).astype(np.float64)
    true = float(np.linalg.slogdet(ridge * np.eye(stream.dim) + kept.T @ kept)[1])
    assert precision.log_det >= true - 1e-9 * (1.0 + abs(true))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EVERY)
def test_the_fused_loop_is_the_plain_pair(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiled loop for precision and estimate gives what the two give one after the other."""
    fused, plain = (EVERY[name](24, size=4, ridge=0.5, beta=0.3, dtype=dtype) for _ in range(2))
    assert kernels() is not None
    for arms, rewards in rounds(150, 24, seed=4):
        given_arms = arms.astype(dtype)
        chosen = fused.select(given_arms)
        fused.update(given_arms[chosen], rewards[chosen])
        with monkeypatch.context() as patch:
            patch.setattr("sketchbandit.estimate.linear.Linear.learn_fused", lambda *_: None)
            plain.update(given_arms[chosen], rewards[chosen])
        assert np.allclose(fused.theta, plain.theta, rtol=1e-8, atol=1e-11)
        assert np.allclose(fused.width(given_arms), plain.width(given_arms), rtol=1e-7)


def test_a_round_derives_nothing_anew() -> None:
    """Where the sketch only appends, the precision grows with it: nothing is rebuilt on the way."""
    policy = sb.soful(60, size=40)
    train(policy, 70, 60)
    assert policy.precision.rebuilds == 2  # at the start, and when the rows became many


# -- many sets at once ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EVERY)
def test_many_sets_are_chosen_from_as_one_by_one(name: str, dtype: Any) -> None:
    """An array, a list, sets of different sizes, sparse ones, frames: the choices of a loop."""
    random = np.random.default_rng(0)
    for learned in (0, 7, 120):
        policy = train(EVERY[name](16, size=4, ridge=1.0, beta=0.4, dtype=dtype), learned, 16)
        batch = unit(random.standard_normal((60, 16))).reshape(12, 5, 16)
        ragged = [arms[: 1 + i % 5] for i, arms in enumerate(batch.astype(dtype))]
        for sets in (
            batch.astype(dtype),
            batch,
            batch.astype(np.float32),
            batch[:, ::2],
            list(batch.astype(dtype)),
            ragged,
            batch.tolist(),
            [sparse.csr_array(arms) for arms in batch],
            [pd.DataFrame(arms) for arms in batch],
        ):
            one_by_one = [policy.select(arms) for arms in sets]
            chosen = policy.select_many(sets)
            assert chosen.dtype == np.intp
            assert chosen.tolist() == one_by_one
        assert policy.select_many(batch[:0]).tolist() == []
        assert policy.select_many([]).tolist() == []


def test_many_sets_leave_no_trace() -> None:
    """What is learned afterwards is what would have been without them."""
    asked, silent = (train(sb.cbscfd(20, size=4), 30, 20) for _ in range(2))
    for arms, rewards in rounds(40, 20, seed=3):
        asked.select_many([arms, arms[::-1]])
        for policy in (asked, silent):
            policy.update(arms[0], rewards[0])
    assert saved(asked) == saved(silent)


@pytest.mark.parametrize("name", ["soful", "oful", "cbrap"])
def test_a_set_that_cannot_be_used_is_named(name: str) -> None:
    """Which one, and why; and what a batch is."""
    policy = EVERY[name](4, size=2, ridge=1.0, beta=0.1)
    good = np.eye(4)
    bad = good.copy()
    bad[2, 1] = np.nan
    for sets in (np.stack([good, bad]), [good, bad]):
        with pytest.raises(sb.InputError, match="set 1: arm 2 contains nan"):
            policy.select_many(sets)
    with pytest.raises(sb.InputError, match=r"set 1: .*length 3, but dim is 4"):
        policy.select_many([good, np.eye(3)])
    with pytest.raises(sb.InputError, match="set 0: there are no arms"):
        policy.select_many([good[:0]])
    with pytest.raises(sb.InputError, match=r"array \(sets, arms, dim\) .* got 2 dimensions"):
        policy.select_many(good)
    with pytest.raises(sb.InputTypeError, match="a list of sets, got int"):
        policy.select_many(3)


# -- float32 -------------------------------------------------------------------------------------------


@pytest.mark.cores
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", EVERY)
def test_float32_arms_are_what_their_float64_copies_are(name: str) -> None:
    """To rounding in what is told; to the bit in what is learned."""
    asked, silent = (EVERY[name](33, size=4, ridge=1.0, beta=0.3) for _ in range(2))
    for arms, rewards in rounds(120, 33, seed=5):
        narrow = arms.astype(np.float32)
        wide = narrow.astype(np.float64)
        assert np.allclose(asked.ucb(narrow), asked.ucb(wide), rtol=1e-12)
        chosen = asked.select(narrow)
        assert asked.ucb(wide)[chosen] >= asked.ucb(wide).max() - 1e-12
        asked.update(narrow[chosen], rewards[chosen])
        silent.update(wide[chosen], rewards[chosen])
        assert saved(asked) == saved(silent)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["soful", "oful"])
def test_a_catalogue_is_not_copied(name: str, dtype: Any) -> None:
    """Choosing among float32 arms takes a few numbers an arm, whatever the dtype of the policy."""
    policy = train(EVERY[name](64, size=4, ridge=1.0, beta=0.1, dtype=dtype), 80, 64)
    arms = unit(np.random.default_rng(0).standard_normal((4000, 64))).astype(np.float32)
    for ask in (policy.select, lambda arms: policy.top(arms, 10), policy.mean):
        ask(arms)
        tracemalloc.start()
        try:
            ask(arms)
            assert tracemalloc.get_traced_memory()[1] < 0.5 * arms.nbytes
        finally:
            tracemalloc.stop()


# -- parts of one's own --------------------------------------------------------------------------------


class Cautious(sb.Explore):
    """The largest lower bound."""

    kind = "test-cautious"

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Means less widths."""
        del random
        scores = candidates.means - self.scale * candidates.radius * candidates.widths()
        chosen: list[int] = np.argsort(-scores, kind="stable")[:count].tolist()
        return chosen

    def dump(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its one setting."""
        return {"scale": self.scale}, {}


@pytest.mark.usefixtures("backend")
def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    """It decides in select, top and select_many; it is saved with the policy, and copied into it."""
    rule = Cautious(2.0)
    policy = train(sb.LinUCB(sb.FrequentDirections(10, size=4), explore=rule, beta=0.5), 30, 10)
    rule.scale = 0.0  # the policy has its own
    arms = unit(np.random.default_rng(0).standard_normal((6, 10)))
    scores = policy.mean(arms) - 2.0 * 0.5 * policy.width(arms)
    policy.save(tmp_path / "p")
    for one in (policy, sb.load(tmp_path / "p", sb.LinUCB), copy.deepcopy(policy)):
        assert one.select(arms) == scores.argmax()
        assert one.top(arms, 3).tolist() == np.argsort(-scores, kind="stable")[:3].tolist()
        assert one.select_many([arms, arms[2:]]).tolist() == [scores.argmax(), scores[2:].argmax()]
    with pytest.raises(sb.MergeError, match=r"explore is Cautious\(scale=2.0\) here and UCB"):
        policy.merge(sb.LinUCB(sb.FrequentDirections(10, size=4), beta=0.5))


class Doubled(sb.Linear):
    """Believes twice of everything; has no name for files."""

    def scan(self, arms: Any) -> Any:
        """Twice the mean."""
        scan = super().scan(arms)
        return scan._replace(means=2.0 * scan.means)

    @property
    def linear_theta(self) -> None:
        """Means are not x'theta."""
        return


def test_an_estimate_of_ones_own(tmp_path: Path) -> None:
    """Its means are what is chosen by; a class that goes by another's name is not saved."""
    policy = train(sb.LinUCB(sb.ExactSketch(6), rewards=Doubled(), beta=0.2), 40, 6)
    plain = train(sb.LinUCB(sb.ExactSketch(6), beta=0.2), 0, 6)
    assert type(policy.estimate) is Doubled
    arms = unit(np.random.default_rng(0).standard_normal((5, 6)))
    assert np.allclose(policy.mean(arms), 2.0 * arms @ policy.theta)
    assert policy.select(arms) == policy.ucb(arms).argmax()
    with pytest.raises(sb.InputTypeError, match=r"Doubled needs a `kind` of its own .*'linear' names Linear"):
        policy.save(tmp_path / "p")
    with pytest.raises(sb.MergeError, match="rewards is 'Doubled' here and 'Linear' there"):
        policy.merge(plain)


def test_a_policy_of_ones_own_has_a_name() -> None:
    """One list: whoever builds by name finds it there."""
    sb.register("mine", lambda dim, *, size=3: sb.soful(dim, size=size), title="Mine", can_turn_exact=False)
    try:
        assert build("mine", 9, size=4).sketch.size == 4
        assert RECIPES["mine"].title({}) == "Mine"
        with pytest.raises(sb.InputError, match="mine has no setting 'epsilon'; it takes size"):
            build("mine", 9, epsilon=1.0)
    finally:
        del RECIPES["mine"]
    with pytest.raises(sb.InputError, match="unknown policy 'mine'; choose from oful, "):
        build("mine", 9)


def test_what_is_loaded_can_be_said_before(tmp_path: Path) -> None:
    """A sketch where a policy is expected is refused."""
    sb.ExactSketch(3).save(tmp_path / "s")
    assert sb.load(tmp_path / "s", sb.Sketch).dim == 3
    with pytest.raises(sb.FileError, match="holds ExactSketch, not LinUCB"):
        sb.load(tmp_path / "s", sb.LinUCB)


def test_compiled_loops_are_out_of_date_when_any_source_changes() -> None:
    """A loop contains those of other files that it calls: one stamp for all of them."""
    compiled = kernels()
    assert compiled is not None
    stamps = {loop._cache._cache_file._source_stamp for loop in vars(compiled).values()}
    assert len(stamps) == 1
    assert len(stamps.pop()) == 64


@pytest.mark.parametrize("answer", [[99], [-1], [1.5], "a", [], None, 2, [0, 1]])
def test_what_a_rule_answers_is_checked(answer: Any) -> None:
    """An index that is none would be played by whoever trusts it."""

    class Wild(sb.Explore):
        """Answers anything."""

        def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> Any:
            """The same whatever is asked."""
            del candidates, count, random
            return answer

    policy = sb.LinUCB(sb.ExactSketch(3), explore=Wild())
    for ask in (policy.select, lambda arms: policy.top(arms, 1), lambda arms: policy.select_many([arms])):
        with pytest.raises(sb.InputError, match=r"Wild.choose must return 1 different indices from 0 to 2"):
            ask(np.eye(3))


def test_an_array_is_an_answer_too() -> None:
    """Of integers: what argsort gives; the policy tells an int."""

    class Last(sb.Explore):
        """The last arms."""

        def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> Any:
            """Backwards."""
            del random
            return np.arange(len(candidates))[::-1][:count]

    chosen = sb.LinUCB(sb.ExactSketch(3), explore=Last()).select(np.eye(3))
    assert (chosen, type(chosen)) == (2, int)


def test_an_estimate_may_refuse_a_reward() -> None:
    """Before anything changes, one reward or many."""

    class Clicks(sb.Linear):
        """Takes 0 and 1."""

        kind = "test-clicks"

        def check_reward(self, reward: float) -> None:
            """Nothing else."""
            if reward not in (0.0, 1.0):
                raise sb.InputError(f"a click is 0 or 1, got {reward}")

    policy = sb.LinUCB(sb.ExactSketch(3), rewards=Clicks())
    policy.update(np.eye(3), [0.0, 1.0, 1.0])
    before = saved(policy)
    for arms, rewards in ((np.eye(3)[0], 7.0), (np.eye(3), [0.0, 1.0, 7.0])):
        with pytest.raises(sb.InputError, match=r"a click is 0 or 1, got 7\.0"):
            policy.update(arms, rewards)
        assert saved(policy) == before


def test_names_that_are_taken() -> None:
    """A class or a policy under the name of another would change what files and requests mean."""
    with pytest.raises(sb.InputTypeError, match=r"kind 'ucb' is that of sketchbandit\.explore\.rules\.UCB"):
        type("Mine", (sb.Explore,), {"kind": "ucb"})
    assert type(sb.LinUCB(sb.ExactSketch(2)).explore) is sb.UCB
    with pytest.raises(sb.InputError, match="there is a policy called 'oful' already"):
        sb.register("oful", lambda dim: sb.soful(dim, size=3), title="Mine", can_turn_exact=False)
    wrong: Any = 3
    with pytest.raises(sb.InputTypeError, match=r"make must be a function \(dim, \*\*settings\) -> Policy"):
        sb.register("three", wrong, title="3", can_turn_exact=False)


def test_a_rule_whose_state_a_file_would_lose(tmp_path: Path) -> None:
    """It is refused when it is saved, not when it is loaded."""

    class Forgetful(Cautious):
        """Has a state, and nothing that saves it."""

        kind = "test-forgetful"
        dump = sb.Explore.dump

        def __init__(self, scale: float) -> None:
            super().__init__(scale)
            self.asked = 0

    with pytest.raises(sb.InputTypeError, match=r"Forgetful has attributes \(asked\) that are no"):
        sb.LinUCB(sb.ExactSketch(2), explore=Forgetful(2.0)).save(tmp_path / "p")


def test_parts_given_as_classes() -> None:
    """A likely slip."""
    rule: Any = sb.UCB
    with pytest.raises(sb.InputTypeError, match="explore is the class UCB; give an instance"):
        sb.LinUCB(sb.ExactSketch(2), explore=rule)


def test_a_vector_is_no_set() -> None:
    """One set given as a list of arms is not read as many sets of one."""
    policy = sb.oful(4)
    for sets in (np.eye(4).tolist(), list(np.eye(4)), [np.eye(4), np.eye(4)[0]]):
        with pytest.raises(sb.InputError, match=r"a set of arms must have shape .*, got one vector"):
            policy.select_many(sets)


def test_a_sketch_that_does_not_say_what_it_did() -> None:
    """Its author is told what to return."""

    class Silent(sb.FrequentDirections):
        """Forgets to return."""

        kind = "test-silent"

        def _ingest(self, rows: Any) -> Any:
            super()._ingest(rows)

    with pytest.raises(
        sb.InputTypeError, match=r"Silent\._ingest must return a sketchbandit\.Change, got None"
    ):
        Silent(3, size=2).update(np.eye(3))


def test_play_says_what_comes_first() -> None:
    """A policy, then an environment."""
    environment, policy = sb.GaussianArms(dim=4, arms=3), sb.oful(4)
    swapped: Any = environment
    other: Any = policy
    with pytest.raises(sb.InputTypeError, match="play takes a policy, then an environment"):
        list(sb.play(swapped, other, 3))


# -- what a review found ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_an_array_compared_with_an_older_choice_is_not_taken_for_the_newer() -> None:
    """The leverage of the arm chosen last was handed out for another arm."""
    policy = sb.soful(40, size=5)
    one, other = (np.random.default_rng(seed).standard_normal((6, 40)) for seed in (0, 1))
    x = one[policy.select(one)].copy()
    policy.update(x, 1.0)
    policy.select(other)
    assert policy.precision.quadratic(x) == policy.precision.quadratic(x.copy())
    assert policy.precision.quadratic(x) == pytest.approx(policy.width(x) ** 2)


@pytest.mark.parametrize("beta", [0.1, sb.Confidence()])
@pytest.mark.parametrize("name", ["exact", "scfd"])
def test_an_estimate_may_ask_the_precision_while_it_learns(name: str, beta: Any) -> None:
    """It is in step by then; asking rebuilt everything, and counted the arm twice."""

    class Asking(sb.Linear):
        """Looks at everything there is."""

        kind = "test-asking"

        def learn(self, x: Any, reward: float, step: Any) -> None:
            """Ask, then learn."""
            asked.append(self.precision.quadratic(x))
            self.precision.apply(x)
            super().learn(x, reward, step)

    asked: list[float] = []
    policy = train(sb.LinUCB(SKETCHES[name](20, 4), rewards=Asking(), beta=beta), 60, 20)
    plain = train(sb.LinUCB(SKETCHES[name](20, 4), beta=beta), 60, 20)
    assert len(asked) == 60
    assert policy.precision.rebuilds == plain.precision.rebuilds
    assert np.allclose(policy.theta, plain.theta, rtol=1e-8, atol=1e-11)
    assert policy.radius == pytest.approx(plain.radius, rel=1e-9)


@pytest.mark.usefixtures("backend")
def test_a_compression_is_noticed_whatever_the_estimate() -> None:
    """One that never looks at the precision, too."""

    class Fixed(sb.Linear):
        """Knows theta."""

        kind = "test-fixed"
        theta = property(lambda self: np.ones(len(self.b)))

        def scan(self, arms: Any) -> Any:
            """Of the theta it knows."""
            return sb.Estimate.scan(self, arms)

    policy = train(sb.LinUCB(sb.FrequentDirections(12, size=5, compensation=1.0), rewards=Fixed()), 9, 12)
    policy.sketch.compress()
    matrix = policy.sketch.covariance() + np.eye(12)
    arms = np.eye(12)
    assert policy.precision.shift == pytest.approx(1.0 + policy.sketch.alpha)
    assert np.allclose(policy.width(arms) ** 2, np.diag(np.linalg.inv(matrix)))
    assert policy.select(arms) == policy.ucb(arms).argmax()


def test_subclasses_of_ucb_and_linear_are_heard() -> None:
    """Their own choices and means decide in select, as they do in top."""

    class Worst(sb.UCB):
        """The other way round."""

        kind = "test-worst"

        def choose(self, candidates: sb.Candidates, count: int, random: np.random.Generator) -> list[int]:
            """The least means."""
            del random
            chosen: list[int] = np.argsort(candidates.means)[:count].tolist()
            return chosen

    class Flipped(sb.Linear):
        """Less is more."""

        kind = "test-flipped"

        def scan(self, arms: Any) -> Any:
            """Of the other sign."""
            scan = super().scan(arms)
            return scan._replace(means=-scan.means)

    arms = np.eye(3)
    for policy in (
        sb.LinUCB(sb.ExactSketch(3), explore=Worst(), beta=0.0),
        sb.LinUCB(sb.ExactSketch(3), rewards=Flipped(), beta=0.0),
    ):
        policy.update(arms[0], 5.0)
        policy.update(arms[1], -1.0)
        assert policy.select(arms) == 1
        assert policy.select_many([arms]).tolist() == policy.top(arms, 1).tolist() == [1]


def test_a_rejected_merge_changes_nothing() -> None:
    """An estimate that cannot add says so before the sketches merge."""

    class Lonely(sb.Linear):
        """Cannot add."""

        kind = "test-lonely"
        add = sb.Estimate.add

    one, other = (train(sb.LinUCB(sb.ExactSketch(4), rewards=Lonely()), 5, 4) for _ in range(2))
    before = saved(one)
    with pytest.raises(sb.MergeError, match="Lonely has no method add"):
        one.merge(other)
    assert saved(one) == before


@pytest.mark.parametrize("name", EVERY)
def test_what_was_dumped_is_nobodys(name: str) -> None:
    """Neither a twin made of it nor the policy itself writes to it later."""
    policy = train(EVERY[name](20, size=4, ridge=1.0, beta=0.3), 40, 20)
    dumped = policy.dump()
    kept, before = copy.deepcopy(dumped[1]), saved(policy)
    twin = type(policy).undump(*dumped)
    train(twin, 30, 20, seed=3)
    assert saved(policy) == before
    dumped = policy.dump()
    train(policy, 30, 20, seed=3)
    assert all(np.array_equal(kept[key], dumped[1][key]) for key in kept)


def test_nothing_is_promised_of_a_sketch_that_certifies_nothing() -> None:
    """A determinant neither."""
    policy = train(sb.LinUCB(sb.RandomProjection(6, size=3)), 20, 6)
    assert policy.precision.log_det == np.inf


def test_an_arm_refused_for_its_mass_changes_nothing() -> None:
    """A sparse one after dense ones: not even how theta is kept."""
    policy = train(sb.soful(8, size=3, dtype=np.float32), 10, 8)
    before = saved(policy)
    for _ in range(2):
        arm = sparse.csr_array(([1.7e19, 1.7e19], ([0, 0], [0, 3])), shape=(1, 8))
        with pytest.raises(sb.InputError, match="sum of squared norms would overflow float32"):
            policy.update(arm, 0.0)
        assert saved(policy) == before


def test_a_rejected_batch_remembers_no_names() -> None:
    """Which set, and what kind of complaint, stays known."""
    policy = sb.oful(2)
    sets: list[Any] = [pd.DataFrame({"a": [1.0], "b": [2.0]}), np.eye(3)]
    with pytest.raises(sb.InputError, match="set 1: "):
        policy.select_many(sets)
    assert policy.columns is None
    bad = np.eye(2)
    bad[1, 0] = np.inf
    with pytest.raises(sb.RowError, match="set 1: arm 1 contains inf") as caught:
        policy.select_many([np.eye(2), bad])
    assert caught.value.row == 1
    with pytest.raises(sb.InputTypeError, match="set 0: arms must be real numbers"):
        policy.select_many([[["x", "y"]]])


@pytest.mark.usefixtures("backend")
def test_cbrap_in_float32_sums_in_float64() -> None:
    """Dense or sparse, compiled or not."""
    policy = train(sb.cbrap(300, size=6, dtype=np.float32), 40, 300)
    arms = unit(np.random.default_rng(0).standard_normal((5, 300))).astype(np.float32)
    images = arms.astype(np.float64) @ policy._projection.astype(np.float64)
    theta = np.linalg.lstsq(policy._projection.astype(np.float64), policy.theta, rcond=None)[0]
    for given_arms in (arms, sparse.csr_array(arms)):
        assert np.allclose(policy.mean(given_arms), images @ theta, rtol=1e-11, atol=1e-13)


def test_a_mean_needs_no_width() -> None:
    """It is told where a width would overflow."""
    policy = sb.oful(2, ridge=1e-300)
    assert policy.mean(np.eye(2) * 1e10).tolist() == [0.0, 0.0]


class _Told(sb.Estimate):
    """A mean reward that is the same for all arms, with a setting, and weights that may be wrong."""

    kind = "test-told-estimate"
    weighs = True

    def __init__(self, share: float = 0.5, *, content: float = 1.0) -> None:
        self.share, self.content = share, content

    theta = property(lambda self: np.zeros(self.precision.sketch.dim))
    nbytes = 0

    def weight(self, *given: Any) -> float:
        del given
        return self.content

    def learn(self, x: Any, reward: float, step: Any) -> None:
        del x, reward, step

    def add(self, other: Any) -> None:
        del other

    def dump(self) -> Any:
        return {}, {}

    def restore(self, scalars: Any, arrays: Any) -> None:
        del scalars, arrays


def test_settings_of_a_reward_model_are_saved_and_compared(tmp_path: Path) -> None:
    """As those of a rule are: constructor arguments that are attributes of the same name."""
    policy = sb.LinUCB(sb.ExactSketch(2), rewards=_Told(0.25, content=0.5))
    assert "rewards=_Told(share=0.25, content=0.5)" in repr(policy)
    policy.update([1.0, 0.0], 1.0)
    policy.save(tmp_path / "p")
    assert sb.load(tmp_path / "p", sb.LinUCB).estimate.settings() == {"share": 0.25, "content": 0.5}
    with pytest.raises(sb.MergeError, match=r"rewards is _Told\(share=0.25.*_Told\(share=0.5"):
        policy.merge(sb.LinUCB(sb.ExactSketch(2), rewards=_Told(0.5, content=0.5)))


@pytest.mark.parametrize("weight", [np.nan, -1.0, 2.0])
def test_a_weight_out_of_its_range_is_refused(weight: float) -> None:
    """By the name of the model, and nothing is learned."""
    policy = sb.LinUCB(sb.ExactSketch(2), rewards=_Told(content=weight))
    with pytest.raises(sb.InputError, match=r"_Told.weight must return a number from 0 to most_weight \(1\)"):
        policy.update([1.0, 0.0], 1.0)
    assert (policy.rounds, policy.sketch.count) == (0, 0)


def test_a_rule_may_have_a_setting_of_any_name() -> None:
    """Also that of a method which files use."""

    class Named(sb.Greedy):
        kind = "test-named-content"

        def __init__(self, content: float = 1.0, *, floor: float = 0.0, seed: int | None = None) -> None:
            super().__init__(floor=floor, seed=seed)
            self.content = content

    policy = sb.oful(2, explore=Named(3.0))
    assert sb.LinUCB.undump(*policy.dump()).explore.content == 3.0


def test_a_way_to_choose_that_is_none() -> None:
    """A typo would only make the rule slow."""
    with pytest.raises(sb.InputTypeError, match="chooses_by is 'bounds'; give one of 'bound', 'draw'"):
        type("Typo", (sb.Greedy,), {"chooses_by": "bounds"})


def test_rows_of_a_sketch_of_ones_own_come_one_by_one() -> None:
    """A subclass with its own way to take one row is asked, whatever a policy knows of the row."""
    seen = []

    class Counting(sb.FrequentDirections):
        def _ingest_one(self, row: Any, norm_sq: float) -> sb.Change:
            seen.append(norm_sq)
            return super()._ingest_one(row, norm_sq)

    policy = sb.LinUCB(Counting(40, size=4))
    for x in np.random.default_rng(0).standard_normal((12, 40)):
        policy.update(x, 1.0)
    assert len(seen) == 12


def test_a_broken_numba_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy does its work, and a warning says why."""

    def broken(name: str) -> Any:
        raise AttributeError(f"{name} is broken")

    monkeypatch.setattr("sketchbandit.kernels.backend.importlib.import_module", broken)
    monkeypatch.setenv("SKETCHBANDIT_COMPILED", "1")
    choose_again()
    try:
        with pytest.warns(RuntimeWarning, match="numba is installed, but cannot be imported"):
            assert kernels() is None
    finally:
        monkeypatch.undo()
        choose_again()
