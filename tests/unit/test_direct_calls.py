"""Calls of the client library at direct URLs, and its way back to the service's own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.awaited import Awaited, Loop

from cirrusmq_client import AsyncClient, Backoff, Client, Connection
from cirrusmq_client.errors import NoAnswer, Throttled, Unavailable

API = "abc123.execute-api.eu-central-1.amazonaws.com"
SEND = "q7x.lambda-url.eu-central-1.on.aws"
PATH = "/queues/orders/messages"
Answering = Callable[[httpx.Request], httpx.Response]


class Aws:
    """Both hosts. `at_url` answers at the direct one."""

    def __init__(self) -> None:
        self.calls: list[httpx.Request] = []
        self.at_url: Answering = ok
        self.at_api: Answering = ok

    def handle(self, transport: Any, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/endpoints":
            return httpx.Response(200, json={"send": f"https://{SEND}"})
        self.calls.append(request)
        return self.at_url(request) if request.url.host == SEND else self.at_api(request)

    def hosts(self) -> Counter[str]:
        return Counter(request.url.host for request in self.calls)


def ok(request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"at": request.url.host})


def refusing(status: int, body: Any) -> Answering:
    return lambda request: httpx.Response(status, json=body)


def failing(error: type[httpx.TransportError]) -> Answering:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error("it fails", request=request)

    return fail


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    made = Aws()
    handle = lambda transport, request: made.handle(transport, request)  # noqa: E731

    async def handle_async(transport: Any, request: httpx.Request) -> httpx.Response:
        return made.handle(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle_async)
    return made


@pytest.fixture(params=["blocking", "asyncio"])
def make_client(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    connection = Connection(url=f"https://{API}", access_key_id="CK1", secret="s3cret")
    options: dict[str, Any] = {"retry": Backoff(tries=2, first_seconds=0.001)}
    if request.param == "blocking":
        yield lambda **more: Client(connection, **options, **more)
        return
    loop = Loop()
    yield lambda **more: Awaited(loop, lambda: AsyncClient(connection, **options, **more))
    loop.stop()


@pytest.fixture
def client(aws: Aws, make_client: Callable[..., Any]) -> Iterator[Client]:
    """One that knows the direct URL."""
    with make_client() as made:
        for _ in range(3):
            made.call("POST", PATH, {})
        assert aws.hosts() == {API: 2, SEND: 1}
        aws.calls.clear()
        yield made


def test_the_call_is_the_same_at_the_direct_url(aws: Aws, client: Client) -> None:
    assert client.call("POST", PATH, {"messages": []}) == {"at": SEND}
    (made,) = aws.calls
    assert str(made.url) == f"https://{SEND}{PATH}"
    assert made.headers["authorization"] == "Bearer CK1:s3cret"
    assert json.loads(made.content) == {"messages": []}


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ConnectTimeout])
def test_without_an_answer_the_service_is_called_in_its_place(
    aws: Aws, client: Client, error: type[httpx.TransportError]
) -> None:
    aws.at_url = failing(error)
    assert [client.call("POST", PATH, {}) for _ in range(3)] == [{"at": API}] * 3
    # Once, and not again for a while.
    assert aws.hosts() == {SEND: 1, API: 3}


@pytest.mark.parametrize("status", [403, 404])
def test_for_a_function_without_a_url_the_service_is_called(
    aws: Aws, client: Client, status: int
) -> None:
    aws.at_url = refusing(status, {"Message": "Forbidden"})
    assert client.call("POST", PATH, {}) == {"at": API}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusing(429, {"Message": "Too Many Requests"}), Throttled),
        (refusing(502, {"Message": "Internal Server Error"}), Unavailable),
        (refusing(503, {"code": "Unavailable", "detail": "later"}), Unavailable),
        (failing(httpx.ReadTimeout), NoAnswer),
        (failing(httpx.RemoteProtocolError), NoAnswer),
        (failing(httpx.PoolTimeout), NoAnswer),
    ],
)
def test_a_busy_or_failing_function_is_not_called_by_another_way(
    aws: Aws, client: Client, answer: Answering, error: type[Exception]
) -> None:
    aws.at_url = answer
    with pytest.raises(error):
        client.call("POST", PATH, {})
    assert set(aws.hosts()) == {SEND}


def test_the_services_own_refusals_are_those_of_the_call(aws: Aws, client: Client) -> None:
    aws.at_url = refusing(403, {"code": "Forbidden", "detail": "no grant", "status": 403})
    with pytest.raises(Exception, match="no grant"):
        client.call("POST", PATH, {})
    assert set(aws.hosts()) == {SEND}


def test_calls_without_a_function_go_to_the_service(aws: Aws, client: Client) -> None:
    client.call("GET", "/queues/orders")
    client.call("POST", "/queues/orders/purge", {})
    assert set(aws.hosts()) == {API}


def test_direct_urls_can_be_left_alone(aws: Aws, make_client: Callable[..., Any]) -> None:
    with make_client(direct=False) as client:
        for _ in range(5):
            client.call("POST", PATH, {})
    assert aws.hosts() == {API: 5}
