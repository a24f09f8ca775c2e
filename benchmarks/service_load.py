"""How many decisions and rewards a second the service takes, durably, and how long each waits.

Server and clients share this machine: a server process, and one process of clients that speaks HTTP over
plain sockets with requests made beforehand, so that the clients cost as little as they can.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np

from benchmarks.service_process import Server


@dataclass
class Load:
    """What the clients saw."""

    seconds: float = 0.0
    pairs: int = 0
    latencies: list[float] = field(default_factory=list)
    refused: int = 0
    """Answers 429."""
    failed: int = 0
    """Any other answer but 200."""

    def percentile(self, q: float) -> float:
        """Milliseconds."""
        return 1e3 * float(np.percentile(self.latencies, q)) if self.latencies else float("nan")


def bodies(dim: int, arms: int, count: int = 64) -> list[bytes]:
    """JSON requests with random arms of length one."""
    random = np.random.default_rng(0)
    made = []
    for _ in range(count):
        matrix = random.standard_normal((arms, dim))
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        made.append(json.dumps({"arms": matrix.tolist()}).encode())
    return made


def request(method: str, path: str, body: bytes, host: str) -> bytes:
    """The bytes of an HTTP request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


class Connection(asyncio.Protocol):
    """One keep-alive connection: send a request, await (status, body)."""

    def __init__(self) -> None:
        self._buffer = b""
        self._future: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Some of an answer."""
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(rest) >= length and self._future is not None:
            self._buffer = rest[length:]
            future, self._future = self._future, None
            future.set_result((int(head[9:12]), rest[:length]))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has gone."""
        if self._future is not None and not self._future.done():
            self._future.set_exception(ConnectionResetError(str(exc)))

    async def send(self, payload: bytes) -> tuple[int, bytes]:
        """The answer to one request."""
        self._future = asyncio.get_running_loop().create_future()
        self._transport.write(payload)
        return await self._future


async def drive(
    url: str, name: str, *, connections: int, seconds: float, dim: int, arms: int, rewarded: float = 1.0
) -> Load:
    """Pairs of decide and reward, one after another on every connection."""
    parts = urlsplit(url)
    host = parts.netloc
    decides = [request("POST", f"/v1/bandits/{name}/decide", body, host) for body in bodies(dim, arms)]
    load = Load()
    loop = asyncio.get_running_loop()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        _, connection = await loop.create_connection(Connection, *_address(url))
        random = np.random.default_rng(number)
        while (started := time.perf_counter()) < end:
            status, answer = await connection.send(decides[int(random.integers(len(decides)))])
            load.latencies.append(time.perf_counter() - started)
            if status != 200:
                load.refused += status == 429
                load.failed += status != 429
                await asyncio.sleep(0.01)
                continue
            if random.random() >= rewarded:
                continue
            decision = answer[13 : answer.index(b'"', 13)].decode()
            body = b'{"decision":"%s","reward":%d}' % (decision.encode(), random.integers(2))
            started = time.perf_counter()
            status, _ = await connection.send(request("POST", f"/v1/bandits/{name}/reward", body, host))
            load.latencies.append(time.perf_counter() - started)
            load.pairs += status == 200
            load.refused += status == 429
            load.failed += status not in (200, 429)

    started = time.perf_counter()
    await asyncio.gather(*map(client, range(connections)))
    load.seconds = time.perf_counter() - started
    return load


async def create(url: str, name: str, settings: dict[str, object]) -> None:
    """PUT a bandit."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(Connection, *_address(url))
    body = json.dumps(settings).encode()
    status, answer = await connection.send(request("PUT", f"/v1/bandits/{name}", body, parts.netloc))
    assert status in (200, 201), answer
    transport.close()


async def rounds(url: str, name: str) -> int:
    """How many rewards a bandit has learned from."""
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(Connection, *_address(url))
    asked = request("GET", f"/v1/bandits/{name}/stats", b"", urlsplit(url).netloc)
    status, answer = await connection.send(asked)
    assert status == 200, answer
    transport.close()
    return int(json.loads(answer)["rounds"])


def measure(
    *,
    database: str | None = None,
    connections: int = 32,
    seconds: float = 10.0,
    dim: int = 64,
    arms: int = 10,
) -> Load:
    """Start a server, warm it up, and drive it."""
    with Server(database=database) as server:

        async def run() -> Load:
            await create(server.url, "load", {"dim": dim})
            options = {"connections": connections, "dim": dim, "arms": arms}
            before = await drive(server.url, "load", seconds=2.0, **options)
            load = await drive(server.url, "load", seconds=seconds, **options)
            learned = await rounds(server.url, "load")
            assert learned == before.pairs + load.pairs, "what was acknowledged is not what was learned"
            return load

        return asyncio.run(run())


def main() -> None:
    """Print what the issue of the day is: pairs a second and how long a request waits."""
    load = measure()
    assert not load.failed, f"{load.failed} requests failed"
    print(
        f"{load.pairs / load.seconds:,.0f} pairs of decide and reward a second (SQLite, 32 connections, "
        f"d = 64, K = 10, JSON); a request takes {load.percentile(50):.1f} ms in the median, "
        f"{load.percentile(99):.1f} ms at p99"
    )


if __name__ == "__main__":
    main()
