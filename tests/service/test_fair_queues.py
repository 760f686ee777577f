"""Fair queues: each group has its turn, whatever the others have waiting."""

from __future__ import annotations

import zlib
from collections import Counter
from functools import partial
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, sweep, usage
from tests.service.test_cancelling import cancel, due_at
from tests.service.test_costs import parcels
from tests.service.test_looking_up import UNITS, ask, find, read_units
from tests.service.test_receiving import attempt
from tests.service.topics import TestTopic

from cirrusmq.sending.making import group_prefix
from cirrusmq_local.testing import World

GROUPS = [f"tenant {number}" for number in range(8)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", fair=True, partitions=1)


def fill(queue: TestQueue, group: str, count: int) -> None:
    for first in range(0, count, 16):
        queue.send(*(["x"] * min(16, count - first)), group=group)


def groups(messages: list[Message]) -> list[str | None]:
    return [message.get("group") for message in messages]


class TestTurns:
    @pytest.mark.parametrize("limit", [1, 4, 16])
    def test_a_quiet_group_waits_for_no_backlog(self, queue: TestQueue, limit: int) -> None:
        fill(queue, "loud", 500)
        for _ in range(3):
            queue.receive(limit)
        queue.send("quiet", group="quiet")

        received = [queue.receive(limit) for _ in range(2)]

        assert "quiet" in groups(received[0] + received[1])

    def test_in_several_partitions_it_waits_for_few_receives(self, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True)
        fill(queue, "loud", 500)
        for group in GROUPS:
            queue.send("quiet", group=group)

        received = [group for _ in range(30) for group in groups(queue.receive(1))]

        assert set(received) == {"loud", *GROUPS}
        assert len(received) == 30

    @pytest.mark.long
    def test_turns_are_within_a_partition_and_each_partition_has_its_share(
        self, make_queue: MakeQueue
    ) -> None:
        """The figures of the manual's page: a group alone in its partition has a quarter of all."""
        queue = make_queue("tenants", fair=True, partitions=4)
        of_partition: dict[int, list[str]] = {number: [] for number in range(4)}
        for number in range(200):
            prefix = group_prefix(f"g{number}")
            of_partition[zlib.crc32(prefix.encode()) % 4].append(f"g{number}")
        loud, quiet = [of_partition[number][0] for number in range(3)], of_partition[3][:30]
        for group in loud:
            fill(queue, group, 700)
        for group in quiet:
            fill(queue, group, 10)

        got: Counter[str | None] = Counter()
        while sum(got[group] for group in quiet) < 300:
            got.update(groups(queue.receive(1)))

        assert {got[group] for group in quiet} == {10}
        assert all(200 < got[group] < 400 for group in loud)

    def test_in_a_plain_queue_it_waits_for_the_backlog(self, make_queue: MakeQueue) -> None:
        queue = make_queue("plain", partitions=1)
        fill(queue, "loud", 500)
        queue.client.world.clock.pass_seconds(1)
        queue.send("quiet", group="quiet")

        received = [group for _ in range(100) for group in groups(queue.receive(4))]

        assert received == ["loud"] * 400

    def test_groups_take_turns_one_message_each(self, queue: TestQueue) -> None:
        for group in GROUPS:
            fill(queue, group, 40)

        received = [group for _ in range(32) for group in groups(queue.receive(1))]

        for first in range(0, 32, 8):
            assert sorted(map(str, received[first : first + 8])) == GROUPS

    def test_a_receive_takes_a_quarter_of_a_group(self, queue: TestQueue) -> None:
        for group in GROUPS:
            fill(queue, group, 40)

        for _ in range(4):
            assert sorted(Counter(groups(queue.receive(16))).values()) == [4, 4, 4, 4]
        assert sorted(Counter(groups(queue.receive(10))).values()) == [1, 3, 3, 3]

    def test_a_missing_share_is_divided_among_larger_groups(self, queue: TestQueue) -> None:
        queue.send("x", group="one")
        fill(queue, "loud", 40)
        fill(queue, "louder", 80)

        assert Counter(groups(queue.receive(16))) == {"one": 1, "loud": 8, "louder": 7} or Counter(
            groups(queue.receive(0 + 16))
        ) == {"loud": 8, "louder": 8}

    @pytest.mark.parametrize("fair", [False, True], ids=["plain", "fair"])
    def test_one_group_alone_fills_a_receive_with_one_write(
        self, world: World, make_queue: MakeQueue, fair: bool
    ) -> None:
        queue = make_queue("orders", fair=fair, partitions=1)
        queue.receive()  # who receives is noted once in five minutes
        fill(queue, "loud", 16)
        held: list[Message] = []

        assert world.write_units(lambda: held.extend(queue.receive(16))) == 1

        assert len(held) == 16

    def test_messages_without_a_group_are_one_together(self, queue: TestQueue) -> None:
        fill(queue, "loud", 100)
        queue.send("a", "b", "c")
        received = [group for _ in range(6) for group in groups(queue.receive(1))]
        assert Counter(received) == {"loud": 3, None: 3}

    def test_a_group_in_flight_holds_up_no_other(self, world: World, queue: TestQueue) -> None:
        for _ in range(200):
            queue.send("x", group="slow")
        assert len(queue.receive_all()) == 200
        queue.send("y", group="slow")
        for group in GROUPS:
            queue.send("x", group=group)
        world.clock.pass_seconds(1)
        assert Counter(groups(queue.receive_all())) == {"slow": 1, **dict.fromkeys(GROUPS, 1)}
        marks = [item["sk"]["S"] for item in world.items() if item["pk"]["S"].startswith("H#")]
        assert len(marks) == 1
        assert marks[0].startswith("H#")  # of the group, beside which no other has one

    def test_delayed_messages_are_received_when_they_are_due(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send(*("x" * 16), group="later", delay_seconds=60)
        queue.send("x", group="later", delay_seconds=30)
        queue.send("y", group="now")
        assert groups(queue.receive_all(visibility_timeout_seconds=50)) == ["now"]
        world.clock.pass_seconds(30)
        assert groups(queue.receive_all(visibility_timeout_seconds=600)) == ["later"]
        world.clock.pass_seconds(30)
        assert Counter(groups(queue.receive_all())) == {"later": 16, "now": 1}


class TestCosts:
    def test_an_idle_look_writes_nothing_and_reads_as_little_as_in_a_plain_queue(
        self, make_queue: MakeQueue
    ) -> None:
        for name, fair in (("plain", False), ("fair", True)):
            queue = make_queue(name, fair=fair)
            queue.receive()
            assert queue.client.world.units(queue.receive) == (0, 2.0)

    @pytest.mark.few(1)
    @pytest.mark.parametrize("count", [100, 1_000])
    def test_looks_at_groups_in_flight_are_bounded(self, make_queue: MakeQueue, count: int) -> None:
        queue = make_queue("orders", fair=True, visibility_timeout_seconds=43_200)
        world = queue.client.world
        for number in range(count):
            queue.send("x" * 100, group=f"group {number}")
        assert len(queue.receive_all()) == count
        for seconds, limit in ((0, 12.0), (20, 150.0)):
            path = f"{queue.path}/messages/receive"
            poll = partial(queue.client.post, path, {"max": 1, "wait_seconds": seconds})
            for _ in range(3):
                _, units = read_units(world, poll)
                assert units <= limit
        queue.send("new", group="new")
        assert any(queue.receive(1) for _ in range(20))


class TestInFlight:
    def test_a_group_has_no_more_in_flight_than_it_may(self, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True, partitions=1, max_in_flight=5)
        for _ in range(40):
            queue.send("x", group="limited")
        queue.send(*("x" * 16), group="in one parcel")
        queue.send("x", group="small")

        held = queue.receive_all()

        assert Counter(groups(held)) == {"limited": 5, "in one parcel": 5, "small": 1}
        assert queue.receive(1) == []

    def test_messages_over_it_wait_in_their_order(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", fair=True, partitions=1, max_in_flight=2)
        for number in range(12):
            queue.send(f"{number:02}", group="limited")
            world.clock.pass_seconds(0.01)
        got: list[str] = []
        while held := queue.receive():
            assert len(held) == 2
            got += [message["body"] for message in held]
            queue.delete(*held)
        assert got == [f"{number:02}" for number in range(12)]

    def test_ended_leases_make_room(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True, partitions=1, max_in_flight=3)
        for _ in range(9):
            queue.send("x", group="limited")
        assert len(queue.receive(2)) == 2
        given = queue.receive()
        assert len(given) == 1
        queue.give_back(*given)
        assert len(queue.receive()) == 1
        world.clock.pass_seconds(31)
        assert len(queue.receive_all()) == 3

    def test_it_is_changed_at_any_time(self, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True, partitions=1)
        fill(queue, "one", 64)
        assert queue.show()["max_in_flight"] is None
        assert len(queue.receive()) == 16
        assert queue.patch(max_in_flight=20).json["max_in_flight"] == 20
        assert len(queue.receive_all()) == 4
        assert queue.patch(max_in_flight=None).status == 200
        assert len(queue.receive_all()) == 44

    def test_a_receiver_has_the_limit_for_itself(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True, partitions=1, max_in_flight=2)
        queue.add_receiver("audit")
        fill(queue, "one", 16)
        world.settle()
        assert len(queue.receive()) == len(queue.receive(receiver="audit")) == 2

    @pytest.mark.parametrize("held", [5, 256])
    def test_a_group_at_its_limit_costs_no_more_than_its_reading(
        self, make_queue: MakeQueue, held: int
    ) -> None:
        queue = make_queue("orders", fair=True, partitions=1, max_in_flight=held)
        for _ in range(held + 40):
            queue.send("x" * 100, group="limited")
        assert len(queue.receive_all()) == held
        look = partial(
            queue.client.post, f"{queue.path}/messages/receive", {"max": 1, "wait_seconds": 0}
        )
        look()
        reply, units = read_units(queue.client.world, look)
        assert reply.json["messages"] == []
        assert units <= 2 + held / 16


class TestRepetitions:
    def messages(self) -> list[dict[str, Any]]:
        return [{"body": str(n), "group": f"g{n % 3}"} for n in range(9)]

    @pytest.mark.parametrize("change", [{}, {"partitions": 9}, {"delay_seconds": 5}])
    def test_a_repeated_send_stores_nothing_also_after_a_change_of_the_queue(
        self, world: World, make_queue: MakeQueue, change: dict[str, int]
    ) -> None:
        queue = make_queue("orders", fair=True)
        again = {"attempt": attempt(world), "atomic": False}
        first = queue.try_send(self.messages(), **again)
        assert queue.patch(**change).status == 200
        second = queue.try_send(self.messages(), **again)
        assert (first.status, second.status) == (200, 200)
        ids = [[each["id"] for each in reply.json["messages"]] for reply in (first, second)]
        assert ids[0] == ids[1]
        world.clock.pass_seconds(6)
        assert len(queue.receive_all()) == 9

    def test_a_late_send_is_stored_once_under_its_groups(
        self, world: World, queue: TestQueue
    ) -> None:
        token = attempt(world)
        world.clock.pass_seconds(10)
        for _ in range(2):
            assert queue.try_send(self.messages(), attempt=token).status == 201
        assert Counter(groups(queue.receive_all())) == {"g0": 3, "g1": 3, "g2": 3}

    @pytest.mark.parametrize("backlog", [0, 300])
    def test_a_repeated_receive_answers_the_same(
        self, world: World, queue: TestQueue, backlog: int
    ) -> None:
        fill(queue, "loud", backlog)
        for _ in range(backlog // 32):
            queue.receive()
        for group in GROUPS:
            queue.send("x", "y", "z", group=group)
        token = attempt(world)
        first = queue.receive(8, attempt=token)
        for _ in range(2):
            queue.receive(8)
        again = queue.receive(8, attempt=token, repeat=True)
        assert {each["receipt"] for each in again} == {each["receipt"] for each in first}


class TestSettlement:
    def test_a_given_back_message_stays_in_its_group(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 60)
        queue.send("x", group="quiet")
        world.clock.pass_seconds(5)
        held = next(m for _ in range(2) for m in queue.receive(1) if m["group"] == "quiet")
        for _ in range(3):
            queue.give_back(held, delay_seconds=5)
            world.clock.pass_seconds(5)
            taken = [m for _ in range(2) for m in queue.receive(1)]
            assert "quiet" in groups(taken)
            held = next(m for m in taken if m["group"] == "quiet")
        assert held["receive_count"] == 4
        queue.delete(held)
        keys = {item["sk"]["S"][:25] for item in parcels(world)}
        assert len(keys) == 2
        assert all(key.endswith("#") for key in keys)

    def test_a_dead_letter_comes_back_into_its_group(self, make_queue: MakeQueue) -> None:
        dead = make_queue("dead", fair=True)
        queue = make_queue("orders", fair=True, dead_letter={"queue": "dead", "max_receives": 2})
        queue.send("x", group="quiet")
        for _ in range(2):
            queue.give_back(*queue.receive())
            queue.client.world.clock.pass_seconds(5)
        assert queue.receive() == []
        queue.client.world.settle()
        assert groups(dead.peek()) == ["quiet"]
        assert dead.run("redrive", to="orders")["done"] == 1
        assert groups(queue.receive()) == ["quiet"]

    def test_retries_wait_their_time(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("dead")
        waits = {"policy": "custom", "waits": [600, 600]}
        made = {"queue": "dead", "max_receives": 9}
        queue = make_queue("orders", fair=True, retry=waits, dead_letter=made)
        queue.send("x", group="failing")
        queue.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(2)
        for _ in range(2):
            assert queue.receive() == []
            world.settle()  # which moves it to its due time
        world.clock.pass_seconds(600)
        assert groups(queue.receive()) == ["failing"]

    def test_those_above_an_age_become_dead_letters(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        made = {"queue": "dead", "max_age_seconds": 300}
        queue = make_queue("orders", fair=True, partitions=1, dead_letter=made)
        for group in GROUPS:
            fill(queue, group, 20)
            queue.send("later", group=group, delay_seconds=200)
        world.settle()
        for _ in range(8):
            sweep(world, after_seconds=60)
        assert len(dead.receive_all()) == 8 * 21

    def test_deleted_messages_are_rewound(self, make_queue: MakeQueue, now: Any) -> None:
        queue = make_queue("orders", fair=True, rewind_seconds=3_600)
        begun = now()
        for group in GROUPS:
            queue.send("x", "y", group=group)
        queue.delete(*queue.receive_all())
        assert queue.run("rewind", to=begun)["done"] == 16
        assert Counter(groups(queue.receive_all())) == dict.fromkeys(GROUPS, 2)

    def test_it_is_purged_counted_and_peeked_at(self, queue: TestQueue) -> None:
        for group in GROUPS:
            queue.send("x", group=group)
            queue.send("x", group=group, delay_seconds=60)
        queue.receive(3)
        assert queue.counts() == {"active": 5, "inactive": 3, "delayed": 8}
        assert len(queue.peek()) == 5
        assert queue.run("purge")["state"] == "succeeded"
        assert queue.counts() == {}
        assert queue.receive() == []


class TestByTheirIds:
    def test_a_named_group_bounds_the_search(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True)
        for group in GROUPS:
            fill(queue, group, 160)
        (sent,) = queue.send("x" * 1_000, group="quiet", delay_seconds=60)
        reply, units = read_units(world, lambda: ask(queue, sent["id"], group="quiet"))
        assert reply.json["state"] == "delayed"
        assert units <= UNITS
        assert ask(queue, sent["id"], group="loud").code == "MessageNotFound"

    def test_a_message_is_cancelled_and_put_off(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 40)
        one, two = queue.send("1", "2", group="quiet")
        assert cancel(queue, one["id"], "group=quiet").status == 204
        assert find(queue, two["id"])["state"] == "active"
        due = due_at(queue, two["id"], delay_seconds=60)
        assert due == world.clock.now_ms() + 60_000
        assert "quiet" not in groups(queue.receive_all(visibility_timeout_seconds=600))
        world.clock.pass_seconds(60)
        assert groups(queue.receive_all()) == ["quiet"]


class TestCopies:
    def test_a_receiver_takes_turns_too(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        fill(queue, "loud", 100)
        queue.send("x", group="quiet")
        world.settle()
        received = [m for _ in range(2) for m in queue.receive(1, receiver="audit")]
        assert "quiet" in groups(received)
        assert len(queue.receive_all(receiver="audit")) == 99

    def test_a_receiver_from_the_beginning_has_the_backlog_in_its_groups(
        self, world: World, queue: TestQueue
    ) -> None:
        fill(queue, "loud", 64)
        queue.send("x", group="moved")
        queue.send("x", group="quiet")
        world.clock.pass_seconds(5)
        held = queue.receive_all()
        queue.give_back(*(each for each in held if each["group"] == "moved"), delay_seconds=60)
        queue.add_receiver("audit", start="earliest")
        received = [m for _ in range(4) for m in queue.receive(1, receiver="audit")]
        assert {"loud", "moved", "quiet"} <= set(groups(received))
        assert len(queue.receive_all(receiver="audit")) == 62
        assert all(len(item["sk"]["S"].split("#")[0]) == 24 for item in parcels(world))

    def test_a_published_message_has_the_turn_of_its_group(
        self, world: World, queue: TestQueue, topic: TestTopic
    ) -> None:
        topic.subscribe("all", protocol="queue", endpoint="orders")
        for _ in range(5):
            topic.publish(*("x" * 16), group="loud")
        topic.publish("1", "2", group="quiet")
        world.settle()
        received = [m for _ in range(2) for m in queue.receive(1)]
        assert "quiet" in groups(received)
        assert len(queue.receive_all()) == 80

    def test_a_message_published_for_later_comes_then(
        self, world: World, queue: TestQueue, topic: TestTopic
    ) -> None:
        topic.subscribe("all", protocol="queue", endpoint="orders")
        topic.publish("x", group="later", delay_seconds=30)
        topic.publish("x", group="now")
        world.settle()
        assert groups(queue.receive_all(visibility_timeout_seconds=600)) == ["now"]
        world.clock.pass_seconds(30)
        assert groups(queue.receive_all()) == ["later"]

    def test_they_are_metered_once(self, world: World, queue: TestQueue) -> None:
        queue.send("x", group="a")
        world.clock.pass_seconds(5)
        queue.give_back(*queue.receive())
        world.clock.pass_seconds(10)
        queue.delete(*queue.receive())
        world.settle()
        kinds = {name.rpartition(" ")[2]: count for name, count in usage(world).items()}
        assert kinds["deleted"] == 1
