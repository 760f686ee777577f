"""Spans by OpenTelemetry's semantic conventions for messaging; needs `cirrusmq-client[otel]`.

    span              kind                       of
    create orders     PRODUCER                   a `send_soon` or `publish_soon`, when it is called
    send orders       PRODUCER; CLIENT if all    a call that sends, publishes or prepares messages
                      messages have a context
    receive orders    CLIENT                     a call that received messages, or failed
    process orders    CONSUMER                   a handler; it is current while that runs
    delete orders     CLIENT                     a call that settles: also dead_letter, give_back

A message's creation context is in its attributes `traceparent` and `tracestate`. A span of several
messages links to each context; a `process` span of one message is its child, and so in its trace.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import attach, detach
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanKind,
    StatusCode,
    get_tracer,
    set_span_in_context,
)

from cirrusmq_client.handling import Attempt, Raised
from cirrusmq_client.messages import Message, Received, messages_of
from cirrusmq_client.otel_contexts import (
    HeldContexts,
    context_of,
    creation_context,
    injected,
    links_of,
)
from cirrusmq_client.outcomes import Exchanged, Outcome, Selected
from cirrusmq_client.results import Ack, DeadLetter, Retry, for_each, read_result
from cirrusmq_client.sources import Queue, Source, Subscription, Topic, source_of
from cirrusmq_client.steps import Steps
from cirrusmq_client.tracing import Tracing, find_room, has_context

__all__ = ["OtelSpans", "context_of"]
SYSTEM = "cirrusmq"
LEFT_OUT = "cirrusmq.trace_context.left_out"
"""Attribute of a span: messages that carry no context, because they had no room for it."""
RESULT = "cirrusmq.result"
"""Attribute of a `process` span: the handler's result, if that is `Retry` or `DeadLetter`."""
_Attributes = dict[str, Any]


