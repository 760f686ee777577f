"""Messages that came alone into a group outlive rewinds to before the begin of its source."""

from __future__ import annotations

import pytest
from tests.service.conftest import TestQueue
from tests.service.test_rewinding_groups import DAY, publish_each, rewind, take_all
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.subscriptions.subscriptions import find_subscription
from cirrusmq_local.testing import Client, World


def redeliver(world: World, group: TestSubscription, message_id: str) -> None:
    asked = group.client.post(f"{group.path}/redeliver", {"ids": [message_id]})
    assert asked.status == 202, asked.text
    world.settle()


def former_sources(world: World, topic: TestTopic) -> int:
    topic_id = topic.client.get(topic.path).json["id"]
    return len(find_subscription(world.core, topic_id, "all").value.epochs)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_redelivered_message_outlives_a_rewind_to_an_earlier_time(
    world: World, topic: TestTopic, *, ordered: bool
) -> None:
    """The group's source, since the first rewind, keeps nothing else behind the second one."""
    group = topic.subscribe("all", ordered=ordered)
    fields = {"group": "g"} if ordered else {}
    first, second, third = publish_each(topic, "1", "2", "3", **fields)
    assert take_all(group) == ["1", "2", "3"]
    rewind(group, third["sent_at"])
    assert take_all(group) == ["3"]
    redeliver(world, group, first["id"])

    rewind(group, second["sent_at"])

    assert take_all(group) == ["1", "2", "3"]


def test_a_redriven_dead_letter_outlives_it_too(topic: TestTopic, alice: Client) -> None:
    alice.put("/queues/dead")
    group = topic.subscribe("all", dead_letter_queue="dead")
    publish_each(topic, "1")
    (held,) = group.receive(1)
    assert group.act("dead-letter", held)["deleted"]
    second, third = publish_each(topic, "2", "3")
    assert take_all(group) == ["2", "3"]
    rewind(group, third["sent_at"])
    TestQueue(alice, "dead").start("redrive")
    alice.world.settle()

    rewind(group, second["sent_at"])

    assert take_all(group) == ["1", "2", "3"]


def test_a_rewind_while_messages_are_delivered_again_loses_none(
    world: World, topic: TestTopic
) -> None:
    """The operation knows the group as it was: it puts into a source that is a former one now."""
    group = topic.subscribe("all")
    first, second, third = publish_each(topic, "1", "2", "3")
    assert take_all(group) == ["1", "2", "3"]
    rewind(group, third["sent_at"])
    asked = group.client.post(f"{group.path}/redeliver", {"ids": [first["id"]]})
    assert asked.status == 202
    rewind(group, second["sent_at"])
    world.settle()

    assert take_all(group) == ["1", "2", "3"]


def test_a_source_is_kept_for_the_life_of_lone_messages(world: World, topic: TestTopic) -> None:
    group = topic.subscribe("all")
    first, second, third = publish_each(topic, "1", "2", "3")
    rewind(group, third["sent_at"])
    rewind(group, second["sent_at"])
    assert former_sources(world, topic) == 1  # the first one, for what is before
    take_all(group)
    redeliver(world, group, first["id"])
    rewind(group, second["sent_at"])
    assert former_sources(world, topic) == 2
    take_all(group)

    world.clock.pass_seconds(DAY + 3_600)
    (late,) = publish_each(topic, "late")
    take_all(group)
    rewind(group, late["sent_at"])

    assert take_all(group) == ["late"]
    assert former_sources(world, topic) == 1


def test_the_note_is_written_once_in_a_quarter_of_an_hour(world: World, topic: TestTopic) -> None:
    group = topic.subscribe("all")
    ids = [each["id"] for each in publish_each(topic, "1", "2", "3")]
    take_all(group)
    costs = []
    for each in ids:
        costs.append(world.write_units(lambda each=each: redeliver(world, group, each)))  # type: ignore[misc]
        take_all(group)
        world.settle()
    assert costs[1] == costs[2]
    assert costs[0] > costs[1]
