"""Finds the topic and the subscription in a call's path, and checks the caller's rights."""

from __future__ import annotations

from cirrusmq.access.topic_permissions import TopicAccess, TopicNeed, find_topic, reach
from cirrusmq.base.errors import InvalidParameter, SubscriptionNotFound
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Mode, Subscription, Topic
from cirrusmq.subscriptions.sources import group_source
from cirrusmq.subscriptions.subscriptions import get_subscription
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_lambda.http import Request


def reached(request: Request, *needs: TopicNeed) -> TopicAccess:
    """Returns the caller's access to the topic in the path. Does not check that it exists."""
    found = reach(request.core, request.caller, request.path("topic"))
    found.require(*needs)
    return found


def topic_of(request: Request, *needs: TopicNeed) -> Topic:
    """Returns the topic in the path."""
    return find_topic(request.core, request.caller, request.path("topic"), *needs)


def subscription_of(request: Request, *needs: TopicNeed) -> tuple[Topic, Subscription]:
    """Returns the topic and the subscription in the path."""
    return find_subscription(request, request.path("topic"), request.path("subscription"), *needs)


def find_subscription(
    request: Request, ref: str, name: str, *needs: TopicNeed
) -> tuple[Topic, Subscription]:
    """Returns the topic with the reference `ref`, and its subscription of this name."""
    found = reach(request.core, request.caller, ref)
    found.require("subscribe", *needs)
    topic = get_topic(request.core, found.account, found.name)
    try:
        subscription = get_subscription(request.core, topic, name)
    except SubscriptionNotFound:
        found.require("info", "own")  # other accounts get the same answer as for a missing one
        raise
    found.require_subscription(subscription, "subscribe", *needs)
    return topic, subscription


def pull_subscription(request: Request, mode: Mode, *needs: TopicNeed) -> Subscription:
    """Returns the pull subscription in the path. Raises InvalidParameter for another kind."""
    _, subscription = subscription_of(request, *needs)
    if subscription.protocol != "pull" or subscription.mode != mode:
        raise InvalidParameter("subscription", f"must be a pull subscription in mode {mode}")
    return subscription


def pull_source(request: Request) -> Source:
    """Returns the source of the pull subscription in the path, for its consumers."""
    return group_source(request.core, pull_subscription(request, "clustering"))
