"""Clients that mean no good, or know no better. Each asks for as long as it is let."""

import asyncio
import io
import json
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache
from multiprocessing.connection import Connection as Pipe
from urllib.parse import urlsplit

import numpy as np

from benchmarks.service_http import JSON, address, request

STORED = 100_000
"""Arms of the bandit ``stock``; ``shop`` has 64 dimensions."""
_MIB = 1024 * 1024
_NPY = "application/x-npy"
_SLICE = 256 * 1024
_PATIENCE = 60.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Attacker:
    """One connection after another to a server, and a tally of what was answered."""

    def __init__(self, url: str, tally: Counter[tuple[str, int]]) -> None:
        self._url = url
        self.host = urlsplit(url).netloc
        self._tally = tally

    async def repeat(self, attack: Callable[["Attacker"], Awaitable[int]]) -> None:
        """Attack for ever; what was answered is counted, 0 where the connection was closed."""
        while True:
            try:
                status = await asyncio.wait_for(attack(self), _PATIENCE)
            except (OSError, EOFError, TimeoutError):
                status = 0
            self._tally[attack.__name__, status] += 1
            await asyncio.sleep(0.05)

    async def connect(self, buffer: int = 0) -> Streams:
        """A connection, with a small buffer for those that do not read."""
        sock = socket.socket()
        sock.setblocking(False)
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        await asyncio.get_running_loop().sock_connect(sock, address(self._url))
        return await asyncio.open_connection(sock=sock, limit=buffer or 65536)

    async def ask(self, method: str, path: str, body: bytes, content_type: str = JSON) -> int:
        """The status of an answer; its body is read and forgotten."""
        reader, writer = await self.connect()
        try:
            await self.send(writer, request(method, f"/v1/bandits/{path}", body, self.host, content_type))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            left = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            while left > 0 and (some := await reader.read(_SLICE)):
                left -= len(some)
            return int(head[9:12])
        finally:
            writer.close()

    async def send(self, writer: asyncio.StreamWriter, payload: bytes) -> None:
        """As fast as it is taken, a slice at a time."""
        view = memoryview(payload)
        for start in range(0, len(payload), _SLICE):
            writer.write(view[start : start + _SLICE])
            await writer.drain()

    async def send_some(self, payload: bytes, then: float, buffer: int = 0) -> int:
        """Send, and then neither send nor read."""
        _, writer = await self.connect(buffer)
        try:
            await self.send(writer, payload)
            await asyncio.sleep(then)
        finally:
            writer.transport.abort()
        return 0


async def rank_all_twenty_times(attacker: Attacker) -> int:
    """355 bytes that ask for two million places."""
    body = json.dumps({"decisions": [{"top": STORED}] * 20}).encode()
    return await attacker.ask("POST", "stock/decide/batch", body)


async def name_one_twice(attacker: Attacker) -> int:
    """All stored arms by id, one of them twice."""
    return await attacker.ask("POST", "stock/decide", all_and_one_twice())


async def project_one_number(attacker: Attacker) -> int:
    """One feature, projected to 26 million, and a decision by that."""
    settings = {"dim": 1, "policy": "cbrap", "parameters": {"size": 26_000_000}}
    if (status := await attacker.ask("PUT", "wide", json.dumps(settings).encode())) in (200, 201):
        await attacker.ask("POST", "wide/decide", b'{"arms": [[1.0], [2.0]]}')
        await attacker.ask("DELETE", "wide", b"")
    return status


async def never_read(attacker: Attacker) -> int:
    """Ask for a large answer, and leave it there."""
    asked = request("POST", "/v1/bandits/stock/decide", b'{"top": %d}' % STORED, attacker.host)
    return await attacker.send_some(asked, _PATIENCE / 2, buffer=4096)


async def trickle(attacker: Attacker) -> int:
    """A byte of a header a second."""
    _, writer = await attacker.connect()
    try:
        for byte in b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"y" * 100:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1.0)
    finally:
        writer.transport.abort()
    return 0


async def send_much(attacker: Attacker) -> int:
    """As large bodies as are taken, and a larger one."""
    for body in large_bodies():
        status = await attacker.ask("POST", "shop/decide", body)
    return status


async def send_half(attacker: Attacker) -> int:
    """Half of a large body, and no more."""
    return await attacker.send_some(half_request(attacker.host), _PATIENCE / 2)


async def send_odd_arrays(attacker: Attacker) -> int:
    """Matrices whose head lies; the last status."""
    status = 0
    for body in odd_arrays():
        status = await attacker.ask("POST", "shop/decide", body, _NPY)
    return status


async def send_deep(attacker: Attacker) -> int:
    """JSON that is deep, or has endless numbers; the last status."""
    status = 0
    for body in (b"[" * 1_000_000, b'{"arms":' * 200_000, b'{"arms": [[' + b"9" * _MIB + b"]]}", b"\xff\xfe"):
        status = await attacker.ask("POST", "shop/decide", body)
    return status


async def stay(attacker: Attacker) -> int:
    """Connect, and say nothing."""
    return await attacker.send_some(b"", _PATIENCE / 2)


@cache
def large_bodies() -> tuple[bytes, ...]:
    """100,000 named arms; one long text; one byte after another."""
    arms = b",".join(b'{"%0100d": 1}' % number for number in range(STORED))
    text = b'{"arms": "' + b"x" * (16 * _MIB - 100) + b'"}'
    return b'{"arms": [' + arms + b"]}", text, b"x" * (17 * _MIB)


@cache
def half_request(host: str) -> bytes:
    """Half of the bytes that its head promises."""
    return request("POST", "/v1/bandits/shop/decide", b" " * (16 * _MIB), host)[: 8 * _MIB]


@cache
def all_and_one_twice() -> bytes:
    """The ids of the stored arms, as many as there are."""
    return json.dumps({"arms": [*(f"a{number}" for number in range(STORED - 1)), "a0"]}).encode()


@cache
def odd_arrays() -> list[bytes]:
    """The npy format with heads that are wrong, absurd or none."""
    whole = io.BytesIO()
    np.save(whole, np.ones((4, 64)))
    good = whole.getvalue()
    heads = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 64), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (4, 64), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (4, 64), }",
        "{'descr': '<U1000000', 'fortran_order': False, 'shape': (4, 64), }",
        "{'descr': '<m8[as]', 'fortran_order': 1, 'shape': (4.0, True), }",
        "(" * 5000,
        "{'descr': '<f8'}",
    ]
    made = [
        b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(2048) for head in heads
    ]
    return [
        *made,
        good[:6] + b"\x09\x09" + good[8:],
        good[:40],
        good[:-8],
        good[:6] + b"\x02\x00" + b"\xff" * 64,
    ]


ATTACKS: dict[Callable[[Attacker], Awaitable[int]], int] = {
    rank_all_twenty_times: 5,
    name_one_twice: 5,
    project_one_number: 5,
    never_read: 100,
    trickle: 300,
    send_much: 20,
    send_half: 100,
    send_odd_arrays: 10,
    send_deep: 10,
    stay: 385,
}
"""How many connections each has."""


def attack(pipe: Pipe, url: str, after: float) -> None:
    """All of them at once, after so many seconds, in a process of their own, until the pipe has something."""
    tally: Counter[tuple[str, int]] = Counter()

    async def run() -> None:
        pipe.send("begun")
        await asyncio.sleep(after)
        tasks = [
            asyncio.create_task(Attacker(url, tally).repeat(one))
            for one, count in ATTACKS.items()
            for _ in range(count)
        ]
        while not pipe.poll():
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()

    asyncio.run(run())
    pipe.send(tally)
