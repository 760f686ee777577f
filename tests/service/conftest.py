"""The service in memory on a clock that is set, and queues spoken to over HTTP events."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.lawful_writes import judge
from tests.service.kinds import check_listed

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, Reply, Subscriber, World

if TYPE_CHECKING:
    from tests.service.buckets import Bucket
    from tests.service.topics import Schedules, TestSubscription, TestTopic

Message = dict[str, Any]
AT_URLS_TOO = {
    *("test_sending", "test_repeated_sends", "test_receiving", "test_repeated_receives"),
    *("test_giving_back", "test_dead_letters", "test_bad_input", "test_life_of_a_message"),
    *("test_topic_publishing", "test_topic_pull", "test_answer_sizes", "test_half_messages"),
    *("test_ordered_queues", "test_queue_receivers", "test_store_failures"),
}
"""Files whose calls are made at the functions' own URLs as well."""
AT_URLS_FOR_LONG = AT_URLS_TOO - {
    "test_bad_input",
    "test_life_of_a_message",
    "test_topic_publishing",
}
"""Those of them that `make check-long` makes there: the calls themselves are in the others."""
IN_PROCESS_TOO = {
    *("test_sending", "test_repeated_sends", "test_receiving", "test_repeated_receives"),
    *("test_giving_back", "test_life_of_a_message", "test_answer_sizes"),
    *("test_queue_receivers", "test_purging"),
}
"""Files whose calls are made by clients in their own processes as well, as far as these may."""
LEFT_TO_THE_URL = {
    # Dead letters and tombstones: a process's calls by the URL, once a minute, move and clear them.
    "test_the_last_wait_repeats_and_used_up_retries_end_in_the_dead_letter_queue",
    "test_the_memory_of_moved_messages_is_cleared_when_no_attempt_can_be_so_old",
    # What a crash left behind is joined by the service, at the first try.
    "test_a_repeat_stores_if_the_leftover_goes_meanwhile",
    # The time of a function bounds a wait; a process has none.
    "test_a_longer_wait_is_cut_to_the_rest_of_the_call",
}
"""Tests of promises that a process leaves to the service, or does not need."""
BY_SDK = {"test_contention", "test_life_of_a_message", "test_operations", "test_store_failures"}
"""Files whose calls of DynamoDB are made by the client that is deployed, errors included."""
ALL_BY_SDK = "ALL_BY_SDK" in os.environ
"""So `make check-long` has those of all files made."""
LAMBDA_BYTES = 6_291_556
"""Of an event, and of an answer (6 MB and 100 bytes):
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""


@dataclass
class TestQueue:
    """One queue as one of its users calls it."""

    __test__ = False

    client: Client
    name: str

    @property
    def path(self) -> str:
        return f"/queues/{self.name}"

    def send(self, *bodies: str, **fields: Any) -> list[Message]:
        """Send messages in one call; answers their entries."""
        return self.client.send(self.name, *bodies, **fields)

    def try_send(self, messages: list[Any], **fields: Any) -> Reply:
        return self.client.post(f"{self.path}/messages", {"messages": messages, **fields})

    def receive(self, limit: int = 16, **fields: Any) -> list[Message]:
        """Receive without waiting."""
        return self.client.receive(self.name, limit, **fields)

    def receive_all(self, **fields: Any) -> list[Message]:
        """Receive until no message is left."""
        received: list[Message] = []
        while some := self.receive(**fields):
            received += some
        return received

    def consume(self, limit: int = 16, **fields: Any) -> list[str]:
        """Receive so many at a time and delete them. Returns the bodies in the order received."""
        consumed: list[str] = []
        while some := self.receive(limit, **fields):
            consumed += bodies(some)
            self.delete(*some)
        return consumed

    def bodies(self, **fields: Any) -> list[str]:
        """The bodies that a receiver can have now, sorted."""
        return sorted(message["body"] for message in self.receive_all(**fields))

    def act(self, verb: str, *messages: Message, **fields: Any) -> dict[str, Any]:
        """`delete`, `give-back` or `dead-letter` messages by their receipts."""
        receipts = [message["receipt"] for message in messages]
        reply = self.client.post(f"{self.path}/messages/{verb}", {"receipts": receipts, **fields})
        assert reply.status == 200, reply.text
        answer: dict[str, Any] = reply.json
        return answer

    def delete(self, *messages: Message) -> None:
        """Delete messages, every one of which must still be held."""
        for first in range(0, len(messages), 16):
            assert self.act("delete", *messages[first : first + 16])["failed"] == []

    def give_back(self, *messages: Message, **fields: Any) -> list[Message]:
        answer = self.act("give-back", *messages, **fields)
        assert answer["failed"] == []
        given: list[Message] = answer["given_back"]
        return given

    def hold(self, message: Message, seconds: int) -> dict[str, Any]:
        """Change one message's visibility; the whole answer."""
        entry = {"receipt": message["receipt"], "visibility_timeout_seconds": seconds}
        reply = self.client.post(f"{self.path}/messages/visibility", {"entries": [entry]})
        assert reply.status == 200, reply.text
        answer: dict[str, Any] = reply.json
        return answer

    def peek(self, limit: int = 16) -> list[Message]:
        reply = self.client.post(f"{self.path}/messages/peek", {"max": limit})
        assert reply.status == 200, reply.text
        messages: list[Message] = reply.json["messages"]
        return messages

    def show(self) -> dict[str, Any]:
        reply = self.client.get(self.path)
        assert reply.status == 200, reply.text
        shown: dict[str, Any] = reply.json
        return shown

    def counts(self) -> dict[str, int]:
        """The counts that are not 0, the age of the oldest message aside."""
        counts = self.show()["counts"]
        return {
            name: count
            for name, count in counts.items()
            if count and name != "oldest_active_age_seconds"
        }

    def patch(self, **attributes: Any) -> Reply:
        return self.client.patch(self.path, attributes)

    def start(self, kind: str, **body: Any) -> str:
        """Start an operation (`purge`, `rewind`, `redrive`) and answer its id; it has not run."""
        reply = self.client.post(f"{self.path}/{kind}", body)
        assert reply.status == 202, reply.text
        operation: str = reply.json["operation"]
        return operation

    def run(self, kind: str, **body: Any) -> dict[str, Any]:
        """Start an operation, let it run to its end and show it."""
        operation = self.start(kind, **body)
        self.client.world.settle()
        shown: dict[str, Any] = self.client.get(f"/operations/{operation}").json
        return shown

    def add_receiver(self, name: str, **attributes: Any) -> dict[str, Any]:
        reply = self.client.put(f"{self.path}/receivers/{name}", attributes)
        assert reply.status == 201, reply.text
        self.client.world.settle()
        shown: dict[str, Any] = reply.json
        return shown


