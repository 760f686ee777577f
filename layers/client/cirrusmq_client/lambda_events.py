"""Reads the messages in events of Lambda functions, as a consumer gets them.

The core makes records in `invoking.function_records`, and posts in `webhooks.requests`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from cirrusmq_client.messages import Received
from cirrusmq_client.sources import Queue, Subscription
from cirrusmq_client.times import to_text

EVENT_SOURCE = "cirrusmq"
_ATTRIBUTE = "x-cmq-attribute-"
_OWN = "cirrusmq"
"""Member of a record with fields of a receive's answer."""
_TAGS = "TAGS"
_TIMES = {"sent_at": "SentTimestamp", "first_received_at": "ApproximateFirstReceiveTimestamp"}


def read_batch(event: Mapping[str, Any]) -> list[tuple[Received, bool]]:
    """Returns the messages of `{"messages": […]}` or of `{"Records": […]}`.

    Each is paired with True if the service invoked the function, and so reads its whole answer.
    """
    if "messages" in event:
        return [(Received(message), False) for message in event["messages"]]
    return [(_read_record(record), _is_own(record)) for record in event["Records"]]


def read_post(event: Mapping[str, Any]) -> Received:
    """Returns the message of a post to the function's URL, in either content format."""
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    body = event.get("body") or ""
    data = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    message: dict[str, Any] = {"id": headers["x-cmq-message-id"]}
    tags = headers.get("x-cmq-message-tag")
    if tags:
        message["tags"] = [unquote(tag) for tag in tags.split(", ")]
    attributes = {
        unquote(name.removeprefix(_ATTRIBUTE)): _value(unquote_to_bytes(value))
        for name, value in headers.items()
        if name.startswith(_ATTRIBUTE)
    }
    if attributes:
        message["attributes"] = attributes
    envelope = _envelope(data, message["id"])
    if envelope is None:
        return Received(message | {"body_base64": base64.b64encode(data).decode()})
    return Received(message | _content(envelope), _subscription(envelope))


def _read_record(record: Mapping[str, Any]) -> Received:
    """Returns the message of a record of a queue event source.

    `cirrusmq` is missing in records by older releases and by other services: then the id, body,
    group, times, receive count and attributes are read, which SQS has, too.
    """
    system = record.get("attributes", {})
    own = _is_own(record)
    attributes = {
        name: _attribute(value) for name, value in record.get("messageAttributes", {}).items()
    }
    is_tagged = own and record.get(_OWN, {}).get("tags") != []  # else the sender's attribute
    tags = attributes.pop(_TAGS, None) if is_tagged else None
    body = "body_base64" if own and system.get("bodyEncoding") == "base64" else "body"
    message: dict[str, Any] = {
        "id": record["messageId"],
        body: record["body"],
        "attributes": attributes,
        "tags": tags.split(",") if isinstance(tags, str) else [],
    }
    if "MessageGroupId" in system:
        message["group"] = system["MessageGroupId"]
    if "ApproximateReceiveCount" in system:
        message["receive_count"] = int(system["ApproximateReceiveCount"])
    for name, theirs in _TIMES.items():
        if theirs in system:
            message[name] = to_text(datetime.fromtimestamp(int(system[theirs]) / 1000, UTC))
    arn = record.get("eventSourceARN", "")
    if not own:  # other services know only ids
        return Received(message, arn)
    message["receipt"] = record["receiptHandle"]
    if "SenderId" in system:  # of other services it is no account
        message["sender"] = system["SenderId"]
    return Received(message | record.get(_OWN, {}), _named(arn))


def _is_own(record: Mapping[str, Any]) -> bool:
    """Returns True if the record is by the service, also with the event source of SQS."""
    return record.get("eventSource") == EVENT_SOURCE or _OWN in record


def _attribute(value: Mapping[str, Any]) -> Any:
    """Returns a record's attribute in the form of a receive's answer."""
    if value.get("dataType", "").startswith("Binary"):
        return {"base64": value["binaryValue"]}
    return value["stringValue"]


def _named(arn: str) -> str:
    """Returns the source in a record's ARN: `…:<queue>` or `…:<topic>/<subscription>`."""
    name, _, subscription = arn.rpartition(":")[2].partition("/")
    return str(Subscription(name, subscription) if subscription else Queue(name)) if name else ""


def _value(data: bytes) -> Any:
    """Returns a header's attribute in the form of an answer; its name is in lower case."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _envelope(data: bytes, message_id: str) -> dict[str, Any] | None:
    """Returns the JSON envelope of a post, or None if the message has none."""
    try:
        envelope = json.loads(data)
    except ValueError:
        return None
    if isinstance(envelope, dict) and envelope.get("msgId") == message_id:
        return envelope
    return None


def _content(envelope: Mapping[str, Any]) -> dict[str, Any]:
    name = "body_base64" if envelope.get("bodyEncoding") == "base64" else "body"
    content = {name: envelope["msgBody"], "attributes": envelope.get("msgAttributes", {})}
    if "sender" in envelope:
        content["sender"] = envelope["sender"]
    published = envelope.get("publishTime")
    if isinstance(published, int):
        content["sent_at"] = to_text(datetime.fromtimestamp(published, UTC))
    return content


def _subscription(envelope: Mapping[str, Any]) -> str:
    topic, name = envelope.get("topicName"), envelope.get("subscriptionName")
    return str(Subscription(topic, name)) if topic and name else ""
