"""Stored arms and a context: the features that a policy reads and learns, and what is refused."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchbandit.arms import with_context
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit_service import arm_store
from sketchbandit_service.checking import check
from sketchbandit_service.client import calls
from sketchbandit_service.engine import Engine
from sketchbandit_service.settings import Settings
from sketchbandit_service.vectors import decode
from tests.service.harness import AS_THEY_ARE, PLAIN, Service, crashing, error_of, in_loop, service

ARMS, CONTEXTS = 7, 12
CASES = {"product": (4, 4, 4), "concatenate": (6, 2, 4), "outer": (8, 2, 4)}
"""The dim of the bandit, the features of a context, those of an arm."""


def explicit(interaction: str, context: Any, arms: Any) -> Any:
    """The features, one arm after another."""
    if interaction == "product":
        return np.array([arm * context for arm in arms])
    if interaction == "concatenate":
        return np.array([np.concatenate([context, arm]) for arm in arms])
    return np.array([np.kron(context, arm) for arm in arms])


async def stocked(found: Service, interaction: str, **settings: Any) -> Any:
    """A bandit with stored arms; their matrix."""
    dim, _, width = CASES[interaction]
    arms = np.random.default_rng(1).standard_normal((ARMS, width))
    arm_dim = {} if interaction == "product" else {"arm_dim": width}
    await found.create(**{**PLAIN, "dim": dim, **arm_dim, **settings})
    body = {"arms": {f"a{place}": row.tolist() for place, row in enumerate(arms)}}
    answer = await found.http.put("/v1/bandits/b/arms", json=body)
    assert answer.status_code == 200, answer.text
    return arms


async def ask(found: Service, **body: Any) -> Any:
    """POST a decision."""
    return await found.http.post("/v1/bandits/b/decide", json=body)


@pytest.mark.parametrize("interaction", CASES)
def test_features_are_those_of_a_loop(interaction: str) -> None:
    """To the bit."""
    random, (_, length, width) = np.random.default_rng(0), CASES[interaction]
    arms, context = random.standard_normal((5, width)), random.standard_normal(length)
    np.testing.assert_array_equal(
        with_context(arms, context, interaction), explicit(interaction, context, arms)
    )


@pytest.mark.parametrize("interaction", CASES)
@in_loop
async def test_it_chooses_and_learns_as_a_policy_that_is_given_the_features(
    tmp_path: Path, interaction: str
) -> None:
    """After rewards, a crash and a restart as well; the journal holds the features of what was chosen."""
    random, length = np.random.default_rng(2), CASES[interaction][1]
    late: list[Any] = []
    twins: list[Any] = []

    async def play(found: Service) -> None:
        arms = await stocked(found, interaction)
        twin = found.engine.bandit("b").config.build()
        twins.append((twin, arms))
        for _ in range(CONTEXTS):
            context = random.standard_normal(length)
            rows = explicit(interaction, context, arms)
            answer = await ask(found, context=context.tolist(), interaction=interaction, top=3)
            told = answer.json()
            assert [one["index"] for one in told["top"]] == list(twin.top(rows, 3)), answer.text
            assert told["arm"] == f"a{told['index']}"
            (held,) = found.engine.bandit("b").open.popitem()[1].values()
            found.engine.bandit("b").open[held.first] = {0: held}
            np.testing.assert_array_equal(decode(held.features, rows.shape[1]), rows[told["index"]])
            await found.reward(told["decision"], 0.5)
            twin.update(rows[told["index"]], 0.5)
        context = random.standard_normal(length)
        rows = explicit(interaction, context, arms)
        told = (await ask(found, context=context.tolist(), interaction=interaction)).json()
        late.append((told["decision"], rows[told["index"]]))

    await crashing(tmp_path, play)
    (twin, arms), (decision, row) = twins[0], late[0]
    async with service(tmp_path) as found:
        assert (await found.reward(decision, 1.0)).json()["status"] == "learned"
        twin.update(row, 1.0)
        some = ["a5", "a1", "a3"]
        context = random.standard_normal(length)
        rows = explicit(interaction, context, arms[[5, 1, 3]])
        told = (await ask(found, arms=some, context=context.tolist(), interaction=interaction)).json()
        assert told["index"] == twin.select(rows)
        assert told["arm"] == some[told["index"]]
    assert all(finding.is_good for finding in check(tmp_path))


@pytest.mark.parametrize("explore", ["ucb", "thompson", "inverse-gap"])
@pytest.mark.parametrize("scaling", [None, "rows", "columns"])
@in_loop
async def test_many_arms_are_chosen_from_as_a_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaling: str | None, explore: str
) -> None:
    """The same choices as by a bandit whose arms are too few for that, with rewards and changes of arms."""
    random, parameters = np.random.default_rng(3), {**AS_THEY_ARE, "scaling": scaling}
    asked: list[Any] = [None if number % 4 == 3 else random.standard_normal(4) for number in range(14)]

    async def played(folder: Path) -> list[Any]:
        found_arms = []
        async with service(folder) as found:
            await stocked(found, "product", parameters=parameters, explore=explore)
            for number, context in enumerate(asked):
                said = {} if context is None else {"context": context.tolist()}
                told = (await ask(found, **said)).json()
                found_arms.append((told["arm"], told["mean"]))
                await found.reward(told["decision"], float(number % 3))
                if number == 6:
                    await found.http.put("/v1/bandits/b/arms", json={"arms": {"new": U, "a1": U[::-1]}})
                if number == 9:
                    await found.http.request("DELETE", "/v1/bandits/b/arms/a0")
        return found_arms

    few = await played(tmp_path / "few")
    monkeypatch.setattr(arm_store, "MANY", 2)
    many = await played(tmp_path / "many")
    assert [arm for arm, _ in many] == [arm for arm, _ in few]
    np.testing.assert_allclose([mean for _, mean in many], [mean for _, mean in few], rtol=1e-9, atol=1e-12)


def test_a_device_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    """Before anything is made in the state folder."""
    engine = Engine(Settings(tmp_path / "state", device="cuda:77"))
    with pytest.raises(InputError, match=r"needs torch|no device 'cuda:77'"):
        asyncio.run(engine.start())
    assert not (tmp_path / "state").exists()


@in_loop
async def test_a_slate_learns_each_arm_with_the_context(tmp_path: Path) -> None:
    """By id; product is what there is unless another is named."""
    async with service(tmp_path) as found:
        arms = await stocked(found, "product", slates=True)
        twin = found.engine.bandit("b").config.build()
        context = np.array([1.0, -2.0, 0.5, 3.0])
        told = (await ask(found, context=context.tolist(), top=3)).json()
        rows = arms * context
        assert [one["index"] for one in told["top"]] == list(twin.top(rows, 3))
        given = [{"arm": one["arm"], "reward": 0.1 * place} for place, one in enumerate(told["top"])]
        assert (await found.rewards(told["decision"], *given)).status_code == 200
        for place, one in enumerate(told["top"]):
            twin.update(rows[one["index"]], 0.1 * place)
        again = (await ask(found, context={"indices": [0, 3], "values": [1.0, 2.0]}, top=7)).json()
        rows = arms * np.array([1.0, 0.0, 0.0, 2.0])
        assert [one["index"] for one in again["top"]] == list(twin.top(rows, 7))


@in_loop
async def test_a_batch_and_a_key(tmp_path: Path) -> None:
    """Each decision of a batch has a context of its own; a key is for one context."""
    async with service(tmp_path) as found:
        arms = await stocked(found, "outer")
        bad, good = {"context": [1.0], "interaction": "outer"}, {"context": [1, 2], "interaction": "outer"}
        answer = await found.http.post(
            "/v1/bandits/b/decide/batch", json={"decisions": [good, bad, {**good, "key": "k"}]}
        )
        first, second, third = answer.json()["decisions"]
        twin = found.engine.bandit("b").config.build()
        assert first["index"] == third["index"] == twin.select(explicit("outer", np.array([1.0, 2.0]), arms))
        assert "the context has 1 features" in second["error"]["message"]
        for said, status in ((good, 200), ({**good, "context": [2, 1]}, 409)):
            again = await found.http.post(
                "/v1/bandits/b/decide/batch", json={"decisions": [{**said, "key": "k"}]}
            )
            one = again.json()["decisions"][0]
            assert one["decision"] == third["decision"] if status == 200 else "error" in one


U = [1.0, 2.0, 3.0, 4.0]
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "short": ("product", {"context": [1.0]}, "context has 1 features, but .* needs 4"),
    "text": ("product", {"context": "u"}, "the context must be a list of numbers"),
    "not numbers": ("product", {"context": [1, 2, 3, "x"]}, r"context\.3: Input should be a valid number"),
    "unknown": ("product", {"context": U, "interaction": "sum"}, "interaction: Input should be 'product'"),
    "alone": ("product", {"interaction": "product"}, "no context; send both"),
    "sent": ("product", {"context": U, "arms": [U]}, "a context goes with stored arms"),
    "mixed": ("product", {"context": U, "arms": ["a1", U]}, "a context goes with stored arms"),
    "actions": ("product", {"context": U, "actions": ["x"]}, "was created without actions; send arms"),
    "no room": ("product", {"context": U, "interaction": "concatenate"}, "fewer features than dim"),
    "no product": ("outer", {"context": U}, "a product needs arms of dim features"),
    "no context": ("outer", {}, "have 4 features, but its dim is 8; send a context"),
    "no context, named": ("outer", {"arms": ["a1"]}, "have 4 features, but its dim is 8; send a context"),
    "uneven": ("concatenate", {"context": U, "interaction": "outer"}, "a dim that is a multiple"),
    "long": ("product", {"context": [1e20, 0, 0, 0]}, "with this context an arm can have length"),
    "no such arm": ("product", {"context": U, "arms": ["zz"]}, "there is no stored arm 'zz'"),
}


@pytest.mark.parametrize("case", WRONG)
@in_loop
async def test_what_is_wrong_changes_nothing(tmp_path: Path, case: str) -> None:
    """It is refused, with a word on why."""
    interaction, body, why = WRONG[case]
    async with service(tmp_path) as found:
        await stocked(found, interaction)
        bandit = found.engine.bandit("b")
        before = bandit.accounts.totals, bandit.policy.dump()[0]
        status, message = error_of(await ask(found, **body))
        assert status in (404, 422), message
        assert re.search(why, message), message
        assert (bandit.accounts.totals, bandit.policy.dump()[0]) == before
        assert not bandit.open


@in_loop
async def test_nan_is_refused(tmp_path: Path) -> None:
    """As everywhere."""
    async with service(tmp_path) as found:
        await stocked(found, "product")
        for bad in (b"NaN", b"1e999"):
            body = b'{"context": [1, 2, 3, %b]}' % bad
            headers = {"content-type": "application/json"}
            answer = await found.http.post("/v1/bandits/b/decide", content=body, headers=headers)
            assert 400 <= error_of(answer)[0] < 500
        assert not found.engine.bandit("b").open


@in_loop
async def test_arms_that_do_not_go_with_a_context(tmp_path: Path) -> None:
    """None, sparse ones, ones of another length; a bandit with actions."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        assert "no stored arms" in error_of(await ask(found, context=U))[1]
        await found.http.put("/v1/bandits/b/arms", json={"arms": {"a": {"price": 0.3}}})
        assert "sparse or named" in error_of(await ask(found, context=U))[1]
        await found.create("short", arm_dim=2)
        answer = await found.http.put("/v1/bandits/short/arms", json={"arms": {"a": U}})
        assert error_of(answer)[1] == "arm 'a' has 4 features, but the arm_dim of bandit 'short' is 2"
        await found.create("named", actions=["x", "y"])
        asked = {"context": U, "interaction": "outer"}
        answer = await found.http.post("/v1/bandits/named/decide", json=asked)
        assert "leave out the interaction" in error_of(answer)[1]


@in_loop
async def test_arm_dim_is_a_setting(tmp_path: Path) -> None:
    """Dim is what it is unless it is given; then the settings are as those of earlier versions."""
    async with service(tmp_path) as found:
        assert (await found.create(arm_dim=4)).json()["arm_dim"] is None
        assert (await found.create()).status_code == 200
        assert "arm_dim" not in found.engine.bandit("b").config.to_json()
        for wrong in ({"arm_dim": 5}, {"arm_dim": 0}, {"arm_dim": 2, "actions": ["x"]}):
            answer = await found.http.put("/v1/bandits/c", json={"dim": 4, **wrong})
            assert "arm_dim" in error_of(answer)[1]


def test_clients_send_it() -> None:
    """A context as arms are sent, an interaction if it is given."""
    call = calls.select("b", ["x"], 2, "k", calls.Context(np.array([1.0, 2.0]), "outer"))
    assert json.loads(call.content or b"") == {
        "arms": ["x"],
        "top": 2,
        "context": [1.0, 2.0],
        "interaction": "outer",
    }
    with pytest.raises(InputTypeError, match="stored arms"):
        calls.select("b", np.eye(2), None, None, calls.Context([1.0, 2.0]))
