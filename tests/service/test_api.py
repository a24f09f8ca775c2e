"""API v1: bandits, arms in all their forms, decisions, rewards, batches, bad input."""

import asyncio
import base64
import hashlib
import html
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher

import sketchbandit as sb
from sketchbandit_service import tokens
from sketchbandit_service.api.app import Api
from sketchbandit_service.api.request_models import (
    ActionsRequest,
    DenseDecideRequest,
    RequestModel,
    RewardRequest,
)
from sketchbandit_service.recovery import Quarantined
from sketchbandit_service.settings import Limits
from tests.service.harness import DIM, PLAIN, error_of, in_loop, service


def npy(array: Any) -> bytes:
    """The bytes of an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@in_loop
async def test_create_list_show_delete(tmp_path: Path) -> None:
    """PUT is idempotent, other settings conflict, and DELETE forgets."""
    async with service(tmp_path) as found:
        first = await found.create()
        assert first.status_code == 201
        assert first.json()["policy"] == "adaptive"
        assert (await found.create()).status_code == 200
        other = await found.http.put("/v1/bandits/b", json={"dim": DIM + 1})
        assert error_of(other)[0] == 409
        assert "dim is 4, not 5" in error_of(other)[1]
        listed = (await found.http.get("/v1/bandits")).json()["bandits"]
        assert listed == [first.json()] == [(await found.http.get("/v1/bandits/b")).json()]
        assert (await found.http.delete("/v1/bandits/b")).status_code == 200
        assert error_of(await found.http.get("/v1/bandits/b"))[0] == 404
        assert error_of(await found.http.delete("/v1/bandits/b"))[0] == 404
        assert (await found.http.get("/v1/bandits")).json() == {"bandits": [], "quarantined": []}


@pytest.mark.parametrize("policy", ["adaptive", "dbslinucb", "oful", "soful", "cbscfd", "cbrap"])
@in_loop
async def test_decisions_are_those_of_the_policy(tmp_path: Path, policy: str) -> None:
    """The service chooses, scores and learns as the library does, whichever the policy."""
    parameters = {} if policy == "oful" else {"size": 5}
    alone = getattr(sb, policy)(20, beta=0.3, baseline=True, **parameters)
    random = np.random.default_rng(1)
    async with service(tmp_path) as found:
        await found.http.put(
            "/v1/bandits/b", json={"dim": 20, "policy": policy, "parameters": {"beta": 0.3, **parameters}}
        )
        for _ in range(60):
            arms = random.standard_normal((6, 20))
            arms /= np.linalg.norm(arms, axis=1, keepdims=True)
            answer = (await found.decide(arms.tolist())).json()
            choice = alone.choose(arms)
            index = choice.index
            assert answer["index"] == index
            assert (answer["score"], answer["mean"]) == (choice.score, choice.mean)
            assert answer["propensity"] == 1.0
            reward = float(arms[index, 0])
            assert (await found.reward(answer["decision"], reward)).json()["status"] == "learned"
            with suppress(sb.SketchTooSmallWarning):
                alone.update(arms[index], reward)
        stats = await found.stats()
        assert stats["rounds"] == 60
        assert stats["health"] == alone.health().sentence
        assert stats["policy_bytes"] == alone.nbytes


@in_loop
async def test_arms_sparse_named_and_stored(tmp_path: Path) -> None:
    """All forms of the same arms give the same decision, and mix in one request."""
    dim = 32
    named = [{"user=7": 1.0, "price": 0.3}, {"user": "8", "price": 0.9}, {"price": -1.0}]
    hashed = FeatureHasher(dim).transform(named).toarray()
    async with service(tmp_path) as found:
        await found.http.put("/v1/bandits/b", json={"dim": dim, **PLAIN})
        by_name = (await found.decide(named)).json()
        dense = (await found.decide(hashed.tolist())).json()
        rows = [sparse.csr_array(row[np.newaxis]) for row in hashed]
        thin = (
            await found.decide(
                [{"indices": row.indices.tolist(), "values": row.data.tolist()} for row in rows]
            )
        ).json()
        assert by_name["index"] == dense["index"] == thin["index"]
        assert by_name["score"] == pytest.approx(dense["score"])
        put = await found.http.put(
            "/v1/bandits/b/arms", json={"arms": {"x": named[0], "y": hashed[1].tolist(), "<z>": named[2]}}
        )
        assert put.json() == {"count": 3}
        assert (await found.http.get("/v1/bandits/b/arms")).json()["arms"] == ["x", "y", "<z>"]
        stored = (await found.decide(["<z>", "y", "x"])).json()
        assert stored["arm"] == ["x", "y", "<z>"][dense["index"]]
        assert stored["index"] == 2 - dense["index"]
        everything = await found.http.post("/v1/bandits/b/decide", json={"top": 3})
        assert everything.json()["top"][0]["arm"] == stored["arm"]
        mixed = (await found.decide([named[0], "y", hashed[2].tolist()])).json()
        assert mixed["index"] == dense["index"]
        for answer in (by_name, dense, thin, stored, mixed):
            assert (await found.reward(answer["decision"], 1.0)).status_code == 200
        assert (await found.http.delete("/v1/bandits/b/arms/y")).status_code == 200
        assert error_of(await found.decide(["y"])) == (
            404,
            "there is no stored arm 'y'; PUT it to /arms first",
        )


@in_loop
async def test_top_ranks_as_the_policy_does(tmp_path: Path) -> None:
    """The first of the top is the arm chosen; more than there are is refused."""
    random = np.random.default_rng(2)
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        await found.play(20)
        arms = random.standard_normal((7, DIM))
        answer = (await found.decide(arms.tolist(), top=4)).json()
        policy = found.engine.bandit("b").policy
        assert [ranked["index"] for ranked in answer["top"]] == policy.top(arms, 4).tolist()
        assert answer["index"] == answer["top"][0]["index"]
        assert error_of(await found.decide(arms.tolist(), top=8))[0] == 422


@in_loop
async def test_npy_arms_are_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are compiled anew for arrays that are read-only, while the first request waits."""
    seen: list[bool] = []
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        policy = found.engine.bandit("b").policy
        rank = policy.rank

        def look(_: Any, arms: Any, *more: Any, **options: Any) -> Any:
            seen.append(arms.flags.writeable)
            return rank(arms, *more, **options)

        monkeypatch.setattr(type(policy), "rank", look)
        headers = {"content-type": "application/x-npy"}
        await found.http.post("/v1/bandits/b/decide", content=npy(np.eye(DIM)), headers=headers)
    assert seen == [True]


