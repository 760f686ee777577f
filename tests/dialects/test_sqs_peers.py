"""Behaviours of SQS that other implementations of it test, and that clients may rely on."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.dialects.test_sqs_messages import receive
from tests.dialects.test_sqs_queues import attributes, redrive_policy

from cirrusmq_local.testing import World


def test_a_handle_deletes_after_its_timeout_until_the_message_is_received_again(
    world: World, sqs: Any, url: str
) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (held,) = receive(sqs, url, VisibilityTimeout=1)
    world.clock.pass_seconds(2)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=held["ReceiptHandle"])
    world.clock.pass_seconds(60)
    assert receive(sqs, url) == []


def test_a_changed_visibility_is_of_one_receive_alone(world: World, sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (held,) = receive(sqs, url)
    sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=held["ReceiptHandle"], VisibilityTimeout=2
    )
    world.clock.pass_seconds(3)
    assert len(receive(sqs, url)) == 1
    world.clock.pass_seconds(29)
    assert receive(sqs, url) == []
    world.clock.pass_seconds(1)
    assert len(receive(sqs, url)) == 1


def test_receives_hiding_for_no_time_count_towards_dead_letters(
    world: World, sqs: Any, url: str
) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead", 1))
    sqs.send_message(QueueUrl=url, MessageBody="x")
    assert len(receive(sqs, url, VisibilityTimeout=0)) == 1
    assert receive(sqs, url, VisibilityTimeout=0, WaitTimeSeconds=1) == []
    world.settle()
    assert attributes(sqs, dead, "ApproximateNumberOfMessages") == {
        "ApproximateNumberOfMessages": "1"
    }


def test_a_queue_is_found_after_its_attributes_changed_by_the_new_ones(sqs: Any) -> None:
    first = sqs.create_queue(QueueName="q", Attributes={"DelaySeconds": "1"})["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=first, Attributes={"DelaySeconds": "2"})
    assert sqs.create_queue(QueueName="q", Attributes={"DelaySeconds": "2"})["QueueUrl"] == first
    assert sqs.create_queue(QueueName="q")["QueueUrl"] == first
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName="q", Attributes={"DelaySeconds": "1"})


def test_messages_end_with_the_retention(world: World, sqs: Any) -> None:
    short = {"MessageRetentionPeriod": "60"}
    url = sqs.create_queue(QueueName="short", Attributes=short)["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    world.clock.pass_seconds(61)
    assert receive(sqs, url) == []


def test_keys_of_tags_differ_by_case_and_values_may_be_empty(sqs: Any, url: str) -> None:
    tags = {"MyTag": "value1", "mytag": "value2", "empty": ""}
    sqs.tag_queue(QueueUrl=url, Tags=tags)
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == tags


def test_clients_creating_one_queue_at_once_all_get_it(
    running: dict[str, Any], running_sqs: Any
) -> None:
    name, found = "at-once", []

    def create() -> None:
        found.append(running_sqs.create_queue(QueueName=name)["QueueUrl"])

    threads = [threading.Thread(target=create) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_waiting_receive_gets_a_message_sent_meanwhile(running_sqs: Any) -> None:
    url = running_sqs.create_queue(
        QueueName="patient", Attributes={"ReceiveMessageWaitTimeSeconds": "10"}
    )["QueueUrl"]
    sender = threading.Timer(
        1.0, lambda: running_sqs.send_message(QueueUrl=url, MessageBody="at last")
    )
    sender.start()
    (message,) = running_sqs.receive_message(QueueUrl=url)["Messages"]
    sender.join()
    assert message["Body"] == "at last"
