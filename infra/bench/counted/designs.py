"""Queues on DynamoDB in the designs of public projects: their units in closed form.

Each design keeps a message in one item and its visibility in an attribute. A row has the number of
writes of the item, writes of its index entry, and reads of the item by the calls for one message.
The units follow from DynamoDB's rules (developer guide, "Capacity unit consumption" and "Using
Global Secondary Indexes"):

- a write takes a unit for each KB of the item, a consistent read one for each 4 KB, a query half a
  unit for each 4 KB of all items that it reads, dropped ones included; the minimum is one unit
  (half for a query);
- an entry whose index keys change is deleted and put again: two writes. An entry whose other
  attributes change is written once. An item without the index's keys has no entry.

Sizes are for a leased message, whose item has all attributes; before the lease it is up to 150
bytes smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

_KB = 1_024


@dataclass(frozen=True)
class Calls:
    """Number of operations on one message, by call."""

    send: int = 0
    receive: int = 0
    delete: int = 0

    def times(self, receives: int) -> int:
        """Returns the number in the life of a message with `receives` receives."""
        return self.send + self.receive * receives + self.delete


@dataclass(frozen=True, kw_only=True)
class Design:
    """The use of DynamoDB by a queue."""

    beside_body: int
    """Bytes of an item beside the body: names, keys, times, receipt."""
    item_writes: Calls
    entry_writes: Calls = Calls()
    """Writes of the entry in the index of receivable messages."""
    entry_bytes: int | None = None
    """Size of an entry, or None if the index has the whole item or does not exist."""
    item_reads: Calls = Calls()
    """Consistent reads in a message's life."""
    empty_reads: int = 0
    """Consistent reads in a message's life that find nothing."""
    queries_one_by_one: bool = False
    """True if each message of a batch takes a separate query from the head."""
    reads_held: bool
    """True if a query reads messages in flight."""
    page: int | None = None
    """Maximum items of one query; None for the number of wanted messages."""

    def life(self, size: int, batch: int, receives: int = 1) -> tuple[float, float]:
        """Returns (write units, read units) of a batch that is sent, received and deleted together.

        `size`: bytes of each body. `receives`: receives of each message.
        """
        item, entry = size + self.beside_body, self._entry(size)
        written = self.item_writes.times(receives) * _units(item, _KB)
        written += self.entry_writes.times(receives) * _units(entry, _KB)
        read = self.item_reads.times(receives) * _units(item, 4 * _KB) + self.empty_reads
        queries = receives * (batch if self.queries_one_by_one else 1)
        together = min(batch, self.page or batch) * entry
        return batch * written, batch * read + queries * _query(together)

    def look(self, in_flight: int, size: int, batch: int) -> float:
        """Returns read units of a receive while all messages are in flight: it finds nothing."""
        if not self.reads_held:
            return _query(0)
        page, entry = self.page or batch, self._entry(size)
        pages, rest = divmod(in_flight, page)
        return pages * _query(page * entry) + _query(rest * entry)

    def _entry(self, size: int) -> int:
        return size + self.beside_body if self.entry_bytes is None else self.entry_bytes


INDEX_ON_VISIBILITY = Design(
    beside_body=110,
    item_writes=Calls(send=1, receive=1, delete=1),
    entry_writes=Calls(send=1, receive=2, delete=1),
    reads_held=False,
)
"""The design of most descriptions of a queue on DynamoDB.

    send     put {id, queue, visible_at, body}
    receive  query the index (queue, visible_at) up to now; then update each found item on the
             condition that it is still as it was found: visible_at = end of the lease
    delete   delete on the condition that the receipt is still the newest
"""
INDEX_OF_KEYS = replace(INDEX_ON_VISIBILITY, entry_bytes=57)
"""The same calls: the update answers the body anyway."""

AWS_SAMPLE = Design(
    beside_body=430,
    item_writes=Calls(send=2, receive=1, delete=1),
    entry_writes=Calls(send=1, receive=1, delete=1),
    item_reads=Calls(send=2, receive=2, delete=1),
    empty_reads=1,
    queries_one_by_one=True,
    reads_held=True,
    page=250,
)
"""github.com/aws-samples/amazon-dynamodb-implementing-priority-queuing, the code of the AWS
Database Blog's "Implementing priority queueing with Amazon DynamoDB" (QueueSdkClient: put, enqueue,
peek, remove; no batches). Its index is (queued, last_updated_timestamp) with all attributes.

    send     get of nothing; put; then to enqueue: get, update (queued = 1), get
    receive  query the index past what is selected; get; update (selected; the index's keys stay);
             get
    delete   get; update (queued removed): the item stays, TTL or its user removes it
"""

HIDDEN_UNTIL_FILTER = Design(
    beside_body=137,
    item_writes=Calls(send=1, receive=1, delete=1),
    reads_held=True,
)
"""github.com/mariotoffia/godynamodb-queue, version of 2026 (StandardQueue). No index: the key is
the time of sending, and receiving filters.

    send     batch write of puts, which costs what puts do
    receive  query from the head, as many items as are wanted, with the filter hidden_until < now,
             page after page; update each on the condition that hidden_until is as found
    delete   delete each on the condition that hidden_until and owner are as received
"""

DESIGNS = {
    "index on visibility": INDEX_ON_VISIBILITY,
    "index of keys alone": INDEX_OF_KEYS,
    "AWS sample": AWS_SAMPLE,
    "no index, filter": HIDDEN_UNTIL_FILTER,
}


def _units(size: int, unit: int) -> int:
    return max(1, ceil(size / unit))


def _query(size: int) -> float:
    return _units(size, 4 * _KB) / 2
