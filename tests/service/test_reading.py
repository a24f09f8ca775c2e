"""Requests read piece by piece: the same as at once, in bounded memory, and nobody waits for it."""

import asyncio
import gc
import json
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit_service.api import json_cursor, prices
from sketchbandit_service.api.answers import decision_answer
from sketchbandit_service.api.arm_reader import ArmReader
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.npy import read_npy
from sketchbandit_service.api.request_models import bandit_name
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.budget import Budget
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.pacing import Pace
from sketchbandit_service.problems import Malformed, NotFound, Problem, TooLarge
from sketchbandit_service.settings import Limits
from tests.service.harness import DIM, PLAIN, error_of, in_loop, service
from tests.service.test_api import npy

JSON = {"content-type": "application/json"}
texts = st.text(max_size=6) | st.sampled_from(["}", "]", '"', "\\", "a,b", "[", "{", "é", "\U0001f600"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def free(_: int) -> None:
    """Charges nothing."""


@given(values, st.booleans(), st.sampled_from([4, 16, 1 << 16]))
def test_piece_by_piece_is_as_at_once(value: Any, is_ascii: bool, step: int) -> None:
    """Whatever the value and however small the pieces: what json.loads gives, and the place after it."""
    text = json.dumps(value, ensure_ascii=is_ascii)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_cursor, "_STEP", step)
        cursor = Cursor(f" {text} ".encode(), free)
        assert cursor.value(depth=50) == value
        cursor.finish()
        cursor.at = 0
        cursor.skip(depth=50)
        cursor.finish()


@given(values, st.data(), st.sampled_from([4, 16, 1 << 16]))
def test_what_is_no_json_is_refused_by_both(value: Any, data: st.DataObject, step: int) -> None:
    """With a character put in or left out: Malformed where json.loads refuses it, and only there."""
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.sampled_from(["", ",", "]", "[", "{", "}", '"', ":", "\\", "1", "-", " ", "\x00", "e"])
    )
    text = text[:at] + put + text[at + data.draw(st.integers(0, 1)) :]
    try:
        expected = json.loads(text)
    except ValueError:
        expected = Malformed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_cursor, "_STEP", step)
        cursor = Cursor(text.encode(), free)
        try:
            found: object = cursor.value(depth=50)
            cursor.finish()
        except Malformed:
            found = Malformed
    assert str(found) == str(expected)  # NaN too


def reader(actions: list[str] | None = None, most: int = 10**9) -> ArmReader:
    """For a bandit of four dimensions with one stored arm."""
    bandit = Bandit(1, "b", BanditConfig(DIM, actions=actions), created=0.0)
    bandit.arms = bandit.arms.with_arms(["x"], np.ones((1, DIM)))
    return ArmReader(bandit, Budget(most).open(), Limits())


numbers = st.sampled_from(
    ["1", "0.5", "-2e3", "1e400", "NaN", "-Infinity", "true", "null", '"1"', "1" * 5000]
) | (st.floats(-9, 9).map(str))
dense = st.lists(numbers, min_size=3, max_size=5).map(lambda row: f"[{','.join(row)}]")
others = st.sampled_from(
    [
        '"x"',
        '"y"',
        '{"a": 1}',
        '{"a": "b"}',
        '{"a": NaN}',
        '{"\\ud800": 1}',
        "3",
        "[]",
        "[[1,1,1,1]]",
        '{"indices": [1], "values": [2]}',
        '{"indices": [1, 1], "values": [2, 3]}',
        '{"indices": [true], "values": [1]}',
        '{"indices": [9], "values": [2]}',
        '{"indices": [1], "values": [1e999]}',
        f'{{"a": 1{"0" * 400}}}',
    ]
)
fields = st.sampled_from(
    ['"top": 1', '"top": "1"', '"top": true', '"top": 1.0', '"top": null', '"other": 1', '"arms": []']
)


@given(st.lists(dense | others, max_size=4), st.lists(fields, max_size=2), st.booleans())
def test_the_fast_way_agrees_with_the_general_one(arms: list[str], rest: list[str], is_first: bool) -> None:
    """What the reader of dense arms takes, the general one takes too, and gives the same."""
    parts = [f'"arms": [{", ".join(arms)}]', *rest]
    body = ("{" + ", ".join(parts if is_first else parts[::-1]) + "}").encode()
    try:
        fast = reader().from_dense(body)
    except Problem as problem:
        with pytest.raises(type(problem)):
            reader().from_json(body)
        return
    if fast is not None:
        slow = reader().from_json(body)
        assert slow.top == fast.top
        assert np.array_equal(slow.offered.matrix, fast.offered.matrix)  # type: ignore[attr-defined]
    else:
        try:
            reader().from_json(body)
        except Problem as problem:
            assert problem.status in (400, 404, 413, 422)  # noqa: PT017


