"""The small parts: vectors, history, logs, settings of bandits."""

import json
import logging
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sketchbandit_service import vectors
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.decision_ids import decision_id, parse_decision_id
from sketchbandit_service.history import BUCKETS, STRETCHES, Bucket, History, Meter
from sketchbandit_service.logs import JsonFormatter, TextFormatter
from sketchbandit_service.timeline import RANGES, Timeline

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_dense_vectors_keep_every_bit(values: list[float]) -> None:
    """decode(encode(x)) is x."""
    vector = np.array(values)
    assert vectors.decode(vectors.encode(vector), len(values)).tobytes() == vector.tobytes()


@given(st.dictionaries(st.integers(0, 99), numbers, max_size=20))
def test_sparse_vectors_keep_every_bit(entries: dict[int, float]) -> None:
    """Also those with no entry at all."""
    row = vectors.from_sparse_rows([list(entries)], [list(entries.values())], 100)
    again = vectors.decode(vectors.encode(row), 100)
    assert not isinstance(again, np.ndarray)
    assert np.array_equal(again.toarray(), row.toarray())
    assert again.indices.dtype == row.indices.dtype
    dense = np.zeros(100)
    dense[list(entries)] = list(entries.values())
    assert np.array_equal(row.toarray()[0], dense)


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(payload: bytes) -> None:
    """Either a vector of the right dimension, or ValueError."""
    try:
        vector = vectors.decode(payload, 3)
    except ValueError:
        return
    assert vector.shape in ((3,), (1, 3))


def test_all_arms_of_a_decision() -> None:
    """Dense ones and sparse ones, as they were; a sparse arm is not made dense for it."""
    dense = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(vectors.decode_all(vectors.encode_all(dense), 3), dense)
    thin = sparse.csr_array(([1.0, 2.0], ([0, 2], [999_999, 5])), shape=(3, 1_000_000))
    payload = vectors.encode_all(thin)
    assert len(payload) < 100
    again = vectors.decode_all(payload, 1_000_000)
    assert [
        (row.indices.tolist(), row.data.tolist()) for row in again if not isinstance(row, np.ndarray)
    ] == [
        ([999_999], [1.0]),
        ([], []),
        ([5], [2.0]),
    ]


def test_mixed_rows_become_sparse() -> None:
    """Dense and sparse arms in one matrix."""
    mixed = vectors.joined([np.array([[1.0, 0.0, 2.0]]), vectors.from_sparse_rows([[1]], [[5.0]], 3)])
    assert not isinstance(mixed, np.ndarray)
    assert np.array_equal(mixed.toarray(), [[1.0, 0.0, 2.0], [0.0, 5.0, 0.0]])


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(-3, 3)), max_size=60))
def test_history_loses_no_count(events: list[tuple[float, int]]) -> None:
    """However long, in at most 240 stretches, everything is counted, in its place."""
    history = History(start=0.0)
    for at, reward in sorted(events):
        history.add(at, Bucket(decisions=1, rewards=1, reward_sum=float(reward)))
    assert len(history.buckets) <= BUCKETS
    assert sum(bucket.decisions for bucket in history.buckets) == len(events)
    assert sum(bucket.reward_sum for bucket in history.buckets) == sum(reward for _, reward in events)
    for place, bucket in enumerate(history.buckets):
        start, end = place * history.width, (place + 1) * history.width
        assert bucket.decisions == sum(start <= at < end for at, _ in events)
    again = History.undump(json.loads(json.dumps(history.dump())))
    assert (again.start, again.width, again.buckets) == (history.start, history.width, history.buckets)


def test_meter_forgets() -> None:
    """A rate is of the last seconds, and memory does not grow."""
    meter = Meter(seconds=10)
    for second in range(1000):
        meter.count(float(second))
    assert meter.rate(999.5, 0.0) == 1.0
    assert meter.rate(2000.0, 0.0) == 0.0
    assert len(meter._counts) <= 20
    young = Meter(seconds=10)
    for at in range(20):
        young.count(100.0 + at / 10)
    assert young.rate(102.0, since=100.0) == 10.0


@given(st.integers(1, 2**59), st.text("0123456789abcdef", min_size=12, max_size=12))
def test_decision_ids(seq: int, tag: str) -> None:
    """Read back as they were made; the same number written otherwise is no id."""
    assert parse_decision_id(decision_id(seq, tag)) == (seq, tag)
    for other in (
        f"{seq:x}-{tag}\x00",
        f"{seq:x}-{tag}0",
        f"{seq:x}-{tag[1:]}",
        f"{'f' * 16}-{tag}",
        f"0{seq:x}-{tag}",
        f"{seq:X}-{tag}" if f"{seq:X}" != f"{seq:x}" else "-",
        f"+{seq:x}-{tag}",
    ):
        assert parse_decision_id(other) is None


def test_configs_round_trip() -> None:
    """As they stand in the journal."""
    parameters: dict[str, Any] = {"beta": {"noise": 0.1}, "size": 3}
    config = BanditConfig(7, parameters=parameters, reward_timeout=None, defaults={"baseline": False})
    assert BanditConfig.from_json(config.to_json()) == config


def test_logs_are_one_object_a_line() -> None:
    """With what was given as extra, and the traceback inside."""
    record = logging.makeLogRecord({"name": "n", "levelname": "ERROR", "msg": "hello %s", "args": ("you",)})
    record.bandit = "a\nb"
    try:
        raise ValueError("inside")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    line = JsonFormatter().format(record)
    found: dict[str, Any] = json.loads(line)
    assert "\n" not in line
    assert (found["message"], found["level"], found["bandit"]) == ("hello you", "error", "a\nb")
    assert "ValueError: inside" in found["exception"]
    assert "hello you" in TextFormatter().format(record)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200, 2e9])
def test_vectors_out_of_range(value: float) -> None:
    """Named by their place, dense and sparse."""
    for matrix in (np.array([[0.0, 1.0], [value, 0.0]]), sparse.csr_array([[0.0, 1.0], [value, 0.0]])):
        with pytest.raises(Exception, match="arm 1"):
            vectors.check(matrix, 1e9)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.sampled_from("abc")), max_size=60), st.floats(0, 2e5))
def test_a_range_of_time_holds_what_happened_in_it(events: list[tuple[float, str]], later: float) -> None:
    """To the stretch: nothing of the time before, everything of the time since; and it survives JSON."""
    timeline = Timeline(0.0)
    for at, arm in sorted(events):
        timeline.add(at, Bucket(decisions=1))
        timeline.showed(at, arm)
    now = max([later, *(at for at, _ in events)])
    timeline = Timeline.undump(json.loads(json.dumps(timeline.dump())))
    for name, seconds in RANGES.items():
        view = timeline.view(name, now)
        assert view.history.start <= now < view.history.start + len(view.history.buckets) * view.history.width
        sure = sum(now - at < seconds * (1 - 1 / STRETCHES) for at, _ in events)
        possible = sum(now - at <= seconds for at, _ in events)
        assert sure <= view.total.decisions <= possible
        assert sum(now - at < seconds * 11 / 12 for at, _ in events) <= view.shares.total() <= possible
    assert timeline.view("all", now).total.decisions == len(events)
    assert timeline.view("all", now).shares == Counter(arm for _, arm in events)


def test_shares_of_many_arms_are_bounded() -> None:
    """Beyond two hundred names they are counted together, and none is lost."""
    timeline = Timeline(0.0)
    for place in range(1000):
        timeline.showed(0.0, str(place))
        timeline.showed(0.0, "0")
    found = timeline.view("all", 1.0).shares
    assert (len(found), found["0"], found.total()) == (201, 1001, 2000)
