"""Calls of CMQ's SDK on queues."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dialects.cmq_sdk import account_of, act, message, queue_meta, refusal
from tests.dialects.conftest import Key

from cirrusmq_local.testing import Client, World


@pytest.fixture
def cmq(world: World, key: Key) -> Any:
    """The SDK's account."""
    return account_of(world, key)


def test_attributes_are_the_native_ones(cmq: Any, shop: Client) -> None:
    queue = cmq.get_queue("orders")
    queue.create(
        queue_meta(
            maxMsgHeapNum=2_000_000,
            pollingWaitSeconds=7,
            visibilityTimeout=60,
            maxMsgSize=262_144,
            msgRetentionSeconds=7_200,
            rewindSeconds=3_600,
        )
    )
    native = shop.get("/queues/orders").json
    assert (native["max_messages"], native["receive_wait_seconds"]) == (2_000_000, 7)
    assert (native["visibility_timeout_seconds"], native["max_message_bytes"]) == (60, 262_144)
    assert (native["message_retention_seconds"], native["rewind_seconds"]) == (7_200, 3_600)
    shown = queue.get_attributes()
    assert (shown.maxMsgHeapNum, shown.pollingWaitSeconds) == (2_000_000, 7)
    assert (shown.visibilityTimeout, shown.maxMsgSize) == (60, 262_144)
    assert (shown.msgRetentionSeconds, shown.rewindSeconds) == (7_200, 3_600)
    assert shown.createTime == shown.lastModifyTime > 0


def test_the_defaults_are_cmqs(cmq: Any) -> None:
    cmq.get_queue("orders").create(queue_meta())
    shown = act(cmq, "GetQueueAttributes", queueName="orders")
    assert (shown["maxMsgHeapNum"], shown["pollingWaitSeconds"]) == (100_000_000, 0)
    assert (shown["visibilityTimeout"], shown["maxMsgSize"]) == (30, 65_536)
    assert (shown["msgRetentionSeconds"], shown["rewindSeconds"]) == (345_600, 0)
    assert "deadLetterPolicy" not in shown


def test_a_change_is_in_force_and_other_attributes_stay(cmq: Any) -> None:
    queue = cmq.get_queue("orders")
    queue.create(queue_meta(maxMsgHeapNum=5_000_000))
    queue.set_attributes(queue_meta(visibilityTimeout=77))
    shown = queue.get_attributes()
    assert (shown.visibilityTimeout, shown.maxMsgHeapNum) == (77, 5_000_000)


def test_counts_are_of_messages_by_state(world: World, cmq: Any) -> None:
    queue = cmq.get_queue("orders")
    queue.create(queue_meta(rewindSeconds=600))
    queue.batch_send_message([message(str(number)) for number in range(5)])
    queue.send_message(message("later"), 60)
    held = queue.receive_message()
    queue.delete_message(queue.receive_message().receiptHandle)
    shown = queue.get_attributes()
    assert (shown.activeMsgNum, shown.inactiveMsgNum, shown.delayMsgNum) == (3, 1, 1)
    assert shown.rewindmsgNum == 1
    assert shown.minMsgTime == held.enqueueTime


def test_an_existing_name_is_refused_whatever_its_case_and_attributes(cmq: Any) -> None:
    cmq.get_queue("orders").create(queue_meta())
    for name in ("orders", "Orders"):
        assert refusal(cmq.get_queue(name).create, queue_meta()) == (4460, 10210)


def test_queues_are_listed_by_a_part_of_their_name(cmq: Any) -> None:
    for name in ("a-orders", "b-orders", "c-bills"):
        cmq.get_queue(name).create(queue_meta())
    total, first, following = cmq.list_queue(limit=2)
    assert (total, [each["queueName"] for each in first]) == (3, ["a-orders", "b-orders"])
    total, rest, following = cmq.list_queue(limit=2, offset=following)
    assert ([each["queueName"] for each in rest], following) == (["c-bills"], "")
    total, found, _ = cmq.list_queue(searchWord="orders")
    assert (total, len(found)) == (2, 2)
    assert all(each["queueId"].startswith("queue-") for each in found)


def test_a_deleted_queue_is_gone_and_its_name_is_free(cmq: Any) -> None:
    queue = cmq.get_queue("orders")
    assert refusal(queue.delete) == (4440, 10100)
    queue.create(queue_meta())
    queue.delete()
    assert refusal(queue.get_attributes) == (4440, 10100)
    queue.create(queue_meta())


