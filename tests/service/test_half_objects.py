"""Large half messages: in an object until their commit, which copies it for the publish."""

from __future__ import annotations

import pytest
from tests.service.buckets import Bucket
from tests.service.half import Producers
from tests.service.test_published_objects import bodies, large, records
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq_local.testing import World


@pytest.fixture
def producers(topic: TestTopic, bucket: Bucket) -> Producers:
    return Producers(topic)


def test_a_commit_publishes_its_object(
    world: World, topic: TestTopic, group: TestSubscription, producers: Producers, bucket: Bucket
) -> None:
    messages = large(3)
    handle = producers.prepare(*messages, check_after_seconds=1)
    assert bucket.calls == ["put"]
    world.clock.pass_seconds(1)
    (check,) = producers.receive()
    assert bodies(check["messages"]) == bodies(messages)
    # At the end of its life its object is still there to be copied.
    world.clock.pass_seconds(86_390)
    entries = producers.commit(handle)

    assert bucket.calls == ["put", "get", "copy"]
    (record,) = records(world, topic.shown["id"])
    assert "b" not in record
    received = sorted(group.receive_all(), key=lambda message: message["id"])
    assert bodies(received) == bodies(messages)
    assert [each["id"] for each in received] == [each["id"] for each in entries]


def test_the_copy_lives_as_long_as_the_publish(
    world: World, topic: TestTopic, producers: Producers, bucket: Bucket
) -> None:
    reply = topic.client.put("/queues/slow", {"message_retention_seconds": 1_000_000})
    assert reply.status == 201
    topic.subscribe("copy", "queue", endpoint="slow")
    messages = large()
    producers.commit(producers.prepare(*messages))
    world.clock.pass_seconds(999_000)

    assert sorted(bodies(topic.client.receive("slow"))) == sorted(bodies(messages))


def test_a_commit_refused_by_the_bucket_changes_nothing(
    group: TestSubscription, producers: Producers, bucket: Bucket
) -> None:
    messages = large()
    handle = producers.prepare(*messages)
    bucket.refused = {"copy"}
    assert producers.decide("commit", handle).code == "Unavailable"
    assert group.receive() == []
    bucket.refused = set()
    producers.commit(handle)

    assert len(group.receive_all()) == len(messages)


def test_one_with_a_lost_object_is_not_published(
    group: TestSubscription, producers: Producers, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    handle = producers.prepare(*large())
    bucket.lose()
    assert producers.decide("commit", handle).code == "Unavailable"

    assert "is missing" in caplog.text
    assert group.receive() == []
    producers.roll_back(handle)


def test_an_unreadable_check_does_not_count(
    world: World, producers: Producers, bucket: Bucket
) -> None:
    producers.prepare(*large(), check_after_seconds=1, max_checks=1)
    world.clock.pass_seconds(1)
    bucket.refused = {"get"}
    assert producers.receive() == []
    bucket.refused = set()

    assert [each["checks"] for each in producers.receive()] == [1]


def test_if_the_bucket_refuses_the_table_has_them(
    group: TestSubscription, producers: Producers, bucket: Bucket
) -> None:
    bucket.refused = {"put"}
    messages = large()
    handle = producers.prepare(*messages)
    producers.commit(handle)

    assert sorted(bodies(group.receive_all())) == sorted(bodies(messages))
