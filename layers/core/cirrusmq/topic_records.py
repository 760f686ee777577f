"""What a topic's log record says beside its messages: which subscriptions get which of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cirrusmq.decoding import decode_packed
from cirrusmq.message import Message
from cirrusmq.storage.parcels import log_key, read_messages
from cirrusmq.storage.store import Item
from cirrusmq.topic import log_partition


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """A subscription's share of a record; `places` are the messages' numbers in it."""

    subscription_id: str
    places: list[int]
    life_ms: int
    delay_ms: int


class TopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """The record's header, as it was decided when the messages were published."""

    topic: str
    account: str
    deliveries: list[Delivery]
    sequences: list[int] | None
    """Each message's place in its group's order; None where no subscription is ordered."""
    routing_keys: list[str]


class TopicRecord(msgspec.Struct, frozen=True):
    """A log record of a topic, decoded."""

    topic_id: str
    partition: int
    send_id: str
    sent_ms: int
    expires_ms: int
    header: TopicHeader
    messages: list[Message]
    positions: Sequence[int]
    """The messages' numbers in their publish."""


def topic_log_key(topic_id: str, send_id: str) -> tuple[str, str]:
    """Key of a publish's record in its topic's log."""
    return log_key(f"{topic_id}#{log_partition(send_id)}", send_id)


def holds_messages(item: Item) -> bool:
    """Whether an item of a log is a record: a topic's has others too, which name one."""
    return "b" in item


def is_topic_record(item: Item) -> bool:
    """Whether a log record is a topic's."""
    return "g" in item


def read_record(item: Item) -> TopicRecord:
    """The record in an item."""
    _, topic_id, partition = item["pk"]["S"].split("#")
    messages = read_messages(item)
    return TopicRecord(
        topic_id=topic_id,
        partition=int(partition),
        send_id=item["sk"]["S"].partition("#")[2],
        sent_ms=int(item["t"]["N"]),
        expires_ms=int(item["x"]["N"]),
        header=decode_packed(item["g"]["B"], TopicHeader),
        messages=list(messages.values()),
        positions=tuple(messages),
    )
