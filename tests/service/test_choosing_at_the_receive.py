"""What a receive asks for: messages of one group, or with a value of an attribute."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, bodies
from tests.service.test_large_messages import noise
from tests.service.test_receiving import attempt
from tests.service.topics import TestTopic

from cirrusmq.receiving.selected import SELECT_UNITS
from cirrusmq_local.testing import Client, Reply, World

_chance = random.Random(3)
RED = {"name": "color", "value": "red"}
KINDS: dict[str, dict[str, Any]] = {"ordered": {"ordered": True}, "fair": {"fair": True}}


def ask(queue: TestQueue, **fields: Any) -> Reply:
    return queue.client.post(f"{queue.path}/messages/receive", fields)


def where(queue: TestQueue, limit: int = 16, **fields: Any) -> dict[str, Any]:
    """The answer to a receive by an attribute."""
    reply = ask(queue, max=limit, where=RED, **fields)
    assert reply.status == 200, reply.text
    answer: dict[str, Any] = reply.json
    return answer


def walk(queue: TestQueue, limit: int = 16) -> tuple[list[str], int]:
    """The bodies of all calls until everything is seen, sorted, and how many calls it took."""
    found: list[str] = []
    answer = where(queue, limit)
    for calls in range(1, 2_000):
        found += bodies(answer["messages"])
        if answer["seen_all"]:
            return sorted(found), calls
        answer = where(queue, limit, after=answer["after"])
    raise AssertionError("it never ends")


def send_colors(queue: TestQueue, *colors: str) -> None:
    for number, color in enumerate(colors):
        queue.send(f"{color} {number}", attributes={"color": color})


class TestAGroup:
    """`group` of a receive."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_its_messages_alone_come_in_order(self, make_queue: MakeQueue, kind: str) -> None:
        queue = make_queue(**KINDS[kind])
        for number in range(3):
            for group in ("a", "b", "c"):
                queue.send(f"{group}{number}", group=group)
            queue.client.world.clock.pass_seconds(0.01)

        assert bodies(queue.receive(2, group="b")) == ["b0", "b1"]
        if kind == "ordered":  # the group waits for what is held
            assert queue.receive(group="b") == []
        else:
            assert bodies(queue.receive(group="b")) == ["b2"]
        assert bodies(queue.receive(group="none")) == []
        assert bodies(queue.receive(group="c")) == ["c0", "c1", "c2"]

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("others", [0, 300])
    def test_a_look_costs_half_a_unit_whatever_else_waits(
        self, world: World, make_queue: MakeQueue, kind: str, others: int
    ) -> None:
        queue = make_queue(partitions=2, **KINDS[kind])
        for number in range(others):
            queue.send("x", group=f"other {number}")
        queue.send("x", group="a")
        queue.receive(1, group="nothing")  # the queue, and that the key receives

        empty = world.units(lambda: queue.receive(1, group="nothing"))
        one = world.units(lambda: queue.receive(1, group="a"))

        assert empty == (0, 0.5)
        assert one[0] == 1
        assert one[1] <= 1.5

    def test_messages_sent_before_partitions_grew_are_found(self, make_queue: MakeQueue) -> None:
        queue = make_queue(fair=True, partitions=1)
        groups = [f"group {number}" for number in range(12)]
        for group in groups:
            queue.send("before", group=group)
        for partitions in (3, 7):
            assert queue.patch(partitions=partitions).status == 200
            queue.client.world.clock.pass_seconds(400)
            for group in groups:
                queue.send(f"with {partitions}", group=group)

        for group in groups:
            found = [*queue.receive(group=group), *queue.receive(group=group)]
            found += queue.receive(group=group)
            assert sorted(bodies(found)) == ["before", "with 3", "with 7"]

    def test_max_in_flight_holds(self, make_queue: MakeQueue) -> None:
        queue = make_queue(fair=True, partitions=1, max_in_flight=2)
        queue.send("1", "2", "3", group="a")
        for body in ("4", "5"):
            queue.send(body, group="a")

        held = queue.receive(group="a")

        assert len(held) == 2
        assert queue.receive(group="a") == []
        queue.delete(held[0])
        assert len(queue.receive(group="a")) == 1

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_lost_answer_is_given_again(self, make_queue: MakeQueue, kind: str) -> None:
        queue = make_queue(**KINDS[kind])
        for group in ("a", "b"):
            queue.send("1", "2", group=group)
        mine = attempt(queue.client.world)

        first = queue.receive(group="b", attempt=mine)
        again = queue.receive(group="b", attempt=mine, repeat=True)

        assert bodies(first) == ["1", "2"]
        assert [each["receipt"] for each in again] == [each["receipt"] for each in first]

    def test_receivers_and_subscriptions_have_it(
        self, world: World, make_queue: MakeQueue, topic: TestTopic
    ) -> None:
        queue = make_queue(fair=True)
        queue.add_receiver("audit")
        pulled = topic.subscribe("pulled", ordered=True)
        for group in ("a", "b"):
            queue.send(group, group=group)
            topic.publish(group, group=group)
        world.settle()

        assert bodies(queue.receive(group="b", receiver="audit")) == ["b"]
        assert bodies(pulled.receive(group="b")) == ["b"]
        assert bodies(pulled.receive(group="b")) == []
        assert bodies(pulled.receive()) == ["a"]

    def test_used_up_messages_go_to_the_dead_letters(self, make_queue: MakeQueue) -> None:
        dead = make_queue("dead", ordered=True)
        queue = make_queue(ordered=True, dead_letter={"queue": "dead", "max_receives": 1})
        queue.send("1", "2", group="a")
        queue.give_back(*queue.receive(1, group="a"))

        assert bodies(queue.receive(1, group="a")) == ["2"]
        assert bodies(dead.receive(group="a")) == ["1"]


