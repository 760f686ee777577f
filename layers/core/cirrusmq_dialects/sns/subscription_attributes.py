"""A subscription's attributes: as SNS has them, and as the core keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cirrusmq.base.shapes import decode_json
from cirrusmq.model.notification import topic_arn
from cirrusmq.model.topic import FUNCTIONS, Subscription, own_dead_letter_queue
from cirrusmq_dialects.sns.delivery_policies import DELIVERY_POLICY, read_of_subscription
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import (
    LAMBDA,
    SQS,
    URLS,
    is_queue_arn,
    own_queue,
    queue_arn,
    subscription_arn,
)

RAW, FILTER = "RawMessageDelivery", "FilterPolicy"
SCOPE, REDRIVE = "FilterPolicyScope", "RedrivePolicy"
_MEMBERS = {"MessageAttributes": "policy", "MessageBody": "body_policy"}
"""Scope -> member of the core's filter."""
_BY_ATTRIBUTES = "MessageAttributes"
_OF_SUBSCRIBE = "Attributes Reason: "
"""SNS's words before the name of an attribute, in refusals of Subscribe."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes of a request."""

    native: dict[str, Any]
    """Attributes that the core has, as a request of the core's."""
    beside: dict[str, str]
    """Attributes that are kept beside them. An empty text: not set."""
    dead_letters: str | None = None
    """SQS's name of the queue in a RedrivePolicy."""


def read_attributes(
    given: Mapping[str, str], protocol: str, account: str, before: Subscription | None = None
) -> Given:
    """Returns the attributes, checked. Raises SnsError for attributes that are not here.

    before: the subscription that is to have them, if there is one.
    """
    native: dict[str, Any] = {}
    beside: dict[str, str] = {}
    dead_letters: str | None = None
    of_subscribe = "" if before is not None else _OF_SUBSCRIBE
    for name, value in given.items():
        if name == RAW:
            raw = _read_flag(name, value, of_subscribe)
            if raw and protocol == LAMBDA:
                told = f"Delivery protocol [{protocol}] does not support raw message delivery."
                raise invalid(f"{of_subscribe}{told}")
            beside[RAW] = "" if raw else "false"
            if protocol in URLS:
                native["content_format"] = "simplified" if raw else "json"
        elif name == SCOPE:
            if value not in _MEMBERS:
                told = f"Invalid value [{value[:80]}]. Please use either {' or '.join(_MEMBERS)}"
                raise invalid(f"{of_subscribe}FilterPolicyScope: {told}")
            beside[SCOPE] = value if value != _BY_ATTRIBUTES else ""
        elif name == FILTER:
            native["filter"] = _filter_of(_read_object(name, value) if value else {}, given, before)
        elif name == REDRIVE:
            dead_letters = _read_redrive(value, account)
            if protocol == SQS:
                # Nothing is undeliverable to a queue that is subscribed: it is not deleted.
                beside[REDRIVE] = value
            else:
                native["dead_letter_queue"] = dead_letters
        elif name == DELIVERY_POLICY:
            native |= _read_delivery(value, protocol)
            beside[DELIVERY_POLICY] = value
        else:
            told = f"AttributeName Reason: {name[:80]} is not supported here."
            raise invalid(f"{of_subscribe}{told}")
    if before is not None and SCOPE in given and FILTER not in given:
        native["filter"] = _filter_of(_policy_of(before) or {}, given, before)
    return Given(native=native, beside=beside, dead_letters=dead_letters)


def shown_protocol(subscription: Subscription) -> str:
    """SNS's protocol of a subscription; a group that a native call made is shown as `pull`."""
    if subscription.protocol == "queue":
        return SQS
    if FUNCTIONS in subscription.sdk:
        return LAMBDA
    secure = (subscription.endpoint or "").startswith("https:")
    return "https" if subscription.protocol == "http" and secure else subscription.protocol


def entry(subscription: Subscription, region: str) -> dict[str, str]:
    """A subscription in a listing."""
    endpoint = subscription.endpoint or ""
    if subscription.protocol == "queue":
        named = subscription.sdk.get("queue", endpoint)
        endpoint = queue_arn(region, subscription.account, named)
    elif FUNCTIONS in subscription.sdk:
        function = subscription.invoke.function if subscription.invoke else ""
        endpoint = f"{subscription.sdk[FUNCTIONS]}:function:{function}"
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
    listed = entry(subscription, region)
    shown = {
        **listed,
        "SubscriptionArn": subscription_arn(region, subscription),
        "SubscriptionPrincipal": f"arn:aws:iam::{listed['Owner']}:root",
        "ConfirmationWasAuthenticated": str(subscription.protocol != "http").lower(),
        "PendingConfirmation": str(not subscription.confirmed).lower(),
        RAW: str(raw and not subscription.notifies).lower(),
    }
    policy = _policy_of(subscription)
    if policy is not None:
        shown |= {FILTER: json.dumps(policy), SCOPE: _scope_of(subscription)}
    dead = subscription.dead_letter_queue
    if dead is not None and dead != own_dead_letter_queue(subscription.id):
        target = queue_arn(region, subscription.account, dead)
        shown[REDRIVE] = json.dumps({"deadLetterTargetArn": target})
    kept = subscription.sdk
    return shown | {name: kept[name] for name in (REDRIVE, DELIVERY_POLICY) if name in kept}


def _policy_of(subscription: Subscription | None) -> dict[str, Any] | None:
    """The filter policy of a subscription, in either scope."""
    held = (subscription.filter if subscription else None) or {}
    return next((held[name] for name in _MEMBERS.values() if name in held), None)


def _scope_of(subscription: Subscription) -> str:
    """Over what its policy is, or is to be: a scope may be set before a policy."""
    if subscription.reads_bodies:
        return "MessageBody"
    has_policy = _policy_of(subscription) is not None
    return _BY_ATTRIBUTES if has_policy else subscription.sdk.get(SCOPE, _BY_ATTRIBUTES)


def _filter_of(
    policy: dict[str, Any], given: Mapping[str, str], before: Subscription | None
) -> dict[str, Any] | None:
    """Returns the core's filter with a policy, in the given scope or in the previous one."""
    scope = given.get(SCOPE) or (_scope_of(before) if before else _BY_ATTRIBUTES)
    if scope == _BY_ATTRIBUTES and any(isinstance(each, dict) for each in policy.values()):
        told = f"Filter policy scope {_BY_ATTRIBUTES} does not support nested filter policy"
        raise invalid(told if before is not None else f"{_OF_SUBSCRIBE}{told}")
    return {_MEMBERS.get(scope, "policy"): policy} if policy else None


def _read_flag(name: str, value: str, of_subscribe: str) -> bool:
    if value.lower() not in ("true", "false"):
        told = f"{of_subscribe}{name}: Invalid value [{value[:80]}]."
        raise invalid(f"{told} Must be true or false.")
    return value.lower() == "true"


def _read_delivery(value: str, protocol: str) -> dict[str, Any]:
    if protocol not in URLS:
        raise invalid("DeliveryPolicy Reason: it is of URLs alone.")
    return read_of_subscription(value)


def _read_redrive(value: str, account: str) -> str | None:
    if not value:
        return None
    target = str(_read_object(REDRIVE, value).get("deadLetterTargetArn"))
    if not is_queue_arn(target):
        raise invalid(f"{REDRIVE}: deadLetterTargetArn is an invalid arn")
    return own_queue(f"{REDRIVE}: deadLetterTargetArn", target, account)


def _read_object(name: str, value: str) -> dict[str, Any]:
    try:
        return decode_json(value, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(f"{name}: failed to parse JSON.") from error
