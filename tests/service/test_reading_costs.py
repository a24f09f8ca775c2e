"""What reading a body costs: nothing long on the event loop, no more than it grows by, memory paid for."""

import gc
import json
import threading
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sketchbandit_service.api import decisions, json_cursor, prices
from sketchbandit_service.api.arm_reader import ArmReader
from sketchbandit_service.api.decisions import batch_answer, read_items
from sketchbandit_service.api.json_cursor import Cursor
from sketchbandit_service.api.npy import read_npy
from sketchbandit_service.api.request_models import DecideBatchRequest, KeyedDecideRequest, RewardRequest
from sketchbandit_service.api.request_reader import digest, validated
from sketchbandit_service.api.rows import Rows
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.budget import Budget
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.problems import Invalid, Malformed, Problem
from sketchbandit_service.settings import Limits
from tests.service.harness import DIM, Service, error_of, in_loop, service
from tests.service.test_api import npy
from tests.service.test_reading import JSON, free, npy_of

DENSE = [1.0, 0.5, 0.0, 2.0]
FORMS: dict[str, Any] = {
    "dense": DENSE,
    "sparse": {"indices": [3, 0], "values": [2, 1]},
    "named": {"colour": "red", "price": 2},
    "empty": {},
}


def bandit(dim: int = DIM, *, is_sparse: bool = True, **settings: Any) -> Bandit:
    """One with the stored arms x and y."""
    made = Bandit(1, "b", BanditConfig(dim, **settings), created=0.0)
    rows = np.zeros((2, dim))
    rows[:, 0] = [7.0, 8.0]
    made.arms = made.arms.with_arms(["x", "y"], sparse.csr_array(rows) if is_sparse else rows)
    return made


def read(body: bytes, of: Bandit | None = None, most: int = 10**9) -> tuple[Any, int]:
    """What is offered, and what it was charged."""
    charge = Budget(most).open()
    return ArmReader(of or bandit(), charge, Limits()).from_json(body).offered, charge.held


# -- forms in any order -----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([*FORMS]), min_size=1, max_size=8), st.integers(0, 8), st.booleans())
def test_forms_may_take_turns(forms: list[str], place: int, is_sparse: bool) -> None:
    """Each arm is what it is alone, in its place, stored ones too."""
    arms = [FORMS[form] for form in forms]
    expected = [read(json.dumps({"arms": [arm]}).encode())[0].matrix for arm in arms]
    arms.insert(place, "y")
    expected.insert(place, np.array([[8.0, 0.0, 0.0, 0.0]]))
    found, _ = read(json.dumps({"arms": arms}).encode(), bandit(is_sparse=is_sparse))
    as_rows = [one.toarray() if sparse.issparse(one) else one for one in expected]
    whole = found.matrix.toarray() if sparse.issparse(found.matrix) else found.matrix
    np.testing.assert_array_equal(whole, np.concatenate(as_rows))
    assert found.ids == ["y" if arm == "y" else None for arm in arms]


