"""A history sorted by message: for each message and reader its deliveries and its acts.

A message has one track for each of its readers (the queue itself, each receiver, each
subscription). A dead letter stays in the track of the reader that it was lost to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, History
from cirrusmq_local.judging.places import Delivery

REDRIVE, REDELIVER = "redrive", "redeliver"
REPLY, AWAIT = "reply", "await"
HANDED = "hand over"
"""In place of a call: a function that a queue names is given messages."""
ENDING = frozenset({"delete", "give back", "dead letter", REDRIVE})
"""Calls after which a receipt is worth nothing; a redrive by receipts is under way for a while."""
_ACTS = ENDING | {"visibility"}


@dataclass(slots=True, eq=False)
class Act:
    """The act of a call by receipts on one message."""

    call: Call
    verb: str
    delivery: Delivery
    result: int | str | None
    """Its new visible time (0: gone), or an error's code; None if it is not known."""

    @property
    def done(self) -> bool:
        """True if the answer says that it is done."""
        return isinstance(self.result, int)

    @property
    def effective(self) -> bool:
        """True if it may have been done. If the SDK sent it twice, or an answer was lost, a
        second write may have found the change of the first, and been refused for it."""
        return not isinstance(self.result, str) or self.call.repeated or self.call.unanswered

    @property
    def untried(self) -> bool:
        """True if it says that the receive was no try, which takes it off the count."""
        return self.verb == "give back" and self.call.given.get("tried") is False

    @property
    def free_ms(self) -> int:
        """The earliest time from which the message may be received again because of this."""
        if isinstance(self.result, int) and self.result:
            return self.result
        if self.verb == REDRIVE:  # it is stored again: any scan may find it, by any clock
            return self.call.begun_ms - MAX_SKEW_MS
        return (
            self.call.begun_ms
            + self.call.skew_ms
            - self.call.unsure_ms
            + 1_000 * int(self.call.given.get("seconds") or 0)
        )


@dataclass(slots=True)
class Track:
    """One message as one reader met it."""

    reader: str
    id: str
    deliveries: list[Delivery] = field(default_factory=list)
    """In the order of their claims."""
    acts: list[Act] = field(default_factory=list)
    """In the order of their beginning."""
    again_ms: int | None = None
    """The time of its parcel, if it was delivered again: then it has a separate life."""

    def acts_on(self, delivery: Delivery) -> list[Act]:
        """The acts with this delivery's receipt."""
        return [act for act in self.acts if act.delivery.receipt == delivery.receipt]

    def untried(self, delivery: Delivery, moment: int) -> list[Act]:
        """The give-backs of a delivery, untried, that may have taken effect before a moment."""
        acts = self.acts_on(delivery)
        return [a for a in acts if a.untried and a.effective and a.call.begun < moment]

    def acts_before(self, verb: str, moment: int) -> Iterator[Act]:
        """Calls of a kind that may have taken effect before a moment."""
        return (a for a in self.acts if a.verb == verb and a.effective and a.call.begun < moment)


@dataclass(slots=True)
class Sent:
    """A message by its send: all calls that sent it, the first one and its repetitions."""

    label: str
    name: str
    place: int
    group: str | None
    key: str | None
    calls: list[Call] = field(default_factory=list)
    ids: dict[str, tuple[Call, int]] = field(default_factory=dict)
    """Id answered -> (the first call that answered it, its `sent_ms`)."""
    stored: dict[str, tuple[Call, int]] = field(default_factory=dict)
    """The same with its latest `sent_ms`: after a purge a repetition stores it again."""

    @property
    def begun(self) -> int:
        """Before this it was nowhere."""
        return self.calls[0].begun

    @property
    def answered(self) -> int:
        """From this moment on it is known to be stored; never, if no send was answered."""
        return min((call.ended for call, _ in self.ids.values()), default=1 << 60)


