"""Handlers that do not behave: their consumers go on, and only what they did is deleted."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.client.conftest import NewQueue

from cirrusmq_client import (
    AsyncClient,
    AsyncConsumer,
    Batches,
    CallbackProgress,
    CirrusMQError,
    Client,
    Consumer,
    DeadLetter,
    Message,
    NoProgress,
    Queue,
    Received,
    Retry,
    Subscription,
)
from cirrusmq_client.inbox import Inbox
from cirrusmq_client.leases import Held, Leases
from cirrusmq_client.settling import Settler

KINDS = ["blocking", "asyncio"]


class Interruption(BaseException):
    """Of another library, as gevent's and pytest's are."""


def throw(error: BaseException) -> Any:
    raise error


def fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    raise RuntimeError("the child is gone")


BEHAVIOURS: dict[str, Callable[[], Any]] = {
    "returns False": lambda: False,
    "returns True": lambda: True,
    "returns a text": lambda: "done",
    "returns a number": lambda: 0,
    "returns a class": lambda: Retry,
    "returns an error": lambda: ValueError("no"),
    "returns a generator": lambda: (letter for letter in "abc"),
    "returns a dict": lambda: {"retry": True},
    "retries by a text": lambda: Retry(after="5"),  # type: ignore[arg-type]
    "retries by nan": lambda: Retry(after=float("nan")),
    "retries by a timedelta": lambda: Retry(after=timedelta()),
    "retries before now": lambda: Retry(after=-1),
    "raises": lambda: throw(RuntimeError("a bug")),
    "ends the program": lambda: throw(SystemExit("cannot read it")),
    "is interrupted": lambda: throw(KeyboardInterrupt()),
    "is cancelled": lambda: throw(asyncio.CancelledError()),
    "closes its generator": lambda: throw(GeneratorExit()),
    "ends an iteration": lambda: throw(StopIteration()),
    "is interrupted by a library": lambda: throw(Interruption()),
    "forks": fork,
}


class Handler:
    """Behaves at the first delivery as the message's text says, and well at the next one."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, given: Received | list[Received]) -> Any:
        messages = given if isinstance(given, list) else [given]
        new = [each.text for each in messages if not self.seen[each.text]]
        self.seen.update(each.text for each in messages)
        bad = next((text for text in new if text in BEHAVIOURS), None)
        return None if bad is None else BEHAVIOURS[bad]()

    async def later(self, given: Received | list[Received]) -> Any:
        await asyncio.sleep(0)
        return self(given)


def consume(
    kind: str,
    stack: Any,
    source: Any,
    handler: Handler,
    until: Callable[[], object],
    begun: Callable[[], object] = lambda: None,
    **options: Any,
) -> None:
    """Have a consumer of a kind run until something is so, but half a minute at most."""
    options = {"wait_seconds": 1, **options}
    ends = time.monotonic() + 30
    if kind == "blocking":
        with (
            Client(stack.connection) as client,
            Consumer(source, handler, client=client, **options),
        ):
            begun()
            while not until():
                assert time.monotonic() < ends, handler.seen
                time.sleep(0.02)
        return

    async def use() -> None:
        async with (
            AsyncClient(stack.connection) as client,
            AsyncConsumer(source, handler.later, client=client, **options),
        ):
            await asyncio.to_thread(begun)
            while not await asyncio.to_thread(until):
                assert time.monotonic() < ends, handler.seen
                await asyncio.sleep(0.02)

    asyncio.run(use())


WAITS = {"policy": "custom", "waits": [0.05] * 9}
IN_ORDER = {"policy": "ordered", "interval_seconds": 0.05}
SOURCES = [
    "queue",
    "ordered queue",
    "fair queue",
    "receiver",
    "subscription",
    "ordered subscription",
]
BOTH_WAYS = [None, Batches(max_batch=3)]


@pytest.fixture
def source(request: pytest.FixtureRequest, client: Client, new_queue: NewQueue, topic: str) -> Any:
    """A source of each kind, which has a message for each behaviour, and one behind it."""
    kind = request.param
    ordered = "ordered" in kind
    retry = IN_ORDER if ordered else WAITS
    texts = [text for each in BEHAVIOURS for text in (each, f"behind: {each}")]
    grouped = ordered or "fair" in kind
    messages = [
        Message(text, group=text.removeprefix("behind: ") if grouped else None) for text in texts
    ]
    send: Callable[[str, Sequence[Message]], Any] = client.send
    made: Any
    if "subscription" in kind:
        group: Any = {"protocol": "pull", "ordered": ordered, "retry": retry}
        client.create_subscription(topic, "shop", group)
        name, send, made = topic, client.publish, Subscription(topic, "shop")
    elif kind == "receiver":
        name = new_queue()
        client.create_receiver(name, "audit", {"start": "latest"})
        made = Queue(name, receiver="audit")
    else:
        letters = {"queue": new_queue(), "max_receives": 99}
        form = {kind.split()[0]: True} if grouped else {}
        name = new_queue(retry=retry, dead_letter=None if ordered else letters, **form)
        made = name
    for start in range(0, len(messages), 16):
        send(name, messages[start : start + 16])
    return made


