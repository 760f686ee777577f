"""Messages that are sent one by one, and go together."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from tests.awaited import Awaited, Loop
from tests.client.conftest import NewQueue, StartProcess, Wait
from tests.client.taking import bodies, drain, left

from cirrusmq_client import (
    AsyncClient,
    AsyncProducer,
    Backoff,
    Client,
    Message,
    NotSent,
    Producer,
    Subscription,
    errors,
    lingering,
)
from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.outcomes import Published, Sent

WAIT = 20


class Service:
    """The part of a client that a producer needs; `hold` keeps every call until `release`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Message]]] = []
        self.in_flight: list[str] = []
        self.most_in_flight = 0
        self.overtaken: list[str] = []
        self.refuse: Callable[[Message], CirrusMQError | None] = lambda _: None
        self.fail: CirrusMQError | None = None
        self._free = threading.Event()
        self._free.set()
        self._lock = threading.Lock()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def send_each(self, queue: str, messages: Sequence[Message]) -> list[Sent | CirrusMQError]:
        group = messages[0].group
        with self._lock:
            self.calls.append((queue, list(messages)))
            if group is not None and group in self.in_flight:
                self.overtaken.append(group)
            self.in_flight.append(str(group))
            self.most_in_flight = max(self.most_in_flight, len(self.in_flight))
        assert self._free.wait(WAIT)
        with self._lock:
            self.in_flight.remove(str(group))
        if self.fail is not None:
            raise self.fail
        for place, message in enumerate(messages):
            if message.body == "malformed":
                raise refused(errors.InvalidParameter, f"messages[{place}].tags")
        return [self.refuse(message) or Sent(str(message.body), "", "") for message in messages]

    def publish(self, topic: str, messages: Sequence[Message]) -> list[Published]:
        sent = self.send_each(topic, messages)
        return [Published(each.id, 0, "") for each in sent if isinstance(each, Sent)]

    @property
    def batches(self) -> list[list[str]]:
        return [[str(message.body) for message in messages] for _, messages in self.calls]


