"""Consumers that are Lambda functions: events in, partial-batch responses out.

Three shapes of events are supported:
- `{"messages": [received, …]}`: messages as in the answer of a receive;
- `{"Records": [{"messageId", "body", "attributes"?, "messageAttributes"?}, …]}`: the shape of queue
  event sources, of this service and of SQS;
- a POST to the function's URL: a topic's `http` subscription, `content_format` either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cirrusmq_client.exactly_once import ExactlyOnce, Transactions
from cirrusmq_client.handling import Handler, attempt, check_handler, one_by_one
from cirrusmq_client.lambda_events import read_batch, read_post
from cirrusmq_client.messages import Received
from cirrusmq_client.results import Ack, HandlerResult
from cirrusmq_client.steps import run
from cirrusmq_client.tracing import Tracing, open_spans

T = TypeVar("T")
LambdaHandler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


def exactly_once(
    store: Transactions[T], group: str, *, tracing: bool | Tracing = False
) -> Callable[[Callable[[Received, T], HandlerResult]], LambdaHandler]:
    """Turns a handler of (message, transaction) into a Lambda handler with exactly-once effects.

    It answers a batch by `{"batchItemFailures": [{"itemIdentifier": id}, …]}`, a post by 204 or
    500. After a failure the later messages of the same group are delivered again, too, unhandled;
    if the service invoked the function, this receive does not count for them.

    tracing: makes a `process` span for each message, as a client does with it.
    """

    def decorate(handler: Callable[[Received, T], HandlerResult]) -> LambdaHandler:
        return batch_response(ExactlyOnce(store, group)(handler), tracing=tracing)

    return decorate


def batch_response(handler: Handler, *, tracing: bool | Tracing = False) -> LambdaHandler:
    """Turns a handler of messages into a Lambda handler; see `exactly_once`.

    A result other than None or `Ack()` is a failure, and so is any exception of the handler. Raises
    TypeError if the handler cannot be called with one message, and NotConfigured if `tracing` is
    wanted and OpenTelemetry is not installed.
    """
    check_handler(handler)
    spans = open_spans(tracing)

    def succeeds(message: Received) -> bool:
        source = message.source or "an event"
        call = attempt if spans is None else spans.processing(source, attempt)
        handle = one_by_one(handler, Ack(), source, call)
        return isinstance(run(handle([message]))[0], Ack)

    def answer(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        if "requestContext" in event:
            return {"statusCode": 204 if succeeds(read_post(event)) else 500}
        left: list[dict[str, Any]] = []
        stopped: set[str] = set()
        batch = read_batch(event)
        times = Counter(message.id for message, _ in batch)
        for message, own in batch:
            name = _name(message, times[message.id])
            if message.group in stopped:
                left.append(_unbegun(name) if own else _failure(name))
            elif not succeeds(message):
                left.append(_failure(name))
                if message.group is not None:
                    stopped.add(message.group)
        return {"batchItemFailures": left}

    return answer


def _name(message: Received, times: int) -> str:
    """Returns a message's name in an answer: its id, or its receipt if the batch has the id twice.

    A dead-letter queue has a message twice if it is a dead letter of two receivers.
    """
    return str(message.json.get("receipt", message.id)) if times > 1 else message.id


def _failure(name: str) -> dict[str, Any]:
    return {"itemIdentifier": name}


def _unbegun(name: str) -> dict[str, Any]:
    """Returns a failure whose receive the service does not count; other services count it."""
    return {"itemIdentifier": name, "tried": False}