class TestAnAttribute:
    """`where` of a receive."""

    def test_messages_with_the_value_come_and_all_else_stays(self, queue: TestQueue) -> None:
        send_colors(queue, "red", "blue", "red", "green")
        queue.send("plain")

        found, calls = walk(queue)

        assert (found, calls) == (["red 0", "red 2"], 1)
        rest = queue.receive_all()
        assert sorted(bodies(rest)) == ["blue 1", "green 3", "plain"]
        assert {each["receive_count"] for each in rest} == {1}

    def test_it_is_a_lease_as_any(self, world: World, queue: TestQueue) -> None:
        send_colors(queue, "red")
        (held,) = where(queue, visibility_timeout_seconds=5)["messages"]
        assert where(queue)["messages"] == []
        world.clock.pass_seconds(6)
        (again,) = where(queue)["messages"]
        assert (held["receive_count"], again["receive_count"]) == (1, 2)
        queue.delete(again)
        assert queue.counts() == {}

    def test_a_call_is_bounded_and_the_next_one_goes_on(
        self, world: World, queue: TestQueue
    ) -> None:
        for _ in range(500):
            queue.send(base64.b64encode(_chance.randbytes(500)).decode())
        send_colors(queue, "red")
        where(queue)  # the first one notes that the key receives

        units: list[float] = []
        found: list[str] = []
        answer = where(queue)
        while not answer["seen_all"]:
            found += bodies(answer["messages"])
            before = world.engine.capacity()["read_units"]
            answer = where(queue, after=answer["after"])
            units.append(world.engine.capacity()["read_units"] - before)

        assert {*found, *bodies(answer["messages"])} <= {"red 0"}
        assert len(units) > 3
        assert max(units) <= SELECT_UNITS + 1

    def test_each_message_is_found_in_a_long_queue(self, queue: TestQueue) -> None:
        for number in range(300):
            queue.send(f"{number}", attributes={"color": "red" if number % 50 == 7 else "blue"})

        found, calls = walk(queue, limit=1)

        assert found == sorted(str(number) for number in range(300) if number % 50 == 7)
        assert calls > 5

    @pytest.mark.parametrize("large", [False, True])
    def test_contents_in_the_log_are_read(self, make_queue: MakeQueue, large: bool) -> None:
        queue = make_queue(max_message_bytes=1_048_576)
        size = 200_000 if large else 2_000
        for color in ("blue", "red", "green", "red"):
            message = {**noise(size), "attributes": {"color": color}}
            assert queue.try_send([message]).status == 201

        answer = where(queue)
        found: list[Message] = answer["messages"]
        while not answer["seen_all"]:
            answer = where(queue, after=answer["after"])
            found += answer["messages"]

        assert [each["attributes"] for each in found] == [{"color": "red"}] * 2
        assert all(len(base64.b64decode(each["body_base64"])) == size for each in found)

    def test_values_of_bytes_and_names_of_sdks(self, queue: TestQueue) -> None:
        queue.send("bytes", attributes={"key": {"base64": "AP8="}})
        queue.send("text", attributes={"key": "AP8="})
        given = {"name": "key", "value": {"base64": "AP8="}}

        found = ask(queue, max=16, where=given).json["messages"]

        assert bodies(found) == ["bytes"]

    def test_one_of_several_in_a_parcel(self, queue: TestQueue) -> None:
        messages = [
            {"body": f"{color} {n}", "attributes": {"color": color}}
            for n, color in enumerate(["blue", "red", "blue", "red", "red"])
        ]
        assert queue.try_send(messages).status == 201

        first = where(queue, 2)
        assert not first["seen_all"]
        second = where(queue, 2, after=first["after"])

        assert bodies(first["messages"]) == ["red 1", "red 3"]
        assert bodies(second["messages"]) == ["red 4"]

    def test_delayed_and_used_up_messages_do_not_come(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        make_queue("dead")
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 1})
        queue.send("later", attributes={"color": "red"}, delay_seconds=10)
        queue.send("used up", attributes={"color": "red"})
        queue.give_back(*queue.receive())

        assert walk(queue) == ([], 1)
        world.settle()
        world.clock.pass_seconds(11)
        assert walk(queue)[0] == ["later"]

    def test_receivers_and_subscriptions_have_it(
        self, world: World, queue: TestQueue, topic: TestTopic
    ) -> None:
        queue.add_receiver("audit")
        pulled = topic.subscribe("pulled")
        send_colors(queue, "red", "blue")
        topic.publish("red", attributes={"color": "red"})
        topic.publish("blue", attributes={"color": "blue"})
        world.settle()

        assert bodies(where(queue, receiver="audit")["messages"]) == ["red 0"]
        assert bodies(where(pulled)["messages"]) == ["red"]
        pulled.client.post(f"{pulled.path}/pause")
        assert where(pulled) == {"messages": [], "seen_all": False, "paused": True}

    def test_it_deletes_first_as_other_receives_do(self, queue: TestQueue) -> None:
        send_colors(queue, "red", "red")
        (held,) = where(queue, 1)["messages"]
        answer = where(queue, 1, delete=[held["receipt"]])
        assert answer["deleted"] == [held["receipt"]]
        assert len(answer["messages"]) == 1

    def test_a_key_is_good_for_its_own_question_alone(
        self, make_queue: MakeQueue, queue: TestQueue
    ) -> None:
        send_colors(queue, *["red"] * 3)
        other = make_queue("other")
        after = where(queue, 1)["after"]

        assert ask(other, where=RED, after=after).json["parameter"] == "after"
        blue = RED | {"value": "blue"}
        assert ask(queue, where=blue, after=after).json["parameter"] == "after"
        assert ask(queue, after=after).json["detail"] == "after: is allowed only with where"

    def test_a_reader_by_a_grant_has_it(self, queue: TestQueue, bob: Client) -> None:
        send_colors(queue, "red")
        queue.client.put(f"{queue.path}/grants/bob", {"permission": "receive"})
        found = bob.post("/queues/alice:orders/messages/receive", {"where": RED}).json
        assert bodies(found["messages"]) == ["red 0"]
