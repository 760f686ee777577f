from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.functions import CALL_THREADS
from cirrusmq_local.stack.gateway import GIVING_WAY_BYTES

SEND = "POST /queues/{queue}/messages"


def test_a_request_becomes_the_event_of_an_http_api(
    serve: Any, echo: Any, clock: ScaledClock
) -> None:
    event = (
        serve({SEND: echo})
        .client.post(
            "/queues/or%3Aders/messages?a=1&a=2&empty=",
            content=b'{"messages": []}',
            headers={
                "content-type": "application/json",
                "Authorization": "Bearer k:s",
                "cookie": "one=1; two=2",
                "user-agent": "test",
            },
        )
        .json()
    )
    assert event["version"] == "2.0"
    assert event["routeKey"] == SEND
    assert event["rawPath"] == "/queues/or:ders/messages"
    assert event["rawQueryString"] == "a=1&a=2&empty="
    assert event["queryStringParameters"] == {"a": "1,2", "empty": ""}
    assert event["pathParameters"] == {"queue": "or:ders"}
    assert event["headers"]["authorization"] == "Bearer k:s"
    assert event["cookies"] == ["one=1", "two=2"]
    assert (event["body"], event["isBase64Encoded"]) == ('{"messages": []}', False)
    context = event["requestContext"]
    assert context["http"] == {
        "method": "POST",
        "path": "/queues/or:ders/messages",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "test",
    }
    assert context["routeKey"] == SEND
    assert context["stage"] == "$default"
    assert context["timeEpoch"] == clock.now_ms()


def test_a_request_without_a_body_has_none_in_its_event(serve: Any, echo: Any) -> None:
    event = serve({"GET /queues": echo}).client.get("/queues").json()
    assert "body" not in event
    assert "queryStringParameters" not in event
    assert "pathParameters" not in event


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/octet-stream", b"plain"), ("application/json", b"\xff\xfe")],
)
def test_a_binary_body_travels_in_base64(
    serve: Any, echo: Any, content_type: str, body: bytes
) -> None:
    event = (
        serve({SEND: echo})
        .client.post("/queues/a/messages", content=body, headers={"content-type": content_type})
        .json()
    )
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == body


def test_an_answer_is_sent_as_the_function_gives_it(serve: Any) -> None:
    def handler(event: Any, context: Any) -> Any:
        return {
            "statusCode": 201,
            "headers": {"Content-Type": "image/png", "x-own": "1"},
            "cookies": ["a=1"],
            "body": base64.b64encode(b"\x89PNG").decode(),
            "isBase64Encoded": True,
        }

    answered = serve({"GET /picture": handler}).client.get("/picture")
    assert answered.status_code == 201
    assert answered.content == b"\x89PNG"
    assert answered.headers["content-type"] == "image/png"
    assert answered.headers["x-own"] == "1"
    assert answered.headers["set-cookie"] == "a=1"


def test_an_answer_without_content_has_no_body(serve: Any) -> None:
    client = serve({"DELETE /a": lambda event, context: {"statusCode": 204}}).client
    answered = client.delete("/a")
    assert (answered.status_code, answered.content) == (204, b"")
    assert client.delete("/a").status_code == 204


def test_the_date_is_the_stacks_own(
    serve: Any, echo: Any, clock: ScaledClock, hand_time: Any
) -> None:
    client = serve({"GET /a": echo}).client
    hand_time.seconds += 86_400
    date = parsedate_to_datetime(client.get("/a").headers["date"])
    assert int(date.timestamp()) == clock.now_ms() // 1_000


def test_a_request_for_no_route_goes_to_the_default(serve: Any, echo: Any) -> None:
    client = serve({"$default": echo, "GET /a": echo}).client
    assert client.get("/b").json()["routeKey"] == "$default"
    assert client.put("/a").json()["routeKey"] == "$default"
    assert client.options("/a").json()["routeKey"] == "$default"
    headed = client.head("/a")
    assert (headed.status_code, headed.content) == (200, b"")
    assert client.get("/a").status_code == 200


