"""Calls of CMQ's SDK on messages of queues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.cmq_sdk import (
    WAYS,
    CMQServerException,
    account_of,
    act,
    message,
    queue_meta,
    refusal,
)
from tests.dialects.conftest import Key

from cirrusmq_local.testing import Client, World

NO_MESSAGE = (7000, 10200)


@pytest.fixture(params=WAYS, ids=["-".join(way) for way in WAYS])
def cmq(world: World, key: Key, request: pytest.FixtureRequest) -> Any:
    """The SDK's account."""
    return account_of(world, key, request.param)


@pytest.fixture
def queue(cmq: Any) -> Any:
    made = cmq.get_queue("orders")
    made.create(queue_meta())
    return made


@pytest.mark.parametrize(
    "body", ["hello", "两杯咖啡 ☕", "a+b c&d=e%20\r\n\t", "@file", "\0\x01\ufffe", "x" * 65_536]
)
def test_a_message_there_and_back(world: World, queue: Any, body: str) -> None:
    sent = queue.send_message(message(body))
    now = world.clock.now_ms() // 1000
    got = queue.receive_message()
    assert (got.msgId, got.msgBody) == (sent.msgId, body)
    assert (got.dequeueCount, got.enqueueTime) == (1, got.firstDequeueTime)
    assert got.nextVisibleTime - now in (30, 31)
    queue.delete_message(got.receiptHandle)
    assert refusal(queue.receive_message) == NO_MESSAGE


def test_a_batch_there_and_back(queue: Any) -> None:
    sent = queue.batch_send_message([message(str(number)) for number in range(16)])
    found = queue.batch_receive_message(16)
    assert {each.msgId: each.msgBody for each in found} == {
        each.msgId: str(number) for number, each in enumerate(sent)
    }
    queue.batch_delete_message([each.receiptHandle for each in found])
    assert refusal(lambda: queue.batch_receive_message(16)) == NO_MESSAGE


def test_an_undeleted_message_comes_again_with_a_new_handle(world: World, queue: Any) -> None:
    queue.send_message(message("again"))
    first = queue.receive_message()
    world.clock.pass_seconds(31)
    second = queue.receive_message()
    assert (second.msgId, second.dequeueCount) == (first.msgId, 2)
    assert second.firstDequeueTime == first.firstDequeueTime
    assert refusal(lambda: queue.delete_message(first.receiptHandle)) == (4430, 10260)
    queue.delete_message(second.receiptHandle)


def test_delayed_messages_come_later(world: World, queue: Any) -> None:
    queue.send_message(message("later"), 10)
    queue.batch_send_message([message("later")], 10)
    assert refusal(queue.receive_message) == NO_MESSAGE
    world.clock.pass_seconds(11)
    found = [queue.receive_message(1).msgBody for _ in range(2)]
    assert found == ["later", "later"]


def test_a_poll_without_a_message_ends_with_the_code_of_none(world: World, queue: Any) -> None:
    before = world.clock.now_ms()
    assert refusal(lambda: queue.receive_message(3)) == NO_MESSAGE
    assert 2_900 <= world.clock.now_ms() - before <= 4_000
    before = world.clock.now_ms()
    assert refusal(lambda: queue.receive_message(30)) == NO_MESSAGE
    assert world.clock.now_ms() - before <= 28_000  # the call's own time


def test_of_a_batch_of_handles_each_is_deleted_for_itself(queue: Any) -> None:
    queue.batch_send_message([message("a"), message("b")])
    handles = [each.receiptHandle for each in queue.batch_receive_message(2)]
    with pytest.raises(CMQServerException) as partly:
        queue.batch_delete_message([handles[0], "stale"])
    assert (partly.value.code, partly.value.message) == (
        6010,
        "(10150)delete message partially failed",
    )
    (failed,) = partly.value.data["errorList"]
    assert (failed["code"], failed["receiptHandle"]) == (4430, "stale")
    assert failed["message"].startswith("(10260)")
    with pytest.raises(CMQServerException) as none:
        queue.batch_delete_message([handles[0], "stale"])
    assert (none.value.code, len(none.value.data["errorList"])) == (6020, 2)
    queue.batch_delete_message([handles[1], handles[1]])