MakeQueue = Callable[..., TestQueue]


def usage(world: World) -> dict[str, int]:
    """Messages by resource and kind, those with 0 left out."""
    counted: Counter[str] = Counter()
    for item in world.items("usage"):
        for record in item.get("records", {"L": []})["L"]:
            entry = record["M"]
            counted[f"{entry['resource']['S']} {entry['kind']['S']}"] += int(entry["count"]["N"])
    return {name: count for name, count in counted.items() if count}


def sweep(world: World, after_seconds: float = 0) -> None:
    """Let time pass, run the sweep, and all that it begins."""
    world.clock.pass_seconds(after_seconds)
    world.run("sweep")
    world.settle()


def bodies(messages: list[Message]) -> list[str]:
    """The bodies of messages that an answer has, in its order."""
    return [each["body"] for each in messages]


def to_ms(time: str) -> int:
    """Milliseconds since the epoch of a time in an answer."""
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have the contract of calls at the functions' own URLs be that of the API."""
    name = metafunc.module.__name__.rpartition(".")[2]
    ways = [pytest.param("", id="api")]
    if name in AT_URLS_TOO and "world" in metafunc.fixturenames:
        marks = [pytest.mark.long] if name in AT_URLS_FOR_LONG else []
        ways.append(pytest.param("direct", id="direct", marks=marks))
    left = metafunc.function.__name__ in LEFT_TO_THE_URL
    if name in IN_PROCESS_TOO and not left and "world" in metafunc.fixturenames:
        ways.append(pytest.param("in_process", id="in_process"))
    if len(ways) > 1:
        metafunc.parametrize("world", ways, indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    way = getattr(request, "param", "")
    by_sdk = not way and request.module.__name__.rpartition(".")[2] in BY_SDK
    made = World(
        direct_urls=way == "direct", in_process=way == "in_process", by_sdk=by_sdk or ALL_BY_SDK
    )
    yield made
    assert made.own is None or not made.own.refused
    assert made.denied == []
    check_listed(made)
    if not request.node.get_closest_marker("writes_by_hand"):
        assert judge(made).faults == []
    made.engine.close()


@pytest.fixture
def cloud() -> Iterator[World]:
    """A world in which every function has caches of its own."""
    made = World(shared_caches=False)
    yield made
    made.engine.close()


@pytest.fixture
def envelopes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of all answers as Lambda's runtime for Python encodes them: all in ASCII."""
    sizes: list[int] = []
    run = World._run_function

    def measured(world: World, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        answer = run(world, name, event, chain)
        if isinstance(answer, dict) and "statusCode" in answer:
            sizes.append(len(json.dumps(answer)))
        return answer

    monkeypatch.setattr(World, "_run_function", measured)
    yield sizes
    assert max(sizes) <= LAMBDA_BYTES


@pytest.fixture
def alice(world: World) -> Client:
    """The admin of the account `alice`."""
    return world.client("alice", admin=True)


@pytest.fixture
def bob(world: World) -> Client:
    """A user of another account."""
    return world.client("bob")


@pytest.fixture
def make_queue(alice: Client) -> MakeQueue:
    """Make a queue of alice: `make_queue("orders", delay_seconds=5)`."""

    def make(name: str = "orders", **attributes: Any) -> TestQueue:
        reply = alice.put(f"/queues/{name}", attributes)
        assert reply.status == 201, reply.text
        return TestQueue(alice, name)

    return make


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    """A queue of alice with the defaults."""
    return make_queue()


@pytest.fixture
def dead(make_queue: MakeQueue) -> TestQueue:
    """A queue of alice that others may name for their dead letters."""
    return make_queue("dead")


@pytest.fixture
def bucket(world: World) -> Bucket:
    """The world's bucket, into which sends of 16 KiB or more are put."""
    from tests.service.buckets import give_bucket

    return give_bucket(world, 16_384)


@pytest.fixture
def now(world: World) -> Callable[..., str]:
    """The service's time as answers have it, `seconds` from now."""
    return lambda seconds=0.0: format_time(world.clock.now_ms() + round(seconds * 1000))


@pytest.fixture
def start(now: Callable[..., str]) -> str:
    """The service's time as the test begins."""
    return now()


@pytest.fixture
def topic(alice: Client) -> TestTopic:
    """A topic of alice with the defaults."""
    from tests.service.topics import TestTopic

    return TestTopic(alice)


@pytest.fixture
def group(topic: TestTopic) -> TestSubscription:
    """A group of that topic with the defaults."""
    return topic.subscribe("group")


@pytest.fixture
def subscriber(world: World) -> Subscriber:
    """The subscriber behind all URLs of subscriptions."""
    return world.subscriber()


@pytest.fixture
def schedules(world: World) -> Schedules:
    """Runs retries, and the sweep, while time passes."""
    from tests.service.topics import Schedules

    return Schedules(world)
