"""A message is deleted only if its handler ran and said so: every other result is a failure."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.client.stores import Store
from tests.client.taking import left

from cirrusmq_client import (
    Ack,
    AsyncClient,
    AsyncConsumer,
    Batches,
    Client,
    Connection,
    Consumer,
    DeadLetter,
    ExactlyOnce,
    Message,
    NoProgress,
    Received,
    Retry,
    batch_response,
    exactly_once,
)
from cirrusmq_local.testing import Service

NOWHERE = Connection(url="http://127.0.0.1:9", access_key_id="a", secret="b")


async def coroutine(given: Any) -> None:
    raise AssertionError("nobody awaits it")


def generator(given: Any) -> Iterator[None]:
    yield


async def asynchronous_generator(given: Any) -> AsyncIterator[None]:
    yield


async def with_tools(given: Any, tools: Any) -> None:
    raise AssertionError("nobody awaits it")


def without_parameters() -> None: ...


class Awaited:
    async def __call__(self, given: Any) -> None:
        raise AssertionError("nobody awaits it")

    async def method(self, given: Any) -> None:
        raise AssertionError("nobody awaits it")

    @staticmethod
    async def static(given: Any) -> None:
        raise AssertionError("nobody awaits it")


class Handler:
    def __call__(self, given: Any) -> None: ...


GENERATORS = [generator, asynchronous_generator, partial(generator)]
NEVER = [*GENERATORS, Handler, without_parameters, "orders", None]
COROUTINES = [
    coroutine,
    partial(coroutine),
    partial(partial(coroutine)),
    Awaited(),
    Awaited().method,
    partial(Awaited().method),
    Awaited.static,
    partial(Awaited()),
]


def told(handler: object) -> str:
    return getattr(handler, "__qualname__", type(handler).__qualname__)


@pytest.mark.parametrize("handler", [*NEVER, *COROUTINES], ids=told)
def test_an_unusable_handler_is_refused_before_its_first_message(handler: Any) -> None:
    client = Client(NOWHERE)
    ways: list[Callable[[], object]] = [
        lambda: Consumer("orders", handler, client=client),
        lambda: Consumer("orders", handler, client=client, batches=Batches()),
        lambda: Consumer("news", handler, client=client, broadcasting=NoProgress()),
        lambda: batch_response(handler),
        lambda: Service().consume("orders", handler),
    ]
    for way in ways:
        with pytest.raises(TypeError, match=r"handler"):
            way()


@pytest.mark.parametrize("handler", NEVER, ids=told)
def test_an_unusable_handler_is_refused_by_asyncio_too(handler: Any) -> None:
    async def use() -> None:
        async with AsyncClient(NOWHERE) as client:
            for options in ({}, {"batches": Batches()}):
                with pytest.raises(TypeError, match="handler"):
                    AsyncConsumer("orders", handler, client=client, **options)  # type: ignore[call-overload]

    asyncio.run(use())


@pytest.mark.parametrize("handler", COROUTINES, ids=told)
def test_coroutine_functions_are_for_an_async_consumer(handler: Any) -> None:
    async def use() -> None:
        async with AsyncClient(NOWHERE) as client:
            AsyncConsumer("orders", handler, client=client)

    asyncio.run(use())
    with pytest.raises(TypeError, match="AsyncConsumer"):
        Consumer("orders", handler, client=Client(NOWHERE))


@pytest.mark.parametrize("handler", [with_tools, partial(with_tools)], ids=told)
def test_exactly_once_refuses_a_handler_unfit_for_a_transaction(handler: Any) -> None:
    with pytest.raises(TypeError, match="handler"):
        ExactlyOnce(Store(), "shop")(handler)
    with pytest.raises(TypeError, match="handler"):
        exactly_once(Store(), "shop")(handler)


@pytest.mark.parametrize("handler", [print, [].append, Handler(), Handler().__call__, lambda m: m])
def test_a_usable_handler_is_taken(handler: Any) -> None:
    Consumer("orders", handler, client=Client(NOWHERE))


def a_coroutine() -> Coroutine[Any, Any, None]:
    return coroutine(None)


UNKNOWN: dict[str, Callable[[], Any]] = {
    "coroutine": a_coroutine,
    "generator": lambda: generator(None),
    "async_generator": lambda: asynchronous_generator(None),
    "class Retry": lambda: Retry,
    "class DeadLetter": lambda: DeadLetter,
    "class Ack": lambda: Ack,
    "bool": lambda: False,
    "str": lambda: "done",
    "bytes": lambda: b"done",
    "int": lambda: 0,
    "RuntimeError": lambda: RuntimeError("closed"),
    "set": lambda: {Ack()},
    "dict": lambda: {"result": a_coroutine()},
    "object": object,
}
SEVERAL: dict[str, Callable[[], Any]] = {
    "list": lambda: [Ack(), a_coroutine()],
    "tuple": lambda: (Ack(), Ack()),
}
"""Of which a handler of batches may return as many as it got messages."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        made.client.create_queue("orders", {"partitions": 1})
        made.client.send("orders", [Message("a"), Message("b")])
        yield made


