"""Wake-ups: a send ends a long poll soon, however many partitions there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from random import Random
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.faults import Throttled, Wanted

from cirrusmq.access.key_cache import KeyCache
from cirrusmq.base import ulid
from cirrusmq.base.limits import CACHE_MS
from cirrusmq.receiving.polling import ROUND_SECONDS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.core import Core
from cirrusmq_local.testing import Client, World

POLL_SECONDS = 20
MAX_POLLS = 5
TRIALS = 16


class SkewedClock:
    """The world's clock as another machine shows it."""

    scale = 1.0

    def __init__(self, world: World, skew_ms: int) -> None:
        self._clock, self._skew_ms = world.clock, skew_ms
        self.sleep = world.clock.pass_seconds

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._skew_ms


class Apart:
    """A queue whose sender has an environment of its own, with its own caches and clock."""

    def __init__(self, partitions: int, skew_ms: int = 0, **attributes: Any) -> None:
        self.world = World(seed=partitions, shared_caches=False)
        self.alice: Client = self.world.client("alice", admin=True)
        self.alice.put("/queues/orders", {"partitions": partitions, **attributes})
        self.receiver = self.world.core
        self.sender = self.environment(skew_ms)

    def environment(self, skew_ms: int = 0) -> Core:
        clock = SkewedClock(self.world, skew_ms)
        cache = Cache(clock, CACHE_MS, shared=False)
        known = {KeyCache: self.world.core.memory(KeyCache)}  # whose key was used today
        parts = {"clock": clock, "cache": cache, "memories": known}
        return replace(self.world.core, **parts)

    def send(self, sender: Core | None = None, **fields: Any) -> None:
        """From the sender's environment, also while the receiver waits."""
        message = {"body": "x", **{k: v for k, v in fields.items() if k != "attempt"}}
        request = {"messages": [message]}
        if "attempt" in fields:
            request["attempt"] = fields["attempt"]
        self.world.core = self.sender if sender is None else sender
        try:
            reply = self.alice.post("/queues/orders/messages", request)
        finally:
            self.world.core = self.receiver
        assert reply.status == 201, reply.text

    def attempt(self) -> str:
        return ulid.encode(self.world.clock.now_ms(), self.world.random.randbytes(10))

    def poll(self, **fields: Any) -> list[dict[str, Any]]:
        return self.alice.receive("orders", wait_seconds=POLL_SECONDS, **fields)

    def poll_until(self, seconds: float, act: Callable[[], None]) -> float:
        """Poll again and again, and act after so long; seconds from then to the message."""
        due_ms = self.world.clock.now_ms() + round(1000 * seconds)
        with self._acting(due_ms, act):
            received = next(filter(None, (self.poll() for _ in range(MAX_POLLS))))
        receipts = [message["receipt"] for message in received]
        self.alice.post("/queues/orders/messages/delete", {"receipts": receipts})
        return (self.world.clock.now_ms() - due_ms) / 1000

    def poll_and_send(self, **fields: Any) -> list[dict[str, Any]]:
        """One poll, during which a message is sent."""
        with self._acting(self.world.clock.now_ms() + 3_000, self.send):
            return self.poll(**fields)

    @contextmanager
    def _acting(self, due_ms: int, act: Callable[[], None]) -> Iterator[None]:
        clock, sleep = self.world.clock, self.world.clock.sleep
        acted = False

        def sleep_and_act(seconds: float) -> None:
            nonlocal acted
            left_seconds = (due_ms - clock.now_ms()) / 1000
            if not acted and left_seconds <= seconds:
                acted = True
                clock.pass_seconds(left_seconds)
                act()
                seconds -= left_seconds
            if seconds > 0:
                sleep(seconds)

        clock.sleep = sleep_and_act  # type: ignore[method-assign]
        try:
            yield
        finally:
            clock.sleep = sleep  # type: ignore[method-assign]

    def wake_ups(self) -> list[str]:
        """The sort keys of all that were written."""
        found = [item["sk"]["S"] for item in self.world.items() if item["pk"]["S"][:2] == "W#"]
        return sorted(key for key in found if key != "~")

    def write_units(self, act: Callable[[], object]) -> float:
        return self.world.write_units(act)


def read_units(world: World) -> float:
    return float(world.engine.capacity()["read_units"])


