"""Send and handle a message in one trace of OpenTelemetry, and print the spans."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from cirrusmq_client import Client, Consumer, Producer, Received


def line(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x} {span.name}\n"


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=line)))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")


def handle(message: Received) -> None:
    with tracer.start_as_current_span("invoice"):
        pass


client = Client(tracing=True)
with tracer.start_as_current_span("order"):
    Producer(client).send("orders", "order 1")
Consumer("orders", handle, client=client).run()
