"""Names completed from a service, and silence where there is none."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.local.scripted_service import connect_to

from cirrusmq_local.commands import completion

Context = Callable[..., Any]
LISTINGS = {
    "GET /queues": {"queues": [{"name": "orders"}, {"name": "others"}]},
    "GET /queues/{queue}/receivers": {"receivers": [{"name": "copy"}]},
    "GET /queues/{queue}/grants": {"grants": [{"account": "shop"}]},
    "GET /topics": {"topics": [{"name": "origins"}]},
    "GET /topics/{topic}/subscriptions": {"subscriptions": [{"name": "web"}, {"name": "group"}]},
    "GET /keys": {"keys": [{"access_key_id": "AK1"}, {"access_key_id": "AK2"}]},
}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CIRRUSMQ_URL", "CIRRUSMQ_ACCESS_KEY_ID", "CIRRUSMQ_SECRET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """The line so far: `context("queue", name="orders")`."""

    def make(group: str | None = None, **params: str) -> Any:
        parent = None if group is None else SimpleNamespace(info_name=group)
        return SimpleNamespace(params={"data": tmp_path, **params}, parent=parent)

    return make


@pytest.fixture
def asked(serve: Any, tmp_path: Path) -> list[Any]:
    """A service with these listings, and the requests that it got."""
    events: list[Any] = []

    def handle(event: Any, _: Any) -> Any:
        events.append(event)
        return {"statusCode": 200, "body": json.dumps(LISTINGS[event["routeKey"]])}

    connect_to(tmp_path, serve(dict.fromkeys(LISTINGS, handle)).port)
    return events


def test_names_are_asked_for_by_the_typed_prefix(context: Context, asked: list[Any]) -> None:
    assert completion.queues(context(), "or") == ["orders"]
    assert asked[0]["queryStringParameters"] == {"limit": "100", "prefix": "or"}
    assert asked[0]["headers"]["authorization"] == "Bearer key:hush"
    assert completion.topics(context(), "") == ["origins"]
    assert completion.keys(context(), "AK2") == ["AK2"]


def test_names_within_a_queue_or_topic_are_those_of_the_one_in_the_line(
    context: Context, asked: list[Any]
) -> None:
    assert completion.subscriptions(context(topic="news"), "g") == ["group"]
    assert completion.subscriptions(context("topic", name="news"), "w") == ["web"]
    assert completion.receivers(context(source="orders"), "") == ["copy"]
    assert completion.accounts(context("queue", name="orders"), "s") == ["shop"]
    assert [event["rawPath"] for event in asked] == [
        "/topics/news/subscriptions",
        "/topics/news/subscriptions",
        "/queues/orders/receivers",
        "/queues/orders/grants",
    ]
    asked.clear()
    assert completion.subscriptions(context(), "") == []
    assert completion.receivers(context(source="news/group"), "") == []
    assert completion.accounts(context(), "") == []
    assert asked == []


def test_a_source_is_a_queue_or_a_group_behind_a_slash(context: Context, asked: list[Any]) -> None:
    assert completion.sources(context(), "or") == ["orders", "origins/"]
    assert completion.sources(context(), "origins/g") == ["origins/group"]
    assert completion.logs(context(), "or") == ["orders", "origins", "origins/"]
    assert len(asked) == 5


def test_without_a_service_nothing_is_completed(
    context: Context, tmp_path: Path, unused_port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert completion.queues(context(), "") == []  # no connection is known
    connect_to(tmp_path, unused_port)
    assert completion.queues(context(), "") == []
    (tmp_path / "connection.json").write_text("{")
    assert completion.queues(context(), "") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("body", ["[]", "nothing", '{"queues": 5}', '{"queues": [{}]}'])
def test_an_odd_answer_completes_nothing(
    serve: Any, context: Context, tmp_path: Path, body: str
) -> None:
    handlers = {"GET /queues": lambda event, _: {"statusCode": 200, "body": body}}
    connect_to(tmp_path, serve(handlers).port)
    assert completion.queues(context(), "") == []


def test_a_hanging_service_is_not_waited_for(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect_to(tmp_path, listening.getsockname()[1])
        began = time.process_time(), time.monotonic()
        assert completion.queues(context(), "") == []
        assert time.monotonic() - began[1] < 20
