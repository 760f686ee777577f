"""A wrong value in any field of a queue's calls: its parameter is named, and nothing changes.

Refusals that are alike for every route (no JSON, no key, a foreign name) are in `tests/security`.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue

from cirrusmq_local.testing import Client, Reply, World

Q = "/queues/orders"
R = ["receipt"]
LONG = 3_000

# route, wrong JSON body, parameter that the problem names
ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "message_retention_seconds": ("60", 60.0, True, None, [], 59),
    "visibility_timeout_seconds": ("1", 1.5, False, {}, 0, None),
    "receive_wait_seconds": ("0", True, None, -0.1, 30.1),
    "delay_seconds": ("0", 0.0, -1, 1_296_001, None),
    "max_message_bytes": ("x", 1_023, 4_194_305, None),
    "max_messages": (1, 1e6, None),
    "rewind_seconds": (-1, 1_296_001, "1", None),
    "dead_letter": ("dead", [], 1),
    "retry": ("unordered", [], 1),
    "ordered": ("true", 1, None),
    "partitions": (0, 256, 4.0, None),
    "description": (1, "d" * 257),
    "labels": ([], None, {f"{n}": "" for n in range(51)}),
    "name": ("other",),
    "id": ("x",),
    "Delay_seconds": (1,),
}
MESSAGE_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"delay_seconds": -1}, "messages[1].delay_seconds"),
    ({"delay_seconds": 1.0}, "messages[1].delay_seconds"),
    ({"delay_seconds": 345_600}, "messages[1].delay_seconds"),
    ({"delay_seconds": 10**30}, "messages[1].delay_seconds"),
    ({"visibility_timeout_seconds": 0}, "messages[1].visibility_timeout_seconds"),
    ({"visibility_timeout_seconds": 43_201}, "messages[1].visibility_timeout_seconds"),
    ({"visibility_timeout_seconds": True}, "messages[1].visibility_timeout_seconds"),
    ({"group": 1}, "messages[1].group"),
    ({"group": "g" * 129}, "messages[1].group"),
    ({"deduplication_id": None}, "messages[1].deduplication_id"),
    ({"tags": "t"}, "messages[1].tags"),
    ({"tags": [1]}, "messages[1].tags[0]"),
    ({"tags": ["a\nb"]}, "messages[1].tags[0]"),
    ({"attributes": []}, "messages[1].attributes"),
    ({"attributes": {"a": 1}}, "messages[1].attributes[...]"),
    ({"attributes": {"a": None}}, "messages[1].attributes[...]"),
    ({"attributes": {"a": {"base64": "!"}}}, "messages[1].attributes.a"),
    ({"routing_key": "a.b"}, "messages[1].routing_key"),
    ({"id": "x"}, "messages[1].id"),
]
BODIES: list[tuple[str, Any, str]] = [
    *[
        (f"{verb} {Q}", {attribute: value}, attribute)
        for verb in ("PUT", "PATCH")
        for attribute, values in ATTRIBUTES.items()
        for value in values
    ],
    (f"PUT {Q}", {"labels": {"a": 1}}, "labels[...]"),
    (f"PUT {Q}", {"labels": {"a": "x" * 257}}, "labels[...]"),
    (f"PUT {Q}", {"labels": {"x" * 257: "a"}}, "labels"),
    (f"PUT {Q}", {"dead_letter": {}}, "dead_letter.queue"),
    (f"PUT {Q}", {"dead_letter": {"queue": "d", "x": 1}}, "dead_letter.x"),
    (f"PUT {Q}", {"dead_letter": {"queue": 1, "max_receives": 1}}, "dead_letter.queue"),
    (f"PUT {Q}", {"retry": {"policy": "custom", "waits": [True]}}, "retry.waits[0]"),
    (f"POST {Q}/purge", {"x": 1}, "x"),
    (f"POST {Q}/rewind", {}, "to"),
    (f"POST {Q}/rewind", {"to": True}, "to"),
    (f"POST {Q}/rewind", {"to": None}, "to"),
    (f"POST {Q}/rewind", {"to": -1}, "to"),
    (f"POST {Q}/rewind", {"to": 253402300800}, "to"),
    (f"POST {Q}/rewind", {"to": "now"}, "to"),
    (f"POST {Q}/rewind", {"to": "2026-11-18T11:06:40Z", "x": 1}, "x"),
    (f"POST {Q}/redrive", {"to": 1}, "to"),
    (f"POST {Q}/redrive", {"to": None}, "to"),
    (f"POST {Q}/redrive", {"to": "a.b"}, "to"),
    (f"POST {Q}/redrive", {"to": "orders"}, "to"),
    (f"POST {Q}/redrive", {"to": "bob:orders"}, "to"),
    (f"POST {Q}/redrive", {"max_messages": 0}, "max_messages"),
    (f"POST {Q}/redrive", {"max_messages": "1"}, "max_messages"),
    (f"POST {Q}/redrive", {"most": 1}, "most"),
    (f"PUT {Q}/receivers/r", {"start": 1}, "start"),
    (f"PUT {Q}/receivers/r", {"start": "soon"}, "start"),
    (f"PUT {Q}/receivers/r", {"start": "2020-01-01T00:00:00Z"}, "start"),
    (f"PUT {Q}/receivers/r", {"filter": []}, "filter"),
    (f"PUT {Q}/receivers/r", {"filter": {"x": 1}}, "filter"),
    (f"PUT {Q}/receivers/r", {"x": 1}, "x"),
    (f"PUT {Q}/receivers/default", {}, "receiver"),
    (f"PUT {Q}/receivers/Default", {}, "receiver"),
    (f"PUT {Q}/receivers/1r", {}, "receiver"),
    (f"PUT {Q}/receivers/{'r' * 65}", {}, "receiver"),
    (f"PUT {Q}/grants/bob", {}, "permission"),
    (f"PUT {Q}/grants/bob", {"permission": "everything"}, "permission"),
    (f"PUT {Q}/grants/bob", {"permission": None}, "permission"),
    (f"PUT {Q}/grants/bob", {"permission": "send", "x": 1}, "x"),
    (f"PUT {Q}/grants/1bob", {"permission": "send"}, "account"),
    (f"PUT {Q}/grants/{'b' * 65}", {"permission": "send"}, "account"),
    (f"PUT {Q}/grants/alice", {"permission": "send"}, "account"),
    ("POST /keys", {"account": 1}, "account"),
    ("POST /keys", {"account": None}, "account"),
    ("POST /keys", {"account": "1x"}, "account"),
    ("POST /keys", {"account": "a" * 65}, "account"),
    ("POST /keys", {"admin": "yes"}, "admin"),
    ("POST /keys", {"admin": 1}, "admin"),
    ("POST /keys", {"description": 1}, "description"),
    ("POST /keys", {"description": "d" * 257}, "description"),
    ("POST /keys", {"secret": "x"}, "secret"),
    (f"POST {Q}/messages", {}, "messages"),
    (f"POST {Q}/messages", {"messages": {}}, "messages"),
    (f"POST {Q}/messages", {"messages": ["x"]}, "messages[0]"),
    (f"POST {Q}/messages", {"messages": [{"body": "x"}], "atomic": "no"}, "atomic"),
    (f"POST {Q}/messages", {"messages": [{"body": "x"}], "atomic": None}, "atomic"),
    (f"POST {Q}/messages", {"messages": [{"body": "x"}], "attempt": 1}, "attempt"),
    (f"POST {Q}/messages", {"messages": [{"body": "x"}], "x": 1}, "x"),
    *[
        (f"POST {Q}/messages", {"messages": [{"body": "x"}, {"body": "x", **fields}]}, parameter)
        for fields, parameter in MESSAGE_FIELDS
    ],
    *[
        (f"POST {Q}/messages/receive", body, next(iter(body)))
        for body in (
            {"max": 0},
            {"max": 17},
            {"max": "1"},
            {"max": 1.0},
            {"max": None},
            {"wait_seconds": 31},
            {"wait_seconds": "1"},
            {"visibility_timeout_seconds": 0},
            {"visibility_timeout_seconds": 43_201},
            {"receiver": 1},
            {"receiver": ""},
            {"receiver": "1x"},
            {"attempt": "x"},
            {"attempt": None},
            {"repeat": 1},
            {"repeat": True},
            {"limit": 1},
        )
    ],
    *[
        (f"POST {Q}/messages/{verb}", body, parameter)
        for verb in ("delete", "give-back", "dead-letter")
        for body, parameter in (
            ({}, "receipts"),
            ({"receipts": []}, "receipts"),
            ({"receipts": "x"}, "receipts"),
            ({"receipts": [1]}, "receipts[0]"),
            ({"receipts": ["x", ""]}, "receipts[1]"),
            ({"receipts": ["x" * 2_049]}, "receipts[0]"),
            ({"receipts": R, "x": 1}, "x"),
        )
    ],
    (f"POST {Q}/messages/give-back", {"receipts": R, "delay_seconds": -1}, "delay_seconds"),
    (f"POST {Q}/messages/give-back", {"receipts": R, "delay_seconds": 43_201}, "delay_seconds"),
    (f"POST {Q}/messages/give-back", {"receipts": R, "delay_seconds": None}, "delay_seconds"),
    (f"POST {Q}/messages/dead-letter", {"receipts": R, "reason": 1}, "reason"),
    (f"POST {Q}/messages/dead-letter", {"receipts": R, "reason": "é" * 257}, "reason"),
    *[
        (f"POST {Q}/messages/visibility", body, parameter)
        for body, parameter in (
            ({}, "entries"),
            ({"entries": []}, "entries"),
            ({"entries": [{}]}, "entries[0].receipt"),
            ({"entries": [{"receipt": "x"}]}, "entries[0].visibility_timeout_seconds"),
            (
                {"entries": [{"receipt": "", "visibility_timeout_seconds": 1}]},
                "entries[0].receipt",
            ),
        )
    ],
    *[
        (
            f"POST {Q}/messages/visibility",
            {"entries": [{"receipt": "x", "visibility_timeout_seconds": value}]},
            "entries[0].visibility_timeout_seconds",
        )
        for value in (-1, 43_201, "1", 1.0, None)
    ],
    (f"POST {Q}/messages/peek", {"max": 0}, "max"),
    (f"POST {Q}/messages/peek", {"max": 17}, "max"),
    (f"POST {Q}/messages/peek", {"wait_seconds": 1}, "wait_seconds"),
]


def everything(world: World) -> list[list[dict[str, Any]]]:
    return [world.items(table) for table in ("directory", "messages", "usage")]


@pytest.fixture(scope="module")
def shop() -> tuple[World, Client]:
    """A service with a queue that has messages; nothing here may change it."""
    world = World()
    alice = world.client("alice", admin=True)
    alice.put(Q)
    alice.put("/queues/other", {"rewind_seconds": 60})
    alice.send("orders", "a", "b")
    alice.receive("orders", 1)
    world.settle()
    return world, alice


def call(client: Client, route: str, body: object = None) -> Reply:
    method, _, path = route.partition(" ")
    return client.call(method, path, body)


@pytest.mark.few(125)
@pytest.mark.parametrize(("route", "body", "parameter"), BODIES)
def test_a_wrong_value_is_refused_by_name(
    shop: tuple[World, Client], route: str, body: Any, parameter: str
) -> None:
    world, alice = shop
    before = everything(world)

    reply = call(alice, route, body)

    assert (reply.status, reply.code) == (400, "InvalidParameter"), reply.text
    assert reply.json["parameter"] == parameter
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert everything(world) == before


def test_a_body_of_exactly_1_mib_is_read(shop: tuple[World, Client]) -> None:
    _, alice = shop
    padded = b'{"max": 99}' + b" " * (1_048_576 - 11)

    assert alice.raw("POST", f"{Q}/messages/peek", padded).code == "InvalidParameter"


@pytest.mark.parametrize(
    ("route", "code"),
    [
        (f"GET {Q}/receivers/none", "ReceiverNotFound"),
        (f"DELETE {Q}/receivers/none", "ReceiverNotFound"),
        (f"GET {Q}/grants/nobody", "GrantNotFound"),
        (f"DELETE {Q}/grants/nobody", "GrantNotFound"),
        ("GET /operations/none", "OperationNotFound"),
        (f"GET /operations/{'x' * LONG}", "OperationNotFound"),
        ("GET /operations/%23%00", "OperationNotFound"),
        ("DELETE /keys/none", "KeyNotFound"),
        (f"DELETE /keys/{'x' * LONG}", "KeyNotFound"),
        ("GET /nothing", "NotFound"),
        ("GET /queues/a/b/c/d", "NotFound"),
    ],
)
def test_what_is_not_there_is_not_found(shop: tuple[World, Client], route: str, code: str) -> None:
    world, alice = shop
    before = everything(world)

    reply = call(alice, route)

    assert (reply.status, reply.code) == (404, code)
    assert everything(world) == before


def test_a_receive_for_an_unknown_receiver_is_not_found(shop: tuple[World, Client]) -> None:
    _, alice = shop

    assert alice.post(f"{Q}/messages/receive", {"receiver": "none"}).code == "ReceiverNotFound"


def test_more_than_16_entries_are_too_many(shop: tuple[World, Client]) -> None:
    world, alice = shop
    before = everything(world)
    receipts = [f"r{number}" for number in range(17)]
    entries = [{"receipt": each, "visibility_timeout_seconds": 1} for each in receipts]
    for verb in ("delete", "give-back", "dead-letter"):
        reply = alice.post(f"{Q}/messages/{verb}", {"receipts": receipts})
        assert (reply.status, reply.code) == (413, "BatchTooLarge")
        assert (
            len(alice.post(f"{Q}/messages/{verb}", {"receipts": receipts[:16]}).json["failed"])
            == 16
        )
    assert alice.post(f"{Q}/messages/visibility", {"entries": entries}).code == "BatchTooLarge"
    assert alice.post(f"{Q}/messages/visibility", {"entries": entries[:16]}).status == 200
    assert everything(world) == before


def test_a_problem_has_every_member(make_queue: MakeQueue) -> None:
    queue = make_queue()

    reply = queue.patch(delay_seconds=-1)

    problem = reply.json
    assert problem.keys() == {
        "type", "title", "status", "detail", "code", "parameter", "request_id"
    }  # fmt: skip
    assert problem["status"] == reply.status == 400
    assert "0 to 1,296,000" in problem["detail"]
    assert problem["request_id"]
