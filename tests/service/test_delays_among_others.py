"""Messages that are published for later, among rewinds, large bodies, look-ups, hands on them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.service.buckets import Bucket
from tests.service.conftest import MakeQueue, bodies
from tests.service.test_cancelling import cancel, due_at
from tests.service.test_costs import b64
from tests.service.test_handing_out_again import ask as hand_out_again
from tests.service.test_invoking import INVOKE, Handler
from tests.service.test_looking_up import ask, find
from tests.service.test_pausing import call
from tests.service.test_rewinding_groups import rewind, take_in_order
from tests.service.topics import Schedules, TestSubscription, TestTopic, log_bodies

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Subscriber, World
from cirrusmq_local.testing.clock import START_MS

DAY = 86_400
LATER = {"delay_seconds": 100}


def taken(world: World, group: TestSubscription, seconds: int) -> dict[str, int]:
    """Receive and delete, a look a second: each body, and the second of the world's time."""
    found: dict[str, int] = {}
    until_ms = world.clock.now_ms() + seconds * 1_000
    while world.clock.now_ms() < until_ms:
        for message in group.receive():
            assert message["body"] not in found, "it came twice"
            found[message["body"]] = (world.clock.now_ms() - START_MS) // 1_000
            group.delete(message)
        world.clock.pass_seconds(1)
    return found


