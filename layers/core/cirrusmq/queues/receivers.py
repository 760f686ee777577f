"""Receivers: independent readers of a queue, each with separate leases, counts and receipts.

Here they are found, which every receive does; `cirrusmq.queues.receiver_management` makes them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base.errors import ReceiverNotFound
from cirrusmq.base.names import RECEIVER_NAME, check_name
from cirrusmq.model.pauses import Pause
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source, queue_source
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import receiver_key
from cirrusmq.storage.pages import read_page

DEFAULT = "default"


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver as the directory keeps it. Times are in milliseconds since the epoch."""

    id: str
    name: str
    queue_id: str
    start: str
    """The start as the caller gave it."""
    start_ms: int
    """It gets every message sent from then on."""
    filter: dict[str, Any] | None
    created_ms: int
    backfill: str | None = None
    """Id of the operation that gives it the messages sent before it was created."""
    filling: bool = False
    """While that runs, only messages that it has reached may be received."""
    paused: bool = False
    """True if nobody receives from it."""
    pauses: list[Pause] = []
    """Times of its pauses, the last one at the end."""
    receive_rate: int | None = None
    labels: dict[str, str] = {}
    modified_ms: int = 0
    """Time of its last change; 0: never."""


def receiver_source(core: Core, queue: Queue, receiver: Receiver) -> Source:
    """Returns the source that the receiver receives from."""
    source = replace(
        queue_source(queue, core.now_ms()),
        id=receiver.id,
        receiver=receiver.name,
        log_id=queue.id,
        invoke=None,
        backlog_before_ms=0,
        receive_rate=receiver.receive_rate,
        paused=receiver.paused,
        pauses=tuple(receiver.pauses),
    )
    if not receiver.filling or receiver.backfill is None:
        return source
    # Most receivers are long there: their cold starts do without.
    from cirrusmq.queues.frontiers import frontier

    of_operation = queue.account, receiver.backfill
    reached = frontier(core, *of_operation, queue.id, ordered=source.ordered)
    return replace(source, frontier=reached)


def source_named(core: Core, queue: Queue, name: str | None) -> Source:
    """Returns the queue's default source, or a receiver's. Raises ReceiverNotFound."""
    if name is None or name == DEFAULT:
        return queue_source(queue, core.now_ms())
    return receiver_source(core, queue, get_receiver(core, queue, name))


def source_with_id(core: Core, queue: Queue, source_id: str) -> Source | None:
    """Returns the source of the queue with this id, or None if the id is another queue's."""
    if source_id == queue.id:
        return queue_source(queue, core.now_ms())
    for receiver in cached_receivers(core, queue.id):
        if receiver.id == source_id:
            return receiver_source(core, queue, receiver)
    return None


def all_sources(core: Core, queue: Queue) -> list[Source]:
    """Returns the sources of the queue and of all receivers, as the directory has them now."""
    receivers = list_receivers(core, queue.id)
    return [
        queue_source(queue, core.now_ms()),
        *(receiver_source(core, queue, receiver) for receiver in receivers),
    ]


def page_of_receivers(
    core: Core, queue: Queue, limit: int, cursor: str | None
) -> tuple[list[Receiver], str | None]:
    """Returns a page of the queue's receivers, by name."""
    key = receiver_key(queue.id, "")
    return read_page(core, ("receivers", queue.id), key, limit, cursor, Receiver)


def list_receivers(core: Core, queue_id: str) -> list[Receiver]:
    """Returns the queue's receivers, by name."""
    pk, prefix = receiver_key(queue_id, "")
    return list(directory.read_list(core, pk, prefix, Receiver))


def cached_receivers(core: Core, queue_id: str) -> list[Receiver]:
    """Returns the queue's receivers, as the cache has them."""
    return core.cache.get(receiver_key(queue_id, ""), lambda: list_receivers(core, queue_id))


def get_receiver(core: Core, queue: Queue, name: str) -> Receiver:
    """Returns the receiver of exactly this name. Raises ReceiverNotFound."""
    check_name("receiver", name, RECEIVER_NAME)
    for receiver in cached_receivers(core, queue.id):
        if receiver.name == name:
            return receiver
    raise ReceiverNotFound