@pytest.mark.parametrize(
    ("name", "batches"),
    [(name, batches) for name in UNKNOWN for batches in (None, Batches(max_batch=2))]
    + [("tuple", None), ("list", None)],
)
def test_an_unknown_result_is_a_failure_and_is_told(
    service: Service, caplog: pytest.LogCaptureFixture, name: str, batches: Batches | None
) -> None:
    make = (UNKNOWN | SEVERAL)[name]

    given = service.consume("orders", lambda _: make(), batches=batches)

    assert len(given) == left(service.client, "orders") == 2
    told = [line for line in caplog.messages if "queue orders comes again" in line]
    assert len(told) == 2
    assert all(f"returned {'the ' * ('class' in name)}{name}, not" in line for line in told)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("make", [Ack, Retry, a_coroutine], ids=told)
def test_a_wrong_number_of_results_fails_every_message(
    service: Service, caplog: pytest.LogCaptureFixture, count: int, make: Callable[[], Any]
) -> None:
    service.consume("orders", lambda _: [make() for _ in range(count)], batches=Batches())

    assert left(service.client, "orders") == 2
    assert f"{count} results for 2 messages" in caplog.text


def test_an_unknown_result_in_a_batch_fails_its_own_message(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(messages: list[Received]) -> Any:
        return [None if message.text == "a" else a_coroutine() for message in messages]

    service.consume("orders", handle, batches=Batches())

    assert left(service.client, "orders") == 1
    assert "coroutine" in caplog.text
    service.pass_seconds(300)
    assert [each.text for each in service.client.receive("orders")] == ["b"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_function_of_lambda_fails_a_message_for_an_unknown_result(name: str) -> None:
    event = {"messages": [{"id": "1", "body": "a"}]}

    answer = batch_response(lambda _: UNKNOWN[name]())(event, None)

    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("each", [False, True], ids=["together", "each"])
@pytest.mark.parametrize("batches", [None, Batches()], ids=["single", "batches"])
def test_nothing_is_written_once_for_an_unknown_result(
    service: Service, name: str, each: bool, batches: Batches | None
) -> None:
    store = Store()
    once = ExactlyOnce(store, "shop", each=each)

    def handle(given: Any, writes: list[str]) -> Any:
        writes.append("x")
        return UNKNOWN[name]()

    service.consume("orders", once(handle), batches=batches)

    assert (store.keys, store.written) == (set(), [])
    assert left(service.client, "orders") == 2


@pytest.mark.parametrize("after", ["5", float("nan"), True, b"5", [1], {"seconds": 5}], ids=repr)
def test_a_retry_refuses_an_invalid_time(after: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"after must be .* seconds"):
        Retry(after=after)


def test_a_retry_takes_a_timedelta_and_keeps_to_the_range_of_the_service() -> None:
    seconds: dict[float | timedelta, int]
    seconds = {timedelta(minutes=2): 120, timedelta(days=1): 43_200, timedelta(seconds=-1): 0}
    seconds |= {math.inf: 43_200, -math.inf: 0, 10**400: 43_200, 1.5: 2, -3: 0}

    assert {after: Retry(after=after).delay_seconds for after in seconds} == seconds
    assert Retry().delay_seconds is None


def test_a_reason_without_text_is_told_by_its_type() -> None:
    """It would never settle otherwise: the message is hopeless each time."""

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    reason: Any = Broken()
    assert DeadLetter(reason).reason == "Broken"
    assert DeadLetter().reason is None


@pytest.mark.parametrize(
    "error", [SystemExit, GeneratorExit, asyncio.CancelledError, StopIteration]
)
@pytest.mark.parametrize("batches", [None, Batches()], ids=["single", "batches"])
def test_a_raised_error_is_the_handlers_failure(
    service: Service,
    caplog: pytest.LogCaptureFixture,
    error: type[BaseException],
    batches: Batches | None,
) -> None:
    def handle(_: Any) -> None:
        raise error

    service.consume("orders", handle, batches=batches)

    assert left(service.client, "orders") == 2
    assert "handler failed" in caplog.text
    answer = batch_response(handle)({"messages": [{"id": "1", "body": "a"}]}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.fail.Exception])
def test_an_abort_of_a_test_is_raised(service: Service, error: type[BaseException]) -> None:
    def handle(_: Any) -> None:
        raise error("stop")

    with pytest.raises(error):
        service.consume("orders", handle)