class AsyncService:
    """The same for asyncio: a call that is held leaves the loop to others."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def send_each(self, queue: str, messages: Sequence[Message]) -> Any:
        return await asyncio.to_thread(self._service.send_each, queue, messages)

    async def publish(self, topic: str, messages: Sequence[Message]) -> Any:
        return await asyncio.to_thread(self._service.publish, topic, messages)


def refused(kind: type[CirrusMQError], parameter: str | None = None) -> CirrusMQError:
    return kind("no", status=400, parameter=parameter)


def error_of(future: Future[Sent]) -> BaseException | None:
    return future.exception(WAIT)


@pytest.fixture
def service() -> Any:
    return Service()


@pytest.fixture
def make_blocking(service: Any) -> Any:
    made: list[Producer] = []

    def make(**options: Any) -> Producer:
        made.append(Producer(service, **options))
        return made[-1]

    yield make
    service.release()
    for each in made:
        each.close()


@pytest.fixture
def make_asyncio(service: Any, loop: Loop) -> Any:
    made: list[Awaited] = []
    client: Any = AsyncService(service)

    def make(**options: Any) -> Awaited:
        made.append(Awaited(loop, lambda: AsyncProducer(client, **options)))
        return made[-1]

    yield make
    service.release()
    for each in made:
        each.close()


@pytest.fixture(params=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest) -> Any:
    """A producer of either kind, used as a blocking one."""
    return request.getfixturevalue(f"make_{request.param}")


LINGER = 0.1
"""Seconds in which a busy machine, too, comes to send what a test gives a producer."""


@pytest.fixture(params=["blocking", "asyncio"])
def lossy_producer(
    request: pytest.FixtureRequest, stack: Any, proxy: Any, lossy: Client, loop: Loop
) -> Iterator[Any]:
    """A producer of either kind behind the proxy."""
    if request.param == "blocking":
        with Producer(lossy, linger=LINGER) as producer:
            yield producer
        return
    retry = Backoff(first_seconds=0.01)
    with (
        Awaited(loop, lambda: AsyncClient(stack.behind(proxy.url), retry=retry)) as client,
        Awaited(loop, lambda: AsyncProducer(client.itself, linger=LINGER)) as producer,
    ):
        yield producer


def send(producer: Producer, *bodies: str, queue: str = "q", **fields: Any) -> list[Future[Sent]]:
    return [producer.send_soon(queue, Message(body), **fields) for body in bodies]


def test_messages_within_the_linger_go_as_one_send(service: Service, make: Any) -> None:
    producer = make(linger=0.2)

    futures = send(producer, *"abcde")

    assert [future.result(WAIT).id for future in futures] == list("abcde")
    assert service.batches == [list("abcde")]


def test_a_message_alone_is_sent_when_it_has_waited(service: Service, make: Any) -> None:
    begun = time.monotonic()
    (future,) = send(make(linger=0.1), "a")

    future.result(WAIT)

    assert time.monotonic() - begun >= 0.1


def test_a_full_batch_does_not_wait(service: Service, make: Any) -> None:
    futures = send(make(linger=10, sends=1), *map(str, range(40)))

    for future in futures[:32]:
        future.result(5)

    assert [len(batch) for batch in service.batches] == [16, 16]
    assert not futures[32].done()


@pytest.mark.parametrize(
    ("body", "count"), [("x" * 400_000, 2), ("\x01" * 200_000, 2)], ids=["bytes", "json"]
)
def test_a_batch_is_no_larger_than_a_call_takes(
    service: Service, make: Any, body: str, count: int
) -> None:
    with make(linger=0.2) as producer:
        send(producer, *[body] * 5)

    assert max(len(batch) for batch in service.batches) == count
    assert sum(map(len, service.batches)) == 5


def test_a_batch_has_one_queue_and_one_delay(service: Service, make: Any) -> None:
    with make(linger=0.1) as producer:
        for _ in range(3):
            send(producer, "a")
            send(producer, "b", queue="other")
            send(producer, "c", delay_seconds=5)

    assert sorted(service.batches) == [["a"] * 3, ["b"] * 3, ["c"] * 3]


def test_a_group_has_one_batch_in_flight_and_keeps_its_order(service: Service, make: Any) -> None:
    with make(linger=0, sends=8) as producer:
        futures = [
            producer.send_soon("q", Message(f"{number}"), group=str(number % 3))
            for number in range(300)
        ]
        for future in futures:
            future.result(WAIT)

    assert service.overtaken == []
    for group in range(3):
        sent = [
            int(message.body)
            for _, messages in service.calls
            for message in messages
            if message.group == str(group)
        ]
        assert sent == list(range(group, 300, 3))
    assert all(len({m.group for m in messages}) == 1 for _, messages in service.calls)


def test_a_topic_is_published_to_in_batches_of_its_own(service: Service, make: Any) -> None:
    with make(linger=0.1) as producer:
        futures = [producer.publish_soon("q", Message("p")) for _ in range(3)]
        futures += [*send(producer, "s", "s"), producer.publish_soon("q", Message("g"), group="g")]

    assert [type(future.result(0)) for future in futures] == [Published] * 3 + [Sent] * 2 + [
        Published
    ]
    assert sorted(service.batches) == [["g"], ["p"] * 3, ["s"] * 2]


def test_a_group_s_delays_keep_its_order_too(service: Service, make: Any) -> None:
    with make(linger=0.1) as producer:
        for number in range(6):
            send(producer, str(number), group="g", delay_seconds=number // 2)

    assert service.batches == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_replacements_of_a_key_go_alone_and_one_behind_the_other(
    service: Service, make: Any, wait_until: Wait
) -> None:
    """The last one is to wait: none may overtake another one of its key, and other keys do."""
    service.hold()
    with make(linger=0.05, sends=8) as producer:
        futures = [
            producer.send_soon("q", f"{key}{number}", replace=key, delay_seconds=9)
            for number in range(3)
            for key in ("a", "b")
        ]
        wait_until(lambda: len(service.calls) == 2)
        assert sorted(service.batches) == [["a0"], ["b0"]]
        service.release()
        for future in futures:
            future.result(WAIT)

    assert [batch for batch in service.batches if batch[0][0] == "a"] == [["a0"], ["a1"], ["a2"]]
    assert len(service.batches) == 6


def test_sends_are_in_flight_side_by_side(service: Service, make: Any, wait_until: Wait) -> None:
    producer = make(linger=0, sends=3)
    service.hold()

    for number in range(5):
        send(producer, str(number), queue=f"q{number}")

    wait_until(lambda: service.most_in_flight == 3, seconds=5)
    time.sleep(0.05)
    assert service.most_in_flight == 3
    service.release()
    assert producer.flush(WAIT)
    assert len(service.calls) == 5


def test_a_busy_queue_does_not_keep_another_one_waiting(
    service: Service, make: Any, wait_until: Wait
) -> None:
    producer = make(linger=0.01, sends=1)
    service.hold()
    send(producer, *["busy"] * 320)
    send(producer, "quiet", queue="other")
    send(producer, *["busy"] * 320)
    time.sleep(0.05)
    service.release()

    assert producer.flush(WAIT)
    assert [batch[0] for batch in service.batches].index("quiet") <= 21


def test_a_refused_message_fails_its_own_future_alone(service: Service, make: Any) -> None:
    wrong = errors.MessageTooLarge("too large")
    service.refuse = lambda message: wrong if message.body == "b" else None

    a, b, c = send(make(linger=0.1), *"abc")

    assert error_of(b) is wrong
    assert [error_of(a), error_of(c)] == [None, None]
    assert len(service.calls) == 1


def test_of_a_refused_call_only_the_malformed_message_fails(service: Service, make: Any) -> None:
    bodies = [*map(str, range(10)), "malformed", *map(str, range(11, 16))]

    futures = send(make(linger=10), *bodies, group="g")

    assert [future.exception(WAIT) is not None for future in futures] == [
        body == "malformed" for body in bodies
    ]
    stored = [batch for batch in service.batches if "malformed" not in batch]
    assert [body for batch in stored for body in batch] == [b for b in bodies if b != "malformed"]
    assert len(service.calls) <= 9


@pytest.mark.parametrize(
    "failure",
    [
        errors.QueueNotFound("none", status=404),
        refused(errors.InvalidParameter, "queue"),
        errors.NoAnswer("lost"),
        errors.Unavailable("later", status=503),
    ],
    ids=lambda error: error.code,
)
def test_a_failed_call_is_the_error_of_each_and_not_made_again(
    service: Service, make: Any, failure: CirrusMQError
) -> None:
    service.fail = failure

    futures = send(make(linger=0.1), *"abc")

    assert [error_of(future) for future in futures] == [failure] * 3
    assert len(service.calls) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [(lambda *_: [], errors.NoAnswer), (lambda *_: 1 / 0, ZeroDivisionError)],
    ids=["messages are missing", "an error nobody thought of"],
)
def test_an_odd_answer_leaves_no_future_open(
    make: Any,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[..., Any],
    error: type[Exception],
) -> None:
    monkeypatch.setattr(service, "send_each", answer)
    producer = make(linger=0)

    found = [error_of(each) for each in send(producer, *"ab")]
    found += [error_of(each) for each in send(producer, "c")]

    assert [type(each) for each in found] == [error] * 3


def test_a_wrong_argument_is_told_at_once(make: Any) -> None:
    with pytest.raises(TypeError):
        make().send_soon("q", "a", colour="red")


@pytest.mark.parametrize("wrong", [{"linger": -1}, {"linger": 11}, {"sends": 0}, {"sends": 65}])
def test_options_outside_their_range_are_refused(make: Any, wrong: dict[str, Any]) -> None:
    ((name, _),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} must be"):
        make(**wrong)


@pytest.mark.parametrize(
    ("limit", "value", "maximum"), [("WAITING_MESSAGES", 50, 50), ("WAITING_BYTES", 5_000, 50)]
)
def test_a_sender_waits_while_too_much_has_no_answer(
    service: Service,
    make: Any,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: Wait,
    limit: str,
    value: int,
    maximum: int,
) -> None:
    monkeypatch.setattr(lingering, limit, value)
    producer = make(linger=0)
    service.hold()
    accepted: list[Future[Sent]] = []

    def fill() -> None:
        for _ in range(80):
            accepted.extend(send(producer, "x" * 100))

    filling = threading.Thread(target=fill)
    filling.start()
    wait_until(lambda: len(accepted) == maximum, seconds=5)
    time.sleep(0.05)
    assert len(accepted) == maximum
    service.release()
    filling.join(WAIT)
    assert [future.result(WAIT).id for future in accepted] == ["x" * 100] * 80


def test_a_message_above_the_waiting_limit_is_sent_alone(
    service: Service, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "WAITING_BYTES", 10)

    futures = send(make(linger=0), "x" * 100, "y" * 100)

    assert [future.result(WAIT).id[0] for future in futures] == ["x", "y"]


def test_a_sending_callback_does_not_wait_for_itself(
    make_blocking: Any, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "WAITING_MESSAGES", 1)
    producer, more = make_blocking(linger=0, sends=1), []
    (first,) = send(producer, "a")
    first.add_done_callback(lambda _: more.extend(send(producer, "b", "c")))

    first.result(WAIT)
    assert producer.flush(WAIT)
    deadline = time.monotonic() + WAIT
    while len(more) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert [future.result(WAIT).id for future in more] == ["b", "c"]


def test_a_cancelled_message_is_not_sent(service: Service, make: Any) -> None:
    producer = make(linger=10)
    a, b = send(producer, *"ab")

    assert a.cancel()
    assert producer.flush(WAIT)

    assert service.batches == [["b"]]
    assert b.result(WAIT).id == "b"
    with pytest.raises(CancelledError):
        a.result(WAIT)


def test_a_flush_sends_without_lingering(service: Service, make: Any) -> None:
    producer = make(linger=10)
    futures = [*send(producer, *"abc"), *send(producer, "d", queue="other")]

    assert producer.flush(WAIT)

    assert all(future.done() for future in futures)
    assert sorted(service.batches) == [["a", "b", "c"], ["d"]]
    assert producer.flush()


def test_a_flush_tells_its_timeout(service: Service, make: Any) -> None:
    producer = make(linger=0)
    service.hold()
    send(producer, "a")

    assert not producer.flush(0.05)


def test_closing_sends_waiting_messages_and_takes_no_more(service: Service, make: Any) -> None:
    producer = make(linger=10)
    futures = send(producer, *map(str, range(40)))

    producer.close()

    assert [future.result(0).id for future in futures] == [str(n) for n in range(40)]
    with pytest.raises(NotSent):
        producer.send_soon("q", "late")
    producer.close()


def test_messages_unsent_by_a_closed_producer_have_an_error(
    service: Service, make: Any, wait_until: Wait
) -> None:
    producer = make(linger=0, sends=1)
    service.hold()
    (under_way,) = send(producer, "a", group="g")
    wait_until(lambda: service.calls, seconds=5)
    (waiting,) = send(producer, "b", group="g")
    assert producer.send_soon("q", "c").cancel()

    producer.close(grace_seconds=0.1)

    for future, uncertain in ((under_way, True), (waiting, False)):
        error = future.exception(0)
        assert isinstance(error, NotSent)
        assert error.uncertain is uncertain
    service.release()


def test_a_sender_waiting_for_room_is_told_of_the_close(
    service: Service, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "WAITING_MESSAGES", 1)
    producer = make(linger=0)
    service.hold()
    send(producer, "a")
    threading.Timer(0.1, producer.close, (0.1,)).start()

    with pytest.raises(NotSent):
        producer.send_soon("q", "b")


def test_an_asyncio_program_awaits_its_sends(service: Service, make_blocking: Any) -> None:
    producer = make_blocking(linger=0.02)

    async def send_all() -> list[str]:
        sends = [asyncio.wrap_future(producer.send_soon("q", Message(body))) for body in "abc"]
        return [sent.id for sent in await asyncio.gather(*sends)]

    assert asyncio.run(send_all()) == ["a", "b", "c"]
    assert service.batches == [["a", "b", "c"]]


def test_messages_of_a_service_are_stored_once_though_answers_are_lost(
    proxy: Any, lossy_producer: Any, client: Client, queue: str
) -> None:
    for _ in range(5):
        proxy.lose("/messages")

    futures = [lossy_producer.send_soon(queue, str(number)) for number in range(200)]
    lossy_producer.close()
    ids = [future.result(0).id for future in futures]

    assert proxy.lost == 5
    assert len(set(ids)) == 200
    assert sorted(map(int, drain(client, queue))) == list(range(200))
    assert len(proxy.paths) < 40
    assert left(client, queue) == 0


def test_groups_of_an_ordered_queue_keep_their_order_though_answers_are_lost(
    proxy: Any, lossy_producer: Any, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(ordered=True)
    for _ in range(4):
        proxy.lose("/messages")

    futures = [lossy_producer.send_soon(name, str(n), group=str(n % 2)) for n in range(120)]
    lossy_producer.close()
    assert all(future.exception(0) is None for future in futures)

    assert proxy.lost == 4
    got = [int(body) for body in drain(client, name)]
    assert [n for n in got if n % 2] == list(range(1, 120, 2))
    assert [n for n in got if not n % 2] == list(range(0, 120, 2))


def test_a_topic_gets_each_message_once_and_groups_in_order_though_answers_are_lost(
    proxy: Any, lossy_producer: Any, client: Client, topic: str
) -> None:
    client.create_subscription(topic, "all", {"protocol": "pull", "mode": "broadcasting"})
    cursor = client.health()["time"]
    for _ in range(4):
        proxy.lose("/messages")

    futures = [lossy_producer.publish_soon(topic, str(n), group=str(n % 2)) for n in range(120)]
    lossy_producer.close()
    ids = {future.result(0).id for future in futures}

    assert proxy.lost == 4
    assert len(ids) == 120
    got: list[int] = []
    ends = time.monotonic() + WAIT
    while len(got) < 120 and time.monotonic() < ends:
        time.sleep(0.1)  # a message is shown two seconds after its publishing
        page, cursor = client.read_log(Subscription(topic, "all"), cursor, 100)
        got += [int(message.text) for message in page]
    assert [n for n in got if n % 2] == list(range(1, 120, 2))
    assert [n for n in got if not n % 2] == list(range(0, 120, 2))


def test_a_message_refused_by_a_topic_fails_alone(lossy_producer: Any, topic: str) -> None:
    tags = {"c": ["t"] * 11}

    futures = [
        lossy_producer.publish_soon(topic, body, group="g", tags=tags.get(body, ()))
        for body in "abcd"
    ]
    lossy_producer.close()

    assert [future.exception(0) is None for future in futures] == [True, True, False, True]
    assert isinstance(futures[2].exception(0), errors.InvalidParameter)


def test_the_last_one_under_a_key_waits_in_the_queue(client: Client, queue: str) -> None:
    with Producer(client, linger=0.1) as producer:
        futures = [
            producer.send_soon(queue, f"{number}", replace="profile", replace_within_seconds=60)
            for number in range(5)
        ]
        other = producer.send_soon(queue, "other", replace="orders")

    assert [future.result(0).replaced is not None for future in futures] == [False] + [True] * 4
    assert other.result(0).replaced is None
    assert bodies(client, queue) == ["4", "other"]


def test_messages_refused_by_the_service_fail_alone(client: Client, new_queue: NewQueue) -> None:
    name = new_queue(max_message_bytes=1_024)
    wrong = {1: "x" * 2_000, 3: "y"}
    with Producer(client) as producer:
        futures = [
            producer.send_soon(
                name, wrong.get(number, str(number)), delay_seconds=-1 if number == 3 else None
            )
            for number in range(8)
        ]
        tagged = producer.send_soon(name, "8", tags=["t"] * 11)

    found = [future.exception(0) for future in futures]
    assert [type(error) for error in found if error] == [
        errors.MessageTooLarge,
        errors.InvalidParameter,
    ]
    assert isinstance(tagged.exception(0), errors.InvalidParameter)
    assert bodies(client, name) == ["0", "2", "4", "5", "6", "7"]


def test_an_ending_loop_leaves_no_future_open(service: Any) -> None:
    """As `asyncio.run` ends: every task is cancelled."""
    service.hold()
    futures: list[asyncio.Future[Sent]] = []

    async def forget() -> None:
        producer = AsyncProducer(Never(), linger=0, sends=1)  # type: ignore[arg-type]
        futures.append(await producer.send_soon("q", "under way"))
        await asyncio.sleep(0.05)
        futures.append(await producer.send_soon("q", "waits"))

    asyncio.run(forget())

    found = [future.exception() for future in futures]
    assert [type(error) for error in found] == [NotSent] * 2
    assert [error.uncertain for error in found if isinstance(error, NotSent)] == [True, False]


class Never:
    """A service that never answers."""

    async def send_each(self, *_: object) -> Any:
        await asyncio.Event().wait()


def test_a_cancelled_close_leaves_no_future_open() -> None:
    async def close() -> list[BaseException | None]:
        producer = AsyncProducer(Never(), linger=10, sends=1)  # type: ignore[arg-type]
        futures = [await producer.send_soon("q", "a", group="g") for _ in range(20)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.close(), 0.05)
        await asyncio.sleep(0.05)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
        return [future.exception() for future in futures]

    assert [type(error) for error in asyncio.run(close())] == [NotSent] * 20


def test_a_send_cancelled_before_it_has_room_sends_nothing(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "WAITING_MESSAGES", 1)
    service.hold()

    async def fill() -> None:
        client: Any = AsyncService(service)
        async with AsyncProducer(client, linger=0) as producer:
            await producer.send_soon("q", "a")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.send_soon("q", "b"), 0.05)
            service.release()
            await (await producer.send_soon("q", "c"))

    asyncio.run(fill())
    assert [body for batch in service.batches for body in batch] == ["a", "c"]


SENDING = """
import sys, time
from cirrusmq_client import Producer
producer = Producer(linger=10)
with producer.closed_on_signals():
    futures = [producer.send_soon(sys.argv[1], str(number)) for number in range(10)]
    if sys.argv[2] == "end":
        sys.exit(0)
    print("sent", flush=True)
    time.sleep(60)
