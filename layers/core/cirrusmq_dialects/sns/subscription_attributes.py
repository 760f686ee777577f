"""A subscription's attributes: as SNS has them, and as the core keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cirrusmq.base.decoding import decode_json
from cirrusmq.model.topic import Subscription, own_dead_letter_queue
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import own_queue, queue_arn, subscription_arn, topic_arn

SQS = "sqs"
RAW, FILTER = "RawMessageDelivery", "FilterPolicy"
SCOPE, REDRIVE = "FilterPolicyScope", "RedrivePolicy"
_BY_ATTRIBUTES = "MessageAttributes"


def read_attributes(given: Mapping[str, str], protocol: str, account: str) -> dict[str, Any]:
    """The attributes as a request of the core has them; InvalidParameter for those not here."""
    native: dict[str, Any] = {}
    for name, value in given.items():
        if name == RAW:
            if value.lower() != "true":
                raise not_raw()
        elif name == SCOPE:
            if value != _BY_ATTRIBUTES:
                raise invalid(f"FilterPolicyScope Reason: it can be {_BY_ATTRIBUTES} alone here.")
        elif name == FILTER:
            policy = _read_object(name, value) if value else {}
            native["filter"] = {"policy": policy} if policy else None
        elif name == REDRIVE:
            native["dead_letter_queue"] = _read_redrive(value, protocol, account)
        else:
            raise invalid(f"AttributeName Reason: {name[:80]} is not supported here.")
    return native


def not_raw() -> Exception:
    """The refusal of messages in SNS's envelope."""
    return invalid(
        "RawMessageDelivery Reason: it must be true: messages in SNS's JSON envelope are not"
        " supported here."
    )


def shown_protocol(subscription: Subscription) -> str:
    """SNS's protocol of a subscription; the core's own `pull` is shown as it is."""
    if subscription.protocol == "queue":
        return SQS
    secure = (subscription.endpoint or "").startswith("https:")
    return "https" if subscription.protocol == "http" and secure else subscription.protocol


def entry(subscription: Subscription, region: str) -> dict[str, str]:
    """A subscription in a listing."""
    endpoint = subscription.endpoint or ""
    if subscription.protocol == "queue":
        endpoint = queue_arn(region, subscription.account, endpoint)
    arn = subscription_arn(region, subscription)
    return {
        "SubscriptionArn": arn if subscription.confirmed else "PendingConfirmation",
        "Owner": subscription.made_by or subscription.account,
        "Protocol": shown_protocol(subscription),
        "Endpoint": endpoint,
        "TopicArn": topic_arn(region, subscription.account, subscription.topic),
    }


def show(subscription: Subscription, region: str) -> dict[str, str]:
    """All attributes."""
    raw = subscription.protocol != "http" or subscription.content_format == "simplified"
    shown = {
        **entry(subscription, region),
        "SubscriptionArn": subscription_arn(region, subscription),
        "ConfirmationWasAuthenticated": str(subscription.protocol == "queue").lower(),
        "PendingConfirmation": str(not subscription.confirmed).lower(),
        RAW: str(raw).lower(),
    }
    policy = (subscription.filter or {}).get("policy")
    if policy is not None:
        shown |= {FILTER: json.dumps(policy), SCOPE: _BY_ATTRIBUTES}
    dead = subscription.dead_letter_queue
    if dead is not None and dead != own_dead_letter_queue(subscription.id):
        target = queue_arn(region, subscription.account, dead)
        shown[REDRIVE] = json.dumps({"deadLetterTargetArn": target})
    return shown


def _read_redrive(value: str, protocol: str, account: str) -> str | None:
    if not value:
        return None
    if protocol == SQS:
        raise invalid(
            "RedrivePolicy Reason: a queue that is subscribed is not deleted, so that nothing is"
            " undeliverable to it; there is no dead-letter queue of it here."
        )
    target = _read_object(REDRIVE, value).get("deadLetterTargetArn")
    return own_queue("RedrivePolicy: deadLetterTargetArn", str(target), account)


def _read_object(name: str, value: str) -> dict[str, Any]:
    try:
        return decode_json(value, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(f"{name}: failed to parse JSON.") from error
