"""Calls of CMQ's SDK on topics and subscriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dialects.cmq_sdk import (
    CMQServerException,
    account_of,
    act,
    message,
    queue_meta,
    refusal,
    subscription_meta,
    topic_meta,
)
from tests.dialects.conftest import Key, change_settings

from cirrusmq_local.testing import Client, World

HOOK = "https://example.com/hook"


@pytest.fixture
def cmq(world: World, key: Key) -> Any:
    """The SDK's account."""
    return account_of(world, key)


@pytest.fixture
def topic(cmq: Any) -> Any:
    made = cmq.get_topic("news")
    made.create(topic_meta())
    return made


def subscribe(cmq: Any, topic: str, name: str, **attributes: Any) -> Any:
    """A subscription of a queue of its name, unless it says otherwise."""
    given = {"Protocal": "queue", "Endpoint": name, "NotifyContentFormat": "SIMPLIFIED"}
    given |= attributes
    if given["Protocal"] == "queue":
        cmq.get_queue(name).create(queue_meta())
    made = cmq.get_subscription(topic, name)
    made.create(subscription_meta(**given))
    return made


def bodies(cmq: Any, queue: str) -> list[str]:
    """All messages of a queue."""
    found: list[str] = []
    try:
        while True:
            found += [each.msgBody for each in cmq.get_queue(queue).batch_receive_message(16)]
    except CMQServerException as error:
        if error.code != 7000:
            raise
    return sorted(found)


def test_a_topic_and_its_attributes(cmq: Any, topic: Any, shop: Client) -> None:
    shown = topic.get_attributes()
    assert (shown.maxMsgSize, shown.filterType, shown.msgCount) == (65_536, 1, 0)
    assert (shown.msgRetentionSeconds, shown.createTime) == (86_400, shown.lastModifyTime)
    topic.set_attributes(topic_meta(maxMsgSize=2_048))
    assert topic.get_attributes().maxMsgSize == 2_048
    assert shop.get("/topics/news").json["filter"] == "tags"
    assert refusal(lambda: topic.create(topic_meta())) == (4460, 10550)
    assert refusal(lambda: cmq.get_topic("News").create(topic_meta())) == (4460, 10550)
    cmq.get_topic("keys").create(topic_meta(filterType=2))
    assert shop.get("/topics/keys").json["filter"] == "routing_key"
    assert cmq.get_topic("keys").get_attributes().filterType == 2


def test_topics_are_listed_by_a_part_of_their_name(cmq: Any) -> None:
    for name in ("a-news", "b-news", "c-more"):
        cmq.get_topic(name).create(topic_meta())
    total, first, following = cmq.list_topic(limit=2)
    assert (total, [each["topicName"] for each in first]) == (3, ["a-news", "b-news"])
    total, rest, following = cmq.list_topic(limit=2, offset=following)
    assert ([each["topicName"] for each in rest], following) == (["c-more"], "")
    assert cmq.list_topic(searchWord="news")[0] == 2


def test_a_topic_with_subscriptions_is_not_deleted(cmq: Any, topic: Any) -> None:
    held = subscribe(cmq, "news", "readers")
    assert refusal(topic.delete) == (4000, 10540)
    held.delete()
    topic.delete()
    assert refusal(topic.get_attributes) == (4440, 10600)
    assert refusal(topic.delete) == (4440, 10600)


def test_tags_choose_the_subscriptions(world: World, cmq: Any, topic: Any) -> None:
    subscribe(cmq, "news", "all-of-it")
    subscribe(cmq, "news", "sport", FilterTag=["sport", "chess"])
    assert topic.publish_message(message("1", "sport")).msgId.startswith("Msg-")
    topic.publish_message(message("2", "weather"))
    sent = topic.batch_publish_message([message("3"), message("4")], ["chess"])
    assert len({each.msgId for each in sent}) == 2
    world.settle()
    assert bodies(cmq, "sport") == ["1", "3", "4"]
    assert bodies(cmq, "all-of-it") == ["1", "2", "3", "4"]


