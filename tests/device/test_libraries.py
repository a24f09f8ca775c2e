"""Catalogues of JAX and CuPy arrays on the device there is, and of numpy: the choices are the same."""

from typing import Any

import numpy as np
import pytest

import sketchbandit as sb

COUNT, DIM = 20_000, 40


def learned(rows: Any, scaling: Any) -> Any:
    """A policy that has learned from some of the rows."""
    policy = sb.soful(DIM, size=24, beta=0.2, scaling=scaling)
    policy.update(rows[:200], rows[:200] @ np.random.default_rng(1).standard_normal(DIM))
    policy.select(rows)  # so that a warm-up is over
    return policy


@pytest.mark.parametrize("scaling", [None, "rows", "columns"])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("library", ["numpy", "jax.numpy", "cupy"])
def test_choices_are_those_of_float64(library: str, half: bool, scaling: Any) -> None:
    """Plain, some of the arms, a context, and many requests at once; before and after a change."""
    module, random = pytest.importorskip(library), np.random.default_rng(0)
    arms = (random.standard_normal((COUNT, DIM)) / 6).astype(np.float32)
    users, wide, some = random.uniform(0.5, 1.5, (6, DIM)), arms.astype(float), np.arange(0, COUNT, 3)
    if library == "cupy" and half:
        with pytest.raises(sb.InputError, match="bfloat16"):
            sb.Catalogue(module.asarray(arms), half=half)
        return
    catalogue, policy = sb.Catalogue(module.asarray(arms), half=half), learned(wide, scaling)
    offers, wanted = [catalogue.times(user) for user in users], [policy.select(wide * user) for user in users]
    assert policy.select(catalogue) == policy.select(wide)
    assert policy.top(catalogue, 9).tolist() == policy.top(wide, 9).tolist()
    assert [policy.select(offer) for offer in offers] == wanted
    assert policy.select_many(offers).tolist() == wanted
    assert policy.select(catalogue.among(some).times(users[0])) == policy.select((wide * users[0])[some])
    catalogue.add(module.asarray(arms[:5] * 2), range(COUNT, COUNT + 5))
    catalogue.retire([3])
    assert policy.select(catalogue) == policy.select(np.delete(np.vstack([wide, 2 * wide[:5]]), 3, axis=0))