def test_a_handle_of_another_queue_deletes_nothing(cmq: Any, queue: Any) -> None:
    other = cmq.get_queue("other")
    other.create(queue_meta())
    other.send_message(message("x"))
    handle = other.receive_message().receiptHandle
    for given in (handle, "x", "ü", "A" * 3_000):
        assert refusal(queue.delete_message, given) == (4430, 10260)
    other.delete_message(handle)


def test_a_batch_is_all_or_nothing(queue: Any) -> None:
    sized = [message("x" * 1_000), message("y" * 65_537)]
    assert refusal(lambda: queue.batch_send_message(sized)) == (4400, 10230)
    assert refusal(lambda: queue.batch_send_message([message("x"), message("")])) == (4000, 10120)
    assert refusal(queue.receive_message) == NO_MESSAGE


def test_bodies_at_the_limits(cmq: Any, queue: Any) -> None:
    assert refusal(lambda: queue.send_message(message("x" * 65_537))) == (4400, 10230)
    assert refusal(lambda: queue.send_message(message(""))) == (4000, 10120)
    large = cmq.get_queue("large")
    large.create(queue_meta(maxMsgSize=262_144))
    large.send_message(message("é" * 131_072))
    assert large.receive_message().msgBody == "é" * 131_072
    assert refusal(lambda: large.send_message(message("x" * 262_145))) == (4400, 10230)
    large.batch_send_message([message("x" * 131_072)] * 2)
    sized = [message("x" * 131_072), message("x" * 131_073)]
    assert refusal(lambda: large.batch_send_message(sized)) == (4470, 10300)


def test_both_apis_see_the_same_messages(queue: Any, shop: Client) -> None:
    queue.send_message(message("from cmq"))
    (native,) = shop.receive("orders")
    assert native["body"] == "from cmq"
    shop.post("/queues/orders/messages/delete", {"receipts": [native["receipt"]]})
    sent = [{"body_base64": "AAE="}, {"body": "text", "attributes": {"a": "b"}}]
    shop.post("/queues/orders/messages", {"messages": sent})
    assert sorted(each.msgBody for each in queue.batch_receive_message(16)) == ["AAE=", "text"]


def test_an_ordered_queue_of_the_native_api_keeps_its_order(cmq: Any, shop: Client) -> None:
    shop.put("/queues/lines", {"ordered": True})
    sent = [{"body": str(number), "group": "a"} for number in range(3)]
    shop.post("/queues/lines/messages", {"messages": sent})
    queue = cmq.get_queue("lines")
    assert [each.msgBody for each in queue.batch_receive_message(3)] == ["0", "1", "2"]


def test_a_client_request_id_is_told_again(cmq: Any, queue: Any) -> None:
    told = act(cmq, "SendMessage", queueName="orders", msgBody="x", clientRequestId="mine")
    assert (told["clientRequestId"], told["code"], told["message"]) == ("mine", 0, "")
    assert told["requestId"]
    with pytest.raises(CMQServerException) as refused:
        act(cmq, "ReceiveMessage", queueName="none", clientRequestId="mine")
    assert refused.value.data["clientRequestId"] == "mine"


def test_messages_too_large_for_an_answer_are_passed_over(cmq: Any, shop: Client) -> None:
    """They come from programs that call the HTTP API."""
    shop.put("/queues/mixed", {"max_message_bytes": 4_194_304})
    shop.gzips = True
    shop.send("mixed", "\x01" * 800_000)
    shop.gzips = False
    queue = cmq.get_queue("mixed")
    assert refusal(queue.receive_message) == NO_MESSAGE
    shop.send("mixed", "small")
    assert queue.receive_message().msgBody == "small"