# A consumer of either kind on each source, by messages and by batches: every pair, not every three.
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("source", "kind", "batches"),
    [
        (source, kind, batches)
        for number, source in enumerate(SOURCES)
        for kind, batches in zip(KINDS, BOTH_WAYS[:: -1 if number % 2 else 1], strict=True)
    ],
    indirect=["source"],
)
def test_every_message_comes_until_its_handler_behaves(
    stack: Any, client: Client, kind: str, source: Any, batches: Batches | None
) -> None:
    handler = Handler()
    last = {"calls": -1, "at": 0.0}

    def all_done() -> bool:
        done = all(
            handler.seen[each] >= 2 and handler.seen[f"behind: {each}"] for each in BEHAVIOURS
        )
        # Of a batch that failed every message comes again: the last one is behind a quiet time.
        if last["calls"] != (calls := sum(handler.seen.values())):
            last.update(calls=calls, at=time.monotonic())
        return done and (batches is None or time.monotonic() - last["at"] > 1)

    consume(kind, stack, source, handler, all_done, batches=batches)

    left = client.receive(source, 16, wait_seconds=0)
    assert [each.text for each in left] == []
    if batches is None:
        good = {text: count for text, count in handler.seen.items() if text.startswith("behind")}
        assert set(good.values()) == {1}


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batches", BOTH_WAYS, ids=["single", "batches"])
def test_a_broadcasting_member_reads_on_after_every_failing_handler(
    stack: Any, client: Client, topic: str, kind: str, batches: Batches | None
) -> None:
    handler = Handler()

    def publish() -> None:
        for text in BEHAVIOURS:
            client.publish(topic, [Message(text)])

    consume(
        *(kind, stack, topic, handler),
        until=lambda: len(handler.seen) == len(BEHAVIOURS),
        begun=publish,
        batches=batches,
        broadcasting=NoProgress(),
    )

    assert set(handler.seen.values()) == {1}


