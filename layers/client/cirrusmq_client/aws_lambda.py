"""Consumers that are Lambda functions: events in, partial-batch responses out.

Three shapes of events are taken:
- `{"messages": [received, …]}`: messages as a receive answers them;
- `{"Records": [{"messageId", "body", "attributes"?}, …]}`: the shape of queue event sources;
- a POST to the function's URL: a topic's `http` subscription, `content_format` either.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, unquote_to_bytes

from cirrusmq_client.exactly_once import ExactlyOnce, Transactions
from cirrusmq_client.handling import Handler, check_handler, one_by_one
from cirrusmq_client.messages import Received
from cirrusmq_client.results import Ack, HandlerResult
from cirrusmq_client.steps import run

logger = logging.getLogger("cirrusmq_client")
_ATTRIBUTE = "x-cmq-attribute-"
_EVENT_SOURCE = "cirrusmq"
T = TypeVar("T")
LambdaHandler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


def exactly_once(
    store: Transactions[T], group: str
) -> Callable[[Callable[[Received, T], HandlerResult]], LambdaHandler]:
    """Make a handler of (message, transaction) into a Lambda handler with exactly-once effects.

    It answers a batch by `{"batchItemFailures": [{"itemIdentifier": id}, …]}`, a POST by 204 or
    500. After a failure the later messages of the same group fail too, unhandled.
    """

    def decorate(handler: Callable[[Received, T], HandlerResult]) -> LambdaHandler:
        return batch_response(ExactlyOnce(store, group)(handler))

    return decorate


def batch_response(handler: Handler) -> LambdaHandler:
    """Make a handler of messages into a Lambda handler; see `exactly_once`.

    A result other than None or `Ack()` is a failure, and so is whatever the handler raises. Raises
    TypeError if the handler cannot work.
    """
    check_handler(handler)

    def succeeds(message: Received, source: str) -> bool:
        handle = one_by_one(handler, Ack(), source)
        return isinstance(run(handle([message]))[0], Ack)

    def answer(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        if "requestContext" in event:
            return {"statusCode": 204 if succeeds(_pushed(event), "a post") else 500}
        failed: list[str] = []
        stopped: set[str] = set()
        batch = _batch(event)
        times = Counter(message.id for message, _ in batch)
        for message, source in batch:
            if message.group in stopped or not succeeds(message, source):
                failed.append(_name(message, times[message.id]))
                if message.group is not None:
                    stopped.add(message.group)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

    return answer


def _name(message: Received, times: int) -> str:
    """What names a message in an answer: its id, or its receipt if the batch has the id again.

    A dead-letter queue of CirrusMQ has a message twice that two receivers gave up.
    """
    return str(message.json.get("receipt", message.id)) if times > 1 else message.id


def _batch(event: Mapping[str, Any]) -> list[tuple[Received, str]]:
    """Messages, and the source that each names."""
    if "messages" in event:
        return [(Received(message), "an event") for message in event["messages"]]
    return [
        (Received(_record(record)), record.get("eventSourceARN", "an event"))
        for record in event["Records"]
    ]


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    system = record.get("attributes", {})
    message: dict[str, Any] = {"id": record["messageId"], "body": record["body"]}
    if "MessageGroupId" in system:
        message["group"] = system["MessageGroupId"]
    if record.get("eventSource") == _EVENT_SOURCE:  # others know ids alone
        message["receipt"] = record["receiptHandle"]
    if "ApproximateReceiveCount" in system:
        message["receive_count"] = int(system["ApproximateReceiveCount"])
    return message


def _pushed(event: Mapping[str, Any]) -> Received:
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    body = event.get("body") or ""
    data = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    message: dict[str, Any] = {"id": headers["x-cmq-message-id"]}
    tags = headers.get("x-cmq-message-tag")
    if tags:
        message["tags"] = [unquote(tag) for tag in tags.split(", ")]
    attributes = {
        name.removeprefix(_ATTRIBUTE): _value(unquote_to_bytes(value))
        for name, value in headers.items()
        if name.startswith(_ATTRIBUTE)
    }
    if attributes:
        message["attributes"] = attributes
    content = _envelope(data, message["id"])
    return Received(message | content)


def _value(data: bytes) -> Any:
    """An attribute of a header, as an answer would have it; its name is in small letters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _envelope(data: bytes, message_id: str) -> dict[str, Any]:
    """The body, out of its JSON envelope where it is in one."""
    try:
        envelope = json.loads(data)
    except ValueError:
        envelope = None
    if isinstance(envelope, dict) and envelope.get("msgId") == message_id:
        name = "body_base64" if envelope.get("bodyEncoding") == "base64" else "body"
        return {name: envelope["msgBody"], "attributes": envelope.get("msgAttributes", {})}
    return {"body_base64": base64.b64encode(data).decode()}