@pytest.mark.parametrize("giving_way", [(), ("GET /a",)])
def test_a_failing_function_is_answered_and_logged_and_fails_its_own_call_alone(
    serve: Any, caplog: pytest.LogCaptureFixture, giving_way: Any
) -> None:
    def handler(event: Any, context: Any) -> Any:
        raise ValueError("a fault")

    client = serve({"GET /a": handler}, giving_way=giving_way).client
    answered = client.get("/a")
    assert (answered.status_code, client.get("/a").status_code) == (500, 500)
    assert answered.headers["content-type"] == "application/problem+json"
    assert "a fault" not in answered.text
    assert "a fault" in caplog.text


@pytest.mark.parametrize("wrong", [None, "text", {}, {"statusCode": "no"}, {"body": 1}])
def test_an_answer_of_a_wrong_shape_is_a_fault_of_ours(serve: Any, wrong: Any) -> None:
    assert serve({"GET /a": lambda event, context: wrong}).client.get("/a").status_code == 500


def test_a_too_slow_call_is_answered_as_unavailable(serve: Any) -> None:
    go_on = threading.Event()

    def handler(event: Any, context: Any) -> Any:
        go_on.wait()
        return {"statusCode": 200}

    answered = serve({"GET /a": handler}, call_seconds=0.05).client.get("/a")
    go_on.set()
    assert answered.status_code == 503
    assert answered.json()["code"] == "Unavailable"


def test_the_context_tells_the_time_left(serve: Any) -> None:
    def handler(event: Any, context: Any) -> Any:
        left = context.get_remaining_time_in_millis()
        return {"statusCode": 200, "body": json.dumps([left, context.aws_request_id])}

    left, request_id = serve({"GET /a": handler}).client.get("/a").json()
    assert 28_000 < left <= 29_000
    assert request_id


@pytest.mark.parametrize("giving_way", [(), ("GET /a",)])
def test_a_stop_ends_the_waiting_calls(serve: Any, clock: ScaledClock, giving_way: Any) -> None:
    waits = threading.Event()

    def handler(event: Any, context: Any) -> Any:
        waits.set()
        clock.sleep(3_600)
        return {"statusCode": 200}

    gateway = serve({"GET /a": handler}, giving_way=giving_way)
    answers: list[int] = []
    caller = threading.Thread(target=lambda: answers.append(get_status(gateway.port, "/a")))
    caller.start()
    assert waits.wait(5)
    gateway.stop()
    caller.join()
    assert answers == [503]


def test_calls_giving_way_are_not_bounded_by_threads(serve: Any, clock: ScaledClock) -> None:
    calls = CALL_THREADS + 50
    waiting: list[None] = []

    def wait(event: Any, context: Any) -> Any:
        waiting.append(None)
        clock.sleep(3_600)

    def show(event: Any, context: Any) -> Any:
        return {"statusCode": 200, "body": str(len(waiting))}

    gateway = serve({"GET /wait": wait, "GET /show": show}, giving_way=["GET /wait"])
    with contextlib.ExitStack() as clients:
        for _ in range(calls):
            client = socket.create_connection(("127.0.0.1", gateway.port))
            clients.enter_context(client).sendall(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        pause = threading.Event()
        while gateway.client.get("/show", timeout=5).text != str(calls):
            pause.wait(0.01)
        gateway.stop()


@pytest.mark.parametrize(
    ("size", "gives_way"), [(GIVING_WAY_BYTES, True), (GIVING_WAY_BYTES + 1, False)]
)
def test_a_large_request_has_a_thread_of_its_own(serve: Any, size: int, gives_way: bool) -> None:
    def name(event: Any, context: Any) -> Any:
        return {"statusCode": 200, "body": threading.current_thread().name}

    client = serve({SEND: name}, giving_way=[SEND]).client
    told = client.post("/queues/a/messages", content=b"a" * size).text
    assert (told == "server") is gives_way


def get_status(port: int, path: str) -> int:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        return int(client.recv(65_536).split()[1])
