"""The clients: the verbs of a policy, retries that repeat nothing, errors that say what happened."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.extras import how_to_install
from sketchbandit_service import client as package
from sketchbandit_service.client import (
    AsyncBandit,
    AsyncClient,
    Bandit,
    Client,
    Decision,
    Retries,
    ServiceError,
    calls,
)
from sketchbandit_service.client.calls import authorization
from sketchbandit_service.client.retries import Addresses
from tests.service.harness import AS_THEY_ARE, PLAIN
from tests.service.processes import ServerProcess, Zygote, free_port

DIM = 6
QUICK = Retries(attempts=4, first=0.001, most=0.002)


@pytest.fixture
def server(tmp_path: Path, forge: Zygote) -> Iterator[ServerProcess]:
    """A server on a socket."""
    found = forge.start(tmp_path / "state", free_port())
    yield found
    found.stop()


def test_exported_names() -> None:
    """The client's surface, pinned; both kinds have the same verbs."""
    assert set(package.__all__) == {
        "AsyncBandit",
        "AsyncClient",
        "Bandit",
        "Client",
        "Decision",
        "Retries",
        "ServiceError",
    }

    def verbs(cls: type) -> set[str]:
        return {name for name in vars(cls) if not name.startswith("_")}

    assert verbs(Client) == verbs(AsyncClient)
    assert verbs(Bandit) == verbs(AsyncBandit)


def test_the_verbs_of_a_policy(server: ServerProcess) -> None:
    """The loop of a policy, over HTTP, gives what the policy gives."""
    random = np.random.default_rng(0)
    alone = sb.adaptive(DIM, **AS_THEY_ARE, explore=sb.UCB())
    with Client(server.url) as client:
        bandit = client.create("b", DIM, **PLAIN)
        assert client.create("b", DIM, **PLAIN).name == "b"
        for number in range(40):
            arms = random.standard_normal((4, DIM))
            given = [arms, arms.tolist(), sparse.csr_array(arms), list(arms)][number % 4]
            decision = bandit.select(given)
            assert decision.index == alone.select(arms)
            chosen = arms[decision]
            reward = float(chosen[0])
            assert bandit.update(decision, reward) is True
            assert bandit.update(decision.id, reward) is False
            alone.update(chosen, reward)
        assert bandit.stats()["rounds"] == 40
        assert np.isclose(bandit.select(np.eye(DIM), top=3).score, alone.ucb(np.eye(DIM)).max())
        assert (
            len(bandit.select(np.eye(DIM), top=3).top)
            == len(bandit.select(np.eye(DIM).tolist(), top=3).top)
            == 3
        )
        assert (
            bandit.put_arms({"x": np.ones(DIM), "y": {"a": 1.0}, "z/é": sparse.csr_array(np.eye(DIM)[[0]])})
            == 3
        )
        assert bandit.arms() == ["x", "y", "z/é"]
        assert bandit.select(["y"]).arm == "y"
        assert bandit.select().arm in ("x", "y", "z/é")
        bandit.remove_arm("x")
        bandit.remove_arm("z/é")
        assert [found["name"] for found in client.bandits()] == ["b"]
        first, failed, third = bandit.select_many([np.eye(DIM), [], ["y"]])
        assert isinstance(first, Decision)
        assert isinstance(failed, ServiceError)
        assert isinstance(third, Decision)
        outcomes = bandit.update_many([(first, 1.0), ("none", 1.0), (third.id, 0.0), (first, 1.0)])
        assert [outcome if isinstance(outcome, bool) else outcome.status for outcome in outcomes] == [
            True,
            404,
            True,
            False,
        ]
        bandit.delete()
        with pytest.raises(ServiceError, match="no bandit 'b'") as gone:
            bandit.stats()
        assert (gone.value.status, gone.value.code) == (404, "not_found")


