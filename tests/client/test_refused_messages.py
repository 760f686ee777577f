"""What cannot be sent is refused before the first call, by the parameter's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awaited import Awaited, Loop
from tests.client.conftest import NewQueue
from tests.client.taking import left

from cirrusmq_client import (
    AsyncClient,
    AsyncProducer,
    Client,
    Message,
    PartlySent,
    Producer,
    Transaction,
)
from cirrusmq_client.errors import CirrusMQError, InvalidParameter, MessageTooLarge

HALF = "cut \ud83d"


@pytest.fixture(params=["blocking", "asyncio"])
def either(request: pytest.FixtureRequest, client: Client, stack: Any, loop: Loop) -> Iterator[Any]:
    """A Producer, and an AsyncProducer used as one."""
    if request.param == "blocking":
        with Producer(client) as producer:
            yield producer
        return
    with (
        Awaited(loop, lambda: AsyncClient(stack.connection)) as made,
        Awaited(loop, lambda: AsyncProducer(made.itself)) as producer,
    ):
        yield producer


def with_half_at(place: int, total: int = 40) -> list[str]:
    return [HALF if number == place else f"m{number}" for number in range(total)]


def test_half_an_emoji_in_a_list_is_found_before_anything_is_sent(
    either: Any, client: Client, queue: str
) -> None:
    with pytest.raises(InvalidParameter, match=r"message 36: body: character 5") as caught:
        either.send_batch(queue, with_half_at(35))

    assert caught.value.parameter == "body"
    assert left(client, queue) == 0


def test_half_an_emoji_from_an_iterator_tells_the_messages_sent_before(
    either: Any, client: Client, queue: str
) -> None:
    with pytest.raises(PartlySent, match="32 messages were sent, then: body:") as caught:
        either.send_batch(queue, iter(with_half_at(35)))

    assert len(caught.value.sent) == left(client, queue) == 32
    assert not caught.value.uncertain


def test_a_failing_iterator_tells_the_messages_sent_before(
    either: Any, client: Client, queue: str
) -> None:
    def read() -> Iterator[str]:
        yield from (f"m{number}" for number in range(20))
        raise OSError("the disk is gone")

    with pytest.raises(PartlySent, match="16 messages were sent, then: OSError") as caught:
        either.send_batch(queue, read())

    assert isinstance(caught.value.__cause__, OSError)
    assert len(caught.value.sent) == left(client, queue) == 16


def test_a_refusal_of_the_service_tells_the_messages_sent_before(
    either: Any, client: Client, new_queue: NewQueue
) -> None:
    queue = new_queue(max_message_bytes=1_024)

    with pytest.raises(PartlySent) as caught:
        either.send_batch(queue, ["m"] * 30 + ["m" * 2_000])

    assert len(caught.value.sent) == left(client, queue) == 16
    with pytest.raises(MessageTooLarge):  # before which nothing was sent
        either.send_batch(queue, ["m" * 2_000])


def test_an_error_of_any_kind_in_a_later_call_tells_the_messages_sent_before(
    client: Client, new_queue: NewQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, calls = new_queue(), list[int]()
    send = client.send

    def fail_third(queue: str, messages: list[Message]) -> Any:
        calls.append(len(messages))
        if len(calls) == 3:
            raise RuntimeError("the client is closed")
        return send(queue, messages)

    monkeypatch.setattr(client, "send", fail_third)
    with pytest.raises(PartlySent, match="32 messages were sent") as caught:
        Producer(client).send_batch(queue, ["m"] * 40)

    assert len(caught.value.sent) == 32


def test_half_an_emoji_is_refused_by_each_way_to_send(
    either: Any, client: Client, queue: str, topic: str
) -> None:
    for send in (
        lambda: either.send(queue, HALF),
        lambda: either.send_soon(queue, HALF),
        lambda: either.publish(topic, HALF),
        lambda: either.publish_soon(topic, HALF),
        lambda: either.publish_batch(topic, with_half_at(35)),
        lambda: client.send(queue, [Message(HALF)]),
    ):
        with pytest.raises(InvalidParameter):
            send()
    assert left(client, queue) == 0
    assert client.read_log(topic)[0] == []


def test_a_transaction_refuses_half_an_emoji_before_it_is_prepared(client: Client) -> None:
    class Nowhere:
        def run(self, handle: str, work: Callable[[object], object]) -> object:
            raise AssertionError("nothing was prepared")

        def took_place(self, handle: str) -> bool:
            return False

    transaction: Transaction[object] = Producer(client).transaction("none", check=Nowhere())
    with pytest.raises(InvalidParameter, match="body"):
        transaction.run(["fine", HALF], lambda _: None)
    with pytest.raises(InvalidParameter, match="bodies"):
        transaction.run("one text", lambda _: None)


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"attributes": {"a": 5}}, "attributes.a"),
        ({"attributes": {"a": None}}, "attributes.a"),
        ({"attributes": {"a": HALF}}, "attributes.a"),
        ({"attributes": {5: "a"}}, "attributes: a name"),
        ({"attributes": [("a", "b")]}, "attributes"),
        ({"attributes": "abc"}, "attributes"),
        ({"tags": "abc"}, "tags"),
        ({"tags": b"abc"}, "tags"),
        ({"tags": 5}, "tags"),
        ({"tags": ["a", 5]}, "tags"),
        ({"tags": [HALF]}, "tags"),
        ({"group": 5}, "group"),
        ({"group": HALF}, "group"),
        ({"deduplication_id": 17}, "deduplication_id"),
        ({"routing_key": ["a"]}, "routing_key"),
        ({"delay_seconds": "5"}, "delay_seconds"),
        ({"delay_seconds": timedelta(seconds=5)}, "delay_seconds"),
        ({"delay_seconds": float("nan")}, "delay_seconds"),
        ({"visibility_timeout_seconds": True}, "visibility_timeout_seconds"),
        ({"deliver_at": timedelta(1)}, "deliver_at"),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_name(
    fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"^{parameter}: ") as caught:
        Message("body", **fields)

    assert caught.value.parameter == parameter


@pytest.mark.parametrize("body", [None, 5, {"a": 1}, ["a"]])
def test_a_body_is_a_text_or_bytes(body: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^body: must be a text or bytes, not"):
        Message(body)


def test_tags_of_an_iterator_are_sent(client: Client, queue: str) -> None:
    tags: Any = iter(["red", "blue"])
    Producer(client).send(queue, "body", tags=tags)

    assert client.receive(queue)[0].tags == ("red", "blue")


def send_batch_of_bytes(client: Client) -> None:
    bodies: Any = b"abc"
    Producer(client).send_batch("q", bodies)


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("bodies", lambda client: Producer(client).send_batch("q", "abc")),
        ("bodies", send_batch_of_bytes),
        ("bodies", lambda client: Producer(client).publish_batch("t", "abc")),
        ("messages", lambda client: client.send("q", "abc")),
        ("messages", lambda client: client.send("q", ["abc"])),
        ("messages", lambda client: client.send_each("q", "abc")),
        ("messages", lambda client: client.publish("t", "abc")),
        ("messages", lambda client: client.prepare("t", "abc")),
        ("messages", lambda client: client.match("t", "abc")),
        ("messages", lambda client: client.try_filter("t", None, "abc")),
        ("receipts", lambda client: client.delete("q", "receipt")),
        ("receipts", lambda client: client.give_back("q", "receipt")),
        ("receipts", lambda client: client.dead_letter("q", "receipt")),
        ("receipts", lambda client: client.delete_and_receive("q", "receipt")),
        ("receipts", lambda client: client.redrive_queue("q", receipts="receipt")),
        ("ids", lambda client: client.redrive_queue("q", ids="Msg-1")),
        ("topics", lambda client: client.show_rates(topics="topic")),
        ("seconds", lambda client: client.change_visibility("q", ["receipt"])),
        ("name", lambda client: client.show_queue(5)),
    ],
)
def test_a_parameter_of_another_type_is_refused_by_its_name(
    client: Client, parameter: str, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(CirrusMQError, match=f"^{parameter}: must be") as caught:
        call(client)

    assert caught.value.parameter == parameter


def test_a_name_with_half_an_emoji_is_refused(client: Client) -> None:
    with pytest.raises(InvalidParameter, match=r"^name: character 5"):
        client.show_queue(HALF)
