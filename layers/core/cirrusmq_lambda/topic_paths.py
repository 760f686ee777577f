"""The topic and the subscription in a call's path: always of the caller's own account."""

from __future__ import annotations

from cirrusmq.base.errors import Forbidden, InvalidParameter
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Mode, Subscription, Topic
from cirrusmq.subscriptions.sources import subscription_source
from cirrusmq.subscriptions.subscriptions import get_subscription
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_lambda.http import Request


def own_name(request: Request) -> str:
    """The topic's name; another account's topic is Forbidden, since topics have no grants."""
    owner, colon, name = request.path("topic").rpartition(":")
    if colon and owner != request.caller.account:
        raise Forbidden("only its own account may use a topic")
    return name


def topic_of(request: Request) -> Topic:
    """The topic in the path."""
    account = request.caller.account
    return get_topic(request.core, account, own_name(request))


def pull_subscription(request: Request, mode: Mode) -> Subscription:
    """The pull subscription in the path; InvalidParameter for one of another kind."""
    subscription = get_subscription(request.core, topic_of(request), request.path("subscription"))
    if subscription.protocol != "pull" or subscription.mode != mode:
        raise InvalidParameter("subscription", f"must be a pull subscription in mode {mode}")
    return subscription


def pull_source(request: Request) -> Source:
    """The source of the pull subscription in the path, for its consumers."""
    return subscription_source(pull_subscription(request, "clustering"))
