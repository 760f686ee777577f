"""The direct URLs of the client library: which calls go there, and where the secret may go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cirrusmq_client.direct import DirectUrls, allowed
from cirrusmq_client.errors import CirrusMQError, NotFound, Throttled, Unavailable, error_of

API = "https://abc123.execute-api.eu-central-1.amazonaws.com"
SEND = "https://q7x.lambda-url.eu-central-1.on.aws"
PATH = "/queues/orders/messages"


@pytest.fixture
def pass_seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1_000.0]
    monkeypatch.setattr("cirrusmq_client.direct.time.monotonic", lambda: now[0])

    def passing(seconds: float) -> None:
        now[0] += seconds

    return passing


class Service:
    """What a service tells of its URLs."""

    def __init__(self, told: Any) -> None:
        self.told = told
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/queues/orders/messages", "send"),
        ("/queues/bob:orders/messages", "send"),
        ("/topics/news/messages", "publish"),
        ("/topics/news/half/commit", "publish"),
        ("/topics/news/half/rollback", "publish"),
        ("/topics/news/half/receive", "publish"),
        ("/queues/orders/messages/receive", "receive"),
        ("/queues/orders/messages/peek", "receive"),
        ("/topics/news/subscriptions/web/messages/receive", "receive"),
        ("/queues/orders/messages/delete", "delete"),
        ("/queues/orders/messages/visibility", "delete"),
        ("/queues/orders/messages/give-back", "delete"),
        ("/topics/news/subscriptions/web/messages/dead-letter", "delete"),
        ("/queues/orders/purge", None),
        ("/queues/messages", None),
        ("/keys", None),
    ],
)
def test_a_call_goes_to_the_url_of_its_function(path: str, name: str | None) -> None:
    told = {
        each: f"https://{each}.lambda-url.eu-central-1.on.aws/"
        for each in ("send", "receive", "delete", "publish")
    }
    urls = DirectUrls(API, Service(told))
    for _ in range(3):
        urls.url("POST", PATH)
    assert urls.url("POST", path) == (name and told[name].rstrip("/"))
    assert urls.url("GET", path) is None


def test_a_client_of_two_calls_does_not_ask() -> None:
    service = Service({"send": SEND})
    urls = DirectUrls(API, service)
    assert [urls.url("POST", PATH) for _ in range(4)] == [None, None, SEND, SEND]
    assert service.asked == 1


def test_urls_are_asked_for_again_each_ten_minutes(pass_seconds: Callable[[float], None]) -> None:
    service = Service({"send": SEND})
    urls = DirectUrls(API, service)
    for _ in range(3):
        urls.url("POST", PATH)
    service.told = {}
    pass_seconds(599)
    assert (urls.url("POST", PATH), service.asked) == (SEND, 1)
    pass_seconds(1)
    assert (urls.url("POST", PATH), service.asked) == (None, 2)


def test_a_silent_url_is_left_alone_for_a_minute(
    pass_seconds: Callable[[float], None],
) -> None:
    service = Service({"send": SEND})
    urls = DirectUrls(API, service)
    for _ in range(3):
        urls.url("POST", PATH)
    urls.rest()
    pass_seconds(59)
    assert urls.url("POST", PATH) is None
    pass_seconds(1)
    assert (urls.url("POST", PATH), service.asked) == (SEND, 2)


@pytest.mark.parametrize("told", [NotFound(), CirrusMQError(status=404), None, [], {"send": 7}])
def test_a_service_without_them_is_called_at_its_own_url(told: Any) -> None:
    urls = DirectUrls(API, Service(told))
    assert [urls.url("POST", PATH) for _ in range(5)] == [None] * 5


@pytest.mark.parametrize(
    ("origin", "url", "taken"),
    [
        (API, SEND, True),
        (API, SEND + "/", True),
        ("https://mq.example.com", SEND, True),
        # Nothing but a function of the service's region, by https.
        (API, "https://q7x.lambda-url.us-east-1.on.aws", False),
        (API, "http://q7x.lambda-url.eu-central-1.on.aws", False),
        (API, "https://evil.example.com", False),
        (API, "https://q7x.lambda-url.eu-central-1.on.aws.example.com", False),
        (API, "https://example.com/q7x.lambda-url.eu-central-1.on.aws", False),
        (API, "https://q7x.lambda-url.eu-central-1.on.aws@example.com", False),
        (API, "https://user@q7x.lambda-url.eu-central-1.on.aws", False),
        (API, "https://q7x.lambda-url.eu-central-1.on.aws:8443", False),
        (API, "https://q7x.lambda-url.eu-central-1.on.aws/path", False),
        (API, "https://q7x.lambda-url.eu-central-1.on.aws?a=b", False),
        (API, "https://a.b.lambda-url.eu-central-1.on.aws", False),
        (API, "https://[", False),
        (API, "http://127.0.0.1:8080/local/urls/send", False),
        # Whoever listens to a service without TLS could name URLs.
        ("http://mq.example.com", SEND, False),
        ("http://mq.example.com", "http://mq.example.com/local/urls/send", False),
        # On one machine: its own address alone.
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/local/urls/send", True),
        ("http://[::1]:8080", "http://[::1]:8080/local/urls/send", True),
        ("http://localhost:8080", "http://localhost:8080/local/urls/send", True),
        ("http://127.0.0.1:8080", "http://127.0.0.1:9090/local/urls/send", False),
        ("http://127.0.0.1:8080", SEND, False),
    ],
)
def test_the_secret_goes_to_functions_of_the_service_alone(
    origin: str, url: str, taken: bool
) -> None:
    assert bool(allowed(origin, {"send": url})) == taken


def test_a_refusal_of_aws_before_any_function_is_throttling_and_may_be_repeated() -> None:
    assert isinstance(error_of({"message": "Too Many Requests"}, 429), Throttled)
    assert isinstance(error_of({"message": "Service Unavailable"}, 503), Unavailable)
    assert type(error_of({"Message": "Forbidden"}, 403)) is CirrusMQError
