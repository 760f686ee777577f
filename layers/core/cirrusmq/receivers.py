"""Receivers: independent readers of a queue, each with leases, counts and receipts of its own."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from cirrusmq import limits, operations
from cirrusmq.core import Core
from cirrusmq.errors import (
    AlreadyExists,
    InvalidParameter,
    LimitExceeded,
    ReceiverNotFound,
    Unavailable,
)
from cirrusmq.filters.selection import compile_filter
from cirrusmq.names import RECEIVER_NAME, check_name, new_id
from cirrusmq.pages import read_page
from cirrusmq.queue import Queue
from cirrusmq.queues import RESOURCE_SECONDS, Resource, update_queue
from cirrusmq.source import Source, queue_source
from cirrusmq.storage import directory
from cirrusmq.storage.directory import queue_place, receiver_place
from cirrusmq.storage.store import TransactionRefused
from cirrusmq.timestamps import format_time, parse_time

DEFAULT = "default"
_BEGINNING_MS = limits.CALL_MS + limits.CACHE_MS
"""What a call began is written by then, and no cache holds what was there before."""


class ReceiverInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `PUT …/receivers/{receiver}`."""

    start: str = "latest"
    filter: dict[str, Any] | UnsetType | None = UNSET


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver as the directory keeps it. Times are in milliseconds since the epoch."""

    id: str
    name: str
    queue_id: str
    start: str
    """As the caller gave it."""
    start_ms: int
    """It gets every message sent from then on."""
    filter: dict[str, Any] | None
    created_ms: int
    backfill: str | None = None
    """Id of the operation that gives it what was sent before it came."""

    def show(self) -> dict[str, Any]:
        """Attributes as answers show them."""
        return {
            "name": self.name,
            "id": self.id,
            "start": self.start,
            "starts_at": format_time(self.start_ms),
            "filter": self.filter,
            "created_at": format_time(self.created_ms),
            "modified_at": format_time(self.created_ms),
        }


def receiver_source(core: Core, queue: Queue, receiver: Receiver) -> Source:
    """What the receiver receives from."""
    default = queue_source(queue, core.now_ms())
    return replace(default, id=receiver.id, receiver=receiver.name, log_id=queue.id)


def source_named(core: Core, queue: Queue, name: str | None) -> Source:
    """The queue's default source, or a receiver's; ReceiverNotFound."""
    if name is None or name == DEFAULT:
        return queue_source(queue, core.now_ms())
    return receiver_source(core, queue, get_receiver(core, queue, name))


def source_with_id(core: Core, queue: Queue, source_id: str) -> Source | None:
    """The source of the queue with this id; None where the id is another queue's."""
    if source_id == queue.id:
        return queue_source(queue, core.now_ms())
    for receiver in cached_receivers(core, queue.id):
        if receiver.id == source_id:
            return receiver_source(core, queue, receiver)
    return None


def all_sources(core: Core, queue: Queue) -> list[Source]:
    """The default source and those of all receivers, as the directory has them now."""
    receivers = list_receivers(core, queue)
    return [
        queue_source(queue, core.now_ms()),
        *(receiver_source(core, queue, receiver) for receiver in receivers),
    ]


def page_of_receivers(
    core: Core, queue: Queue, limit: int, cursor: str | None
) -> tuple[list[Receiver], str | None]:
    """A page of the queue's receivers, by name."""
    place = receiver_place(queue.id, "")
    return read_page(core, ("receivers", queue.id), place, limit, cursor, Receiver)


def list_receivers(core: Core, queue: Queue) -> list[Receiver]:
    """The queue's receivers, by name."""
    pk, prefix = receiver_place(queue.id, "")
    return list(directory.read_list(core, pk, prefix, Receiver))


def cached_receivers(core: Core, queue_id: str) -> list[Receiver]:
    """The queue's receivers, as the cache has them."""
    pk, prefix = receiver_place(queue_id, "")
    return core.cache.get(
        (pk, prefix), lambda: list(directory.read_list(core, pk, prefix, Receiver))
    )


def get_receiver(core: Core, queue: Queue, name: str) -> Receiver:
    """The receiver of exactly this name; ReceiverNotFound."""
    check_name("receiver", name, RECEIVER_NAME)
    for receiver in cached_receivers(core, queue.id):
        if receiver.name == name:
            return receiver
    raise ReceiverNotFound


