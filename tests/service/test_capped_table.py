"""A table of messages at its maximum of units: callers are told, nothing is lost or half done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.service.conftest import MakeQueue
from tests.service.faults import Throttled, log_records
from tests.service.test_repeated_sends import attempt
from tests.service.topics import TestTopic

from cirrusmq_local.testing import World

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


def capped(world: World) -> Throttled:
    """No write to the table of messages goes through: its units of this second are used up."""

    def wanted(operation: str, request: Mapping[str, Any]) -> bool:
        parts = [held for part in request.get("TransactItems", ()) for held in part.values()]
        tables = {held.get("TableName") for held in [request, *parts]}
        return operation in WRITES and world.tables.messages in tables

    return Throttled(world, wanted)


def test_a_send_is_told_and_its_repeat_is_stored_once(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue("orders")
    token, messages = attempt(world), [{"body": "a"}, {"body": "b"}]
    fault = capped(world)
    refused = queue.try_send(messages, attempt=token)
    assert (refused.status, refused.code) == (503, "Unavailable")
    fault.end()
    assert queue.bodies() == []
    for _ in range(2):
        assert queue.try_send(messages, attempt=token).status == 201
    assert queue.bodies() == ["a", "b"]


def test_settling_is_told_and_can_be_repeated(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue("orders")
    queue.send("a")
    (held,) = queue.receive()
    fault = capped(world)
    receipts = {"receipts": [held["receipt"]]}
    refused = queue.client.post(f"{queue.path}/messages/delete", receipts)
    assert (refused.status, refused.code) == (503, "Unavailable")
    fault.end()
    queue.delete(held)
    assert queue.counts() == {}


def test_a_receive_that_claimed_nothing_is_told(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue("orders")
    queue.send("a")
    fault = capped(world)
    request = {"max": 16, "wait_seconds": 0}
    refused = queue.client.post(f"{queue.path}/messages/receive", request)
    assert (refused.status, refused.code) == (503, "Unavailable")
    fault.end()
    (received,) = queue.receive()
    assert received["receive_count"] == 1


def test_keys_and_queues_can_be_changed_all_the_same(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue("orders")
    capped(world)
    assert queue.patch(delay_seconds=5).status == 200
    assert queue.client.put("/queues/another").status == 201


def test_fan_out_is_repeated_by_the_stream_until_there_are_units(
    world: World, topic: TestTopic
) -> None:
    group = topic.subscribe("group", ordered=True)
    for number in range(3):
        world.clock.pass_seconds(0.001)
        assert topic.try_publish([{"body": str(number), "group": "g"}]).status == 201
    records = log_records(world)
    fault = capped(world)
    failures = world.run("fan_out", {"Records": records})["batchItemFailures"]
    assert failures == [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]
    fault.end()
    world.settle()
    bodies = []
    while messages := group.receive():
        bodies += [message["body"] for message in messages]
        group.delete(*messages)
    assert bodies == ["0", "1", "2"]
