"""The audit of an account: an item for each change, beside the line in the log.

All items of an account are under one partition key, sorted by time: a key for each day would not
spread the changes of a moment either. The key takes 1,000 changes a second, which is also the limit
of an account's calls unless the deployment raises it. Beyond that entries are lost, lines are not.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from cirrusmq.access.scopes import own_name
from cirrusmq.base import limits, ulid
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory_writes
from cirrusmq.storage.directory import audit_key
from cirrusmq.storage.newest import Span, read_newest


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change, as the directory keeps it for 90 days."""

    at_ms: int
    request_id: str
    route: str
    """The call: `PUT /queues/{queue}`, or `sqs CreateQueue`."""
    resource: str
    """The names in the call's path: `orders/copy` is a receiver of a queue."""
    code: str
    """`Ok`, or the error that left it unknown whether the change was made."""
    account: str = ""
    """The key's account."""
    key_id: str = ""


class Chosen(NamedTuple):
    """The changes to list. A member that is None restricts nothing."""

    from_ms: int | None = None
    to_ms: int | None = None
    key_id: str | None = None
    resource: str | None = None
    """A queue or topic, or the names in the path; changes of resources below it are found too."""


def keep(core: Core, account: str, entry: AuditEntry) -> None:
    """Puts a change into an account's audit; a repeated call, or store's try, changes nothing."""
    told = "\n".join((entry.request_id, entry.route, entry.resource)).encode()
    entropy = hashlib.sha256(told).digest()[: ulid.ENTROPY_BYTES]
    key = audit_key(account, ulid.encode(entry.at_ms, entropy))
    expires_at = entry.at_ms // 1_000 + limits.AUDIT_SECONDS
    write = directory_writes.put(core, key, entry, expires_at=expires_at)
    core.store.write("PutItem", write["Put"])


def page_of_entries(
    core: Core, account: str, chosen: Chosen, limit: int, cursor: str | None
) -> tuple[list[AuditEntry], str | None]:
    """A page of an account's changes of the last 90 days, the newest first."""
    prefix = None if chosen.resource is None else _compared(chosen.resource, account)

    def is_wanted(entry: AuditEntry) -> bool:
        if chosen.key_id is not None and entry.key_id != chosen.key_id:
            return False
        if prefix is None:
            return True
        name = _compared(entry.resource, account)
        return name == prefix or name.startswith(f"{prefix}/")

    oldest_ms = core.now_ms() - limits.AUDIT_SECONDS * 1_000 + 1
    from_ms = max(oldest_ms, chosen.from_ms or 0)
    to_ms = ulid.LAST_MS if chosen.to_ms is None else max(0, chosen.to_ms)
    span = Span(
        audit_key(account, "").pk,
        ulid.first(from_ms),
        ulid.encode(min(to_ms, ulid.LAST_MS), b"\xff" * ulid.ENTROPY_BYTES),
    )
    if span.first > span.last:
        return [], None
    listing = ("audit", account, *(repr(value) for value in chosen))
    return read_newest(core, listing, span, limit, cursor, AuditEntry, is_wanted)


def _compared(resource: str, account: str) -> str:
    """A resource as its owner names it, whatever its case."""
    first, slash, rest = resource.partition("/")
    return f"{own_name(first, account)}{slash}{rest}".lower()
