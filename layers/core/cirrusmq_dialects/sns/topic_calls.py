"""Calls on topics."""

from __future__ import annotations

import contextlib

import msgspec

from cirrusmq.base.errors import AlreadyExists, SubscriptionNotFound, TopicNotFound
from cirrusmq.base.shapes import read_values
from cirrusmq.model.notification import topic_arn
from cirrusmq.model.topic import SubscriptionInput, Topic, TopicInput
from cirrusmq.subscriptions import management, topics
from cirrusmq.subscriptions.subscriptions import list_subscriptions
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.sns.asking import Asked, Result
from cirrusmq_dialects.sns.delivery_policies import DELIVERY_POLICY, read_of_topic
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import new_topic_name
from cirrusmq_dialects.sns.reading import needed, pairs, text
from cirrusmq_dialects.sns.tag_calls import read_tags
from cirrusmq_dialects.sns.topic_attributes import (
    FIFO_TOPIC,
    POLICY,
    default_policy,
    is_fifo,
    read_attributes,
    show,
)

_PAGE = 100
_LARGEST_BYTES = 262_144


def create_topic(asked: Asked) -> Result:
    """Makes a topic, or finds it if every given attribute and tag is there."""
    core, account = asked.core, asked.caller.account
    name = new_topic_name(needed(asked.members, "Name"))
    asked.caller.require(MANAGE, "topics", name)
    if text(asked.members, "DataProtectionPolicy"):
        raise invalid("DataProtectionPolicy Reason: there is no data protection here.")
    given = read_attributes(pairs(asked.members, "Attributes"), account, name)
    tags = read_tags(asked.members)
    arn = topic_arn(asked.region, account, name)
    topic = None
    with contextlib.suppress(TopicNotFound):
        topic = topics.find_topic(core, account, name).value
    if topic is None:
        largest = min(_LARGEST_BYTES, core.settings.batch_bytes)
        request = read_values({"max_message_bytes": largest, "labels": tags}, TopicInput)
        kept = {key: value for key, value in given.items() if value}
        try:
            topic, created = topics.create_topic(core, account, name, request, sdk=kept)
        except AlreadyExists as error:
            told = f"Attributes Reason: {error.detail}; names that differ in case alone are one."
            raise invalid(told) from error
        if created:
            return {"TopicArn": arn}
    held = topic.sdk | ({FIFO_TOPIC: "true"} if is_fifo(topic) else {})
    if any(held.get(key, "") != value for key, value in given.items()):
        raise invalid("Attributes Reason: Topic already exists with different attributes")
    if not tags.items() <= topic.attributes.labels.items():
        raise invalid("Tags Reason: Topic already exists with different tags")
    return {"TopicArn": arn}


def delete_topic(asked: Asked) -> Result:
    """Deletes a topic and its subscriptions; one that does not exist is deleted already."""
    found = asked.reach(MANAGE)
    found.require("own")
    with contextlib.suppress(TopicNotFound):
        management.delete_topic(asked.core, found.account, found.name)
    return None


def list_topics(asked: Asked) -> Result:
    """The caller's topics, by name."""
    asked.require_whole_account()
    token = text(asked.members, "NextToken") or None
    found, more = topics.list_topics(asked.core, asked.caller.account, "", _PAGE, token)
    page: dict[str, object] = {"Topics": [{"TopicArn": asked.arn(each)} for each in found]}
    return page | ({"NextToken": more} if more else {})


def get_topic_attributes(asked: Asked) -> Result:
    """All attributes, and how many subscriptions there are."""
    topic = asked.topic(SHOW, "info")
    known = list_subscriptions(asked.core, topic)
    confirmed = sum(each.confirmed for each in known)
    shown = {
        "TopicArn": asked.arn(topic),
        "Owner": topic.account,
        POLICY: default_policy(asked.arn(topic), topic.account),
        **show(topic),
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsPending": str(len(known) - confirmed),
        "SubscriptionsDeleted": "0",
    }
    return {"Attributes": shown}


def set_topic_attributes(asked: Asked) -> Result:
    """Changes an attribute; an empty value removes it."""
    name = needed(asked.members, "AttributeName")
    found = asked.reach(MANAGE)
    found.require("admin")
    topic = topics.get_topic(asked.core, found.account, found.name)
    value = text(asked.members, "AttributeValue") or ""
    given = read_attributes({name: value}, found.account, found.name, topic)

    def update(before: Topic) -> Topic:
        kept = {key: value for key, value in (before.sdk | given).items() if value}
        return msgspec.structs.replace(before, sdk=kept)

    topics.update_topic(asked.core, found.account, found.name, update)
    if name == DELIVERY_POLICY:
        _deliver_by(asked, topic, value)
    return None


def _deliver_by(asked: Asked, topic: Topic, policy: str) -> None:
    """Gives URLs without a policy of their own the topic's; a repeat finishes it."""
    change = read_values(read_of_topic(policy), SubscriptionInput)
    for each in list_subscriptions(asked.core, topic):
        if each.protocol == "http" and each.made_by_sns and DELIVERY_POLICY not in each.sdk:
            with contextlib.suppress(SubscriptionNotFound):
                management.change_subscription(asked.core, topic, each.name, change)
