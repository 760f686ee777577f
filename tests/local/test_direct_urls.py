"""URLs of functions on one machine: the gateway serves them, the library takes them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest
from tests.stack import Start

from cirrusmq_client import Client, Connection, Consumer, Producer
from cirrusmq_local.cloud.invocation import FunctionError, TooManyRequestsError
from cirrusmq_local.stack.gateway import URLS

SEND = "POST /queues/{queue}/messages"


def test_a_url_calls_its_function_with_the_path_as_it_came(serve: Any, echo: Any) -> None:
    gateway = serve({SEND: echo}, urls={"send": SEND})
    path = "/queues/or%3Aders/messages"
    event = gateway.client.post(f"{URLS}/send{path}?a=1", json={"messages": []}).json()
    assert (event["routeKey"], event["rawPath"]) == ("$default", path)
    assert "pathParameters" not in event
    assert event["queryStringParameters"] == {"a": "1"}
    assert event["body"] == '{"messages":[]}'
    assert event["requestContext"]["accountId"] == "anonymous"
    assert event["requestContext"]["http"]["path"] == path
    # Behind the API as before.
    assert gateway.client.post(path, json={}).json()["routeKey"] == SEND


def test_there_are_urls_of_those_functions_alone(serve: Any, echo: Any) -> None:
    gateway = serve({SEND: echo}, urls={})
    assert gateway.client.post(f"{URLS}/send/queues/a/messages").status_code == 404


@pytest.mark.parametrize(
    ("error", "behind_the_api", "at_a_url"),
    [(TooManyRequestsError, 503, 429), (FunctionError, 500, 502)],
)
def test_lambdas_refusal_has_the_status_of_the_way(
    serve: Any, error: type[FunctionError], behind_the_api: int, at_a_url: int
) -> None:
    def handler(event: Any, context: Any) -> Any:
        raise error("send")

    gateway = serve({SEND: handler}, urls={"send": SEND})
    path = "/queues/a/messages"
    assert gateway.client.post(path).status_code == behind_the_api
    assert gateway.client.post(f"{URLS}/send{path}").status_code == at_a_url


def test_the_library_takes_the_urls_by_itself(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = start("--direct-urls")
    held = stack.connection()
    told = stack.client().get("/endpoints").json()
    assert told == {
        name: f"{stack.url}{URLS}/{name}" for name in ("send", "receive", "delete", "publish")
    }
    paths: Counter[str] = Counter()
    send = httpx.HTTPTransport.handle_request

    def noted(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        paths[request.url.path] += 1
        return send(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", noted)
    connection = Connection(
        url=held["url"], access_key_id=held["access_key_id"], secret=held["secret"]
    )
    with Client(connection, direct=False) as client:
        assert client.endpoints() == told
    paths.clear()
    with Client(connection) as client:
        client.create_queue("orders")
        client.create_topic("news")
        client.create_subscription("news", "copy", {"protocol": "queue", "endpoint": "orders"})
        producer = Producer(client)
        for number in range(6):
            producer.send("orders", f"order {number}")
        producer.publish("news", "last")
        taken: list[str] = []
        consumer: Consumer

        def handle(message: Any) -> None:
            taken.append(message.text)
            if len(taken) == 7:
                consumer.stop()

        consumer = Consumer("orders", handle, client=client)
        consumer.run()
    assert sorted(taken) == ["last", *(f"order {number}" for number in range(6))]
    assert paths["/endpoints"] == 1
    # The first two calls do not ask.
    assert paths["/queues/orders/messages"] == 2
    assert paths[f"{URLS}/send/queues/orders/messages"] == 4
    assert paths[f"{URLS}/publish/topics/news/messages"] == 1
    assert paths[f"{URLS}/receive/queues/orders/messages/receive"] >= 1
    assert paths[f"{URLS}/delete/queues/orders/messages/delete"] >= 1
