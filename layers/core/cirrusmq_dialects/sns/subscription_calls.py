"""Calls on subscriptions."""

from __future__ import annotations

import contextlib
from typing import Any

from cirrusmq.access.topic_permissions import TopicAccess, TopicNeed
from cirrusmq.base.errors import (
    AlreadyExists,
    Forbidden,
    QueueNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq.base.names import FIFO
from cirrusmq.base.shapes import read_values
from cirrusmq.model.topic import Subscription, SubscriptionInput, Topic
from cirrusmq.subscriptions import confirmations, management, subscriptions, topics
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.fifo_names import resolved
from cirrusmq_dialects.sns import opened_calls
from cirrusmq_dialects.sns import subscription_attributes as shapes
from cirrusmq_dialects.sns.asking import Asked, Result
from cirrusmq_dialects.sns.delivery_policies import DELIVERY_POLICY, read_of_topic
from cirrusmq_dialects.sns.endpoints import read_endpoint
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import SQS, subscription_arn, subscription_ref, topic_ref
from cirrusmq_dialects.sns.reading import flag, needed, pairs, text
from cirrusmq_dialects.sns.topic_attributes import is_fifo

_PAGE, _TOPICS = 100, 20
_PENDING = "pending confirmation"
_DIFFERENT = "Attributes Reason: Subscription already exists with different attributes"


def subscribe(asked: Asked) -> Result:
    """Subscribes a queue of the account, a URL or a function, or finds the same subscription."""
    core, members = asked.core, asked.members
    found = asked.reach(MANAGE)
    found.require("subscribe", "admin")
    topic = topics.get_topic(core, found.account, found.name)
    protocol, endpoint = needed(members, "Protocol"), needed(members, "Endpoint")
    asked_for = read_endpoint(asked, topic, protocol, endpoint)
    given = pairs(members, "Attributes")
    attributes = shapes.read_attributes(given, protocol, topic.account)
    request, name = attributes.native | asked_for.native, asked_for.name
    _check_redrive(topic, endpoint, attributes.dead_letters)
    _resolve(asked, topic, request)
    _check_queues(asked, topic, request)
    _check_maker(asked, found, topic, name)
    if request["protocol"] == "http" and DELIVERY_POLICY not in given:
        request |= _topics_policy(asked, topic, name)
    made_by = None if topic.account == asked.caller.account else asked.caller.account
    try:
        subscription, created = management.put_subscription(
            core,
            topic,
            name,
            read_values(request, SubscriptionInput),
            made_by=made_by,
            by=asked.caller.key_id,
            sdk=_where(asked) | asked_for.named | _set({shapes.RAW: "false"} | attributes.beside),
        )
    except AlreadyExists as error:
        raise invalid(_DIFFERENT) from error
    except QueueNotFound as error:
        named = "Endpoint" if protocol == SQS else "RedrivePolicy"
        raise invalid(f"{named} Reason: there is no queue of this name.") from error
    if not created and _differs(subscription, attributes.beside):
        raise invalid(_DIFFERENT)
    if not created and not subscription.confirmed:
        confirmations.ask_again(core, topic, name)
    arn = subscription_arn(asked.region, subscription)
    is_told = subscription.confirmed or flag(members, "ReturnSubscriptionArn")
    return {"SubscriptionArn": arn if is_told else _PENDING}


def confirm_subscription(asked: Asked) -> Result:
    """Confirms by the token that the URL got: the token is the proof, so no right is needed."""
    account = asked.caller.account
    ref = topic_ref("TopicArn", needed(asked.members, "TopicArn"), account)
    authenticate = flag(asked.members, "AuthenticateOnUnsubscribe")
    token = needed(asked.members, "Token")
    found = opened_calls.confirm(asked.core, ref, token, account, authenticate=authenticate)
    return {"SubscriptionArn": subscription_arn(asked.region, found)}


def unsubscribe(asked: Asked) -> Result:
    """Deletes a subscription; one that does not exist is deleted already."""
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
    """Changes an attribute."""
    topic, found = _found(asked, MANAGE, "admin")
    name = needed(asked.members, "AttributeName")
    value = text(asked.members, "AttributeValue") or ""
    protocol = shapes.shown_protocol(found)
    attributes = shapes.read_attributes({name: value}, protocol, topic.account, found)
    request = attributes.native
    if name == DELIVERY_POLICY and not value:
        request |= read_of_topic(topic.sdk.get(DELIVERY_POLICY, ""))
    if name == shapes.REDRIVE:
        endpoint = shapes.entry(found, asked.region)["Endpoint"]
        _check_redrive(topic, endpoint, attributes.dead_letters)
    _resolve(asked, topic, request)
    _check_queues(asked, topic, request)
    where = _where(asked) if name == shapes.RAW else {}  # a native one stays a native one
    sdk = where | found.sdk | attributes.beside if attributes.beside else None
    try:
        management.change_subscription(
            asked.core, topic, found.name, read_values(request, SubscriptionInput), sdk=sdk
        )
    except QueueNotFound as error:
        raise invalid(f"{name} Reason: there is no queue of this name.") from error
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


def _check_maker(asked: Asked, found: TopicAccess, topic: Topic, name: str) -> None:
    """Raises Forbidden if a grant to subscribe meets a subscription of another account."""
    if "admin" in found.allowed:
        return
    with contextlib.suppress(SubscriptionNotFound):
        there = subscriptions.get_subscription(asked.core, topic, name)
        found.require_subscription(there, "subscribe")


def _resolve(asked: Asked, topic: Topic, request: dict[str, Any]) -> None:
    """Names a dead-letter queue by the core's name."""
    if request.get("dead_letter_queue"):
        queue = resolved(asked.core, topic.account, request["dead_letter_queue"])
        request["dead_letter_queue"] = queue


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


def _where(asked: Asked) -> dict[str, str]:
    """The region and the URL that its messages have in ARNs and addresses."""
    return {"region": asked.region, "url": asked.call.base_url}


def _check_redrive(topic: Topic, endpoint: str, dead_letters: str | None) -> None:
    """Refuses a standard queue for the dead letters of a FIFO queue, as SNS does."""
    if dead_letters is None or not (is_fifo(topic) and endpoint.endswith(FIFO)):
        return
    if not dead_letters.endswith(FIFO):
        told = "must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic"
        raise invalid(f"RedrivePolicy: {told}.")


def _topics_policy(asked: Asked, topic: Topic, name: str) -> dict[str, Any]:
    """Returns a new URL's members by its topic's delivery policy; none for an existing URL."""
    policy = topic.sdk.get(DELIVERY_POLICY)
    if not policy:
        return {}
    with contextlib.suppress(SubscriptionNotFound):
        subscriptions.find_subscription(asked.core, topic.id, name)
        return {}
    return read_of_topic(policy)


def _set(attributes: dict[str, str]) -> dict[str, str]:
    """Returns the attributes with a value."""
    return {name: value for name, value in attributes.items() if value}


def _differs(subscription: Subscription, given: dict[str, str]) -> bool:
    return any(subscription.sdk.get(name, "") != value for name, value in given.items())


def _listed(asked: Asked, found: list[Subscription], more: str | None) -> Result:
    page: dict[str, object] = {
        "Subscriptions": [shapes.entry(each, asked.region) for each in found]
    }
    return page | ({"NextToken": more} if more else {})
