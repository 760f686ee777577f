"""Redriving: active messages of a queue are moved back to their sources, or to another queue.

Messages of a dead-letter queue may be chosen: by their notes, by their ids, or by receipts of
messages that the caller holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.errors import (
    InvalidParameter,
    QueueNotFound,
    ReceiverNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq.base.names import QUEUE_NAME, check_name
from cirrusmq.base.shapes import convert
from cirrusmq.fanout.push_triggers import Notices
from cirrusmq.fanout.returned_letters import move_back
from cirrusmq.lifecycle.dead_letters.letter_filter import DeadLetterFilter
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.parcel import Parcel, send_and_position
from cirrusmq.model.queue import Queue
from cirrusmq.model.receipt import decode
from cirrusmq.model.source import Source, queue_source
from cirrusmq.model.topic import Subscription
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_named, source_with_id
from cirrusmq.receiving.heads.scan import visible_indexes
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.settle import Held, ReceiptText, check_count
from cirrusmq.settlement.visibility import holds
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel, sort_key
from cirrusmq.storage.queries import Progress, from_key, portions, remaining, scan_pages, until_key
from cirrusmq.subscriptions.lone_messages import expect_alone
from cirrusmq.subscriptions.subscriptions import get_subscription
from cirrusmq.subscriptions.topics import get_topic

MAX_IDS = 100
_PAUSE_MS = (100, 1_000)
"""The shortest and the longest pause of a redrive that keeps to a rate."""
_GONE, _NO_GROUP = "gone:", "no group:"
_WHY = {
    _GONE: "messages that stayed, their source being gone",
    _NO_GROUP: "messages that stayed, having no group for an ordered target",
}
_FOUND, _BITS = "found:", 50
"""Notes of the chosen ids of which a message was here, a bit each: 0 to 49 in the first note."""
_BY_RECEIPT = "receipts"
"""In the place of a partition's key, in the progress of a redrive by receipts."""
_Target: TypeAlias = Queue | Subscription


class RedriveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a redrive."""

    to: str | UnsetType = UNSET
    max_messages: (
        Annotated[
            int, Meta(ge=1, le=1_000_000_000, description="an integer from 1 to 1,000,000,000")
        ]
        | UnsetType
    ) = UNSET
    dead_letter: DeadLetterFilter | UnsetType = UNSET
    ids: (
        Annotated[
            list[str],
            Meta(
                min_length=1,
                max_length=MAX_IDS,
                description=f"an array of 1 to {MAX_IDS} ids of messages",
            ),
        ]
        | UnsetType
    ) = UNSET
    receipts: (
        Annotated[
            list[ReceiptText],
            Meta(min_length=1, description="an array of 1 to 16 receipts, alone or beside to"),
        ]
        | UnsetType
    ) = UNSET


def redrive(
    core: Core, queue: Queue, request: RedriveRequest, by: str, **details: int
) -> Operation:
    """Sends active messages back to their sources, or to the queue `to`; the chosen ones, or all.

    by: the id of the access key that asks for it. details: numbers to keep with the operation;
    `per_second` among them is the most messages that are moved in a second.
    """
    to = None if isinstance(request.to, UnsetType) else request.to
    if to is not None:
        check_name("to", to, QUEUE_NAME)
        if to == queue.name:
            raise InvalidParameter("to", "must be another queue")
        get_queue(core, queue.account, to)
    limit = None if isinstance(request.max_messages, UnsetType) else request.max_messages
    chosen = {"to": to, "most": limit, **_chosen(request), **details}
    return operations.start(core, queue, "redrive", chosen, by)


def _chosen(request: RedriveRequest) -> dict[str, Any]:
    """Returns the request's conditions on messages, as details of the operation."""
    chosen: dict[str, Any] = {}
    if not isinstance(request.receipts, UnsetType):
        check_count(request.receipts)
        if {request.max_messages, request.dead_letter} != {UNSET} or request.ids is not UNSET:
            raise InvalidParameter("receipts", "are allowed alone, or beside to")
        chosen["receipts"] = list(dict.fromkeys(request.receipts))
    if not isinstance(request.ids, UnsetType):
        for number, each in enumerate(request.ids):
            if send_and_position(each) is None:
                raise InvalidParameter(f"ids[{number}]", "must be the id of a message")
        chosen["ids"] = list(dict.fromkeys(request.ids))
    if not isinstance(request.dead_letter, UnsetType):
        chosen["dead_letter"] = request.dead_letter.to_json()
    return chosen


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Moves message after message; if its source is gone it stays, and the detail counts it."""
    redriving = _Redriving(core, run)
    if "receipts" in run.operation.details:
        yield from redriving.by_receipt()
    else:
        yield from redriving.by_partition()


class _Redriving:
    """One run of a redrive."""

    def __init__(self, core: Core, run: Run) -> None:
        self._core, self._run = core, run
        details = run.operation.details
        self._ids = {id: number for number, id in enumerate(details.get("ids", ()))}
        """The ids that were chosen, with their numbers. Each may be here several times."""
        given = details.get("dead_letter")
        self._filter = None if given is None else convert(given, DeadLetterFilter)
        self._stayed = Counter(run.operation.notes)
        self._notices = Notices(core)
        self._begun_ms, self._done_before = core.now_ms(), run.operation.done

    def by_partition(self) -> Iterator[Step]:
        """Goes through the queue, and moves the wanted messages."""
        core, operation = self._core, self._run.operation
        limit = operation.details["most"]
        source = queue_source(self._run.queue(), core.now_ms())
        partitions = [partition_key(PARCELS, source.id, n) for n in range(source.partitions)]
        for pk, behind in remaining(partitions, operation.progress):
            now_ms = core.now_ms()
            start, until = from_key(core, source, now_ms), until_key(source, now_ms)
            if self._filter is not None and not source.grouped:
                start = max(start, self._filter.from_key(operation.started_ms))
            pages = scan_pages(core, pk, start, until, behind=behind)
            for parcels, reached in portions(pages, sort_key):
                for parcel in parcels:
                    left = parcel
                    for index in self._wanted(parcel):
                        if self._run.operation.done != limit:
                            yield from self._wait_for_rate()
                            left = self._move(left, index)
                yield self._step(Progress(pk, reached))
                if self._run.operation.done == limit:
                    return
        if self._ids:  # also if the run before this one stopped behind its last step
            missed = sum(not self._was_here(number) for number in self._ids.values())
            progress = self._run.operation.progress
            yield self._last_step(progress, missed, "of the ids that were given")

    def by_receipt(self) -> Iterator[Step]:
        """Moves the messages that the caller holds."""
        texts = self._run.operation.details["receipts"]
        begun = int(self._run.operation.progress.after or 0)
        for number in range(begun, len(texts)):
            self._move_held(texts[number])
            yield self._step(Progress(_BY_RECEIPT, str(number + 1)))
        progress = Progress(_BY_RECEIPT, str(len(texts)))
        missed = len(texts) - self._run.operation.done - sum(self._stayed.values())
        yield self._last_step(progress, missed, "of the receipts that were given")

    def _wait_for_rate(self) -> Iterator[Step]:
        """Waits until one more message may be moved, with a step before each pause.

        The rate is this run's: time without a runner is not made up for.
        """
        operation, clock = self._run.operation, self._core.clock
        per_second = operation.details.get("per_second")
        if per_second is None:
            return
        moved = operation.done - self._done_before
        due_ms = self._begun_ms + 1_000 * moved // per_second
        while self._core.now_ms() < due_ms:
            yield self._step(operation.progress)
            pause_ms = max(_PAUSE_MS[0], min(_PAUSE_MS[1], due_ms - self._core.now_ms()))
            clock.sleep(pause_ms / 1_000)

    def _step(self, progress: Progress) -> Step:
        self._notices.send()  # the sweep finds messages whose notice is lost
        return Step(progress, 0, _tell(self._stayed), dict(self._stayed))

    def _last_step(self, progress: Progress, missed: int, words: str) -> Step:
        """Returns the last step, whose detail counts named messages that could not be moved."""
        told = [text for text in (_tell(self._stayed),) if text]
        if missed > 0:
            told.append(f"{missed} {words} have no message here that can be had")
        return Step(progress, 0, "; ".join(told) or None, dict(self._stayed))

    def _wanted(self, parcel: Parcel) -> list[int]:
        """Returns the indexes of messages that are to be moved, if they can be had."""
        # A message dead-lettered again while the operation runs is not moved once more.
        if parcel.sent_ms > self._run.operation.started_ms:
            return []
        selected = self._filter
        if selected and not selected.selects(parcel, self._run.operation.started_ms):
            return []
        indexes = range(parcel.count)
        return [each for each in indexes if not self._ids or parcel.message_id(each) in self._ids]

    def _move(self, parcel: Parcel, index: int) -> Parcel:
        """Moves a message if it can be received. Returns the parcel after it."""
        queue, now_ms = self._run.queue(), self._core.now_ms()
        source = queue_source(queue, now_ms)
        if index not in visible_indexes(source, parcel, now_ms):
            return parcel
        return self._move_out(queue, source, parcel, index, None)

    def _move_held(self, text: str) -> None:
        core, receipt, queue = self._core, decode(text), self._run.queue()
        source = None if receipt is None else source_with_id(core, queue, receipt.source_id)
        if receipt is None or source is None:
            return
        held, now_ms = Held(text=text, receipt=receipt, source=source), core.now_ms()
        item = core.store.get(core.tables.messages, held.pk, receipt.sort_key)
        parcel = None if item is None else read_parcel(item)
        if parcel is None or now_ms >= receipt.expires_ms or not holds(held, parcel, now_ms):
            return
        self._move_out(queue, source, parcel, receipt.place, receipt.nonce)

    def _move_out(
        self, queue: Queue, source: Source, parcel: Parcel, index: int, nonce: bytes | None
    ) -> Parcel:
        """Moves a message, and counts it in the same transaction. Returns the parcel after it."""
        core, now_ms = self._core, self._core.now_ms()
        notes = self._notes_with(parcel.message_id(index))
        target, back_to = _target(core, queue, parcel, self._run.operation.details["to"])
        if target is None:
            self._stayed[_stays(parcel)] += 1
            self._stayed |= notes
            return parcel
        # Noted with the move: a run that goes on behind a stop does not find the message any more.
        counted, count = self._run.count(notes)
        if isinstance(target, Subscription):
            target = expect_alone(core, target)
            left = move_back(
                *(core, source, parcel, index, target, now_ms, self._notices),
                nonce=nonce,
                alongside=[count],
            )
        else:
            left = move_to_queue(
                *(core, source, parcel, index, target, None, now_ms, nonce),
                back_to=back_to,
                alongside=[count],
            )
        if left is not None:
            self._run.found = counted
            self._stayed |= notes
            return left
        ordered = isinstance(target, Queue) and target.attributes.ordered
        if ordered and _groupless(core, source, parcel, index):
            self._stayed[f"{_NO_GROUP}queue {target.name}"] += 1
            self._stayed |= notes
        return parcel

    def _was_here(self, number: int) -> bool:
        """Returns True if a message of the chosen id with this number was here."""
        note, bit = divmod(number, _BITS)
        return bool(self._stayed[f"{_FOUND}{note}"] >> bit & 1)

    def _notes_with(self, message_id: str) -> Counter[str]:
        """Returns the note that a message of this id was here; empty if ids were not chosen."""
        if message_id not in self._ids:
            return Counter()
        note, bit = divmod(self._ids[message_id], _BITS)
        name = f"{_FOUND}{note}"
        return Counter({name: self._stayed[name] | 1 << bit})


def _target(
    core: Core, queue: Queue, parcel: Parcel, to: str | None
) -> tuple[_Target | None, str | None]:
    """Returns the queue or subscription that takes the parcel's messages, or None, and its source.

    The source is the id of the only one that gets them; None means all of the queue's.
    """
    came = parcel.dead_letter or {}
    try:
        if to is not None:
            return get_queue(core, queue.account, to), None
        name = came.get("source_queue")
        if name is None:
            return None, None
        # A subscription's dead letter has its topic there, whose name a queue may have as well.
        if "subscription" in came:
            topic = get_topic(core, queue.account, name)
            subscription = get_subscription(core, topic, came["subscription"])
            return (subscription if subscription.takes_back else None), None
        target = get_queue(core, queue.account, name)
        return target, source_named(core, target, came.get("receiver")).id
    except (QueueNotFound, ReceiverNotFound, TopicNotFound, SubscriptionNotFound):
        return None, None


def _stays(parcel: Parcel) -> str:
    """Returns the words under which messages without a source to go back to are counted."""
    came = parcel.dead_letter or {}
    name = came.get("source_queue", "(none)")
    if "subscription" in came:
        return f"{_GONE}subscription {came['subscription']} of topic {name}"
    receiver = f"receiver {came['receiver']} of " if "receiver" in came else ""
    return f"{_GONE}{receiver}queue {name}"


def _groupless(core: Core, source: Source, parcel: Parcel, index: int) -> bool:
    (messages,) = read_contents(core, source, [(parcel, [index])])
    return index in messages and messages[index].group is None


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
