"""A receive that first deletes what its consumer has finished."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, usage
from tests.service.faults import Throttled
from tests.service.test_listing_operations import with_scope
from tests.service.test_receiving import after, attempt
from tests.service.topics import TestTopic

from cirrusmq.receiving import receive
from cirrusmq_local.testing import Reply, World


def receipts(*messages: Message) -> list[str]:
    return [message["receipt"] for message in messages]


def post(queue: Any, *done: Message, **fields: Any) -> Reply:
    """Receive from a queue or a subscription, and delete the messages in the same call."""
    request = {"delete": receipts(*done), **fields}
    reply: Reply = queue.client.post(f"{queue.path}/messages/receive", request)
    return reply


def exchange(queue: Any, *done: Message, **fields: Any) -> dict[str, Any]:
    reply = post(queue, *done, **fields)
    assert reply.status == 200, reply.text
    answer: dict[str, Any] = reply.json
    return answer


def test_a_receive_deletes_named_messages_and_answers_the_next(queue: TestQueue) -> None:
    queue.send("a", "b")
    first = queue.receive()

    queue.send("c")
    answer = exchange(queue, *first, max=16)

    assert answer["deleted"] == receipts(*first)
    assert answer["failed"] == []
    assert [message["body"] for message in answer["messages"]] == ["c"]
    assert "error" not in answer
    assert queue.counts() == {"inactive": 1}


@pytest.mark.parametrize("given", [{}, {"delete": []}])
def test_a_receive_without_deletes_tells_of_none(queue: TestQueue, given: dict[str, Any]) -> None:
    reply = queue.client.post(f"{queue.path}/messages/receive", given)

    assert reply.json == {"messages": []}


def test_a_subscription_s_receive_deletes_its_own_messages_alone(topic: TestTopic) -> None:
    one, other = topic.subscribe("one"), topic.subscribe("other")
    topic.publish("a")
    (mine,), (theirs,) = one.receive(), other.receive()

    answer = exchange(one, mine, theirs)

    assert answer["deleted"] == receipts(mine)
    assert [(each["receipt"], each["code"]) for each in answer["failed"]] == [
        (theirs["receipt"], "ReceiptExpired")
    ]
    assert (one.counts(), other.counts()) == ({}, {"inactive": 1})


def test_messages_of_the_queue_and_of_its_receivers_are_deleted_by_any_of_their_receives(
    queue: TestQueue,
) -> None:
    queue.add_receiver("audit")
    queue.send("a")
    queue.client.world.settle()
    (mine,), (copy,) = queue.receive(), queue.receive(receiver="audit")

    answer = exchange(queue, mine, copy, receiver="audit")

    assert answer["deleted"] == receipts(mine, copy)
    assert answer["messages"] == []


def test_each_receipt_has_its_own_result(make_queue: MakeQueue) -> None:
    queue, other = make_queue(), make_queue("other")
    queue.send("a", "b", "c")
    other.send("x")
    a, b, _ = queue.receive(visibility_timeout_seconds=60)
    (foreign,) = other.receive()
    queue.delete(b)

    answer = exchange(queue, a, b, foreign, {"receipt": "none"}, a)

    assert answer["deleted"] == receipts(a)
    assert {each["receipt"]: each["code"] for each in answer["failed"]} == dict.fromkeys(
        [b["receipt"], foreign["receipt"], "none"], "ReceiptExpired"
    )


def test_the_next_message_of_an_ordered_group_comes_in_the_same_call(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(ordered=True)
    for body in "abc":
        queue.send(body, group="g")
    got, held = [], queue.receive(1)

    while held:
        got += [message["body"] for message in held]
        held = exchange(queue, *held)["messages"]

    assert got == ["a", "b", "c"]
    assert queue.counts() == {}


def test_rewindable_messages_are_archived(make_queue: MakeQueue) -> None:
    queue = make_queue(rewind_seconds=3_600)
    queue.send("a")

    exchange(queue, *queue.receive())

    assert queue.counts() == {"rewindable": 1}


def test_messages_are_deleted_before_anything_is_waited_for(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("a")
    held = queue.receive()
    left: list[dict[str, int]] = []
    after(world, monkeypatch, 0.05, lambda: left.append(queue.counts()))

    exchange(queue, *held, wait_seconds=20)

    assert left == [{}]


def test_a_repeated_receive_answers_its_messages_again_and_deletes_as_well(
    world: World, queue: TestQueue
) -> None:
    queue.send("a")
    held = queue.receive()
    queue.send("b")
    same = attempt(world)
    first = exchange(queue, attempt=same)  # its answer is lost, and so was the delete

    again = exchange(queue, *held, attempt=same, repeat=True)

    assert again["messages"] == first["messages"]
    assert again["deleted"] == receipts(*held)
    assert queue.counts() == {"inactive": 1}


def test_a_queue_deleted_during_the_wait_does_not_hide_the_deletes(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("a")
    held = queue.receive()
    after(world, monkeypatch, 5, lambda: queue.client.delete(queue.path))

    answer = exchange(queue, *held, wait_seconds=20)

    assert (answer["deleted"], answer["failed"]) == (receipts(*held), [])
    assert answer["messages"] == []
    error = answer["error"]
    assert (error["code"], error["status"]) == ("QueueNotFound", 404)


def test_a_store_refusing_the_search_does_not_hide_the_deletes(
    world: World, queue: TestQueue
) -> None:
    queue.send("a", "b")
    held = queue.receive()
    queue.send("c")
    refusing = Throttled(world, lambda operation, _: operation == "Query")

    answer = exchange(queue, *held)
    refusing.end()

    assert answer["deleted"] == receipts(*held)
    assert answer["messages"] == []
    assert answer["error"]["code"] == "Unavailable"
    assert queue.bodies() == ["c"]


def test_an_unexpected_error_does_not_hide_the_deletes(
    queue: TestQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue.send("a")
    held = queue.receive()
    monkeypatch.setattr(receive, "take_from_partition", lambda *_: 1 / 0)

    answer = exchange(queue, *held)

    assert answer["deleted"] == receipts(*held)
    assert (answer["error"]["code"], answer["error"]["status"]) == ("Unavailable", 503)
    assert "ZeroDivisionError" not in str(answer)


def test_a_delete_refused_by_the_store_fails_alone(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(partitions=1)
    for body in "abc":
        queue.send(body)
    held = queue.receive()
    assert len(held) == 3
    queue.send("d")

    Throttled(world, lambda operation, _: operation == "DeleteItem", times=1)
    answer = exchange(queue, *held)

    (failed,) = answer["failed"]
    assert failed["code"] == "Unavailable"
    assert {failed["receipt"], *answer["deleted"]} == set(receipts(*held))
    assert [message["body"] for message in answer["messages"]] == ["d"]
    again = [message for message in held if message["receipt"] == failed["receipt"]]
    queue.delete(*again)


@pytest.mark.parametrize(
    ("wrong", "code", "parameter"),
    [
        ({"max": 17}, "InvalidParameter", "max"),
        ({"repeat": True}, "InvalidParameter", "repeat"),
        ({"attempt": "0" * 26}, "InvalidParameter", "attempt"),
        ({"receiver": "nobody"}, "ReceiverNotFound", None),
        ({"delete": [1]}, "InvalidParameter", "delete[1]"),
        ({"delete": [""]}, "InvalidParameter", "delete[1]"),
        ({"delete": ["r" * 2_049]}, "InvalidParameter", "delete[1]"),
        ({"delete": "r"}, "InvalidParameter", "delete"),
        ({"delete": None}, "InvalidParameter", "delete"),
        ({"delete": ["r"] * 17}, "BatchTooLarge", None),
    ],
)
def test_a_refused_receive_has_deleted_nothing(
    queue: TestQueue, wrong: dict[str, Any], code: str, parameter: str | None
) -> None:
    queue.send("a")
    held = queue.receive()
    if isinstance(wrong.get("delete"), list):
        wrong = {"delete": receipts(*held) + wrong["delete"]}

    reply = post(queue, *held, **wrong)

    assert (reply.code, reply.json.get("parameter")) == (code, parameter)
    queue.delete(*held)


def test_a_key_for_receives_alone_may_delete_so(queue: TestQueue) -> None:
    sender = with_scope(queue.client, {"send": "all"})
    receiver = with_scope(queue.client, {"receive": {"queues": [queue.name]}})
    queue.send("a")
    held = queue.receive()

    refused = post(TestQueue(sender, queue.name), *held)
    answer = exchange(TestQueue(receiver, queue.name), *held)

    assert refused.code == "Forbidden"
    assert answer["deleted"] == receipts(*held)


def test_it_is_billed_as_a_receive_and_a_delete(world: World, queue: TestQueue) -> None:
    queue.send("a", "b")
    exchange(queue, *queue.receive())
    world.settle()

    by_kind = {name.rpartition(" ")[2]: count for name, count in usage(world).items()}
    assert by_kind == {"sent": 2, "received": 2, "deleted": 2}


def test_a_message_costs_3_write_units_and_half_a_read_unit_all_the_same(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(partitions=1)
    queue.send("x" * 100)
    held = queue.receive()
    world.engine.reset_capacity()

    for _ in range(10):
        queue.send("x" * 100)
        held = exchange(queue, *held)["messages"]

    used = world.engine.capacity()["by_table"][world.tables.messages]
    assert used["write_units"] == 30
    assert used["read_units"] <= 5.5
