"""What a policy holds: merge, files, copies, memory, and no drift over long streams."""

import copy
import gc
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit import files
from sketchbandit.precision import Precision
from tests.policies import CERTIFIED, EVERY, design_radius, rounds, saved, train, unit
from tests.soak import long_stream

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]


@pytest.mark.parametrize("name", EVERY)
def test_merge_adds_the_statistics(name: str) -> None:
    """Two policies that learned apart become one with the summed covariance, b, rounds and certificate."""
    one, other = (
        train(EVERY[name](14, size=4, ridge=1.0, beta=0.3), count, 14, seed=count) for count in (90, 130)
    )
    covariances = one.sketch.covariance() + other.sketch.covariance()
    certificate = one.sketch.error_bound + other.sketch.error_bound
    projection = getattr(one, "_projection", np.eye(14))
    prefix = "inner." if name == "cbrap" else ""
    b = sum((p.dump()[1][f"{prefix}estimate.b"] for p in (one, other)), np.zeros(one.sketch.dim))
    untouched = saved(other)
    one.merge(other)
    assert saved(other) == untouched
    assert one.rounds == 220
    assert one.sketch.error_bound >= certificate
    loss = np.linalg.eigvalsh(covariances - one.sketch.covariance())
    assert loss[0] >= -(one.sketch.alpha + 1e-9)
    assert loss[-1] <= one.sketch.error_bound + 1e-9
    matrix = one.sketch.covariance() + 1.0 * np.eye(one.sketch.dim)
    assert np.allclose(one.theta, projection @ np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-12)
    train(one, 30, 14, seed=9)
    before = one.rounds
    one.merge(one)
    assert one.rounds == 2 * before


@pytest.mark.cores
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [9, 40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_load_then_continue(name: str, dim: int, form: Any, tmp_path: Path) -> None:
    """A policy saved and loaded at any time goes on bitwise like one that never was."""
    confidence: Any = sb.Confidence() if name != "cbrap" else 0.3
    policy = EVERY[name](dim, size=4, ridge=0.5, beta=confidence)
    path = tmp_path / "policy.safetensors"
    for t, (arms, rewards) in enumerate(rounds(130, dim, seed=2)):
        chosen = policy.select(form(arms))
        if t % 23 == 0:
            policy.save(path)
            loaded: Any = sb.load(path)
            assert type(loaded) is type(policy)
            assert saved(loaded) == saved(policy)
            assert (loaded.rounds, loaded.radius, loaded.beta) == (policy.rounds, policy.radius, policy.beta)
            policy, old = loaded, policy
            for one in (old, policy):
                one.update(form(arms)[[chosen]], rewards[chosen])
            assert saved(old) == saved(policy)
        else:
            policy.update(form(arms)[[chosen]], rewards[chosen])


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_asking_changes_nothing(name: str, form: Any) -> None:
    """What a policy learns depends on the updates alone: a replay without the choices gives the same bits."""
    asked, silent = (EVERY[name](20, size=4, ridge=1.0, beta=0.3) for _ in range(2))
    for arms, rewards in rounds(120, 20, seed=4):
        before = saved(asked)
        chosen = asked.select(form(arms))
        asked.top(form(arms), 1)
        asked.theta, asked.ucb(arms), asked.width(form(arms))
        asked.select(form(arms))
        assert saved(asked) == before
        for policy in (asked, silent):
            policy.update(form(arms)[[chosen]], rewards[chosen])
        assert saved(asked) == saved(silent)


@pytest.mark.cores
@pytest.mark.parametrize("name", [n for n in EVERY if n != "cbrap"])
@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 17, 33, 57, 64, 100, 131])
def test_what_a_choice_has_computed_is_what_an_update_would(name: str, dim: int) -> None:
    """To the bit, for every length of a loop's remainder: otherwise a replay without choices would differ."""
    asked = train(EVERY[name](dim, size=4, ridge=1.0, beta=0.3), 40, dim)
    silent = copy.deepcopy(asked)
    for arms, rewards in rounds(10, dim, seed=1, arms=9):
        chosen = asked.select(arms)
        for policy in (asked, silent):
            policy.update(arms[chosen].copy(), rewards[chosen])
        assert saved(asked) == saved(silent)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_what_a_choice_has_computed_is_used_once(name: str, form: Any) -> None:
    """The arm chosen may be learned from twice, or after another one: the second time everything is new."""
    asked, silent = (train(EVERY[name](20, size=4, ridge=1.0, beta=0.3), 30, 20) for _ in range(2))
    arms = unit(np.random.default_rng(7).standard_normal((5, 20)))
    for t in range(20):
        chosen = asked.select(form(arms))
        for index in (chosen, chosen, (chosen + t) % 5, chosen):
            for policy in (asked, silent):
                policy.update(form(arms)[[index]], 0.1 * t)
    assert saved(asked) == saved(silent)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "cbrap"])