@in_loop
async def test_npy_bodies(tmp_path: Path) -> None:
    """float32 and float64, either order, with top in the query; anything else in a file is refused."""
    random = np.random.default_rng(3)
    headers = {"content-type": "application/x-npy"}
    url = "/v1/bandits/b/decide"
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        await found.play(10)
        arms = random.standard_normal((6, DIM))
        expected = (await found.decide(arms.tolist())).json()
        for array in (arms, np.asfortranarray(arms)):
            answer = await found.http.post(url, content=npy(array), headers=headers)
            assert answer.json()["index"] == expected["index"]
            assert answer.json()["score"] == expected["score"]
        single = await found.http.post(f"{url}?top=2", content=npy(arms.astype(np.float32)), headers=headers)
        assert len(single.json()["top"]) == 2
        for body, status in (
            (npy(arms.astype(np.int64)), 422),
            (npy(np.ones((2, DIM + 1))), 422),
            (npy(np.ones(DIM)), 422),
            (npy(np.ones((0, DIM))), 422),
            (npy(np.full((2, DIM), np.nan)), 422),
            (npy(np.array([{"a": 1}], dtype=object)), 422),
            (npy(arms)[:-3], 400),
            (npy(arms) + b"x", 400),
            (b"\x93NUMPY\x09\x00", 400),
            (b"not a file", 400),
            (b"", 400),
        ):
            refused = await found.http.post(url, content=body, headers=headers)
            assert error_of(refused)[0] == status, (body[:40], refused.text)
        for top in ("x", "0", "-1", "1.5", "0" * 19 + "1" + "9" * 5000, ""):
            refused = await found.http.post(f"{url}?top={top}", content=npy(arms), headers=headers)
            assert error_of(refused)[0] == 422


