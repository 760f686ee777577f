"""Messages that no answer or event holds: others pass them by, and they become dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.test_peeking_at_all import pages
from tests.service.test_receiving import after
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base.errors import Unavailable
from cirrusmq_local.testing import Client, World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue

MAX = 4_194_304
LARGE = "\x01" * 800_000
"""4.8 MB of JSON: an answer without gzip has 4.7."""
LARGER = "\x01" * 1_100_000
"""6.6 MB of JSON: the event of a function has 6.2."""
INVOKE = {"function": "handler"}


@pytest.fixture
def alice(world: World) -> Client:
    """She gzips her requests, and takes gzipped answers."""
    made = world.client("alice", admin=True)
    made.gzips = True
    return made


@pytest.fixture
def topic(alice: Client) -> TestTopic:
    return TestTopic(alice, max_message_bytes=MAX)


def plain(queue: TestQueue) -> TestQueue:
    """As a client without gzip calls it."""
    return TestQueue(Client(queue.client.world, queue.client.authorization), queue.name)


def with_dead_letters(make_queue: MakeQueue, **more: Any) -> tuple[TestQueue, TestQueue]:
    """A queue of one partition for large messages, and its dead-letter queue."""
    dead = make_queue("dead", max_message_bytes=MAX)
    letters = {"queue": "dead", "max_receives": 100}
    return make_queue(partitions=1, max_message_bytes=MAX, dead_letter=letters, **more), dead


def send_each(queue: TestQueue, *bodies: str, **fields: Any) -> None:
    """Send messages one after the other, each under a key of its own."""
    for body in bodies:
        queue.send(body, **fields)
        queue.client.world.clock.pass_seconds(0.01)


def poll(queue: TestQueue, times: int, **fields: Any) -> list[str]:
    """Receive and delete, as a consumer that takes no answer for an end; the bodies."""
    bodies: list[str] = []
    for _ in range(times):
        request = {"max": 16, "wait_seconds": 0, **fields}
        reply = queue.client.post(f"{queue.path}/messages/receive", request)
        if reply.status == 200:
            bodies += [message["body"] for message in reply.json["messages"]]
            queue.delete(*reply.json["messages"])
        else:
            assert reply.code == "MessageTooLarge"
        queue.client.world.clock.pass_seconds(1)
    return bodies


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about messages that are passed over."""
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if "passed over" in line]