def test_binding_keys_choose_the_subscriptions(world: World, cmq: Any) -> None:
    topic = cmq.get_topic("keys")
    topic.create(topic_meta(filterType=2))
    subscribe(cmq, "keys", "ones", bindingKey=["a.*"])
    subscribe(cmq, "keys", "lots", bindingKey=["a.#", "b"])
    topic.publish_message(message("1"), "a.x")
    topic.publish_message(message("2"), "a.x.y")
    topic.batch_publish_message([message("3")], routingKey="b")
    world.settle()
    assert bodies(cmq, "ones") == ["1"]
    assert bodies(cmq, "lots") == ["1", "2", "3"]
    assert refusal(lambda: topic.publish_message(message("x"))) == (4000, 10700)
    assert refusal(lambda: topic.publish_message(message("x"), "c")) == (6030, 10730)
    assert refusal(lambda: subscribe(cmq, "keys", "none")) == (4000, 10710)
    assert cmq.get_subscription("keys", "lots").get_attributes().bindingKey == ["a.#", "b"]


def test_a_publish_to_nobody_is_refused(cmq: Any, topic: Any) -> None:
    assert refusal(lambda: topic.publish_message(message("x"))) == (6030, 10650)
    subscribe(cmq, "news", "sport", FilterTag=["sport"])
    assert refusal(lambda: topic.publish_message(message("x"))) == (6030, 10730)
    assert refusal(lambda: topic.batch_publish_message([message("x")], ["a"])) == (6030, 10730)
    # A key has no effect on a topic of tags: an SDK says one with every message.
    topic.publish_message(message("x", "sport"), "some.key")


def test_a_subscription_of_a_url_and_its_attributes(
    world: World, cmq: Any, topic: Any, shop: Client
) -> None:
    change_settings(world, confirm_endpoints=False, http_endpoints=True)
    held = subscribe(
        cmq,
        "news",
        "hook",
        Protocal="https",
        Endpoint=HOOK,
        NotifyStrategy="BACKOFF_RETRY",
        NotifyContentFormat="JSON",
        FilterTag=["a", "b"],
    )
    shown = act(cmq, "GetSubscriptionAttributes", topicName="news", subscriptionName="hook")
    assert (shown["topicOwner"], shown["protocol"], shown["protocal"]) == ("shop", "https", "https")
    assert (shown["endpoint"], shown["notifyStrategy"]) == (HOOK, "BACKOFF_RETRY")
    assert (shown["notifyContentFormat"], shown["filterTags"]) == ("JSON", ["a", "b"])
    assert (shown["msgCount"], shown["bindingKey"]) == (0, [])
    assert held.get_attributes().FilterTag == ["a", "b"]
    held.set_attributes(
        subscription_meta(
            NotifyStrategy="EXPONENTIAL_DECAY_RETRY",
            NotifyContentFormat="SIMPLIFIED",
            FilterTag=["c"],
        )
    )
    native = shop.get("/topics/news/subscriptions/hook").json
    assert native["retry"] == {"policy": "exponential_decay"}
    assert (native["content_format"], native["filter"]) == ("simplified", {"tags": ["c"]})
    act(cmq, "SetSubscriptionAttributes", topicName="news", subscriptionName="hook")
    assert held.get_attributes().FilterTag == ["c"]
    held.clearFilterTags()
    assert held.get_attributes().FilterTag == []
    total, listed, _ = topic.list_subscription()
    assert (total, listed[0]["protocol"], listed[0]["endpoint"]) == (1, "https", HOOK)
    held.delete()
    assert refusal(held.get_attributes) == (4440, 10600)
    assert refusal(held.delete) == (4440, 10600)


def test_a_url_gets_the_post_of_cmq(world: World, cmq: Any, topic: Any) -> None:
    change_settings(world, confirm_endpoints=False)
    subscribe(cmq, "news", "hook", Protocal="https", Endpoint=HOOK, NotifyContentFormat="JSON")
    sent = topic.publish_message(message("两杯", "a", "b"))
    world.settle()
    ((url, given, body),) = world.posts
    assert url == HOOK
    headers = {name.lower(): value for name, value in given.items()}
    assert headers["content-type"].startswith("text/plain")
    assert headers["x-cmq-message-id"] == sent.msgId
    assert headers["x-cmq-message-tag"] == "a, b"
    told = json.loads(body)
    assert (told["TopicOwner"], told["topicName"]) == ("shop", "news")
    assert (told["subscriptionName"], told["msgId"]) == ("hook", sent.msgId)
    assert told["msgBody"] == "两杯"