@pytest.mark.parametrize(
    "arm", ['["1",1,1,1]', "[true,1,1,1]", "[null,1,1,1]", '{"indices":[0],"values":["1"]}']
)
@in_loop
async def test_a_text_is_no_number(tmp_path: Path, arm: str) -> None:
    """Neither is true or null; integers are numbers."""
    async with service(tmp_path) as found:
        await found.create()
        url = "/v1/bandits/b/decide"
        assert error_of(await found.http.post(url, content=f'{{"arms":[{arm}]}}', headers=JSON))[0] == 422
        decided = await found.http.post(url, content='{"arms":[[1,0,0,0]],"top":1}', headers=JSON)
        assert decided.status_code == 200
        for reward in ('"1"', "true", "null"):
            body = f'{{"decision":"{decided.json()["decision"]}","reward":{reward}}}'
            assert (
                error_of(await found.http.post("/v1/bandits/b/reward", content=body, headers=JSON))[0] == 422
            )
        for settings in (
            {"dim": "4"},
            {"dim": True},
            {"dim": 4, "exploration": "0.1"},
            {"dim": 4, "slates": 1},
        ):
            assert error_of(await found.http.put("/v1/bandits/c", json=settings))[0] == 422, settings


@pytest.mark.parametrize(
    "body",
    [
        b'{"arms": ' + b"[" * 100_000,
        b'{"arms": ' + b'{"a":' * 100_000,
        b'{"context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"arms": [[' + b"1" * 70_000 + b"]]}",
        b'{"arms": [{"' + b"a" * 70_000 + b'": 1}]}',
        b'{"arms": [[1,2,3,4]]} x' + b" " * 70_000,
        b" " * 70_000,
        b" " * 70_000 + b"\xff",
        b'{"arms": [{"' + b"\\u0041" * 70_000 + b'": 1}]}',
        b'{"top": [' + b"[]," * 100_000 + b"[]]}",
    ],
)
@in_loop
async def test_odd_long_bodies(tmp_path: Path, body: bytes) -> None:
    """Deep, endless or empty: refused in the documented shape."""
    async with service(tmp_path) as found:
        await found.create()
        answer = await found.http.post("/v1/bandits/b/decide", content=body, headers=JSON)
        assert error_of(answer)[0] in (400, 422)
        assert found.engine.budget.taken == 0


def test_objects_of_a_long_value_are_paid_for() -> None:
    """A body that would become objects of twenty times its size is refused before that."""
    body = b'{"arms": [[' + b"[]," * 300_000 + b"[]]]}"
    tracemalloc.start()
    with pytest.raises(TooLarge):
        reader(most=5_000_000).from_json(body)
    assert tracemalloc.get_traced_memory()[1] < 12_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("form", ["sparse", "named"])
def test_what_is_charged_covers_what_is_taken(form: str) -> None:
    """Objects of a few arms at a time: the peak is within the price."""
    columns = np.arange(40).tolist()
    arm = {"indices": columns, "values": columns} if form == "sparse" else {f"f{c}": c for c in columns}
    body = json.dumps({"arms": [arm] * 4000}).encode()
    bandit = Bandit(1, "b", BanditConfig(40), created=0.0)
    for _ in range(2):  # what is imported on the way does not count
        charge = Budget(10**9).open()
        tracemalloc.start()
        asked = ArmReader(bandit, charge, Limits()).from_json(body)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(asked.offered) == 4000
    assert peak < charge.held + 1_000_000


# -- npy --------------------------------------------------------------------------------------------------


def npy_of(header: str, payload: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An npy file with this header."""
    text = header.encode("latin-1", "replace") + b"\n"
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(text))
        + text
        + payload
    )


shapes = st.sampled_from(
    [
        "(2, 4)",
        "(-2, 4)",
        "(2, -4)",
        "(True, 4)",
        "(2, True)",
        "(10**18, 4)",
        "(99999999999999999999, 4)",
        "()",
        "(8,)",
        "(2.0, 4)",
        "None",
        "(2, 4, 1)",
        "[2, 4]",
        "('2', 4)",
        "(0, 4)",
        "(2**70, 2**70)",
    ]
)
dtypes = st.sampled_from(
    [
        "'<f8'",
        "'>f8'",
        "'<f4'",
        "'>f4'",
        "'|O'",
        "'<f2'",
        "'<f16'",
        "'|b1'",
        "'<U4'",
        "'V8'",
        "[('a', '<f8')]",
        "'f8,f8'",
        "'<c16'",
        "'<M8[s]'",
        "'(2,)<f8'",
        "''",
        "3",
        "None",
        "'<f8' * 3",
        "[('a', '<f8', (10**9,))]",
    ]
)


@given(
    shapes,
    dtypes,
    st.sampled_from(["True", "False", "1", "None"]),
    st.binary(max_size=80),
    st.sampled_from([1, 2, 3]),
)
def test_npy_headers(shape: str, dtype: str, order: str, payload: bytes, version: int) -> None:
    """Whatever a header says: a matrix of that shape, or a problem of the client's."""
    header = f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}}}"
    try:
        matrix = read_npy(npy_of(header, payload, (version, 0)), lambda _: None)
    except Problem as problem:
        assert problem.status in (400, 422)  # noqa: PT017
    else:
        assert matrix.dtype == np.float64
        assert matrix.ndim == 2


