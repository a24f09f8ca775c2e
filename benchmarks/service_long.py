"""Requests that keep a bandit busy for seconds: what they need beforehand, and the requests themselves."""

import asyncio
import json
import time
from collections import Counter
from urllib.parse import urlsplit

import numpy as np

from benchmarks.service_http import Connection, call, connect, create, request

AS_THEY_ARE = {"scaling": None, "intercept": False}
_SLATE = 1000
_LONG = 1.1e6
"""So long an arm that the inverse is derived anew: beyond 10^6 times the root of the ridge."""


class Long:
    """One bandit, asked one long thing after another on a connection of its own."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.seconds: list[float] = []
        """That each took."""
        self.statuses: Counter[int] = Counter()
        self._is_over = False

    async def post(self, connection: Connection, what: str, body: bytes) -> tuple[int, bytes]:
        """A request that may take as long as it wants."""
        path = f"/v1/bandits/{self.name}/{what}"
        return await connection.send(request("POST", path, body, urlsplit(self.url).netloc))

    async def run(self) -> None:
        """Ask until told to stop."""
        connection = await connect(self.url)
        while not self._is_over:
            started = time.perf_counter()
            status, _ = await self.ask(connection, len(self.seconds))
            self.seconds.append(time.perf_counter() - started)
            self.statuses[status] += 1
            if status != 200:
                await asyncio.sleep(0.05)
        connection.transport.close()

    def stop(self) -> None:
        """After the one under way."""
        self._is_over = True

    async def prepare(self) -> None:
        """What has to be there before."""
        raise NotImplementedError

    async def ask(self, connection: Connection, number: int) -> tuple[int, bytes]:
        """The long thing."""
        raise NotImplementedError


class Rebuilds(Long):
    """Rewards of very long arms: each derives the inverse of an exact policy anew."""

    def __init__(self, url: str, dim: int = 9000) -> None:
        super().__init__(url, "rebuilds")
        self._dim = dim

    async def prepare(self) -> None:
        """Learn from half as many arms as there are dimensions: then the inverse is a dense matrix."""
        settings = {"dim": self._dim, "policy": "oful", "slates": True, "max_open": 1000}
        await create(self.url, self.name, settings)
        for start in range(0, self._dim // 2 + 1, _SLATE):
            arms = [{"indices": [start + place], "values": [1.0]} for place in range(_SLATE)]
            decide = {"arms": arms, "top": _SLATE}
            status, answer = await call(self.url, "POST", f"/v1/bandits/{self.name}/decide", decide)
            assert status == 200, answer
            rewards = [{"position": place, "reward": 1.0} for place in range(_SLATE)]
            reward = {"decision": answer["decision"], "rewards": rewards}
            status, answer = await call(self.url, "POST", f"/v1/bandits/{self.name}/reward", reward)
            assert status == 200, answer

    async def ask(self, connection: Connection, number: int) -> tuple[int, bytes]:
        """A decision, and its reward."""
        arms = [{"indices": [number % self._dim], "values": [_LONG]}]
        status, answer = await self.post(connection, "decide", json.dumps({"arms": arms}).encode())
        if status != 200:
            return status, answer
        reward = {"decision": json.loads(answer)["decision"], "reward": 1.0}
        return await self.post(connection, "reward", json.dumps(reward).encode())


class ManyArms(Long):
    """Decisions among 100,000 sparse arms, then 100,000 named ones, in bodies of many megabytes."""

    def __init__(self, url: str, arms: int = 100_000, dim: int = 1000) -> None:
        super().__init__(url, "many")
        self._dim = dim
        random = np.random.default_rng(0)
        columns, values = random.integers(dim, size=(arms, 4)), random.random((arms, 4)).round(6)
        sparse = [
            {"indices": sorted(set(row.tolist())), "values": value[: len(set(row.tolist()))].tolist()}
            for row, value in zip(columns, values, strict=True)
        ]
        named = [
            {"user": "7", "city": f"c{row[0]}", "brand": f"b{row[1]}", "price": float(value[0])}
            for row, value in zip(columns, values, strict=True)
        ]
        self._bodies = [json.dumps({"arms": made}).encode() for made in (sparse, named)]

    async def prepare(self) -> None:
        """The bandit."""
        await create(self.url, self.name, {"dim": self._dim, "explore": "ucb", "parameters": AS_THEY_ARE})

    async def ask(self, connection: Connection, number: int) -> tuple[int, bytes]:
        """Sparse and named in turns."""
        return await self.post(connection, "decide", self._bodies[number % 2])


class RankAll(Long):
    """All of 50,000 stored arms with 500 features, ranked."""

    def __init__(self, url: str, arms: int = 50_000, dim: int = 500) -> None:
        super().__init__(url, "ranked")
        self._arms, self._dim = arms, dim

    async def prepare(self) -> None:
        """Store the arms, some thousands a request."""
        await create(self.url, self.name, {"dim": self._dim, "explore": "ucb", "parameters": AS_THEY_ARE})
        await store(self.url, self.name, self._arms, self._dim)

    async def ask(self, connection: Connection, number: int) -> tuple[int, bytes]:
        """One ranking."""
        del number
        return await self.post(connection, "decide", json.dumps({"top": self._arms}).encode())


async def store(url: str, name: str, arms: int, dim: int) -> None:
    """Arms ``a0``, ``a1``, ... of small whole numbers, in bodies of some megabytes."""
    random = np.random.default_rng(1)
    at_once = max(1, 2_000_000 // dim)
    for start in range(0, arms, at_once):
        some = random.integers(-9, 10, size=(min(at_once, arms - start), dim)).tolist()
        body = {"arms": {f"a{start + place}": row for place, row in enumerate(some)}}
        status, answer = await call(url, "PUT", f"/v1/bandits/{name}/arms", body)
        assert status == 200, answer