@in_loop
async def test_rewards_once(tmp_path: Path) -> None:
    """The same again 200, another 409, unknown 404, of another bandit 404; learned from once."""
    async with service(tmp_path) as found:
        await found.create()
        await found.create("other")
        decision = (await found.decide()).json()["decision"]
        assert (await found.reward(decision, 0.5)).json() == {"decision": decision, "status": "learned"}
        assert (await found.reward(decision, 0.5)).json() == {"decision": decision, "status": "known"}
        assert error_of(await found.reward(decision, 0.6))[0] == 409
        for unknown in ("ffff-000000000000", decision[:-1] + "g", "nonsense", "", "-", f"{2**70:x}-a"):
            assert error_of(await found.reward(unknown, 0.5))[0] == 404
        assert error_of(await found.reward(decision, 0.5, "other"))[0] == 404
        assert (await found.stats())["rounds"] == 1


@in_loop
async def test_batches(tmp_path: Path) -> None:
    """Each item succeeds or fails by itself, in order."""
    arms = np.eye(DIM).tolist()
    async with service(tmp_path) as found:
        await found.create()
        answer = await found.http.post(
            "/v1/bandits/b/decide/batch",
            json={"decisions": [{"arms": arms}, {"arms": []}, {"arms": arms, "top": 2, "key": "k"}]},
        )
        first, bad, second = answer.json()["decisions"]
        assert bad["status_code"] == 422
        worse = await found.http.post(
            "/v1/bandits/b/decide/batch",
            json={"decisions": [{"arms": [[1, 0, 0, None]]}, 7, {"arms": arms}, {"amrs": arms}]},
        )
        items = worse.json()["decisions"]
        assert [item.get("status_code", 200) for item in items] == [422, 422, 200, 422]
        assert "the fields are arms, context, interaction, actions, top, key" in items[3]["error"]["message"]
        assert len(second["top"]) == 2
        again = await found.http.post(
            "/v1/bandits/b/decide/batch", json={"decisions": [{"arms": arms, "top": 2, "key": "k"}]}
        )
        assert again.json()["decisions"][0] == second
        rewards = [(first["decision"], 1.0), ("no", 1.0), (second["decision"], 0.0), (first["decision"], 1.0)]
        answer = await found.http.post(
            "/v1/bandits/b/reward/batch",
            json={"rewards": [{"decision": decision, "reward": reward} for decision, reward in rewards]},
        )
        learned, unknown, also, known = answer.json()["rewards"]
        assert (learned["status"], also["status"], known["status"]) == ("learned", "learned", "known")
        assert unknown["status_code"] == 404
        for path in ("decide", "reward"):
            key = "decisions" if path == "decide" else "rewards"
            assert error_of(await found.http.post(f"/v1/bandits/b/{path}/batch", json={key: []}))[0] == 422


@in_loop
async def test_idempotency_keys(tmp_path: Path) -> None:
    """Again with the same key, the same decision; with another request, 409; at the same time too."""
    arms = np.eye(DIM).tolist()
    async with service(tmp_path) as found:
        await found.create()

        async def ask(key: str, wanted: Any = arms) -> Any:
            return await found.http.post(
                "/v1/bandits/b/decide", json={"arms": wanted, "top": 2}, headers={"idempotency-key": key}
            )

        first, second = await asyncio.gather(ask("a"), ask("a"))
        assert first.json() == second.json() == (await ask("a")).json()
        assert len(first.json()["top"]) == 2
        assert (await ask("b")).json()["decision"] != first.json()["decision"]
        assert error_of(await ask("a", arms[:3]))[0] == 409
        bandit = found.engine.bandit("b")
        assert set(bandit.keys) == {"a", "b"}
        third = (await ask("c")).json()["decision"]
        await found.reward(third, 1.0)
        assert set(bandit.keys) == {"a", "b"}  # remembered for as long as the decision is open
        assert error_of(await ask("with space"))[0] == 422
        assert (await found.stats())["open"] == 2
        headers = {"content-type": "application/x-npy", "idempotency-key": "npy"}
        asked = [
            await found.http.post(f"/v1/bandits/b/decide{query}", content=npy(np.eye(DIM)), headers=headers)
            for query in ("", "?top=2", "")
        ]
        assert [answer.status_code for answer in asked] == [200, 409, 200]


