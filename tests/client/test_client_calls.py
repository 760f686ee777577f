"""The calls of the contract over HTTP."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.client.conftest import NewQueue, Wait, connection_by

from cirrusmq_client import (
    Backoff,
    Client,
    Connection,
    Consumer,
    Message,
    PartlySent,
    Producer,
    Queue,
    Subscription,
    errors,
)
from cirrusmq_client.batches import split
from cirrusmq_client.clocks import ServerClock


def test_the_library_needs_neither_the_server_nor_aws_nor_a_database() -> None:
    script = """
import importlib, pkgutil, sys
import cirrusmq_client
for module in pkgutil.iter_modules(cirrusmq_client.__path__):
    if module.name not in ("sql_decisions", "sql_transactions"):
        importlib.import_module(f"cirrusmq_client.{module.name}")
roots = {name.partition(".")[0] for name in sys.modules}
print(sorted(roots & {"cirrusmq", "cirrusmq_lambda", "cirrusmq_local", "boto3", "botocore",
                      "sqlalchemy", "msgspec", "pynamodb", "typer"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_queue_is_made_shown_changed_listed_and_deleted(client: Client) -> None:
    made = client.create_queue("life-of-a-queue", {"delay_seconds": 5})
    assert made["delay_seconds"] == 5
    assert client.create_queue("life-of-a-queue", {"delay_seconds": 5})["id"] == made["id"]
    assert client.change_queue("life-of-a-queue", {"delay_seconds": 0})["delay_seconds"] == 0
    assert client.show_queue("life-of-a-queue")["counts"]["active"] == 0
    assert [each["name"] for each in client.list_queues("life-of-")] == ["life-of-a-queue"]
    client.delete_queue("life-of-a-queue")
    with pytest.raises(errors.QueueNotFound) as caught:
        client.show_queue("life-of-a-queue")
    assert caught.value.status == 404
    assert caught.value.request_id


def test_errors_are_named_after_the_codes(client: Client, new_queue: NewQueue) -> None:
    name = new_queue(max_message_bytes=1_024)
    with pytest.raises(errors.InvalidParameter) as caught:
        client.create_queue(name + "x", {"delay_seconds": -1})
    assert caught.value.parameter == "delay_seconds"
    with pytest.raises(errors.AlreadyExists):
        client.create_queue(name, {"delay_seconds": 7})
    with pytest.raises(errors.MessageTooLarge):
        client.send(name, [Message("x" * 1_025)])
    with pytest.raises(errors.BatchTooLarge):
        client.send(name, [Message("x")] * 17)
    with pytest.raises(errors.NotRewindable):
        client.rewind_queue(name, datetime.now(UTC) - timedelta(hours=1))


def test_a_wrong_key_and_an_unreachable_service_are_told_apart(
    client: Client, unused_port: int
) -> None:
    wrong = Connection(url=client.url, access_key_id="CKnone", secret="wrong")
    with Client(wrong) as stranger, pytest.raises(errors.Unauthenticated):
        stranger.show_queue("a")
    down = Connection(url=f"http://127.0.0.1:{unused_port}", access_key_id="k", secret="s")
    brief = Backoff(tries=2)
    with Client(down, retry=brief) as nobody, pytest.raises(errors.NotReachable):
        nobody.show_queue("a")


def test_a_message_comes_as_it_was_sent(client: Client, queue: str) -> None:
    body = bytes(range(256))
    message = Message(body, attributes={"colour": "red", "raw": b"\0\xff"}, tags=["a", "b"])
    sent = client.send(queue, [message])[0]
    received = client.receive(queue, wait_seconds=5)[0]
    assert (received.id, received.body, received.data) == (sent.id, body, body)
    assert received.attributes == {"colour": "red", "raw": b"\0\xff"}
    assert received.tags == ("a", "b")
    assert (received.receive_count, received.redeliveries) == (1, 0)
    assert received.visible_at is not None
    assert timedelta(seconds=29) < received.visible_at - received.sent_at < timedelta(seconds=40)


def test_the_highest_priority_comes_first(client: Client, new_queue: NewQueue) -> None:
    name = new_queue(priorities=4)
    client.send(name, [Message("low"), Message("high", priority=4)])
    received = client.receive(name, 2, wait_seconds=5)
    assert [(each.text, each.priority) for each in received] == [("high", 4), ("low", 1)]


def test_a_queue_and_a_receiver_are_paused(client: Client, queue: str) -> None:
    client.create_receiver(queue, "audit", {})
    client.change_queue(queue, {"paused": True})
    assert client.change_receiver(queue, "audit", {"paused": True})["paused"] is True
    client.send(queue, [Message("x")])

    assert client.receive(queue, wait_seconds=0) == []
    assert client.receive(Queue(queue, "audit"), wait_seconds=1) == []
    client.change_queue(queue, {"paused": False})
    assert [each.text for each in client.receive(queue, wait_seconds=5)] == ["x"]


def test_a_receive_chooses_by_group_or_attribute(client: Client, new_queue: NewQueue) -> None:
    plain, fair = new_queue(), new_queue(fair=True)
    client.send(plain, [Message(each, attributes={"color": each}) for each in ("red", "blue")])
    client.send(fair, [Message(each, group=each) for each in ("a", "b")])

    found = client.receive_where(plain, "color", "blue", 16)
    again = client.receive_where(plain, "color", b"red", 16)

    assert [message.text for message in found.messages] == ["blue"]
    assert found.messages[0].sender == client.receive(plain)[0].sender
    assert (found.seen_all, found.after, again.messages) == (True, None, [])
    assert [each.text for each in client.receive(fair, 16, group="b", wait_seconds=5)] == ["b"]


def test_receipts_delete_hold_and_give_back(client: Client, queue: str) -> None:
    client.send(queue, [Message("a"), Message("b"), Message("c")])
    held = client.receive(queue, 16, wait_seconds=5)
    first, second, third = (message.receipt for message in held)
    longer = client.change_visibility(queue, {first: 600})
    assert longer.done[first] is not None
    assert client.delete(queue, [first, second]).done.keys() == {first, second}
    again = client.delete(queue, [first])
    assert [failed.code for failed in again.failed] == ["ReceiptExpired"]
    assert client.give_back(queue, [third], 0).done.keys() == {third}
    assert [message.receive_count for message in client.peek(queue, 16)] == [1]


def test_receivers_keys_and_grants(client: Client, queue: str, producer: Producer) -> None:
    client.create_receiver(queue, "audit", {"start": "latest"})
    assert [each["name"] for each in client.list_receivers(queue)] == ["audit"]
    producer.send(queue, "both see it")
    source = Queue(queue, receiver="audit")
    copies = [client.receive(queue, wait_seconds=5), client.receive(source, wait_seconds=5)]
    assert [copy[0].text for copy in copies] == ["both see it"] * 2
    assert client.delete(source, [copies[1][0].receipt]).failed == []
    client.delete_receiver(queue, "audit")
    key = client.create_key("partner", description="a test")
    client.put_grant(queue, "partner", "send")
    assert client.list_grants(queue) == [{"account": "partner", "permission": "send"}]
    with Client(connection_by(client.url, key)) as partner:
        assert partner.send(f"local:{queue}", [Message("from outside")])
        with pytest.raises(errors.Forbidden):
            partner.receive(f"local:{queue}")
    client.delete_grant(queue, "partner")
    client.delete_key(key["access_key_id"])


def test_operations_and_changes_are_listed(client: Client, queue: str) -> None:
    first = client.purge_queue(queue)
    (*_, ended) = client.watch_operation(first)
    second = client.purge_queue(queue)
    assert [each["id"] for each in client.list_operations(queue=queue)] == [second, first]
    assert next(iter(client.list_operations(queue=queue, state="succeeded")))["queue"] == queue
    assert list(client.list_operations(queue=queue, state="failed")) == []
    began = datetime.fromisoformat(ended["started_at"])
    changes = list(client.list_changes(resource=queue))
    assert [each["route"].split()[0] for each in changes] == ["POST", "POST", "PUT"]
    assert {each["key_id"] for each in changes} == {ended["key_id"]}
    later = list(client.list_changes(began, resource=queue, key_id=ended["key_id"]))
    assert [each["route"] for each in later] == ["POST /queues/{queue}/purge"] * 2
    assert list(client.list_changes(until=began - timedelta(days=80))) == []


def test_a_topic_is_shared_with_another_account(client: Client, wait_until: Wait) -> None:
    client.create_topic("shared")
    key = client.create_key("partner")
    client.put_topic_grant("shared", "partner", "publish_subscribe")
    assert client.list_topic_grants("shared") == [
        {"account": "partner", "permission": "publish_subscribe"}
    ]
    with Client(connection_by(client.url, key)) as partner:
        assert {"topic": "local:shared", "account": "local", "permission": "publish_subscribe"} in (
            partner.list_granted()
        )
        partner.create_subscription("local:shared", "partners", {"protocol": "pull"})
        (sent,) = partner.publish("local:shared", [Message("from outside")])
        assert sent.matched == 1
        group, got = Subscription("local:shared", "partners"), list[str]()
        with Consumer(group, lambda each: got.append(each.text), client=partner, wait_seconds=1):
            wait_until(lambda: got == ["from outside"])
        client.delete_topic_grant("shared", "partner")
        with pytest.raises(errors.Forbidden):
            partner.publish("local:shared", [Message("too late")])
    client.delete_key(key["access_key_id"])
    client.delete_topic("shared")


def test_any_number_of_messages_goes_in_legal_batches_in_order() -> None:
    small = [Message(str(number)) for number in range(40)]
    assert [len(batch) for batch in split(small)] == [16, 16, 8]
    edge = [Message("x" * 524_288)] * 4
    assert [len(batch) for batch in split(edge)] == [2, 2]
    over = [Message("x" * 524_288, tags=["t"])] * 2
    assert [len(batch) for batch in split(over)] == [1, 1]
    escapes = [Message("\1" * 200_000)] * 4
    assert [len(batch) for batch in split(escapes)] == [2, 2]
    largest = [Message("x" * 4_194_304), *small[:2]]
    assert [len(batch) for batch in split(largest)] == [1, 2]
    mixed = small + edge
    assert [message for batch in split(mixed) for message in batch] == mixed


def test_a_batch_too_large_without_a_bucket_goes_in_halves() -> None:
    made: list[int] = []

    class Refusing(Client):
        def send(self, queue: str, messages: Sequence[Message]) -> list[Any]:
            made.append(len(messages))
            if sum(message.size_bytes for message in messages) > 262_144:
                raise errors.BatchTooLarge(status=413)
            return [message.body for message in messages]

    connection = Connection(url="http://127.0.0.1:9", access_key_id="k", secret="s")
    with Refusing(connection) as client:
        bodies = [str(number) * 65_536 for number in range(9)]
        sent: Any = Producer(client).send_batch("orders", bodies)
        assert sent == bodies
        assert made == [9, 4, 5, 2, 3]
        with pytest.raises(PartlySent) as caught:
            Producer(client).send_batch("orders", ["a", "b" * 300_000])
        assert len(caught.value.sent) == 1


def test_large_and_strange_batches_are_taken(
    client: Client, producer: Producer, new_queue: NewQueue
) -> None:
    name = new_queue(max_message_bytes=262_144)
    bodies = ["x" * 262_144, "\1" * 131_072, "\1" * 131_072, "é" * 60_000, *map(str, range(30))]
    assert len(producer.send_batch(name, bodies)) == len(bodies)
    assert client.show_queue(name)["counts"]["active"] == len(bodies)


@pytest.mark.long
def test_the_largest_messages_go_gzipped_and_come_gzipped(
    client: Client, producer: Producer, new_queue: NewQueue
) -> None:
    name = new_queue(max_message_bytes=4_194_304)
    chance = random.Random(5)
    noise = chance.randbytes(4_194_304)
    ascii_text = noise.translate(bytes(code % 128 for code in range(256))).decode()
    bodies: list[str | bytes] = [noise, ascii_text, "" * 4_194_304, "small", "語" * 1_398_101]
    assert len(producer.send_batch(name, bodies)) == len(bodies)
    received = []
    while some := client.receive(name, 16, wait_seconds=0):
        received += some
        client.delete(name, [message.receipt for message in some])
    assert sorted(message.data for message in received) == sorted(
        body if isinstance(body, bytes) else body.encode() for body in bodies
    )


def test_a_request_too_large_even_with_gzip_is_refused_here(
    client: Client, new_queue: NewQueue
) -> None:
    noise = random.Random(5).randbytes(6_000_000).translate(bytes(n % 128 for n in range(256)))
    with pytest.raises(errors.RequestTooLarge, match="at most 4,700,000") as caught:
        client.send(new_queue(), [Message(noise.decode())])
    assert caught.value.status == 413


def test_single_refusals_stand_in_the_place_of_their_messages(
    client: Client, new_queue: NewQueue
) -> None:
    answers = client.send_each(new_queue(), [Message("a"), Message("y" * 70_000), Message("b")])
    assert [isinstance(each, errors.MessageTooLarge) for each in answers] == [False, True, False]


def test_a_wrong_client_clock_does_no_harm(
    stack: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = partial(ServerClock, system=lambda: 1_000_000_000.0)
    monkeypatch.setattr("cirrusmq_client.transport.ServerClock", clock)
    with Client(stack.connection) as late:
        assert late.send(queue, [Message("a")])
    with Client(stack.connection) as late:
        assert late.receive(queue, wait_seconds=5)


def test_the_services_time_is_learned_within_a_second() -> None:
    here = 0.0
    clock = ServerClock(monotonic=lambda: here, system=lambda: 0.0)
    for sent, received, date in [(10.0, 10.1, "00:00:05"), (11.9, 12.0, "00:00:07")]:
        here = received
        clock.see(f"Thu, 01 Jan 1970 {date} GMT", sent, received)
        assert clock.earliest() <= clock.latest()
    # It was before 00:00:06 at 10.0, and not before 00:00:07 at 12.0.
    assert clock.earliest() == pytest.approx(7.0)
    assert clock.latest() == pytest.approx(8.0)
    assert clock.begun() == pytest.approx(8.0)
    here = 20.0
    clock.see("Fri, 02 Jan 1970 00:00:00 GMT", 19.9, 20.0)
    assert clock.earliest() == pytest.approx(86_400.0)
    # A long poll says little of when it was answered: an attempt is ahead by a second at most.
    clock.see("Sat, 03 Jan 1970 00:00:00 GMT", 0.0, 20.0)
    assert clock.begun() == pytest.approx(2 * 86_400.0 + 1)


def test_a_program_finds_its_queue_at_the_next_start_whatever_was_changed(
    client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(delay_seconds=5)
    client.change_queue(name, {"visibility_timeout_seconds": 99})

    assert client.create_queue(name)["visibility_timeout_seconds"] == 99
    assert client.create_queue(name, {"delay_seconds": 5})["delay_seconds"] == 5
    with pytest.raises(errors.AlreadyExists):
        client.create_queue(name, {"delay_seconds": 6})
    with pytest.raises(errors.AlreadyExists):
        client.create_queue(name, {"delay_seconds": 5}, exact=True)
    whole: Any = {"delay_seconds": 5, "visibility_timeout_seconds": 99}
    assert client.create_queue(name, whole, exact=True)["name"] == name
