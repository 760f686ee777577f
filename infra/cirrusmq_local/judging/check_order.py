"""Ordered queues: no message is received while an earlier one of its group is not done with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cirrusmq_local.judging.check_leases import free_ms
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.tracks import Book, Sent

_NEVER = 1 << 60


def check_order(book: Book, reader: str, max_receives: int) -> Iterator[Violation]:
    """Each delivery of a group against the oldest message of it that is not done with.

    After `max_receives` a message is moved to the dead-letter queue.
    """
    for members, deliveries in by_group(book, reader):
        done = {sent.label: _done(book, reader, sent, max_receives) for sent in members}
        yield from _group(members, deliveries, done)


def by_group(book: Book, reader: str) -> Iterator[tuple[list[Sent], list[Delivery]]]:
    """The messages of each group, without possible duplicates, and its deliveries, without
    redeliveries by id: these come out of order."""
    groups: defaultdict[str, list[Sent]] = defaultdict(list)
    for sent in book.sent.values():
        if sent.group is not None and sent.ids and sent.key is None:
            groups[sent.group].append(sent)
    deliveries: defaultdict[str, list[Delivery]] = defaultdict(list)
    for call in book.by_kind["receive"]:
        if call.known and call.place == reader:
            for delivery in call.answer:
                if not book.is_again(reader, delivery):
                    deliveries[delivery.group].append(delivery)
    for group, members in groups.items():
        yield members, deliveries[group]


def _group(
    members: list[Sent], deliveries: list[Delivery], done: dict[str, tuple[int, int]]
) -> Iterator[Violation]:
    by_label = {sent.label: sent for sent in members}
    in_order = sorted(members, key=lambda sent: (sent.answered, sent.place))
    first = 0
    for delivery in sorted(deliveries, key=lambda each: each.call.ended):
        while first < len(in_order) and done[in_order[first].label][0] < delivery.call.begun:
            first += 1  # done with before any delivery from here on
        sent = by_label.get(delivery.label)
        if sent is None:
            continue
        answer = delivery.call.answer
        in_front = {each.label for each in answer[: answer.index(delivery)]}
        for earlier in in_order[first:]:
            if not _precedes(earlier, sent):
                if earlier.answered > sent.begun:
                    break
                continue
            moment, moment_ms = done[earlier.label]
            ended_ms = delivery.call.ended_ms + delivery.call.skew_ms
            gone = moment < delivery.call.ended or moment_ms <= ended_ms
            if not gone and earlier.label not in in_front:
                calls = (earlier.calls[0], sent.calls[0], delivery.call)
                yield Violation(f"{sent.label} came before {earlier.label} of its group", calls)
                return


def _precedes(earlier: Sent, later: Sent) -> bool:
    """Returns True if one message was sent before another, to the same queue or topic.

    A topic's copies come to a queue after messages that are sent to it in the meantime.
    """
    if earlier.calls[0].place != later.calls[0].place:
        return False
    if earlier.name == later.name:
        return earlier.place < later.place
    return earlier.answered < later.begun


def _done(book: Book, reader: str, sent: Sent, max_receives: int) -> tuple[int, int]:
    """(moment, time) from which a message may be out of the way: deleted, moved, expired, purged.

    A rewound message is behind the messages received in the meantime: that is not checked.
    """
    moment, moment_ms = _NEVER, _NEVER
    for message_id, (_, sent_ms) in sent.ids.items():
        track = book.track(reader, message_id)
        for act in track.acts:
            if act.verb in ("delete", "dead letter") and act.effective:
                moment = min(moment, act.call.begun)
        for delivery in track.deliveries:
            moment_ms = min(moment_ms, delivery.expires_ms)
            if delivery.sent_ms > sent_ms:  # a dead letter, redriven: it left when it was free
                held = [each for each in track.deliveries if each.sent_ms == sent_ms]
                left_ms = free_ms(track, held[-1], _NEVER) if held else 0
                moment_ms = min(moment_ms, left_ms)
            if delivery.dead is not None:
                moment_ms = min(moment_ms, delivery.dead["dead_at"])
            if delivery.count >= max_receives:  # given up, and perhaps never seen again
                moment_ms = min(moment_ms, free_ms(track, delivery, _NEVER))
        for call in book.effective("purge", reader.partition("/")[0]):
            moment = min(moment, call.begun)
        if not track.deliveries:  # it expired in its place
            moment = 0
    return moment, moment_ms