class OtelSpans:
    """The spans of one client. Safe for several threads."""

    def __init__(self, options: Tracing, url: str) -> None:
        from cirrusmq_client import __version__

        self._tracer = get_tracer("cirrusmq_client", __version__, options.tracer_provider)
        self._server = _server(url)
        self._contexts = HeldContexts()

    def wrap_calls(self, client: Any) -> None:
        """Makes the client's calls on messages with a span each."""
        calls: dict[str, Callable[..., Steps[Any]]] = {
            **dict.fromkeys(("send", "send_each", "publish", "prepare"), self._send),
            **dict.fromkeys(("receive", "receive_where"), self._receive),
            "delete_and_receive": self._delete_and_receive,
            **dict.fromkeys(("delete", "dead_letter", "give_back"), self._settle),
        }
        for name, steps in calls.items():
            setattr(client, name, _wrapped(client, getattr(client, name), partial(steps, name)))

    def created(self, destination: str, message: Message) -> Message:
        """Returns a message that is sent later, with the context of the caller's `create` span."""
        if has_context(message):
            return message
        (fits,) = find_room([message])
        told = self._told("create", "create", destination)
        span = self._tracer.start_span(
            f"create {destination}", kind=SpanKind.PRODUCER, attributes=told
        )
        with _current(span):
            if fits:
                return injected(message, span)
            span.set_attribute(LEFT_OUT, 1)
            return message

    def processing(self, source: object, call: Attempt) -> Attempt:
        """Returns the call of a handler with a `process` span, which is current in the handler."""
        if inspect.iscoroutinefunction(call):

            async def awaited(handler: Callable[[Any], object], given: Any) -> object:
                with self._process(source, given) as span:
                    answer = await call(handler, given)
                    _note_answer(span, answer, given)
                return answer

            return awaited

        def attempt(handler: Callable[[Any], object], given: Any) -> object:
            with self._process(source, given) as span:
                answer = call(handler, given)
                _note_answer(span, answer, given)
            return answer

        return attempt

    @contextmanager
    def detached(self) -> Iterator[None]:
        """Returns a context in which no span is current, for the start of workers."""
        token = attach(set_span_in_context(INVALID_SPAN))
        try:
            yield
        finally:
            detach(token)

    def _send(
        self,
        name: str,
        plain: Callable[..., Any],
        destination: str,
        messages: Sequence[Message],
        **options: Any,
    ) -> Steps[Any]:
        given = messages_of(messages)
        room = find_room(given)
        links = links_of(given)
        told = self._told("send", _SENDS.get(name, name), destination, count=len(given))
        left_out = sum(
            not (fits or has_context(each)) for fits, each in zip(room, given, strict=True)
        )
        if left_out:
            told[LEFT_OUT] = left_out
        span = self._tracer.start_span(
            _named(told),
            kind=SpanKind.CLIENT if links and not any(room) else SpanKind.PRODUCER,
            attributes=told,
            links=links,
        )
        with _current(span):
            carried = [
                injected(each, span) if fits else each
                for fits, each in zip(room, given, strict=True)
            ]
            found = yield partial(plain, destination, carried, **options)
            _note_sent(span, found)
        return found

    def _receive(
        self, name: str, plain: Callable[..., Any], source: str | Source, *given: Any, **named: Any
    ) -> Steps[Any]:
        began = time.time_ns()
        try:
            found = yield partial(plain, source, *given, **named)
        except Exception as error:
            self._received(source, (), began, error)
            raise
        self._received(source, found.messages if isinstance(found, Selected) else found, began)
        return found

    def _delete_and_receive(
        self,
        name: str,
        plain: Callable[..., Any],
        source: str | Source,
        receipts: Sequence[str],
        *given: Any,
        **named: Any,
    ) -> Steps[Any]:
        began = time.time_ns()
        try:
            found: Exchanged = yield partial(plain, source, receipts, *given, **named)
        except Exception as error:
            self._settled("delete", source, receipts, began, error)
            self._received(source, (), began, error)
            raise
        self._settled("delete", source, receipts, began, found.deleted)
        self._received(source, found.messages, began, found.error)
        return found

    def _settle(
        self,
        name: str,
        plain: Callable[..., Any],
        source: str | Source,
        receipts: Sequence[str],
        *given: Any,
        **named: Any,
    ) -> Steps[Any]:
        began = time.time_ns()
        try:
            found: Outcome = yield partial(plain, source, receipts, *given, **named)
        except Exception as error:
            self._settled(name, source, receipts, began, error)
            raise
        self._settled(name, source, receipts, began, found)
        return found

    def _received(
        self,
        source: str | Source,
        messages: Sequence[Received],
        began: int,
        error: Exception | None = None,
    ) -> None:
        """Makes the span of a receive afterwards; a poll that found nothing has none."""
        if not messages and error is None:
            return
        told = self._told("receive", "receive", source, count=len(messages))
        told |= _id_of_one(messages)
        links = links_of(messages)
        span = self._tracer.start_span(
            _named(told), kind=SpanKind.CLIENT, attributes=told, links=links, start_time=began
        )
        for message in messages:
            self._contexts.put(message.receipt, creation_context(message))
        if error is not None:
            _fail(span, error)
        span.end()

    def _settled(
        self,
        name: str,
        source: str | Source,
        receipts: Sequence[str],
        began: int,
        result: Outcome | Exception,
    ) -> None:
        told = self._told("settle", name, source, count=len(receipts))
        held = [self._contexts.take(receipt) for receipt in receipts]
        span = self._tracer.start_span(
            _named(told),
            kind=SpanKind.CLIENT,
            attributes=told,
            links=[Link(context) for context in held if context is not None],
            start_time=began,
        )
        if isinstance(result, Exception):
            _fail(span, result)
        elif result.failed:
            _fail_by_code(span, result.failed[0].code)
        span.end()

    @contextmanager
    def _process(self, source: object, given: Received | list[Received]) -> Iterator[Span]:
        """The span of a handler's call. A batch has no parent, as its messages have many."""
        single = isinstance(given, Received)
        messages = [given] if isinstance(given, Received) else given
        told = self._told("process", "process", source, count=None if single else len(messages))
        told |= _id_of_one(messages)
        span = self._tracer.start_span(
            _named(told),
            context=context_of(messages[0]) if single else None,
            kind=SpanKind.CONSUMER,
            attributes=told,
            links=links_of(messages),
        )
        with _current(span):
            yield span

    def _told(
        self, kind: str, name: str, destination: object, count: int | None = None
    ) -> _Attributes:
        told: _Attributes = {
            "messaging.system": SYSTEM,
            "messaging.operation.type": kind,
            "messaging.operation.name": name,
            **_destination(destination),
            **self._server,
        }
        if count is not None:
            told["messaging.batch.message_count"] = count
        return told