def ages(seed: int) -> list[float]:
    """Random ages of waits, whose moments are spread evenly between two looks at wake-ups."""
    draw = Random(seed)
    return [ROUND_SECONDS * (draw.randrange(3, 55) + number / TRIALS) for number in range(TRIALS)]


TRIED = [(16, 0), (64, 2_000), (255, -2_000)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("partitions", "skew_ms"),
    [
        pytest.param(*each, marks=() if each in TRIED else pytest.mark.long)
        for each in product([16, 64, 255], [-2_000, 0, 2_000])
    ],
)
def test_a_message_ends_a_wait_within_200_ms_in_the_median(partitions: int, skew_ms: int) -> None:
    """From when it can be received: by a sender's clock that is ahead, that is later."""
    apart, late = Apart(partitions, skew_ms), []
    for number, seconds in enumerate(ages(partitions)):
        fields: dict[str, Any] = {"attempt": apart.attempt()} if number % 2 else {}
        late.append(apart.poll_until(seconds, partial(apart.send, **fields)))
    ahead = max(0, skew_ms) / 1000
    assert median(late) - ahead <= 0.2
    assert max(late) - ahead <= 0.4


@pytest.mark.few(1)
@pytest.mark.parametrize("partitions", [16, 64])
def test_so_does_one_of_an_ordered_queue(partitions: int) -> None:
    apart = Apart(partitions, ordered=True)
    late = [
        apart.poll_until(seconds, partial(apart.send, group=str(number)))
        for number, seconds in enumerate(ages(partitions))
    ]
    assert median(late) <= 0.2
    assert max(late) <= 0.4


def test_so_does_one_sent_by_a_topic_to_the_queue() -> None:
    apart = Apart(64)
    apart.alice.put("/topics/news", {})
    apart.alice.put("/topics/news/subscriptions/into", {"protocol": "queue", "endpoint": "orders"})

    def publish() -> None:
        reply = apart.alice.post("/topics/news/messages", {"messages": [{"body": "x"}]})
        assert reply.json["messages"][0]["matched"] == 1
        apart.world.run_stream("fan_out")

    assert apart.poll_until(7, publish) <= 0.4
    assert len(apart.wake_ups()) == 1


def test_a_delayed_message_wakes_when_its_time_has_come() -> None:
    apart = Apart(64)
    assert 5 <= apart.poll_until(3, lambda: apart.send(delay_seconds=5)) <= 5.4


class TestUnits:
    def test_a_send_costs_one_write_more_while_a_receiver_waits(self) -> None:
        apart = Apart(64)
        assert apart.write_units(apart.send) == 1
        assert len(apart.poll()) == 1
        costs: list[float] = []
        apart.poll_until(5, lambda: costs.append(apart.write_units(apart.send)))
        assert costs == [2]

    def test_nobody_is_woken_without_a_waiter(self) -> None:
        apart = Apart(64)
        for _ in range(5):
            apart.send()
            assert len(apart.alice.receive("orders", wait_seconds=1)) == 1
        assert apart.wake_ups() == []

    def test_up_to_four_partitions_have_none(self) -> None:
        apart = Apart(4)
        apart.poll_until(5, apart.send)
        assert [item for item in apart.world.items() if item["pk"]["S"][:2] == "W#"] == []

    def test_waiting_receivers_are_asked_for_once_a_second(self) -> None:
        apart = Apart(64)
        asked = calls(apart.world, of_wake_ups("GetItem"))
        for _ in range(10):
            apart.send()
            apart.world.clock.pass_seconds(0.1)
        assert len(asked) == 1
        apart.send()
        assert len(asked) == 2

    def test_a_wait_is_announced_each_quarter_of_a_minute(self) -> None:
        apart = Apart(64)
        assert apart.write_units(apart.poll) == 3  # and once in five minutes which key receives
        assert apart.write_units(apart.poll) == 1
        assert apart.write_units(apart.poll) == 1

    def test_many_sends_write_few(self) -> None:
        """Ten at once, then five a second, for each environment that sends."""
        apart = Apart(64)
        apart.poll()
        for _ in range(100):
            apart.world.clock.pass_seconds(0.02)
            apart.send()
        assert 10 <= len(apart.wake_ups()) <= 10 + 5 * 2

    def test_a_wake_up_for_a_message_taken_by_others_is_soon_dropped(self) -> None:
        apart = Apart(64)
        apart.poll()
        apart.send()
        apart.world.core = apart.environment()
        assert len(apart.alice.receive("orders")) == 1
        apart.world.core = apart.receiver
        before = read_units(apart.world)
        assert apart.poll() == []
        assert read_units(apart.world) - before <= 150 + 3 * 0.5


