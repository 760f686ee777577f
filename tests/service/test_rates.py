"""The last hour of queues, receivers, topics and subscriptions, by intervals of five minutes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep, to_ms, usage
from tests.service.crashes import before_each_call
from tests.service.topics import TestTopic

from cirrusmq.base.timestamps import format_time
from cirrusmq.storage.counters import change_counter, rate_name
from cirrusmq_local.testing import Client, World

FIVE_MINUTES = 300
COUNTED = (
    *("sent", "received", "deleted", "expired", "dead_lettered", "published", "delivered"),
    *("attempts", "dropped", "rewound", "kept"),
)


def rates(client: Client, **named: str) -> list[dict[str, Any]]:
    """The numbers of each resource that are not all 0."""
    reply = client.get("/rates", "&".join(f"{kind}={names}" for kind, names in named.items()))
    assert reply.status == 200, reply.text
    assert reply.json["interval_seconds"] == FIVE_MINUTES
    shown = []
    for each in reply.json["rates"]:
        assert set(each) == {"kind", "name", *COUNTED}
        assert all(len(each[name]) == 12 for name in COUNTED)
        shown.append({name: each[name] for name in COUNTED if any(each[name])})
    return shown


def at_end(*numbers: int) -> list[int]:
    """The last of twelve intervals; nothing was before."""
    return [0] * (12 - len(numbers)) + list(numbers)


@pytest.fixture(autouse=True)
def _at_the_beginning_of_an_interval(world: World) -> None:
    into = world.clock.now_ms() // 1_000 % FIVE_MINUTES
    world.clock.pass_seconds(FIVE_MINUTES - into)


def test_each_event_is_in_the_interval_of_its_time(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send(*"abc")
    world.settle()
    world.clock.pass_seconds(2 * FIVE_MINUTES)
    queue.delete(*queue.receive()[:2])
    world.settle()

    (shown,) = rates(alice, queues="orders")

    assert shown == {
        "sent": at_end(3, 0, 0),
        "received": at_end(0, 0, 3),
        "deleted": at_end(0, 0, 2),
        "kept": at_end(3, 3, 1),
    }


def test_the_intervals_begin_an_hour_before_the_end_of_the_current_one(
    world: World, alice: Client, queue: TestQueue
) -> None:
    world.clock.pass_seconds(17)
    shown = alice.get("/rates", "queues=orders").json
    assert to_ms(shown["starts_at"]) == world.clock.now_ms() - 17_000 - 11 * FIVE_MINUTES * 1_000


def test_messages_older_than_an_hour_are_in_the_backlog_alone(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send(*"ab")
    world.settle()
    world.clock.pass_seconds(11 * FIVE_MINUTES)
    assert rates(alice, queues="orders") == [{"sent": [2, *[0] * 11], "kept": [2] * 12}]
    world.clock.pass_seconds(FIVE_MINUTES)
    assert rates(alice, queues="orders") == [{"kept": [2] * 12}]


def test_an_unused_queue_has_zeros(alice: Client, queue: TestQueue) -> None:
    assert rates(alice, queues="orders") == [{}]


def test_a_batch_repeated_by_the_stream_shorter_and_in_parts_counts_once(
    world: World, alice: Client, queue: TestQueue
) -> None:
    for body in "abcdef":
        queue.send(body)
    queue.delete(*queue.receive_all())
    records = world.engine.read_stream(world.tables.messages, 0, 100)
    events = [record.as_lambda_record() for record in records]
    half = len(events) // 2

    for part in (events, events[:half], events[half:], events[half:]):
        world.run("meter", {"Records": part})

    assert rates(alice, queues="orders") == [
        {"sent": at_end(6), "received": at_end(6), "deleted": at_end(6)}
    ]


def test_of_a_stopped_meter_only_the_rates_are_missing(
    world: World, alice: Client, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("a")
    queue.delete(*queue.receive())

    def stop(operation: str, request: object) -> None:
        if operation == "UpdateItem" and "#changed = :changed" in str(request):
            raise EOFError

    with monkeypatch.context() as patch:
        before_each_call(world, patch, stop)
        world.run_stream("meter")
    world.settle()
    assert usage(world) == {f"queue:orders {kind}": 1 for kind in ("sent", "received", "deleted")}
    assert rates(alice, queues="orders") == [{}]
    queue.send("b")
    world.settle()
    assert rates(alice, queues="orders") == [{"sent": at_end(1), "kept": at_end(1)}]


def test_late_metered_messages_are_in_their_own_interval(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send(*"ab")
    world.clock.pass_seconds(3 * FIVE_MINUTES)
    world.settle()
    assert rates(alice, queues="orders") == [
        {"sent": at_end(2, 0, 0, 0), "kept": at_end(2, 2, 2, 2)}
    ]


def test_a_dead_letter_is_counted_at_its_source(
    world: World, alice: Client, make_queue: MakeQueue
) -> None:
    make_queue("dead")
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
    queue.send("a")
    queue.act("dead-letter", *queue.receive())
    world.settle()

    assert rates(alice, queues="dead,orders") == [
        {"kept": at_end(1)},
        {"sent": at_end(1), "received": at_end(1), "dead_lettered": at_end(1)},
    ]


def test_a_topic_its_groups_its_urls_and_a_receiver_are_read_by_one_call(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    topic = TestTopic(alice)
    topic.subscribe("all", protocol="pull")
    topic.subscribe("web", protocol="http", endpoint="https://example.com/hook")
    topic.subscribe("into", protocol="queue", endpoint="orders")
    world.settle()
    topic.publish(*"ab")
    world.settle()

    shown = rates(
        alice, queues="orders", receivers="orders/copy", topics="news",
        subscriptions="news/all,news/web,news/into",
    )  # fmt: skip

    assert shown == [
        {"sent": at_end(2), "kept": at_end(2)},
        {"delivered": at_end(2), "kept": at_end(2)},
        {"published": at_end(2)},
        {"delivered": at_end(2), "kept": at_end(2)},
        {"delivered": at_end(2), "attempts": at_end(2)},
        {},
    ]


def test_failed_posts_are_attempts_and_no_deliveries(world: World, alice: Client) -> None:
    topic = TestTopic(alice)
    topic.subscribe("web", protocol="http", endpoint="https://example.com/hook")
    world.settle()
    world.endpoint = lambda url: "status 500"
    topic.publish("a")
    world.settle()
    assert rates(alice, subscriptions="news/web") == [{"attempts": at_end(1), "kept": at_end(1)}]


def test_a_rewound_group_keeps_its_former_rates(world: World, alice: Client) -> None:
    topic = TestTopic(alice)
    group = topic.subscribe("all", protocol="pull")
    topic.publish(*"ab")
    world.settle()
    before = format_time(world.clock.now_ms() - 10_000)
    world.clock.pass_seconds(FIVE_MINUTES)
    assert alice.post(f"{group.path}/rewind", {"to": before}).status == 202
    world.settle()
    (shown,) = rates(alice, subscriptions="news/all")
    assert shown["delivered"][-2] == 2


def test_no_interval_is_less_than_nothing(world: World, alice: Client, queue: TestQueue) -> None:
    resource, now_ms = queue.show()["id"], world.clock.now_ms()
    taken_back = {rate_name("received", now_ms): -1, rate_name("kept", now_ms): 5}
    change = change_counter(world.core, resource, taken_back, now_ms // 60_000)
    world.core.store.write("UpdateItem", change)
    assert rates(alice, queues="orders") == [{}]


class TestCosts:
    @pytest.mark.long
    def test_counting_kept_messages_costs_no_unit_more_with_a_full_hour(
        self, world: World, queue: TestQueue
    ) -> None:
        """A record and a counter, of at most 1 KB each, in a transaction: two units each."""
        for _ in range(14 * 4):
            queue.send(*"ab")
            queue.delete(*queue.receive()[:1])
            assert world.write_units(lambda: world.run_stream("meter")) == 4
            sweep(world, after_seconds=FIVE_MINUTES / 4)

    def test_rates_alone_are_added_behind_the_record_for_one_unit_each(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("a")
        queue.delete(*queue.receive())
        assert world.write_units(lambda: world.run_stream("meter")) == 2

    def test_a_name_costs_half_a_unit_when_it_is_known(
        self, world: World, alice: Client, make_queue: MakeQueue
    ) -> None:
        for number in range(50):
            make_queue(f"queue{number}").send("a")
        world.settle()
        named = "queues=" + ",".join(f"queue{number}" for number in range(50))
        alice.get("/rates", named)
        assert world.units(lambda: alice.get("/rates", named)) == (0, 25)

    def test_the_sweep_removes_past_intervals_and_nothing_else(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        def stored() -> list[str]:
            counters = [item for item in world.items("usage") if item["pk"]["S"].startswith("C#")]
            return [name for item in counters for name in item if name[1:].isdigit()]

        queue.send("a")
        world.settle()
        world.clock.pass_seconds(10 * FIVE_MINUTES)
        queue.send("b")
        world.settle()
        assert len(stored()) == 4
        world.clock.pass_seconds(10 * FIVE_MINUTES)
        world.run("sweep")
        assert len(stored()) == 2
        assert rates(alice, queues="orders") == [
            {"sent": [0, 1, *[0] * 10], "kept": [1, *[2] * 11]}
        ]
        world.clock.pass_seconds(24 * FIVE_MINUTES)
        world.run("sweep")
        assert stored() == []
        assert rates(alice, queues="orders") == [{"kept": [2] * 12}]


class TestOtherAccounts:
    def test_a_shared_queue_is_named_with_its_account(
        self, world: World, alice: Client, bob: Client, queue: TestQueue
    ) -> None:
        queue.send("a")
        world.settle()
        assert alice.put(f"{queue.path}/grants/bob", {"permission": "info"}).status == 200
        assert rates(bob, queues="alice:orders") == [{"sent": at_end(1), "kept": at_end(1)}]

    @pytest.mark.parametrize(
        "named",
        [
            "queues=alice:orders",
            "receivers=alice:orders/copy",
            "topics=alice:news",
            "subscriptions=alice:news/all",
        ],
    )
    def test_without_a_grant_nothing_is_told(
        self, alice: Client, bob: Client, queue: TestQueue, named: str
    ) -> None:
        queue.add_receiver("copy")
        TestTopic(alice).subscribe("all", protocol="pull")
        reply = bob.get("/rates", named)
        assert (reply.status, reply.code) == (403, "Forbidden")
