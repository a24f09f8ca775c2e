"""Stored arms: a store is never written to, and what many ids cost grows with their number."""

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sketchbandit_service import arm_store
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.problems import Invalid, NotFound
from sketchbandit_service.vectors import DamagedArm, encode, from_sparse_rows

DIM = 3
MANY = 100_000
names = st.sampled_from("abcdefgh")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(names, min_size=1, max_size=4, unique=True), st.booleans()),
        st.tuples(st.just("drop"), st.lists(names, max_size=3), st.booleans()),
    ),
    max_size=8,
)


def features(number: int, *, is_sparse: bool) -> Any:
    """Of one arm, all different."""
    if is_sparse:
        return from_sparse_rows([[number % DIM]], [[number + 1.0]], DIM)
    return np.full(DIM, number + 1.0)


def dense(matrix: Any) -> Any:
    """As an array."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@given(steps)
def test_a_store_does_what_a_dictionary_does(steps: list[tuple[str, list[str], bool]]) -> None:
    """The arms of every step, in the order in which they came; the store of before stays as it was."""
    store, oracle, number = ArmStore(), dict[str, Any](), 0
    for verb, ids, is_sparse in steps:
        before, known = store, dict(oracle)
        if verb == "put":
            rows = {arm: features(number + at, is_sparse=is_sparse) for at, arm in enumerate(ids)}
            number += len(ids)
            matrix = (
                sparse.vstack(list(rows.values())).tocsr() if is_sparse else np.array(list(rows.values()))
            )
            store = store.with_arms(ids, matrix)
            oracle.update(rows)
        else:
            store = store.without(ids)
            oracle = {arm: row for arm, row in oracle.items() if arm not in ids}
        assert_holds(before, known)
        assert_holds(store, oracle)


def assert_holds(store: ArmStore, expected: dict[str, Any]) -> None:
    """Just these arms."""
    assert store.ids() == list(expected)
    assert len(store) == len(expected)
    if not expected:
        with pytest.raises(Invalid, match="no stored arms"):
            store.choose_from(None)
        return
    rows = np.concatenate(
        [dense(np.atleast_2d(row) if isinstance(row, np.ndarray) else row) for row in expected.values()]
    )
    np.testing.assert_array_equal(dense(store.choose_from(None).matrix), rows)
    some = list(expected)[::-1][:2]
    chosen = store.choose_from(some)
    assert chosen.ids == some
    for at, arm in enumerate(some):
        np.testing.assert_array_equal(dense(chosen.matrix)[at], np.ravel(dense(store.row(arm))))
        assert arm in store


def test_bytes_count_features_and_ids() -> None:
    """Long ids take memory too; what is removed takes none."""
    store = ArmStore().with_arms(["a" * 100, "b"], np.ones((2, DIM)))
    assert store.nbytes > 2 * 8 * DIM + 101
    assert store.without(["a" * 100]).nbytes < store.nbytes - 8 * DIM - 100
    assert store.without(store.ids()).nbytes == ArmStore().nbytes == 0


def test_ids_that_are_unknown_or_twice_are_refused() -> None:
    """By their name."""
    store = ArmStore().with_arms(["a", "b"], np.ones((2, DIM)))
    with pytest.raises(NotFound, match="no stored arm 'c'"):
        store.choose_from(["a", "c"])
    with pytest.raises(NotFound, match="no stored arm 'c'"):
        store.row("c")
    for refused in (
        lambda: store.choose_from(["a", "b", "a"]),
        lambda: store.with_arms(["c", "c"], np.ones((2, DIM))),
    ):
        with pytest.raises(Invalid, match="is given twice"):
            refused()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_hundred_thousand_arms_take_a_second_or_so(is_sparse: bool) -> None:
    """To restore, to name in a decision, to replace one: no step looks at each arm for each arm."""
    ids = [f"arm {number}" for number in range(MANY)]
    kinds = [encode(features(number, is_sparse=is_sparse)) for number in range(100)]
    started = time.perf_counter()
    store = ArmStore.restored(ids, kinds * (MANY // 100), DIM)
    chosen = store.choose_from(ids[::-1])
    other = store.with_arms([ids[7], "new"], np.zeros((2, DIM))).without(ids[10:20])
    with pytest.raises(Invalid, match="twice"):
        store.choose_from([*ids, ids[0]])
    assert time.perf_counter() - started < 10.0  # minutes, if it were quadratic
    assert len(chosen) == MANY
    np.testing.assert_array_equal(dense(chosen.matrix[-3:]), dense(store.choose_from(None).matrix[:3])[::-1])
    assert len(other) == MANY - 9


def test_a_damaged_arm_is_named_by_its_place() -> None:
    """So that whoever restores can say which."""
    with pytest.raises(DamagedArm, match="3 bytes do not hold an arm") as caught:
        ArmStore.restored(["a", "b"], [encode(np.ones(DIM)), b"Dxx"], DIM)
    assert caught.value.place == 1
    assert len(ArmStore.restored([], [], DIM)) == 0


def test_replacing_one_arm_copies_once() -> None:
    """What it takes beside the store is one copy of it."""
    store = ArmStore().with_arms([str(place) for place in range(2000)], np.ones((2000, 500)))
    tracemalloc.start()
    made = store.with_arms(["7", "new"], np.zeros((2, 500)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * made.nbytes
    assert made.row("7").sum() == made.row("new").sum() == 0


def test_many_dense_arms_are_prepared_once_and_again_after_a_change() -> None:
    """With a copy of an eighth of their size, as the docs say; few or sparse ones are not prepared."""
    arms = np.random.default_rng(0).standard_normal((arm_store.MANY, 16))
    ids = [str(number) for number in range(len(arms))]
    store = ArmStore(ids, arms)
    assert store.is_prepared
    first = store.prepared(None)
    assert store.prepared(None) is first
    assert first.coarse is not None
    assert 8 * np.asarray(first.coarse.array).nbytes == arms.nbytes
    changed = store.with_arms(["new"], np.ones((1, 16)))
    assert changed.prepared(None) is not first
    assert len(changed.prepared(None)) == len(arms) + 1
    assert not store.without(ids[:1]).is_prepared
    assert not ArmStore(ids, sparse.csr_array(arms)).is_prepared