def test_slates_and_rules(server: ServerProcess) -> None:
    """Each arm shown has its reward, by position or by id; what is wrong is said by the service."""
    with Client(server.url) as client:
        shop = client.create("shop", DIM, slates=True, explore={"rule": "inverse-gap", "gamma": 3.0})
        shop.put_arms(dict(zip("abc", np.eye(DIM), strict=False)))
        decision = shop.select(top=3)
        assert [shown["position"] for shown in decision.top] == [0, 1, 2]
        assert decision.propensity == pytest.approx(1 / 3)
        assert decision.propensity_kind == "exact"
        assert shop.update(decision, {0: 1.0, 2: 0.0}) is True
        middle = decision.top[1]["arm"]
        assert shop.update(decision, {middle: 0.5}) is True
        assert shop.update(decision, {middle: 0.5, decision.top[0]["arm"]: 1.0}) is False
        assert shop.update(decision.id, 1.0) is False
        with pytest.raises(ServiceError, match="has no position 7") as refused:
            shop.update(decision, {7: 1.0})
        assert (refused.value.status, refused.value.code) == (422, "invalid")
        other = shop.select(top=2)
        learned, known, wrong = shop.update_many([(other, {1: 1.0}), (decision, {0: 1.0}), (other, {5: 1.0})])
        assert (learned, known) == (True, False)
        assert isinstance(wrong, ServiceError)
        assert shop.stats("hour")["rounds"] == 4
        assert shop.stats("hour")["range"] == "hour"
        thompson = client.create("t", DIM, explore=sb.Thompson(0.2, seed=4))  # the service draws by itself
        (made,) = (one for one in client.bandits() if one["name"] == "t")
        assert (made["explore"]["rule"], made["explore"]["scale"]) == ("thompson", 0.2)
        drawn = thompson.select(np.eye(DIM))
        assert (drawn.propensity, drawn.propensity_kind) == (None, "estimate")
        for bandit in (shop, thompson):
            bandit.delete()


def test_actions(server: ServerProcess) -> None:
    """A model for every action: chosen for a context, added, retired."""
    with Client(server.url) as client:
        shop = client.create("actions", DIM, actions=["red", "green"], **PLAIN)
        decision = shop.select_action(np.eye(DIM)[0])
        assert (decision.action, decision.arm, decision.index) == ("red", "red", 0)
        assert shop.update(decision, -1.0) is True
        assert shop.select_action(sparse.csr_array(np.eye(DIM)[[0]])).action == "green"
        assert shop.select_action({"age": 3.0}, ["red"]).action == "red"
        assert shop.add_actions(["blue"]) == ["red", "green", "blue"]
        shop.retire_action("green")
        assert shop.actions() == {"actions": ["red", "blue"], "retired": ["green"]}
        assert shop.select_action([1.0] + [0.0] * (DIM - 1), top=2).top[0]["arm"] == "blue"
        with pytest.raises(ServiceError, match="'green' is retired"):
            shop.select_action(np.eye(DIM)[0], ["green"])
        shop.delete()


def test_candidates(server: ServerProcess) -> None:
    """Added, asked, promoted, removed; a bandit from the log of another."""
    with Client(server.url) as client:
        shop = client.create("shop", DIM, **PLAIN)
        told = shop.put_candidate("small é", policy="soful", explore=sb.UCB(0.3), rewards=sb.Linear())
        assert (told["explore"]["beta"], told["rewards"]["model"]) == (0.3, "linear")
        shop.put_candidate("other", policy="oful", reward_range=[-1, 1])
        shop.update(shop.select(np.eye(DIM)), 1.0)
        assert [one["name"] for one in shop.candidates()] == ["small é", "other"]
        assert shop.candidate("other")["rounds"] == 1
        shop.remove_candidate("other")
        with pytest.raises(ServiceError, match="has no candidate 'other'"):
            shop.candidate("other")
        assert shop.promote("small é", keep="first")["policy"] == "soful"
        assert shop.stats()["candidates"][0]["name"] == "first"
        for name in ("", "..", "a/b"):
            with pytest.raises(InputError, match="name cannot be"):
                shop.candidate(name)
        new = client.create("new", DIM, from_="shop", policy="soful")
        assert new.stats()["rounds"] == 1
        for bandit in (shop, new):
            bandit.delete()


