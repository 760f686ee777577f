"""Contexts of OpenTelemetry in messages: written into their attributes, and read from them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace

from opentelemetry.context import Context, get_current
from opentelemetry.trace import Link, Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cirrusmq_client.messages import Message, Received
from cirrusmq_client.tracing import NAMES, TRACESTATE, TRACESTATE_BYTES

HELD_CONTEXTS = 10_000
_propagator = TraceContextTextMapPropagator()


def context_of(message: Received | Message) -> Context:
    """Returns the context to continue a message's trace, for handlers without a consumer.

    tracer.start_as_current_span("work", context=context_of(message))
    """
    return _propagator.extract(_carrier(message), get_current())


def creation_context(message: Received | Message) -> SpanContext | None:
    """Returns the context of the span that made a message, or None if it carries none."""
    carrier = _carrier(message)
    if not carrier:
        return None
    found = get_current_span(_propagator.extract(carrier, Context())).get_span_context()
    return found if found.is_valid else None


def links_of(messages: Iterable[Received | Message]) -> list[Link]:
    """Returns a link for each message with a context; links of received ones have their ids."""
    links = []
    for message in messages:
        context = creation_context(message)
        if context is not None:
            told = {"messaging.message.id": message.id} if isinstance(message, Received) else None
            links.append(Link(context, told))
    return links


def injected(message: Message, span: Span) -> Message:
    """Returns the message with the span's context, or as it was if the span has none."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, set_span_in_context(span))
    if len(carrier.get(TRACESTATE, "")) > TRACESTATE_BYTES:
        del carrier[TRACESTATE]  # W3C lets a system leave out a longer one
    return replace(message, attributes={**message.attributes, **carrier}) if carrier else message


class HeldContexts:
    """Contexts of received messages by their receipts, for the links of settling.

    It has the latest 10,000. Each of its steps is one of the dict's own: threads need no lock,
    which a forked child might find taken.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, SpanContext] = OrderedDict()

    def put(self, receipt: str, context: SpanContext | None) -> None:
        """Keeps a context until `take`, if there is one."""
        if context is None or not receipt:
            return
        self._held[receipt] = context
        if len(self._held) > HELD_CONTEXTS:
            self._held.popitem(last=False)

    def take(self, receipt: str) -> SpanContext | None:
        """Removes and returns the context of a receipt, or None."""
        return self._held.pop(receipt, None)


def _carrier(message: Received | Message) -> dict[str, str]:
    attributes = message.attributes
    given = {name: attributes.get(name) for name in NAMES}
    return {name: value for name, value in given.items() if isinstance(value, str)}
