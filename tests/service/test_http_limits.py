"""Clients that send or keep too much, or take too long: each is bounded, and the others are served."""

import gc
import http.client
import json
import math
import socket
import time
import weakref
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from sketchbandit_service.budget import SMALL, Budget, Charge, NeverFits
from sketchbandit_service.http.shared import State
from sketchbandit_service.problems import Busy
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


def test_a_client_that_goes_leaves_nothing_for_the_garbage_collector(server: Serving) -> None:
    """A connection and what came of its request go at once: many can come before the collector does."""
    connections = cast("set[Any]", server.listener._shared.connections)
    gc.disable()
    try:
        with server.connect() as client:
            client.sendall(ask(b"/", b"content-length: 100000", method=b"POST") + b"x" * 90_000)
            assert until(lambda: server.budget.taken == 90_000)
            (connection,) = connections
            left = [weakref.ref(connection), weakref.ref(connection._reader)]
            del connection
        assert until(lambda: [ref() for ref in left] == [None, None])
    finally:
        gc.enable()


def test_the_beginning_of_a_long_body_takes_no_room_from_short_ones(server: Serving) -> None:
    """What is kept for ordinary requests goes by what a request says that it will send."""
    budget = Budget(64 * 2**20)
    other, short, long = (budget.open() for _ in range(3))
    other.add(budget.most)
    short.expected, long.expected = 10_000, 8_000_000
    short.add(10_000)
    with pytest.raises(Busy):
        long.add(10_000)
    connections = cast("set[Any]", server.listener._shared.connections)
    for header, expected in ((b"content-length: 90000", 90_000.0), (b"transfer-encoding: chunked", math.inf)):
        with server.connect() as client:
            client.sendall(ask(b"/", header, method=b"POST"))
            assert until(lambda: [one._charge.expected for one in connections] == [expected])  # noqa: B023
        assert until(lambda: not connections)


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


def test_what_is_done_is_answered(make_loop: Any) -> None:
    """However much others hold: a 429 would be sent again. So are short answers; long ones are to be read."""
    length = 300_000
    with serving(make_loop) as server, server.connect() as client:
        other = server.budget.open()
        other.add(BUDGET)
        for method, path in ((b"POST", b"/long?bytes=%d" % length), (b"GET", b"/"), (b"PUT", b"/")):
            client.sendall(ask(path, method=method))
            assert read_answer(client)[0] == 200
        client.sendall(ask(b"/long?bytes=%d" % length))
        assert read_answer(client)[0] == 429
        other.release()
        assert server.is_free()


def test_a_charge_becomes_that_of_the_answer() -> None:
    """In one step, so that nobody gets in between; less is never refused, and no more than was held is."""
    budget = Budget(1_000_000)
    charge, other = budget.open(), budget.open()
    charge.add(600_000)
    other.add(400_000)
    charge.become(500_000, is_done=False)
    assert (charge.held, budget.taken) == (500_000, 900_000)
    with pytest.raises(Busy):
        charge.become(600_001, is_done=False)
    with pytest.raises(NeverFits):
        charge.become(1_000_001, is_done=False)
    assert (charge.held, budget.taken) == (500_000, 900_000)
    charge.become(2_000_000, is_done=True)
    assert (charge.held, budget.taken) == (2_000_000, 2_400_000)
    with pytest.raises(Busy):
        other.add(1)
    other.become(SMALL, is_done=False)
    charge.release()
    other.release()
    assert budget.taken == 0


def test_a_charge_is_added_to_by_threads() -> None:
    """What it holds is read where nobody else can change it."""

    class Watched(Charge):
        @property
        def held(self) -> int:
            assert self._budget.lock.locked()
            return self._held

        @held.setter
        def held(self, count: int) -> None:
            self._held = count

    charge = Watched(Budget(10))
    charge.add(4)
    charge.add(5)
    assert charge._budget.taken == 9


def test_who_sends_no_more_while_the_answer_leaves(make_loop: Any) -> None:
    """The connection ends with that answer."""
    length = 20_000_000  # beyond what the system keeps for a socket
    limits = replace(LIMITS, request_seconds=60.0)
    with serving(make_loop, limits, most=2 * length) as server, server.connect() as client:
        client.sendall(ask(b"/long?bytes=%d" % length))
        connections = cast("set[Any]", server.listener._shared.connections)
        assert until(lambda: [found._state for found in connections] == [State.SENDING])
        (connection,) = connections
        client.shutdown(socket.SHUT_WR)
        assert until(lambda: connection._has_ended)
        assert len(read_all(client)) > length


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


def test_large_requests_leave_room_for_ordinary_ones() -> None:
    """What large ones may take is less than all; a small one that comes then is served."""
    budget = Budget(80_000_000)
    large, small, another = budget.open(), budget.open(), budget.open()
    large.add(80_000_000)
    with pytest.raises(Busy):
        another.add(1_000_000)
    small.add(100_000)
    with pytest.raises(Busy):
        small.add(1_000_000)
    with pytest.raises(NeverFits, match="80,000,000"):
        another.add(80_000_001)
    assert (small.held, budget.taken) == (100_000, 80_100_000)
