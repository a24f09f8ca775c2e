"""The screen recorded as a CUDA graph: what it tells is what the plain screen tells, and float64."""

from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.arms import OfferedArms
from sketchbandit.explore.screen import Aim, Bounds, Scorer, screened
from sketchbandit.precision import Precision

torch: Any = pytest.importorskip(
    "torch",
    reason="torch is not installed: its wheel is too large for make test; make test-device runs these",
)
if not torch.cuda.is_available():
    pytest.skip("the machine has no CUDA device: make test-device runs these", allow_module_level=True)
cuda_screen: Any = pytest.importorskip("sketchbandit.explore.cuda_screen")
DEVICE, DIM = "cuda:0", 45


class Case:
    """Arms on the device, a request for them, and its scores in float64."""

    def __init__(
        self, *, is_weighted: bool, half: bool, bonus: float, scale: float = 1.0, seed: int = 0
    ) -> None:
        random = np.random.default_rng(seed)
        arms = (random.standard_normal((5_003, DIM)) * scale).astype(np.float32)
        arms[7], arms[9] = 0.0, arms[4_000]
        context = random.standard_normal(DIM) * 10.0 ** random.uniform(-3, 1, DIM) if is_weighted else None
        if context is not None:
            context[:3] = 0.0, 1e-30, -1e-12
        formed = arms.astype(float) * (1.0 if context is None else context)
        unit = float(np.abs(formed).max())
        sketch = sb.FrequentDirections(DIM, size=6)
        sketch.update(formed[:300])
        self.precision, self.aim = (
            Precision(sketch, unit * unit),
            Aim(random.standard_normal(DIM) / unit, bonus),
        )
        catalogue = sb.Catalogue(torch.as_tensor(arms, device=DEVICE), half=half)
        self.offer = catalogue if context is None else catalogue.times(context)
        widths = np.sqrt([self.precision.quadratic(row) for row in formed])
        self.scores = formed @ self.aim.vector + bonus * widths

    @property
    def arms(self) -> OfferedArms:
        """What is offered."""
        return self.offer.arms

    def bounds(self) -> Any:
        """The recorded screen."""
        return cuda_screen.bounds(Scorer([self.arms], self.aim, self.precision))


CASES = pytest.mark.parametrize(
    "case",
    [
        {"is_weighted": is_weighted, "half": half, "bonus": bonus, "scale": scale}
        for is_weighted in (False, True)
        for half in (False, True)
        for bonus, scale in ((0.0, 1.0), (0.3, 1.0), (4.0, 1e-8), (0.3, 1e6))
    ],
    ids=str,
)


@CASES
def test_bounds_hold_and_are_tight(case: dict[str, Any]) -> None:
    """Every bound is at least the score in float64, and at most a little more than x'v + bonus·|x|/√ρ."""
    made = Case(**case)
    with made.bounds() as bounds:
        upper = bounds._buffers.upper.double().cpu().numpy()
    assert (upper >= made.scores).all()
    formed = made.arms.raw_rows(slice(None)).astype(float)
    lengths, vector = np.linalg.norm(formed, axis=1), np.linalg.norm(made.aim.vector)
    loosest = formed @ made.aim.vector + lengths * (made.aim.bonus / np.sqrt(made.precision.shift))
    room = 1e-4 * vector * lengths
    if case["half"]:
        context = 1.0 if made.arms.context is None else np.abs(made.arms.context).max()
        coarse = made.arms.store.coarse
        assert coarse is not None
        reach = made.aim.bonus / np.sqrt(made.precision.shift)
        room += 2.1 * context * (vector + reach) * made.arms.library.to_host(coarse.slack)
    assert (upper <= loosest + room + 1e-6 * np.abs(loosest) + 1e-9).all()


@CASES
@pytest.mark.parametrize("count", [1, 40])
def test_it_tells_what_the_plain_screen_tells(case: dict[str, Any], count: int) -> None:
    """The plain screen is the oracle: the same arms are left, and the leaders include the best."""
    made = Case(**case)
    order, slack = np.argsort(-made.scores, kind="stable"), 1e-9 * np.abs(made.scores).max()
    with made.bounds() as bounds:
        plain = Bounds(bounds._buffers.upper[None, :], 0.0, Scorer([made.arms], made.aim, made.precision))
        told, left, wanted = bounds.leaders(count), bounds.left(count), plain.left(count)
    np.testing.assert_array_equal(left, wanted)
    assert set(order[:count].tolist()) <= set(left[1].tolist())
    if told is not None:
        indices, low, high = told
        assert set(order[:count].tolist()) <= set(indices.tolist())
        assert len(indices) == count or (low - slack <= made.scores[indices]).all()
        assert len(indices) == count or (made.scores[indices] <= high + slack).all()


def test_a_clear_best_is_told_at_once() -> None:
    """Of both graphs: the arm alone, or those with the largest bounds, and none but these."""
    for is_weighted in (False, True):
        made = Case(is_weighted=is_weighted, half=False, bonus=0.0)
        best = int(made.scores.argmax())
        with made.bounds() as bounds:
            (index,), _, _ = bounds.leaders(1)
            several, low, high = bounds.leaders(40)
        assert index == best
        assert 40 <= len(several) < 3 * (80 + 64)
        assert (low <= high).all()


@CASES
@pytest.mark.parametrize("count", [1, 7, 200])
def test_the_best_are_those_of_float64(case: dict[str, Any], count: int) -> None:
    """In order where they are settled; else all of them are left."""
    made = Case(**case)
    found = screened(made.arms, made.aim, made.precision, count)
    order = np.argsort(-made.scores, kind="stable")
    if found.is_settled:
        assert found.indices.tolist() == order[:count].tolist()
    else:
        assert set(order[:count].tolist()) <= set(found.indices.tolist())


def test_where_it_cannot_be_used() -> None:
    """Another context, some of the arms, float64, or buffers that another choice has: the plain screen."""
    made = Case(is_weighted=True, half=False, bonus=0.3)
    arms = made.arms
    others = [
        OfferedArms(arms.store, np.ones(2), "concatenate"),
        OfferedArms(arms.store, arms.context, "product", np.array([1, 4])),
        OfferedArms(sb.Catalogue(torch.Tensor.double(arms.store.array)).arms.store),
    ]
    for other in others:
        assert cuda_screen.bounds(Scorer([other], made.aim, made.precision)) is None
    with made.bounds():
        assert made.bounds() is None
        assert screened(arms, made.aim, made.precision, 1).indices[0] == made.scores.argmax()
    with made.bounds() as bounds:
        assert bounds is not None
