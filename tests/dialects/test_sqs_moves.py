"""Message move tasks by boto3, unmodified: dead letters go back, are counted, or stay."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import MakeKey, client_of
from tests.dialects.test_sqs_messages import receive, receive_all
from tests.dialects.test_sqs_queues import arn, redrive_policy

from cirrusmq.queues import operations
from cirrusmq_local.testing import Client, World


@pytest.fixture
def dead(world: World, sqs: Any) -> str:
    """A dead-letter queue with the three messages of `orders`."""
    made: str = sqs.create_queue(QueueName="dead")["QueueUrl"]
    url = sqs.create_queue(QueueName="orders", Attributes=redrive_policy("dead", 1))["QueueUrl"]
    for number in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    assert len(receive_all(sqs, url)) == 3
    world.clock.pass_seconds(31)
    assert receive_all(sqs, url) == []
    world.settle()
    return made


def only(sqs: Any, most: int = 10) -> dict[str, Any]:
    """The one task of the dead-letter queue, or the newest one."""
    (task,) = sqs.list_message_move_tasks(SourceArn=arn("dead"), MaxResults=most)["Results"]
    found: dict[str, Any] = task
    return found


def test_dead_letters_go_back_to_their_source(world: World, sqs: Any, dead: str) -> None:
    handle = sqs.start_message_move_task(SourceArn=arn("dead"))["TaskHandle"]
    running = only(sqs)
    assert (running["Status"], running["TaskHandle"]) == ("RUNNING", handle)
    assert running["ApproximateNumberOfMessagesToMove"] == 3
    assert running["StartedTimestamp"] == world.clock.now_ms()
    with pytest.raises(ClientError, match="already a task running"):
        sqs.start_message_move_task(SourceArn=arn("dead"))
    world.settle()
    done = only(sqs)
    assert (done["Status"], done["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 3)
    assert done["SourceArn"] == arn("dead")
    assert "TaskHandle" not in done
    assert receive(sqs, dead) == []
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    assert sorted(each["Body"] for each in receive_all(sqs, url)) == ["0", "1", "2"]


def test_a_task_keeps_to_its_rate_and_tells_the_number_to_move(world: World, sqs: Any) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    sqs.create_queue(QueueName="orders", Attributes=redrive_policy("dead", 1))
    other = sqs.create_queue(QueueName="other")["QueueUrl"]
    for number in range(30):
        sqs.send_message(QueueUrl=dead, MessageBody=str(number))
    begun = world.clock.now_ms()

    sqs.start_message_move_task(
        SourceArn=arn("dead"), DestinationArn=arn("other"), MaxNumberOfMessagesPerSecond=3
    )
    running = only(sqs)
    world.settle()

    assert (running["MaxNumberOfMessagesPerSecond"], running["Status"]) == (3, "RUNNING")
    assert running["ApproximateNumberOfMessagesToMove"] == 30
    found = receive_all(sqs, other, AttributeNames=["All"])
    sent = sorted(int(each["Attributes"]["SentTimestamp"]) - begun for each in found)
    assert len(sent) == 30
    assert all(later - earlier >= 900 for earlier, later in zip(sent, sent[3:], strict=False))
    assert 9_000 <= sent[-1] <= 15_000
    done = only(sqs)
    assert done["Status"] == "COMPLETED"
    assert done["ApproximateNumberOfMessagesToMove"] == 30
    assert done["ApproximateNumberOfMessagesMoved"] == 30
    assert done["MaxNumberOfMessagesPerSecond"] == 3
    sqs.start_message_move_task(SourceArn=arn("dead"))
    assert "MaxNumberOfMessagesPerSecond" not in only(sqs, most=1)


def test_a_task_with_a_deleted_target_fails_and_is_still_listed(
    world: World, sqs: Any, dead: str
) -> None:
    other = sqs.create_queue(QueueName="other")["QueueUrl"]
    sqs.start_message_move_task(SourceArn=arn("dead"), DestinationArn=arn("other"))
    sqs.delete_queue(QueueUrl=other)
    world.settle()
    task = only(sqs)
    assert task["Status"] != "RUNNING"
    assert task["DestinationArn"] == arn("other")
    assert len(receive_all(sqs, dead)) == 3


def test_a_cancelled_task_moves_nothing_more(
    world: World, sqs: Any, dead: str, shop: Client
) -> None:
    handle = sqs.start_message_move_task(SourceArn=arn("dead"))["TaskHandle"]
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] == 0
    world.settle()
    assert only(sqs)["Status"] == "CANCELLED"
    assert len(receive_all(sqs, dead)) == 3
    shown = shop.get(f"/operations/{handle}").json
    assert (shown["state"], shown["detail"]) == ("failed", "it was cancelled")
    with pytest.raises(sqs.exceptions.UnsupportedOperation):
        sqs.cancel_message_move_task(TaskHandle=handle)


def test_a_task_is_cancelled_while_its_runner_is_at_it(
    world: World, sqs: Any, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = sqs.start_message_move_task(SourceArn=arn("dead"))["TaskHandle"]
    moved = operations.Run.count
    calls: list[int] = []

    def count_then_cancel(self: operations.Run, *noted: Any) -> Any:
        counted = moved(self, *noted)
        calls.append(1)
        if len(calls) == 2:  # one is moved; the second is about to be
            operations.cancel(world.core, "shop", handle)
        return counted

    monkeypatch.setattr(operations.Run, "count", count_then_cancel)
    world.settle()
    monkeypatch.undo()
    task = only(sqs)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("CANCELLED", 1)
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    assert len(receive_all(sqs, dead)) == 2
    assert len(receive_all(sqs, url)) == 1


def test_the_newest_task_is_listed_first(world: World, sqs: Any, dead: str) -> None:
    for _ in range(3):
        sqs.start_message_move_task(SourceArn=arn("dead"))
        world.settle()
        world.clock.pass_seconds(1)
    found = sqs.list_message_move_tasks(SourceArn=arn("dead"), MaxResults=10)["Results"]
    assert [each["ApproximateNumberOfMessagesMoved"] for each in found] == [0, 0, 3]
    assert len(sqs.list_message_move_tasks(SourceArn=arn("dead"))["Results"]) == 1
    assert sqs.list_message_move_tasks(SourceArn=arn("orders"))["Results"] == []


def test_an_invalid_task_is_refused(sqs: Any, dead: str) -> None:
    with pytest.raises(
        ClientError, match=r"\(InvalidParameterValue\) .*configured as a Dead Letter Queue"
    ):
        sqs.start_message_move_task(SourceArn=arn("orders"))
    with pytest.raises(sqs.exceptions.ResourceNotFoundException, match="SourceArn") as refused:
        sqs.start_message_move_task(SourceArn=arn("nowhere"))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    with pytest.raises(sqs.exceptions.ResourceNotFoundException, match="SourceArn"):
        sqs.list_message_move_tasks(SourceArn=arn("nowhere"))
    with pytest.raises(sqs.exceptions.ResourceNotFoundException, match="DestinationArn"):
        sqs.start_message_move_task(SourceArn=arn("dead"), DestinationArn=arn("nowhere"))
    with pytest.raises(
        ClientError, match=r"\(InvalidParameterValue\) .*parameter TaskHandle is invalid"
    ):
        sqs.cancel_message_move_task(TaskHandle="nothing")
    for wrong in ("dead", "arn:aws:sns:x:shop:dead", "a:b"):
        with pytest.raises(ClientError, match="InvalidParameterValue"):
            sqs.list_message_move_tasks(SourceArn=wrong)
    with pytest.raises(sqs.exceptions.ResourceNotFoundException):
        sqs.cancel_message_move_task(TaskHandle="Op-nothing")
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        sqs.start_message_move_task(SourceArn=arn("dead"), MaxNumberOfMessagesPerSecond=501)


def test_tasks_are_the_owners_alone(world: World, sqs: Any, dead: str, make_key: MakeKey) -> None:
    handle = sqs.start_message_move_task(SourceArn=arn("dead"))["TaskHandle"]
    bob = client_of(world, make_key("bob"))
    with pytest.raises(ClientError, match="AccessDenied"):
        bob.list_message_move_tasks(SourceArn=arn("dead"))
    with pytest.raises(bob.exceptions.ResourceNotFoundException):
        bob.cancel_message_move_task(TaskHandle=handle)
