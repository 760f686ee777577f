"""Calls of Aliyun's SDK: publish, consume, acknowledge, in order and as transactions."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from mq_http_sdk.mq_exception import MQServerException
from msgspec.structs import replace
from tests.dialects.conftest import Key
from tests.dialects.mq_sdk import INSTANCE, client_of, message, refusal

from cirrusmq.runtime.cache import Cache
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_dialects.aliyun.groups import make_group
from cirrusmq_local.testing import Client, World

GROUP = "GID_shop"


@pytest.fixture
def mq(world: World, key: Key, shop: Client) -> Any:
    """The SDK's client, and a topic."""
    assert shop.put("/topics/news", {}).status == 201
    return client_of(world, key)


@pytest.fixture
def producer(mq: Any) -> Any:
    return mq.get_producer(INSTANCE, "news")


def consumer(mq: Any, group: str = GROUP, tag: str = "", ordered: bool = False) -> Any:
    """A consumer whose group is there."""
    made = mq.get_consumer(INSTANCE, "news", group, tag)
    begin = made.consume_message_orderly if ordered else made.consume_message
    assert refusal(begin) == "MessageNotExist"
    return made


@pytest.fixture
def reader(mq: Any) -> Any:
    return consumer(mq)


@pytest.mark.parametrize("body", ["hello", "两杯咖啡 ☕", "<a&b>\"' \n\t ]]>", "x" * 65_536])
def test_a_message_there_and_back(world: World, producer: Any, body: str, reader: Any) -> None:
    sent = producer.publish_message(message(body, "TagA", **{"KEYS": "k1", "a-b": "1 2"}))
    digest = hashlib.md5(body.encode()).hexdigest().upper()
    assert sent.message_body_md5 == digest
    world.settle()
    (got,) = reader.consume_message(16)
    assert (got.message_id, got.message_body) == (sent.message_id, body)
    assert (got.message_body_md5, got.message_tag, got.consumed_times) == (digest, "TagA", 1)
    assert (got.get_message_key(), got.get_property("a-b")) == ("k1", "1 2")
    assert got.publish_time <= got.first_consume_time
    assert 299_000 <= got.next_consume_time - got.first_consume_time <= 300_000
    reader.ack_message([got.receipt_handle])
    assert refusal(reader.consume_message, 16) == "MessageNotExist"


def test_a_message_without_tag_and_properties_has_none(
    world: World, producer: Any, reader: Any
) -> None:
    producer.publish_message(message("x"))
    world.settle()
    (got,) = reader.consume_message()
    assert (got.message_tag, got.properties) == ("", {})


def test_each_group_gets_every_message_and_its_members_share_them(
    world: World, mq: Any, producer: Any
) -> None:
    first, second, other = consumer(mq), consumer(mq), consumer(mq, "GID_other")
    for number in range(6):
        producer.publish_message(message(str(number)))
    world.settle()

    def drain(*readers: Any) -> list[str]:
        found: list[str] = []
        while True:
            for reader in readers:
                try:
                    got = reader.consume_message(2)
                except MQServerException:
                    return sorted(found)
                reader.ack_message([each.receipt_handle for each in got])
                found += [each.message_body for each in got]

    assert drain(first, second) == [str(number) for number in range(6)]
    assert drain(other) == [str(number) for number in range(6)]


def test_tags_choose_the_messages_of_a_group_and_its_last_tag_holds(
    world: World, mq: Any, producer: Any, shop: Client
) -> None:
    reader = consumer(mq, tag="TagA||TagB")
    for tag in ("TagA", "TagB", "TagC", ""):
        producer.publish_message(message(tag or "none", tag))
    world.settle()
    got = [reader.consume_message(1)[0].message_body for _ in range(2)]
    assert sorted(got) == ["TagA", "TagB"]
    assert refusal(reader.consume_message) == "MessageNotExist"
    every = consumer(mq, tag="*")
    producer.publish_message(message("TagC", "TagC"))
    world.settle()
    assert every.consume_message()[0].message_body == "TagC"
    shown = shop.get(f"/topics/news/subscriptions/{GROUP}").json
    assert (shown["protocol"], shown["filter"]) == ("queue", None)


