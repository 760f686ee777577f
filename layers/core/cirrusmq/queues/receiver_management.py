"""Adding and removing receivers, and a queue with its receivers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    AlreadyExists,
    InvalidParameter,
    LimitExceeded,
    QueueNotFound,
    ReceiverNotFound,
)
from cirrusmq.base.names import RECEIVER_NAME, check_name, new_id
from cirrusmq.filters.selection import compile_filter
from cirrusmq.model.described import with_given
from cirrusmq.model.pauses import changed as pauses_changed
from cirrusmq.model.queue import Queue, ReceiverChangeInput, ReceiverInput
from cirrusmq.queues import operations
from cirrusmq.queues.queues import check_unused, find_queue, queue_removal
from cirrusmq.queues.reader_backlog import read_by
from cirrusmq.queues.receiver_log import (
    BEGINNING_MS,
    EARLIEST,
    LATEST,
    check_start,
    earliest_ms,
    with_log,
)
from cirrusmq.queues.receivers import DEFAULT, Receiver, list_receivers
from cirrusmq.queues.resources import Resource, expire_resource, put_resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import (
    Document,
    queue_key,
    receiver_key,
    receivers_count_key,
    resource_key,
)
from cirrusmq.storage.optimistic_locking import DirectoryChange, change


def put_receiver(
    core: Core,
    queue: Queue,
    name: str,
    given: ReceiverInput,
    *,
    resource_id: str | None = None,
    by: str = "",
    exact: bool = False,
) -> tuple[Receiver, bool]:
    """Adds a receiver, or finds one with these attributes. Returns (receiver, created).

    An attribute that is not given is not compared, but with `exact` must be at its default.
    resource_id: the id of a new one, never used before; None draws one. by: the id of the access
    key that asks for it; empty without one.
    """
    check_name("receiver", name, RECEIVER_NAME)
    if name.lower() == DEFAULT:
        raise InvalidParameter("receiver", "must not be default, which is the queue itself")
    selected = None if isinstance(given.filter, UnsetType) else given.filter
    wanted = msgspec.structs.replace(given, filter=compile_filter(selected, "queue").normalized())
    names = given.__struct_fields__
    compared = [each for each in names if exact or getattr(given, each) is not UNSET]
    receiver, created = change(
        core, lambda: _creation(core, queue, name, wanted, compared, resource_id, by)
    )
    # Repeated if it exists: the call that created it may have stopped before it took effect.
    if created or core.now_ms() < receiver.created_ms + BEGINNING_MS:
        _take_effect(core, queue, receiver)
    return receiver, created


def _creation(
    core: Core,
    queue: Queue,
    name: str,
    wanted: ReceiverInput,
    compared: Sequence[str],
    resource_id: str | None,
    by: str,
) -> DirectoryChange[tuple[Receiver, bool]]:
    start = LATEST if isinstance(wanted.start, UnsetType) else wanted.start
    shown_filter = None if isinstance(wanted.filter, UnsetType) else wanted.filter
    key = receiver_key(queue.id, name)
    found = directory.read(core, key, Receiver)
    if found is not None:
        asked = {"start": start, "filter": shown_filter}
        same = all(getattr(found.value, each) == asked[each] for each in compared)
        if found.value.name != name or not same:
            raise AlreadyExists(f"receiver {found.value.name} exists with other attributes")
        return DirectoryChange(result=(found.value, False))
    start_ms = check_start(core, queue, start)
    logged = with_log(core, queue)
    now_ms = core.now_ms()
    if start_ms is None:
        start_ms = now_ms + core.skew_ms + 1  # earlier messages are not the receiver's
    if start != EARLIEST:
        start_ms = max(start_ms, earliest_ms(logged, now_ms))
    receiver_id = resource_id or new_id(core.random)
    backfill, writes = None, list[dict[str, Any]]()
    if start_ms <= now_ms:
        until_ms = now_ms + BEGINNING_MS
        has_backlog = start == EARLIEST and start_ms < logged.backlog_before_ms
        details = {
            "receiver": name,
            "receiver_id": receiver_id,
            "until_ms": until_ms,
            "backlog": has_backlog,
        }
        operation, writes = operations.creation(core, logged, "backfill", details, by, until_ms)
        backfill = operation.id
        if has_backlog:
            writes += read_by(core, logged, operation.id)
    receiver = Receiver(
        id=receiver_id,
        name=name,
        queue_id=queue.id,
        start=start,
        start_ms=start_ms,
        filter=shown_filter,
        created_ms=now_ms,
        backfill=backfill,
        filling=backfill is not None,
    )
    limit = limits.RECEIVERS_PER_QUEUE
    undeleted = "attribute_exists(pk) AND attribute_not_exists(expires_at)"
    return DirectoryChange(
        result=(receiver, True),
        writes=[
            directory_writes.check(core, resource_key(queue.id), undeleted),
            directory_writes.count_up(core, receivers_count_key(queue.id), limit),
            directory_writes.put_new(core, key, receiver),
            put_resource(core, receiver.id, _resource(queue, receiver)),
            *writes,
        ],
        refusals={
            0: QueueNotFound(),
            1: LimitExceeded(f"a queue has at most {limit} receivers"),
        },
    )


def _take_effect(core: Core, queue: Queue, receiver: Receiver) -> None:
    """Makes a receiver take effect everywhere, and begins its backfill, before it returns.

    fan_out may overlook it until the caches have turned over; the backfill gives it the messages
    sent by then, by any clock. For as long, consumers may end messages of the queue's backlog
    without a note. If the call stops before, the receiver's repeated PUT does it, or the sweep:

        PUT ──> receiver, backfill until + 33 s ──> caches turned over ──> backfill until now
                            └── stops: the sweep runs it, 33 s later, when they have as well

    A message sent after the answer is later than that, and than the start of one that is `latest`.
    """
    core.cache.turn_over(receiver_key(queue.id, ""), queue_key(queue.account, queue.name))
    begun_ms = min(receiver.start_ms, receiver.created_ms + core.skew_ms + 1)
    if receiver.backfill is not None:
        begun_ms = core.floor_ms()
        operations.release(core, queue.account, receiver.backfill, until_ms=begun_ms)
    core.wait_past(begun_ms - 1)


def change_receiver(core: Core, queue: Queue, name: str, given: ReceiverChangeInput) -> Receiver:
    """Changes some attributes of a receiver, in force everywhere when this returns."""
    check_name("receiver", name, RECEIVER_NAME)
    key = receiver_key(queue.id, name)

    def plan() -> DirectoryChange[Receiver]:
        found = directory.read(core, key, Receiver)
        if found is None or found.value.name != name:
            raise ReceiverNotFound
        before, now_ms = found.value, core.now_ms()
        after = with_given(before, given)
        if not isinstance(given.paused, UnsetType):
            pauses = pauses_changed(before.pauses, now_ms, paused=given.paused)
            after = msgspec.structs.replace(after, pauses=pauses)
        if after == before:
            return DirectoryChange(result=before)
        after = msgspec.structs.replace(after, modified_ms=now_ms)
        return DirectoryChange(
            result=after,
            writes=[directory_writes.put_over(core, key, after, found)],
            keys=[receiver_key(queue.id, "")],
        )

    return change(core, plan)


def delete_receiver(core: Core, queue: Queue, name: str) -> None:
    """Removes a receiver; the messages that it had not received are gone with it."""
    check_name("receiver", name, RECEIVER_NAME)
    found = directory.read(core, receiver_key(queue.id, name), Receiver)
    if found is None or found.value.name != name:
        raise ReceiverNotFound
    _remove(core, queue, found)
    core.cache.turn_over(receiver_key(queue.id, ""))


def delete_queue(core: Core, account: str, name: str) -> None:
    """Deletes a queue that nothing refers to; its messages are never returned again.

    Its receivers are deleted first, so a repeated call finishes one that stopped.
    """

    def plan() -> DirectoryChange[None]:
        queue = find_queue(core, account, name)
        check_unused(core, queue.value)
        receivers = list_receivers(core, queue.value.id)
        for receiver in receivers:
            key = receiver_key(queue.value.id, receiver.name)
            found = directory.read(core, key, Receiver)
            if found is not None:
                _remove(core, queue.value, found)
        if receivers:
            core.cache.turn_over(receiver_key(queue.value.id, ""))
        return queue_removal(core, queue)

    change(core, plan)


def _remove(core: Core, queue: Queue, found: Document[Receiver]) -> None:
    receiver = found.value
    with contextlib.suppress(TransactionRefused):  # another call has removed it
        core.store.transact(
            [
                directory_writes.delete_version(
                    core, receiver_key(queue.id, receiver.name), found.version
                ),
                directory_writes.change_count(core, receivers_count_key(queue.id), -1),
                expire_resource(core, receiver.id, _resource(queue, receiver)),
            ]
        )


def _resource(queue: Queue, receiver: Receiver) -> Resource:
    return Resource(queue.account, "receiver", f"{queue.name}/{receiver.name}")