@given(st.binary(max_size=60))
def test_other_files(content: bytes) -> None:
    """Bytes that only begin as npy do."""
    with pytest.raises(Problem):
        read_npy(b"\x93NUMPY" + content, lambda _: None)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
def test_either_byte_order_is_read_right(dtype: str) -> None:
    """Also in Fortran's order."""
    arms = np.arange(8.0).reshape(2, 4)
    for array in (arms.astype(dtype), np.asfortranarray(arms.astype(dtype))):
        assert np.array_equal(read_npy(npy(array), lambda _: None), arms)


# -- ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [".", "..", "a/../b", "./a", "a\n", "\x7f", "\x85", "\u202e", "\u2066x", "\x00", "", "\ud800"]
)
@in_loop
async def test_what_addresses_cannot_carry_is_not_stored(tmp_path: Path, bad: str) -> None:
    """Ids of arms, names of actions and of bandits: refused, and nothing is changed."""
    async with service(tmp_path) as found:
        await found.create()
        await found.create("acting", actions=["a"])
        escaped = json.dumps(bad)
        for url, body in (
            ("/v1/bandits/b/arms", f'{{"arms": {{{escaped}: [1, 0, 0, 0]}}}}'),
            ("/v1/bandits/new", f'{{"dim": 4, "actions": ["good", {escaped}]}}'),
        ):
            assert error_of(await found.http.put(url, content=body, headers=JSON))[0] in (400, 422)
        body = f'{{"actions": [{escaped}]}}'
        assert error_of(await found.http.post("/v1/bandits/acting/actions", content=body, headers=JSON))[
            0
        ] in (400, 422)
        assert (await found.http.get("/v1/bandits/b/arms")).json()["arms"] == []
        assert (await found.http.get("/v1/bandits/acting/actions")).json()["actions"] == ["a"]
        with pytest.raises(ValueError, match=r"name|character|pair"):
            bandit_name(bad)


@in_loop
async def test_dots_reach_no_bandit(tmp_path: Path) -> None:
    """An arm ".." is never there, and the bandit's own address with a slash at the end is nobody's."""
    async with service(tmp_path) as found:
        await found.create()
        for url in ("/v1/bandits/b/", "/v1/bandits/b/arms/", "/v1/bandits/b/arms/%2E%2E", "/v1/bandits/"):
            assert error_of(await found.http.delete(url))[0] == 404
        assert error_of(await found.http.post("/v1/bandits/b/arms/remove", json={"arms": [".."]}))[0] == 404
        assert (await found.http.get("/v1/bandits/b")).status_code == 200


@in_loop
async def test_ids_in_the_body(tmp_path: Path) -> None:
    """Several at once, of any text; if one is not there, none goes."""
    async with service(tmp_path) as found:
        await found.create()
        arms = {name: [1.0] * DIM for name in ("a", "b/c", "remove", "?#%")}
        await found.http.put("/v1/bandits/b/arms", json={"arms": arms})
        url = "/v1/bandits/b/arms/remove"
        assert error_of(await found.http.post(url, json={"arms": ["a", "absent"]}))[0] == 404
        assert error_of(await found.http.post(url, json={"arms": []}))[0] == 422
        assert (await found.http.get("/v1/bandits/b/arms")).json()["count"] == 4
        gone = await found.http.post(url, json={"arms": ["b/c", "?#%", "b/c"]})
        assert gone.json() == {"status": "deleted"}
        assert (await found.http.delete("/v1/bandits/b/arms/remove")).status_code == 200
        assert (await found.http.get("/v1/bandits/b/arms")).json()["arms"] == ["a"]
        await found.create("acting", actions=["x", "y/z", "retire"])
        url = "/v1/bandits/acting/actions/retire"
        assert error_of(await found.http.post(url, json={"actions": ["x", "absent"]}))[0] == 404
        retired = await found.http.post(url, json={"actions": ["y/z", "retire"]})
        assert retired.json() == {"actions": ["x"], "retired": ["y/z", "retire"]}
        assert (
            error_of(await found.http.post("/v1/bandits/b/actions/retire", json={"actions": ["x"]}))[0] == 422
        )


