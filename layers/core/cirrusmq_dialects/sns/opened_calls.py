"""Calls without a signature: addresses that a subscriber was sent, whose token is the secret."""

from __future__ import annotations

import contextlib
from typing import Any

from cirrusmq.base.errors import Forbidden, SubscriptionNotFound, TopicNotFound
from cirrusmq.base.names import parse_topic_ref
from cirrusmq.model.notification import OWN_PREFIX, is_uuid
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions import confirmations, management, subscriptions, topics
from cirrusmq_dialects.sns.errors import SnsError, invalid
from cirrusmq_dialects.sns.names import subscription_arn, subscription_ref, topic_ref
from cirrusmq_dialects.sns.reading import Members, needed, text


def answer(core: Core, action: str, members: Members) -> dict[str, Any] | None:
    """Does what the address says. AuthorizationError if its token is missing or wrong."""
    if action == "ConfirmSubscription":
        arn = needed(members, "TopicArn")
        found = confirm(core, topic_ref("TopicArn", arn, ""), needed(members, "Token"))
        return {"SubscriptionArn": subscription_arn(arn.split(":")[3], found)}
    if action != "Unsubscribe":
        raise SnsError("AccessDenied", f"{action} needs a signature.")
    _unsubscribe(core, needed(members, "SubscriptionArn"), text(members, "Token"))
    return None


def confirm(
    core: Core, ref: str, token: str, account: str = "", *, authenticate: bool = False
) -> Subscription:
    """Takes the token of a topic's subscription back; InvalidParameter if it is none.

    account: whose topic it is, if `ref` does not say it. authenticate: unsigned calls may not end
    the subscription.
    """
    own, _, native = token.partition(".")
    owner, topic = parse_topic_ref(ref, account)
    name: str | None = f"{OWN_PREFIX}{own}"
    if not is_uuid(own):
        name, native = _name_of(core, owner, topic, token), token
    if name is None or not native.startswith(f"{owner}."):
        raise invalid("Token")
    try:
        return confirmations.confirm(core, topic, name, native, authenticate=authenticate)
    except Forbidden as error:
        raise invalid("Token") from error


def _name_of(core: Core, account: str, topic: str, token: str) -> str | None:
    """The name of the subscription that has a token of the core's own confirmation."""
    with contextlib.suppress(TopicNotFound):
        for each in subscriptions.list_subscriptions(core, topics.get_topic(core, account, topic)):
            if confirmations.has_token(each, token):
                return each.name
    return None


def _unsubscribe(core: Core, arn: str, token: str | None) -> None:
    refused = SnsError("AuthorizationError", "Unsubscribe needs a signature, or its token.")
    if token is None:
        raise refused
    ref, name = subscription_ref(arn, "")
    account, topic_name = parse_topic_ref(ref, "")
    try:
        topic = topics.get_topic(core, account, topic_name)
        found = subscriptions.find_subscription(core, topic.id, name).value
    except (SubscriptionNotFound, TopicNotFound) as error:
        raise refused from error  # who has no token learns of none
    if not confirmations.may_unsubscribe(core, found, token):
        raise refused
    with contextlib.suppress(SubscriptionNotFound):
        management.delete_subscription(core, topic, name)
