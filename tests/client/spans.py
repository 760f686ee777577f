"""Spans that clients make, kept in memory, and the clients of both kinds that make them."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cirrusmq_client.tracing import Tracing


class Traced:
    """A tracer provider whose spans are read by their names."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("app")
        self.option = Tracing(tracer_provider=self.provider)

    @property
    def names(self) -> list[str]:
        """The names of the ended spans, without their destinations."""
        return [span.name.split(" ")[0] for span in self.exporter.get_finished_spans()]

    def all(self, operation: str) -> list[ReadableSpan]:
        """The ended spans of an operation, by their ends."""
        found = self.exporter.get_finished_spans()
        return [span for span in found if span.name.split(" ")[0] == operation]

    def one(self, operation: str) -> ReadableSpan:
        (span,) = self.all(operation)
        return span


def id_of(span: ReadableSpan) -> tuple[int, int]:
    """The ids of a span: of its trace, and its own."""
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def trace_of(span: ReadableSpan) -> int:
    return id_of(span)[0]


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    """The ids of a span's parent, or None."""
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def told(span: ReadableSpan, *names: str) -> list[Any]:
    """Attributes of a span, None for one that it lacks."""
    attributes = span.attributes or {}
    return [attributes.get(name) for name in names]


def traceparent(span: ReadableSpan) -> str:
    """The attribute of a message whose creation context the span is."""
    context = span.get_span_context()
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
