"""Calls that publish messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq.base.shapes import read_values
from cirrusmq.filters.tags import TAGS_PER_MESSAGE
from cirrusmq.publishing.publish import PublishRequest, publish
from cirrusmq.subscriptions.subscriptions import cached_subscriptions
from cirrusmq_dialects.asking import SEND
from cirrusmq_dialects.cmq.asking import Asked, Result
from cirrusmq_dialects.cmq.bodies import check_bodies
from cirrusmq_dialects.cmq.errors import CmqError
from cirrusmq_dialects.cmq.reading import needed_numbered, numbered

_NO_SUBSCRIPTION = (
    6030,
    10650,
    "topic has no subscription, please create a subscription before publishing message",
)
_NO_MATCH = (6030, 10730, "no bindingKey or filterTag matches the routingKey or msgTag")


def publish_message(asked: Asked) -> Result:
    """Publishes a message."""
    (message_id,) = _publish(asked, [asked.params.get("msgBody", "")])
    return {"msgId": message_id}


def batch_publish_message(asked: Asked) -> Result:
    """Publishes up to 16 messages with the same tags or routing key, all of them or none."""
    bodies = needed_numbered(asked.params, "msgBody")
    return {"msgList": [{"msgId": each} for each in _publish(asked, bodies)]}


def _publish(asked: Asked, bodies: Sequence[str]) -> list[str]:
    topic = asked.topic(SEND)
    check_bodies(bodies)
    tags = numbered(asked.params, "msgTag")
    if len(tags) > TAGS_PER_MESSAGE:
        raise CmqError(4000, 10720, "too many msgTag")
    shared: Result = {"tags": tags} if tags else {}
    if topic.attributes.filter == "routing_key":
        # An SDK says it with every message, empty where its program gave none.
        routing_key = asked.params.get("routingKey")
        if not routing_key:
            raise CmqError(4000, 10700, "parameters lack of routingKey")
        shared["routing_key"] = routing_key
    given = {"messages": [{"body": body, **shared} for body in bodies]}
    request = read_values(given, PublishRequest)
    published: Any = publish(asked.core, topic, asked.caller, request)
    # All have the same tags and key: all are taken, or none.
    if not any(each.matched for each in published):
        known = cached_subscriptions(asked.core, topic.id)
        raise CmqError(*(_NO_MATCH if known else _NO_SUBSCRIPTION))
    return [each.id for each in published]