def test_an_unacknowledged_message_comes_again_with_a_new_handle_and_then_is_dead(
    world: World, producer: Any, shop: Client, reader: Any
) -> None:
    producer.publish_message(message("again"))
    world.settle()
    (first,) = reader.consume_message()
    world.clock.pass_seconds(290)
    assert refusal(reader.consume_message) == "MessageNotExist"
    world.clock.pass_seconds(11)
    (second,) = reader.consume_message()
    assert (second.message_id, second.consumed_times) == (first.message_id, 2)
    assert second.receipt_handle != first.receipt_handle
    assert second.first_consume_time == first.first_consume_time
    queue = shop.get(f"/queues/news--{GROUP}").json
    assert queue["dead_letter"] == {"queue": f"dlq--news--{GROUP}", "max_receives": 289}
    assert queue["message_retention_seconds"] == 259_200


def test_of_handles_each_is_acknowledged_for_itself(
    world: World, mq: Any, producer: Any, reader: Any
) -> None:
    for body in "ab":
        producer.publish_message(message(body))
    world.settle()
    handles = [reader.consume_message()[0].receipt_handle for _ in range(2)]
    reader.ack_message([handles[0]])
    with pytest.raises(MQServerException) as partly:
        reader.ack_message([handles[0], handles[1], "odd"])
    failed = {each["ReceiptHandle"]: each["ErrorCode"] for each in partly.value.sub_errors}
    assert failed == {handles[0]: "MessageNotExist", "odd": "ReceiptHandleError"}
    assert partly.value.req_id
    assert refusal(reader.ack_message, [handles[1]]) == "MessageNotExist"
    assert refusal(reader.ack_message, []) == "MissingReceiptHandle"
    nobody = mq.get_consumer(INSTANCE, "news", "GID_nobody")
    assert refusal(nobody.ack_message, handles) == "MessageNotExist"


def test_in_order_a_group_gives_nothing_more_until_all_is_acknowledged(
    world: World, mq: Any, producer: Any
) -> None:
    reader = consumer(mq, ordered=True)
    for number in range(4):
        sent = message(str(number))
        sent.set_sharding_key("a")
        producer.publish_message(sent)
    world.settle()
    got = reader.consume_message_orderly(2)
    assert [each.message_body for each in got] == ["0", "1"]
    assert got[0].get_sharding_key() == "a"
    assert 59_000 <= got[0].next_consume_time - got[0].first_consume_time <= 60_000
    assert refusal(reader.consume_message_orderly, 2) == "MessageNotExist"
    world.clock.pass_seconds(61)
    got = reader.consume_message_orderly(2)
    assert [each.message_body for each in got] == ["0", "1"]
    reader.ack_message([each.receipt_handle for each in got])
    assert [each.message_body for each in reader.consume_message_orderly(16)] == ["2", "3"]


def test_a_group_consumes_in_one_way(mq: Any) -> None:
    assert refusal(consumer(mq).consume_message_orderly) == "InvalidArgument"
    ordered = consumer(mq, "GID_ordered", ordered=True)
    assert refusal(ordered.consume_message) == "InvalidArgument"


def test_a_wait_ends_without_a_message_as_it_is_asked_for(world: World, reader: Any) -> None:
    before = world.clock.now_ms()
    assert refusal(reader.consume_message, 1, 3) == "MessageNotExist"
    assert 2_900 <= world.clock.now_ms() - before <= 4_000


def test_a_message_for_later_comes_then(world: World, producer: Any, reader: Any) -> None:
    due_ms = world.clock.now_ms() + 60_000
    for at_ms, body in ((due_ms, "later"), (1, "now")):
        sent = message(body)
        sent.set_start_deliver_time(at_ms)
        producer.publish_message(sent)
    world.settle()
    assert reader.consume_message()[0].message_body == "now"
    assert refusal(reader.consume_message) == "MessageNotExist"
    world.clock.pass_seconds(61)
    world.settle()
    (got,) = reader.consume_message()
    assert (got.message_body, got.get_start_deliver_time()) == ("later", due_ms)
    far = message("x")
    far.set_start_deliver_time(due_ms + 90_000_000)
    assert refusal(producer.publish_message, far) == "InvalidArgument"