@pytest.mark.parametrize("name", [".", "..", "", "a/b", "a/../..", "a\nb", "\x00", "\x7f", "\ud800"])
def test_what_urls_cannot_carry(name: str) -> None:
    """As a bandit's name nothing is sent; ids of arms and names of actions are in bodies, and in no path."""
    seen: list[httpx.Request] = []
    with Client() as client:
        client._http = httpx.Client(transport=replay([{}, {}], seen))
        with pytest.raises(InputError, match="a bandit's name cannot be"):
            client.bandit(name).delete()
        assert not seen
        client.bandit("shop").remove_arm(name)
        client.bandit("shop").retire_action(name)
    paths = ["/v1/bandits/shop/arms/remove", "/v1/bandits/shop/actions/retire"]
    assert [(request.method, request.url.path) for request in seen] == [("POST", path) for path in paths]
    assert [json.loads(request.content) for request in seen] == [{"arms": [name]}, {"actions": [name]}]


def test_the_same_awaited(server: ServerProcess) -> None:
    """AsyncClient, many at once."""

    async def run() -> None:
        async with AsyncClient(server.url) as client:
            bandit = await client.create("a", DIM)
            decisions = await asyncio.gather(*(bandit.select(np.eye(DIM)) for _ in range(20)))
            assert len({decision.id for decision in decisions}) == 20
            assert all(await asyncio.gather(*(bandit.update(decision, 1.0) for decision in decisions)))
            assert await bandit.put_arms({"x": [1.0] * DIM}) == 1
            assert await bandit.arms() == ["x"]
            await bandit.remove_arm("x")
            (one,) = await bandit.select_many([np.eye(DIM)])
            assert isinstance(one, Decision)
            assert await bandit.update_many([(one, 0.5)]) == [True]
            slates = await client.create("s", DIM, slates=True)
            shown = await slates.select(np.eye(DIM), top=2)
            assert await slates.update(shown, {1: 1.0}) is True
            assert (await slates.stats("day"))["rounds"] == 1
            acting = await client.create("x", DIM, actions=["a", "b"], **PLAIN)
            assert (await acting.select_action(np.eye(DIM)[0])).action == "a"
            assert await acting.add_actions(["c"]) == ["a", "b", "c"]
            await acting.retire_action("a")
            assert (await acting.actions())["retired"] == ["a"]
            await acting.delete()
            await slates.delete()
            assert (await bandit.put_candidate("c", policy="oful"))["name"] == "c"
            assert (await bandit.candidate("c"))["policy"] == "oful"
            assert (await bandit.promote("c"))["policy"] == "oful"
            await bandit.put_candidate("d")
            await bandit.remove_candidate("d")
            assert await bandit.candidates() == []
            assert (await bandit.put_candidate("e"))["rounds"] == 0
            assert (await bandit.stats())["rewards"] == 21
            assert len(await client.bandits()) == 1
            with pytest.raises(ServiceError):
                await client.bandit("absent").stats()
            await bandit.delete()

    asyncio.run(run())


def replay(answers: list[Any], seen: list[httpx.Request]) -> httpx.MockTransport:
    """A service that gives these answers, one after another, and remembers what it was asked."""

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    return httpx.MockTransport(handle)


DECIDED = {
    "decision": "1-a",
    "index": 0,
    "arm": None,
    "score": 1.0,
    "mean": 0.0,
    "propensity": 1.0,
    "top": None,
}


