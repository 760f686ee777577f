"""Calls on subscriptions."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from typing import Any

from cirrusmq.access.topic_permissions import Reached, TopicNeed
from cirrusmq.base.errors import (
    AlreadyExists,
    Forbidden,
    InvalidFilter,
    InvalidParameter,
    QueueNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq.base.names import parse_topic_ref
from cirrusmq.base.shapes import read_values
from cirrusmq.model.topic import Subscription, SubscriptionInput, Topic
from cirrusmq.subscriptions import confirmations, management, subscriptions, topics
from cirrusmq_dialects.sns import subscription_attributes as shapes
from cirrusmq_dialects.sns.asking import MANAGE, SHOW, Asked, Result
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import (
    new_subscription_name,
    own_queue,
    subscription_arn,
    subscription_ref,
    topic_ref,
)
from cirrusmq_dialects.sns.reading import flag, needed, pairs, text

_PAGE, _TOPICS = 100, 20
_PENDING = "pending confirmation"


def subscribe(asked: Asked) -> Result:
    """Subscribe a queue of the account or a URL, or find its subscription, if it is the same."""
    core, members = asked.core, asked.members
    found = asked.reach(MANAGE)
    found.require("subscribe", "admin")
    topic = topics.get_topic(core, found.account, found.name)
    protocol, endpoint = needed(members, "Protocol"), needed(members, "Endpoint")
    given = pairs(members, "Attributes")
    request: dict[str, Any] = shapes.read_attributes(given, protocol, topic.account)
    if protocol == shapes.SQS:
        queue = own_queue("Endpoint", endpoint, topic.account)
        request |= {"protocol": "queue", "endpoint": queue}
    elif protocol in ("http", "https"):
        if not endpoint.startswith(f"{protocol}://"):
            raise invalid("Endpoint must match the specified protocol")
        request |= {"protocol": "http", "endpoint": endpoint, "content_format": "simplified"}
    else:
        raise invalid(f"Protocol Reason: {protocol[:20]} is none of sqs, http and https.")
    if shapes.RAW not in given:
        raise shapes.not_raw()
    _check_queues(asked, topic, request)
    name = new_subscription_name(protocol, str(request["endpoint"]))
    _check_maker(asked, found, topic, name)
    made_by = None if topic.account == asked.caller.account else asked.caller.account
    try:
        subscription, created = management.put_subscription(
            core,
            topic,
            name,
            read_values(request, SubscriptionInput),
            made_by=made_by,
            by=asked.caller.key_id,
        )
    except AlreadyExists as error:
        told = "Attributes Reason: Subscription already exists with different attributes"
        raise invalid(told) from error
    except QueueNotFound as error:
        raise invalid("Endpoint Reason: there is no queue of this name.") from error
    except (InvalidFilter, InvalidParameter) as error:
        raise invalid(_told(error)) from error
    if not created and not subscription.confirmed:
        confirmations.ask_again(core, topic, name)
    arn = subscription_arn(asked.region, subscription)
    is_told = subscription.confirmed or flag(members, "ReturnSubscriptionArn")
    return {"SubscriptionArn": arn if is_told else _PENDING}


def confirm_subscription(asked: Asked) -> Result:
    """Take a token back from who got it: it is the proof, so that no right is asked for."""
    core, token = asked.core, needed(asked.members, "Token")
    ref = topic_ref("TopicArn", needed(asked.members, "TopicArn"), asked.caller.account)
    account, name = parse_topic_ref(ref, asked.caller.account)
    digest = hashlib.sha256(token.encode()).hexdigest()
    with contextlib.suppress(Forbidden, TopicNotFound):
        topic = topics.get_topic(core, account, name)
        for each in subscriptions.list_subscriptions(core, topic):
            if hmac.compare_digest(each.token_sha256 or "", digest):
                confirmations.confirm(core, name, each.name, token)
                return {"SubscriptionArn": subscription_arn(asked.region, each)}
    raise invalid("Token")


def unsubscribe(asked: Asked) -> Result:
    """Delete a subscription; one that does not exist is deleted already."""
    with contextlib.suppress(SubscriptionNotFound, TopicNotFound):
        topic, found = _found(asked, MANAGE, "admin")
        management.delete_subscription(asked.core, topic, found.name)
    return None


def list_subscriptions(asked: Asked) -> Result:
    """The subscriptions of the caller's topics, some topics a page."""
    asked.require_whole_account()
    core, token = asked.core, text(asked.members, "NextToken") or None
    page, more = topics.list_topics(core, asked.caller.account, "", _TOPICS, token)
    found = [each for topic in page for each in subscriptions.list_subscriptions(core, topic)]
    return _listed(asked, found, more)