@in_loop
async def test_a_key_is_answered_even_when_all_is_full(tmp_path: Path) -> None:
    """The decision is there: whether another one could be made does not matter."""
    async with service(tmp_path) as found:
        await found.create(max_open=1)
        headers = {"idempotency-key": "k"}
        body = {"arms": np.eye(DIM).tolist()}
        first, again = [
            await found.http.post("/v1/bandits/b/decide", json=body, headers=headers) for _ in range(2)
        ]
        assert first.json() == again.json()
        other = await found.http.post("/v1/bandits/b/decide", json=body, headers={"idempotency-key": "l"})
        assert error_of(other)[0] == 429


@in_loop
async def test_created_twice_at_once(tmp_path: Path) -> None:
    """One is new; the same at the same time is found, another is a conflict; nobody else's request fails."""
    async with service(tmp_path) as found:
        await found.create("bystander")
        dims = (4, 4, 5, 4)
        puts = [found.http.put("/v1/bandits/n", json={"dim": dim}) for dim in dims]
        *answers, bystander = await asyncio.gather(*puts, found.decide(name="bystander"))
        codes = [answer.status_code for answer in answers]
        first = codes.index(201)  # whichever comes first
        wanted = [200 if dim == dims[first] else 409 for dim in dims]
        assert codes == [*wanted[:first], 201, *wanted[first + 1 :]]
        assert bystander.status_code == 200


@in_loop
async def test_many_stored_arms(tmp_path: Path) -> None:
    """Stored with one request, replaced, and chosen from, in their order."""
    random = np.random.default_rng(0)
    arms = {f"arm-{i}": row.tolist() for i, row in enumerate(random.standard_normal((3000, DIM)))}
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).json() == {"count": 3000}
        assert (await found.http.put("/v1/bandits/b/arms", json={"arms": {"arm-7": [9.0] * DIM}})).json() == {
            "count": 3000
        }
        assert (await found.http.post("/v1/bandits/b/decide", json={})).json()["arm"] == "arm-7"
    async with service(tmp_path) as found:
        assert sorted(found.engine.bandit("b").arms.ids()) == sorted(arms)
        assert (await found.http.post("/v1/bandits/b/decide", json={})).json()["arm"] == "arm-7"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "JSON"),
        (b"", 400, "JSON"),
        (b"\xff\xfe", 400, "JSON"),
        (b"[]", 422, "object"),
        (b'{"arms": [[1, 2, 3, NaN]]}', 422, "finite"),
        (b'{"arms": [[1, 2, 3, 1e999]]}', 422, "finite"),
        (b'{"arms": [[1, 2, 3]]}', 422, "arm 0 has 3 features, but the dim of bandit 'b' is 4"),
        (b'{"arms": [[1, 2, 3, 4], [1]]}', 422, "arm 1 has 1 features"),
        (b'{"arms": [[1, 2, 3, 1e200]]}', 422, "arm 0"),
        (b'{"arms": [[1, 2, 3, 1e21]]}', 422, "the limit is 1e\\+20"),
        (b'{"arms": []}', 422, "empty"),
        (b'{"arms": [[1, 2, 3, "x"]]}', 422, "^arms.0.3: Input should be a valid number"),
        (b'{"arms": [null]}', 422, "arm 0 must be a list of numbers, {indices, values}, named"),
        (b'{"arms": [{"f": [1]}]}', 422, "arm 0: the feature 'f' must be a finite number or a string"),
        (
            b'{"arms": [[1, 2, 3, 4]], "tpo": 2}',
            422,
            "tpo: there is no such field; the fields are arms, context, interaction, actions, top",
        ),
        (b'{"arms": [[1, 2, 3, 4]], "top": 0}', 422, "top"),
        (b'{"arms": [{"indices": [4], "values": [1]}]}', 422, "outside 0..3"),
        (b'{"arms": [{"indices": [1, 1], "values": [1, 2]}]}', 422, "twice"),
        (b'{"arms": [{"indices": [1], "values": [1, 2]}]}', 422, "1 indices and 2 values"),
        (b'{"arms": ["absent"]}', 404, "no stored arm 'absent'"),
        (b"{}", 422, "no stored arms"),
    ],
)
@in_loop
async def test_bad_decisions(tmp_path: Path, body: bytes, status: int, says: str) -> None:
    """Each refused with its reason, and nothing is changed."""
    async with service(tmp_path) as found:
        await found.create()
        headers = {"content-type": "application/json"}
        answer = await found.http.post("/v1/bandits/b/decide", content=body, headers=headers)
        assert answer.status_code == status
        with pytest.raises(AssertionError, match=says):
            raise AssertionError(error_of(answer)[1])
        assert (await found.stats())["decisions"] == 0


