"""A topic's log record: its messages, and which subscriptions get which of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cirrusmq.base.names import ID_CHARACTERS
from cirrusmq.base.shapes import decode_packed
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import Filter
from cirrusmq.model.envelope import Described
from cirrusmq.model.topic import Topic
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import log_key, object_days, read_described


class Delivery(msgspec.Struct, frozen=True):
    """A subscription's share of a record; `indexes` are the messages' numbers in it."""

    subscription_id: str
    indexes: list[int]
    life_ms: int
    delay_ms: int


class DeliveryGroup(msgspec.Struct, frozen=True, array_like=True):
    """Deliveries that differ in their subscriptions alone, which is nearly always all of them."""

    indexes: list[int]
    life_ms: int
    delay_ms: int
    subscription_ids: str
    """Ids of the subscriptions, concatenated."""


class TopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """The record's header, as it was decided when the messages were published."""

    topic: str
    account: str
    alike: list[DeliveryGroup]
    sequences: list[int] | None
    """Each message's place in its group's order, or None if no subscription is ordered."""
    routing_keys: list[str]
    dues_ms: list[int] | None = None
    """When each message is to be delivered, 0: at once; None if all are at once."""

    @property
    def deliveries(self) -> list[Delivery]:
        """The share of each subscription."""
        return [
            Delivery(
                subscription_id=alike.subscription_ids[start : start + ID_CHARACTERS],
                indexes=alike.indexes,
                life_ms=alike.life_ms,
                delay_ms=alike.delay_ms,
            )
            for alike in self.alike
            for start in range(0, len(alike.subscription_ids), ID_CHARACTERS)
        ]


class Published(msgspec.Struct, frozen=True, array_like=True):
    """A published message, as its publisher sees it, and as a committed half message keeps it."""

    id: str
    matched: int
    """How many subscriptions get it; 0: nothing is kept."""
    sent_ms: int


class TopicRecord(msgspec.Struct, frozen=True):
    """A log record of a topic, decoded."""

    topic_id: str
    partition: int
    send_id: str
    sent_ms: int
    header: TopicHeader
    messages: list[Described]
    """Without their bodies where these are in an object."""
    positions: Sequence[int]
    """The messages' numbers in their publish."""
    object_days: int
    """The class of life of the object with the messages; 0: they are in none."""

    def selected(self, selection: Filter, bodies: Mapping[int, str | bytes] = {}) -> list[int]:
        """The numbers of the messages that a filter selects.

        bodies: by the messages' numbers in their publish, if the filter reads them.
        """
        routing_keys = self.header.routing_keys
        return [
            index
            for index, each in enumerate(self.messages)
            if selection.matches(
                Filterable(
                    *(each.tags, routing_keys[index], each.attributes),
                    bodies.get(self.positions[index], ""),
                )
            )
        ]

    def due_ms(self, index: int) -> int:
        """When a message is to be delivered; 0: at once."""
        return self.header.dues_ms[index] if self.header.dues_ms else 0


def grouped(deliveries: Sequence[Delivery]) -> list[DeliveryGroup]:
    """Deliveries for a header: 12 bytes for each subscription, so that a hundred cost a unit."""
    alike: dict[tuple[tuple[int, ...], int, int], list[str]] = {}
    for each in deliveries:
        kind = tuple(each.indexes), each.life_ms, each.delay_ms
        alike.setdefault(kind, []).append(each.subscription_id)
    return [
        DeliveryGroup(list(indexes), life_ms, delay_ms, "".join(ids))
        for (indexes, life_ms, delay_ms), ids in alike.items()
    ]


def topic_log_key(topic: Topic, send_id: str) -> tuple[str, str]:
    """Key of a publish's record in its topic's log."""
    return log_key(f"{topic.id}#{topic.log_partition(send_id)}", send_id)


def holds_messages(item: Item) -> bool:
    """Returns True if an item of a log is a record: a topic's log also has pointers to records."""
    return "b" in item or "e" in item


def is_topic_record(item: Item) -> bool:
    """Returns True if a log record is a topic's."""
    return "g" in item


def mark_delayed() -> Item:
    """The attribute of a record that has messages for later."""
    return {"later": {"N": "1"}}


def has_delayed(item: Item) -> bool:
    """Returns True if a log record has messages for later."""
    return "later" in item


def read_record(item: Item) -> TopicRecord:
    """The record in an item."""
    _, topic_id, partition = item["pk"]["S"].split("#")
    messages = read_described(item)
    return TopicRecord(
        topic_id=topic_id,
        partition=int(partition),
        send_id=item["sk"]["S"].partition("#")[2],
        sent_ms=int(item["t"]["N"]),
        header=decode_packed(item["g"]["B"], TopicHeader),
        messages=list(messages.values()),
        positions=tuple(messages),
        object_days=object_days(item),
    )
