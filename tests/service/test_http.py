"""HTTP over real sockets: one request after another, limits, and clients that mean no good."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from typing import Any, cast

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit.errors import InputError
from sketchbandit.service.budget import Budget
from sketchbandit.service.http.listening import Listener
from sketchbandit.service.http.messages import Request, Response
from sketchbandit.service.http.reading import Reader
from sketchbandit.service.http.responses import head_of, problem_response
from sketchbandit.service.problems import Busy, Forbidden, Unauthorised
from sketchbandit.service.settings import Limits

LIMITS = Limits(body_bytes=100_000, header_bytes=4096, connections=20, request_seconds=0.4)
BUDGET = 400_000
_UPGRADE = (b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: x")


class Application:
    """Tells what it was asked, or does what the path says."""

    def __init__(self) -> None:
        self.gate: asyncio.Event | None = None
        self.began = threading.Event()
        self.finished = 0

    def admit(self, request: Request) -> Response | None:
        """All but one path."""
        if request.path == "/admit-fails":
            raise RuntimeError("secret detail")
        return problem_response(Forbidden("not you")) if request.path == "/forbidden" else None

    async def answer(self, request: Request) -> Response:
        """What was asked, as JSON."""
        if request.path == "/long":
            return Response(200, b"x" * int(request.query["bytes"]), "text/plain")
        if request.path == "/fails":
            raise RuntimeError("secret detail")
        if request.path == "/none":
            return Response(204, headers={"x-odd": "a\r\nset-cookie: b"})
        if request.path == "/waits":
            self.gate = self.gate or asyncio.Event()
            self.began.set()
            await self.gate.wait()
            self.finished += 1
        told = {"method": request.method, "path": request.path, "query": request.query}
        return Response(
            200,
            json.dumps({**told, "headers": request.headers, "body": request.body.decode("latin-1")}).encode(),
        )


class Serving:
    """A server in a thread of its own."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop], limits: Limits, most: int) -> None:
        self.application = Application()
        self.budget = Budget(most)
        self.listener = Listener(self.application, limits, self.budget)
        self.loop = make_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.port = self.do(self.listener.open("127.0.0.1", 0)).result(10)

    def do(self, work: Any) -> futures.Future[Any]:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def open_gate(self) -> None:
        """Let those that wait go on."""
        assert self.application.gate is not None
        self.loop.call_soon_threadsafe(self.application.gate.set)

    def end(self, seconds: float = 0.0) -> None:
        """Stop in order."""
        self.do(self.listener.close(seconds)).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def say(self, data: bytes) -> bytes:
        """All that comes back for these bytes, after which the client sends no more."""
        with self.connect() as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def is_free(self) -> bool:
        """Whether nothing is charged any more, or soon."""
        return until(lambda: self.budget.taken == 0)


def until(is_so: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_so()


def read_all(client: socket.socket) -> bytes:
    """Up to the end."""
    found = b""
    with suppress(ConnectionResetError):
        while data := client.recv(65536):
            found += data
    return found


def read_answer(client: socket.socket) -> tuple[int, bytes, bytes]:
    """Status, head and body of one answer."""
    found = b""
    while b"\r\n\r\n" not in found:
        data = client.recv(65536)
        assert data, found
        found += data
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length:
        body += client.recv(65536)
    assert len(body) == length
    return int(head[9:12]), head, body


def ask(path: bytes = b"/", *headers: bytes, method: bytes = b"GET", body: bytes | None = None) -> bytes:
    """The bytes of a request."""
    lines = [method + b" " + path + b" HTTP/1.1", b"host: localhost", *headers]
    if body is not None:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body or b""])


def error_in(answer: bytes) -> dict[str, str]:
    """The documented shape."""
    error: dict[str, str] = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert set(error) == {"code", "message"}
    assert b"connection: close" in answer
    return error