class TestReceives:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("count", [14, pytest.param(60, marks=pytest.mark.long)])
    @pytest.mark.parametrize("kind", ["plain", pytest.param("fair", marks=pytest.mark.long)])
    def test_others_come_however_many_are_in_front(
        self, make_queue: MakeQueue, kind: str, count: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue = make_queue(partitions=1, max_message_bytes=MAX, fair=kind == "fair")
        group = {"group": "g"} if kind == "fair" else {}
        send_each(queue, *[LARGE] * count, **group)
        send_each(queue, "a", "b", **group)
        assert poll(plain(queue), 3) == ["a", "b"]
        assert queue.counts() == {"active": count}
        poll(plain(queue), 40)
        assert len(told(caplog)) == len({*told(caplog)}) == count
        received = queue.receive_all()
        assert [message["receive_count"] for message in received] == [1] * count

    @pytest.mark.long
    def test_many_in_front_are_read_seldom(self, world: World, make_queue: MakeQueue) -> None:
        """A look remembers them as it does messages in flight."""
        queue = make_queue(partitions=1, max_message_bytes=MAX)
        send_each(queue, *[LARGE] * 30)
        consumer = plain(queue)
        poll(consumer, 5)
        world.clock.pass_seconds(10)
        poll(consumer, 1)
        units = world.units(lambda: poll(consumer, 10))[1]
        assert units / 10 < 5
        send_each(queue, "a")
        assert poll(consumer, 5) == ["a"]
        assert len(queue.receive_all()) == 30  # whose mark is another one

    def test_a_wait_goes_on_for_others_and_tells_at_its_end(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue = make_queue(max_message_bytes=MAX)
        (sent,) = queue.send(LARGE)
        consumer = plain(queue)
        begun_ms = world.clock.now_ms()
        request = {"max": 1, "wait_seconds": 5}
        reply = consumer.client.post(f"{queue.path}/messages/receive", request)
        assert (reply.status, reply.code) == (413, "MessageTooLarge")
        assert sent["id"] in reply.json["detail"]
        assert world.clock.now_ms() - begun_ms >= 5_000
        after(world, monkeypatch, 0, lambda: queue.send("a"))
        assert [message["body"] for message in consumer.receive(wait_seconds=5)] == ["a"]

    def test_an_ordered_group_waits_behind_it_and_others_do_not(
        self, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(partitions=1, max_message_bytes=MAX, ordered=True)
        send_each(queue, "first", LARGE, "behind", group="a")
        send_each(queue, "one", "two", group="b")
        consumer = plain(queue)
        assert sorted(poll(consumer, 20)) == ["first", "one", "two"]
        (large,) = queue.receive(1)
        assert large["body"] == LARGE
        queue.delete(large)
        assert poll(consumer, 2) == ["behind"]

    @pytest.mark.few(1)
    @pytest.mark.parametrize(
        "kind", [pytest.param("plain", marks=pytest.mark.long), "fair", "ordered"]
    )
    def test_it_becomes_a_dead_letter_if_there_is_a_queue_for_them(
        self, make_queue: MakeQueue, kind: str
    ) -> None:
        kinds = {} if kind == "plain" else {kind: True}
        queue, dead = with_dead_letters(make_queue, **kinds)
        group = {"group": "g"} if kinds else {}
        send_each(queue, *[LARGE] * 3, "behind", **group)
        consumer = plain(queue)
        poll(consumer, 20)
        assert dead.counts() == {}  # a receiver with gzip has time to come
        poll(consumer, 120 if kinds else 30)
        assert queue.counts() == {}
        letters = dead.receive_all()
        assert [letter["body"] for letter in letters] == [LARGE] * 3
        assert {letter["dead_letter"]["reason"] for letter in letters} == {"too_large"}
        assert {letter["dead_letter"]["receive_count"] for letter in letters} == {0}

    def test_a_refused_move_keeps_no_other_message_back(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue, dead = with_dead_letters(make_queue)
        send_each(queue, LARGE, LARGE, "a", "b")
        world.clock.pass_seconds(60)
        transact, refused = world.core.store.transact, []

        def refuse(writes: Any) -> None:
            refused.append(writes)
            raise Unavailable

        monkeypatch.setattr(world.core.store, "transact", refuse)
        assert poll(plain(queue), 1) == ["a", "b"]
        assert len(refused) == 1  # and it is not asked again so soon
        monkeypatch.setattr(world.core.store, "transact", transact)
        poll(plain(queue), 40)
        assert dead.counts() == {"active": 2}
        assert queue.counts() == {}

    def test_a_message_kept_out_by_receipts_alone_is_no_dead_letter(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue, dead = with_dead_letters(make_queue)
        queue.send("\x01" * 780_000)
        world.clock.pass_seconds(60)
        receipts = ["\x01" * 2_047 + chr(ord("a") + number) for number in range(16)]
        request = {"max": 16, "wait_seconds": 0, "delete": receipts}
        reply = plain(queue).client.post(f"{queue.path}/messages/receive", request)
        assert reply.json["messages"] == []
        assert dead.counts() == {}
        assert len(poll(plain(queue), 1)) == 1

    @pytest.mark.parametrize("kind", ["plain", "fair"])
    def test_a_plain_one_beside_control_characters_comes_to_everybody(
        self, make_queue: MakeQueue, kind: str
    ) -> None:
        """The bound that is kept with their send says that it takes 18 MB."""
        queue = make_queue(partitions=1, max_message_bytes=MAX, fair=kind == "fair")
        group = {"group": "g"} if kind == "fair" else {}
        large = {"body": "x" * 3_000_000, **group}
        assert queue.try_send([large, {"body": "\x01" * 9_000, **group}]).status == 201
        bodies = poll(plain(queue), 6)
        assert sorted(map(len, bodies)) == [9_000, 3_000_000]
        assert queue.counts() == {}


class TestFunctions:
    def bodies(self, world: World) -> list[str]:
        return [record["body"] for batch in world.batches for record in batch]

    def pass_over(self, world: World, publish: Any, seconds: int) -> None:
        for _ in range(9):
            publish(LARGER)
            world.clock.pass_seconds(0.01)
        publish("small")
        Schedules(world, sweeps=True).pass_seconds(seconds)

    @pytest.mark.long
    def test_a_queues_function_gets_the_others_and_is_told_once(
        self, world: World, make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue = make_queue(partitions=1, max_message_bytes=MAX)
        send_each(queue, *[LARGER] * 9, "small")
        queue.patch(invoke=INVOKE)
        started = Schedules(world, sweeps=True)
        started.pass_seconds(900)
        assert self.bodies(world) == ["small"]
        assert len(told(caplog)) == 9
        assert sum(started.started.values()) == 0  # nobody comes back for them but the sweep
        assert len(queue.receive_all()) == 9

    @pytest.mark.long
    @pytest.mark.parametrize("dead_letters", [pytest.param(False, marks=pytest.mark.long), True])
    def test_a_groups_function_gets_the_others(
        self,
        world: World,
        topic: TestTopic,
        make_queue: MakeQueue,
        dead_letters: bool,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        topic.subscribe("keeper")  # somebody gets them
        attributes: dict[str, Any] = {"retry": {"policy": "backoff"}}
        if dead_letters:
            dead = make_queue("dead", max_message_bytes=MAX)
            attributes["dead_letter_queue"] = "dead"
        group = topic.subscribe("group", invoke=INVOKE, **attributes)
        self.pass_over(world, topic.publish, 900)
        assert self.bodies(world) == ["small"]
        assert len(told(caplog)) == 9
        left = group.client.get(group.path).json["counts"]
        if not dead_letters:
            assert left["active"] == 9
            return
        assert left["active"] == 0
        reasons = [letter["dead_letter"]["reason"] for letter in dead.receive_all()]
        assert reasons == ["too_large"] * 9

    def test_an_ordered_groups_function_goes_on_behind_the_dead_letter(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        make_queue("dead", max_message_bytes=MAX)
        topic.subscribe("keeper")
        topic.subscribe("group", invoke=INVOKE, ordered=True, dead_letter_queue="dead")
        topic.publish("first", group="g")
        topic.publish(LARGER, group="g")
        topic.publish("behind", group="g")
        Schedules(world, sweeps=True).pass_seconds(300)
        assert self.bodies(world) == ["first", "behind"]


class TestPublishing:
    def test_a_message_too_large_for_all_is_refused(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        make_queue("called", max_message_bytes=MAX, invoke=INVOKE)
        topic.subscribe("group", invoke=INVOKE)
        topic.subscribe("queue", protocol="queue", endpoint="called")
        before = world.items()
        reply = topic.try_publish([{"body": LARGER}])
        assert (reply.status, reply.code) == (413, "MessageTooLarge")
        assert reply.json["parameter"] == "messages[0].body"
        assert "event" in reply.json["detail"]
        assert world.items() == before
        (one, other) = topic.try_publish([{"body": LARGER}, {"body": "small"}], atomic=False).json[
            "messages"
        ]
        assert one["error"]["code"] == "MessageTooLarge"
        assert other["matched"] == 2

    def test_a_message_fit_for_one_reader_is_taken(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("group", invoke=INVOKE)
        keeper = topic.subscribe("keeper")
        topic.publish(LARGER)
        world.settle()
        assert [message["body"] for message in keeper.receive()] == [LARGER]

    def test_an_unmatched_message_is_stored_for_nobody(self, topic: TestTopic) -> None:
        topic.subscribe("group", invoke=INVOKE, filter={"tags": ["other"]})
        (published,) = topic.publish(LARGER)
        assert published["matched"] == 0

    def test_a_send_beside_others_fits_by_the_kept_bound(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(max_message_bytes=MAX, invoke=INVOKE)
        sent = queue.try_send([{"body": "x" * 3_000_000}, {"body": "\x01" * 9_000}])
        assert sent.status == 201
        Schedules(world, sweeps=True).pass_seconds(300)
        sizes = [len(record["body"]) for batch in world.batches for record in batch]
        assert sorted(sizes) == [9_000, 3_000_000]


def test_a_reader_of_a_log_without_gzip_gets_a_cursor_to_go_on(
    world: World, topic: TestTopic
) -> None:
    reader = topic.subscribe("all", mode="broadcasting")
    large, *_ = topic.try_publish([{"body": LARGE}, {"body": "a"}]).json["messages"]
    topic.publish("b")
    world.clock.pass_seconds(10)
    client = Client(world, topic.client.authorization)
    for path in (topic.path, reader.path):
        refused = client.get(f"{path}/messages")
        assert (refused.status, refused.code) == (413, "MessageTooLarge")
        assert large["id"] in refused.json["detail"]
        page = client.get(f"{path}/messages", f"after={refused.json['cursor']}").json
        assert [message["body"] for message in page["messages"]] == ["a", "b"]


@pytest.mark.long
def test_a_peek_goes_on_behind_more_than_a_page_of_them(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cirrusmq.receiving.peek.PEEK_UNITS", 1.0)
    monkeypatch.setattr("cirrusmq.receiving.peek._PAGE_PARCELS", (4, 4))
    queue = make_queue(partitions=1, max_message_bytes=MAX)
    send_each(queue, *[LARGE] * 10, "small")
    shown = pages(plain(queue), max=16)
    assert [message["body"] for page in shown for message in page] == ["small"]