def test_deleted_messages_are_rewound(world: World, cmq: Any) -> None:
    queue = cmq.get_queue("orders")
    queue.create(queue_meta(rewindSeconds=600))
    queue.send_message(message("again"))
    since = world.clock.now_ms() // 1000
    queue.delete_message(queue.receive_message().receiptHandle)
    queue.rewindQueue(since)
    world.settle()
    assert queue.receive_message().msgBody == "again"


def test_an_impossible_rewind_is_refused(world: World, cmq: Any) -> None:
    queue = cmq.get_queue("orders")
    queue.create(queue_meta())
    now = world.clock.now_ms() // 1000
    assert refusal(lambda: queue.rewindQueue(now)) == (6050, 10670)
    queue.set_attributes(queue_meta(rewindSeconds=600))
    for moment in (now - 700, now + 60, 0):
        assert refusal(queue.rewindQueue, moment) == (4000, 10680)
    assert refusal(lambda: act(cmq, "RewindQueue", queueName="orders")) == (4000, 10390)


@pytest.mark.parametrize(
    ("policy", "native"),
    [
        ({"policy": 0, "maxReceiveCount": 3}, {"queue": "dead", "max_receives": 3}),
        ({"policy": 1, "maxTimeToLive": 300}, {"queue": "dead", "max_age_seconds": 300}),
    ],
)
def test_a_dead_letter_policy_is_the_native_one(
    cmq: Any, shop: Client, policy: dict[str, int], native: dict[str, Any]
) -> None:
    cmq.get_queue("dead").create(queue_meta())
    given = {"deadLetterQueue": "dead", **policy}
    act(cmq, "CreateQueue", queueName="orders", deadLetterPolicy=json.dumps(given))
    assert shop.get("/queues/orders").json["dead_letter"] == native
    shown = act(cmq, "GetQueueAttributes", queueName="orders")
    assert json.loads(shown["deadLetterPolicy"]) == given
    assert refusal(cmq.get_queue("dead").delete) == (4000, 10750)
    again = act(cmq, "SetQueueAttributes", queueName="orders", visibilityTimeout=5)
    assert (json.loads(again["deadLetterPolicy"]), again["visibilityTimeout"]) == (given, 5)


@pytest.mark.parametrize(
    ("policy", "module"),
    [
        ("", 10710),
        ("x", 10710),
        ("[]", 10710),
        ("[" * 5_000, 10710),
        ('{"policy": 0, "maxReceiveCount": 1}', 10760),
        ('{"deadLetterQueue": 5, "policy": 0, "maxReceiveCount": 1}', 10760),
        ('{"deadLetterQueue": "dead"}', 10770),
        ('{"deadLetterQueue": "dead", "policy": true}', 10770),
        ('{"deadLetterQueue": "dead", "policy": 2}', 10770),
        ('{"deadLetterQueue": "dead", "policy": []}', 10770),
        ('{"deadLetterQueue": "dead", "policy": 0}', 10720),
        ('{"deadLetterQueue": "dead", "policy": 0, "maxReceiveCount": 0}', 10720),
        ('{"deadLetterQueue": "dead", "policy": 0, "maxReceiveCount": 1001}', 10720),
        ('{"deadLetterQueue": "dead", "policy": 0, "maxReceiveCount": 1.5}', 10720),
        ('{"deadLetterQueue": "dead", "policy": 1, "maxTimeToLive": 299}', 10720),
        ('{"deadLetterQueue": "none", "policy": 0, "maxReceiveCount": 1}', 10730),
        ('{"deadLetterQueue": "ü", "policy": 0, "maxReceiveCount": 1}', 10730),
        ('{"deadLetterQueue": "orders", "policy": 0, "maxReceiveCount": 1}', 10740),
        ('{"deadLetterQueue": "nested", "policy": 0, "maxReceiveCount": 1}', 10740),
    ],
)
def test_an_invalid_policy_is_refused(cmq: Any, policy: str, module: int) -> None:
    for name in ("dead", "orders"):
        cmq.get_queue(name).create(queue_meta())
    nested = {"deadLetterQueue": "dead", "policy": 0, "maxReceiveCount": 1}
    act(cmq, "CreateQueue", queueName="nested", deadLetterPolicy=json.dumps(nested))

    def change() -> None:
        act(cmq, "SetQueueAttributes", queueName="orders", deadLetterPolicy=policy)

    assert refusal(change) == (4000, module)