class TestFailures:
    def test_a_send_is_answered_despite_a_refused_wake_up(self) -> None:
        apart = Apart(64)
        apart.poll()
        throttled = Throttled(apart.world, of_wake_ups("PutItem"))
        apart.send()
        apart.send()
        assert throttled.refused == 1  # the next one is not tried at once
        throttled.end()
        assert len(apart.poll()) == 1

    def test_a_send_is_answered_though_it_cannot_ask_for_waiters(self) -> None:
        apart = Apart(64)
        throttled = Throttled(apart.world, of_wake_ups("GetItem"))
        apart.send()
        assert throttled.refused == 1
        assert len(apart.poll()) == 1

    @pytest.mark.parametrize("operation", ["PutItem", "Query"])
    def test_a_wait_goes_on_without_wake_ups(self, operation: str) -> None:
        """The turning looks at all partitions find what is sent, each within 10 s of 64."""
        apart = Apart(64)
        throttled = Throttled(apart.world, of_wake_ups(operation))
        assert apart.poll_until(5, apart.send) <= 20
        assert throttled.refused

    def test_a_wake_up_seen_before_its_message_is_followed_for_a_second(self) -> None:
        """Reads of the partition may be a moment behind those of the wake-ups."""
        apart = Apart(255)
        apart.poll()
        hidden = apart.world.clock.now_ms() + 60_000

        def send_unseen() -> None:
            nonlocal hidden
            apart.send()
            hidden = apart.world.clock.now_ms() + 600

        execute = apart.world.engine.execute

        def lag(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            answer: dict[str, Any] = execute(operation, request)
            parcels = operation == "Query" and ":pk" in str(request) and "'Q#" in str(request)
            if parcels and apart.world.clock.now_ms() < hidden:
                return {**answer, "Items": [], "Count": 0}
            return answer

        apart.world.engine.execute = lag  # type: ignore[method-assign]
        assert apart.poll_until(3, send_unseen) <= 1.4

    def test_a_slow_store_is_not_asked_for_more(self) -> None:
        apart = Apart(64)
        apart.poll()
        execute = apart.world.engine.execute

        def slow(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            answer: dict[str, Any] = execute(operation, request)
            if operation == "PutItem":
                apart.world.clock.pass_seconds(2.5)
            return answer

        apart.world.engine.execute = slow  # type: ignore[method-assign]
        apart.send()
        assert apart.wake_ups() == []


class TestRepeats:
    def test_a_repeated_send_is_one_message_and_wakes_nobody_again(self) -> None:
        """Its partition follows from its id, whichever environment it comes to, and when."""
        apart = Apart(255)
        apart.poll()
        attempt = apart.attempt()
        apart.send(attempt=attempt)
        apart.world.clock.pass_seconds(40)
        apart.send(apart.environment(-1_000), attempt=attempt)

        assert len(apart.wake_ups()) == 1
        assert len(apart.alice.receive("orders")) == 1
        assert apart.alice.receive("orders") == []

    @pytest.mark.parametrize("partitions", [64, 255])
    def test_a_repeated_receive_looks_first_at_its_wake_ups_place(self, partitions: int) -> None:
        apart = Apart(partitions)
        apart.poll()
        for _ in range(5):
            attempt = apart.attempt()
            (first,) = apart.poll_and_send(attempt=attempt)
            apart.world.clock.pass_seconds(10)
            before = read_units(apart.world)

            again = apart.alice.receive("orders", attempt=attempt, repeat=True)

            assert [message["receipt"] for message in again] == [first["receipt"]]
            assert read_units(apart.world) - before <= 50
            apart.alice.post("/queues/orders/messages/delete", {"receipts": [first["receipt"]]})


def of_wake_ups(operation: str) -> Wanted:
    """Calls of this operation for wake-ups, or for who waits."""
    return lambda called, request: called == operation and "'W#" in str(request)


def calls(world: World, wanted: Wanted) -> list[str]:
    """Grows by each such call from now on."""
    made: list[str] = []
    execute = world.engine.execute

    def count(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if wanted(operation, request):
            made.append(operation)
        answer: dict[str, Any] = execute(operation, request)
        return answer

    world.engine.execute = count  # type: ignore[method-assign]
    return made