BUG_TEXT = "".join(traceback.format_exception(ValueError("no order " * 90)))
REASONS: dict[str, tuple[Any, str]] = {
    "none": (None, "consumer"),
    "long": ("x" * 300, "x" * 256),
    "traceback": (BUG_TEXT, BUG_TEXT[:256]),
    "two bytes a character": ("é" * 257, "é" * 256),
    "four bytes a character": ("😀" * 257, "😀" * 256),
    "half an emoji": ("half \ud83d", "half ?"),
    "control characters": ("\x00\x1b[31m\r\n\x85",) * 2,
    "bytes": (b"\xff" * 300, "\ufffd" * 256),
    "an error": (KeyError("price"), "KeyError: 'price'"),
    "an object": ({"code": 5}, "{'code': 5}"),
    "a number": (17, "17"),
    "empty": ("", ""),
}
"""What a handler gives, and what the dead letter has."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_letter_has_a_reason_of_any_type(
    stack: Any, client: Client, new_queue: NewQueue, kind: str
) -> None:
    dead = new_queue()
    name = new_queue(dead_letter={"queue": dead, "max_receives": 9})
    client.send(name, [Message(each) for each in REASONS])

    class Hopeless(Handler):
        def __call__(self, given: Any) -> Any:
            self.seen[given.text] += 1
            return DeadLetter(REASONS[given.text][0])

    def all_dead() -> bool:
        return client.show_queue(dead)["counts"]["active"] == len(REASONS)

    handler = Hopeless()
    consume(kind, stack, name, handler, all_dead)

    assert set(handler.seen.values()) == {1}
    told = {each.text: (each.dead_letter or {})["reason"] for each in client.peek_all(dead)}
    assert told == {name: reason for name, (_, reason) in REASONS.items()}


def ends_by(kind: str, stack: Any, source: Any, **options: Any) -> BaseException:
    """What `run` raises."""
    options = {"wait_seconds": 1, "grace_seconds": 5, **options}
    if kind == "blocking":
        with Client(stack.connection) as client, pytest.raises(CirrusMQError) as raised:
            Consumer(source, Handler(), client=client, **options).run()
        return raised.value

    async def use() -> BaseException:
        async with AsyncClient(stack.connection) as client:
            with pytest.raises(CirrusMQError) as raised:
                await AsyncConsumer(source, Handler().later, client=client, **options).run()
            assert len(asyncio.all_tasks()) == 1
            return raised.value

    return asyncio.run(use())


EXIT, BUG = SystemExit("bye"), KeyError("a bug")
# Both kinds of consumer share what dies here: each dies of both in one of them. After an
# exception `_call` and `_extend` go on.
DEATHS: list[tuple[type, str, BaseException, str]] = [
    (Inbox, "_remove", EXIT, "blocking"),
    (Inbox, "_remove", BUG, "asyncio"),
    (Inbox, "put", EXIT, "asyncio"),
    (Inbox, "put", BUG, "blocking"),
    (Settler, "_next", EXIT, "blocking"),
    (Settler, "_next", BUG, "asyncio"),
    (Settler, "_call", EXIT, "blocking"),
    (Settler, "_call", EXIT, "asyncio"),
    (Leases, "add", EXIT, "asyncio"),
    (Leases, "add", BUG, "blocking"),
    (Leases, "_extend", EXIT, "blocking"),
    (Leases, "_extend", EXIT, "asyncio"),
]


@pytest.mark.parametrize(("owner", "method", "error", "kind"), DEATHS)
def test_run_raises_the_error_of_a_dead_worker(
    stack: Any,
    client: Client,
    new_queue: NewQueue,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    owner: type,
    method: str,
    error: BaseException,
) -> None:
    name = new_queue(visibility_timeout_seconds=2)
    client.send(name, [Message("a"), Message("b")])
    monkeypatch.setattr(owner, method, lambda *_: throw(error))
    # A handler that waits, so that leases are extended and results come late.
    monkeypatch.setattr(Handler, "__call__", lambda *_: time.sleep(1.5))
    monkeypatch.setattr(Handler, "later", lambda *_: asyncio.sleep(1.5))

    raised = ends_by(kind, stack, name)

    assert raised.__cause__ is error
    monkeypatch.undo()
    left = client.receive(name, 16, wait_seconds=10)
    assert left or method in ("_extend", "_remove", "_next")


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ["delete", "delete_and_receive", "change_visibility", "give_back"])
def test_a_bug_in_a_call_does_not_end_its_caller(
    stack: Any,
    client: Client,
    new_queue: NewQueue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    call: str,
) -> None:
    # In order, each message is deleted by a call of its own.
    name = new_queue(visibility_timeout_seconds=2, ordered=call == "delete")
    group = "g" if call == "delete" else None
    client.send(name, [Message(each, group=group) for each in ("a", "b", "raises")])
    failed = threading.Event()
    for owner in (Client, AsyncClient):
        kept = getattr(owner, call)

        def fail(self: Any, *given: Any, kept: Any = kept, **named: Any) -> Any:
            if not failed.is_set():
                failed.set()
                raise KeyError("a bug")
            return kept(self, *given, **named)

        monkeypatch.setattr(owner, call, fail)
    handler = Handler()

    class Slow(Handler):
        def __call__(self, given: Any) -> Any:
            time.sleep(1.5 if call == "change_visibility" and not failed.is_set() else 0)
            return handler(given)

        async def later(self, given: Any) -> Any:
            return await asyncio.to_thread(self, given)

    def nothing_left() -> bool:
        counts = client.show_queue(name)["counts"]
        return failed.is_set() and not sum(
            counts[state] for state in ("active", "inactive", "delayed")
        )

    # A receive that deletes and fails by a bug ends the receiver, and so the consumer.
    if call == "delete_and_receive":
        raised = ends_by(kind, stack, name)
        assert isinstance(raised.__cause__, KeyError)
        return
    consume(kind, stack, name, Slow(), nothing_left)

    assert "a bug" in caplog.text
    assert all(handler.seen[each] for each in ("a", "b", "raises"))


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["load", "save"])
def test_a_broadcasting_member_tells_its_failed_progress(
    stack: Any, client: Client, topic: str, kind: str, method: str
) -> None:
    error = OSError("the disk is full")
    functions: dict[str, Any] = {"load": lambda: None, "save": lambda _: None}
    functions[method] = lambda *_: throw(error)
    publishing = threading.Timer(1, partial(client.publish, topic, [Message("a")]))
    publishing.start()

    raised = ends_by(kind, stack, topic, broadcasting=CallbackProgress(**functions))

    publishing.join()
    assert raised.__cause__ is error


def test_cancelling_every_task_of_a_loop_ends_the_consumer_and_loses_nothing(
    stack: Any, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(visibility_timeout_seconds=600)
    client.send(name, [Message(str(number)) for number in range(10)])
    handled: list[str] = []

    async def handle(message: Received) -> None:
        handled.append(message.text)
        if len(handled) > 4:
            await asyncio.sleep(60)

    async def use() -> None:
        async with AsyncClient(stack.connection) as client:
            consumer = AsyncConsumer(name, handle, client=client, workers=2, wait_seconds=1)
            running = asyncio.create_task(consumer.run())
            while len(handled) < 6:
                await asyncio.sleep(0.01)
            own = asyncio.current_task()
            for task in asyncio.all_tasks():
                if task is not own:
                    task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(use())

    counts = client.show_queue(name)["counts"]
    assert (counts["active"], counts["inactive"]) == (6, 0)


def test_one_task_cancelled_from_outside_ends_run(stack: Any, queue: str) -> None:
    async def use() -> None:
        async with AsyncClient(stack.connection) as client:
            consumer = AsyncConsumer(queue, nothing_of, client=client, wait_seconds=1)
            running = asyncio.create_task(consumer.run())
            await asyncio.sleep(0.2)
            (keeper,) = [each for each in asyncio.all_tasks() if "leases" in each.get_name()]
            keeper.cancel()
            with pytest.raises(CirrusMQError, match="leases was cancelled"):
                await running

    asyncio.run(use())


async def nothing_of(message: Received) -> None: ...


class Told(logging.Handler):
    """Notes when a line is told."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self.part, self.at_once = part, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self.part in record.getMessage():
            self.line = record.getMessage()
            self.at_once.set()


