"""Consumers over HTTP: sharing, results, order, leases, and their end."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import NewQueue, StartProcess, Wait
from tests.client.taking import consuming, left

from cirrusmq_client import (
    Ack,
    Backoff,
    Batches,
    Client,
    Consumer,
    DeadLetter,
    Message,
    Producer,
    Queue,
    Received,
    Retry,
)


@pytest.mark.usefixtures("both_consumers")
def test_members_share_and_each_message_is_handled_once(
    client: Client, producer: Producer, queue: str, wait_until: Wait
) -> None:
    handled: list[tuple[int, str]] = []

    def member(number: int) -> Consumer:
        return Consumer(
            queue,
            lambda message: handled.append((number, message.text)),
            client=client,
            wait_seconds=1,
        )

    with consuming(*(member(number) for number in range(3))):
        producer.send_batch(queue, map(str, range(900)))
        wait_until(lambda: len(handled) >= 900, seconds=40)
    assert sorted(int(text) for _, text in handled) == list(range(900))
    assert len(Counter(number for number, _ in handled)) == 3
    assert left(client, queue) == 0


@pytest.mark.usefixtures("both_consumers")
def test_a_message_is_settled_by_its_result(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait
) -> None:
    dead = new_queue()
    name = new_queue(dead_letter={"queue": dead, "max_receives": 9})
    seen: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)

    def handle(message: Received) -> Any:
        seen[message.text].append((message.redeliveries, time.monotonic()))
        if message.text == "hopeless":
            return DeadLetter("cannot be read")
        if message.redeliveries:
            return Ack()
        if message.text == "crash":
            raise RuntimeError("a bug")
        return {"later": Retry(after=1), "soon": Retry()}.get(message.text)

    with Consumer(name, handle, client=client, wait_seconds=1):
        producer.send_batch(name, ["fine", "hopeless", "crash", "later", "soon"])
        wait_until(lambda: all(len(seen[text]) == 2 for text in ("crash", "later", "soon")))
        wait_until(lambda: left(client, name) == 0)
    assert [len(seen[text]) for text in ("fine", "hopeless")] == [1, 1]
    assert [count for count, _ in seen["crash"]] == [0, 1]
    assert seen["later"][1][1] - seen["later"][0][1] > 0.9
    letter = client.receive(dead, wait_seconds=5)[0]
    assert letter.text == "hopeless"
    assert letter.dead_letter is not None
    assert letter.dead_letter["reason"] == "cannot be read"


@pytest.mark.usefixtures("either_consumer")
def test_none_means_retry_only_when_told_so(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait
) -> None:
    name = new_queue(retry={"policy": "ordered", "interval_seconds": 0.05}, ordered=True)
    counts: list[int] = []

    def handle(message: Received) -> Ack | None:
        counts.append(message.receive_count)
        return Ack() if message.receive_count == 3 else None

    with Consumer(name, handle, client=client, none_means_retry=True, wait_seconds=1):
        producer.send(name, "a", group="g")
        wait_until(lambda: counts == [1, 2, 3])


@pytest.mark.usefixtures("either_consumer")
def test_a_receiver_of_a_queue_is_consumed_beside_the_queue(
    client: Client, producer: Producer, queue: str, wait_until: Wait
) -> None:
    client.create_receiver(queue, "audit", {"start": "latest"})
    seen: list[str] = []
    source = Queue(queue, receiver="audit")
    with Consumer(source, lambda message: seen.append(message.text), client=client, wait_seconds=1):
        producer.send_batch(queue, ["a", "b"])
        wait_until(lambda: sorted(seen) == ["a", "b"])
    assert client.show_queue(queue)["counts"]["active"] == 2


@pytest.mark.usefixtures("either_consumer")
@pytest.mark.alone
def test_an_unfilled_batch_is_handled_after_its_wait(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait
) -> None:
    name = new_queue(visibility_timeout_seconds=2)
    handled: list[tuple[int, float]] = []

    def handle(messages: list[Received]) -> None:
        handled.append((len(messages), time.monotonic()))

    batches = Batches(max_batch=1_024, max_await=3)
    with Consumer(name, handle, client=client, batches=batches, workers=1, wait_seconds=1):
        began = time.monotonic()
        producer.send_batch(name, map(str, range(39)))
        wait_until(lambda: handled)
    # Gathering took longer than the lease, and no message was received twice.
    ((size, at),) = handled
    assert size == 39
    assert 2.9 < at - began < 6
    assert client.show_queue(name)["counts"]["active"] == 0


@pytest.mark.parametrize(
    "wrong",
    [{"max_batch": 0}, {"max_batch": 1_025}, {"max_await": -1}, {"max_await": 450.1}],
)
def test_batches_outside_the_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Batches(**wrong)


def test_batches_have_up_to_32_messages_and_no_wait_unless_they_say() -> None:
    assert Batches() == Batches(max_batch=32, max_await=0)
    for edge in ({"max_batch": 1}, {"max_batch": 1_024}, {"max_await": 450}):
        assert vars(Batches(**edge)).items() >= edge.items()


@pytest.mark.usefixtures("either_consumer")
def test_a_batch_has_one_result_or_one_for_each_message(
    client: Client, producer: Producer, queue: str, wait_until: Wait
) -> None:
    seen: Counter[str] = Counter()

    def handle(messages: list[Received]) -> Any:
        seen.update(message.text for message in messages)
        if any(message.text == "whole" for message in messages):
            return [Retry()] if messages[0].receive_count == 1 else Ack()
        return [
            Retry() if message.text == "b" and message.receive_count == 1 else Ack()
            for message in messages
        ]

    batches = Batches(max_batch=3, max_await=0.5)
    with Consumer(queue, handle, client=client, batches=batches, wait_seconds=1):
        client.send(queue, [Message("a"), Message("b"), Message("c")])
        wait_until(lambda: seen["b"] == 2)
        client.send(queue, [Message("whole"), Message("of it")])
        # One result for two messages is a mistake: both are delivered again.
        wait_until(lambda: (seen["whole"], seen["of it"]) == (2, 2))
    assert (seen["a"], seen["c"]) == (1, 1)


@pytest.mark.few(2)
@pytest.mark.usefixtures("both_consumers")
@pytest.mark.parametrize("batches", [None, Batches(max_batch=8)], ids=["single", "batches"])
def test_groups_keep_their_order_whatever_fails(
    client: Client,
    producer: Producer,
    new_queue: NewQueue,
    wait_until: Wait,
    batches: Batches | None,
) -> None:
    retry = {"policy": "ordered", "interval_seconds": 0.05}
    dead = new_queue(ordered=True)
    name = new_queue(ordered=True, retry=retry, dead_letter={"queue": dead, "max_receives": 1000})
    groups, each = 8, 8
    starts: defaultdict[str, list[int]] = defaultdict(list)
    running: Counter[str] = Counter()
    overlaps: list[str] = []
    done: defaultdict[str, list[int]] = defaultdict(list)
    lock = threading.Lock()
    chance = random.Random(7)

    def handle_one(message: Received) -> Any:
        group = message.group or ""
        number = int(message.text)
        with lock:
            starts[group].append(number)
            running[group] += 1
            if running[group] > 1:
                overlaps.append(group)
            fails, crashes = chance.random() < 0.15, chance.random() < 0.5
        time.sleep(0.001)
        with lock:
            running[group] -= 1
            if not fails:
                done[group].append(number)
                return Ack()
        if crashes:
            raise RuntimeError("a failure on purpose")
        return Retry()

    def handle(message: Any) -> Any:
        if isinstance(message, Received):
            return handle_one(message)
        return [_result(handle_one, one) for one in message]

    messages = [
        Message(str(number), group=f"g{group}") for number in range(each) for group in range(groups)
    ]
    producer.send_batch(name, messages)
    members = [
        Consumer(name, handle, client=client, batches=batches, wait_seconds=1) for _ in range(4)
    ]
    with consuming(*members):
        wait_until(lambda: sum(map(len, done.values())) >= groups * each, seconds=60)
    assert overlaps == []
    assert sum(map(len, starts.values())) > groups * each, "nothing failed"
    assert dict(done) == {f"g{group}": list(range(each)) for group in range(groups)}
    for numbers in starts.values():
        assert numbers == sorted(numbers)


def _result(handle: Callable[[Received], Any], message: Received) -> Any:
    try:
        return handle(message)
    except RuntimeError:
        return Retry()


@pytest.mark.usefixtures("both_consumers")
@pytest.mark.alone
def test_a_lease_is_extended_as_long_as_the_handler_runs(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait
) -> None:
    name = new_queue(visibility_timeout_seconds=1)
    started, ended = [], []

    def handle(message: Received) -> None:
        started.append(message.receive_count)
        time.sleep(2.5)
        ended.append(message.receive_count)

    with Consumer(name, handle, client=client, workers=1, wait_seconds=1):
        producer.send_batch(name, ["a", "b"])
        # The second waits behind the first, for longer than its lease too.
        wait_until(lambda: len(ended) == 2)
    assert started == ended == [1, 1]
    assert left(client, name) == 0


@pytest.mark.usefixtures("either_consumer")
def test_an_outage_does_not_end_a_consumer(
    new_client: Callable[..., Client],
    unused_port: int,
    wait_until: Wait,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nowhere = new_client(url=f"http://127.0.0.1:{unused_port}", backoff=Backoff(tries=1))
    consumer = Consumer("orders", print, client=nowhere, wait_seconds=0)
    consumer.start()
    wait_until(lambda: "nothing answers" in caplog.text and "1.0 s" in caplog.text)
    consumer.stop()
    consumer.join()


@pytest.mark.alone
def test_on_sigterm_running_handlers_end_and_unstarted_messages_are_given_back(
    start_process: StartProcess,
    client: Client,
    producer: Producer,
    new_queue: NewQueue,
    wait_until: Wait,
) -> None:
    name = new_queue(visibility_timeout_seconds=600)
    producer.send_batch(name, map(str, range(20)))
    script = Path(__file__).with_name("slow_consumer.py")
    process = start_process(sys.executable, script, name)
    first = {process.stdout.readline().split()[1] for _ in range(2)}
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    wait_until(lambda: client.show_queue(name)["counts"]["active"] == 18, seconds=10)
    # Given back while the handlers were still running, long before any lease ended.
    assert process.poll() is None
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - began < 10
    assert sorted(output.splitlines()) == sorted(f"ended {text}" for text in first)
    counts = client.show_queue(name)["counts"]
    assert (counts["active"], counts["inactive"]) == (18, 0)


@pytest.mark.usefixtures("either_consumer")
@pytest.mark.alone
def test_an_idle_consumer_ends_cleanly(client: Client, new_queue: NewQueue) -> None:
    began = time.monotonic()
    with Consumer(new_queue(), print, client=client, wait_seconds=0.5):
        time.sleep(0.2)
    assert time.monotonic() - began < 5
    assert not [each.name for each in threading.enumerate() if each.name.startswith("cirrusmq-")]
