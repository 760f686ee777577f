"""The call sequences of queues on DynamoDB as public projects make them, counted by Amazon's rules.

Each keeps a message in one item and its visibility in an attribute. They run for real on the
embedded engine, one message after the other, with tables in the place of indexes (`indexed`).

`VisibilityIndex`: the design that most descriptions of a queue on DynamoDB come to.
    send     put {id, queue, visible_at, body}
    receive  query the index (queue, visible_at) up to now; then update each found item on the
             condition that it is still as it was found: visible_at = end of the lease
    delete   delete on the condition that the receipt is still the newest
    The index has all attributes, or the keys alone: the update answers the body anyway.

`PriorityQueueSample`: github.com/aws-samples/amazon-dynamodb-implementing-priority-queuing, the
code of the AWS Database Blog's "Implementing priority queueing with Amazon DynamoDB"
(QueueSdkClient: put, enqueue, peek, remove). Its index is (queued, last_updated_timestamp) with
all attributes.
    send     get; put; then to enqueue: get, update (queued = 1), get
    receive  query the index, 250 items a page; get; update (selected, peeked at; the index's keys
             stay); get
    delete   get; update (queued removed): the item stays, TTL or somebody else removes it
    Reads of items are consistent. It has no batches.

`HiddenUntilFilter`: github.com/mariotoffia/godynamodb-queue, version of 2026 (StandardQueue). No
index: the key is the time of sending, and receiving filters.
    send     batch write of puts {PK, SK, hidden_until = 0, owner, ttl, event}
    receive  query from the head of the partition, as many items as are wanted, with the filter
             hidden_until < now, page after page; update each on the condition that hidden_until
             is as found
    delete   delete each on the condition that hidden_until and owner are as received
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Protocol

from .indexed import Index, IndexedTable, Item

START_MS = 1_795_000_000_000
LEASE_MS = 43_200_000


class KnownQueue(Protocol):
    """A queue of one design, alone in its table."""

    table: IndexedTable

    def send(self, body: bytes) -> Item:
        """Send a message; its item."""
        ...

    def find(self, most: int) -> Iterator[Item]:
        """Messages that can be received, up to so many."""
        ...

    def lease(self, item: Item) -> Item:
        """Take a message that was found."""
        ...

    def delete(self, item: Item) -> None:
        """Delete a message that was taken."""
        ...


class VisibilityIndex:
    """One item a message; an index on when it can be received."""

    def __init__(self, *, keys_only: bool = False) -> None:
        index = Index("ByVisibility", "queue", "visible_at", keys_only=keys_only)
        self.table = IndexedTable("id", None, index)
        self._times = _milliseconds()

    def send(self, body: bytes) -> Item:
        """One put."""
        now = next(self._times)
        item = {"id": _text(f"message-{now}"), "queue": _text("orders"), "sent_at": _number(now)}
        item |= {"body": {"B": body}, "receives": _number(0), "visible_at": _text(str(now))}
        self.table.put(item)
        return item

    def find(self, most: int) -> Iterator[Item]:
        """One query of the index."""
        now = next(self._times)
        yield from next(
            self.table.query(
                "ByVisibility",
                KeyConditionExpression="queue = :queue AND visible_at <= :now",
                ExpressionAttributeValues={":queue": _text("orders"), ":now": _text(str(now))},
                Limit=most,
            )
        )

    def lease(self, item: Item) -> Item:
        """One update."""
        return self.table.update(
            {"id": item["id"]},
            UpdateExpression="SET visible_at = :until, receipt = :receipt ADD receives :one",
            ConditionExpression="visible_at = :found",
            ExpressionAttributeValues={
                ":until": _text(str(next(self._times) + LEASE_MS)),
                ":receipt": _text("r" * 22),
                ":one": _number(1),
                ":found": item["visible_at"],
            },
        )

    def delete(self, item: Item) -> None:
        """One delete."""
        self.table.delete(
            {"id": item["id"]},
            ConditionExpression="receipt = :receipt",
            ExpressionAttributeValues={":receipt": item["receipt"]},
        )


class PriorityQueueSample:
    """The sample of the AWS Database Blog."""

    def __init__(self) -> None:
        queued = Index("Queued", "queued", "last_updated_timestamp", "N")
        dead = Index("Dead", "DLQ", "last_updated_timestamp", "N")
        self.table = IndexedTable("id", None, queued, dead)
        self._times = _milliseconds()

    def send(self, body: bytes) -> Item:
        """A put and an enqueue; the load that comes before the put finds nothing."""
        at = self._timestamp()
        key = {"id": _text(f"shipment-{at}")}
        self._load(key)
        system = {"version": _number(1), "queued": _number(0), "status": _text("READY_TO_SHIP")}
        system |= {"creation_timestamp": _text(at), "last_updated_timestamp": _text(at)}
        system |= {"queue_selected": {"BOOL": False}}
        item = key | {"data": {"B": body}, "last_updated_timestamp": _text(at)}
        self.table.put(item | {"system_info": {"M": system}})
        self._load(key)
        queued = self._update(
            key,
            "SET queued = :one, #system.queued = :one, last_updated_timestamp = :at, "
            "#system.last_updated_timestamp = :at, #system.queue_added_timestamp = :at",
            {":at": _text(self._timestamp())},
        )
        self._load(key)
        return queued

    def find(self, most: int) -> Iterator[Item]:
        """Pages of what is queued, past what is selected, from the head for each message."""
        for _ in range(most):
            pages = self.table.query(
                "Queued",
                KeyConditionExpression="queued = :one",
                ExpressionAttributeValues={":one": _number(1)},
                Limit=250,
            )
            for item in itertools.chain.from_iterable(pages):
                if not item["system_info"]["M"]["queue_selected"]["BOOL"]:
                    yield item
                    break
            else:
                return

    def lease(self, item: Item) -> Item:
        """The second half of a peek."""
        key = {"id": item["id"]}
        self._load(key)
        selected = self._update(
            key,
            "SET #system.queue_selected = :true, #system.peek_utc_timestamp = :now, "
            "#system.last_updated_timestamp = :at, #system.queue_peek_timestamp = :at",
            {
                ":true": {"BOOL": True},
                ":now": _number(next(self._times)),
                ":at": _text(self._timestamp()),
            },
        )
        self._load(key)
        return selected

    def delete(self, item: Item) -> None:
        """A removal from the queue; the item stays."""
        key = {"id": item["id"]}
        self._load(key)
        self._update(
            key,
            "SET #system.queued = :zero, #system.queue_selected = :false, "
            "last_updated_timestamp = :at, #system.last_updated_timestamp = :at, "
            "#system.queue_remove_timestamp = :at REMOVE queued, DLQ, #system.peek_utc_timestamp",
            {
                ":at": _text(self._timestamp()),
                ":false": {"BOOL": False},
                ":zero": _number(0),
            },
        )

    def _load(self, key: Item) -> None:
        self.table.get(key, consistent=True)

    def _update(self, key: Item, expression: str, values: Item) -> Item:
        return self.table.update(
            key,
            UpdateExpression=f"{expression} ADD #system.version :one",
            ExpressionAttributeNames={"#system": "system_info"},
            ExpressionAttributeValues={":one": _number(1), **values},
        )

    def _timestamp(self) -> str:
        return f"2026-11-20T08:00:00.{next(self._times)}Z"


class HiddenUntilFilter:
    """No index: what is hidden is read and filtered away."""

    def __init__(self) -> None:
        self.table = IndexedTable("PK", "SK")
        self._times = _milliseconds()

    def send(self, body: bytes) -> Item:
        """One put, in a batch write, which costs the same."""
        now = next(self._times)
        item = {"PK": _text("orders|client"), "SK": _text(f"{now}000000-a7Fk2Qx9Tz")}
        event = {"messageId": item["SK"], "body": {"B": body}}
        item |= {"hidden_until": _number(0), "owner": _text("client"), "event": {"M": event}}
        self.table.put(item | {"ttl": _number(now // 1_000)})
        return item

    def find(self, most: int) -> Iterator[Item]:
        """Pages of as many items as are wanted, from the head, until enough of them is visible."""
        now = next(self._times)
        pages = self.table.query(
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": _text("orders|client")},
            Limit=most,
        )
        found = 0
        for page in pages:
            visible = [item for item in page if int(item["hidden_until"]["N"]) < now]
            yield from visible
            found += len(visible)
            if found >= most:
                return

    def lease(self, item: Item) -> Item:
        """One update."""
        return self.table.update(
            {"PK": item["PK"], "SK": item["SK"]},
            UpdateExpression="SET hidden_until = :until, #owner = :owner",
            ConditionExpression="hidden_until = :found",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={
                ":until": _number(next(self._times) + LEASE_MS),
                ":owner": _text("client"),
                ":found": item["hidden_until"],
            },
        )

    def delete(self, item: Item) -> None:
        """One delete."""
        self.table.delete(
            {"PK": item["PK"], "SK": item["SK"]},
            ConditionExpression="hidden_until = :until AND #owner = :owner",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":until": item["hidden_until"], ":owner": item["owner"]},
        )


def life(queue: KnownQueue, bodies: Sequence[bytes]) -> tuple[float, float]:
    """(write units, read units) of messages that are sent, received and deleted."""
    queue.table.reset()
    for body in bodies:
        queue.send(body)
    held = [queue.lease(item) for item in queue.find(len(bodies))]
    if len(held) != len(bodies):
        raise RuntimeError(f"received {len(held)} of {len(bodies)}")
    for item in held:
        queue.delete(item)
    return queue.table.units()


def _milliseconds() -> Iterator[int]:
    """Every moment is another one, so that entries of an index differ in their keys."""
    return itertools.count(START_MS)


def _text(value: str) -> Item:
    return {"S": value}


def _number(value: int) -> Item:
    return {"N": str(value)}
