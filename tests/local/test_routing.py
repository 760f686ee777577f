from __future__ import annotations

import pytest

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.template import Route

KEYS = [
    "GET /queues",
    "GET /queues/{queue}",
    "PUT /queues/{queue}",
    "POST /queues/{queue}/messages",
    "POST /queues/{queue}/messages/receive",
    "GET /docs/{asset}",
    "GET /docs/index",
    "GET /docs/index/{asset}",
    "GET /docs/{file+}",
    "GET /pages/",
    "GET /pages/{file+}",
    "PUT /queues/{queue}/grants/{account}",
    "$default",
]


def make_route(key: str) -> Route:
    method, _, path = key.partition(" ")
    return Route(function="f", method=method if path else "", path=path)


@pytest.fixture
def router() -> Router:
    return Router([make_route(key) for key in KEYS])


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/queues", "GET /queues", {}),
        ("GET", "/queues/orders", "GET /queues/{queue}", {"queue": "orders"}),
        ("PUT", "/queues/orders", "PUT /queues/{queue}", {"queue": "orders"}),
        ("GET", "/queues/messages", "GET /queues/{queue}", {"queue": "messages"}),
        ("POST", "/queues/a/messages", "POST /queues/{queue}/messages", {"queue": "a"}),
        ("GET", "/docs/index", "GET /docs/index", {}),
        ("GET", "/docs/x.css", "GET /docs/{asset}", {"asset": "x.css"}),
        ("GET", "/docs/index/x.css", "GET /docs/index/{asset}", {"asset": "x.css"}),
        ("GET", "/docs/index/a/b", "GET /docs/{file+}", {"file": "index/a/b"}),
        ("GET", "/pages/a%2Fb/c//d", "GET /pages/{file+}", {"file": "a/b/c//d"}),
        ("GET", "/pages/a/", "GET /pages/{file+}", {"file": "a/"}),
        ("GET", "/pages/", "GET /pages/", {}),
        (
            "PUT",
            "/queues/a/grants/b",
            "PUT /queues/{queue}/grants/{account}",
            {"queue": "a", "account": "b"},
        ),
    ],
)
def test_a_request_finds_its_route(
    router: Router, method: str, path: str, key: str, parameters: dict[str, str]
) -> None:
    found = router.match(method, path)
    assert found is not None
    assert (found.route.key, found.parameters) == (key, parameters)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/queues/orders"),
        ("HEAD", "/queues"),
        ("OPTIONS", "/queues"),
        ("get", "/queues"),
        ("GET", "/queues/"),
        ("GET", "/queues//"),
        ("GET", "//queues"),
        ("GET", "/docs/"),
        ("GET", "/pages"),
        ("GET", "/pages//a"),
        ("POST", "/pages/a/b"),
        ("GET", "/"),
        ("GET", "/queues/a/messages"),
        ("POST", "/queues/a/messages/receive/more"),
        ("OPTIONS", "*"),
    ],
)
def test_an_unknown_route_goes_to_the_default(router: Router, method: str, path: str) -> None:
    found = router.match(method, path)
    assert found is not None
    assert found.route.key == "$default"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/queues/a%2Fb", "a/b"),
        ("/queues/acme%3Aorders", "acme:orders"),
        ("/queues/%ff", "\N{REPLACEMENT CHARACTER}"),
        ("/queues/%c3%a9", "é"),
        ("/queues/a%zz", "a%zz"),
        ("/queues/a+b", "a+b"),
    ],
)
def test_a_name_is_decoded_after_the_path_is_taken_apart(
    router: Router, path: str, name: str
) -> None:
    found = router.match("GET", path)
    assert found is not None
    assert found.parameters == {"queue": name}


def test_one_route_in_two_places_is_refused() -> None:
    with pytest.raises(TemplateError, match="stands twice"):
        Router([make_route("GET /a/{b}"), make_route("GET /a/{c}")])


def test_a_greedy_parameter_is_the_last_part_and_there_once() -> None:
    with pytest.raises(TemplateError, match="greedy"):
        Router([make_route("GET /a/{b+}/c")])
    with pytest.raises(TemplateError, match="stands twice"):
        Router([make_route("GET /a/{b+}"), make_route("GET /a/{c+}")])


def test_without_a_default_nothing_matches() -> None:
    assert Router([make_route("GET /a")]).match("GET", "/b") is None
