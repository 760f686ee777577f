"""Flow control: a URL's subscriber is never sent more messages a second than `rate` says."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.test_clock_skew import elsewhere
from tests.service.topic_crashes import Crashes
from tests.service.topics import Schedules, TestTopic

from cirrusmq.push.rate_limiter import Pace, taken_over
from cirrusmq.wiring import adapters
from cirrusmq_local.testing import Client, Subscriber, World


def busiest_second(subscriber: Subscriber) -> int:
    """The most attempts within a second, wherever it begins."""
    times = sorted(each.at_ms for each in subscriber.deliveries)
    return max(sum(begin <= time < begin + 1_000 for time in times) for begin in times)


def seconds_of(subscriber: Subscriber) -> float:
    """From the first attempt to the last one."""
    times = [each.at_ms for each in subscriber.deliveries]
    return (max(times) - min(times)) / 1_000


def publish(topic: TestTopic, count: int) -> list[str]:
    bodies = [f"{number:03d}" for number in range(count)]
    for first in range(0, count, 16):
        topic.publish(*bodies[first : first + 16])
    return bodies


class TestContract:
    def test_it_is_of_urls_alone_and_is_shown_changed_and_removed(self, topic: TestTopic) -> None:
        plain, web = topic.subscribe("plain", "http"), topic.subscribe("web", "http", rate=1_000)
        assert plain.show()["rate"] is None
        assert web.show()["rate"] == 1_000
        same = {"protocol": "http", "endpoint": web.shown["endpoint"]}
        assert topic.try_subscribe("web", **same).status == 200
        assert topic.try_subscribe("web", rate=5, **same).code == "AlreadyExists"
        assert web.patch(rate=1).json["rate"] == 1
        assert web.patch(rate=None).json["rate"] is None
        assert "rate" not in topic.subscribe("pull").show()


class TestRate:
    @pytest.mark.parametrize("rate", [1, 3, 20, 50])
    def test_messages_over_it_wait_in_order(
        self, topic: TestTopic, subscriber: Subscriber, rate: int
    ) -> None:
        topic.subscribe("web", "http", rate=rate)
        count = min(3 * rate, 64)
        bodies = publish(topic, max(count, 5))
        assert subscriber.bodies() == bodies
        assert busiest_second(subscriber) <= rate

    @pytest.mark.parametrize("rate", [10, 100, 1_000])
    def test_it_is_made_use_of(self, topic: TestTopic, subscriber: Subscriber, rate: int) -> None:
        topic.subscribe("web", "http", rate=rate)
        bodies = publish(topic, 96)
        assert sorted(subscriber.bodies()) == bodies
        assert busiest_second(subscriber) <= rate
        assert seconds_of(subscriber) <= 96 / rate / 0.9 + 0.1

    def test_a_holder_goes_on_from_its_predecessor(
        self, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http", rate=2)
        for number in range(8):  # each has an invocation of its own
            topic.publish(str(number))
        assert subscriber.bodies() == [str(number) for number in range(8)]
        assert busiest_second(subscriber) == 2

    def test_an_idle_second_costs_a_message_no_wait(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http", rate=1)
        topic.publish("first")
        world.clock.pass_seconds(2)
        before_ms = world.clock.now_ms()
        topic.publish("second")
        assert world.clock.now_ms() - before_ms < 100

    @pytest.mark.parametrize("ahead", [-1.9, 1.9])
    def test_differing_clocks_do_not_add_to_it(self, cloud: World, ahead: int) -> None:
        """The next holder's clock may say that a second is over; another second's worth is not."""
        subscriber, topic = cloud.subscriber(), TestTopic(cloud.client("alice"))
        topic.subscribe("web", "http", rate=10)
        for number in range(12):
            topic.try_publish([{"body": f"{number}.{place}"} for place in range(5)])
            cloud.run_stream("fan_out")
            with elsewhere(cloud, ahead * (number % 2)):
                while cloud.invoked:
                    cloud.run(*cloud.invoked.popleft())
        assert len(subscriber.deliveries) == 60
        assert busiest_second(subscriber) <= 10

    @pytest.mark.parametrize("policy", ["unordered", "exponential_decay", "backoff"])
    def test_retries_count(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules, policy: str
    ) -> None:
        topic.subscribe("web", "http", rate=4, retry={"policy": policy}, max_in_flight=64)
        subscriber.down()
        bodies = publish(topic, 32)
        schedules.pass_seconds(45)
        subscriber.up()
        schedules.pass_seconds(1_200)
        assert {each.text for each in subscriber.taken} <= set(bodies)
        assert len({each.text for each in subscriber.taken}) >= (1 if policy == "backoff" else 32)
        assert busiest_second(subscriber) <= 4

    def test_retry_now_keeps_to_it(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", rate=5, retry={"policy": "custom", "waits": [3_600]})
        subscriber.down()
        publish(topic, 32)
        subscriber.up()
        topic.client.post(f"{web.path}/retry")
        schedules.pass_seconds(20)
        assert len({each.text for each in subscriber.taken}) == 32
        assert busiest_second(subscriber) <= 5

    def test_all_of_a_crashed_holder_counts_as_spent(self, alice: Client) -> None:
        world = alice.world
        for at in range(2, 30, 9):
            subscriber = world.subscriber()
            topic = TestTopic(alice, f"news{at}")
            topic.subscribe("web", "http", rate=3)
            crashes = Crashes(world, "push", at)
            schedules = Schedules(world, sweeps=True)
            publish(topic, 20)
            schedules.pass_seconds(130)
            assert {each.text for each in subscriber.taken} == {f"{n:03d}" for n in range(20)}
            assert busiest_second(subscriber) <= 3
            crashes._at = None
            alice.delete(f"/topics/news{at}")

    def test_several_subscriptions_of_one_invocation_have_rates_of_their_own(
        self, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        for name, rate in (("slow", 1), ("fast", 20)):
            endpoint = f"http://127.0.0.1:9/{name}"
            topic.subscribe(name, "http", rate=rate, endpoint=endpoint)
        publish(topic, 16)
        for name, rate in (("slow", 1), ("fast", 20)):
            mine = [each for each in subscriber.deliveries if each.path.endswith(name)]
            assert sorted(each.text for each in mine) == [f"{n:03d}" for n in range(16)]
            at = [each.at_ms for each in mine]
            assert max(sum(t <= each < t + 1_000 for each in at) for t in at) <= rate

    def test_it_costs_no_units(self, world: World, topic: TestTopic) -> None:
        used: list[tuple[float, float]] = []
        for name, fields in (("plain", {}), ("paced", {"rate": 1})):
            web = topic.subscribe(name, "http", **fields)
            topic.publish("warm")
            used.append(world.units(lambda: topic.publish("one")))
            topic.client.delete(web.path)
        assert used[0] == used[1]

    def test_a_change_is_in_force_for_the_next_message(self, cloud: World) -> None:
        """Caches of attributes lag behind; the posters' own item does not."""
        subscriber, topic = cloud.subscriber(), TestTopic(cloud.client("alice"))
        web = topic.subscribe("web", "http")
        publish(topic, 16)
        assert seconds_of(subscriber) < 1
        subscriber.deliveries.clear()
        assert web.patch(rate=2).status == 200
        publish(topic, 16)
        assert busiest_second(subscriber) == 2
        assert web.patch(rate=None).status == 200
        cloud.clock.pass_seconds(2)
        subscriber.deliveries.clear()
        publish(topic, 16)
        assert seconds_of(subscriber) < 1

    def test_a_pause_holds_while_it_waits_for_its_rate(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", rate=1)
        path = f"{web.path}/pause"
        done: list[int] = []

        def answer(delivery: Any) -> int:
            if not done:
                done.append(topic.client.post(path).status)
            return 204

        subscriber.answer = answer
        publish(topic, 64)
        assert done == [200]
        assert len(subscriber.deliveries) <= 12  # told when it renews its lease
        topic.client.post(f"{web.path}/resume")
        schedules.pass_seconds(120)
        assert len({each.text for each in subscriber.taken}) == 64


class TestPace:
    def test_threads_let_through_take_their_tokens_one_by_one(self, world: World) -> None:
        world.core = replace(world.core, window=adapters.ThreadWindow)
        pace, lock = Pace(5), threading.Lock()
        started: list[int] = []

        def start() -> None:
            at = pace.start(world.core)
            with lock:
                started.append(at)

        for _ in range(20):
            pace.let_through()
        threads = [threading.Thread(target=start) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(started) == 20
        assert max(sum(t <= each < t + 1_000 for each in started) for t in started) <= 5

    def test_nothing_with_a_wait_is_let_through(self) -> None:
        pace = Pace(100)
        let = 0
        while not pace.wait_ms(1_000):
            pace.let_through()
            let += 1
        assert let == 6

    @pytest.mark.parametrize("rate", [1, 19, 20, 21, 77, 500, 1_000])
    def test_no_window_of_a_second_has_more_and_it_is_hardly_less(self, rate: int) -> None:
        pace, now_ms = Pace(rate), 5_000
        times: list[int] = []

        class At:
            clock: Any = None

            def now_ms(self) -> int:
                return now_ms

        while now_ms < 25_000:
            if pace.wait_ms(now_ms):
                now_ms += 1
                continue
            pace.let_through()
            times.append(pace.start(At()))  # type: ignore[arg-type]
            if len(times) % 97 == 0:
                now_ms += 30  # busy with something else
        times.sort()
        for place in range(len(times) - rate):
            assert times[place + rate] - times[place] >= 1_000
        assert len(times) >= 20 * rate * 0.9

    def test_a_taken_over_bucket_is_no_emptier_than_empty(self) -> None:
        assert taken_over(10, 0, 50_000, 2_000, dirty=False).wait_ms(50_000) == 0
        assert taken_over(10, 90_000, 50_000, 2_000, dirty=False).wait_ms(50_000) == 101
        assert taken_over(10, 0, 50_000, 2_000, dirty=True).wait_ms(50_000) == 101
        assert taken_over(0, 0, 50_000, 2_000, dirty=True).wait_ms(50_000) == 0