@pytest.mark.parametrize("unit", ["[1],{}", '{"indices":[0],"values":[1]},{"a":1},[1]', "[1],[0]"])
def test_arms_that_take_turns_are_paid_for(unit: str) -> None:
    """What they take at the peak is within the charge, and few matrices are made."""
    body = ('{"arms":[' + ",".join([unit] * (20_000 // (1 + unit.count("},")))) + "]}").encode()
    for _ in range(2):  # what is imported on the way does not count
        tracemalloc.start()
        found, held = read(body, bandit(1))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(found) > 15_000
    assert peak < held + 1_000_000


def test_items_of_a_batch_reserve_what_they_need() -> None:
    """Not as much as the rest of the text could tell of."""
    item = json.dumps({"arms": [[0.5] * 10] * 20})
    body = f'{{"decisions":[{",".join([item] * 300)}]}}'.encode()
    of, charge = bandit(10), Budget(10**9).open()
    reader = ArmReader(of, charge, Limits())
    tracemalloc.start()
    items = read_items(
        reader.cursor(body), DecideBatchRequest, lambda at: reader.decision(at, KeyedDecideRequest), 1000
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(one.offered) for one in items if not isinstance(one, Problem)] == [20] * 300
    assert peak < 300 * 40_000


# -- stored arms ------------------------------------------------------------------------------------------


def test_stored_arms_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is made alone, only to know its price."""
    monkeypatch.setattr(ArmStore, "row", None)
    assert read(b'{"arms":["y","x"]}')[0].ids == ["y", "x"]
    assert read(b'{"arms":["y",[1,2,3,4]]}')[0].ids == ["y", None]


def test_an_id_that_is_there_twice_is_refused_at_once() -> None:
    """The rest is not looked at."""
    budget = Budget(10**9)
    for body in (
        b'{"arms":[' + b'"x",' * 50_000 + b'"x"]}',
        b'{"arms":["x",[1,2,3,4],' + b'"x",' * 50_000 + b'"x"]}',
    ):
        charge = budget.open()
        with pytest.raises(Invalid, match="'x' is given twice"):
            ArmReader(bandit(), charge, Limits()).from_json(body)
        assert charge.held < len(body) + 1000
    with pytest.raises(Invalid, match="'a' is given twice"):
        ArmReader(bandit(), budget.open(), Limits()).stored(b'{"arms":{"a":[1,2,3,4],"a":[1,2,3,4],0')


def test_the_price_of_stored_arms() -> None:
    """Sparse ones as if each were the longest, and never more than all of them."""
    rows = sparse.csr_array(np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    assert prices.chosen(rows, 1) == 8 + 36
    assert prices.chosen(rows, 3) == 24 + 48
    assert prices.chosen(np.ones((3, 5)), 2) == 80


# -- the cursor -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit", ["[[],{}]", '["]"]', '"\\n"', '{"a":{}}', "1,[1,2]", "null", '{"\\n":"\\n,"}', '["\\n\\n",[]]']
)
def test_reading_grows_with_the_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that are copied and parsed are at most so many times those of the text."""
    seen = [0]

    def counted(work: Any) -> Any:
        def count(text: str, *args: Any) -> Any:
            seen[0] += len(text)
            return work(text, *args)

        return count

    for name in ("_decode", "scanstring"):
        monkeypatch.setattr(json_cursor, name, counted(getattr(json_cursor, name)))
    text = f"[{','.join([unit] * (100_000 // len(unit)))}]"
    assert Cursor(text.encode(), free).value() == json.loads(text)
    assert seen[0] < 50 * len(text)
    seen[0] = 0
    Cursor(text.encode(), free).skip()
    assert seen[0] < 50 * len(text)


def test_lists_in_lists_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request has so many; a thread is not held by them."""
    monkeypatch.setattr(json_cursor, "_NESTED", 100)
    text = f"[{','.join(['[[],{}]'] * 20_000)}]".encode()
    for use in (Cursor.value, Cursor.skip):
        with pytest.raises(Invalid, match="more than 100 lists and objects inside others"):
            use(Cursor(text, free))


# -- where it is read -------------------------------------------------------------------------------------


def threads_of(found: Service, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is given to threads from now on."""
    given, run = list[Any](), found.engine.threads.run

    async def running(work: Any, *args: Any) -> Any:
        given.append(work)
        return await run(work, *args)

    monkeypatch.setattr(found.engine.threads, "run", running)
    return given


def arms_of(unit: str, size: int) -> str:
    """A request of so many bytes."""
    return f'{{"arms":[{",".join([unit] * (size // (len(unit) + 1)))}]}}'


FIELDS = ",".join(f'"f{i}":1' for i in range(400))
IN_THREADS = [
    ("POST", "decide", arms_of("[1,2,3,4],{}", 3000)),
    ("POST", "decide", arms_of('"x"', 3000)),
    ("POST", "decide", arms_of("{}", 3000)),
    ("POST", "decide", arms_of("[[],{}]", 3000)),
    ("POST", "decide", arms_of("[1,2,3,4]", 20_000)),
    ("POST", "decide", f"{{{FIELDS}}}"),
    ("POST", "decide", f'{{"context":[{",".join(["[]"] * 2000)}]}}'),
    ("POST", "decide/batch", '{"decisions":[{},{},{}]}'),
    ("POST", "reward", f"{{{FIELDS}}}"),
    ("POST", "reward/batch", '{"rewards":[{},{},{}]}'),
    ("PUT", "arms", f'{{"arms":{{{FIELDS}}}}}'),
    ("POST", "actions", f"{{{FIELDS}}}"),
    ("POST", "arms/remove", f"{{{FIELDS}}}"),
    ("PUT", "", f'{{"dim":4,"explore":[{",".join(["[]"] * 1000)}]}}'),
]


@pytest.mark.parametrize(("method", "path", "body"), IN_THREADS)
@in_loop
async def test_what_may_take_long_is_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: str
) -> None:
    """A few kilobytes of anything but numbers, and every batch."""
    async with service(tmp_path) as found:
        await found.create()
        given = threads_of(found, monkeypatch)
        url = f"/v1/bandits/b/{path}".rstrip("/")
        await found.http.request(method, url, content=body, headers=JSON)
        assert len(given) == 1


@in_loop
async def test_ordinary_requests_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers up to 64 KiB, and small things of any kind."""
    async with service(tmp_path) as found:
        await found.create()
        given = threads_of(found, monkeypatch)
        arms = np.random.default_rng(0).standard_normal((600, DIM))
        body = json.dumps({"arms": arms.tolist(), "top": 1}).encode()
        assert 40_000 < len(body) < 65_000
        for content in (body, json.dumps({"arms": [{"a": 1}] * 20}).encode()):
            answer = await found.http.post("/v1/bandits/b/decide", content=content, headers=JSON)
            assert answer.status_code == 200
        kind = {"content-type": "application/x-npy"}
        answer = await found.http.post("/v1/bandits/b/decide", content=npy(arms), headers=kind)
        assert (await found.reward(answer.json()["decision"], 1.0)).status_code == 200
        assert given == []


@in_loop
async def test_a_long_body_is_hashed_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key; and the name of a request is what it was."""
    threads = list[int]()

    def hashed(parts: Any) -> str:
        threads.append(threading.get_ident())
        return digest(parts)

    monkeypatch.setattr(decisions, "digest", hashed)
    async with service(tmp_path) as found:
        await found.create()
        body = json.dumps({"arms": [[0.5] * DIM] * 10_000}).encode()
        for _ in range(2):
            headers = {**JSON, "idempotency-key": "k"}
            answer = await found.http.post("/v1/bandits/b/decide", content=body, headers=headers)
            assert answer.status_code == 200
        assert threading.get_ident() not in threads
        assert len(threads) == 2
    assert digest((b"one ", b"two")) == digest([b"one two"])


@in_loop
async def test_a_large_answer_is_put_together_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one at once."""
    async with service(tmp_path) as found:
        given = threads_of(found, monkeypatch)
        assert await batch_answer(found.engine, "rewards", [b"{}"]) == b'{"rewards":[{}]}'
        assert given == []
        large = b'"' + b"a" * 600_000 + b'"'
        answer = await batch_answer(found.engine, "decisions", [large, large])
        assert json.loads(answer) == {"decisions": ["a" * 600_000] * 2}
        assert len(given) == 1


# -- refusals ---------------------------------------------------------------------------------------------


@in_loop
async def test_many_wrong_fields_are_refused_by_the_first(tmp_path: Path) -> None:
    """However many there are; what reading them takes is charged before."""
    fields = ",".join(f'"f{i}":1' for i in range(80_000))
    async with service(tmp_path, limits=Limits(request_bytes=30_000_000)) as found:
        await found.create()
        url = "/v1/bandits/b/reward"
        for _ in range(2):
            refused = await found.http.post(url, content=f"{{{fields}}}", headers=JSON)
            assert error_of(refused)[0] == 422
            assert "f0: there is no such field; the fields are decision, reward" in error_of(refused)[1]
        batch = await found.http.post(
            "/v1/bandits/b/reward/batch", content=f'{{"rewards":[{{{fields}}}]}}', headers=JSON
        )
        assert "f0: there is no such field" in batch.json()["rewards"][0]["error"]["message"]
        assert found.engine.budget.taken == 0
    async with service(tmp_path / "small", limits=Limits(request_bytes=15_000_000)) as found:
        await found.create()
        assert error_of(await found.http.post(url, content=f"{{{fields}}}", headers=JSON))[0] == 413


def test_wrong_fields_inside_are_limited() -> None:
    """Also where they stand in one of several rewards: there is one error."""
    shown = {"reward": 1.0, **{f"f{i}": 1 for i in range(1000)}}
    with pytest.raises(Invalid, match=r"rewards\.0: .*more than 200 values"):
        validated(RewardRequest, {"decision": "d", "rewards": [shown]})


@pytest.mark.parametrize("settings", [{"explore": [[]] * 1000}, {"parameters": {"ridge": [[[]] * 1000]}}])
@in_loop
async def test_settings_are_few(tmp_path: Path, settings: dict[str, Any]) -> None:
    """What has many values is refused before anything is made of them."""
    async with service(tmp_path) as found:
        answer = await found.http.put("/v1/bandits/z", json={"dim": 4, **settings})
        assert error_of(answer)[0] == 422
        assert "more than 200 values" in error_of(answer)[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", ["(2L, 4)", "(2 L, 4)", "(2, 0x4L)", "('\\d', 4)", "(2or 3, 4)"])
def test_headers_of_old_are_refused(shape: str) -> None:
    """Those of Python 2, and others that Python warns of: nothing is written to the log."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"
    with pytest.raises(Malformed, match="Python 3"):
        read_npy(npy_of(header, bytes(64)), lambda _: None)


def test_arms_that_were_read_go_at_once() -> None:
    """Many large requests can come before the garbage collector does."""
    gc.disable()
    try:
        rows = Rows(3, lambda _: None, "shop")
        for place, arm in enumerate(([1.0, 2.0, 3.0], {"indices": [1], "values": [2.0]}, {"a": 1})):
            rows.add(place, arm, "an arm", "arms")
        assert rows.matrix().shape == (3, 3)
        left = weakref.ref(rows)
        del rows
        assert left() is None
    finally:
        gc.enable()
