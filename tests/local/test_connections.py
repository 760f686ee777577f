"""What HTTP/1.1 promises a client on its connection."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.local.test_bad_clients import read_all, read_answer

SEND = "POST /queues/{queue}/messages"
GET = b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /queues/a/messages HTTP/1.1\r\nhost: x\r\n"


def tell_path(event: Any, context: Any) -> Any:
    return {"statusCode": 200, "body": event["rawPath"]}


def tell_size(event: Any, context: Any) -> Any:
    return {"statusCode": 200, "body": str(len(event.get("body", "")))}


def test_pipelined_requests_are_answered_in_their_order(serve: Any, connect: Any) -> None:
    client = connect(serve({"$default": tell_path}).port)
    client.sendall(GET % b"a" + GET % b"b" + b"GET /c HTT")
    client.sendall(b"P/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    answers = read_all(client).split(b"HTTP/1.1 200 OK\r\n")
    assert [each[-2:] for each in answers[1:]] == [b"/a", b"/b", b"/c"]


def test_requests_before_a_malformed_one_are_answered(serve: Any, connect: Any) -> None:
    client = connect(serve({"$default": tell_path}).port)
    client.sendall(GET % b"a" + b"nonsense\r\n\r\n")
    answers = read_all(client)
    assert answers.index(b"HTTP/1.1 200") < answers.index(b"/a") < answers.index(b"HTTP/1.1 400")


def test_a_connection_goes_on_after_a_pause(serve: Any, connect: Any) -> None:
    gateway = serve({"$default": tell_path})
    client = connect(gateway.port)
    for _ in range(2):
        client.sendall(GET % b"a")
        assert read_answer_of(client) == b"/a"
        wait_until(lambda: not gateway.busy)


def test_gone_clients_are_forgotten(serve: Any) -> None:
    gateway = serve({"$default": tell_path})
    for number in range(3):
        with socket.create_connection(("127.0.0.1", gateway.port)) as client:
            client.sendall(GET % b"a")
            assert read_answer_of(client) == b"/a"
            if number:  # it does not say goodbye
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: gateway.connected == 0)


def test_a_client_of_http_1_0_is_answered_and_left(serve: Any, connect: Any) -> None:
    client = connect(serve({"$default": tell_path}).port)
    client.sendall(b"GET /old HTTP/1.0\r\n\r\n")
    answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(b"/old")


def test_a_client_asking_to_send_its_body_is_told_to_continue(serve: Any, connect: Any) -> None:
    client = connect(serve({SEND: tell_size}).port)
    client.sendall(POST + b"content-length: 3\r\nexpect: 100-continue\r\n\r\n")
    assert client.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"abc")
    assert read_answer_of(client) == b"3"


def test_a_body_in_chunks_arrives_whole_and_its_trailer_is_no_header(
    serve: Any, echo: Any, connect: Any
) -> None:
    client = connect(serve({SEND: echo}).port)
    client.sendall(POST + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
    client.sendall(b"4\r\ndefg\r\n0\r\nauthorization: of a trailer\r\n\r\n")
    event = json.loads(read_answer_of(client))
    assert event["body"] == "abcdefg"
    assert "of a trailer" not in event["headers"].values()


def test_a_request_may_name_its_host_in_the_first_line(serve: Any, connect: Any) -> None:
    client = connect(serve({"$default": tell_path}).port)
    client.sendall(b"GET http://a.example/b?c HTTP/1.1\r\nhost: a.example\r\n\r\n")
    assert read_answer_of(client) == b"/b"


def test_headers_beyond_the_apis_limit_are_refused(serve: Any, echo: Any, connect: Any) -> None:
    client = connect(serve({SEND: echo}).port)
    client.sendall(POST + b"long: " + b"x" * 10_240 + b"\r\n\r\n")
    answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"MalformedRequest" in answer


@pytest.mark.parametrize("header", [("a", "b\r\nset-cookie: c=d"), ("a b", "c"), ("a\r\nb", "c")])
def test_a_malformed_response_header_fails_the_call(
    serve: Any, caplog: pytest.LogCaptureFixture, header: tuple[str, str]
) -> None:
    def handler(event: Any, context: Any) -> Any:
        return {"statusCode": 200, "headers": dict([header])}

    answered = serve({"GET /a": handler}).client.get("/a")
    assert answered.status_code == 500
    assert answered.headers["content-type"] == "application/problem+json"
    assert "set-cookie" not in answered.headers
    assert "not a header" in caplog.text


def test_a_call_ending_after_its_answer_sends_nothing_more(serve: Any, connect: Any) -> None:
    go_on = threading.Event()

    def wait(event: Any, context: Any) -> Any:
        go_on.wait(20)
        return {"statusCode": 200, "body": "too late"}

    gateway = serve({"$default": wait}, call_seconds=0.05)
    client = connect(gateway.port)
    client.sendall(GET % b"a" + GET % b"b")
    answer = read_all(client)
    go_on.set()
    assert answer.count(b"HTTP/1.1 503") == answer.count(b"HTTP/1.1 ") == 1


def read_answer_of(client: socket.socket) -> bytes:
    """The body of the next answer."""
    head, _, body = read_answer(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    return body


def wait_until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not holds():
        pause.wait(0.01)
