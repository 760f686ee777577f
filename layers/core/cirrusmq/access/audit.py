"""The audit of an account: an item for each change, beside the line in the log.

All of an account are under one partition key, sorted by time: those of a moment would be under one
as well if each day had its own. It takes 1,000 changes a second, as many as an account may make
calls unless the deployment lets it make more. Beyond that entries are lost, and lines are not.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from cirrusmq.access.scopes import own_name
from cirrusmq.base import limits, ulid
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory_keys import audit_place
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
    """`Ok`, or the error after which it is not known what was changed."""
    account: str = ""
    """Of the key."""
    key_id: str = ""


class Chosen(NamedTuple):
    """What a listing of changes is to have; None: any."""

    from_ms: int | None = None
    to_ms: int | None = None
    key_id: str | None = None
    resource: str | None = None
    """A queue or topic, or what the path says; changes of what is below it are found as well."""


def keep(core: Core, account: str, entry: AuditEntry) -> None:
    """Put a change into an account's audit; a repeated call, or store's try, changes nothing."""
    told = "\n".join((entry.request_id, entry.route, entry.resource)).encode()
    entropy = hashlib.sha256(told).digest()[: ulid.ENTROPY_BYTES]
    place = audit_place(account, ulid.encode(entry.at_ms, entropy))
    expires_at = entry.at_ms // 1_000 + limits.AUDIT_SECONDS
    write = directory.put(core, place, entry, expires_at=expires_at)
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
        audit_place(account, "").pk,
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