"""


SENDING_ASYNC = """
import asyncio, sys
from cirrusmq_client import AsyncClient, AsyncProducer
async def main():
    async with AsyncClient() as client, AsyncProducer(client, linger=10) as producer:
        async with producer.closed_on_signals():
            futures = [await producer.send_soon(sys.argv[1], str(n)) for n in range(10)]
            if sys.argv[2] == "end":
                sys.exit(0)
            print("sent", flush=True)
            await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("script", [SENDING, SENDING_ASYNC], ids=["blocking", "asyncio"])
@pytest.mark.parametrize("end", ["signal", "end"])
def test_an_ended_process_sends_its_waiting_messages(
    start_process: StartProcess, client: Client, queue: str, end: str, script: str
) -> None:
    running = start_process(sys.executable, "-c", script, queue, end)
    if end == "signal":
        assert running.stdout.readline() == "sent\n"
        running.send_signal(signal.SIGTERM)
    ended = running.wait(WAIT)

    assert ended == (-signal.SIGTERM if end == "signal" else 0)
    assert bodies(client, queue) == [str(number) for number in range(10)]


class TestProducersOfOneClient:
    def test_no_call_has_more_than_its_messages(self, service: Service, make: Any) -> None:
        first, second = make(linger=0.3), make(linger=0.3)

        futures = [*send(first, *"abcdefghij"), *send(second, *"klmnopqrst")]

        assert [future.result(WAIT).id for future in futures] == list("abcdefghijklmnopqrst")
        assert [len(batch) for batch in service.batches] == [16, 4]

    def test_groups_and_publishes_stay_with_their_producer(
        self, service: Service, make: Any
    ) -> None:
        first, second = make(linger=0.2), make(linger=0.2)

        futures = [send(each, "a", group="g")[0] for each in (first, second)]
        published = [each.publish_soon("t", "b") for each in (first, second)]

        for future in (*futures, *published):
            future.result(WAIT)
        assert sorted(map(len, service.batches)) == [1, 1, 1, 1]

    def test_a_refused_message_fails_its_own_future_alone(
        self, service: Service, make: Any
    ) -> None:
        first, second = make(linger=0.2), make(linger=0.2)

        (good,), (bad,) = send(first, "good"), send(second, "malformed")

        assert good.result(WAIT).id == "good"
        assert isinstance(error_of(bad), errors.InvalidParameter)

    def test_a_closing_producer_waits_for_the_send_of_another(
        self, service: Service, make: Any, wait_until: Wait
    ) -> None:
        first, second = make(linger=0.2), make(linger=10.0)
        service.hold()
        (mine,), (theirs,) = send(first, "a"), send(second, "b")
        wait_until(lambda: service.batches)

        closing = threading.Thread(target=second.close)
        closing.start()
        service.release()
        closing.join(WAIT)

        assert (mine.result(WAIT).id, theirs.result(WAIT).id) == ("a", "b")
        assert len(service.batches) == 1

    def test_a_message_sent_along_is_answered_after_its_senders_close(
        self, service: Service, make: Any, wait_until: Wait
    ) -> None:
        first, second = make(linger=0.2), make(linger=10.0)
        service.hold()
        send(first, "a")
        (theirs,) = send(second, "b")
        wait_until(lambda: service.batches)

        first.close(0.01)
        service.release()

        error = error_of(theirs)
        assert error is None or (isinstance(error, NotSent) and error.uncertain)

    def test_other_clients_send_by_themselves(self, service: Service, make_blocking: Any) -> None:
        another = Service()
        with Producer(another, linger=0.2) as other:  # type: ignore[arg-type]
            futures = [*send(make_blocking(linger=0.2), "a"), *send(other, "b")]
            assert [future.result(WAIT).id for future in futures] == ["a", "b"]
        assert (service.batches, another.batches) == ([["a"]], [["b"]])