@contextmanager
def serving(make_loop: Any, limits: Limits = LIMITS, most: int = BUDGET) -> Iterator[Serving]:
    """A server for one test; nothing of it may stay behind."""
    made = Serving(make_loop, limits, most)
    try:
        yield made
    finally:
        made.end()
    assert made.budget.taken == 0


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def make_loop(request: pytest.FixtureRequest) -> Any:
    """Both event loops."""
    return request.param


@pytest.fixture
def server(make_loop: Any) -> Iterator[Serving]:
    """A server with small limits."""
    with serving(make_loop) as made:
        yield made


# -- requests ----------------------------------------------------------------------------------------------


def test_what_the_application_is_told(server: Serving) -> None:
    """Path and query are decoded, names of headers are in lower case, the last of two parameters counts."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    client.request("POST", "/a%20b/%C3%A9?x=1&x=2+3&y=", b"body", {"X-Thing": "Some\xe9", "Accept": "a"})
    answer = client.getresponse()
    told = json.loads(answer.read())
    assert (told["method"], told["path"], told["query"]) == ("POST", "/a b/é", {"x": "2 3", "y": ""})
    assert (told["headers"]["x-thing"], told["body"]) == ("Some\xe9", "body")
    assert (answer.getheader("x-content-type-options"), answer.getheader("cache-control")) == (
        "nosniff",
        "no-store",
    )
    assert answer.getheader("content-type") == "application/json"
    client.request("GET", "/again")  # on the same connection
    assert json.loads(client.getresponse().read())["path"] == "/again"
    client.close()
    for target in (b"http://localhost/p?q=1", b"/p?q=1#there"):
        told = json.loads(server.say(ask(target)).partition(b"\r\n\r\n")[2])
        assert (told["path"], told["query"]) == ("/p", {"q": "1"})


def test_repeated_headers_are_a_list(server: Serving) -> None:
    """As HTTP says; so that one cannot be hidden behind another."""
    told = json.loads(server.say(ask(b"/", b"x-a: 1", b"X-A: 2")).partition(b"\r\n\r\n")[2])
    assert told["headers"]["x-a"] == "1, 2"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_bytes_may_come_in_any_pieces(make_loop: Any, size: int) -> None:
    """Heads, bodies, chunks and the empty line between them are cut anywhere."""
    chunked = (
        ask(b"/c", b"transfer-encoding: chunked", method=b"PUT")
        + b"2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nx-t: 1\r\n\r\n"
    )
    with serving(make_loop) as server, server.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data, body in ((ask(b"/b", method=b"POST", body=b"hello"), "hello"), (chunked, "abcde")):
            for at in range(0, len(data), size):
                client.sendall(data[at : at + size])
            status, _, told = read_answer(client)
            assert (status, json.loads(told)["body"]) == (200, body)
            assert "x-t" not in json.loads(told)["headers"]  # a trailer is no header


@given(
    st.lists(st.tuples(st.booleans(), st.binary(max_size=20)), min_size=1, max_size=4),
    st.lists(st.integers(0, 600)),
)
def test_requests_do_not_depend_on_the_cuts(bodies: list[tuple[bool, bytes]], cuts: list[int]) -> None:
    """Wherever a stream is cut, the same requests come out of it, and none takes a byte of the next."""
    stream = b"".join(
        ask(b"/%d" % number, *_UPGRADE * upgrade, method=b"PUT", body=body)
        for number, (upgrade, body) in enumerate(bodies)
    )
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader, found = Reader(Limits()), []
    for start, end in pairwise(places):
        data, at = stream[start:end], 0
        while at < len(data):
            at = reader.feed(data, at)
            if reader.is_complete:
                request = reader.request(Budget(1).open(), "")
                found.append((request.path, reader.take_body()))
                reader.restart()
    assert found == [(f"/{number}", body) for number, (_, body) in enumerate(bodies)]


def test_pipelined_requests_are_answered_in_order(server: Serving) -> None:
    """One at a time, whatever their number, with bodies or refused."""
    asked = [
        *(ask(b"/%d" % number) for number in range(50)),
        *(ask(b"/forbidden", method=b"POST", body=b"x" * 100) for _ in range(50)),
        *(ask(b"/%d" % number, method=b"POST", body=b"y" * 1000) for number in range(50, 100)),
    ]
    with server.connect() as client:
        client.sendall(b"\r\n".join(asked))  # an empty line between requests is passed over
        client.shutdown(socket.SHUT_WR)
        answers = read_all(client).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200"] * 50 + [b"403"] * 50 + [b"200"] * 50
    paths = [
        json.loads(answer.partition(b"\r\n\r\n")[2])["path"] for answer in answers if answer[:3] == b"200"
    ]
    assert paths == [f"/{number}" for number in range(100)]


def test_what_follows_a_chunked_body_at_once_is_not_answered(server: Serving) -> None:
    """Where it begins is not known: the connection ends, and says so."""
    data = ask(b"/", b"transfer-encoding: chunked", method=b"POST") + b"1\r\na\r\n0\r\n\r\n" + ask(b"/second")
    answer = server.say(data)
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


def test_the_connection_ends_when_the_client_wants(server: Serving) -> None:
    """``Connection: close``, HTTP/1.0, and a client that sends no more but still listens."""
    for data in (
        ask(b"/", b"connection: close") * 2,
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
    ):
        with server.connect() as client:
            client.sendall(data)
            answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.count(b"connection: close") == answer.count(b"HTTP/1.1") == 1
    assert server.say(ask()).startswith(b"HTTP/1.1 200")


def test_head_and_answers_without_a_body(server: Serving) -> None:
    """HEAD has the length of what GET would give; 204 has none; a value cannot begin another header."""
    with server.connect() as client:
        client.sendall(
            ask(b"/long?bytes=9", method=b"HEAD") + ask(b"/none") + ask(b"/last", b"connection: close")
        )
        first, second, third = read_all(client).split(b"HTTP/1.1 ")[1:]
    assert b"content-length: 9\r\n" in first
    assert first.endswith(b"\r\n\r\n")
    assert second.startswith(b"204 No Content\r\n")
    assert b"content-length" not in second
    assert b"x-odd: a  set-cookie: b\r\n" in second
    assert third.startswith(b"200")


def test_expect_continue(server: Serving) -> None:
    """The body is asked for if the head is taken, and never if it is refused."""
    expect = (b"expect: 100-continue", b"content-length: 5")
    with server.connect() as client:
        client.sendall(ask(b"/", *expect, method=b"POST"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert json.loads(read_answer(client)[2])["body"] == "hello"
        client.sendall(ask(b"/", expect[0], b"transfer-encoding: chunked", method=b"POST"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for byte in b"1\r\na\r\n0\r\n\r\n":
            client.sendall(bytes([byte]))
            time.sleep(0.001)
        assert json.loads(read_answer(client)[2])["body"] == "a"  # asked for once
    for path, length, status in ((b"/forbidden", 5, b"403"), (b"/", 100_001, b"413")):
        with server.connect() as client:
            client.sendall(ask(path, expect[0], b"content-length: %d" % length, method=b"POST"))
            answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert error_in(answer)


def test_an_upgrade_is_not_given(server: Serving) -> None:
    """The request is answered as it is, with its body, as clients that would rather speak HTTP/2 expect."""
    with server.connect() as client:
        for path in (b"/first", b"/second"):
            client.sendall(ask(path, *_UPGRADE, method=b"POST", body=b"GET / HTTP/1.1\r\n\r\n"))
            status, _, told = read_answer(client)
            assert (status, json.loads(told)["body"]) == (200, "GET / HTTP/1.1\r\n\r\n")
    answers = server.say(ask(b"/third", *_UPGRADE) + ask(b"/fourth")).split(b"HTTP/1.1 200")
    paths = [json.loads(answer.partition(b"\r\n\r\n")[2])["path"] for answer in answers[1:]]
    assert paths == ["/third", "/fourth"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",  # TLS
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\nhost: a\n\n",
        b"GET / HTTP/2.0\r\nhost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ask(b"/", b"Host: other"),
        ask(b"/", b"authorization: a", b"authorization: b"),
        ask(b"/", b"content-length: 5", b"content-length: 5", method=b"POST") + b"hello",
        ask(b"/", b"content-length: 5", b"transfer-encoding: chunked", method=b"POST") + b"0\r\n\r\n",
        ask(b"/", b"transfer-encoding: gzip, chunked", method=b"POST") + b"0\r\n\r\n",
        ask(b"/", b"transfer-encoding: gzip", method=b"POST"),
        ask(b"/", b"transfer-encoding: chunked", method=b"POST") + b"zz\r\n",
        ask(b"/", b"content-length: -5", method=b"POST"),
        ask(b"/", b"connection: upgrade", b"upgrade: a", b"transfer-encoding: chunked") + b"0\r\n\r\n",
        ask(b"/", b" folded: 1"),
        ask(b"/", b"x : 1"),
        ask(b"/%ff"),
        ask(b"/?a=%ff"),
        ask(b"/?" + b"&".join(b"a%d=" % number for number in range(101))),
        ask(b"/", *(b"x-%d: 1" % number for number in range(101))),
        ask(b"localhost:80", method=b"CONNECT"),
        ask(b"nowhere"),
    ],
)
def test_what_is_no_request(data: bytes) -> None:
    """400 in the documented shape, and the end of the connection."""
    with serving(uvloop.new_event_loop) as server, server.connect() as client:
        client.sendall(data)
        answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert error_in(answer)["code"] == "malformed"


def test_errors_inside_tell_nothing(server: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """500 without a trace; the log has it; the connection goes on."""
    with server.connect() as client:
        client.sendall(ask(b"/fails"))
        status, _, body = read_answer(client)
        assert (status, json.loads(body)["error"]["code"]) == (500, "internal")
        assert b"secret" not in body
        client.sendall(ask(b"/admit-fails"))
        assert read_answer(client)[0] == 500
    assert "secret detail" in caplog.text


def test_problems_as_answers() -> None:
    """Their status, their shape, and the headers that belong to them."""
    busy = problem_response(Busy("a moment: \ud800"))
    assert (busy.status, busy.headers) == (429, {"retry-after": "1"})
    assert json.loads(busy.body)["error"] == {"code": "busy", "message": "a moment: \ud800"}
    assert b"\r\nwww-authenticate: Bearer\r\n" in head_of(
        problem_response(Unauthorised("who?")), is_last=False
    )


# -- limits ------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_long(server: Serving) -> None:
    """By what it says, before any of it is read; by what it is; who sends it all the same hears so."""
    with server.connect() as client:
        client.sendall(ask(b"/", b"content-length: 100001", method=b"POST"))
        answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 413")
        assert "send fewer arms" in error_in(answer)["message"]
    stubborn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    stubborn.request("POST", "/", b"x" * 10_000_000)
    assert stubborn.getresponse().status == 413
    stubborn.close()
    with server.connect() as client:
        client.sendall(ask(b"/", b"transfer-encoding: chunked", method=b"POST"))
        for _ in range(11):
            client.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        assert read_answer(client)[0] == 413
    assert server.is_free()
    with server.connect() as client:
        client.sendall(ask(b"/", method=b"POST", body=b"x" * 100_000))
        assert read_answer(client)[0] == 200


def test_bodies_share_a_budget(make_loop: Any) -> None:
    """What others hold is charged as it arrives: 429 for now, and room again when they have gone."""
    with serving(make_loop, most=150_000) as server, ExitStack() as opened:
        half = opened.enter_context(server.connect())
        half.sendall(ask(b"/", b"content-length: 100000", method=b"POST") + b"x" * 90_000)
        assert until(lambda: server.budget.taken == 90_000)
        with server.connect() as client:
            client.sendall(ask(b"/", method=b"POST", body=b"x" * 90_000))
            status, head, body = read_answer(client)
            assert (status, json.loads(body)["error"]["code"]) == (429, "busy")
            assert b"retry-after: 1" in head
        half.sendall(b"x" * 10_000)
        assert read_answer(half)[0] == 200
        assert server.is_free()


def test_answers_that_nobody_reads_are_bounded(make_loop: Any) -> None:
    """They are charged until their last byte has left, and given up where nobody takes them."""
    length, most = 20_000_000, 50_000_000  # beyond what the system keeps for a socket
    with serving(make_loop, most=most) as server, ExitStack() as opened:
        connections = cast("set[Any]", server.listener._shared.connections)
        clients = [opened.enter_context(server.connect()) for _ in range(8)]
        assert until(lambda: len(connections) == 8)
        for client in clients:
            client.sendall(ask(b"/long?bytes=%d" % length) * 5)
        kept = [0]

        def are_all_gone() -> bool:
            kept.append(sum(found._transport.get_write_buffer_size() for found in list(connections)))
            return not connections

        assert until(are_all_gone)
        assert length / 2 < max(kept) <= most
        assert sorted(client.recv(12)[9:] for client in clients) == [b"200"] * 2 + [b"429"] * 6
        assert server.is_free()
        client = opened.enter_context(server.connect())
        client.sendall(ask(b"/long?bytes=%d" % (most + 1)))
        status, _, body = read_answer(client)
        assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")


def test_a_long_answer_arrives_whole(server: Serving) -> None:
    """Also for a client that begins to read late, and then asks for more."""
    with server.connect() as client:
        for _ in range(3):
            client.sendall(ask(b"/long?bytes=399999"))
            time.sleep(0.05)
            status, _, body = read_answer(client)
            assert (status, body) == (200, b"x" * 399_999)


def test_who_reads_slowly_but_reads_gets_everything(make_loop: Any) -> None:
    """For longer than a client may be silent."""
    length = 20_000_000
    with serving(make_loop, most=length) as server, server.connect() as client:
        client.sendall(ask(b"/long?bytes=%d" % length, b"connection: close"))
        started, count = time.monotonic(), 0
        while data := client.recv(500_000):
            count += len(data)
            time.sleep(0.02)
        assert count > length
        assert time.monotonic() - started > 2 * LIMITS.request_seconds


def test_slow_clients_are_closed(server: Serving) -> None:
    """Who says nothing, or a byte at a time, in the head or in the body; others are served meanwhile."""
    with ExitStack() as opened:
        silent, head, body, loose = (opened.enter_context(server.connect()) for _ in range(4))
        body.sendall(ask(b"/", b"content-length: 1000", method=b"POST"))
        loose.sendall(ask(b"/", b"transfer-encoding: chunked", method=b"POST"))
        started = time.monotonic()
        for byte in ask(b"/" + b"a" * 100):
            with suppress(OSError):
                head.sendall(bytes([byte]))
                body.sendall(b" ")
                loose.sendall(b"1\r\na\r\n")
            assert server.say(ask()).startswith(b"HTTP/1.1 200")
            time.sleep(0.01)
        for client in (silent, head, body, loose):
            assert read_all(client) == b""
        assert time.monotonic() - started < 4
    assert server.is_free()


@pytest.mark.parametrize("start", [ask()[:-2], ask(b"/", b"transfer-encoding: chunked") + b"1\r\na\r\n0\r\n"])
def test_endless_headers_and_trailers(make_loop: Any, start: bytes) -> None:
    """Refused after so many bytes; who goes on is cut off."""
    with serving(make_loop) as server, server.connect() as client:
        client.sendall(start)
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012
            for number in range(1_000_000):
                client.sendall(b"x-%d: %s\r\n" % (number, b"a" * 1000))
        assert read_all(client)[:12] in (b"HTTP/1.1 400", b"")  # unless the reset has swept it away


def test_connections_are_bounded(make_loop: Any) -> None:
    """One more than the limit hears 429; when one goes, there is room."""
    with serving(make_loop, Limits(connections=3)) as server, ExitStack() as opened:
        held = [opened.enter_context(server.connect()) for _ in range(3)]
        assert until(lambda: len(server.listener._shared.connections) == 3)
        with server.connect() as client:
            answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 429")
        assert error_in(answer)["code"] == "busy"
        held.pop().close()
        assert until(lambda: len(server.listener._shared.connections) == 2)
        assert server.say(ask()).startswith(b"HTTP/1.1 200")


def test_what_comes_too_early_is_bounded(make_loop: Any) -> None:
    """While a request is worked on no more is read than once, and that is charged."""
    with serving(make_loop) as server, server.connect() as client:
        client.sendall(ask(b"/waits") + ask(b"/next"))
        assert server.application.began.wait(5)
        client.settimeout(0.3)
        with pytest.raises(OSError, match=r"timed out|reset|pipe"):  # noqa: PT012
            for _ in range(1000):
                client.sendall(b"x" * 100_000)
        assert server.budget.taken <= BUDGET
        server.open_gate()
    assert server.application.finished == 1


# -- the end -----------------------------------------------------------------------------------------------


def test_a_client_that_goes_does_not_stop_its_request(server: Serving) -> None:
    """It is finished, for it may be in the journal already; what it held is given back."""
    with server.connect() as client:
        client.sendall(ask(b"/waits", method=b"POST", body=b"x" * 50_000))
        assert server.application.began.wait(5)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
    assert until(lambda: bool(server.listener._shared.orphans))
    assert server.budget.taken == 50_000
    server.open_gate()
    assert until(lambda: server.application.finished == 1)
    assert server.is_free()


def test_the_end_waits_for_requests_under_way(make_loop: Any) -> None:
    """Idle connections are closed, nobody new gets in, what is under way is answered, and then no more."""
    server = Serving(make_loop, LIMITS, BUDGET)
    with server.connect() as idle, server.connect() as busy:
        idle.sendall(ask())
        read_answer(idle)
        busy.sendall(ask(b"/waits") + ask(b"/next"))
        assert server.application.began.wait(5)
        ending = server.do(server.listener.close(5))
        assert read_all(idle) == b""
        with pytest.raises(ConnectionRefusedError):
            server.connect()
        assert not ending.done()
        server.open_gate()
        answer = read_all(busy)
        assert (answer[:12], answer.count(b"HTTP/1.1"), b"connection: close" in answer) == (
            b"HTTP/1.1 200",
            1,
            True,
        )
        ending.result(5)
    server.end()
    assert server.budget.taken == 0


@pytest.mark.parametrize("is_hurried", [False, True])
def test_the_end_does_not_wait_for_ever(make_loop: Any, is_hurried: bool) -> None:
    """After so many seconds, or a second signal, what is under way is cut off."""
    server = Serving(make_loop, LIMITS, BUDGET)
    with server.connect() as client:
        client.sendall(ask(b"/waits"))
        assert server.application.began.wait(5)
        started = time.monotonic()
        if is_hurried:
            server.loop.call_soon_threadsafe(server.listener.hurry)
        server.end(60 if is_hurried else 0.1)
        assert time.monotonic() - started < 5
        assert read_all(client) == b""
    assert (server.application.finished, server.budget.taken) == (0, 0)


def test_an_address_in_use(server: Serving) -> None:
    """A message that names it."""
    other = Listener(server.application, LIMITS, server.budget)
    with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1, port {server.port}.*is it in use"):
        server.do(other.open("127.0.0.1", server.port)).result(5)