@in_loop
async def test_bad_rewards_and_bandits(tmp_path: Path) -> None:
    """NaN, too large, not a number; unknown bandits; settings that cannot be."""
    headers = {"content-type": "application/json"}
    async with service(tmp_path) as found:
        await found.create()
        decision = (await found.decide()).json()["decision"]
        for reward, status in (("NaN", 422), ("1e999", 422), ("1e10", 422), ('"x"', 422), ("null", 422)):
            body = f'{{"decision": "{decision}", "reward": {reward}}}'.encode()
            answer = await found.http.post("/v1/bandits/b/reward", content=body, headers=headers)
            assert error_of(answer)[0] == status, reward
        assert (await found.stats())["open"] == 1
        assert error_of(await found.decide(name="absent"))[0] == 404
        assert error_of(await found.reward(decision, 1.0, "absent"))[0] == 404
        for settings, status in (
            ({}, 422),
            ({"dim": 0}, 422),
            ({"dim": 2_000_000}, 413),
            ({"dim": 4, "policy": "none"}, 422),
            ({"dim": 4, "parameters": {"ridge": -1}}, 422),
            ({"dim": 4, "parameters": {"ridge": 1e-300}}, 422),
            ({"dim": 4, "parameters": {"size": 10**9}, "policy": "soful"}, 413),
            ({"dim": 4, "parameters": {"unheard": 1}}, 422),
            ({"dim": 4, "parameters": {"beta": {"noise": 1}, "ridge": "x"}}, 422),
            ({"dim": 4, "reward_timeout": 0}, 422),
            ({"dim": 4, "exploration": 1.5}, 422),
            ({"dim": 100_000}, 413),
            ({"dim": 100_000, "policy": "oful"}, 413),
            ({"dim": 100_000, "policy": "soful", "parameters": {"size": 10_000}}, 413),
        ):
            answer = await found.http.put("/v1/bandits/new", json=settings)
            assert error_of(answer)[0] == status, (settings, answer.text)
        wide = await found.http.put(
            "/v1/bandits/w", json={"dim": 100_000, "policy": "soful", "parameters": {"size": 20}}
        )
        assert wide.status_code == 201
        for name in ("%00", "a%2Fb", "x" * 129, "%0A", "%2E", "%2E%2E"):
            assert (await found.http.put(f"/v1/bandits/{name}", json={"dim": 4})).status_code in (
                404,
                405,
                422,
            )


