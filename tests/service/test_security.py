"""Who may do what; limits before allocation; what an answer never tells."""

import asyncio
import http.client
import socket
import stat
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from sketchbandit.errors import InputError
from sketchbandit_service import tokens
from sketchbandit_service.server import is_loopback, serve
from sketchbandit_service.settings import Limits, Settings
from sketchbandit_service.tokens import Tokens
from tests.service.harness import DIM, PLAIN, error_of, in_loop, service
from tests.service.processes import Zygote, free_port


def test_other_hosts_need_a_token(tmp_path: Path) -> None:
    """Nothing listens beyond loopback without a token."""
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):  # noqa: S104  (refused)
        assert not is_loopback(host)
        with pytest.raises(InputError, match="a token is needed"):
            serve(Settings(tmp_path), host=host, port=0)
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not (tmp_path / "journal.sqlite").exists()


def test_token_files(tmp_path: Path) -> None:
    """Hashes only, readable by the owner alone; damaged or empty files are refused."""
    path = tmp_path / "tokens"
    secret = tokens.add(path, "app", "decide")
    other = tokens.add(path, "ops", "admin")
    text = path.read_text(encoding="utf-8")
    assert secret not in text
    assert other not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = Tokens.read(path)
    assert found.scope_of(secret) == "decide"
    assert found.scope_of(other) == "admin"
    assert found.scope_of(secret + "x") is None
    assert found.scope_of("") is None
    with pytest.raises(InputError, match="unknown scope"):
        tokens.add(path, "x", "root")
    with pytest.raises(InputError, match="name"):
        tokens.add(path, "two words", "read")
    path.write_text(text.rstrip("\n"), encoding="utf-8")
    third = tokens.add(path, "third", "read")
    assert Tokens.read(path).scope_of(third) == "read"
    assert Tokens.read(path).scope_of(other) == "admin"
    path.write_text("# nothing\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="no token"):
        Tokens.read(path)
    path.write_text("app decide abc\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1"):
        Tokens.read(path)
    with pytest.raises(InputError, match="cannot read"):
        Tokens.read(tmp_path / "absent")


@in_loop
async def test_scopes(tmp_path: Path) -> None:
    """read looks, decide decides, admin does all; without a token only whether it is alive."""
    path = tmp_path / "tokens"
    secrets = {scope: tokens.add(path, scope, scope) for scope in tokens.SCOPES}
    known = Tokens.read(path)
    ladder = ["read", "decide", "admin"]
    requests = [
        ("GET", "/v1/bandits", "read"),
        ("GET", "/v1/bandits/b/stats", "read"),
        ("GET", "/metrics", "read"),
        ("POST", "/v1/bandits/b/decide", "decide"),
        ("POST", "/v1/bandits/b/reward", "decide"),
        ("POST", "/v1/bandits/b/decide/batch", "decide"),
        ("PUT", "/v1/bandits/b/arms", "decide"),
        ("DELETE", "/v1/bandits/b/arms/x", "decide"),
        ("DELETE", "/v1/bandits/arms", "admin"),
        ("PUT", "/v1/bandits/reward", "admin"),
        ("PUT", "/v1/bandits/new", "admin"),
        ("DELETE", "/v1/bandits/b", "admin"),
        ("POST", "/v1/other", "admin"),
    ]
    async with service(tmp_path / "state", tokens=known, token=secrets["admin"]) as found:
        await found.create()
        for method, url, needed in requests:
            for scope, secret in [*secrets.items(), ("none", "wrong"), ("none", "")]:
                answer = await found.http.request(
                    method, url, json={}, headers={"authorization": f"Bearer {secret}"}
                )
                if scope == "none":
                    assert error_of(answer)[0] == 401
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif ladder.index(scope) < ladder.index(needed):
                    assert error_of(answer)[0] == 403
                else:
                    assert answer.status_code not in (401, 403)
            if method == "DELETE":
                await found.create()
        plain = httpx.AsyncClient(transport=found.http._transport, base_url="http://anywhere")
        for url in ("/", "/healthz", "/readyz", "/dashboard.js"):
            assert (await plain.get(url)).status_code == 200
        assert (await plain.get("/v1/bandits")).status_code == 401
        assert (await plain.get("/v1/bandits", headers={"authorization": "Basic x"})).status_code == 401


@in_loop
async def test_without_tokens_only_this_machine_s_names(tmp_path: Path) -> None:
    """A foreign name that points here (DNS rebinding) and a form of another page are refused."""
    async with service(tmp_path) as found:
        await found.create()
        for host in ("localhost", "localhost:8000", "127.0.0.1:80", "[::1]:8000", "[::1]"):
            assert (await found.http.get("/v1/bandits", headers={"host": host})).status_code == 200
        for host in ("evil.example", "evil.example:8000", "localhost.evil", ""):
            assert error_of(await found.http.get("/v1/bandits", headers={"host": host}))[0] == 403
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = await found.http.post(
                "/v1/bandits/b/decide", content=b'{"arms": [[1,0,0,0]]}', headers={"content-type": kind}
            )
            assert error_of(answer)[0] == 415


@in_loop
async def test_headers(tmp_path: Path) -> None:
    """The page may load nothing from elsewhere and be framed by nobody; answers are not cached or guessed."""
    async with service(tmp_path) as found:
        page = await found.http.get("/")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert "http" not in page.text.replace("http://127.0.0.1:8000", "")  # no external assets
        for answer in (page, await found.http.get("/v1/bandits"), await found.http.get("/nothing")):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"


@in_loop
async def test_an_error_inside_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 without a trace; the log has it."""
    async with service(tmp_path) as found:
        await found.create(**PLAIN)

        def break_down(*_: object, **__: object) -> None:
            raise RuntimeError("secret detail")

        monkeypatch.setattr(found.engine.bandit("b").policy, "rank", break_down)
        answer = await found.decide()
        assert error_of(answer) == (500, "internal error; the log of the server says what went wrong")
        assert "secret" not in answer.text
        monkeypatch.undo()
        assert (await found.decide()).status_code == 200


@in_loop
async def test_a_body_is_limited_while_it_arrives(tmp_path: Path) -> None:
    """By what it says, and by what it is."""
    async with service(tmp_path, limits=Limits(body_bytes=1000)) as found:
        await found.create()
        headers = {"content-type": "application/json"}
        answer = await found.http.post("/v1/bandits/b/decide", content=b"x" * 1001, headers=headers)
        assert error_of(answer)[0] == 413
        sent = 0

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(1000):
                sent += 100
                yield b"x" * 100

        answer = await found.http.post("/v1/bandits/b/decide", content=pieces(), headers=headers)
        assert error_of(answer)[0] == 413
        assert sent <= 1200


@in_loop
async def test_large_bodies_at_once_are_bounded(tmp_path: Path) -> None:
    """Together they may not take more than a bound; afterwards there is room again."""
    async with service(tmp_path, limits=Limits(request_bytes=30_000)) as found:
        await found.create()
        gate = asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b'{"arms": [[1, 0, 0, 0]], "top": 1'
            yield b" " * 20_000
            await gate.wait()
            yield b"}"

        async def ask() -> httpx.Response:
            headers = {"content-type": "application/json"}
            return await found.http.post("/v1/bandits/b/decide", content=slowly(), headers=headers)

        tasks = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(0.1)
        gate.set()
        assert sorted([(await task).status_code for task in tasks]) == [200, 429, 429]
        assert found.engine.budget.taken == 0
        assert (await ask()).status_code == 200


def test_a_body_of_100_mb(tmp_path: Path, forge: Zygote) -> None:
    """Refused before it is read; the client that sends it all the same hears so, and memory does not grow."""
    port = free_port()
    server = forge.start(tmp_path / "state", port)
    httpx.put(f"{server.url}/v1/bandits/b", json={"dim": DIM}).raise_for_status()
    before = resident(server.pid)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("POST", "/v1/bandits/b/decide")
    connection.putheader("content-type", "application/json")
    connection.putheader("content-length", str(100_000_000))
    connection.endheaders()
    for _ in range(100):
        connection.send(b"x" * 1_000_000)
    answer = connection.getresponse()
    assert answer.status == 413
    answer.read()
    connection.close()
    assert resident(server.pid) - before < 20_000_000
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    server.stop()


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_a_slow_loris(tmp_path: Path, forge: Zygote) -> None:
    """Connections that say nothing, or a byte at a time, are closed; others are served meanwhile."""
    port = free_port()
    server = forge.start(tmp_path / "state", port, extra="{'limits': Limits(request_seconds=0.7)}")
    with ExitStack() as connections:
        silent = [connections.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(20)]
        slow = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
        slow_body = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
        slow_body.sendall(
            b"PUT /v1/bandits/b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 1000\r\n\r\n"
        )
        started = time.monotonic()
        for byte in b"GET /healthz HTTP/1.1\r\nhost: loc":
            try:
                slow.sendall(bytes([byte]))
                slow_body.sendall(b" ")
            except OSError:
                break
            assert httpx.get(f"{server.url}/healthz").status_code == 200
            time.sleep(0.05)
        for connection in (*silent, slow, slow_body):
            connection.settimeout(5)
            with suppress(ConnectionResetError):  # as good
                assert connection.recv(100) == b""
        assert time.monotonic() - started < 5
    server.stop()


def test_endless_headers(tmp_path: Path, forge: Zygote) -> None:
    """Refused after 64 KiB."""
    port = free_port()
    server = forge.start(tmp_path / "state", port)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
        with suppress(OSError):
            for number in range(200):
                connection.sendall(b"x-%d: %s\r\n" % (number, b"a" * 1000))
        with suppress(ConnectionResetError):
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012
            for _ in range(100):
                connection.sendall(b"x" * 1000)
                time.sleep(0.01)
    assert httpx.get(f"{server.url}/healthz", headers={"x": "a" * 20_000}).status_code == 200
    server.stop()


def test_endless_trailers(tmp_path: Path, forge: Zygote) -> None:
    """What follows a chunked body is bounded like the headers."""
    port = free_port()
    server = forge.start(tmp_path / "state", port)
    httpx.put(f"{server.url}/v1/bandits/b", json={"dim": DIM}).raise_for_status()
    before = resident(server.pid)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/bandits/b/decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        )
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012
            for number in range(100_000):
                connection.sendall(b"x-%d: %s\r\n" % (number, b"a" * 1000))
    assert resident(server.pid) - before < 20_000_000
    server.stop()


@in_loop
async def test_what_requests_make_is_bounded_too(tmp_path: Path) -> None:
    """A small body that asks for much memory, by stored arms that are logged: the sum is known beforehand."""
    async with service(tmp_path, limits=Limits(request_bytes=1_000_000)) as found:
        await found.http.put("/v1/bandits/b", json={"dim": 100, "log_arms": True})
        arms = {str(i): {"a": 1.0} for i in range(300)} | {"x": [1.0] * 100}
        put = await found.http.put("/v1/bandits/b/arms", json={"arms": arms})
        assert put.json() == {"count": 301}
        await found.http.put("/v1/bandits/b/arms", json={"arms": {str(i): [1.0] * 100 for i in range(100)}})
        for count, status in ((50, 413), (5, 200)):
            batch: dict[str, Any] = {"decisions": [{}] * count}
            answer = await found.http.post("/v1/bandits/b/decide/batch", json=batch)
            assert answer.status_code == status, answer.text
        assert (
            "all requests together have 1,000,000"
            in error_of(await found.http.post("/v1/bandits/b/decide/batch", json={"decisions": [{}] * 50}))[1]
        )
        assert (await found.stats())["decisions"] == 5
        assert found.engine.budget.taken == 0


def test_connections_are_bounded(tmp_path: Path, forge: Zygote) -> None:
    """One more than the limit hears 429; when one goes, there is room."""
    port = free_port()
    server = forge.start(tmp_path / "state", port, extra="{'limits': Limits(connections=3)}")
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    time.sleep(0.1)
    assert httpx.get(f"{server.url}/healthz").status_code == 429
    held.pop().close()
    time.sleep(0.1)
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    for connection in held:
        connection.close()
    server.stop()


def test_shutdown_drains(tmp_path: Path, forge: Zygote) -> None:
    """Requests under way when SIGTERM comes are answered; then a snapshot holds everything."""
    port = free_port()
    server = forge.start(tmp_path / "state", port)

    async def run() -> list[int]:
        async with httpx.AsyncClient(base_url=server.url, limits=httpx.Limits(max_connections=20)) as client:
            await client.put("/v1/bandits/b", json={"dim": DIM})
            arms = {"arms": np.eye(DIM).tolist()}
            asked = [asyncio.create_task(client.post("/v1/bandits/b/decide", json=arms)) for _ in range(20)]
            await asyncio.sleep(0.02)
            await asyncio.to_thread(server.stop)
            answers = await asyncio.gather(*asked, return_exceptions=True)
            return [answer.status_code for answer in answers if isinstance(answer, httpx.Response)]

    statuses = asyncio.run(run())
    assert statuses
    assert set(statuses) <= {200, 503}
    again = forge.start(tmp_path / "state", free_port())
    stats = httpx.get(f"{again.url}/v1/bandits/b/stats").json()
    assert stats["decisions"] == statuses.count(200)
    again.stop()
