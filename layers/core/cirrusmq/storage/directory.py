"""The Directory table: its keys, and documents of resources, read through the cache.

Functions roll one after another, and back, so that a release reads documents of a later one; one
that must not be used so is refused (`decode_document`). Writes are in `directory_writes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.formats import is_later, later_release
from cirrusmq.base.shapes import decode_json
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, shard_key

T = TypeVar("T")
SHOWN_BYTES = 2_000
"""Most bytes of a listed value beside its document: names and values of defaults, times."""


RESOURCES = "I"
"""Kind of the partition keys of all resources, for the sweep."""
RUNNING = "running"
"""Partition with a pointer to each running operation, for the sweep."""


class _Format(msgspec.Struct):
    """The format of a document."""

    format: int = 1


class Document(msgspec.Struct, Generic[T], frozen=True):
    """A resource as it was read: its value, and the version that a change must find."""

    value: T
    version: int
    stored: Item
    """The item, with all that this release may not know."""

    def followed_by(self, value: T) -> Document[T]:
        """Returns the document after a change of it to `value` was written."""
        return msgspec.structs.replace(self, value=value, version=self.version + 1)


def read(core: Core, key: ItemKey, kind: type[T]) -> Document[T] | None:
    """Returns the document under `key`, read now, or None."""
    item = core.store.get(core.tables.directory, *key)
    return None if item is None else decode_document(item, kind)


def read_cached(core: Core, key: ItemKey, kind: type[T]) -> T | None:
    """Returns the value under `key`, as the cache has it, or None."""

    def load() -> T | None:
        found = read(core, key, kind)
        return None if found is None else found.value

    return core.cache.get(key, load)


def read_list(core: Core, pk: str, prefix: str, kind: type[T]) -> Iterator[T]:
    """Yields the values of a partition whose sort keys begin with `prefix`, in order."""
    for item in core.store.query_all(core.tables.directory, pk, prefix):
        yield decode_document(item, kind).value


def read_from(core: Core, pk: str, start: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yields the values of a partition from the sort key `start` on, in order, with their keys."""
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "KeyConditionExpression": "pk = :pk AND sk >= :start",
        "ExpressionAttributeValues": {":pk": {"S": pk}, ":start": {"S": start}},
        "ConsistentRead": True,
    }
    for item in core.store.query_pages(request):
        yield item["sk"]["S"], decode_document(item, kind).value


def read_count(core: Core, key: ItemKey) -> int:
    """Returns a counter, as the cache has it."""

    def load() -> int:
        item = core.store.get(core.tables.directory, *key)
        return int(item["count"]["N"]) if item else 0

    return core.cache.get(key, load)


def decode_document(item: Item, kind: type[T]) -> Document[T]:
    """Returns the document in an item.

    Raises Unavailable if a later release wrote a higher `format`, which this one must not use, or
    if the document grants or bounds something that this release does not know.
    """
    text = item["document"]["S"]
    if '"format":' in text and is_later(decode_json(text, _Format).format):
        raise _of_a_later_release(item)
    try:
        value = decode_json(text, kind)
    except msgspec.ValidationError as error:
        raise _of_a_later_release(item) from error
    return Document(value, int(item["version"]["N"]), item)


def _of_a_later_release(item: Item) -> Unavailable:
    where = f"{item['pk']['S']} {item['sk']['S']}"
    return later_release(where, "This resource was written by a later release; deploy that one.")


class ItemKey(NamedTuple):
    """Key of an item of the Directory."""

    pk: str
    sk: str


ADMIN_KEYS = ItemKey("deployment", "admin_keys")
FORMATS = ItemKey("deployment", "formats")


def account_key(account: str) -> ItemKey:
    """Returns the key of an account's item, which counts its queues."""
    return ItemKey(f"A#{account}", "account")


def access_key_key(access_key_id: str) -> ItemKey:
    """Returns the key of an access key, as a caller shows it."""
    return ItemKey(f"K#{access_key_id}", "key")


def account_access_key_key(account: str, access_key_id: str) -> ItemKey:
    """Returns the key of an access key in its account's list."""
    return ItemKey(f"A#{account}", f"key#{access_key_id}")


def queue_key(account: str, name: str) -> ItemKey:
    """Returns the key of a queue; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"queue#{name.lower()}")


def queue_changes_key(account: str) -> ItemKey:
    """Returns the key of the count of changes of the account's queues."""
    return ItemKey(f"A#{account}", "queue_changes")


def queue_users_key(queue_id: str) -> ItemKey:
    """Returns the key of the references to a queue, by use, which forbid its deletion."""
    return ItemKey(f"Q#{queue_id}", "users")


def receiver_key(queue_id: str, name: str) -> ItemKey:
    """Returns the key of a receiver of a queue; case of the name is ignored."""
    return ItemKey(f"Q#{queue_id}", f"receiver#{name.lower()}")


def receivers_count_key(queue_id: str) -> ItemKey:
    """Returns the key of the count of a queue's receivers."""
    return ItemKey(f"Q#{queue_id}", "count")


def grant_key(queue_id: str, account: str) -> ItemKey:
    """Returns the key of a grant, in its queue's list."""
    return ItemKey(f"Q#{queue_id}", f"grant#{account}")


def granted_key(account: str, owner: str, queue_name: str) -> ItemKey:
    """Returns the key of a grant, in the list of the account that has it."""
    return ItemKey(f"G#{account}", f"{owner}#{queue_name}")


def topic_grant_key(topic_id: str, account: str) -> ItemKey:
    """Returns the key of a grant, in its topic's list."""
    return ItemKey(f"T#{topic_id}", f"grant#{account}")


def topic_granted_key(account: str, owner: str, topic_name: str) -> ItemKey:
    """Returns the key of a grant on a topic, in its account's list; no queue has such a name."""
    return ItemKey(f"G#{account}", f"{owner}#topic#{topic_name}")


def topic_key(account: str, name: str) -> ItemKey:
    """Returns the key of a topic; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"topic#{name.lower()}")


def subscription_key(topic_id: str, name: str) -> ItemKey:
    """Returns the key of a subscription of a topic; case of the name is ignored."""
    return ItemKey(f"T#{topic_id}", f"subscription#{name.lower()}")


def subscriptions_count_key(topic_id: str) -> ItemKey:
    """Returns the key of the count of a topic's subscriptions."""
    return ItemKey(f"T#{topic_id}", "count")


def topics_count_key(account: str) -> ItemKey:
    """Returns the key of the count of an account's topics."""
    return ItemKey(f"A#{account}", "topics")


def resource_key(resource_id: str) -> ItemKey:
    """Returns the key of an id's account and name; kept for a while after the resource.

    All of them have one of a few partition keys, so that they can be listed.
    """
    return ItemKey(shard_key(RESOURCES, resource_id), resource_id)


def schedule_key(account: str, name: str) -> ItemKey:
    """Returns the key of a schedule; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"schedule#{name.lower()}")


def schedules_count_key(account: str) -> ItemKey:
    """Returns the key of the count of an account's schedules."""
    return ItemKey(f"A#{account}", "schedules")


def operation_key(account: str, operation_id: str) -> ItemKey:
    """Returns the key of an operation of an account."""
    return ItemKey(f"A#{account}", f"operation#{operation_id}")


def audit_key(account: str, change_id: str) -> ItemKey:
    """Returns the key of a change in an account's audit, under an id that sorts by time."""
    return ItemKey(f"E#{account}", change_id)