@pytest.fixture(params=["ordinary", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Decision]:
    """``select`` against services that give certain answers, by either client."""

    def ordinary(
        answers: list[Any], seen: list[httpx.Request], urls: str | list[str] = "http://a", count: int = 1
    ) -> Decision:
        with Client(urls, retries=QUICK) as client:
            client._http = httpx.Client(transport=replay(answers, seen))
            return [client.bandit("b").select([[1.0]]) for _ in range(count)][-1]

    def awaited(
        answers: list[Any], seen: list[httpx.Request], urls: str | list[str] = "http://a", count: int = 1
    ) -> Decision:
        async def run() -> Decision:
            async with AsyncClient(urls, retries=QUICK) as client:
                client._http = httpx.AsyncClient(transport=replay(answers, seen))
                return [await client.bandit("b").select([[1.0]]) for _ in range(count)][-1]

        return asyncio.run(run())

    return ordinary if request.param == "ordinary" else awaited


Ask = Callable[..., Decision]


def test_retries_keep_their_key(ask: Ask) -> None:
    """Lost connections, 429 and 503 are tried again, as the same request."""
    seen: list[httpx.Request] = []
    answers = [httpx.ConnectError("refused"), httpx.Response(503), httpx.Response(429), DECIDED]
    assert ask(answers, seen).id == "1-a"
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert len({request.content for request in seen}) == 1
    assert len(seen) == 4


def test_retries_end(ask: Ask) -> None:
    """After the last attempt the error is told; what cannot get better is not tried again."""
    seen: list[httpx.Request] = []
    with pytest.raises(ServiceError, match="cannot be reached") as away:
        ask([httpx.ReadTimeout("slow")] * 4, seen)
    assert away.value.status == 0
    with pytest.raises(ServiceError) as busy:
        ask([httpx.Response(503) for _ in range(4)], seen)
    assert busy.value.status == 503
    seen.clear()
    with pytest.raises(ServiceError, match="answered 500"):
        ask([httpx.Response(500)], seen)
    assert len(seen) == 1


PAIR = ["http://a:8000/", "http://b:8000"]


def refused(status: int, code: str) -> httpx.Response:
    """An answer that is no success."""
    return httpx.Response(status, json={"error": {"code": code, "message": "why"}})


@pytest.mark.parametrize(
    "failed", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), (503, "standby"), 502, 504]
)
def test_the_next_address_at_once(ask: Ask, failed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request under the same key, without a pause; and there it stays."""
    monkeypatch.setattr(Retries, "pause", lambda *_: pytest.fail("there was a pause"))
    seen: list[httpx.Request] = []
    if not isinstance(failed, Exception):
        failed = refused(*failed) if isinstance(failed, tuple) else httpx.Response(failed)
    assert ask([failed, DECIDED, DECIDED], seen, PAIR, 2).id == "1-a"
    assert [request.url.host for request in seen] == ["a", "b", "b"]
    assert str(seen[0].url) == "http://a:8000/v1/bandits/b/decide"
    first, again, other = (request.headers["idempotency-key"] for request in seen)
    assert first == again != other


def test_round_by_round(ask: Ask) -> None:
    """Where none answers, all are asked again after a pause, as often as one would be; 429 stays."""
    seen: list[httpx.Request] = []
    answers = [refused(503, "standby"), httpx.ConnectError("no"), refused(429, "busy"), DECIDED]
    assert ask(answers, seen, PAIR).id == "1-a"
    assert [request.url.host for request in seen] == ["a", "b", "a", "a"]
    seen.clear()
    with pytest.raises(ServiceError) as away:
        ask([refused(503, "standby") for _ in range(8)], seen, PAIR)
    assert away.value.code == "standby"
    assert [request.url.host for request in seen] == ["a", "b"] * QUICK.attempts


def test_quarantine_is_final(ask: Ask) -> None:
    """No other attempt, and no other address, makes it better."""
    seen: list[httpx.Request] = []
    with pytest.raises(ServiceError, match="why") as refusal:
        ask([refused(503, "quarantined")], seen, PAIR)
    assert (refusal.value.code, len(seen)) == ("quarantined", 1)


def test_addresses() -> None:
    """One or several, each with its scheme; two requests that fail together leave an address once."""
    addresses = Addresses(("http://a/", "http://b", "http://c"))
    addresses.leave("http://a")
    addresses.leave("http://a")
    assert addresses.current == "http://b"
    assert addresses.timeout(10.0).connect == 2.0
    assert Addresses("http://a").timeout(10.0).connect == 10.0
    for wrong in ([], ["http://a", "b:8000"], [3]):
        with pytest.raises(InputError, match="address"):
            Client(wrong)  # type: ignore[arg-type]


def test_pauses_grow_and_obey() -> None:
    """Doubling with jitter up to the longest, and what the service asks for at least."""
    retries = Retries(first=0.1, most=1.0)
    for attempt in range(1, 12):
        longest = min(1.0, 0.1 * 2 ** (attempt - 1))
        assert all(longest / 2 <= retries.pause(attempt, None) <= longest for _ in range(20))
    asked = httpx.Response(429, headers={"retry-after": "1"})
    assert retries.pause(1, asked) == 1.0
    assert retries.pause(1, httpx.Response(429, headers={"retry-after": "3600"})) == 1.0


def test_an_empty_batch_needs_no_request() -> None:
    """Of rewards or decisions: empty in return, though there is no server; any item does need one."""
    away = "http://127.0.0.1:9"
    with Client(away, retries=Retries(attempts=1)) as client:
        assert client.bandit("b").update_many([]) == client.bandit("b").select_many([]) == []
        with pytest.raises(ServiceError, match="cannot be reached"):
            client.bandit("b").update_many([("1-a", 1.0)])

    async def ask() -> None:
        async with AsyncClient(away, retries=Retries(attempts=1)) as client:
            assert await client.bandit("b").update_many([]) == []
            assert await client.bandit("b").select_many([]) == []
            with pytest.raises(ServiceError, match="cannot be reached"):
                await client.bandit("b").update_many([("1-a", 1.0)])

    asyncio.run(ask())


def test_what_cannot_be_sent() -> None:
    """NaN, names that are no names, things that are not numbers: before anything is sent."""
    with Client("http://127.0.0.1:9", retries=Retries(attempts=1)) as client:
        with pytest.raises(InputError, match="finite"):
            client.bandit("b").select([[float("nan")]])
        with pytest.raises(InputError, match="finite"):
            client.bandit("b").update("1-a", float("inf"))
        with pytest.raises(TypeError, match="a reward must be a number"):
            client.bandit("b").update("1-a", "x")  # type: ignore[arg-type]
        for wrong in (
            lambda: client.bandit("b").add_actions("blue"),
            lambda: client.bandit("b").select_action([1.0], "blue"),
        ):
            with pytest.raises(TypeError, match=r"must be a list, got the string 'blue'; give \['blue'\]"):
                wrong()
        with pytest.raises(TypeError, match="explore is the class Thompson; give an instance: Thompson"):
            client.create("b", 3, explore=sb.Thompson)
        with pytest.raises(InputError, match="the rewards are empty; give"):
            client.bandit("b").update("1-a", {})
        assert repr(client.bandit("b")) == "<Bandit 'b'>"
        with pytest.raises(InputError, match="must begin with http"):
            Client("127.0.0.1:8000")
        with pytest.raises(TypeError, match="cannot be sent"):
            client.bandit("b").select([{"x": object()}])


def test_without_httpx_it_says_what_to_install() -> None:
    """`import sketchbandit_service.client` without the extra is an instruction."""
    code = "import sys; sys.modules['httpx'] = None; import sketchbandit_service.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert how_to_install("client") in done.stderr


def test_the_client_needs_little(tmp_path: Path) -> None:
    """It imports neither the server nor scikit-learn."""
    code = (
        "import sys, sketchbandit_service.client\n"
        "heavy = {'pydantic', 'httptools', 'sqlalchemy', 'sklearn', 'pyarrow', 'pandas', 'numba'}\n"
        "assert not heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_frames_and_unix_times(server: ServerProcess) -> None:
    """A DataFrame is its numbers; a time in nanoseconds is no arm too long."""
    columns = [[1.76e18, 1.77e18], [1, 2], [0.5, 0.1], [1, 0], [0, 1], [3, 4]]
    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)})
    with Client(server.url) as client:
        bandit = client.create("b", DIM)
        for decision in (bandit.select(frame), *bandit.select_many([frame])):
            assert isinstance(decision, Decision)
            assert bandit.update(decision, 1.0) is True


def test_a_token_from_a_file() -> None:
    """The new line at its end is not sent; what is no token is refused, and not shown."""
    assert authorization("abc\n") == {"authorization": "Bearer abc"}
    for odd in ("a b", "a\nb", "ä"):
        with pytest.raises(InputError) as told:
            authorization(odd)
        assert odd not in str(told.value)


@pytest.mark.parametrize("reward", ["1", True, None, b"1"])
def test_a_reward_is_a_number(reward: Any) -> None:
    """As for the service: neither a text that looks like one nor true."""
    with pytest.raises(InputTypeError, match="must be a number"):
        calls._value(reward)