class Book:
    """Everything that the checks look up."""

    def __init__(self, history: History) -> None:
        self.calls, self.faults = history.calls, history.faults
        self.by_kind: defaultdict[str, list[Call]] = defaultdict(list)
        self.sent: dict[tuple[str, str], Sent] = {}
        """(send, label) -> the message."""
        self.label_of: dict[str, str] = {}
        self.tracks: dict[tuple[str, str, int | None], Track] = {}
        """(reader, message's id, time of its coming again) -> the track."""
        self._of_attempt: dict[str, Call] = {}
        self._first_sent_ms: dict[tuple[str, str], int] = {}
        """(subscription, message's id) -> the time of the parcel that came with its publish, if the
        message was asked for again: parcels of redeliveries are later."""
        self._note_redelivered(history.calls)
        for call in history.calls:
            self.by_kind[call.kind].append(call)
            if "delete" in call.given:
                self._add_carried(call)
            if call.kind == REPLY:
                self._add_reply(call)
            if call.kind in ("send", "send again") and call.effective:
                self._add_send(call)
            elif call.kind == "receive" and call.known:
                self._add_deliveries(call)
            elif call.kind == "receive" and "attempt" in call.given:
                self._of_attempt.setdefault(call.given["attempt"], call)
            elif call.kind in _ACTS and "messages" in call.given:
                self._add_acts(call)
        for track in self.tracks.values():
            track.deliveries.sort(key=lambda each: (each.true_claim_ms, each.call.ended))

    def effective(self, kind: str, queue: str) -> list[Call]:
        """Calls of a kind on a queue that may have changed something."""
        return [call for call in self.by_kind[kind] if call.effective and call.place == queue]

    def track(self, reader: str, message_id: str) -> Track:
        """A message's track; empty if the reader never met it."""
        return self.tracks.get((reader, message_id, None)) or Track(reader, message_id)

    def sends_of(self, message_id: str) -> list[Call]:
        """All calls that may have sent this message."""
        label = self.label_of.get(message_id)
        return [call for sent in self.sent.values() if sent.label == label for call in sent.calls]

    def sent_ms_of(self, message_id: str) -> int | None:
        """The time of a message by the first answer that has its id; None if none is known."""
        known = (
            sent_ms
            for each in self.sent.values()
            for known_id, (_, sent_ms) in each.ids.items()
            if known_id == message_id
        )
        return next(known, None)

    def sends_labelled(self, sent: Sent) -> list[Call]:
        """All calls that sent a message with this message's label."""
        return [
            call for each in self.sent.values() if each.label == sent.label for call in each.calls
        ]

    def _add_send(self, call: Call) -> None:
        given = call.given
        for index, label in enumerate(given["labels"]):
            sent = self.sent.setdefault(
                (f"{given['name']}.{index}", label),
                Sent(label, given["name"], index, given["groups"][index], given["keys"][index]),
            )
            sent.calls.append(call)
            if call.known:
                message_id, sent_ms = call.answer[index]
                sent.ids.setdefault(message_id, (call, sent_ms))
                if message_id not in sent.stored or sent_ms > sent.stored[message_id][1]:
                    sent.stored[message_id] = (call, sent_ms)
                self.label_of.setdefault(message_id, label)

    def _add_deliveries(self, call: Call) -> None:
        attempt = call.given.get("attempt")
        earlier = self._of_attempt.setdefault(attempt, call) if attempt else call
        for delivery in call.answer:
            by_earlier_ms = delivery.claim_ms - earlier.skew_ms
            own = call.begun_ms <= delivery.true_claim_ms <= call.ended_ms
            # Else this one repeats its claim. Either may fit: the own span is the shorter by far.
            if not own and earlier.begun_ms <= by_earlier_ms <= call.begun_ms:
                delivery.skew_ms = earlier.skew_ms
            self.label_of.setdefault(delivery.id, delivery.label)
            self._track(delivery).deliveries.append(delivery)

    def _add_carried(self, call: Call) -> None:
        """The deletes of a receive, as a call of their own from its beginning to its end."""
        deletes = replace(call, kind="delete", given={"messages": call.given["delete"]})
        if call.deleted is not None:
            deletes.outcome, deletes.answer = "answered", call.deleted
        self.by_kind["delete"].append(deletes)
        self._add_acts(deletes)

    def _add_reply(self, call: Call) -> None:
        """A reply, as the delete of its message."""
        shown = replace(call, kind="delete", given={"messages": call.given["messages"]})
        if call.outcome == "refused":
            shown.outcome, shown.answer = "answered", [str(call.answer).split(" ")[0]]
        elif call.known:
            shown.answer = [0]
        self.by_kind["delete"].append(shown)
        self._add_acts(shown)

    def _add_acts(self, call: Call) -> None:
        for number, delivery in enumerate(call.given["messages"]):
            result = None
            if call.known and call.kind != REDRIVE:
                result = call.answer[number]
                if result == "Unavailable":
                    result = None
            elif call.outcome == "refused":
                result = str(call.answer)
            self._track(delivery).acts.append(Act(call, call.kind, delivery, result))

    def _track(self, delivery: Delivery) -> Track:
        reader = reader_of(delivery)
        again_ms = delivery.sent_ms if self.is_again(reader, delivery) else None
        track = Track(reader, delivery.id, again_ms=again_ms)
        return self.tracks.setdefault((reader, delivery.id, again_ms), track)

    def is_again(self, reader: str, delivery: Delivery) -> bool:
        """Returns True if a delivery is of a parcel that a redelivery put, by its sending time."""
        first_ms = self._first_sent_ms.get((reader, delivery.id))
        return first_ms is not None and delivery.sent_ms > first_ms

    def _note_redelivered(self, calls: Sequence[Call]) -> None:
        asked = {
            (call.place, each)
            for call in calls
            if call.kind == REDELIVER and call.effective
            for each in call.given["ids"]
        }
        for call in calls if asked else ():
            for each in call.answer if call.kind == "receive" and call.known else ():
                if (call.place, each.id) in asked:
                    first_ms = self._first_sent_ms.get((call.place, each.id), each.sent_ms)
                    self._first_sent_ms[call.place, each.id] = min(first_ms, each.sent_ms)


def reader_of(delivery: Delivery) -> str:
    """The reader of a delivery, or of the dead letter's source."""
    dead = delivery.dead
    if dead is None:
        return delivery.call.place
    inner = dead.get("receiver") or dead.get("subscription")
    return f"{dead['source_queue']}/{inner}" if inner else str(dead["source_queue"])