def half(body: str, seconds: int = 10) -> Any:
    made = message(body)
    made.set_trans_check_immunity_time(seconds)
    return made


def test_a_half_message_is_seen_after_its_commit_alone(world: World, mq: Any) -> None:
    reader, producer = consumer(mq), mq.get_trans_producer(INSTANCE, "news", GROUP)
    good, bad = (producer.publish_message(half(body)) for body in ("good", "bad"))
    assert good.message_id.startswith("Msg-")
    world.settle()
    assert refusal(reader.consume_message) == "MessageNotExist"
    producer.commit(good.receipt_handle)
    producer.commit(good.receipt_handle)
    producer.rollback(bad.receipt_handle)
    world.settle()
    assert reader.consume_message()[0].message_body == "good"
    assert refusal(reader.consume_message) == "MessageNotExist"
    assert refusal(producer.rollback, good.receipt_handle) == "MessageNotExist"
    assert refusal(producer.commit, "odd") == "ReceiptHandleError"


def test_an_undecided_half_message_is_handed_out_for_its_decision(world: World, mq: Any) -> None:
    reader, producer = consumer(mq), mq.get_trans_producer(INSTANCE, "news", GROUP)
    sent = producer.publish_message(half("unsure"))
    assert refusal(producer.consume_half_message) == "MessageNotExist"
    world.clock.pass_seconds(11)
    (got,) = producer.consume_half_message(16)
    assert (got.message_body, got.message_id) == ("unsure", sent.message_id)
    assert got.consumed_times == 1
    producer.commit(got.receipt_handle)
    assert refusal(producer.consume_half_message) == "MessageNotExist"
    world.settle()
    assert reader.consume_message()[0].message_body == "unsure"


def test_a_wait_for_half_messages_ends_when_one_is_due(world: World, mq: Any) -> None:
    producer = mq.get_trans_producer(INSTANCE, "news", GROUP)
    producer.publish_message(half("unsure"))
    before = world.clock.now_ms()
    assert producer.consume_half_message(1, 20)[0].message_body == "unsure"
    assert 9_000 <= world.clock.now_ms() - before <= 13_000


def test_the_longest_tag_and_as_many_properties_come_back(
    world: World, mq: Any, shop: Client
) -> None:
    tag, properties = "标" * 64, {f"p{number}": "v" * 2_000 for number in range(16)}
    reader = consumer(mq, tag=f"other||{tag}")
    mq.get_producer(INSTANCE, "news").publish_message(message("x", tag, **properties))
    world.settle()
    (got,) = reader.consume_message()
    assert got.message_tag == tag
    assert {name: got.get_property(name) for name in properties} == properties
    # The contract's own limits hold for what its own calls give.
    (group,) = shop.get("/topics/news/subscriptions").json["subscriptions"]
    path = f"/topics/news/subscriptions/{group['name']}"
    longer = {"filter": {"tags": ["x" * 17]}}
    assert shop.patch(path, longer).code == "InvalidFilter"
    assert shop.put(f"{path}2", {**longer, "protocol": "pull"}).code == "InvalidFilter"
    assert shop.get(path).json["filter"] == group["filter"]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (message("x", **{f"p{number}": "1" for number in range(17)}), "InvalidArgument"),
        (message("x", a="1" * 65_537), "InvalidArgument"),
        (message("x", **{"-" * 30: "1"}), "InvalidArgument"),
        (message("x", __STARTDELIVERTIME="soon"), "InvalidArgument"),
        (message("x", __TransCheckT="9"), "InvalidArgument"),
        (message("x", __TransCheckT="301"), "InvalidArgument"),
        (message("x", __SHARDINGKEY="k" * 129), "InvalidArgument"),
        (message("x" * 65_537), "InvalidArgument"),
        (message("\x01"), "MalformedXML"),
    ],
)
def test_invalid_messages_are_refused(producer: Any, made: Any, code: str) -> None:
    assert refusal(producer.publish_message, made) == code


