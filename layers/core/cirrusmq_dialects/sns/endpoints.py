"""Protocols and endpoints of Subscribe: queues, URLs and functions, as the core has them."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import msgspec

from cirrusmq.access.permissions import check_invoke
from cirrusmq.base.errors import QueueNotFound, SubscriptionNotFound
from cirrusmq.base.names import FIFO
from cirrusmq.model.invoke import InvokeInput
from cirrusmq.model.topic import FUNCTIONS, Topic
from cirrusmq.queues.queues import get_queue
from cirrusmq.subscriptions.subscriptions import find_subscription
from cirrusmq_dialects.fifo_names import resolved
from cirrusmq_dialects.sns.asking import Asked
from cirrusmq_dialects.sns.errors import invalid
from cirrusmq_dialects.sns.names import (
    LAMBDA,
    SQS,
    URLS,
    function_in,
    is_queue_arn,
    new_subscription_name,
    own_queue,
)
from cirrusmq_dialects.sns.topic_attributes import is_fifo

_ELSEWHERE = ("application", "email", "email-json", "firehose", "sms")


class Endpoint(NamedTuple):
    """The endpoint of a new subscription."""

    native: dict[str, Any]
    """Members of the core's request."""
    named: dict[str, str]
    """Values that are kept beside them, to show the ARN as it was given."""
    name: str
    """The core's name of the subscription: the same for the same protocol and endpoint."""


def read_endpoint(asked: Asked, topic: Topic, protocol: str, given: str) -> Endpoint:
    """Returns the endpoint, checked. Raises SnsError, or the core's refusal of a function."""
    if protocol == SQS:
        return _queue(asked, topic, given)
    if protocol in URLS:
        return _url(topic, protocol, given)
    if protocol == LAMBDA:
        return _function(asked, topic, given)
    if protocol in _ELSEWHERE:
        raise invalid(f"Protocol Reason: {protocol} is not here: sqs, http, https and lambda are.")
    raise invalid(f"Amazon SNS does not support this protocol string: {protocol[:20]}")


def _queue(asked: Asked, topic: Topic, arn: str) -> Endpoint:
    if not is_queue_arn(arn):
        raise invalid("SQS endpoint ARN")
    queue = resolved(asked.core, topic.account, own_queue("Endpoint", arn, topic.account))
    _check_type(asked, topic, arn, queue)
    return Endpoint(
        native={"protocol": "queue", "endpoint": queue},
        named={"queue": arn.rpartition(":")[2]},
        name=new_subscription_name(SQS, queue),
    )


def _url(topic: Topic, protocol: str, url: str) -> Endpoint:
    if not url.startswith(f"{protocol}://"):
        raise invalid("Endpoint must match the specified protocol")
    _check_standard(topic)
    native = {"protocol": "http", "endpoint": url}
    return Endpoint(native=native, named={}, name=new_subscription_name(protocol, url))


def _function(asked: Asked, topic: Topic, arn: str) -> Endpoint:
    """A group whose function gets each message alone, as SNS calls functions."""
    prefix, function = function_in(arn)
    _check_standard(topic)
    check_invoke(asked.core, asked.caller, InvokeInput(function=function))
    name = new_subscription_name(LAMBDA, function)
    return Endpoint(
        native={"protocol": "pull", "invoke": _invoke(asked, topic, name, function)},
        named={FUNCTIONS: prefix},
        name=name,
    )


def _invoke(asked: Asked, topic: Topic, name: str, function: str) -> dict[str, Any]:
    """The function's bounds: as a native call has set them, or the first ones."""
    with contextlib.suppress(SubscriptionNotFound):
        before = find_subscription(asked.core, topic.id, name).value.invoke
        if before is not None and before.function == function:
            held: dict[str, Any] = msgspec.to_builtins(before)
            return held
    return {"function": function, "batch": 1}


def _check_standard(topic: Topic) -> None:
    if is_fifo(topic):
        raise invalid("Endpoint Reason: a FIFO topic delivers to queues of SQS alone.")


def _check_type(asked: Asked, topic: Topic, arn: str, queue: str) -> None:
    """Refuses a FIFO queue of a standard topic, and a name of one that no FIFO queue has."""
    if not arn.endswith(FIFO):
        return
    if not is_fifo(topic):
        told = "FIFO SQS Queues can not be subscribed to standard SNS topics"
        raise invalid(f"Invalid parameter: Endpoint Reason: {told}")  # so SNS says it
    with contextlib.suppress(QueueNotFound):
        if get_queue(asked.core, topic.account, queue).attributes.ordered:
            return
    raise invalid("Endpoint Reason: there is no queue of this name.")
