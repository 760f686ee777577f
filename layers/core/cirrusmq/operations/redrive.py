"""Redriving: active messages of a dead-letter queue are moved to their source, or elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq.base.errors import InvalidParameter, QueueNotFound, ReceiverNotFound
from cirrusmq.base.names import check_name
from cirrusmq.lifecycle.contents import read_contents
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source, queue_source
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.search import receivable_places
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key, sort_key
from cirrusmq.storage.scan import Progress, from_key, portions, remaining, scan_pages, until_key

_GONE, _PUBLISHED, _NO_GROUP = "gone:", "published:", "no group:"
_WHY = {
    _GONE: "messages that stayed, their source being gone",
    _PUBLISHED: "messages that stayed, having come from a subscription: name a queue in `to`",
    _NO_GROUP: "messages that stayed, having no group for an ordered target",
}


class RedriveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a redrive."""

    to: str | UnsetType = msgspec.UNSET
    max_messages: (
        Annotated[
            int, Meta(ge=1, le=1_000_000_000, description="an integer from 1 to 1,000,000,000")
        ]
        | UnsetType
    ) = msgspec.UNSET


def redrive(core: Core, queue: Queue, request: RedriveRequest) -> Operation:
    """Send active messages back to their sources, or to the queue `to`."""
    to = None if isinstance(request.to, UnsetType) else request.to
    if to is not None:
        check_name("to", to)
        if to == queue.name:
            raise InvalidParameter("to", "must be another queue")
        get_queue(core, queue.account, to)
    most = None if isinstance(request.max_messages, UnsetType) else request.max_messages
    return operations.start(core, queue, "redrive", {"to": to, "most": most})


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Move message after message; those whose source is gone stay, and are told of."""
    operation = run.operation
    most = operation.details["most"]
    source = queue_source(run.queue(), core.now_ms())
    stayed = Counter(operation.notes)
    partitions = [partition_key(PARCELS, source.id, n) for n in range(source.partitions)]
    for pk, behind in remaining(partitions, operation.progress):
        now_ms = core.now_ms()
        start, until = from_key(core, source, now_ms), until_key(source, now_ms)
        pages = scan_pages(core, pk, start, until, behind=behind)
        for parcels, reached in portions(pages, sort_key):
            for parcel in parcels:
                # A message dead-lettered again while the operation runs is not moved once more.
                if parcel.sent_ms > operation.started_ms:
                    continue
                left = parcel
                for place in range(parcel.count):
                    if run.operation.done != most:
                        left = _move(core, run, left, place, stayed)
            yield Step(Progress(pk, reached), 0, _tell(stayed), dict(stayed))
            if run.operation.done == most:
                return


def _move(core: Core, run: Run, parcel: Parcel, place: int, stayed: Counter[str]) -> Parcel:
    """Move a message that can be had, and count it in the same transaction.

    Answers the parcel as it is then.
    """
    queue, now_ms = run.queue(), core.now_ms()
    source = queue_source(queue, now_ms)
    if place not in receivable_places(source, parcel, now_ms):
        return parcel
    target, back_to = _target(core, queue, parcel, run.operation.details["to"])
    if target is None:
        stayed[_stays(parcel)] += 1
        return parcel
    counted, count = run.count()
    left = move_to_queue(
        core, source, parcel, place, target, None, now_ms, back_to=back_to, alongside=[count]
    )
    if left is not None:
        run.found = counted
        return left
    if target.attributes.ordered and _groupless(core, source, parcel, place):
        stayed[f"{_NO_GROUP}queue {target.name}"] += 1
    return parcel


def _target(
    core: Core, queue: Queue, parcel: Parcel, to: str | None
) -> tuple[Queue | None, str | None]:
    """The queue that takes the parcel's messages, and the one of its sources that has them back."""
    came = parcel.dead_letter or {}
    name = to or came.get("source_queue")
    # A subscription's dead letter has its topic there, whose name a queue may have as well.
    if name is None or (to is None and "subscription" in came):
        return None, None
    try:
        target = get_queue(core, queue.account, name)
        if to is not None:
            return target, None
        return target, source_named(core, target, came.get("receiver")).id
    except (QueueNotFound, ReceiverNotFound):
        return None, None


def _stays(parcel: Parcel) -> str:
    """The words under which messages without a source to go back to are counted."""
    came = parcel.dead_letter or {}
    name = came.get("source_queue", "(none)")
    if "subscription" in came:
        return f"{_PUBLISHED}subscription {came['subscription']} of topic {name}"
    receiver = f"receiver {came['receiver']} of " if "receiver" in came else ""
    return f"{_GONE}{receiver}queue {name}"


def _groupless(core: Core, source: Source, parcel: Parcel, place: int) -> bool:
    (messages,) = read_contents(core, source, [(parcel, [place])])
    return place in messages and messages[place].group is None


def _tell(stayed: Counter[str]) -> str | None:
    told = []
    for why, text in _WHY.items():
        counts = [
            f"{count} of {key.removeprefix(why)}"
            for key, count in sorted(stayed.items())
            if count and key.startswith(why)
        ]
        if counts:
            told.append(f"{text}: {', '.join(counts)}")
    return "; ".join(told) or None