def test_unknown_and_invalid_topics_and_groups_are_refused(mq: Any, shop: Client) -> None:
    for name in ("none", "a", "1st"):
        assert refusal(mq.get_producer(INSTANCE, name).publish_message, message("x")) == (
            "TopicNotExist"
        )
        assert refusal(mq.get_consumer(INSTANCE, name, GROUP).consume_message) == "TopicNotExist"
    for group in ("ab", "g" * 65, "1st"):
        named = mq.get_consumer(INSTANCE, "news", group)
        assert refusal(named.consume_message) == "InvalidArgument"
    assert shop.put("/topics/news/subscriptions/pulled", {"protocol": "pull"}).status == 201
    assert refusal(mq.get_consumer(INSTANCE, "news", "pulled").consume_message) == (
        "InvalidArgument"
    )
    for limit, wait in ((0, -1), (17, -1), (1, 31)):
        reader = mq.get_consumer(INSTANCE, "news", GROUP)
        assert refusal(reader.consume_message, limit, wait) == "InvalidArgument"


def test_too_long_names_of_queues_are_cut(mq: Any, shop: Client) -> None:
    for group in ("GID_" + "a" * 60, "GID_" + "a" * 59 + "b"):
        consumer(mq, group)
    names = [each["name"] for each in shop.get("/queues").json["queues"]]
    assert len(set(names)) == 4
    assert all(len(name) <= 64 for name in names)


def test_a_half_made_group_is_finished(world: World, mq: Any, shop: Client) -> None:
    shop.put(f"/queues/dlq--news--{GROUP}", {"message_retention_seconds": 259_200})
    assert consumer(mq)
    shop.put("/queues/dlq--news--GID_changed", {"message_retention_seconds": 60})
    assert consumer(mq, "GID_changed")


def test_a_consumer_finds_a_group_just_made_elsewhere(world: World, mq: Any) -> None:
    """An environment remembers for a second which groups there are."""
    consumer(mq, "GID_other")
    elsewhere = replace(world.core, cache=Cache(world.core.clock, 1_000, shared=True))
    topic = get_topic(elsewhere, "shop", "news")
    make_group(elsewhere, topic, GROUP, None, ordered=False)
    assert consumer(mq)


def test_both_apis_see_the_same_messages(world: World, shop: Client, reader: Any) -> None:
    sent = [
        {"body_base64": "AAE=", "tags": ["a", "b"]},
        {"body": "text", "attributes": {"a": "b", "odd": "x:y"}},
    ]
    shop.post("/topics/news/messages", {"messages": sent})
    world.settle()
    got = {each.message_body: each for _ in range(2) for each in reader.consume_message(1)}
    assert got["AAE="].properties == {"bodyEncoding": "base64"}
    assert got["AAE="].message_tag == "a||b"
    assert got["text"].properties == {"a": "b"}


def test_it_is_billed_as_native_calls(world: World, mq: Any, producer: Any, shop: Client) -> None:
    reader, queue = consumer(mq), f"news--{GROUP}"

    found: list[Any] = []
    native = {"messages": [{"body": "hello"}]}
    for _ in range(3):  # then caches are warm
        ours = [world.units(lambda: shop.post("/topics/news/messages", native))]
        world.settle()
        ours += [
            world.units(lambda: found.extend(shop.receive(queue, 1, wait_seconds=0))),
            world.units(
                lambda: shop.post(
                    f"/queues/{queue}/messages/delete", {"receipts": [found.pop()["receipt"]]}
                )
            ),
        ]
        theirs = [world.units(lambda: producer.publish_message(message("hello")))]
        world.settle()
        theirs += [
            world.units(lambda: found.extend(reader.consume_message())),
            world.units(lambda: reader.ack_message([found.pop().receipt_handle])),
        ]
    assert [write for write, _ in theirs] == [write for write, _ in ours]
    assert sum(read for _, read in theirs) <= sum(read for _, read in ours) + 1.5