def test_a_handler_blocking_the_loop_past_its_leases_is_told_meanwhile(
    stack: Any, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(visibility_timeout_seconds=1)
    client.send(name, [Message("a")])
    told = Told("blocks the event loop")
    seen: list[bool] = []

    async def handle(message: Received) -> None:
        if not seen:
            seen.append(told.at_once.wait(30))  # blocks, where it should await

    async def use() -> None:
        async with (
            AsyncClient(stack.connection) as client,
            AsyncConsumer(name, handle, client=client, wait_seconds=1),
        ):
            while not seen:
                await asyncio.sleep(0.01)

    logging.getLogger("cirrusmq_client").addHandler(told)
    try:
        asyncio.run(use())
    finally:
        logging.getLogger("cirrusmq_client").removeHandler(told)

    assert seen[0] is True
    assert f"1 leases of queue {name}" in told.line
    assert "told.at_once.wait(30)" in told.line, "the line that blocks is named"
    watches = [each for each in threading.enumerate() if each.name == "cirrusmq-watch"]
    for watch in watches:
        watch.join(10)
    assert not any(watch.is_alive() for watch in watches)


def test_a_handler_awaiting_past_its_lease_is_not_told(
    stack: Any, client: Client, new_queue: NewQueue, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_queue(visibility_timeout_seconds=1)
    client.send(name, [Message("a")])

    class Waits(Handler):
        async def later(self, given: Any) -> None:
            await asyncio.sleep(2.5)
            self.seen["a"] += 1

    handler = Waits()
    consume("asyncio", stack, name, handler, lambda: handler.seen["a"])

    assert "blocks the event loop" not in caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("max_batch", "workers"), [(100, 4), (100, 1), (36, 4), (40, 2)])
def test_a_batch_is_full_at_once_when_enough_messages_wait(
    stack: Any, client: Client, new_queue: NewQueue, kind: str, max_batch: int, workers: int
) -> None:
    name = new_queue(partitions=1)
    for _ in range(7):
        client.send(name, [Message("x")] * 16)
    sizes: list[int] = []

    class Sizes(Handler):
        def __call__(self, given: Any) -> None:
            sizes.append(len(given))

    batches = Batches(max_batch=max_batch, max_await=300)
    consume(kind, stack, name, Sizes(), lambda: sizes, batches=batches, workers=workers)

    assert sizes[0] == max_batch


@pytest.mark.parametrize("prefetch", [0, 16, 99])
@pytest.mark.parametrize("max_batch", [1, 2, 7, 16, 17, 33, 36, 100])
def test_room_is_told_until_a_batch_is_full(max_batch: int, prefetch: int) -> None:
    inbox = Inbox(prefetch, limit=max_batch)
    taken: list[int] = []
    worker = threading.Thread(target=lambda: taken.append(len(inbox.take(max_batch, 300))))
    worker.start()

    def receive() -> None:
        while not taken and (room := inbox.wait_for_room()):
            inbox.put([Held(Received({"id": "1"}), 600, 1)] * room)

    receiver = threading.Thread(target=receive)
    receiver.start()
    worker.join(20)
    inbox.close()
    receiver.join(20)
    worker.join(20)

    assert taken == [max_batch]
