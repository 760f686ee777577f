"""Resources by id: the account, kind and name of an id, for the meter, reports and the sweep."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq.base.shapes import decode_json
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import resource_key

_KEPT_SECONDS = 60 * 86_400


class Resource(msgspec.Struct, frozen=True):
    """A queue, receiver, topic or subscription, as the directory keeps it under its id."""

    account: str
    kind: str
    name: str
    pushed: bool = False
    """True if it is a subscription that is pushed to a URL."""


def put_resource(core: Core, resource_id: str, resource: Resource) -> dict[str, Any]:
    """Returns a transaction's write of a new resource."""
    return directory_writes.put_new(core, resource_key(resource_id), resource)


def expire_resource(core: Core, resource_id: str, resource: Resource) -> dict[str, Any]:
    """Returns a transaction's write of a deleted resource: its id is known for 60 days more."""
    expires_at = core.now_ms() // 1000 + _KEPT_SECONDS
    return directory_writes.expire(core, resource_key(resource_id), resource, expires_at)


def find_existing(core: Core, resource_id: str) -> Resource | None:
    """Returns the present resource of this id, or None if it was deleted."""
    item = core.store.get(core.tables.directory, *resource_key(resource_id))
    if item is None or "expires_at" in item:
        return None
    return decode_json(item["document"]["S"], Resource)


def find_resource(core: Core, resource_id: str) -> Resource | None:
    """Returns the resource of this id from the slow cache; also for 60 days after its deletion."""
    key = resource_key(resource_id)

    def load() -> Resource | None:
        found = directory.read(core, key, Resource)
        return found.value if found else None

    return core.slow_cache.get(key, load)


def billed_resource(core: Core, resource_id: str) -> Resource:
    """Returns the resource of this id, or one of the account `unknown` that stands for it."""
    return find_resource(core, resource_id) or Resource("unknown", "queue", resource_id)