@in_loop
async def test_confidence_radius_and_float32(tmp_path: Path) -> None:
    """beta may be the theorem's, and rows may be stored in half the memory."""
    async with service(tmp_path) as found:
        beta = {"noise": 0.1, "theta_norm": 1.0, "arm_norm": 1.0, "delta": 0.01}
        await found.create(parameters={"beta": beta, "dtype": "float32"})
        await found.play(30)
        policy = found.engine.bandit("b").policy
        assert policy.beta == sb.Confidence(**beta)
        assert policy.dtype == np.float32


@in_loop
async def test_many_arms(tmp_path: Path) -> None:
    """100,000 arms are chosen from; one more is refused before it is read as a matrix."""
    headers = {"content-type": "application/x-npy"}
    random = np.random.default_rng(5)
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        arms = random.standard_normal((100_000, DIM)).astype(np.float32)
        answer = await found.http.post("/v1/bandits/b/decide", content=npy(arms), headers=headers)
        policy = found.engine.bandit("b").policy
        assert answer.json()["index"] == policy.select(arms.astype(np.float64))
        more = await found.http.post(
            "/v1/bandits/b/decide", content=npy(np.ones((100_001, DIM), np.float32)), headers=headers
        )
        assert error_of(more) == (413, "100001 arms; this server takes up to 100000 per decision")


@in_loop
async def test_ids_with_slashes_and_ids_twice(tmp_path: Path) -> None:
    """An id is any text but dots; the same one twice in a decision is a mistake."""
    async with service(tmp_path) as found:
        await found.create()
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"a/b": [1.0] * DIM, "...": [2.0] * DIM}})
        assert (await found.decide(["a/b"])).json()["arm"] == "a/b"
        twice = error_of(await found.decide(["a/b", "...", "a/b"]))
        assert twice == (422, "the arm 'a/b' is given twice; name each arm once")
        assert (await found.http.delete("/v1/bandits/b/arms/a%2Fb")).status_code == 200
        assert (await found.http.get("/v1/bandits/b/arms")).json()["arms"] == ["..."]
        for bad in ("", "x" * 129, "nul\x00", ".."):
            put = await found.http.put("/v1/bandits/b/arms", json={"arms": {bad: [1.0] * DIM}})
            assert error_of(put)[0] == 422
        for arm in ([1.0] * 3, [1.0, None, 1.0, 1.0], {"f": None}, {"f": True}, None, "x", {"indices": [1]}):
            put = await found.http.put("/v1/bandits/b/arms", json={"arms": {"new": arm}})
            assert error_of(put)[0] == 422, arm
            assert "new" in error_of(put)[1]


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (DenseDecideRequest, {"arms": [["x"] * 100] * 100}),
        (ActionsRequest, {"actions": [1] * 1000}),
        (RewardRequest, {"decision": "a", "rewards": [{}] * 1000}),
    ],
)
def test_a_thousand_errors_cost_no_more_than_one(model: type[RequestModel], body: Any) -> None:
    """Reading stops early: what is refused must not cost a hundred times its size."""
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(json.dumps(body))
    assert refused.value.error_count() <= 8