def test_subscriptions_of_queues_are_shown_as_cmqs(cmq: Any, topic: Any) -> None:
    for name in ("a-one", "b-one", "c-two"):
        subscribe(cmq, "news", name)
    total, first, following = topic.list_subscription(limit=2)
    assert (total, [each["subscriptionName"] for each in first]) == (3, ["a-one", "b-one"])
    total, rest, following = topic.list_subscription(limit=2, offset=following)
    assert ([each["subscriptionName"] for each in rest], following) == (["c-two"], "")
    assert topic.list_subscription(searchWord="one")[0] == 2
    shown = cmq.get_subscription("news", "a-one").get_attributes()
    assert (shown.Protocal, shown.NotifyStrategy) == ("queue", "EXPONENTIAL_DECAY_RETRY")
    assert shown.NotifyContentFormat == "SIMPLIFIED"
    cmq.get_subscription("news", "a-one").set_attributes(
        subscription_meta(NotifyContentFormat="SIMPLIFIED", FilterTag=["x"])
    )
    assert cmq.get_subscription("news", "a-one").get_attributes().FilterTag == ["x"]
    assert refusal(cmq.get_queue("a-one").delete) == (4000, 10750)


@pytest.mark.parametrize(
    ("attributes", "refused"),
    [
        ({"Protocal": "mail"}, (4000, 10510)),
        ({"Protocal": ""}, (4000, 10390)),
        ({"Endpoint": ""}, (4000, 10390)),
        ({"NotifyContentFormat": "JSON"}, (4000, 10640)),
        ({"NotifyContentFormat": "XML"}, (4000, 10530)),
        ({"NotifyStrategy": "NEVER"}, (4000, 10520)),
        ({"Endpoint": "none"}, (4000, 10630)),
        ({"Endpoint": "ü"}, (4000, 10630)),
        ({"FilterTag": ["x"] * 11}, (4000, 10670)),
        ({"FilterTag": ["x" * 17]}, (4000, 10350)),
        ({"FilterTag": [""]}, (4000, 10350)),
        ({"bindingKey": ["x"] * 6}, (4000, 10680)),
        ({"bindingKey": ["." * 16]}, (4000, 10691)),
        ({"Protocal": "https", "Endpoint": "https://example.com/ x"}, (4510, 10570)),
        ({"Protocal": "https", "Endpoint": "http://example.com/"}, (4000, 10630)),
        ({"Protocal": "http", "Endpoint": "ftp://example.com/"}, (4000, 10630)),
        ({"Protocal": "https", "Endpoint": "https://"}, (4000, 10630)),
        ({"Protocal": "https", "Endpoint": "https://example.com/" + "x" * 500}, (4000, 10630)),
        ({"Protocal": "https", "Endpoint": "example.com"}, (4000, 10630)),
    ],
)
def test_an_invalid_subscription_is_refused(
    cmq: Any, topic: Any, attributes: dict[str, Any], refused: tuple[int, int]
) -> None:
    cmq.get_queue("readers").create(queue_meta())
    given = {"Protocal": "queue", "Endpoint": "readers", "NotifyContentFormat": "SIMPLIFIED"}
    made = cmq.get_subscription("news", "readers")
    assert refusal(lambda: made.create(subscription_meta(**{**given, **attributes}))) == refused
    assert topic.list_subscription()[0] == 0


def test_existing_and_invalid_names_are_refused(cmq: Any, topic: Any) -> None:
    held = subscribe(cmq, "news", "readers")
    given = subscription_meta(
        Protocal="queue", Endpoint="readers", NotifyContentFormat="SIMPLIFIED"
    )
    assert refusal(lambda: held.create(given)) == (4490, 10470)
    given.FilterTag = ["other"]
    assert refusal(lambda: held.create(given)) == (4490, 10470)
    for name in ("ab", "x" * 65, "a.b"):
        odd = cmq.get_subscription("news", name)
        assert refusal(odd.create, given) == (4000, 10580)
        odd = cmq.get_topic(name)
        assert refusal(odd.create, topic_meta()) == (4000, 10590)
    none = cmq.get_subscription("none", "readers")
    for made in (none.delete, none.get_attributes, none.clearFilterTags):
        assert refusal(made) == (4440, 10600)
