"""Clients that are slow, send too much, or leave: the others notice nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import pytest

from cirrusmq_local.stack import server
from cirrusmq_local.stack.incoming import BODY_BYTES

TAKEN_BYTES = 4_500_000
"""As base64 it fits into an event of Lambda's, which has at most 6,291,556 bytes."""

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = pytest.mark.alone

SEND = "POST /queues/{queue}/messages"
HEAD = b"POST /queues/a/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def read_all(client: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def read_answer(client: socket.socket) -> bytes:
    """One answer to its end; more may follow it on the connection."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += client.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += client.recv(65_536)
    return head + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "beginning",
    [b"", b"POST /que", HEAD, HEAD + b'content-length: 100\r\n\r\n{"messages"'],
    ids=["nothing", "half a line", "half the headers", "half a body"],
)
def test_two_hundred_slow_connections_hold_up_nobody(
    serve: Any, echo: Any, connect: Any, beginning: bytes
) -> None:
    gateway = serve({SEND: echo})
    for _ in range(200):
        connect(gateway.port).sendall(beginning)
    answered = gateway.client.post("/queues/a/messages", json={}, timeout=2)
    assert answered.status_code == 200


def test_two_hundred_waiting_calls_hold_up_nobody(serve: Any, echo: Any, connect: Any) -> None:
    go_on = threading.Event()
    all_wait = threading.Barrier(201)

    def wait(event: Any, context: Any) -> Any:
        all_wait.wait(20)
        go_on.wait()
        return {"statusCode": 200, "body": "waited"}

    gateway = serve({SEND: echo, "GET /wait": wait})
    clients = [connect(gateway.port) for _ in range(200)]
    for client in clients:
        client.sendall(b"GET /wait HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    all_wait.wait(20)
    assert gateway.client.post("/queues/a/messages", json={}, timeout=2).status_code == 200
    go_on.set()
    assert all(read_all(client).endswith(b"waited") for client in clients)


def test_a_request_without_complete_headers_is_dropped(
    serve: Any, echo: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.2)
    gateway = serve({SEND: echo})
    silent, slow, again = [connect(gateway.port) for _ in range(3)]
    slow.sendall(HEAD)
    again.sendall(HEAD + b"content-length: 2\r\n\r\n{}")
    assert read_answer(again).startswith(b"HTTP/1.1 200")
    again.sendall(HEAD)
    assert [read_all(each) for each in (silent, slow, again)] == [b"", b"", b""]


def test_an_incomplete_body_is_answered(serve: Any, echo: Any, connect: Any) -> None:
    client = connect(serve({SEND: echo}, body_seconds=0.05).port)
    client.sendall(HEAD + b"content-length: 100\r\n\r\n{")
    answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"MalformedRequest" in answer


def test_a_body_of_the_largest_size_is_taken(serve: Any) -> None:
    def measure(event: Any, context: Any) -> Any:
        return {"statusCode": 200, "body": str(len(event["body"]))}

    answered = serve({SEND: measure}).client.post(
        "/queues/a/messages", content=b"a" * TAKEN_BYTES, timeout=20
    )
    assert answered.text == str(TAKEN_BYTES)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_larger_body_is_refused(serve: Any, echo: Any, chunked: bool) -> None:
    body = b"a" * (BODY_BYTES + 1)
    client = serve({SEND: echo}).client
    answered = client.post(
        "/queues/a/messages", content=iter([body]) if chunked else body, timeout=20
    )
    assert answered.status_code == 413
    assert answered.json()["code"] == "RequestTooLarge"
    assert client.post("/queues/a/messages", json={}).status_code == 200


def test_a_body_without_end_is_cut_off(serve: Any, echo: Any, connect: Any) -> None:
    client = connect(serve({SEND: echo}).port)
    client.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
    with contextlib.suppress(ConnectionError):
        for _ in range(200):
            client.sendall(chunk)
        pytest.fail("200 MiB were taken")


def test_a_client_is_told_of_a_too_large_body_before_it_sends_it(
    serve: Any, echo: Any, connect: Any
) -> None:
    client = connect(serve({SEND: echo}).port)
    client.sendall(HEAD + b"content-length: 20000000\r\nexpect: 100-continue\r\n\r\n")
    assert client.recv(65_536).startswith(b"HTTP/1.1 413")


def test_a_client_not_reading_its_answer_holds_up_nobody(
    serve: Any, echo: Any, connect: Any
) -> None:
    def tell_much(event: Any, context: Any) -> Any:
        return {"statusCode": 200, "body": "x" * 6_000_000}

    gateway = serve({SEND: echo, "GET /much": tell_much}, giving_way=[SEND, "GET /much"])
    slow = connect(gateway.port)
    slow.sendall(b"GET /much HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert slow.recv(5) == b"HTTP/"
    assert gateway.client.post("/queues/a/messages", json={}, timeout=2).status_code == 200
    assert read_all(slow).count(b"x" * 1_000) == 6_000


def test_a_leaving_client_harms_nothing(serve: Any, echo: Any) -> None:
    called = threading.Event()
    left = threading.Event()

    def slow(event: Any, context: Any) -> Any:
        called.set()
        left.wait(5)
        return {"statusCode": 200, "body": "x" * 1_000_000}

    gateway = serve({SEND: echo, "GET /slow": slow})
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        assert called.wait(5)
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(HEAD + b"content-length: 100\r\n\r\n{")
    left.set()
    assert gateway.client.post("/queues/a/messages", json={}).status_code == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: " + b"b" * 20_000 + b"\r\n\r\n",
    ],
)
def test_a_malformed_request_is_refused(
    serve: Any, echo: Any, connect: Any, garbage: bytes
) -> None:
    client = connect(serve({"$default": echo}).port)
    client.sendall(garbage)
    assert read_all(client).startswith(b"HTTP/1.1 4")


def test_an_upgrade_not_offered_is_answered_as_a_request(
    serve: Any, echo: Any, connect: Any
) -> None:
    client = connect(serve({"GET /a": echo}).port)
    client.sendall(
        b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
    )
    assert read_all(client).startswith(b"HTTP/1.1 200")
