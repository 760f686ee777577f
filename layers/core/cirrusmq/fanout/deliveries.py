"""A reader's share of a log record on its way to the reader."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cirrusmq.fanout.parked_items import UNKNOWN_PLACE
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a log, as the stream brought it."""

    item: Item
    place: str = UNKNOWN_PLACE
    """Its place in the stream: 40 digits."""
    came_ms: int = 0
    """When the log took it, in whole seconds, rounded down."""

    @property
    def log_id(self) -> str:
        """The id of the queue or topic that has the log."""
        return str(self.item["pk"]["S"].split("#")[1])


class ReaderDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """One reader's share of a record, ready to be handed out."""

    reader_id: str
    entry: LogEntry
    lanes: frozenset[str] = frozenset()
    """A handout must not overtake an earlier one of the same lane; empty: no order is promised."""
    pushed: Subscription | None = None
    """The subscription to notify when it is done."""
    start: str = ""
    """The first sort key of the parcels to push."""
    posts: int = 0
    """How many messages are to be pushed."""
    bytes: int = 0
    """Upper bound of the JSON of these messages, in bytes."""
    delayed: bool = False
    """True if one of them is not to be pushed yet."""

    def give(self, core: Core) -> None:
        """Hands the share out; a repetition changes nothing. This class itself writes nothing."""

    @property
    def in_order(self) -> bool:
        """True if the reader is promised an order."""
        return bool(self.lanes)


def levels(handouts: Iterable[ReaderDelivery]) -> list[list[ReaderDelivery]]:
    """Returns the handouts in steps: a step is handed out in parallel, after the step before it.

    a1  b1  c1      side by side
    a2  b2          behind a1, b1
    a3
    """
    behind: dict[str, int] = {}
    steps: list[list[ReaderDelivery]] = []
    for handout in handouts:
        level = max((behind.get(lane, 0) for lane in handout.lanes), default=0)
        behind.update(dict.fromkeys(handout.lanes, level + 1))
        if level == len(steps):
            steps.append([])
        steps[level].append(handout)
    return steps
