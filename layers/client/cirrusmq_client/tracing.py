"""Spans of OpenTelemetry: asked for by `Client(tracing=True)`, made by `otel.py`.

This module needs no OpenTelemetry. Without `tracing` that package is not imported, and every call
is as it was.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, cast

from cirrusmq_client.errors import NotConfigured
from cirrusmq_client.handling import Attempt
from cirrusmq_client.messages import Message

MODULE = "cirrusmq_client.otel"
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
NAMES = (TRACEPARENT, TRACESTATE)
"""Attributes in which a message carries the trace context of W3C."""
ATTRIBUTES = 10
TRACESTATE_BYTES = 512
ROOM_BYTES = 600
"""Most bytes of both attributes: their names, and values of 55 and 512 bytes."""
MESSAGE_BYTES = 262_144
BATCH_BYTES = (262_144, 4_194_304)
"""Most bytes of a call's messages, by the deployment; the first also bounds their attributes."""


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """How a client makes spans.

    - `tracer_provider`: a `TracerProvider` of OpenTelemetry; None is the global one.
    """

    tracer_provider: Any = None


class Spans(Protocol):
    """The spans of one client, made by OpenTelemetry."""

    def wrap_calls(self, client: Any) -> None:
        """Makes the client's calls on messages with a span each."""
        ...

    def created(self, destination: str, message: Message) -> Message:
        """Returns a message that is sent later, with the context of the caller's `create` span."""
        ...

    def processing(self, source: object, call: Attempt) -> Attempt:
        """Returns the call of a handler with a `process` span, which is current in the handler."""
        ...

    def detached(self) -> AbstractContextManager[object]:
        """Returns a context in which no span is current, for the start of workers."""
        ...


def open_spans(tracing: bool | Tracing, url: str = "") -> Spans | None:
    """Returns the spans of a client, or None if it has none.

    Raises NotConfigured if OpenTelemetry is not installed.

    url: of the service, for the spans' `server.address`.
    """
    if not tracing:
        return None
    try:
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise NotConfigured(
            "tracing needs more packages: pip install cirrusmq-client[otel]"
        ) from error
    options = Tracing() if tracing is True else tracing
    return cast(Spans, module.OtelSpans(options, url))


def detached(spans: Spans | None) -> AbstractContextManager[object]:
    """Returns a context in which workers are started: spans of theirs are nobody's children."""
    return nullcontext() if spans is None else spans.detached()


def find_room(messages: Sequence[Message]) -> list[bool]:
    """Returns for each message of a call if a trace context is added to it.

    That needs two free names and 600 bytes, below every limit of the call, and no context of its
    own.
    """
    total = sum(message.size_bytes for message in messages)
    left = min((limit - total for limit in BATCH_BYTES if limit >= total), default=0)
    room = []
    for message in messages:
        fits = left >= ROOM_BYTES and _takes(message)
        left -= ROOM_BYTES if fits else 0
        room.append(fits)
    return room


def has_context(message: Message) -> bool:
    """Returns True if the message has a context of its sender's, valid or not."""
    return any(name in message.attributes for name in NAMES)


def _takes(message: Message) -> bool:
    return (
        not has_context(message)
        and len(message.attributes) <= ATTRIBUTES - len(NAMES)
        and message.size_bytes + ROOM_BYTES <= MESSAGE_BYTES
    )