def list_subscriptions_by_topic(asked: Asked) -> Result:
    """A topic's subscriptions."""
    topic = asked.topic(SHOW, "info")
    token = text(asked.members, "NextToken") or None
    found, more = subscriptions.page_of_subscriptions(asked.core, topic, _PAGE, token)
    return _listed(asked, found, more)


def get_subscription_attributes(asked: Asked) -> Result:
    """All attributes."""
    _, found = _found(asked, SHOW, "info")
    return {"Attributes": shapes.show(found, asked.region)}


def set_subscription_attributes(asked: Asked) -> Result:
    """Change an attribute."""
    topic, found = _found(asked, MANAGE, "admin")
    name = needed(asked.members, "AttributeName")
    value = text(asked.members, "AttributeValue") or ""
    protocol = shapes.shown_protocol(found)
    request = shapes.read_attributes({name: value}, protocol, topic.account)
    if name == shapes.RAW and found.protocol == "http":
        request["content_format"] = "simplified"
    _check_queues(asked, topic, request)
    try:
        management.change_subscription(
            asked.core, topic, found.name, read_values(request, SubscriptionInput)
        )
    except QueueNotFound as error:
        raise invalid(f"{name} Reason: there is no queue of this name.") from error
    except (InvalidFilter, InvalidParameter) as error:
        raise invalid(_told(error)) from error
    return None


def _found(asked: Asked, rights: Any, *needs: TopicNeed) -> tuple[Topic, Subscription]:
    """The topic and the subscription in `SubscriptionArn`, as natively."""
    arn = needed(asked.members, "SubscriptionArn")
    ref, name = subscription_ref(arn, asked.caller.account)
    found = asked.reach_named(ref, rights)
    found.require("subscribe", *needs)
    topic = topics.get_topic(asked.core, found.account, found.name)
    try:
        subscription = subscriptions.find_subscription(asked.core, topic.id, name).value
    except SubscriptionNotFound:
        found.require("info", "own")  # to others it is as one that they did not make
        raise
    found.require_subscription(subscription, "subscribe", *needs)
    return topic, subscription


def _check_maker(asked: Asked, found: Reached, topic: Topic, name: str) -> None:
    """A grant to subscribe is about the subscriptions that its account made."""
    if "admin" in found.allowed:
        return
    with contextlib.suppress(SubscriptionNotFound):
        there = subscriptions.get_subscription(asked.core, topic, name)
        found.require_subscription(there, "subscribe")


def _check_queues(asked: Asked, topic: Topic, request: dict[str, Any]) -> None:
    """Queues are of the topic's account, and get messages then: `send` or `manage` is needed."""
    named = {"RedrivePolicy": request.get("dead_letter_queue")}
    if request.get("protocol") == "queue":
        named["Endpoint"] = request["endpoint"]
    for parameter, queue in named.items():
        if queue is None:
            continue
        if topic.account != asked.caller.account:
            raise Forbidden("only the topic's owner may name queues, which are of its account")
        asked.caller.require(("send", "manage"), "queues", queue, f" ({parameter})")


def _listed(asked: Asked, found: list[Subscription], more: str | None) -> Result:
    page: dict[str, object] = {
        "Subscriptions": [shapes.entry(each, asked.region) for each in found]
    }
    return page | ({"NextToken": more} if more else {})


def _told(error: InvalidFilter | InvalidParameter) -> str:
    is_filter = isinstance(error, InvalidFilter) or error.parameter == "filter"
    return f"FilterPolicy: {error.detail}" if is_filter else error.detail
