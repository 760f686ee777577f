"""The access keys that received from a queue, a receiver or a group within seven days.

Receives are noted by `key_cache.py`.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from cirrusmq.access.key_cache import receive_key
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, prefix_request
from cirrusmq.storage import cursors


class Consumer(NamedTuple):
    """A key that received."""

    key_id: str
    account: str
    received_ms: int
    """When last, up to five minutes before the truth: it is not noted more often."""


def page_of_consumers(
    core: Core, source_id: str, limit: int, cursor: str | None
) -> tuple[list[Consumer], str | None]:
    """A page of a source's consumers, in no order that means anything. Half a read unit each 4 KB.

    `source_id`: the id that `note_consumer` was given. TTL takes up to two days: what has expired
    is passed over.
    """
    listing = ("consumers", source_id)
    after = cursors.read(core, cursor, *listing)
    pk, now_seconds = receive_key(source_id, "")[0], core.now_ms() // 1_000
    request = prefix_request(core.tables.usage, pk, consistent=False) | {"Limit": limit + 1}
    if after is not None:
        request["ExclusiveStartKey"] = key(pk, after)
    items = core.store.query_pages(request)
    kept = (item for item in items if int(item["expires_at"]["N"]) > now_seconds)
    found = list(islice(kept, limit + 1))
    more = cursors.make(core, found[limit - 1]["sk"]["S"], *listing) if found[limit:] else None
    return [_consumer(item) for item in found[:limit]], more


def _consumer(item: Item) -> Consumer:
    return Consumer(item["key_id"]["S"], item["account"]["S"], int(item["received_ms"]["N"]))
