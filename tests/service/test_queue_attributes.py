"""Creating, changing, showing and listing queues: every attribute at both edges of its range."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms

from cirrusmq.runtime.store import key
from cirrusmq.storage.counters import counter_key
from cirrusmq_local.testing import Client, World

DEFAULTS: dict[str, Any] = {
    "message_retention_seconds": 345_600,
    "visibility_timeout_seconds": 30,
    "receive_wait_seconds": 0.2,
    "delay_seconds": 0,
    "max_message_bytes": 65_536,
    "max_messages": 100_000_000,
    "rewind_seconds": 0,
    "dead_letter": None,
    "retry": None,
    "ordered": False,
    "partitions": 4,
    "description": None,
    "labels": {},
}
LONG_LIFE = {"message_retention_seconds": 1_296_000}
RANGES: list[tuple[str, int, int, dict[str, Any]]] = [
    ("message_retention_seconds", 60, 1_296_000, {}),
    ("visibility_timeout_seconds", 1, 43_200, {}),
    ("receive_wait_seconds", 0, 30, {}),
    ("delay_seconds", 0, 1_295_999, LONG_LIFE),
    ("max_message_bytes", 1_024, 4_194_304, {}),
    ("max_messages", 1_000_000, 1_000_000_000, {}),
    ("rewind_seconds", 0, 1_296_000, LONG_LIFE),
    ("partitions", 1, 255, {}),
]


def test_a_queue_put_without_a_body_has_the_defaults(alice: Client) -> None:
    reply = alice.put("/queues/orders")

    assert reply.status == 201
    shown = reply.json
    assert {name: shown[name] for name in DEFAULTS} == DEFAULTS
    assert shown["name"] == "orders"
    assert shown["id"]
    assert shown["created_at"] == shown["modified_at"] == "2026-11-18T11:06:40.000Z"


def test_an_empty_body_is_an_empty_object(alice: Client) -> None:
    alice.put("/queues/orders")

    assert alice.put("/queues/orders", {}).status == 200


@pytest.mark.parametrize(("attribute", "low", "high", "others"), RANGES)
def test_an_attribute_is_taken_at_both_edges_and_refused_beyond(
    alice: Client, attribute: str, low: int, high: int, others: dict[str, Any]
) -> None:
    for number, value in enumerate((low, high)):
        reply = alice.put(f"/queues/q{number}", {**others, attribute: value})
        assert reply.status == 201, reply.text
        assert reply.json[attribute] == value
    for value in (low - 1, high + 1):
        reply = alice.put("/queues/refused", {**others, attribute: value})
        assert (reply.status, reply.code) == (400, "InvalidParameter")
        assert reply.json["parameter"] == attribute
    assert alice.get("/queues/refused").code == "QueueNotFound"


@pytest.mark.parametrize("name", ["a", "Z" * 64, "a-b_9", "A1"])
def test_a_name_is_a_letter_then_letters_digits_dashes_and_underscores(
    alice: Client, name: str
) -> None:
    assert alice.put(f"/queues/{name}").json["name"] == name


def test_two_accounts_may_use_one_name(alice: Client, bob: Client) -> None:
    alice.put("/queues/orders", {"delay_seconds": 5})

    assert bob.put("/queues/orders").status == 201
    assert alice.get("/queues/orders").json["delay_seconds"] == 5


def test_a_patch_changes_the_named_attributes_and_answers_all(
    world: World, queue: TestQueue
) -> None:
    world.clock.pass_seconds(60)

    reply = queue.patch(visibility_timeout_seconds=7, description="hello")

    assert reply.status == 200
    expected = {**DEFAULTS, "visibility_timeout_seconds": 7, "description": "hello"}
    assert {name: reply.json[name] for name in DEFAULTS} == expected
    assert to_ms(reply.json["modified_at"]) == to_ms(reply.json["created_at"]) + 60_000
    shown = queue.show()
    assert shown.pop("region")
    assert shown | {"counts": None} == reply.json | {"counts": None}


def test_null_unsets_dead_letter_retry_and_description(make_queue: MakeQueue) -> None:
    make_queue("dead")
    queue = make_queue(
        "orders",
        dead_letter={"queue": "dead", "max_receives": 3},
        retry={"policy": "unordered"},
        description="text",
    )

    reply = queue.patch(dead_letter=None, retry=None, description=None)

    assert reply.status == 200
    assert [reply.json[name] for name in ("dead_letter", "retry", "description")] == [None] * 3


def test_partitions_only_grow(queue: TestQueue) -> None:
    assert queue.patch(partitions=5).status == 200

    shrunk = queue.patch(partitions=4)

    assert (shrunk.status, shrunk.code) == (409, "InUse")
    assert queue.show()["partitions"] == 5


@pytest.mark.parametrize(
    "kind",
    [
        {"ordered": False, "fair": False, "priorities": None},
        {"ordered": True, "partitions": 4},
        {"fair": True},
        {"priorities": 16, "partitions": 1},
    ],
)
def test_fixed_attributes_are_shown_and_may_be_given_unchanged(
    make_queue: MakeQueue, kind: dict[str, Any]
) -> None:
    given = {name: value for name, value in kind.items() if name != "partitions"}
    queue = make_queue(**given)

    assert {name: queue.show()[name] for name in kind} == kind
    assert queue.client.put(queue.path, given).status == 200
    assert queue.patch(**kind).status == 200


def test_a_patch_is_judged_by_the_queues_present_attributes(make_queue: MakeQueue) -> None:
    queue = make_queue(delay_seconds=100)

    assert queue.patch(message_retention_seconds=100).code == "InvalidParameter"
    assert queue.patch(message_retention_seconds=101).status == 200


def test_a_description_has_256_characters_at_most(queue: TestQueue) -> None:
    assert queue.patch(description="é" * 256).json["description"] == "é" * 256
    assert queue.patch(description="").json["description"] == ""
    assert queue.patch(description="é" * 257).json["parameter"] == "description"


def test_there_are_50_labels_at_most_of_4_kb(queue: TestQueue) -> None:
    labels = {f"k{number}": "v" for number in range(50)}

    assert queue.patch(labels=labels).json["labels"] == labels
    assert queue.patch(labels={**labels, "one more": "v"}).json["parameter"] == "labels"
    full = {f"k{number:02}": "é" * 126 for number in range(16)}  # 16 * (3 + 252), and 16 more
    assert queue.patch(labels={**full, "é" * 4: "x" * 8}).json["labels"]["é" * 4] == "x" * 8
    assert queue.patch(labels={**full, "é" * 4: "x" * 9}).json["parameter"] == "labels"


def test_a_change_is_in_force_when_it_is_answered(queue: TestQueue) -> None:
    queue.receive()  # fills the caches with the queue
    queue.patch(delay_seconds=10)

    queue.send("late")

    assert queue.receive() == []
    assert queue.counts() == {"delayed": 1}


def test_a_change_is_in_force_though_functions_have_caches_of_their_own() -> None:
    world = World(shared_caches=False)
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders")
    before = world.clock.now_ms()

    alice.patch("/queues/orders", {"delay_seconds": 10})

    assert world.clock.now_ms() - before == 1_000  # other caches have turned over


def test_an_account_has_10_000_queues_at_most(world: World, alice: Client) -> None:
    alice.put("/queues/first")
    key = {"pk": {"S": "A#alice"}, "sk": {"S": "account"}}
    world.engine.execute(
        "PutItem", {"TableName": world.tables.directory, "Item": {**key, "count": {"N": "9999"}}}
    )

    last, beyond = alice.put("/queues/last"), alice.put("/queues/beyond")

    assert last.status == 201
    assert (beyond.status, beyond.code) == (409, "LimitExceeded")
    alice.delete("/queues/last")
    assert alice.put("/queues/beyond").status == 201


def test_a_queue_keeps_at_most_so_many_messages(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(max_messages=1_000_000)
    queue.send("a")
    world.settle()
    place = key(*counter_key(queue.show()["id"]))
    request = {
        "TableName": world.tables.usage,
        "Key": place,
        "UpdateExpression": "ADD messages :more",
        "ExpressionAttributeValues": {":more": {"N": "999997"}},
    }
    world.engine.execute("UpdateItem", request)
    world.clock.pass_seconds(60)

    assert queue.try_send([{"body": "b"}, {"body": "c"}]).status == 201
    refused = queue.try_send([{"body": "b"}, {"body": "c"}, {"body": "d"}])
    assert (refused.status, refused.code) == (409, "LimitExceeded")


def test_a_deleted_queue_is_gone(queue: TestQueue) -> None:
    reply = queue.client.delete(queue.path)

    assert (reply.status, reply.text) == (204, "")
    assert queue.client.get(queue.path).code == "QueueNotFound"
    assert queue.client.delete(queue.path).code == "QueueNotFound"
    assert queue.try_send([{"body": "a"}]).code == "QueueNotFound"


def test_a_new_queue_of_the_name_never_returns_the_old_ones_messages(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(rewind_seconds=3600)
    queue.send("active", "held")
    held = queue.receive(1)[0]
    sent_at = held["sent_at"]
    queue.client.delete(queue.path)

    again = make_queue(rewind_seconds=3600)

    assert again.receive() == []
    assert again.counts() == {}
    assert again.act("delete", held)["failed"][0]["code"] == "ReceiptExpired"
    assert again.run("rewind", to=sent_at)["done"] == 0


@pytest.mark.parametrize("freed", ["changed", "deleted"])
def test_a_dead_letter_queue_cannot_be_deleted_while_it_is_one(
    make_queue: MakeQueue, dead: TestQueue, freed: str
) -> None:
    queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 1})

    assert dead.client.delete(dead.path).code == "InUse"
    if freed == "changed":
        queue.patch(dead_letter=None)
    else:
        queue.client.delete(queue.path)
    assert dead.client.delete(dead.path).status == 204