def put_receiver(
    core: Core, queue: Queue, name: str, given: ReceiverInput
) -> tuple[Receiver, bool]:
    """Add a receiver, or find it with these attributes; answers (receiver, created)."""
    check_name("receiver", name, RECEIVER_NAME)
    if name.lower() == DEFAULT:
        raise InvalidParameter("receiver", "default is reserved")
    selected = None if isinstance(given.filter, UnsetType) else given.filter
    shown_filter = compile_filter(selected, "queue").normalized()
    found = directory.read(core, receiver_place(queue.id, name), Receiver)
    if found is not None:
        same = (found.value.name, found.value.start, found.value.filter)
        if same != (name, given.start, shown_filter):
            raise AlreadyExists(f"receiver {found.value.name} exists with other attributes")
        if core.now_ms() < found.value.created_ms + _BEGINNING_MS:
            _take_effect(core, queue, found.value)  # whoever created it may have stopped
        return found.value, False
    if len(list_receivers(core, queue)) >= limits.RECEIVERS_PER_QUEUE:
        raise LimitExceeded(f"a queue has at most {limits.RECEIVERS_PER_QUEUE} receivers")
    start_ms = _check_start(core, queue, given.start)
    logged = _with_log(core, queue)
    now_ms = core.now_ms()
    if start_ms is None:
        start_ms = now_ms + 1  # what was sent before this call is not the receiver's
    start_ms = max(start_ms, _earliest_ms(logged, now_ms))
    backfill, writes = None, list[dict[str, Any]]()
    if start_ms <= now_ms:
        until_ms = now_ms + _BEGINNING_MS
        details = {"receiver": name, "until_ms": until_ms}
        operation, writes = operations.creation(core, logged, "backfill", details, until_ms)
        backfill = operation.id
    receiver = Receiver(
        id=new_id(core.random),
        name=name,
        queue_id=queue.id,
        start=given.start,
        start_ms=start_ms,
        filter=shown_filter,
        created_ms=now_ms,
        backfill=backfill,
    )
    resource = Resource(queue.account, "receiver", f"{queue.name}/{name}")
    try:
        core.store.transact(
            [
                directory.put_new(core, receiver_place(queue.id, name), receiver),
                directory.put_new(core, directory.resource_place(receiver.id), resource),
                *writes,
            ]
        )
    except TransactionRefused as refused:
        raise Unavailable("another call is creating this receiver: repeat") from refused
    _take_effect(core, queue, receiver)
    core.wait_until(min(receiver.start_ms, now_ms + 1))  # `latest` is from the answer on
    return receiver, True


def _take_effect(core: Core, queue: Queue, receiver: Receiver) -> None:
    """In force everywhere, and its backfill begun, when this returns.

    fan_out may overlook it until the caches have turned over; the backfill brings what was sent by
    then. Where the call stops before, the receiver's PUT repeated does it, or at last the sweep:

        PUT ──> receiver, backfill until + 31 s ──> caches turned over ──> backfill until now
                            └── stops: the sweep runs it, 31 s later, when they have as well
    """
    core.cache.turn_over(receiver_place(queue.id, ""))
    if receiver.backfill is not None:
        operations.release(core, queue.account, receiver.backfill, until_ms=core.now_ms())


def delete_receiver(core: Core, queue: Queue, name: str) -> None:
    """Remove a receiver; what it had not received is gone with it."""
    receiver = get_receiver(core, queue, name)
    expires_at = core.now_ms() // 1000 + RESOURCE_SECONDS
    resource = Resource(queue.account, "receiver", f"{queue.name}/{name}")
    core.store.transact(
        [
            directory.delete(core, receiver_place(queue.id, name)),
            directory.put(
                core, directory.resource_place(receiver.id), resource, expires_at=expires_at
            ),
        ]
    )
    core.cache.turn_over(receiver_place(queue.id, ""))


def _check_start(core: Core, queue: Queue, start: str) -> int | None:
    """Milliseconds of the start; None for `latest`. Refuses a start before the log's."""
    if start == "latest":
        return None
    if start == "earliest":
        return 0
    start_ms = parse_time("start", start)
    earliest_ms = _earliest_ms(queue, core.now_ms())
    if start_ms < earliest_ms:
        raise InvalidParameter(
            "start",
            "must be latest, earliest or a time; the earliest possible is "
            + format_time(earliest_ms),
        )
    return start_ms


def _earliest_ms(queue: Queue, now_ms: int) -> int:
    """Since when the queue's log has every message that is not expired or purged."""
    if queue.log_since_ms is None:
        return now_ms
    oldest_ms = now_ms - queue.longest_retention_seconds(now_ms) * 1000
    return max(queue.log_since_ms, queue.purged_ms, oldest_ms)


def _with_log(core: Core, queue: Queue) -> Queue:
    """The queue with its log turned on.

    The log begins when no sender works with the queue's old attributes any more, which is when
    the update returns; that is written down then. Until it is, and for good where the call stops
    before, it begins at a time by which the update has returned in any case.
    """
    if queue.log_since_ms is None:
        queue = update_queue(
            core,
            queue.account,
            queue.name,
            lambda before: _log_since(before, core.now_ms() + _BEGINNING_MS),
        )
    elif queue.log_since_ms > core.now_ms():  # another call is at it
        core.cache.turn_over(queue_place(queue.account, queue.name))
    else:
        return queue
    since_ms = core.now_ms() + 1
    return update_queue(
        core, queue.account, queue.name, lambda before: _log_since(before, since_ms)
    )


def _log_since(queue: Queue, since_ms: int) -> Queue:
    earlier_ms = since_ms if queue.log_since_ms is None else queue.log_since_ms
    return msgspec.structs.replace(queue, log_since_ms=min(earlier_ms, since_ms))
