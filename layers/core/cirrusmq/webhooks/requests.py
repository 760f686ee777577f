"""The requests to a subscriber: headers and body of a delivery, and of the request to confirm.

Standard Webhooks signatures tell the service's requests from all others.
Source: https://github.com/standard-webhooks/standard-webhooks, its symmetric scheme `v1`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.message import Message
from cirrusmq.model.sender import sender_of
from cirrusmq.model.topic import Subscription

CONTENT_TYPE = "text/plain; charset=utf-8"
"""The type of CMQ's posts, JSON too; with the charset, without which a server may take Latin-1."""
BYTES_TYPE = "application/octet-stream"
"""The type of a body of bytes that is posted as it is: bytes have no charset."""
CONFIRMATION = "SubscriptionConfirmation"
ATTRIBUTE_PREFIX = "x-cmq-attribute-"
ATTRIBUTES_LEFT_OUT = "x-cmq-attributes-left-out"
ATTRIBUTE_HEADER_BYTES = 4_096
"""Most bytes of the names and values of all headers of attributes."""
MESSAGE_HEADER_BYTES = 6_144
"""Most bytes of these and the tags: long tags leave less for attributes."""
_TAG_HEADER = "x-cmq-message-tag"
_TOKEN = "!#$&'*+-.^_`|~"
"""Characters of a header's name beside letters and digits; `%` begins an escape."""

# Visible ASCII but `%`, which begins an escape, and `,`, which ends a tag.
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "%,")
SECRET_PREFIX = "whsec_"
SECRET_BYTES = 24


def delivery(
    subscription: Subscription,
    message_id: str,
    message: Message,
    *,
    published_ms: int,
    secrets: Sequence[str],
    request_id: str,
    now_s: int,
) -> tuple[dict[str, str], bytes]:
    """Returns headers and body of one attempt to deliver `message`.

    request_id: new in each attempt; `webhook-id` is the message's and stays. now_s: real seconds
    since the epoch, also if the service runs on a faster clock: verifiers compare it with theirs.
    """
    simplified = subscription.content_format == "simplified"
    if simplified:
        body = message.body_bytes
    else:
        body = _json_body(subscription, message_id, message, published_ms)
    is_text = not simplified or isinstance(message.body, str)
    headers = {
        "Content-Type": CONTENT_TYPE if is_text else BYTES_TYPE,
        "x-cmq-request-id": request_id,
        "x-cmq-message-id": message_id,
        **signed_headers(secrets, message_id, now_s, body),
    }
    headers |= trace_headers(message)
    if message.tags:
        headers[_TAG_HEADER] = ", ".join(map(_escaped, message.tags))
    if simplified and message.attributes:
        left = MESSAGE_HEADER_BYTES - len(headers.get(_TAG_HEADER, ""))
        headers |= _attribute_headers(message.attributes_as_sent, min(ATTRIBUTE_HEADER_BYTES, left))
    return headers, body


def confirmation(
    subscription: Subscription,
    token: str,
    *,
    confirm_url: str,
    expires_ms: int,
    secrets: Sequence[str],
    request_id: str,
    now_s: int,
) -> tuple[dict[str, str], bytes]:
    """Returns headers and body of the request that asks a new endpoint to confirm.

    It has no message, so `webhook-id` is the request's own id. `expiresAt` is RFC 3339.
    """
    body = msgspec.json.encode(
        {
            "Type": CONFIRMATION,
            **_origin(subscription),
            "token": token,
            "confirmUrl": confirm_url,
            "expiresAt": format_time(expires_ms),
        }
    )
    headers = {
        "Content-Type": CONTENT_TYPE,
        "x-cmq-type": CONFIRMATION,
        "x-cmq-request-id": request_id,
        **signed_headers(secrets, request_id, now_s, body),
    }
    return headers, body


def trace_headers(message: Message) -> dict[str, str]:
    """Returns the message's trace context as headers; empty if it has none, or an invalid one."""
    if "traceparent" not in message.attributes:
        return {}
    # Few messages have one: the cold starts of others do without.
    from cirrusmq.model.trace_context import context_of

    return context_of(message.attributes)


def _origin(subscription: Subscription) -> dict[str, object]:
    return {
        "TopicOwner": subscription.account,
        "topicName": subscription.topic,
        "subscriptionName": subscription.name,
    }


def _json_body(
    subscription: Subscription, message_id: str, message: Message, published_ms: int
) -> bytes:
    content = {
        **_origin(subscription),
        "msgId": message_id,
        "msgBody": message.body,
        "publishTime": published_ms // 1_000,
    }
    sender = sender_of(message, subscription.account).account
    if sender != subscription.account:
        content["sender"] = sender
    if isinstance(message.body, bytes):
        content["msgBody"] = base64.b64encode(message.body).decode()
        content["bodyEncoding"] = "base64"
    if message.attributes:
        content["msgAttributes"] = {
            name: value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}
            for name, value in message.attributes_as_sent.items()
        }
    if message.tags:
        content["msgTags"] = message.tags
    return msgspec.json.encode(content)


def _attribute_headers(attributes: Mapping[str, str | bytes], left: int) -> dict[str, str]:
    """Returns a header for each attribute, by name, as far as they have at most `left` bytes.

    Servers refuse requests whose headers are long, most of them beyond 8 KB. Attributes that are
    left out are counted, so that a subscriber who needs them takes the JSON format.
    """
    headers: dict[str, str] = {}
    left_out = 0
    for name, value in sorted(attributes.items()):
        header, encoded = f"{ATTRIBUTE_PREFIX}{quote(name, safe=_TOKEN)}", _escaped(value)
        size = len(header) + len(encoded)
        if size > left:
            left_out += 1
            continue
        left -= size
        headers[header] = encoded
    if left_out:
        headers[ATTRIBUTES_LEFT_OUT] = str(left_out)
    return headers


def _escaped(value: str | bytes) -> str:
    """Returns a text or bytes for a header: `%XX` except for visible ASCII; also for `%` and `,`.

    Header values are ASCII, and a tag or an attribute may be anything; text is in UTF-8. Splitting
    tags at `, ` and undoing the percent signs gives back all exactly; usual texts stay readable.
    """
    return quote(value, safe=_PLAIN)


def secret_of(key: bytes) -> str:
    """Returns the text of a secret: `whsec_` and the base64 of the first 24 bytes of `key`."""
    return SECRET_PREFIX + base64.b64encode(key[:SECRET_BYTES]).decode()


def sign(secret: str, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """Returns the value of `webhook-signature`: `v1,` and base64 of an HMAC-SHA256.

    A full stop separates the three signed parts, so `webhook_id` must not have one.
    """
    signed = b".".join((webhook_id.encode(), str(timestamp_s).encode(), body))
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(mac).decode()}"


def signed_headers(
    secrets: Sequence[str], webhook_id: str, timestamp_s: int, body: bytes
) -> dict[str, str]:
    """Returns the three headers of a request that is signed by each of the secrets."""
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(
            sign(secret, webhook_id, timestamp_s, body) for secret in secrets
        ),
    }