_SENDS = {"send_each": "send"}
"""Names of operations that differ from the method's."""


def _wrapped(
    client: Any, plain: Callable[..., Any], steps: Callable[..., Steps[Any]]
) -> Callable[..., Any]:
    """Returns a method that does the steps around the plain one, by the client's driver."""

    @wraps(plain)
    def method(*given: Any, **named: Any) -> Any:
        return client._run(steps(plain, *given, **named))

    return method


@contextmanager
def _current(span: Span) -> Iterator[None]:
    """Makes the span current, and ends it; an exception is recorded and goes on."""
    token = attach(set_span_in_context(span))
    try:
        yield
    except BaseException as error:
        _fail(span, error)
        raise
    finally:
        detach(token)
        span.end()


def _note_sent(span: Span, found: object) -> None:
    """Notes the id of one message, and the first error of a call that sends valid ones."""
    if not isinstance(found, list):
        return  # a handle
    for each in found:
        if isinstance(each, Exception):
            _fail(span, each)
            return
    if len(found) == 1:
        span.set_attribute("messaging.message.id", found[0].id)


def _note_answer(span: Span, answer: object, given: Received | list[Received]) -> None:
    """Notes a failure of a handler, or a result that is no `Ack`."""
    if isinstance(answer, Raised):
        _fail(span, answer.error)
        return
    try:
        values = [answer] if isinstance(given, Received) else for_each(answer, len(given))
        results = [read_result(value, Ack()) for value in values]
    except (TypeError, ValueError) as error:
        _fail(span, error)
        return
    told = {type(each).__name__ for each in results if isinstance(each, Retry | DeadLetter)}
    if told:
        span.set_attribute(RESULT, ",".join(sorted(told)))


def _fail(span: Span, error: BaseException) -> None:
    span.record_exception(error)
    _fail_by_code(span, type(error).__name__)


def _fail_by_code(span: Span, code: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(StatusCode.ERROR, code)


def _id_of_one(messages: Sequence[Received]) -> _Attributes:
    return {"messaging.message.id": messages[0].id} if len(messages) == 1 else {}


def _named(told: Mapping[str, Any]) -> str:
    return f"{told['messaging.operation.name']} {told['messaging.destination.name']}"


def _destination(destination: object) -> _Attributes:
    """Returns the names of a queue, topic or source."""
    source = source_of(destination) if isinstance(destination, str) else destination
    if isinstance(source, Subscription):
        return {
            "messaging.destination.name": source.topic,
            "messaging.destination.subscription.name": source.name,
        }
    if isinstance(source, Queue) and source.receiver is not None:
        return {
            "messaging.destination.name": source.name,
            "messaging.destination.subscription.name": source.receiver,
        }
    name = source.name if isinstance(source, Queue | Topic) else str(source)
    return {"messaging.destination.name": name}


def _server(url: str) -> _Attributes:
    parts = urlsplit(url)
    if parts.hostname is None:
        return {}
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname, "server.port": port}