# -- memory and time ----------------------------------------------------------------------------------------


@in_loop
async def test_a_long_ranking_is_paid_for(tmp_path: Path) -> None:
    """A few bytes that ask for millions of ranks: 413 with the limit, at once; what fits is done."""
    async with service(tmp_path, limits=Limits(request_bytes=25_000_000)) as found:
        await found.create(**PLAIN)
        arms = np.random.default_rng(0).standard_normal((20_000, DIM)).round(3).tolist()
        put = await found.http.put(
            "/v1/bandits/b/arms", json={"arms": {str(i): a for i, a in enumerate(arms)}}
        )
        assert put.json() == {"count": 20_000}
        batch = {"decisions": [{"top": 20_000}] * 20}
        refused = await found.http.post("/v1/bandits/b/decide/batch", json=batch)
        assert error_of(refused)[0] == 413
        assert "all requests together have 25,000,000" in error_of(refused)[1]
        assert (await found.stats())["decisions"] == 0
        charge, bandit = found.engine.budget.open(), found.engine.bandit("b")
        charge.add(prices.ranking(5000, 20_000, bandit.longest_id))
        offered = bandit.arms.choose_from(None)
        tracemalloc.start()
        decided = await found.engine.decisions.decide(bandit, offered, top=5000)
        body = decision_answer(bandit, decided)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [ranked["position"] for ranked in json.loads(body)["top"]] == list(range(5000))
        assert peak < charge.held + 1_000_000
        charge.release()
        assert found.engine.budget.taken == 0


class Watched(Pace):
    """Writes down how much is computed between two pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = [0.0]
        self._last = time.thread_time()

    def __call__(self) -> None:
        """One more."""
        self.pieces.append(time.thread_time() - self._last)
        super().__call__()
        self._last = time.thread_time()


@pytest.mark.parametrize("form", ["sparse", "named", "dense", "stored ids", "put"])
def test_a_long_body_is_read_in_small_pieces(form: str) -> None:
    """So that others get their turn between them: none is a third of the whole."""
    count = 20_000
    random = np.random.default_rng(0)
    bandit = Bandit(1, "b", BanditConfig(50), created=0.0)
    columns = np.column_stack([random.integers(0, 25, count), random.integers(25, 50, count)])
    if form == "sparse":
        arms: list[Any] = [{"indices": c, "values": [1, 0.5]} for c in columns.tolist()]
    elif form == "dense":
        arms = random.random((count // 4, 50)).round(3).tolist()
    elif form == "stored ids":
        bandit.arms = bandit.arms.with_arms([str(i) for i in range(count)], random.random((count, 50)))
        bandit.arms.choose_from(None)
        arms = [str(i) for i in range(count)]
    else:
        arms = [{f"f{a}": 1, "g": str(b)} for a, b in columns.tolist()]
    said: Any = {str(i): arm for i, arm in enumerate(arms)} if form == "put" else arms
    body = json.dumps({"arms": said}).encode()
    gc.disable()  # a collection of what other tests left would count as one long piece
    try:
        for _ in range(2):  # the first time something may have to be imported
            pace = Watched()
            made = ArmReader(bandit, Budget(10**9).open(), Limits(), pace)
            found = len(made.stored(body)[0] if form == "put" else made.from_json(body).offered)
    finally:
        gc.enable()
    assert found == len(arms)
    assert len(pace.pieces) > 20
    assert max(pace.pieces) < sum(pace.pieces) / 3, [round(p, 3) for p in sorted(pace.pieces)[-5:]]


def test_stored_ids_that_are_missing_are_named() -> None:
    """Among others, and alone."""
    for body in (b'{"arms": ["x", "z"]}', b'{"arms": [[1,0,0,0], "z"]}'):
        with pytest.raises(NotFound, match="'z'"):
            reader().from_json(body)


@in_loop
async def test_two_puts_at_once_respect_the_limit(tmp_path: Path) -> None:
    """Each would fit alone; together they do not."""
    async with service(tmp_path, limits=Limits(arms=5)) as found:
        await found.create()
        puts = [
            found.http.put("/v1/bandits/b/arms", json={"arms": {f"{who}{i}": [1.0] * DIM for i in range(3)}})
            for who in "ab"
        ]
        assert sorted(put.status_code for put in await asyncio.gather(*puts)) == [200, 413]
        assert (await found.http.get("/v1/bandits/b/arms")).json()["count"] == 3
