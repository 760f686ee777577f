"""What a consumer fetched and did not begin: it is given back, and no receive counts against it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Wait
from tests.client.taking import unused
from tests.stack import environment

from cirrusmq_client import (
    Batches,
    Client,
    Consumer,
    Message,
    Queue,
    Received,
    Subscription,
)
from cirrusmq_client.errors import InvalidParameter, Unavailable
from cirrusmq_client.inputs import RetryInput
from cirrusmq_client.message_calls import MessageCalls
from cirrusmq_client.sources import Source

PROGRAM = Path(__file__).with_name("dying_consumer.py")
STOPPED = Path(__file__).with_name("stopped_consumer.py")
KINDS = ["plain", "ordered", "fair", "receiver", "group", "ordered group"]


RunUntil = Callable[..., int]


class Place:
    """A source that gives up after one receive, or so many, and its dead letters."""

    def __init__(self, client: Client, kind: str, receives: int = 1) -> None:
        self.client, self.kind = client, kind
        self.dead, self.name = unused("dead"), unused("orders")
        client.create_queue(self.dead)
        flags = {"fair": kind == "fair", "ordered": kind == "ordered"}
        letters = {"dead_letter": {"queue": self.dead, "max_receives": receives}}
        self.source: Source
        if kind.endswith("group"):
            ordered = kind == "ordered group"
            retry: RetryInput = {"policy": "custom", "waits": [0.05] * max(1, receives - 1)}
            if ordered:
                retry = {"policy": "ordered", "interval_seconds": 0.05}
                retry["max_retries"] = receives - 1
            client.create_topic(self.name)
            client.create_subscription(
                self.name,
                "group",
                {
                    "protocol": "pull",
                    "ordered": ordered,
                    "retry": retry,
                    "dead_letter_queue": self.dead,
                },
            )
            self.source = Subscription(self.name, "group")
        else:
            attributes: Any = {"partitions": 1, **flags, **letters}
            client.create_queue(self.name, attributes)
            if kind == "receiver":
                client.create_receiver(self.name, "audit", {})
            self.source = Queue(self.name, receiver="audit" if kind == "receiver" else None)

    def send(self, bodies: list[str], *, apart: bool = False) -> None:
        """Send messages in one call, of one group or each of its own."""
        messages = [Message(body, group=body if apart else "g") for body in bodies]
        if self.kind.endswith("group"):
            self.client.publish(self.name, messages)
        else:
            self.client.send(self.name, messages)

    def received(self, wanted: int) -> dict[str, int]:
        """Receive so many messages; their receive counts."""
        found: dict[str, int] = {}
        while len(found) < wanted:
            for message in self.client.receive(self.source, 16, wait_seconds=5):
                found[message.text] = message.receive_count
        return found

    def dead_letters(self) -> list[str]:
        return [message.text for message in self.client.peek_all(self.dead)]


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """What programs print, one behind the other."""
    return tmp_path / "begun"


@pytest.fixture
def run_until(stack: Any, printed: Path, wait_until: Wait) -> RunUntil:
    """Run a program until it ends or something is so, and end it; its return code."""

    def run(*command: object, over: Callable[[], bool]) -> int:
        chosen = environment() | stack.environment
        with (
            printed.open("a") as output,
            subprocess.Popen(
                [sys.executable, *map(str, command)], env=chosen, stdout=output
            ) as process,
        ):
            try:
                wait_until(lambda: process.poll() is not None or over())
            finally:
                process.terminate()
        return process.returncode

    return run


@pytest.mark.few(4)
@pytest.mark.usefixtures("either_consumer")
@pytest.mark.parametrize("batches", [None, Batches(max_batch=2)], ids=["single", "batches"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_consumer_counts_only_begun_messages(
    client: Client, wait_until: Wait, kind: str, batches: Batches | None
) -> None:
    place = Place(client, kind)
    bodies = [str(number) for number in range(9)]
    place.send(bodies)
    begun: list[str] = []
    for start in range(1, 4):
        consumers: list[Consumer] = []

        def handle(
            given: Received | list[Received], start: int = start, own: list[Consumer] = consumers
        ) -> None:
            messages = given if isinstance(given, list) else [given]
            begun.extend(message.text for message in messages)
            if len(begun) >= start:
                own[0].stop()

        made: Any = Consumer
        consumers.append(
            made(place.source, handle, client=client, batches=batches, workers=1, wait_seconds=1)
        )
        with consumers[0] as consumer:
            wait_until(lambda start=start: len(begun) >= start)
            consumer.stop()

    left = [body for body in bodies if body not in begun]
    assert place.received(len(left)) == dict.fromkeys(left, 1)
    assert place.dead_letters() == []
    assert sorted(set(begun)) == sorted(begun)


@pytest.mark.usefixtures("either_consumer")
@pytest.mark.parametrize("kind", ["ordered", "ordered group"])
def test_behind_a_poison_message_the_group_stays_healthy(
    client: Client, wait_until: Wait, kind: str
) -> None:
    place = Place(client, kind, receives=3)
    healthy = [f"healthy {number}" for number in range(4)]
    place.send(["poison", *healthy])
    handled: list[str] = []
    counts: list[int] = []

    def handle(message: Received) -> None:
        if message.text == "poison":
            counts.append(message.receive_count)
            raise RuntimeError("it cannot be read")
        handled.append(message.text)
        counts.append(message.receive_count)

    with Consumer(place.source, handle, client=client, wait_seconds=1):
        wait_until(lambda: handled == healthy)
        wait_until(lambda: place.dead_letters() == ["poison"])
    assert counts == [1, 2, 3, 1, 1, 1, 1]


# Of one group a handler has one message at a time, however many workers there are.
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("ordered", "workers", "batch"), [(False, 4, 0), (False, 1, 16), (True, 1, 0), (True, 1, 16)]
)
def test_a_poison_message_takes_no_unstarted_one_along(
    client: Client, printed: Path, run_until: RunUntil, ordered: bool, workers: int, batch: int
) -> None:
    place = Place(client, "ordered" if ordered else "plain", receives=3)
    client.change_queue(place.name, {"visibility_timeout_seconds": 1})
    healthy = {f"healthy {number}" for number in range(8)}
    # Of a group a batch has one message: each has a group of its own.
    place.send(["poison", *sorted(healthy)], apart=bool(batch))

    def begun() -> set[str]:
        return set(printed.read_text().splitlines())

    def over() -> bool:
        return healthy <= begun() and "poison" in place.dead_letters()

    for _ in range(8):
        code = run_until(PROGRAM, place.name, workers, batch, over=over)
        if code != 9:
            break
        # Its leases run out: they are of a second, and none is extended any more.
        client.receive(place.dead, wait_seconds=1.1)

    assert code == 0
    assert healthy <= begun()
    assert set(place.dead_letters()) <= begun()


@pytest.mark.parametrize("kind", ["plain", pytest.param("ordered", marks=pytest.mark.long)])
def test_with_one_receive_a_poison_message_dies_alone(
    client: Client, printed: Path, run_until: RunUntil, wait_until: Wait, kind: str
) -> None:
    """With `max_receives` 1 nothing is prefetched: it would be a dead letter nobody began."""
    place = Place(client, kind, receives=1)
    client.change_queue(place.name, {"visibility_timeout_seconds": 1})
    healthy = [f"healthy {number}" for number in range(6)]
    place.send([*healthy[:2], "poison", *healthy[2:]])

    def over() -> bool:
        return set(healthy) <= set(printed.read_text().splitlines())

    for code in (9, 0):
        assert run_until(PROGRAM, place.name, 1, 0, over=over) == code
        if code:  # its lease of a second runs out
            client.receive(place.dead, wait_seconds=1.1)

    assert sorted(printed.read_text().splitlines()) == sorted(["poison", *healthy])
    assert client.receive(place.source) == []
    wait_until(lambda: place.dead_letters() == ["poison"])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "batch"),
    [
        ("plain", 0),
        ("plain", 2),
        pytest.param("ordered", 0, marks=pytest.mark.long),
        pytest.param("fair", 0, marks=pytest.mark.long),
        pytest.param("receiver", 2, marks=pytest.mark.long),
    ],
)
def test_a_process_terminated_four_times_counts_only_begun_messages(
    client: Client, printed: Path, run_until: RunUntil, kind: str, batch: int
) -> None:
    """By SIGTERM, beside a slow handler, with as much prefetched as a receive has."""
    place = Place(client, kind)
    for first in (0, 8):
        place.send([str(number) for number in range(first, first + 8)])
    receiver = "audit" if kind == "receiver" else "-"

    def begun() -> list[str]:
        return printed.read_text().splitlines() if printed.exists() else []

    for _ in range(4):
        more = len(begun()) + 1
        over = partial(lambda count: len(begun()) >= count, more)
        assert run_until(STOPPED, place.name, receiver, batch, over=over) == 0

    bodies = [line.split()[0] for line in begun()]
    assert {line.split()[1] for line in begun()} == {"1"}
    assert len(set(bodies)) == len(bodies) >= 4
    left = {str(number) for number in range(16)} - set(bodies)
    assert len(left) >= 4
    assert place.received(len(left)) == dict.fromkeys(left, 1)
    assert place.dead_letters() == []


def test_an_older_service_counts_unbegun_messages_and_hands_them_out_at_once(
    client: Client, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows no `tried`, and answers 400 to it."""
    place = Place(client, "plain", receives=9)
    place.send([str(number) for number in range(6)])
    settle, asked = MessageCalls._settle, list[Any]()

    def older(self: Any, source: Any, action: str, body: dict[str, Any], done: str) -> Any:
        asked.append((action, body.get("tried"), body.get("delay_seconds")))
        if "tried" in body:
            raise InvalidParameter("tried: is no field of this call", parameter="tried")
        return settle(self, source, action, body, done)

    monkeypatch.setattr(MessageCalls, "_settle", older)
    begun: list[str] = []
    consumers: list[Consumer] = []

    def handle(message: Received) -> None:
        begun.append(message.text)
        consumers[0].stop()
        wait_until(lambda: ("give-back", None, 0) in asked)

    consumers.append(
        Consumer(place.source, handle, client=client, workers=1, prefetch=16, wait_seconds=1)
    )
    with consumers[0]:
        wait_until(lambda: begun)

    left = {str(number) for number in range(6)} - set(begun)
    assert place.received(len(left)) == dict.fromkeys(left, 2)
    assert ("give-back", False, 0) in asked