@in_loop
async def test_exploration_tells_its_propensity(tmp_path: Path) -> None:
    """A share of decisions is uniform, and the propensity says with which probability each arm was chosen."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN, exploration=0.4)
        arms = np.diag([3.0, 1.0, 1.0, 1.0]).tolist()
        answers = [(await found.decide(arms)).json() for _ in range(400)]
        best = [answer for answer in answers if answer["index"] == 0]
        assert {round(answer["propensity"], 12) for answer in best} == {0.7}
        assert {round(answer["propensity"], 12) for answer in answers if answer["index"]} == {0.1}
        assert 0.6 < len(best) / 400 < 0.8
        estimate = sum((answer["index"] == 1) / answer["propensity"] for answer in answers) / 400
        assert estimate == pytest.approx(1.0, abs=0.5)  # inverse propensities are unbiased


@in_loop
async def test_unknown_paths_and_methods(tmp_path: Path) -> None:
    """Refusals of the router have the same shape."""
    async with service(tmp_path) as found:
        assert error_of(await found.http.get("/nothing"))[0] == 404
        refused = await found.http.patch("/v1/bandits")
        assert (refused.status_code, refused.json()["error"]["code"]) == (405, "not_allowed")
        assert "GET" in refused.headers["allow"]
        plain = await found.http.post(
            "/v1/bandits/b/decide", content=b"{}", headers={"content-type": "text/plain"}
        )
        assert error_of(plain)[0] == 404
        await found.create()
        plain = await found.http.post(
            "/v1/bandits/b/decide", content=b"{}", headers={"content-type": "text/plain"}
        )
        assert error_of(plain)[0] == 415
        assert error_of(await found.http.put("/v1/bandits/c", content=b"{}"))[0] == 415
        description = (await found.http.get("/openapi.json")).json()
        assert "/v1/bandits/{name}/decide" in description["paths"]
        json.dumps(description)


@in_loop
async def test_limits_on_bandits_batches_and_stored_arms(tmp_path: Path) -> None:
    """Each limit is a refusal, not growth."""
    limits = Limits(bandits=2, batch=3, arms=4, bandit_bytes=100_000)
    async with service(tmp_path, limits=limits) as found:
        await found.create()
        await found.create("c")
        assert error_of(await found.http.put("/v1/bandits/d", json={"dim": DIM}))[0] == 409
        many = {"rewards": [{"decision": "1-a", "reward": 1.0}] * 4}
        assert error_of(await found.http.post("/v1/bandits/b/reward/batch", json=many))[0] == 413
        arms = {str(i): [1.0] * DIM for i in range(3)}
        assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).json() == {"count": 3}
        assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).json() == {"count": 3}
        more = {str(i): [1.0] * DIM for i in range(2, 6)}
        assert error_of(await found.http.put("/v1/bandits/b/arms", json={"arms": more}))[0] == 413
        assert error_of(await found.decide([[1.0] * DIM] * 5))[0] == 413


@in_loop
async def test_pages_of_other_origins(tmp_path: Path) -> None:
    """Off by default; those that are named may ask, and hear so before they send a token."""
    preflight = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    async with service(tmp_path / "closed") as found:
        assert error_of(await found.http.options("/v1/bandits", headers=preflight))[0] == 405
        plain = await found.http.get("/v1/bandits", headers=preflight)
        assert "access-control-allow-origin" not in plain.headers
        with pytest.raises(sb.errors.InputError, match="tokens"):
            Api(found.engine, cors=("*",))
    secret = tokens.add(tmp_path / "tokens", "app", "read")
    known = tokens.Tokens.read(tmp_path / "tokens")
    for origins in (("https://shop.example",), ("*",)):
        async with service(tmp_path / "open", tokens=known, cors=origins) as found:
            allowed = await found.http.options("/v1/bandits/b/decide", headers=preflight)
            assert (allowed.status_code, allowed.content) == (204, b"")
            assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
            assert "authorization" in allowed.headers["access-control-allow-headers"]
            assert "credentials" not in str(allowed.headers)
            asked = {"authorization": f"Bearer {secret}", **preflight}
            for answer in (
                await found.http.get("/v1/bandits", headers=asked),
                await found.http.get("/v1/bandits/absent", headers=asked),
                await found.http.get("/v1/bandits", headers=preflight),
                await found.http.get("/docs", headers=preflight),
            ):
                assert answer.headers["access-control-allow-origin"] == "https://shop.example"
                assert answer.headers["vary"] == "origin"
            assert "access-control-allow-origin" not in (await found.http.get("/docs")).headers
            other = await found.http.options("/v1/bandits", headers={**preflight, "origin": "https://other"})
            assert ("access-control-allow-origin" in other.headers) == (origins == ("*",))


@in_loop
async def test_one_that_is_out_of_service_is_told(tmp_path: Path) -> None:
    """Listed with its reason; whatever is asked of it is 503; the others and the server are ready."""
    async with service(tmp_path) as found:
        await found.create()
        await found.create("ill")
        ill = found.engine.registry.bandits.pop("ill")
        reason = "record 7 could not be applied"
        found.engine.registry.quarantined["ill"] = Quarantined(ill.number, "ill", reason)
        listed = (await found.http.get("/v1/bandits")).json()
        assert [bandit["name"] for bandit in listed["bandits"]] == ["b"]
        assert listed["quarantined"] == [{"name": "ill", "reason": reason}]
        for answer in (
            await found.http.get("/v1/bandits/ill"),
            await found.http.get("/v1/bandits/ill/stats"),
            await found.decide(name="ill"),
            await found.http.get("/v1/bandits/ill/arms"),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "quarantined")
            assert reason in error_of(answer)[1]
        assert (await found.http.get("/readyz")).json() == {"status": "ready", "quarantined": 1}
        assert (await found.decide()).status_code == 200


@in_loop
async def test_who_is_not_ready_says_so_before_the_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby, and one that stops: 503 with its code, while it still tells that it lives."""
    async with service(tmp_path) as found:
        await found.create()

        async def body() -> AsyncIterator[bytes]:
            assert not url, "it was taken in vain"
            yield b""

        for name, value, code in (("follower", object(), "standby"), ("is_ready", False, "unavailable")):
            monkeypatch.setattr(found.engine, name, value, raising=False)
            for method, url in (
                ("POST", "/v1/bandits/b/decide"),
                ("PUT", "/v1/bandits/c"),
                ("GET", "/readyz"),
            ):
                headers = {"content-type": "application/json"}
                content = None if method == "GET" else body()
                answer = await found.http.request(method, url, content=content, headers=headers)
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, code)
                assert answer.headers["retry-after"] == "1"
            for url in ("/healthz", "/metrics", "/docs", "/"):
                assert (await found.http.get(url)).status_code == 200
            monkeypatch.undo()
        for url, kind, status in (
            ("/v1/bandits/absent/decide", "application/json", 404),
            ("/v1/bandits/b/decide", "text/plain", 415),
            ("/v1/bandits/b/reward", "application/x-npy", 415),
            ("/v1/nothing", "application/json", 404),
        ):
            answer = await found.http.post(url, content=body(), headers={"content-type": kind})
            assert error_of(answer)[0] == status


