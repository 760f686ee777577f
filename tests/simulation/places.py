"""What clients receive from: a queue, a receiver of a queue, a pull subscription."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.simulation.deployment import ACCOUNT
from tests.simulation.history import Call

from cirrusmq.core import Core
from cirrusmq.queues import get_queue
from cirrusmq.receipts import SourceOf
from cirrusmq.receivers import source_named, source_with_id
from cirrusmq.receiving import Received
from cirrusmq.source import Source
from cirrusmq.subscription_source import subscription_source
from cirrusmq.subscriptions import get_subscription
from cirrusmq.topics import get_topic


@dataclass(frozen=True, slots=True)
class Place:
    """`queue`, `queue/receiver`, or `topic/subscription` where `topic` is true."""

    name: str
    topic: bool = False

    @property
    def holder(self) -> str:
        """The queue or topic."""
        return self.name.partition("/")[0]

    def source(self, core: Core) -> Source:
        """The source, found as the functions find it."""
        inner = self.name.partition("/")[2]
        if self.topic:
            topic = get_topic(core, ACCOUNT, self.holder)
            return subscription_source(get_subscription(core, topic, inner))
        return source_named(core, get_queue(core, ACCOUNT, self.holder), inner or None)

    def source_of(self, core: Core) -> SourceOf:
        """Which source a receipt is of, where it is of this place at all."""
        if self.topic:
            source = self.source(core)
            return lambda source_id: source if source_id == source.id else None
        queue = get_queue(core, ACCOUNT, self.holder)
        return lambda source_id: source_with_id(core, queue, source_id)


@dataclass(slots=True, eq=False)
class Delivery:
    """A message as a receive answered it."""

    call: Call
    id: str
    label: str
    """The beginning of its body: which message of which step of which actor it is."""
    group: str | None
    receipt: str
    count: int
    sent_ms: int
    expires_ms: int
    visible_ms: int
    dead: dict[str, Any] | None
    """Of a dead letter: where it came from."""

    @property
    def claim_ms(self) -> int:
        """When it was claimed, by the server's clock; the latest possible, where its expiry cut
        the lease short."""
        if self.visible_ms >= self.expires_ms:
            return self.call.ended_ms
        return self.visible_ms - 1_000 * int(self.call.given["timeout"])

    def __str__(self) -> str:
        until = self.visible_ms - self.call.begun_ms
        return f"{self.label} #{self.count} {self.receipt[-8:]} held {until} ms"


def read_deliveries(call: Call, received: list[Received]) -> list[Delivery]:
    """What a receive answered."""
    return [
        Delivery(
            call=call,
            id=each.parcel.message_id(each.place),
            label=each.message.body_bytes.decode().split(" ")[0],
            group=each.message.group,
            receipt=each.receipt,
            count=each.parcel.receives[each.place],
            sent_ms=each.parcel.sent_ms,
            expires_ms=each.parcel.expires_ms,
            visible_ms=each.parcel.visible_ms[each.place],
            dead=each.parcel.dead_letter,
        )
        for each in received
    ]
