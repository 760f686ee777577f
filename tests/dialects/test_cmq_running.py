"""CMQ's SDK against the service as its users start it: every call, by both ways to sign."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.cmq_sdk import (
    WAYS,
    Account,
    message,
    queue_meta,
    refusal,
    signing,
    subscription_meta,
    topic_meta,
)
from tests.dialects.cutter import Cutter
from tests.dialects.programs import check_example, environment_of

Connect = Callable[..., Any]


@pytest.fixture
def connect(running: dict[str, Any]) -> Iterator[Connect]:
    """Makes the SDK's account, with nothing but another endpoint and another key."""
    made: list[Any] = []

    def account(
        way: tuple[str, str] = WAYS[0], url: str | None = None, secret: str | None = None
    ) -> Any:
        key = running["signing_key"]
        at, by = url or running["dialect_url"], secret or key["secret"]
        made.append(signing(Account(at, key["access_key_id"], by), way))
        return made[-1]

    yield account
    for each in made:
        each.get_client().close_connection()


@pytest.fixture(
    params=[
        pytest.param(way, id="-".join(way), marks=[pytest.mark.long] if number else [])
        for number, way in enumerate(WAYS)
    ]
)
def cmq(connect: Connect, request: pytest.FixtureRequest) -> Any:
    """The SDK by one way to sign; in memory it makes its calls by both, here by the long tests."""
    return connect(request.param)


def test_every_call_on_queues(cmq: Any, name: str) -> None:
    queue = cmq.get_queue(name)
    queue.create(queue_meta(rewindSeconds=600, pollingWaitSeconds=3))
    queue.set_attributes(queue_meta(rewindSeconds=600, pollingWaitSeconds=3, visibilityTimeout=60))
    assert queue.get_attributes().visibilityTimeout == 60
    assert cmq.list_queue(searchWord=name)[0] == 1
    since = int(time.time())
    sent = queue.send_message(message("两杯咖啡"))
    got = queue.receive_message()
    assert (got.msgId, got.msgBody) == (sent.msgId, "两杯咖啡")
    queue.delete_message(got.receiptHandle)
    queue.batch_send_message([message("@a"), message("b c&d")])
    found: list[Any] = []
    while len(found) < 2:
        some = queue.batch_receive_message(16, 5)
        queue.batch_delete_message([each.receiptHandle for each in some])
        found += [each.msgBody for each in some]
    assert sorted(found) == ["@a", "b c&d"]
    assert refusal(lambda: queue.receive_message(1)) == (7000, 10200)
    queue.rewindQueue(since)
    assert queue.get_attributes().activeMsgNum == 3
    queue.delete()
    assert refusal(queue.get_attributes) == (4440, 10100)


def test_every_call_on_topics(cmq: Any, name: str) -> None:
    queue, topic = cmq.get_queue(name), cmq.get_topic(name)
    queue.create(queue_meta(pollingWaitSeconds=10))
    topic.create(topic_meta())
    topic.set_attributes(topic_meta(maxMsgSize=2_048))
    assert topic.get_attributes().maxMsgSize == 2_048
    assert cmq.list_topic(searchWord=name)[0] == 1
    subscription = cmq.get_subscription(name, "readers")
    given = subscription_meta(
        Protocal="queue", Endpoint=name, NotifyContentFormat="SIMPLIFIED", FilterTag=["a"]
    )
    subscription.create(given)
    topic.publish_message(message("1", "a"))
    given.FilterTag = ["b"]
    subscription.set_attributes(given)
    assert subscription.get_attributes().FilterTag == ["b"]
    topic.batch_publish_message([message("2")], ["b"])
    subscription.clearFilterTags()
    topic.publish_message(message("3"))
    assert topic.list_subscription()[0] == 1
    assert sorted(queue.receive_message().msgBody for _ in range(3)) == ["1", "2", "3"]
    subscription.delete()
    topic.delete()
    queue.delete()


def test_a_coded_text_is_refused_since_another_one_is_signed(connect: Connect, name: str) -> None:
    """On Python 3 the SDK fails with a text then; of bytes it signs `b'...'` and sends base64."""
    queue, topic = connect().get_queue(name), connect().get_topic(name)
    queue.set_encoding(True)
    topic.set_encoding(True)
    sent = message("")
    sent.msgBody = b"x"
    assert refusal(queue.send_message, sent) == (4100, 10030)
    assert refusal(topic.publish_message, sent) == (4100, 10030)


@pytest.mark.parametrize("way", WAYS, ids=["-".join(way) for way in WAYS])
def test_a_lost_answer_has_the_sdk_send_again_and_stores_twice_as_there(
    connect: Connect, cutter: Cutter, name: str, way: tuple[str, str]
) -> None:
    """Its repeated GET has the parameters in the body."""
    queue = connect().get_queue(name)
    queue.create(queue_meta(pollingWaitSeconds=5))
    cutter.loses = 1
    connect(way, cutter.url).get_queue(name).send_message(message("twice"))
    assert cutter.requests == 2
    assert [queue.receive_message().msgBody for _ in range(2)] == ["twice", "twice"]


@pytest.mark.parametrize("passes", [20, 200])
def test_a_broken_off_request_stores_nothing(
    connect: Connect, cutter: Cutter, name: str, passes: int
) -> None:
    queue = connect().get_queue(name)
    queue.create(queue_meta(pollingWaitSeconds=5))
    cutter.passes = passes
    connect(url=cutter.url).get_queue(name).send_message(message("once"))
    assert queue.receive_message().msgBody == "once"
    assert refusal(lambda: queue.receive_message(1)) == (7000, 10200)


@pytest.mark.usefixtures("orders")
def test_the_example_runs_with_another_endpoint_and_key_in_its_environment(
    running: dict[str, Any], tmp_path: Path
) -> None:
    env = environment_of(running, "CMQ_ENDPOINT", "SECRET_ID", "SECRET_KEY")
    # The SDK writes its log into its folder.
    check_example("cmq_orders.py", env, tmp_path, ["got coffee", "got tea"])