class TestGroupsInTime:
    @pytest.mark.few(1)
    def test_a_rewind_before_it_is_due_brings_it_once_and_then(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        begun = format_time(START_MS)
        topic.publish("later", **LATER)
        topic.publish("now")
        assert list(taken(world, group, 10)) == ["now"]
        rewind(group, begun)
        found = taken(world, group, 200)
        assert list(found) == ["now", "later"]
        assert 100 <= found["later"] <= 101

    def test_a_rewind_after_it_was_due_brings_it_again(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("later", **LATER)
        assert 100 <= taken(world, group, 150)["later"] <= 101
        rewind(group, format_time(START_MS))
        assert list(taken(world, group, 50)) == ["later"]

    def test_one_published_before_the_time_of_a_rewind_keeps_its_place(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("later", **LATER)
        world.clock.pass_seconds(10)
        to = format_time(world.clock.now_ms())
        topic.publish("sooner", delay_seconds=50)
        rewind(group, to)
        found = taken(world, group, 150)
        assert list(found) == ["sooner", "later"]
        assert 60 <= found["sooner"] <= 61
        assert 100 <= found["later"] <= 101
        rewind(group, to)
        assert list(taken(world, group, 20)) == ["sooner"]

    def test_replay_and_fan_out_put_the_same_parcel(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("before", **LATER)
        rewind(group, format_time(START_MS), settle=False)
        due: dict[str, int] = {"before": 100}
        for body in ("while it runs", "and then"):
            world.clock.pass_seconds(0.001)
            topic.try_publish([{"body": body, "delay_seconds": 50}])
            due[body] = (world.clock.now_ms() - START_MS) // 1_000 + 50
        assert group.receive() == []
        world.settle()
        found = taken(world, group, 200)
        assert found.keys() == due.keys()
        assert all(due[body] <= second <= due[body] + 1 for body, second in found.items())

    def test_a_group_starting_earlier_gets_it_when_due(
        self, world: World, topic: TestTopic
    ) -> None:
        topic.subscribe("keeper")
        messages: list[dict[str, Any]] = [{"body": "now"}, {"body": "later", **LATER}]
        topic.try_publish(messages)
        world.settle()
        world.clock.pass_seconds(60)
        group = topic.subscribe("group", start="earliest")
        world.settle()
        found = taken(world, group, 100)
        assert list(found) == ["now", "later"]
        assert 100 <= found["later"] <= 101

    @pytest.mark.parametrize("numbered", [False, True])
    def test_an_ordered_group_starting_earlier_waits_for_it_in_order(
        self, world: World, topic: TestTopic, numbered: bool
    ) -> None:
        """It was published before the group was: its publisher was not told."""
        topic.subscribe("keeper")
        if numbered:  # another message of each publish has a place in an order
            topic.subscribe("strict", ordered=True, filter={"tags": ["strict"]})
        kept = {"body": "kept", "tags": ["strict"], "group": "h"}
        for number in range(3):
            later = LATER if number == 1 else {}
            message: dict[str, Any] = {"body": str(number), "group": "g", **later}
            topic.try_publish([message, kept] if numbered else [message])
            world.settle()
            world.clock.pass_seconds(1)
        group = topic.subscribe("group", start="earliest", ordered=True)
        world.settle()
        world.clock.pass_seconds(30)
        assert [body for body in take_in_order(group) if body != "kept"] == ["0"]
        world.clock.pass_seconds(100)
        assert take_in_order(group) == ["1", "2"]


class TestLargeBodies:
    @pytest.mark.parametrize("seconds", [100, DAY - 60])
    @pytest.mark.parametrize("attributes", [{}, {"rewind_seconds": 60}])
    def test_every_reader_has_them_when_they_are_due(
        self,
        world: World,
        topic: TestTopic,
        make_queue: MakeQueue,
        bucket: Bucket,
        subscriber: Subscriber,
        schedules: Schedules,
        seconds: int,
        attributes: dict[str, Any],
    ) -> None:
        """Near the end of a topic's life too: objects end as early as their rules allow."""
        queue, group = make_queue(**attributes), topic.subscribe("group")
        topic.subscribe("copy", "queue", endpoint="orders")
        topic.subscribe("web", "http")
        eyes = topic.subscribe("eyes", mode="broadcasting")
        chance = random.Random(3)
        bodies = [b64(chance.randbytes(15_000)) for _ in range(2)]
        messages: list[dict[str, Any]] = [
            {"body_base64": bodies[0]},
            {"body_base64": bodies[1], "delay_seconds": seconds},
        ]
        assert topic.try_publish(messages).status == 201
        schedules.pass_seconds(5)
        assert len(bucket.keys) == 1
        for place in range(2):
            for source in (group, queue):
                (message,) = source.receive()
                assert message["body_base64"] == bodies[place]
                source.delete(message)
            posted = [json.loads(body)["msgBody"] for _, _, body in world.posts]
            assert posted == bodies[: place + 1]
            page = eyes.log()["messages"]
            assert [each["body_base64"] for each in page] == bodies[: place + 1]
            schedules.pass_seconds(seconds - 10)
            if not place:
                assert group.receive() == queue.receive() == []
                assert len(eyes.log()["messages"]) == len(world.posts) == 1
                schedules.pass_seconds(15)


class TestLookingOn:
    def test_a_match_tells_the_receivers_and_keeps_nothing(
        self, world: World, topic: TestTopic, group: TestSubscription, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http")
        reply = topic.client.post(f"{topic.path}/match", {"messages": [{"body": "x", **LATER}]})
        assert reply.status == 200, reply.text
        assert "group" in reply.text
        topic.subscribe("strict", ordered=True)
        reply = topic.client.post(f"{topic.path}/match", {"messages": [{"body": "x", **LATER}]})
        assert (reply.code, reply.json["parameter"]) == (
            "InvalidParameter",
            "messages[0].delay_seconds",
        )
        schedules.pass_seconds(200)
        assert group.receive() == []
        assert not world.posts

    def test_a_trace_has_it_pending_until_it_is_delivered_but_for_a_queue(
        self,
        topic: TestTopic,
        make_queue: MakeQueue,
        subscriber: Subscriber,
        schedules: Schedules,
    ) -> None:
        make_queue("inbox")
        group = topic.subscribe("group")
        topic.subscribe("web", "http")
        topic.subscribe("copy", "queue", endpoint="inbox")
        (sent,) = topic.publish("later", **LATER)

        def states() -> dict[str, str]:
            return {name: each["state"] for name, each in topic.trace(sent["id"]).items()}

        for _ in range(2):
            assert states() == {"group": "pending", "web": "pending", "copy": "delivered"}
            schedules.pass_seconds(50)
        assert states() == {"group": "pending", "web": "delivered", "copy": "delivered"}
        group.delete(*group.receive())
        assert states() == {"group": "delivered", "web": "delivered", "copy": "delivered"}

    def test_counts_and_peeks_tell_it_apart(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("later", **LATER)
        topic.publish("now")
        assert bodies(group.peek()) == ["now"]
        assert group.show()["counts"] == {"active": 1, "inactive": 0, "delayed": 1}
        world.clock.pass_seconds(100)
        assert sorted(bodies(group.peek())) == ["later", "now"]
        assert group.show()["counts"] == {"active": 2, "inactive": 0, "delayed": 0}

    @pytest.mark.parametrize("attributes", [{}, {"rewind_seconds": 3_600}])
    def test_in_a_queue_it_is_found_cancelled_and_rescheduled_by_its_id(
        self, world: World, topic: TestTopic, make_queue: MakeQueue, attributes: dict[str, Any]
    ) -> None:
        queue = make_queue("inbox", delay_seconds=5, **attributes)
        topic.subscribe("copy", "queue", endpoint="inbox")
        sent = topic.publish("cancelled", "put off", "as it was", **LATER)
        for each in sent:
            assert find(queue, each["id"])["state"] == "delayed"
        assert cancel(queue, sent[0]["id"]).status == 204
        assert ask(queue, sent[0]["id"]).code == "MessageNotFound"
        begun_ms = world.clock.now_ms()
        assert due_at(queue, sent[1]["id"], delay_seconds=300) == begun_ms + 300_000
        # The stream may bring the record once more.
        hand_out_again(world, begun_ms - 60_000)
        world.settle()
        world.clock.pass_seconds(100)
        assert [each["body"] for each in queue.receive_all()] == ["as it was"]
        world.clock.pass_seconds(200)
        assert "put off" in queue.bodies()

    def test_handing_out_again_neither_hastens_nor_doubles_it(
        self,
        world: World,
        topic: TestTopic,
        group: TestSubscription,
        subscriber: Subscriber,
        schedules: Schedules,
    ) -> None:
        topic.subscribe("web", "http")
        eyes = topic.subscribe("eyes", mode="broadcasting")
        since_ms = world.clock.now_ms() - 1_000
        topic.publish("later", **LATER)
        schedules.pass_seconds(50)
        hand_out_again(world, since_ms)
        schedules.pass_seconds(40)
        assert group.receive() == []
        assert not subscriber.deliveries
        schedules.pass_seconds(20)
        assert [each["body"] for each in group.receive()] == ["later"]
        assert subscriber.bodies() == ["later"]
        assert log_bodies(eyes.log()) == ["later"]
        hand_out_again(world, since_ms)
        schedules.pass_seconds(10)
        assert subscriber.bodies() == ["later"]


class TestHands:
    def test_retry_now_leaves_it_until_it_is_due(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        retry = {"policy": "custom", "waits": [3_600]}
        web = topic.subscribe("web", "http", retry=retry)
        subscriber.down()
        topic.publish("sick")
        topic.publish("later", **LATER)
        schedules.pass_seconds(10)
        call(web, "retry")
        schedules.pass_seconds(10)
        assert subscriber.bodies() == ["sick", "sick"]
        schedules.pass_seconds(90)
        assert subscriber.bodies() == ["sick", "sick", "later"]
        subscriber.up()
        call(web, "retry")
        schedules.pass_seconds(1)
        assert [each.text for each in subscriber.taken if each.text == "later"] == ["later"]

    def test_a_group_paused_beyond_its_time_gets_it_when_resumed(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("later", **LATER)
        call(group, "pause")
        world.clock.pass_seconds(200)
        assert group.receive() == []
        call(group, "resume")
        assert [each["body"] for each in group.receive()] == ["later"]

    @pytest.mark.parametrize("retry", [{"policy": "backoff"}, {"policy": "exponential_decay"}])
    def test_a_waiting_one_is_on_time_under_another_policy(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "unordered"})
        begun_ms = topic.client.world.clock.now_ms()
        topic.publish("later", **LATER)
        topic.publish("sooner", delay_seconds=50)
        assert web.patch(retry=retry).status == 200
        for number in range(12):
            topic.publish(str(number))
            schedules.pass_seconds(10)
        for body, due in (("sooner", 50), ("later", 100)):
            (at_ms,) = subscriber.times(body)
            assert due <= (at_ms - begun_ms) / 1_000 <= due + 0.2
        assert len(subscriber.deliveries) == 14

    def test_a_groups_function_is_called_with_it_on_time(
        self, world: World, topic: TestTopic, make_queue: MakeQueue, schedules: Schedules
    ) -> None:
        handler = Handler(world)
        make_queue("inbox", invoke=INVOKE)
        topic.subscribe("copy", "queue", endpoint="inbox")
        topic.subscribe("group", invoke=INVOKE)
        begun_ms = world.clock.now_ms()
        topic.publish("later", delay_seconds=900)
        schedules.pass_seconds(1_000)
        late = [(at_ms - begun_ms) / 1_000 for at_ms in handler.times["later"]]
        assert len(late) == 2
        assert all(900 <= each <= 902 for each in late)


class TestSharedPushes:
    def test_the_urls_of_a_batch_have_it_on_time_each(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        names = [f"web{number}" for number in range(5)]
        for name in names:
            topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}")
        begun_ms = world.clock.now_ms()
        world.clock.pass_seconds(0.001)
        topic.try_publish([{"body": "later", **LATER}, {"body": "now"}])
        world.run_stream("fan_out")
        ((_, event),) = [told for told in world.invoked if told[0] == "push"]
        assert len(event["others"]) == 4
        schedules.pass_seconds(200)
        for name in names:
            assert subscriber.bodies(name) == ["now", "later"]
            (at_ms,) = subscriber.times("later", name)
            assert 100 <= (at_ms - begun_ms) / 1_000 <= 100.2

    def test_a_rate_holds_for_messages_due_together(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http", rate=4)
        at = format_time(START_MS + 60_000)
        for number in range(3):
            topic.publish(*(f"{number}.{place}" for place in range(10)), deliver_at=at)
        schedules.pass_seconds(120)
        times = sorted(each.at_ms for each in subscriber.deliveries)
        assert len(times) == 30
        assert times[0] >= START_MS + 60_000
        assert all(later - before >= 1_000 for before, later in zip(times, times[4:], strict=False))
