"""Calls on topics."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import msgspec

from cirrusmq.base.decoding import decode_json
from cirrusmq.base.errors import AlreadyExists, TopicNotFound
from cirrusmq.base.shapes import read_values
from cirrusmq.model.notification import topic_arn
from cirrusmq.model.topic import Topic, TopicInput
from cirrusmq.subscriptions import management, topics
from cirrusmq.subscriptions.subscriptions import list_subscriptions
from cirrusmq_dialects.sns.asking import MANAGE, SHOW, Asked, Result
from cirrusmq_dialects.sns.errors import SnsError, invalid
from cirrusmq_dialects.sns.names import new_topic_name
from cirrusmq_dialects.sns.reading import needed, pairs, text
from cirrusmq_dialects.sns.tag_calls import read_tags

_PAGE = 100
_LARGEST_BYTES = 262_144
_NAME_CHARACTERS = 100
_POLICY_BYTES = 8_192
DISPLAY_NAME, DELIVERY_POLICY = "DisplayName", "DeliveryPolicy"


def create_topic(asked: Asked) -> Result:
    """Make a topic, or find it where every attribute and tag that is given is the same there."""
    core, account = asked.core, asked.caller.account
    name = new_topic_name(needed(asked.members, "Name"))
    asked.caller.require(MANAGE, "topics", name)
    if text(asked.members, "DataProtectionPolicy"):
        raise invalid("DataProtectionPolicy Reason: there is no data protection here.")
    given = _read_attributes(pairs(asked.members, "Attributes"))
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
    if any(topic.sdk.get(key, "") != value for key, value in given.items()):
        raise invalid("Attributes Reason: Topic already exists with different attributes")
    if tags and topic.attributes.labels != tags:
        raise invalid("Tags Reason: Topic already exists with different tags")
    return {"TopicArn": arn}


def delete_topic(asked: Asked) -> Result:
    """Delete a topic and its subscriptions; one that does not exist is deleted already."""
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
        DISPLAY_NAME: "",
        **topic.sdk,
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsPending": str(len(known) - confirmed),
        "SubscriptionsDeleted": "0",
    }
    return {"Attributes": shown}


def set_topic_attributes(asked: Asked) -> Result:
    """Change an attribute; an empty value removes it."""
    name = needed(asked.members, "AttributeName")
    given = _read_attributes({name: text(asked.members, "AttributeValue") or ""})
    found = asked.reach(MANAGE)
    found.require("admin")

    def update(before: Topic) -> Topic:
        kept = {key: value for key, value in (before.sdk | given).items() if value}
        return msgspec.structs.replace(before, sdk=kept)

    topics.update_topic(asked.core, found.account, found.name, update)
    return None


def _read_attributes(given: Mapping[str, str]) -> dict[str, str]:
    """The attributes that are kept, checked; others are refused."""
    for name, value in given.items():
        if name == DISPLAY_NAME:
            if len(value) > _NAME_CHARACTERS:
                raise invalid(f"DisplayName Reason: has more than {_NAME_CHARACTERS} characters.")
        elif name == DELIVERY_POLICY:
            _check_delivery_policy(value)
        elif name == "FifoTopic" and value.lower() == "false":
            continue
        else:
            raise _not_here(name)
    return {name: value for name, value in given.items() if name != "FifoTopic"}


def _check_delivery_policy(value: str) -> None:
    try:
        if value:
            decode_json(value, dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid("DeliveryPolicy Reason: must be a JSON object.") from error
    if len(value.encode()) > _POLICY_BYTES:
        raise invalid(f"DeliveryPolicy Reason: has more than {_POLICY_BYTES:,} bytes.")


def _not_here(name: str) -> SnsError:
    if name == "Policy":
        return invalid(
            "Policy Reason: policies of topics are not enforced here, so none is kept; other"
            " accounts get grants of the topic, keys have scopes."
        )
    return invalid(f"AttributeName Reason: {name[:80]} is not supported here.")
