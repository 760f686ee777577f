"""One trace from a producer to its consumers, by spans of OpenTelemetry."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode
from tests.client.conftest import NewQueue, Wait
from tests.client.spans import Traced, id_of, links_of, parent_of, told, trace_of, traceparent
from tests.stack import environment

from cirrusmq_client import (
    AsyncClient,
    AsyncConsumer,
    AsyncProducer,
    Batches,
    Client,
    Consumer,
    DeadLetter,
    Message,
    NoProgress,
    Producer,
    Queue,
    Received,
    Retry,
    Subscription,
    batch_response,
)
from cirrusmq_client.errors import QueueNotFound
from cirrusmq_client.otel import LEFT_OUT, RESULT, context_of
from cirrusmq_client.tracing import Tracing
from cirrusmq_local.testing import Subscriber

OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
def own(stack: Any, traced: Traced) -> Iterator[Client]:
    """A client with spans."""
    with Client(stack.connection, tracing=traced.option) as made:
        yield made


def handle_all(
    client: Client,
    source: Any,
    count: int,
    wait_until: Wait,
    begun: Callable[[], object] = lambda: None,
    **options: Any,
) -> list[int]:
    """Consume messages; the trace that was current in each call of the handler."""
    seen: list[int] = []

    def handle(_: Any) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    with Consumer(source, handle, client=client, wait_seconds=1, **options):
        begun()
        wait_until(lambda: len(seen) >= count)
    return seen


def test_one_trace_from_a_topic_to_a_queue_a_group_and_a_url(
    own: Client, client: Client, traced: Traced, topic: str, queue: str, wait_until: Wait
) -> None:
    client.create_subscription(topic, "copies", {"protocol": "queue", "endpoint": queue})
    client.create_subscription(topic, "group", {"protocol": "pull"})
    with Subscriber() as subscriber:
        web: Any = {"protocol": "http", "endpoint": subscriber.url("web")}
        client.create_subscription(topic, "web", web)
        with traced.tracer.start_as_current_span("order"), Producer(own) as producer:
            published = producer.publish(topic, "order 1")
        (posted,) = subscriber.wait_for([published.id])
    traces = handle_all(own, queue, 1, wait_until)
    traces += handle_all(own, Subscription(topic, "group"), 1, wait_until)

    order, send = traced.one("order"), traced.one("publish")
    assert parent_of(send) == id_of(order)
    assert traces == [trace_of(order)] * 2
    assert [parent_of(span) for span in traced.all("process")] == [id_of(send)] * 2
    for operation in ("receive", "process", "delete"):
        assert [links_of(span) for span in traced.all(operation)] == [[id_of(send)]] * 2
    assert posted.headers["traceparent"] == traceparent(send)
    assert posted.content["msgAttributes"] == {"traceparent": traceparent(send)}
    shown = client.trace(topic, published.id)
    assert shown["trace_id"] == f"{trace_of(order):032x}"


def test_a_consumer_is_in_the_trace_of_a_producer_without_the_library(
    own: Client, stack: Any, traced: Traced, queue: str, wait_until: Wait
) -> None:
    key = stack.connection
    headers = {
        "authorization": f"Bearer {key.access_key_id}:{key.secret}",
        "traceparent": OTHER,
    }
    sent = httpx.post(
        f"{own.url}/queues/{queue}/messages",
        json={"messages": [{"body": "x"}]},
        headers=headers,
        trust_env=False,
    )
    assert sent.status_code == 201

    traces = handle_all(own, queue, 1, wait_until)

    assert [f"{trace_id:032x}" for trace_id in traces] == [OTHER[3:35]]
    parent = traced.one("process").parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == OTHER[36:52]


def test_spans_follow_the_conventions(
    own: Client, traced: Traced, queue: str, wait_until: Wait
) -> None:
    (sent,) = own.send(queue, [Message("a")])
    handle_all(own, queue, 1, wait_until)

    kinds = {span.name: span.kind for span in traced.exporter.get_finished_spans()}
    assert kinds == {
        f"send {queue}": SpanKind.PRODUCER,
        f"receive {queue}": SpanKind.CLIENT,
        f"process {queue}": SpanKind.CONSUMER,
        f"delete {queue}": SpanKind.CLIENT,
    }
    names = ("messaging.operation.type", "messaging.batch.message_count", "messaging.message.id")
    assert [told(span, *names) for span in traced.exporter.get_finished_spans()] == [
        ["send", 1, sent.id],
        ["receive", 1, sent.id],
        ["process", None, sent.id],
        ["settle", 1, None],
    ]
    common = ("messaging.system", "messaging.destination.name", "server.address")
    for span in traced.exporter.get_finished_spans():
        assert told(span, *common) == ["cirrusmq", queue, "127.0.0.1"]


def test_spans_of_a_batch_link_to_each_message(
    own: Client, traced: Traced, new_queue: NewQueue
) -> None:
    queue = new_queue(partitions=1)
    for body in ("a", "b"):
        own.send(queue, [Message(body)])
    own.send(queue, [Message("c"), Message("d")])

    received = own.receive(queue, 16)
    own.dead_letter(queue, [received[0].receipt])
    own.give_back(queue, [each.receipt for each in received[1:3]])

    sends = {each.id: links_of(traced.one("receive"))[i] for i, each in enumerate(received)}
    assert sorted(sends.values()) == sorted(
        [*(id_of(span) for span in traced.all("send")), id_of(traced.all("send")[2])]
    )
    links = traced.one("receive").links
    assert [(link.attributes or {})["messaging.message.id"] for link in links] == list(sends)
    # Without a dead-letter queue it fails, and the span says why.
    refused = traced.one("dead_letter")
    assert (told(refused, "error.type"), refused.status.status_code) == (
        ["NoDeadLetterQueue"],
        StatusCode.ERROR,
    )
    assert links_of(traced.one("give_back")) == [sends[each.id] for each in received[1:3]]


def test_an_empty_poll_has_no_span(own: Client, traced: Traced, new_queue: NewQueue) -> None:
    assert own.receive(new_queue(), wait_seconds=0) == []

    assert traced.names == []


@pytest.mark.parametrize("call", ["send", "receive", "delete"])
def test_a_failed_call_is_an_error(own: Client, traced: Traced, call: str) -> None:
    given: dict[str, tuple[Any, ...]] = {
        "send": ([Message("x")],),
        "receive": (),
        "delete": (["receipt"],),
    }
    with pytest.raises(QueueNotFound):
        getattr(own, call)("missing", *given[call])

    span = traced.one(call)
    assert span.status.status_code is StatusCode.ERROR
    assert told(span, "error.type") == ["QueueNotFound"]
    assert [event.name for event in span.events] == ["exception"]


def test_a_message_without_room_is_sent_without_a_context(
    own: Client, traced: Traced, new_queue: NewQueue
) -> None:
    queue = new_queue(max_message_bytes=1_000_000)
    many = {f"k{number}": "v" for number in range(9)}
    own.send(queue, [Message("many", attributes=many), Message("x" * 300_000), Message("plain")])

    found = {message.text[:5]: message.attributes for message in own.receive(queue, 16)}

    span = traced.one("send")
    assert found == {"many": many, "xxxxx": {}, "plain": {"traceparent": traceparent(span)}}
    assert told(span, LEFT_OUT) == [2]


def test_a_message_keeps_a_context_of_its_own(own: Client, traced: Traced, queue: str) -> None:
    own.send(queue, [Message("x", attributes={"traceparent": OTHER})])

    (message,) = own.receive(queue)

    span = traced.one("send")
    assert message.attributes == {"traceparent": OTHER}
    assert span.kind is SpanKind.CLIENT
    assert [f"{trace_id:032x}" for trace_id, _ in links_of(span)] == [OTHER[3:35]]


def test_each_message_sent_soon_has_the_context_of_its_call(
    own: Client, traced: Traced, queue: str
) -> None:
    with Producer(own, linger=0.2) as producer:
        for name in ("one", "two"):
            with traced.tracer.start_as_current_span(name):
                producer.send_soon(queue, name)
    found = {message.text: message for message in own.receive(queue, 16)}

    created = {trace_of(span): span for span in traced.all("create")}
    for name in ("one", "two"):
        outer = traced.one(name)
        span = created[trace_of(outer)]
        assert (parent_of(span), span.kind) == (id_of(outer), SpanKind.PRODUCER)
        assert found[name].attributes["traceparent"] == traceparent(span)
    flush = traced.one("send")
    assert (parent_of(flush), flush.kind) == (None, SpanKind.CLIENT)
    assert links_of(flush) == [id_of(span) for span in traced.all("create")]


def test_a_failing_handler_is_an_error_and_each_delivery_a_span(
    own: Client, traced: Traced, new_queue: NewQueue, wait_until: Wait
) -> None:
    queue = new_queue()  # without a policy: after up to 1, 2 and 4 s
    own.send(queue, [Message("x")])
    results: list[Any] = [ValueError("bad"), SystemExit(), 17, Retry(after=0), DeadLetter()]
    left = list(results)

    def handle(message: Received) -> Any:
        result = left.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    with Consumer(queue, handle, client=own, wait_seconds=1):
        wait_until(lambda: not left)

    spans = traced.all("process")
    assert [told(span, "error.type", RESULT) for span in spans] == [
        ["ValueError", None],
        ["SystemExit", None],
        ["UnknownResult", None],
        [None, "Retry"],
        [None, "DeadLetter"],
    ]
    assert {parent_of(span) for span in spans} == {id_of(traced.one("send"))}


def test_a_handler_of_batches_has_one_span_with_a_link_for_each(
    own: Client, traced: Traced, new_queue: NewQueue, wait_until: Wait
) -> None:
    queue = new_queue(partitions=1)
    for body in ("a", "b"):
        own.send(queue, [Message(body)])

    seen = handle_all(own, queue, 1, wait_until, batches=Batches(max_batch=2, max_await=5))

    span = traced.one("process")
    assert seen == [trace_of(span)]
    assert (span.parent, told(span, "messaging.batch.message_count")) == (None, [2])
    assert sorted(links_of(span)) == sorted(id_of(each) for each in traced.all("send"))


def test_half_messages_carry_the_context_of_their_preparation(
    own: Client, traced: Traced, topic: str
) -> None:
    own.create_subscription(topic, "group", {"protocol": "pull"})
    handle = own.prepare(topic, [Message("x")])
    own.commit(topic, handle)

    (message,) = own.receive(Subscription(topic, "group"), wait_seconds=20)

    span = traced.one("prepare")
    assert message.attributes == {"traceparent": traceparent(span)}
    received = traced.one("receive")
    assert told(received, "messaging.destination.subscription.name") == ["group"]


def test_a_broadcasting_member_handles_within_the_trace(
    own: Client, traced: Traced, topic: str, wait_until: Wait
) -> None:
    own.create_subscription(topic, "log", {"protocol": "pull", "mode": "broadcasting"})

    seen = handle_all(
        *(own, topic, 1, wait_until),
        begun=lambda: own.publish(topic, [Message("x")]),
        broadcasting=NoProgress(),
    )

    span = traced.one("process")
    assert (seen, parent_of(span)) == ([trace_of(span)], id_of(traced.one("publish")))
    assert told(span, "messaging.destination.name") == [topic]


def test_a_receive_by_an_attribute_links_too(
    own: Client, traced: Traced, new_queue: NewQueue
) -> None:
    queue = new_queue(partitions=1)
    own.send(queue, [Message("x", attributes={"shop": "bonn"})])

    selected = own.receive_where(queue, "shop", "bonn")

    assert [message.text for message in selected.messages] == ["x"]
    assert links_of(traced.one("receive")) == [id_of(traced.one("send"))]


def test_a_receiver_of_a_queue_is_named(own: Client, traced: Traced, queue: str) -> None:
    own.create_receiver(queue, "audit", {})
    own.send_each(queue, [Message("x")])

    exchanged = own.delete_and_receive(Queue(queue, "audit"), ["none"], wait_seconds=20)

    assert len(exchanged.messages) == 1
    for operation in ("receive", "delete"):
        span = traced.one(operation)
        assert told(span, "messaging.destination.subscription.name") == ["audit"]
    assert traced.one("delete").status.status_code is StatusCode.ERROR


def test_a_handler_without_a_consumer_continues_the_trace(
    own: Client, traced: Traced, queue: str
) -> None:
    own.send(queue, [Message("x")])
    (message,) = own.receive(queue)

    traced.tracer.start_span("work", context=context_of(message)).end()

    assert parent_of(traced.one("work")) == id_of(traced.one("send"))


def test_a_lambda_function_handles_within_the_trace(traced: Traced) -> None:
    """Each message of a batch has a span, in its own trace; a failed one is an error."""
    source = {"eventSourceARN": "arn:aws:sqs:us-east-1:alice:orders", "eventSource": "cirrusmq"}
    context = {"traceparent": {"stringValue": OTHER, "dataType": "String"}}
    records = [
        {"messageId": f"Msg-{n}", "receiptHandle": "r", "body": f"{n}", **source, **more}
        for n, more in enumerate(({"messageAttributes": context}, {}))
    ]
    seen: list[int] = []

    def handle(message: Received) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)
        if message.body == "1":
            raise ValueError

    answered = batch_response(handle, tracing=traced.option)({"Records": records}, None)

    assert [each["itemIdentifier"] for each in answered["batchItemFailures"]] == ["Msg-1"]
    first, second = traced.exporter.get_finished_spans()
    assert (first.kind, second.kind) == (trace.SpanKind.CONSUMER,) * 2
    assert [id_of(span)[0] for span in (first, second)] == seen
    assert parent_of(first) == tuple(int(each, 16) for each in OTHER.split("-")[1:3])
    assert parent_of(second) is None
    assert (first.attributes or {})["messaging.message.id"] == "Msg-0"
    assert first.status.status_code != second.status.status_code == trace.StatusCode.ERROR
    assert (second.attributes or {})["error.type"] == "ValueError"


def test_the_same_with_asyncio(stack: Any, traced: Traced, queue: str) -> None:
    seen: dict[str, int] = {}

    async def handle(message: Received) -> None:
        await asyncio.sleep(0.01)
        seen[message.text] = trace.get_current_span().get_span_context().trace_id
        if message.text == "two":
            raise ValueError

    async def send(producer: AsyncProducer, name: str) -> None:
        with traced.tracer.start_as_current_span(name):
            await (await producer.send_soon(queue, name))

    async def play() -> None:
        async with AsyncClient(stack.connection, tracing=traced.option) as client:
            async with AsyncProducer(client, linger=0.1) as producer:
                await asyncio.gather(*(send(producer, name) for name in ("one", "two")))
                with traced.tracer.start_as_current_span("three"):
                    await producer.send(queue, "three")
            with traced.tracer.start_as_current_span("start"):
                consumer = AsyncConsumer(queue, handle, client=client, wait_seconds=1)
                await consumer.start()
            async with asyncio.timeout(60):
                while len(seen) < 3:
                    await asyncio.sleep(0.01)
            consumer.stop()
            await consumer.join()

    asyncio.run(play())

    assert seen == {name: trace_of(traced.one(name)) for name in seen}
    process = {trace_of(span): span for span in traced.all("process")}
    created = [*traced.all("create"), traced.all("send")[-1]]
    assert len(created) == 3
    for span in created:
        assert parent_of(process[trace_of(span)]) == id_of(span)
    assert told(process[seen["two"]], "error.type") == ["ValueError"]
    flushes = traced.all("send")[:-1]
    # Workers are nobody's children: neither of the first sender nor of who started the consumer.
    for span in (*flushes, *traced.all("receive"), *traced.all("delete")):
        assert parent_of(span) is None
    linked = [link for span in flushes for link in links_of(span)]
    assert sorted(linked) == sorted(id_of(span) for span in created[:2])


def test_unrecorded_spans_carry_no_context(stack: Any, queue: str) -> None:
    with Client(stack.connection, tracing=Tracing(tracer_provider=NoOpTracerProvider())) as client:
        client.send(queue, [Message("x")])
        (message,) = client.receive(queue)

    assert message.attributes == {}


WITHOUT = """
import sys
if sys.argv[1] == "missing":
    sys.modules["opentelemetry"] = None
from cirrusmq_client import AsyncClient, Client, Connection, Consumer, Producer
from cirrusmq_client.errors import NotConfigured
connection = Connection(url="http://127.0.0.1:9", access_key_id="k", secret="s")
client = Client(connection)
assert client.spans is None and "send" not in vars(client)
Consumer("orders", print, client=client), Producer(client), AsyncClient(connection)
print([name for name in sys.modules if name.startswith("opentelemetry") and sys.modules[name]])
try:
    Client(connection, tracing=True)
except NotConfigured as error:
    print(error)
"""


@pytest.mark.parametrize("way", ["missing", "there"])
def test_a_client_without_spans_does_not_import_opentelemetry(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, way], env=environment(), capture_output=True, text=True
    )

    assert done.stderr == ""
    needs = "tracing needs more packages: pip install cirrusmq-client[otel]\n"
    assert done.stdout == "[]\n" + (needs if way == "missing" else "")
