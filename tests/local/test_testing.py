"""`cirrusmq_local.testing`, which users build their own tests on: its example, its subscriber."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from itertools import takewhile

import httpx
import pytest
from botocore.client import BaseClient

import cirrusmq_local.testing
from cirrusmq_local.testing import Client, Delivery, Subscriber, World


def example() -> str:
    """The first block of code in the package's docstring."""
    text = cirrusmq_local.testing.__doc__ or ""
    lines = text[text.index("    from") :].splitlines()
    return textwrap.dedent(
        "\n".join(takewhile(lambda line: not line or line.startswith(" "), lines))
    )


def client() -> httpx.Client:
    return httpx.Client(trust_env=False, timeout=5)


def test_the_example_of_the_package_runs() -> None:
    code = example()
    assert code.count("assert ") == 5
    exec(code, {})


def test_all_public_names_are_there_and_no_others() -> None:
    for name in cirrusmq_local.testing.__all__:
        assert hasattr(cirrusmq_local.testing, name)
    with pytest.raises(AttributeError, match="Wrold"):
        _ = cirrusmq_local.testing.Wrold


def test_a_subscriber_does_without_the_world() -> None:
    """`cirrusmq listen` starts with it, and need not wait for the service."""
    code = "import sys, cirrusmq_local.testing; sys.exit('cirrusmq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_subscriber_notes_deliveries_and_answers_as_told() -> None:
    with Subscriber() as subscriber, client() as http:
        subscriber.down("bad", path="hook")
        statuses = [
            http.post(subscriber.url(path), content=body, headers={"X-CMQ-Message-Id": body})
            for path, body in (("hook", "good"), ("hook", "bad"), ("other", "bad"))
        ]
        assert [answer.status_code for answer in statuses] == [204, 500, 204]
        assert subscriber.bodies("hook") == ["good", "bad"]
        assert subscriber.bodies() == ["good", "bad", "bad"]
        assert [delivery.path for delivery in subscriber.taken] == ["hook", "other"]
        subscriber.up()
        assert http.post(subscriber.url("hook"), content="bad").status_code == 204
        assert len(subscriber.waits("bad", "hook")) == 1
        good, bad = subscriber.wait_for(["good", "bad"])
        assert (good.path, bad.path) == ("hook", "other")
        with pytest.raises(TimeoutError, match="1 of 2"):
            subscriber.wait_for(["good", "never"], seconds=0.01)


def test_a_subscriber_may_give_no_answer_and_takes_no_body_without_bounds() -> None:
    with Subscriber(lambda delivery: None) as subscriber, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            http.post(subscriber.url(), content="x")
        with socket.create_connection(("127.0.0.1", subscriber.port), timeout=5) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 26214401\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
        assert subscriber.bodies() == ["x"]
        assert subscriber.taken == []


def test_an_ended_subscriber_takes_nothing_not_even_by_a_kept_connection() -> None:
    with client() as http:
        with Subscriber() as subscriber:
            url = subscriber.url()
            assert http.post(url, content="x").status_code == 204
        with pytest.raises(httpx.TransportError):
            http.post(url, content="y")
        assert subscriber.bodies() == ["x"]


@pytest.mark.parametrize("content_format", ["json", "simplified"])
@pytest.mark.parametrize("message", [{"body": "{}"}, {"body_base64": "e30="}])
def test_the_text_of_a_delivery_is_the_messages_body(
    content_format: str, message: dict[str, str]
) -> None:
    world = World()
    shop, subscriber = world.client("shop"), world.subscriber()
    shop.put("/topics/news")
    web = {
        "protocol": "http",
        "endpoint": "http://127.0.0.1:9/hook",
        "content_format": content_format,
    }
    assert shop.put("/topics/news/subscriptions/web", web).status == 201
    assert shop.post("/topics/news/messages", {"messages": [message]}).status == 201
    world.settle()
    (delivery,) = subscriber.deliveries
    assert (delivery.path, delivery.text) == ("hook", "{}")
    assert delivery.at_ms == world.clock.now_ms()


@pytest.mark.parametrize(("status", "reason"), [(503, "status 503"), (None, "timeout")])
def test_the_service_sees_the_answer_of_a_worlds_subscriber(
    status: int | None, reason: str
) -> None:
    world = World()
    shop, subscriber = world.client("shop"), world.subscriber()
    subscriber.answer = lambda delivery: status
    shop.put("/topics/news")
    path = "/topics/news/subscriptions/web"
    shop.put(path, {"protocol": "http", "endpoint": "http://127.0.0.1:9/hook"})
    shop.post("/topics/news/messages", {"messages": [{"body": "x"}]})
    world.settle()
    assert reason in shop.get(path).text
    assert [type(each) for each in subscriber.deliveries] == [Delivery]


def test_a_world_begins_like_another_and_goes_its_own_way() -> None:
    first = World()
    shop = first.client("shop")
    shop.put("/queues/orders")
    shop.send("orders", "one")
    first.clock.pass_seconds(60)
    first.settle()

    second = World(like=first)
    other = Client(second, shop.authorization)
    assert (second.items(), second.clock.now_ms()) == (first.items(), first.clock.now_ms())
    assert [message["body"] for message in other.receive("orders")] == ["one"]
    other.send("orders", "two")
    assert [message["body"] for message in other.receive("orders")] == ["two"]
    assert [message["body"] for message in shop.receive("orders")] == ["one"]


def test_no_world_begins_like_one_with_work_left() -> None:
    first = World()
    shop = first.client("shop")
    shop.put("/queues/orders")
    shop.post("/queues/orders/purge")
    with pytest.raises(ValueError, match="left to run"):
        World(like=first)


def test_a_world_may_make_its_calls_by_the_sdk() -> None:
    world = World(by_sdk=True)
    shop = world.client("shop")
    shop.put("/queues/orders")
    shop.send("orders", "one")
    assert [message["body"] for message in shop.receive("orders")] == ["one"]
    assert isinstance(world.core.store._client, BaseClient)
    assert not isinstance(World().core.store._client, BaseClient)
