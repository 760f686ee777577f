"""Examples from the documents of CMQ's and RocketMQ's models, told from beginning to end.

`tests/behaviours.md` has a line for each behaviour of these models and the test that shows it.
"""

from __future__ import annotations

from itertools import pairwise

from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import Client, Subscriber, World


def url(path: str) -> str:
    return f"http://127.0.0.1:9/{path}"


class TestThreeUrls:
    """One refuses everything, one refuses some, one takes all."""

    def test_undelivered_messages_stay_for_one_alone_and_come_with_new_ones(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        webs = {name: topic.subscribe(name, "http", endpoint=url(name)) for name in ("ant", "bee")}
        topic.subscribe("cat", "http", endpoint=url("cat"))
        refused = {"ant": set("01234"), "bee": {"2"}}
        subscriber.answer = lambda each: 500 if each.text[0] in refused.get(each.path, ()) else 204
        for number in range(5):
            topic.publish(f"{number} first")
        schedules.pass_seconds(30)
        left = {name: web.show()["counts"]["active"] for name, web in webs.items()}
        assert left == {"ant": 5, "bee": 3}  # 2 is bee's probe, 3 and 4 wait behind it
        assert topic.active() == 5

        for number in range(5):
            topic.publish(f"{number} second")
        schedules.pass_seconds(1)
        assert sorted(subscriber.bodies("cat")) == sorted(
            f"{number} {when}" for number in range(5) for when in ("first", "second")
        )
        assert {name: web.show()["state"] for name, web in webs.items()} == dict.fromkeys(
            webs, "retrying"
        )
        assert topic.active() == 10
        refused.clear()
        schedules.run_out()

        assert topic.active() == 0
        for path in ("ant", "bee", "cat"):
            taken = [each.text for each in subscriber.taken if each.path == path]
            assert len(taken) == len(set(taken)) == 10


def test_an_ordered_group_gives_a_message_up_and_goes_on(
    world: World, alice: Client, topic: TestTopic
) -> None:
    retry = {"policy": "ordered", "interval_seconds": 1, "max_retries": 2}
    group = topic.subscribe("group", ordered=True, retry=retry)
    topic.publish("sick", "well", group="g")

    got = []
    for _ in range(5):  # at the fourth its own queue is made, and the group waits for that
        got += [each["body"] for each in group.receive(1, visibility_timeout_seconds=1)]
        world.settle()
        world.clock.pass_seconds(2)

    assert got == ["sick", "sick", "sick", "well"]
    assert TestQueue(alice, f"dlq-{group.id}").bodies() == ["sick"]


def test_dead_letters_of_many_queues_meet_in_one(make_queue: MakeQueue, dead: TestQueue) -> None:
    sources = [
        make_queue(f"q{number}", dead_letter={"queue": "dead", "max_receives": 1})
        for number in range(8)
    ]
    for source in sources:
        source.send(source.name)
        source.act("dead-letter", *source.receive())

    letters = dead.receive_all()

    assert {each["dead_letter"]["source_queue"] for each in letters} == {s.name for s in sources}
    assert all(each["body"] == each["dead_letter"]["source_queue"] for each in letters)


def test_unhindered_messages_come_about_in_the_order_of_sending(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(partitions=1)
    bodies = [f"{number:02}" for number in range(40)]
    for body in bodies:
        queue.send(body)
        world.clock.pass_seconds(0.01)

    assert queue.consume(7) == bodies


def test_a_messages_id_is_no_receipt(queue: TestQueue) -> None:
    (sent,) = queue.send("x")
    (held,) = queue.receive()

    for verb in ("delete", "give-back"):
        (failed,) = queue.act(verb, {"receipt": sent["id"]})["failed"]
        assert failed["code"] == "ReceiptExpired"
    queue.delete(held)


def test_the_rewindable_count_grows_with_each_delete(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=1_296_000, rewind_seconds=1_296_000)
    queue.send(*"abcdef")
    kept = []
    for held in queue.receive(6):
        queue.delete(held)
        world.clock.pass_seconds(3_600)
        kept.append(queue.counts()["rewindable"])

    assert all(later == before + 1 for before, later in pairwise(kept))
    assert kept[-1] == 6
