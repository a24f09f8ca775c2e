"""What is answered: the memory and time it takes, to HEAD, to pages of other sites, as it is described."""

import asyncio
import json
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sketchbandit.errors import InputError
from sketchbandit_service import pacing
from sketchbandit_service.api import prices
from sketchbandit_service.api.answers import decision_answer, written, written_list
from sketchbandit_service.api.app import Api
from sketchbandit_service.api.request_models import storable
from sketchbandit_service.choosing import Ranking, ranking_json
from sketchbandit_service.logs import visible
from sketchbandit_service.offered import ArmSet
from sketchbandit_service.pacing import Pace, politely
from tests.service.harness import DIM, PLAIN, in_loop, service

LONGEST = "\N{GRINNING FACE}" * 120
"""Of an id, less some digits."""


def ranking_of(count: int) -> Ranking:
    """Made up."""
    numbers = np.linspace(1.0, 0.1, count)
    return Ranking(
        np.arange(count)[::-1].copy(), numbers, numbers, numbers, np.where(numbers > 0.5, 1.0, 0.0)
    )


# -- beside the event loop ----------------------------------------------------------------------------------


def asleep(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was slept, without any time going by."""
    slept: list[float] = []
    monkeypatch.setattr(pacing, "_STRETCH", 0.0)
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def test_nobody_sleeps_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranking of many slices that is written there holds nobody up; in a thread it lets others go first."""
    slept = asleep(monkeypatch)
    ranking, offered = ranking_of(1500), ArmSet(np.zeros((1500, 1)), None)

    async def on_the_loop() -> str:
        return ranking_json(ranking, offered)

    told = asyncio.run(on_the_loop())
    assert not slept
    assert ranking_json(ranking, offered) == told
    assert slept


def test_work_is_counted_in_the_thread_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests make a pace on the event loop's thread, which has worked for as long as the server."""
    slept, pace = asleep(monkeypatch), Pace()
    clock = iter((1000.0, 1000.5, 1001.0))
    monkeypatch.setattr(time, "thread_time", lambda: next(clock, 1001.0))
    thread = threading.Thread(target=lambda: [*politely(range(2), pace)])
    thread.start()
    thread.join()
    assert slept == [0.5]


# -- memory -------------------------------------------------------------------------------------------------


def test_a_ranking_as_json() -> None:
    """What it says; a probability that is not known is null; ids are as they are."""
    ids = ["a", '"quoted"\\', LONGEST]
    told = json.loads(ranking_json(ranking_of(3), ArmSet(np.zeros((3, 1)), ids)))
    assert [one["position"] for one in told] == [0, 1, 2]
    assert [(one["index"], one["arm"]) for one in told] == [(2, ids[2]), (1, ids[1]), (0, ids[0])]
    assert (
        [one["score"] for one in told] == [one["mean"] for one in told] == np.linspace(1.0, 0.1, 3).tolist()
    )
    assert [one["propensity"] for one in told] == [1.0, 1.0, None]
    assert json.loads(ranking_json(ranking_of(1), ArmSet(np.zeros((1, 1)), None)))[0]["arm"] is None


def test_answers_are_utf_8() -> None:
    """An id takes the bytes of its characters, not three times as many; half of a pair is escaped."""
    assert written({"arm": "é😀"}) == '{"arm":"é😀"}'.encode()
    assert written({"arm": "\ud800"}) == b'{"arm":"\\ud800"}'
    assert len(ranking_json(ranking_of(1), ArmSet(np.zeros((1, 1)), [LONGEST])).encode()) < 4 * 120 + 150


@in_loop
async def test_the_longest_ids_are_paid_for(tmp_path: Path) -> None:
    """Of all characters those that take most: lists and rankings of them stay within their price."""
    count = 5000
    async with service(tmp_path) as found:
        await found.create(**PLAIN)
        for start in range(0, count, 2500):
            arms = {f"{i}{LONGEST}": [1.0] * DIM for i in range(start, start + 2500)}
            assert (await found.http.put("/v1/bandits/b/arms", json={"arms": arms})).is_success
        bandit = found.engine.bandit("b")
        ids, offered = bandit.arms.ids(), bandit.arms.choose_from(None)

        async def listed() -> bytes:
            return b"%b" % await written_list(found.engine, ids)

        async def ranked() -> bytes:
            decided = await found.engine.decisions.decide(bandit, offered, top=count, key="k", request="r")
            return decision_answer(bandit, decided)

        longest = bandit.longest_id
        costs = ((listed, prices.listing(count, longest)), (ranked, prices.ranking(count, count, longest)))
        for make, price in costs:
            tracemalloc.start()
            told = await make()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert LONGEST.encode() in told
            assert peak < price + 1_000_000


# -- HEAD, other sites, names -------------------------------------------------------------------------------


@in_loop
async def test_head_wherever_there_is_get(tmp_path: Path) -> None:
    """The same headers, for pages too; what takes no GET takes no HEAD."""
    async with service(tmp_path) as found:
        await found.create()
        await found.http.put("/v1/bandits/b/candidates/c", json={})
        described = (await found.http.get("/openapi.json")).json()["paths"]
        paths = [
            path.format(name="b", candidate="c") for path, methods in described.items() if "get" in methods
        ]
        for path in ("/", "/docs", "/openapi.json", "/dashboard.js", *paths):
            get, head = await found.http.get(path), await found.http.head(path)
            assert (head.status_code, head.content) == (get.status_code, b"")
            assert head.headers["content-type"] == get.headers["content-type"]
        refused = await found.http.head("/v1/bandits/b/decide")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        assert (await found.http.post("/")).headers["allow"] == "GET, HEAD"


@in_loop
async def test_an_origin_is_what_browsers_send(tmp_path: Path) -> None:
    """Another one would never be found, and nobody would know why."""
    async with service(tmp_path) as found:
        for good in ("https://shop.example", "http://localhost:5173", "http://[::1]:8080", "http://10.0.0.1"):
            Api(found.engine, cors=[good])
        for bad in (
            "https://shop.example/",
            "https://shop.example/path",
            "shop.example",
            "https://Shop.example",
            "https://shop.example:443",
            "http://shop.example:80",
            "https://",
            "null",
            "https://*.example",
            "",
        ):
            with pytest.raises(InputError, match=r"such as https://shop\.example"):
                Api(found.engine, cors=["https://other.example", bad])


@in_loop
async def test_the_description_says_what_is_answered(tmp_path: Path) -> None:
    """The largest top that a query can have; a bad query anywhere; more stored arms than can be listed."""
    async with service(tmp_path) as found:
        described: dict[str, Any] = (await found.http.get("/openapi.json")).json()["paths"]
        for methods in described.values():
            for operation in methods.values():
                assert "400" in operation["responses"]
        assert "413" in described["/v1/bandits/{name}/arms"]["get"]["responses"]
        decide = described["/v1/bandits/{name}/decide"]["post"]
        (top,) = [one["schema"] for one in decide["parameters"] if one["name"] == "top"]
        await found.create()
        for value, says in (
            (top["maximum"], "but there are"),
            (top["maximum"] + 1, "must be a whole number"),
        ):
            answer = await found.http.post(f"/v1/bandits/b/decide?top={value}", json={"arms": [[1.0] * DIM]})
            assert (answer.status_code, says in answer.text) == (422, True)


@pytest.mark.parametrize("code", [0x00, 0x85, 0x061C, 0x200E, 0x2028, 0x2029, 0x202E, 0x2069, 0xD800])
def test_what_logs_escape_no_name_has(code: int) -> None:
    """One list of characters that are not seen, or make a line look like another."""
    assert visible(chr(code)).startswith("\\")
    with pytest.raises(ValueError, match="control characters"):
        storable(f"a{chr(code)}b")
    assert storable("a\u2027b") == "a\u2027b"
