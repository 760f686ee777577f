"""A table of messages at its maximum of units: callers are told, nothing is lost or half done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.service.conftest import TestQueue
from tests.service.faults import Throttled, publish_apart
from tests.service.test_repeated_sends import attempt
from tests.service.test_rewinding_groups import take_in_order
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


def test_a_send_is_told_and_its_repeat_is_stored_once(world: World, queue: TestQueue) -> None:
    token, messages = attempt(world), [{"body": "a"}, {"body": "b"}]
    fault = capped(world)
    refused = queue.try_send(messages, attempt=token)
    assert (refused.status, refused.code) == (503, "Unavailable")
    fault.end()
    assert queue.bodies() == []
    for _ in range(2):
        assert queue.try_send(messages, attempt=token).status == 201
    assert queue.bodies() == ["a", "b"]


def test_a_receive_without_a_claim_is_told(world: World, queue: TestQueue) -> None:
    queue.send("a")
    fault = capped(world)
    request = {"max": 16, "wait_seconds": 0}
    refused = queue.client.post(f"{queue.path}/messages/receive", request)
    assert (refused.status, refused.code) == (503, "Unavailable")
    fault.end()
    (received,) = queue.receive()
    assert received["receive_count"] == 1


def test_keys_and_queues_can_be_changed_all_the_same(world: World, queue: TestQueue) -> None:
    capped(world)
    assert queue.patch(delay_seconds=5).status == 200
    assert queue.client.put("/queues/another").status == 201


def test_fan_out_is_repeated_by_the_stream_until_there_are_units(
    world: World, topic: TestTopic
) -> None:
    group = topic.subscribe("group", ordered=True)
    records = publish_apart(topic, *"012", group="g")
    fault = capped(world)
    failures = world.run("fan_out", {"Records": records})["batchItemFailures"]
    assert failures == [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]
    fault.end()
    world.settle()
    assert take_in_order(group) == ["0", "1", "2"]
