"""What torch tensors get on the device there is: `make test-device` needs nothing but torch and pytest."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.explore.screen import Scorer

torch: Any = pytest.importorskip(
    "torch",
    reason="torch is not installed: its wheel is too large for make test; make test-device runs these",
)
DEVICE = os.environ.get("SKETCHBANDIT_DEVICE") or ("cuda:0" if torch.cuda.is_available() else "cpu")
DIM = 48


def offered(count: int = 20_000, seed: int = 0) -> Any:
    """Arms on the device."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn(count, DIM, generator=generator, device=DEVICE) / DIM**0.5


def learned(arms: Any, rule: Any, **settings: Any) -> Any:
    """A policy that has learned from some of the arms."""
    policy = sb.soful(DIM, size=12, explore=rule, **settings)
    random = np.random.default_rng(1)
    some = arms[:200].double().cpu().numpy()
    policy.update(some, some @ random.standard_normal(DIM))
    return policy


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("scaling", [None, "rows", "columns"])
@pytest.mark.parametrize("beta", [0.0, 0.1, 5.0])
def test_choices_are_those_of_float64(beta: float, scaling: Any, half: bool) -> None:
    """Select and top, whatever survives the screen."""
    arms = offered()
    host = arms.double().cpu().numpy()
    policy = learned(arms, sb.UCB(beta), scaling=scaling)
    policy.select(host)  # so that a warm-up is over
    catalogue = sb.Catalogue(arms, half=half)
    assert policy.select(catalogue) == policy.select(host)
    assert policy.top(catalogue, 20).tolist() == policy.top(host, 20).tolist()
    assert policy.select(arms) == policy.select(host)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("interaction", ["times", "beside", "outer"])
def test_contexts(interaction: str, half: bool) -> None:
    """A context with stored arms is what formed features are, one request after another and many at once."""
    arms = offered(3_000)
    random, catalogue = np.random.default_rng(2), sb.Catalogue(arms, half=half)
    contexts = random.standard_normal((5, DIM if interaction == "times" else 3))
    offers = [getattr(catalogue, interaction)(context) for context in contexts]
    formed = [offer.arms.raw_rows(slice(None)) for offer in offers]
    policy = sb.soful(formed[0].shape[1], size=12, beta=0.2)
    policy.update(formed[0][:100], formed[0][:100] @ random.standard_normal(formed[0].shape[1]))
    wanted = [policy.select(some) for some in formed]
    assert [policy.select(offer) for offer in offers] == wanted
    assert policy.select_many(offers).tolist() == wanted
    for offer, some in zip(offers, formed, strict=True):
        assert policy.top(offer, 20).tolist() == policy.top(some, 20).tolist()


def test_numbers_stay_on_the_device() -> None:
    """Means, widths and bounds come back as tensors there, in float64."""
    arms = offered()
    policy = learned(arms, sb.UCB(0.1))
    for verb in ("mean", "width", "ucb"):
        found = getattr(policy, verb)(arms)
        assert found.device == arms.device
        wanted = getattr(policy, verb)(arms.double().cpu().numpy())
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-8, atol=1e-10)


def test_draws_are_those_of_the_same_generator() -> None:
    """Thompson sampling on a device draws what it draws on the host."""
    arms = offered()
    mine, theirs = (learned(arms, sb.Thompson(0.3, seed=4)) for _ in range(2))
    for _ in range(5):
        assert mine.select(arms) == theirs.select(arms.double().cpu().numpy())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_the_certificate_of_rows_on_a_device(dtype: str) -> None:
    """S'S ⪯ X'X ⪯ S'S + e I against float64, with all that was rounded on the way."""
    rows = (offered(4_000, seed=5) * 0.9 ** torch.arange(DIM, device=DEVICE)).to(getattr(torch, dtype))
    exact = rows.double().cpu().numpy()
    sketch = sb.FrequentDirections(DIM, size=12)
    for start in range(0, 4_000, 500):
        sketch.update(rows[start : start + 500])
    off = np.linalg.eigvalsh(exact.T @ exact - sketch.covariance())
    assert off.max() <= sketch.error_bound
    assert off.min() >= -sketch.rounding - 1e-9 * sketch.mass
    assert sketch.count == 4_000


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("count", [2, 100, 700])
def test_many_arms_with_close_scores(count: int, half: bool) -> None:
    """More arms than one block of a kernel holds; some are there twice, so that ties go to the lowest."""
    arms = offered(150_000, seed=7)
    arms[100_000:100_050] = arms[:50]
    policy = learned(arms, sb.UCB(0.3))
    host, catalogue = arms.double().cpu().numpy(), sb.Catalogue(arms, half=half)
    assert policy.top(catalogue, count).tolist() == policy.top(host, count).tolist()
    best = int(policy.select(host))
    arms[149_999] = arms[best]
    assert policy.select(sb.Catalogue(arms, half=half)) == best


def test_arms_that_are_all_alike() -> None:
    """Nothing can be excluded, and ties go to the lowest."""
    arms = torch.ones(40_000, DIM, device=DEVICE) / DIM**0.5
    policy = learned(offered(), sb.UCB(0.3))
    assert policy.select(sb.Catalogue(arms)) == 0
    assert policy.top(sb.Catalogue(arms), 5).tolist() == [0, 1, 2, 3, 4]


def test_threads_share_a_catalogue() -> None:
    """Two choices at a time: each has buffers of its own."""
    arms = offered(60_000)
    policies = [learned(arms, sb.UCB(beta)) for beta in (0.0, 0.1, 0.3, 1.0)]
    catalogue, host = sb.Catalogue(arms), arms.double().cpu().numpy()
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(policy.select, catalogue) for policy in policies for _ in range(20)]
        found = [answer.result() for answer in answers]
    assert found == [policy.select(host) for policy in policies for _ in range(20)]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_few_arms_are_looked_at_closely(is_weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are tight: where one arm is clearly best, nothing but that one is looked at."""
    arms = offered(50_000)
    policy, context = learned(arms, sb.UCB(0.01)), np.random.default_rng(3).uniform(0.5, 1.5, DIM)
    host = arms.double().cpu().numpy()
    best = policy.select(host * context if is_weighted else host)
    arms[best] *= 1.5
    looked_at: list[int] = []
    plain = Scorer.__call__

    def counted(score: Any, who: Any, where: Any) -> Any:
        looked_at.append(len(where))
        return plain(score, who, where)

    monkeypatch.setattr(Scorer, "__call__", counted)
    for half in (False, True):
        catalogue = sb.Catalogue(arms, half=half)
        assert policy.select(catalogue.times(context) if is_weighted else catalogue) == best
    assert sum(looked_at) <= 10
