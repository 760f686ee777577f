"""Functions at URLs of their own: the same calls, found by method and path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.infra.test_routes import EXPECTED

from cirrusmq_local.cloud.events import Request, make_event, make_url_event
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.testing import Client, World

URLS = "send=https://a.lambda-url.x.on.aws/,receive=https://b.lambda-url.x.on.aws/"


@pytest.fixture
def world() -> Iterator[World]:
    made = World(direct_urls=True)
    yield made
    made.engine.close()


def request_of(method: str, path: str, key: str = "", query: str = "") -> Request:
    return Request(
        method=method,
        raw_path=path,
        query=query,
        headers=[("authorization", key), ("content-type", "application/json")],
        body=b'{"messages": [{"body": "hello"}]}' if method == "POST" else b"",
        source="192.0.2.1",
        http_version="1.1",
    )


def call(world: World, role: str, method: str, path: str, key: str = "", query: str = "") -> Any:
    """Call the URL of a function."""
    request = request_of(method, path, key, query)
    return world.run(role, make_url_event(request, "id-1", world.clock.now_ms()))


def test_four_functions_have_urls_if_the_parameter_says_so() -> None:
    template = load(TEMPLATE, {"DirectUrls": "true"})
    assert sorted(template.urls) == [
        *("cirrusmq-delete", "cirrusmq-publish", "cirrusmq-receive", "cirrusmq-send"),
    ]
    assert load(TEMPLATE).urls == []


def test_every_route_of_the_template_is_found_by_its_path() -> None:
    from cirrusmq_lambda import direct

    template = load(TEMPLATE, {"DirectUrls": "true"})
    router = Router(template.routes)
    tried = 0
    for route in template.routes:
        if route.function not in template.urls:
            continue
        path = "/".join(
            f"a%3Ab{n}" if part.startswith("{") else part
            for n, part in enumerate(route.path.split("/"))
        )
        request = request_of(route.method, path)
        keys = [each.key for each in template.routes if each.function == route.function]
        match = router.match(route.method, path)
        assert match is not None
        behind_the_api = make_event(request, match, "id", 0)
        found = direct.routed(keys, make_url_event(request, "id", 0))
        for name in ("routeKey", "pathParameters"):
            assert found[name] == behind_the_api[name]
        tried += 1
    assert tried == sum(len(EXPECTED[role]) for role in ("send", "receive", "delete", "publish"))


def test_a_name_may_be_encoded_at_a_url(world: World) -> None:
    alice = world.client("alice")
    alice.put("/queues/orders")
    key = alice.authorization
    for name in ("orders", "alice:orders", "alice%3Aorders", "%6Frders"):
        answer = call(world, "send", "POST", f"/queues/{name}/messages", key)
        assert answer["statusCode"] == 201, answer
    received = 0
    while held := alice.receive("orders"):
        received += len(held)
    assert received == 4


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", "/queues/orders/messages", (405, "POST")),
        ("POST", "/queues/orders/messages/receive", (404, None)),
        ("POST", "/queues//messages", (404, None)),
        ("POST", "/queues/a%2Fmessages", (404, None)),
        ("GET", "/", (404, None)),
    ],
)
def test_a_url_takes_the_calls_of_its_function_alone(
    world: World, method: str, path: str, told: tuple[int, str | None]
) -> None:
    key = world.client("alice").authorization
    answer = call(world, "send", method, path, key)
    assert (answer["statusCode"], answer["headers"].get("Allow")) == told


def test_a_url_asks_for_a_key(world: World) -> None:
    world.client("alice").put("/queues/orders")
    for key in ("", "Bearer CK0:none"):
        assert call(world, "send", "POST", "/queues/orders/messages", key)["statusCode"] == 401


def test_an_unknown_parameter_is_refused_at_a_url_too(world: World) -> None:
    alice = world.client("alice")
    alice.put("/queues/orders")
    refused = call(
        *(world, "send", "POST", "/queues/orders/messages", alice.authorization), query="a=b"
    )
    assert refused["statusCode"] == 400
    assert '"parameter":"a"' in refused["body"]


def test_whoever_has_a_key_is_told_the_urls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = world.client("alice")
    assert alice.get("/endpoints").json == {}
    monkeypatch.setenv("DIRECT_URLS", URLS)
    told = {"send": "https://a.lambda-url.x.on.aws", "receive": "https://b.lambda-url.x.on.aws"}
    assert alice.get("/endpoints").json == told
    assert Client(world, "").get("/endpoints").status == 401


def test_lambdas_refusal_at_a_url_has_its_own_status(world: World) -> None:
    alice = world.client("alice")
    alice.put("/queues/orders")
    answer = alice.post("/queues/orders/messages", {"messages": [{"body": "x" * 6_400_000}]})
    assert (answer.status, answer.json) == (413, {"message": "Request Too Long"})
