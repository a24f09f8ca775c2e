"""HTTP over real sockets: what a request is, one after another, and an end in order."""

import http.client
import json
import socket
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit.errors import InputError
from sketchbandit_service.budget import Budget
from sketchbandit_service.http import responses
from sketchbandit_service.http.listening import Listener
from sketchbandit_service.http.request_parser import Reader
from sketchbandit_service.http.responses import head_of, problem_response
from sketchbandit_service.problems import Busy, Unauthorised
from sketchbandit_service.settings import Limits
from tests.service.sockets import (
    BUDGET,
    LIMITS,
    Serving,
    ask,
    error_in,
    read_all,
    read_answer,
    serving,
    until,
)

_UPGRADE = (b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: x")


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


def test_every_answer_has_a_date(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the form of HTTP, refusals and answers without a body too."""
    monkeypatch.setattr(responses, "time", lambda: 1_700_000_000.9)
    for data in (ask(), ask(method=b"HEAD"), ask(b"/none"), ask(b"/forbidden"), b"nonsense\r\n\r\n"):
        assert server.say(data).count(b"\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\n") == 1


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


def test_the_end_does_not_wait_for_who_was_refused(make_loop: Any) -> None:
    """The answer is given, and what such a client still sends is not read."""
    server = Serving(make_loop, replace(LIMITS, request_seconds=60.0), BUDGET)
    head = ask(b"/forbidden", b"content-length: 9", method=b"POST")
    with server.connect() as before, server.connect() as meanwhile:
        before.sendall(head)
        assert read_answer(before)[0] == 403
        meanwhile.sendall(ask(b"/waits", b"content-length: 9", method=b"POST"))
        assert until(lambda: sum(_has_request(found) for found in server.listener._shared.connections) == 2)
        ending = server.do(server.listener.close(60))
        assert read_all(before) == b""
        assert not ending.done()
        meanwhile.sendall(b"x" * 9)
        assert server.application.began.wait(5)
        server.open_gate()
        assert read_answer(meanwhile)[0] == 200
        ending.result(5)
    server.end()


def _has_request(connection: Any) -> bool:
    return connection._request is not None


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
    with pytest.raises(
        InputError, match=rf"cannot listen on 127.0.0.1, port {server.port}.*in use, try --port 0"
    ):
        server.do(other.open("127.0.0.1", server.port)).result(5)
