"""The requests to a subscriber whose subscription SNS's calls made: their headers and bodies.

The signature follows Standard Webhooks, in headers, as in all posts. No body has a signature by a
certificate, as SNS's bodies do: a subscriber that checks one requires a host of amazonaws.com.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.message import Message
from cirrusmq.model.notification import notification, notifier_of, uuid_of
from cirrusmq.model.topic import Subscription
from cirrusmq.webhooks.requests import signed_headers, trace_headers

CONTENT_TYPE = "text/plain; charset=UTF-8"
_CONFIRMATION = "SubscriptionConfirmation"


def delivery(
    subscription: Subscription,
    message_id: str,
    message: Message,
    *,
    secrets: Sequence[str],
    now_s: int,
    unsubscribe_token: str | None,
) -> tuple[dict[str, str], bytes]:
    """Headers and body of one attempt to deliver a message as a notification.

    now_s: real seconds since the epoch. unsubscribe_token: for the notification's UnsubscribeURL.
    """
    notifier, account = notifier_of(subscription), subscription.account
    body = notification(notifier, account, message, message_id, unsubscribe_token).encode()
    headers = {
        "Content-Type": CONTENT_TYPE,
        **headers_of(subscription, message_id),
        **trace_headers(message),
        **signed_headers(secrets, message_id, now_s, body),
    }
    return headers, body


def headers_of(subscription: Subscription, message_id: str) -> dict[str, str]:
    """The headers that say what a post is, of raw ones too."""
    notifier, account = notifier_of(subscription), subscription.account
    headers = {
        "x-amz-sns-message-type": "Notification",
        "x-amz-sns-message-id": uuid_of(message_id),
        "x-amz-sns-topic-arn": notifier.topic_arn(account),
        "x-amz-sns-subscription-arn": notifier.arn(account),
    }
    return headers if subscription.notifies else headers | {"x-amz-sns-rawdelivery": "true"}


def confirmation(
    subscription: Subscription,
    token: str,
    *,
    secrets: Sequence[str],
    request_id: str,
    now_ms: int,
    now_s: int,
) -> tuple[dict[str, str], bytes]:
    """Headers and body of the request that asks a new endpoint to confirm.

    now_ms: of the service's clock. now_s: real seconds since the epoch.
    """
    notifier = notifier_of(subscription)
    arn, message_id = notifier.topic_arn(subscription.account), uuid_of(request_id)
    called = f"Action=ConfirmSubscription&TopicArn={quote(arn)}&Token={quote(token)}"
    content = {
        "Type": _CONFIRMATION,
        "MessageId": message_id,
        "Token": token,
        "TopicArn": arn,
        "Message": f"A subscription of {arn} names this URL. To confirm it, open SubscribeURL.",
        "SubscribeURL": f"{notifier.url}/?{called}",
        "Timestamp": format_time(now_ms),
    }
    body = msgspec.json.encode(content)
    headers = {
        "Content-Type": CONTENT_TYPE,
        "x-amz-sns-message-type": _CONFIRMATION,
        "x-amz-sns-message-id": message_id,
        "x-amz-sns-topic-arn": arn,
        **signed_headers(secrets, request_id, now_s, body),
    }
    return headers, body