@pytest.mark.parametrize("parameter", ["receipts", None])
def test_another_refusal_of_a_give_back_is_raised(
    client: Client, monkeypatch: pytest.MonkeyPatch, parameter: str | None
) -> None:
    def refuse(self: Any, *given: Any) -> Any:
        raise InvalidParameter("no", parameter=parameter)

    monkeypatch.setattr(MessageCalls, "_settle", refuse)
    with pytest.raises(InvalidParameter):
        client.give_back("orders", ["r"], tried=False)


def test_a_lease_expired_before_its_handler_does_not_count(
    client: Client, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing extends leases here, and one handler takes longer than the lease of the next one."""
    place = Place(client, "plain", receives=5)
    client.change_queue(place.name, {"visibility_timeout_seconds": 1})
    place.send(["slow", "behind"])
    seen: list[tuple[str, int]] = []

    def refuse(source: Source, seconds: dict[str, int]) -> None:
        raise Unavailable

    def handle(message: Received) -> None:
        seen.append((message.text, message.receive_count))
        if message.text == "slow":
            wait_until(lambda: client.peek(place.source, 16))

    monkeypatch.setattr(client, "change_visibility", refuse)
    with Consumer(place.source, handle, client=client, workers=1, prefetch=1, wait_seconds=1):
        wait_until(lambda: "behind" in dict(seen))
    assert dict(seen)["behind"] == 1
