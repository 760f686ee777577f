"""A wrong value in any field of a call: its parameter is named, and nothing changes.

Refusals that are alike for every route (no JSON, no key, a foreign name) are in `tests/security`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.wrong_values import (
    BOX,
    CALLS,
    LOG,
    OTHERS,
    PULL,
    QUERIES,
    QUEUES,
    TOLD,
    TOPICS,
    WEB,
    Q,
)

from cirrusmq_local.testing import Client, Reply, World


@dataclass(frozen=True)
class Shop:
    """A service with queues and topics of every kind; nothing here may change it."""

    world: World
    alice: Client
    message_id: str

    def request(self, route: str, body: object = None) -> Reply:
        method, _, target = route.replace("{id}", self.message_id).partition(" ")
        path, _, query = target.partition("?")
        return self.alice.call(method, path, body, query)

    def call(self, route: str, body: object = None) -> Reply:
        """Make a call that is refused: all that is stored is as before."""
        before = self.everything()
        reply = self.request(route, body)
        assert self.everything() == before
        return reply

    def everything(self) -> list[list[dict[str, Any]]]:
        return [self.world.items(table) for table in ("directory", "messages", "usage")]


def open_shop(*, direct_urls: bool = False, in_process: bool = False) -> Shop:
    world = World(direct_urls=direct_urls, in_process=in_process)
    alice = world.client("alice", admin=True)
    queues: dict[str, dict[str, Any]] = {
        "orders": {},
        "other": {"rewind_seconds": 60},
        "ordered": {"ordered": True},
        "fair": {"fair": True},
        "ranked": {"priorities": 16},
        "dead": {},
        "nested": {"dead_letter": {"queue": "dead", "max_receives": 1}},
        "last": {},
        "copied": {},
        "delayed": {"delay_seconds": 9},
        "short": {"message_retention_seconds": 299},
    }
    subscriptions: dict[str, dict[str, Any]] = {
        "news/subscriptions/group": {**PULL, "dead_letter_queue": "last"},
        "news/subscriptions/web": WEB,
        "news/subscriptions/box": BOX,
        "news/subscriptions/log": LOG,
        "routes/subscriptions/group": PULL,
        "strict/subscriptions/group": {**PULL, "ordered": True},
    }
    for path, given in (
        *((f"/queues/{name}", attributes) for name, attributes in queues.items()),
        ("/queues/copied/receivers/audit", {}),
        ("/topics/news", {}),
        ("/topics/routes", {"filter": "routing_key"}),
        ("/topics/strict", {}),
        *((f"/topics/{name}", attributes) for name, attributes in subscriptions.items()),
    ):
        reply = alice.put(path, given)
        assert reply.status == 201, reply.text
    sent = alice.send("orders", "a", "b")
    (held,) = alice.receive("orders", 1)
    (free,) = (each["id"] for each in sent if each["id"] != held["id"])
    world.settle()
    return Shop(world, alice, free)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    made = open_shop()
    yield made
    made.world.engine.close()


@pytest.mark.few(450)
@pytest.mark.parametrize(("route", "body", "parameter"), [*QUEUES, *CALLS, *TOPICS, *QUERIES])
def test_a_wrong_value_is_refused_by_name(
    shop: Shop, route: str, body: Any, parameter: str
) -> None:
    reply = shop.call(route, body)

    assert (reply.status, reply.code) == (400, "InvalidParameter"), reply.text
    assert reply.json["parameter"] == parameter
    assert reply.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("way", ["at URLs", "in a process"])
def test_wrong_values_of_messages_are_refused_alike_at_urls_and_in_a_process(way: str) -> None:
    shop = open_shop(direct_urls=way == "at URLs", in_process=way == "in a process")
    before = shop.world.items()
    for route, body, parameter in CALLS:
        reply = shop.request(route, body)
        assert (reply.status, reply.code) == (400, "InvalidParameter"), (route, body, reply.text)
        assert reply.json["parameter"] == parameter, (route, body)
    assert shop.world.items() == before
    assert shop.world.own is None or not shop.world.own.refused
    shop.world.engine.close()


@pytest.mark.parametrize(("route", "body", "parameter", "words"), TOLD)
def test_a_refusal_tells_the_valid_input(
    shop: Shop, route: str, body: Any, parameter: str, words: str
) -> None:
    reply = shop.call(route, body)

    assert (reply.status, reply.code) == (400, "InvalidParameter"), reply.text
    assert reply.json["parameter"] == parameter
    assert words in reply.json["detail"]


@pytest.mark.parametrize(("route", "body", "status", "code"), OTHERS)
def test_an_impossible_call_is_refused_with_its_code(
    shop: Shop, route: str, body: Any, status: int, code: str
) -> None:
    reply = shop.call(route, body)

    assert (reply.status, reply.code) == (status, code), reply.text
    if code == "InvalidFilter":
        assert reply.json["parameter"] == "filter"


def test_a_body_of_exactly_1_mib_is_read(shop: Shop) -> None:
    padded = b'{"max": 99}' + b" " * (1_048_576 - 11)

    assert shop.alice.raw("POST", f"{Q}/messages/peek", padded).code == "InvalidParameter"


def test_more_than_16_entries_are_too_many(shop: Shop) -> None:
    before = shop.everything()
    receipts = [f"r{number}" for number in range(17)]
    entries = [{"receipt": each, "visibility_timeout_seconds": 1} for each in receipts]
    for verb in ("messages/delete", "messages/give-back", "messages/dead-letter", "redrive"):
        reply = shop.call(f"POST {Q}/{verb}", {"receipts": receipts})
        assert (reply.status, reply.code) == (413, "BatchTooLarge")
        if verb != "redrive":
            sixteen = shop.alice.post(f"{Q}/{verb}", {"receipts": receipts[:16]})
            assert len(sixteen.json["failed"]) == 16
    path = f"{Q}/messages/visibility"
    assert shop.alice.post(path, {"entries": entries}).code == "BatchTooLarge"
    assert shop.alice.post(path, {"entries": entries[:16]}).status == 200
    assert shop.everything() == before


def test_a_problem_has_every_member(queue: TestQueue) -> None:
    reply = queue.patch(delay_seconds=-1)

    problem = reply.json
    assert problem.keys() == {
        "type", "title", "status", "detail", "code", "parameter", "request_id"
    }  # fmt: skip
    assert problem["status"] == reply.status == 400
    assert "0 to 1,296,000" in problem["detail"]
    assert problem["request_id"]
