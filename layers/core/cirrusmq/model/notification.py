"""A message as SNS's subscribers get it without raw delivery: in a JSON object, its notification.

Subscriptions share a message, so that the text is made when it is shown: by the SQS dialect, in a
function's records, in a post to a URL. The parcel of such a subscription names it, and every move
takes that along. The parcel has all that the text needs beside the message: it is the same text at
each receive, also when the subscription is deleted.

    fan-out        parcel N = [subscription, topic, region, URL] ── moves: N goes along
    SQS receive    {"Type": "Notification", "TopicArn": …, "Message": the body}
    native views   the body
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from cirrusmq.base import limits, sdk_attributes, ulid
from cirrusmq.base.names import FIFO
from cirrusmq.base.reserved_attributes import SUBJECT
from cirrusmq.base.shapes import decode_packed
from cirrusmq.base.timestamps import format_time
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import NOTIFICATION, Parcel, send_and_position
from cirrusmq.model.topic import Subscription

OWN_PREFIX = "sns-"
"""The name of a subscription that SNS's calls made: this and a UUID."""
_OF_UUID = b"\0"
_CHANCE_BYTES = 2
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class Notifier(msgspec.Struct, frozen=True, array_like=True):
    """The subscription that a message came by, as a parcel names it."""

    own: bytes
    """The last part of its ARN: a name, or a zero and the bytes of a UUID."""
    topic: str
    region: str
    """The region that its maker signed for."""
    url: str
    """The URL that its maker called."""

    def topic_arn(self, account: str) -> str:
        """The ARN of the topic, which is of this account."""
        return topic_arn(self.region, account, self.topic)

    def arn(self, account: str) -> str:
        """The ARN of the subscription."""
        own = str(uuid.UUID(bytes=self.own[1:])) if self.own[:1] == _OF_UUID else self.own.decode()
        return f"{self.topic_arn(account)}:{own}"

    def unsubscribe_url(self, account: str, token: str | None = None) -> str:
        """The URL that ends the subscription.

        token: allows the call without a signature; None: it needs one.
        """
        url = f"{self.url}/?Action=Unsubscribe&SubscriptionArn={quote(self.arn(account))}"
        return url if token is None else f"{url}&Token={token}"


def is_uuid(own: str) -> bool:
    """Returns True if the last part of a subscription's ARN is a UUID."""
    return _UUID.fullmatch(own) is not None


def own_part(name: str) -> str:
    """The last part of the ARN of a subscription of this name."""
    own = name.removeprefix(OWN_PREFIX)
    return own if is_uuid(own) else name


def topic_arn(region: str, account: str, name: str) -> str:
    """The ARN of a topic."""
    return f"arn:aws:sns:{region}:{account}:{name}"


def uuid_of(text: str) -> str:
    """A UUID that is always the same for a text: a message's, as SNS's callers know it."""
    digits = hashlib.sha256(text.encode()).hexdigest()
    # A UUID of version 4, as `uuid.UUID` writes it, which takes three times as long.
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def sequence_number(message_id: str) -> str:
    """The sequence number of a FIFO topic's message: 20 digits, in the order of the topic's log.

    The log is in order of its sends' ids: of their milliseconds, and by chance within one.
    """
    send_id, position = _split(message_id)
    by_chance = int.from_bytes(ulid.entropy_of(send_id)[:_CHANCE_BYTES], "big")
    within = by_chance * limits.BATCH_MESSAGES + position
    return f"{ulid.time_of(send_id):013d}{within:07d}"


def notifier_of(subscription: Subscription) -> Notifier:
    """How parcels name a subscription."""
    own = own_part(subscription.name)
    return Notifier(
        own=_OF_UUID + uuid.UUID(own).bytes if is_uuid(own) else own.encode(),
        topic=subscription.topic,
        region=subscription.sdk.get("region", ""),
        url=subscription.sdk.get("url", ""),
    )


def as_attribute(subscription: Subscription) -> Mapping[str, Any]:
    """Returns the extra attribute of parcels of a subscription without raw delivery."""
    return {NOTIFICATION: {"B": msgspec.msgpack.encode(notifier_of(subscription))}}


def notifier_in(parcel: Parcel) -> Notifier | None:
    """The subscription that a parcel names; None if its messages are shown as they are."""
    held = parcel.others.get(NOTIFICATION)
    return None if held is None else decode_packed(held["B"], Notifier)


def notification(
    notifier: Notifier,
    account: str,
    message: Message,
    message_id: str,
    unsubscribe_token: str | None = None,
) -> str:
    """The text of a message's notification: a JSON object.

    account: the topic's. message_id: of the message, natively; its send has the time.
    """
    shown = _shown(notifier, account, message, message_id)
    shown["UnsubscribeURL"] = notifier.unsubscribe_url(account, unsubscribe_token)
    if told := _attributes(message):
        shown["MessageAttributes"] = told
    return msgspec.json.encode(shown).decode()  # bytes as base64


def notification_of(parcel: Parcel, index: int, message: Message, account: str) -> str | None:
    """The text of a message of a subscription without raw delivery; None of all others."""
    notifier = notifier_in(parcel)
    if notifier is None:
        return None
    return notification(notifier, account, message, parcel.message_id(index))


def function_record(
    notifier: Notifier, account: str, message: Message, message_id: str
) -> dict[str, Any]:
    """The record of a message in the event of a function that is subscribed by SNS's call.

    In functions' events a member has another name than in texts, and none is left out.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html
    """
    shown = {"Subject": None, **_shown(notifier, account, message, message_id)}
    shown["UnsubscribeUrl"] = notifier.unsubscribe_url(account)
    shown["MessageAttributes"] = _attributes(message)
    return {
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": notifier.arn(account),
        "Sns": shown,
    }


def _shown(notifier: Notifier, account: str, message: Message, message_id: str) -> dict[str, Any]:
    sent_ms = ulid.time_of(_split(message_id)[0])
    shown: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": uuid_of(message_id),
        "TopicArn": notifier.topic_arn(account),
    }
    if notifier.topic.endswith(FIFO):
        shown["SequenceNumber"] = sequence_number(message_id)
    subject = message.attributes.get(SUBJECT)
    if isinstance(subject, str):
        shown["Subject"] = subject
    shown["Message"] = message.body
    shown["Timestamp"] = format_time(sent_ms)
    return shown


def _attributes(message: Message) -> dict[str, Any]:
    sent = sdk_attributes.read(message.attributes)
    return {name: {"Type": typed.type, "Value": typed.value} for name, typed in sent.items()}


def _split(message_id: str) -> tuple[str, int]:
    found = send_and_position(message_id)
    assert found is not None
    return found