@pytest.mark.parametrize("dim", [9, 40])
def test_a_sketch_changed_from_outside_is_noticed(name: str, dim: int) -> None:
    """compress, merge or update of policy.sketch, or an update cut short: scores follow the sketch."""
    policy = train(EVERY[name](dim, size=5, ridge=1.0, beta=sb.Confidence()), 33, dim)
    other = copy.deepcopy(policy.sketch)
    arms = unit(np.random.default_rng(1).standard_normal((6, dim)))

    def cut_short(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def interrupted() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sketchbandit.estimate.linear.Linear.learn_fused", cut_short)
            patch.setattr(Precision, "rebuild", cut_short)
            with pytest.raises(KeyboardInterrupt):
                policy.update(arms[0], 1.0)

    for meddle in (
        policy.sketch.compress,
        lambda: policy.sketch.update(arms),
        lambda: policy.sketch.merge(other),
        interrupted,
        lambda: policy.update(arms[1], 0.5),
    ):
        meddle()
        matrix = policy.sketch.covariance() + np.eye(dim)
        widths = np.sqrt(np.vecdot(arms, np.linalg.solve(matrix, arms.T).T))
        assert policy.ucb(arms)[policy.select(arms)] == policy.ucb(arms).max()
        assert np.allclose(policy.width(arms), widths, rtol=1e-9)
        assert np.allclose(policy.theta, np.linalg.solve(matrix, policy.estimate.b), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("rounds_before", [9, 13, 22, 45])
def test_asking_after_a_compression_changes_nothing(name: str, rounds_before: int) -> None:
    """Whether somebody asks between a compression and a small batch leaves no trace in what is learned."""
    asked, silent = (train(EVERY[name](40, size=4, ridge=1.0, beta=0.3), rounds_before, 40) for _ in range(2))
    arms = unit(np.random.default_rng(0).standard_normal((5, 40)))
    for policy in (asked, silent):
        policy.sketch.compress()
        if policy is asked:
            policy.mean(arms)
        policy.update(arms, arms[:, 0])
    assert saved(asked) == saved(silent)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("beta", [0.1, sb.Confidence()])
def test_a_policy_saved_after_its_sketch_was_compressed(name: str, beta: Any, tmp_path: Path) -> None:
    """What is saved is what the sketch is by then: 0.6 loaded a factor of nine rows beside four."""
    policy = EVERY[name](12, size=5, ridge=1.0, beta=0.1 if name == "cbrap" else beta)
    arms = unit(np.random.default_rng(0).standard_normal((40, 12)))
    for arm in arms[:9]:
        policy.update(arm, 0.5)
    policy.sketch.compress()
    policy.save(tmp_path / "p")
    loaded: Any = sb.load(tmp_path / "p")
    for p in (policy, loaded):
        for arm in arms[9:]:
            p.update(arm, p.select(arms[:4]) / 4.0)
    assert saved(loaded) == saved(policy)


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("beta", [0.1, sb.Confidence()])
def test_files_of_the_version_before(name: str, beta: Any, tmp_path: Path) -> None:
    """0.7 kept b beside what follows from it and the sketch: that is derived anew."""
    policy = train(CERTIFIED[name](12, size=5, ridge=1.0, beta=beta), 30, 12)
    scalars, arrays = policy.dump()
    reach, b = scalars.pop("reward_mass"), arrays["estimate.b"]
    for part in ("precision", "estimate", "explore"):
        del scalars[part]
    old = {n: a for n, a in arrays.items() if n.startswith("sketch.")} | {"system.b": b}
    files.write(tmp_path / "p", "linucb", {**scalars, "system": {"inverse": {}}, "reach": reach}, old)
    loaded = sb.load(tmp_path / "p", sb.LinUCB)
    assert np.allclose(loaded.theta, policy.theta, rtol=1e-9, atol=1e-12)
    assert np.allclose(loaded.width(np.eye(12)), policy.width(np.eye(12)), rtol=1e-9)
    assert (loaded.rounds, loaded.beta) == (policy.rounds, policy.beta)
    assert loaded.radius == pytest.approx(policy.radius, rel=1e-9)


def test_a_subclass_of_a_policy_needs_a_kind_of_its_own(tmp_path: Path) -> None:
    """Else its file would come back as its parent; with one it comes back as itself."""

    class Renamed(sb.LinUCB):
        pass

    with pytest.raises(sb.InputTypeError, match="`kind` of its own"):
        Renamed(sb.ExactSketch(3)).save(tmp_path / "p")

    class Named(sb.LinUCB):
        kind = "a-policy-of-a-test"

    Named(sb.ExactSketch(3)).save(tmp_path / "p")
    assert type(sb.load(tmp_path / "p")) is Named


def test_what_a_choice_leaves_is_counted_once(backend: str) -> None:
    """The arm, its image and its products with pending rows: in buffers of the inverse, if compiled."""
    policy = train(sb.oful(50), 80, 50)
    before = policy.nbytes
    policy.select(unit(np.random.default_rng(0).standard_normal((5, 50))))
    assert policy.nbytes - before == (0 if backend == "compiled" else 8 * (50 + 50 + 7))


@pytest.mark.parametrize("name", EVERY)
def test_arrays_of_the_caller_may_change(name: str) -> None:
    """What is done to the arms after a call is no business of the policy."""
    careful, careless = (EVERY[name](12, size=4, ridge=1.0, beta=0.3) for _ in range(2))
    for arms, rewards in rounds(60, 12, seed=3):
        chosen = careful.select(arms)
        theirs = arms.copy()
        assert careless.select(theirs) == chosen
        theirs += 1.0
        careful.update(arms[chosen], rewards[chosen])
        arm = arms[chosen].copy()
        careless.update(arm, rewards[chosen])
        arm += 1.0
    assert saved(careful) == saved(careless)


@pytest.mark.parametrize("name", CERTIFIED)
def test_the_radius_follows_a_compression_from_outside(name: str) -> None:
    """A sketch that was shrunk by hand has another certificate, and with it another radius, at once."""
    beta = sb.Confidence(noise=0.1, theta_norm=1.0, delta=0.01)
    policy = train(CERTIFIED[name](30, size=4, ridge=1e-3, beta=beta), 90, 30)
    for arm in np.eye(30)[:7]:
        policy.update(arm, 0.0)
    policy.sketch.compress()
    arms = unit(np.random.default_rng(0).standard_normal((5, 30)))
    fresh = design_radius(beta, policy.sketch, 1e-3)
    scores = policy.mean(arms) + fresh * policy.width(arms)
    assert np.allclose(policy.ucb(arms), scores, rtol=1e-6)
    assert policy.radius == pytest.approx(fresh, rel=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_a_pickled_policy_goes_on_the_same(name: str) -> None:
    """Whoever sends policies between processes of their own gets the same bits, and read-only rows."""
    policy = train(EVERY[name](40, size=4, ridge=1.0, beta=0.1), 60, 40)
    again = pickle.loads(pickle.dumps(policy))  # noqa: S301  (our own bytes)
    for p in (policy, again):
        train(p, 30, 40, seed=1)
    assert np.array_equal(policy.theta, again.theta)
    if name in CERTIFIED:
        assert not again.sketch.rows.flags.writeable


@pytest.mark.parametrize("name", EVERY)
def test_copies_are_independent(name: str) -> None:
    """A copy goes its own way."""
    policy = train(EVERY[name](12, size=4, ridge=1.0, beta=0.3), 60, 12)
    before = saved(policy)
    for other in (copy.copy(policy), copy.deepcopy(policy)):
        train(other, 40, 12, seed=1)
        assert saved(policy) == before


@pytest.mark.parametrize("name", EVERY)
def test_unlike_policies_do_not_merge(name: str) -> None:
    """Another ridge, beta, dim, size, kind or seed is refused, and nothing changes."""
    make = EVERY[name]
    policy = train(make(8, size=3, ridge=1.0, beta=0.3), 40, 8)
    before = saved(policy)
    others = [
        make(8, size=3, ridge=2.0, beta=0.3),
        make(8, size=3, ridge=1.0, beta=0.4),
        make(9, size=3, ridge=1.0, beta=0.3),
        sb.LinUCB(sb.IncrementalSVD(8, size=3), ridge=1.0, beta=0.3),
        policy.sketch,
        None,
    ]
    if name != "oful":
        others.append(make(8, size=4, ridge=1.0, beta=0.3))
    if name == "cbrap":
        others.append(sb.cbrap(8, size=3, ridge=1.0, beta=0.3, seed=1))
    for other in others:
        with pytest.raises(sb.MergeError):
            policy.merge(other)
    assert saved(policy) == before


def test_a_file_of_another_kind_loads_as_what_it_is(tmp_path: Path) -> None:
    """load tells sketches from policies; a damaged policy is refused."""
    sketch, policy = sb.FrequentDirections(5, size=3), train(sb.soful(5, size=3), 30, 5)
    sketch.save(tmp_path / "sketch")
    policy.save(tmp_path / "policy")
    assert isinstance(sb.load(tmp_path / "sketch"), sb.FrequentDirections)
    assert isinstance(sb.load(tmp_path / "policy"), sb.LinUCB)
    content = (tmp_path / "policy").read_bytes()
    for at in np.random.default_rng(0).integers(0, len(content), 40).tolist():
        changed = bytearray(content)
        changed[at] ^= 8
        (tmp_path / "policy").write_bytes(bytes(changed))
        with pytest.raises(sb.FileError):
            sb.load(tmp_path / "policy")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [40, 700])
def test_nbytes_is_what_memory_holds(name: str, dim: int) -> None:
    """nbytes is within 1 % of what tracemalloc sees the policy hold in arrays.

    Only arrays are counted: numpy traces their data under a domain of its own. What else is allocated
    meanwhile (caches, other threads, the traces themselves) depends on which tests ran before.
    """
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)

    def trained() -> Any:
        policy = EVERY[name](dim, size=20, ridge=1.0, beta=0.1)
        random = np.random.default_rng(0)
        for _ in range(230):
            arms = random.standard_normal((3, dim)) / np.sqrt(dim)
            policy.update(arms[policy.select(arms)], 0.5)
        return policy

    trained()  # arrays that modules keep once they are imported are not the policy's
    tracemalloc.start()
    try:
        policy = trained()
        gc.collect()
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    traced = sum(trace.size for trace in snapshot.filter_traces([arrays]).traces)
    assert abs(policy.nbytes - traced) <= 0.01 * traced, f"nbytes {policy.nbytes}, held {traced}"


def counted_rebuilds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many rows each rebuild from now on happens."""
    rebuilds: list[int] = []
    original = Precision.rebuild

    def counting(self: Precision, **kwargs: bool) -> None:
        rebuilds.append(self.sketch.count)
        original(self, **kwargs)

    monkeypatch.setattr(Precision, "rebuild", counting)
    return rebuilds


def test_a_row_appended_is_never_a_fresh_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is rebuilt when the sketch is, and at no other round."""
    policy = sb.soful(60, size=8)
    rebuilds = counted_rebuilds(monkeypatch)
    train(policy, 200, 60)
    assert rebuilds == [16 + 9 * i for i in range(len(rebuilds))]  # 16 rows, shrunk to 7, and so on
    assert len(rebuilds) == 21


def test_a_dense_inverse_is_made_anew_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every 256 rows, or dim, so that the rounding of rank-one updates does not add up."""
    policy = sb.oful(6)
    rebuilds = counted_rebuilds(monkeypatch)
    train(policy, 1100, 6)
    assert np.diff(rebuilds)[1:].tolist() == [257, 257, 257]


def test_a_million_updates_do_not_drift(backend: str) -> None:
    """OFUL one by one: within 1e-6 of a fresh solve, and positive definite, all the way (in a soak)."""
    random = np.random.default_rng(0)
    dim, count = 5, long_stream(1_000_000, every_day=0.2 if backend == "compiled" else 0.1)
    policy = sb.oful(dim, ridge=1.0, beta=0.1)
    arms = random.standard_normal((count, dim)) * np.array([1.0, 1.0, 1e-1, 1e-2, 1e-3])
    rewards = arms @ np.arange(1.0, dim + 1) + 0.1 * random.standard_normal(count)
    for start in range(0, count, 50_000):
        stop = start + 50_000
        for arm, reward in zip(arms[start:stop], rewards[start:stop].tolist(), strict=True):
            policy.update(arm, reward)
        matrix = np.eye(dim) + arms[:stop].T @ arms[:stop]
        theta = np.linalg.solve(matrix, arms[:stop].T @ rewards[:stop])
        assert np.allclose(policy.theta, theta, rtol=1e-6)
        widths = np.sqrt(np.diag(np.linalg.inv(matrix)))
        assert np.allclose(policy.width(np.eye(dim)), widths, rtol=1e-6)
        lengths, directions = np.linalg.eigh(matrix)
        assert np.allclose(policy.width(directions.T) ** 2, 1.0 / lengths, rtol=1e-6)


@pytest.mark.parametrize("name", ["soful", "cbscfd", "dbs-rfd"])
def test_a_long_stream_does_not_drift(name: str) -> None:
    """A million rows in batches, then single ones: still what a dense solve of the same sketch says."""
    random = np.random.default_rng(1)
    policy = CERTIFIED[name](12, size=4, ridge=1.0, beta=0.1)
    for _ in range(long_stream(100, every_day=0.1)):
        arms = unit(random.standard_normal((10_000, 12)))
        policy.update(arms, arms[:, 0])
        for arm in arms[:20]:
            policy.update(arm, arm[0])
    matrix = policy.sketch.covariance() + np.eye(12)
    assert np.allclose(policy.theta, np.linalg.solve(matrix, policy.estimate.b), rtol=1e-6)
    widths = np.sqrt(np.diag(np.linalg.inv(matrix)))
    assert np.allclose(policy.width(np.eye(12)), widths, rtol=1e-6)
