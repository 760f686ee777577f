"""Aliyun's SDK of RocketMQ over HTTP against the service as its users start it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mq_http_sdk.mq_client import MQClient
from mq_http_sdk.mq_exception import MQServerException
from tests.dialects.cutter import Cutter
from tests.dialects.mq_sdk import INSTANCE, message, refusal
from tests.dialects.programs import check_example, check_node, environment_of, needs_node

Connect = Callable[..., Any]
GROUP = "GID_shop"


@pytest.fixture
def connect(running: dict[str, Any]) -> Iterator[Connect]:
    """Makes the SDK's client, with nothing but another endpoint and another key."""
    made: list[Any] = []

    def client(url: str | None = None, secret: str | None = None) -> Any:
        key = running["signing_key"]
        at, by = url or running["dialect_url"], secret or key["secret"]
        made.append(MQClient(at, key["access_key_id"], by))
        return made[-1]

    yield client
    for each in made:
        each.close_connection()


def make_topic(running: dict[str, Any], name: str) -> str:
    """A topic, as an operator makes it; a signing key is a bearer key too."""
    key = running["signing_key"]
    reply = httpx.put(
        f"{running['url']}/topics/{name}",
        json={},
        headers={"authorization": f"Bearer {key['access_key_id']}:{key['secret']}"},
        timeout=60,
    )
    assert reply.status_code in (200, 201), reply.text
    return name


@pytest.fixture
def topic(running: dict[str, Any]) -> str:
    """One that no other test has."""
    return make_topic(running, f"t-{uuid.uuid4().hex}")


def take(consume: Callable[..., Any], count: int) -> list[Any]:
    """So many messages, however many of them come at once."""
    found: list[Any] = []
    until = time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        try:
            found += consume(16, 5)
        except MQServerException as error:
            if error.type != "MessageNotExist":
                raise
    return found


def test_every_call_of_a_producer_and_a_consumer(connect: Connect, topic: str) -> None:
    client = connect()
    consumer = client.get_consumer(INSTANCE, topic, GROUP, "TagA||TagB")
    producer = client.get_producer(INSTANCE, topic)
    assert refusal(consumer.consume_message) == "MessageNotExist"
    assert refusal(consumer.consume_message, 1, 1) == "MessageNotExist"
    sent = producer.publish_message(message("两杯 <&>", "TagA", KEYS="k1"))
    producer.publish_message(message("other", "TagC"))
    (got,) = take(consumer.consume_message, 1)
    assert (got.message_id, got.message_body) == (sent.message_id, "两杯 <&>")
    assert (got.message_tag, got.get_message_key()) == ("TagA", "k1")
    with pytest.raises(MQServerException) as partly:
        consumer.ack_message([got.receipt_handle, "odd"])
    (failed,) = partly.value.sub_errors
    assert (failed["ErrorCode"], failed["ReceiptHandle"]) == ("ReceiptHandleError", "odd")
    assert refusal(consumer.ack_message, [got.receipt_handle]) == "MessageNotExist"
    producer.publish_message(message("more", "TagB"))
    (got,) = take(consumer.consume_message, 1)
    consumer.ack_message([got.receipt_handle])


def test_every_call_in_order(connect: Connect, topic: str) -> None:
    client = connect()
    consumer = client.get_consumer(INSTANCE, topic, GROUP)
    producer = client.get_producer(INSTANCE, topic)
    assert refusal(consumer.consume_message_orderly) == "MessageNotExist"
    for number in range(4):
        sent = message(str(number))
        sent.set_sharding_key("a")
        producer.publish_message(sent)
    found: list[str] = []
    while len(found) < 4:
        some = take(consumer.consume_message_orderly, 1)
        consumer.ack_message([each.receipt_handle for each in some])
        found += [each.message_body for each in some]
    assert found == ["0", "1", "2", "3"]


def test_every_call_of_a_transaction(connect: Connect, topic: str) -> None:
    client = connect()
    consumer = client.get_consumer(INSTANCE, topic, GROUP)
    producer = client.get_trans_producer(INSTANCE, topic, GROUP)
    assert refusal(consumer.consume_message) == "MessageNotExist"
    halves = []
    for body in ("good", "bad", "unsure"):
        made = message(body)
        made.set_trans_check_immunity_time(10)
        halves.append(producer.publish_message(made))
    producer.commit(halves[0].receipt_handle)
    producer.rollback(halves[1].receipt_handle)
    (got,) = take(consumer.consume_message, 1)
    assert got.message_body == "good"
    (unsure,) = take(producer.consume_half_message, 1)
    assert unsure.message_body == "unsure"
    producer.commit(unsure.receipt_handle)
    (got,) = take(consumer.consume_message, 1)
    assert got.message_body == "unsure"


def test_a_lost_answer_has_the_sdk_send_again_and_stores_twice_as_there(
    connect: Connect, cutter: Cutter, topic: str
) -> None:
    consumer = connect().get_consumer(INSTANCE, topic, GROUP)
    assert refusal(consumer.consume_message) == "MessageNotExist"
    cutter.loses = 1
    connect(cutter.url).get_producer(INSTANCE, topic).publish_message(message("twice"))
    assert cutter.requests == 2
    assert [each.message_body for each in take(consumer.consume_message, 2)] == ["twice"] * 2


def test_a_broken_off_request_stores_nothing(connect: Connect, cutter: Cutter, topic: str) -> None:
    consumer = connect().get_consumer(INSTANCE, topic, GROUP)
    assert refusal(consumer.consume_message) == "MessageNotExist"
    cutter.passes = 60
    connect(cutter.url).get_producer(INSTANCE, topic).publish_message(message("once"))
    assert [each.message_body for each in take(consumer.consume_message, 1)] == ["once"]
    assert refusal(consumer.consume_message, 16, 1) == "MessageNotExist"


@pytest.mark.usefixtures("orders")
def test_the_example_runs_with_another_endpoint_and_key_in_its_environment(
    running: dict[str, Any], tmp_path: Path
) -> None:
    make_topic(running, "orders")
    env = environment_of(running, "MQ_ENDPOINT", "ACCESS_KEY", "SECRET_KEY")
    check_example("mq_orders.py", env, tmp_path, ["got 2 coffee", "got 2 tea"], seconds=120)


@needs_node("@aliyunmq/mq-http-sdk")
def test_the_sdk_for_node_works_too(running: dict[str, Any], topic: str, tmp_path: Path) -> None:
    check_node("mq_client.mjs", running, topic, tmp_path, seconds=180)