@in_loop
async def test_no_memory_is_no_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, and the next request is answered."""
    async with service(tmp_path) as found:
        await found.create()

        def fail(*_: object, **__: object) -> None:
            raise MemoryError

        monkeypatch.setattr(found.engine.decisions, "decide", fail)
        refused = await found.decide()
        assert error_of(refused) == (503, "not enough memory for this request; try again later")
        assert refused.json()["error"]["code"] == "unavailable"
        monkeypatch.undo()
        assert (await found.decide()).status_code == 200


@in_loop
async def test_the_page_for_people(tmp_path: Path) -> None:
    """Every path and field that programs are told of, on one page that loads nothing and runs nothing."""
    async with service(tmp_path) as found:
        page = await found.http.get("/docs")
        described = (await found.http.get("/openapi.json")).json()
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                assert f"{method.upper()} {path}" in page.text
                assert html.escape(operation["summary"]) in page.text
        for name, field in described["components"]["schemas"]["BanditRequest"]["properties"].items():
            assert f"<code>{name}</code>" in page.text
            assert html.escape(field.get("description", "")) in page.text
        assert not re.search(r"<script|src=|https?://|url\(", page.text)
        policy = page.headers["content-security-policy"]
        style = re.search("<style>(.*)</style>", page.text)
        assert style is not None
        digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in policy
        assert "unsafe" not in policy
        assert 'href="/docs"' in (await found.http.get("/")).text


@in_loop
async def test_a_misspelt_field_is_named_beside_the_missing_one(tmp_path: Path) -> None:
    """And the fields that there are."""
    async with service(tmp_path) as found:
        status, message = error_of(await found.http.put("/v1/bandits/b", json={"dims": 65}))
        assert status == 422
        assert message.startswith("dim: Field required; dims: there is no such field; the fields are dim, ")
        assert error_of(await found.http.put("/v1/bandits/b", json={})) == (422, "dim: Field required")
