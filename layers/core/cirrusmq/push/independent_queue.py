"""The message source of a policy in which messages do not wait for each other."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from cirrusmq.model.parcel import Parcel, key_ms
from cirrusmq.push.pending import Push
from cirrusmq.push.post_queue import READ_AT_A_TIME, Feed
from cirrusmq.push.posting import Candidate
from cirrusmq.push.scan_pending import is_pending
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel
from cirrusmq.storage.queries import LAST_KEY, read_back
from cirrusmq.subscriptions.delivery.due_marks import DueMark
from cirrusmq.subscriptions.delivery.rules import DeliveryState


class IndependentFeed(Feed):
    """Candidates of a policy in which messages do not wait for each other: due and new ones."""

    def __init__(
        self, push: Push, delivery: DeliveryState, start: str, *, dirty: bool, due_alone: bool
    ) -> None:
        zeros = (0,) * len(push.all_partitions)
        dues = delivery.dues_ms or zeros
        if dirty:  # a holder that died may have put marks
            dues = tuple(max(1, from_ms) for from_ms in delivery.marks_ms or zeros)
        look_at_all = delivery.blocks or dirty or delivery.delays > 0
        super().__init__(push, delivery, "" if look_at_all else start or LAST_KEY * due_alone, dues)
        if due_alone and not look_at_all:
            self._parcels = iter(())

    def next(self) -> Candidate | None:
        if not self._ready:
            self._refill()
        return self._ready.popleft() if self._ready else None

    def next_probe(self) -> Candidate | None:
        """Returns a ready message by chance, every second time from anywhere in the backlog.

        A message that fails for its own sake would keep the breaker open, as would many in front:

            m1 … m20 always fail ── open ── m3 is tried, in vain ── m500 is tried: closed
        """
        first, draw = self.next_key(), self.push.core.random
        if first is None:
            return None
        if draw.random() < 0.5 and (found := self._from_anywhere(key_ms(first))) is not None:
            return found
        index = int(draw.random() * len(self._ready))
        candidate = self._ready[index]
        del self._ready[index]
        return candidate

    def _from_anywhere(self, first_ms: int) -> Candidate | None:
        """Returns one of the newest messages, or of those before a time; None if it finds none."""
        core, now_ms = self.push.core, self.push.core.now_ms()
        back_ms = max(0, now_ms - first_ms) * core.random.choice((0.0, core.random.random()))
        until = f"{now_ms - int(back_ms):013d}{LAST_KEY}"
        partition = core.random.choice(self.push.all_partitions)
        found = [
            Candidate(parcel=parcel, index=index)
            for parcel in read_back(
                core, partition_key(PARCELS, self.push.source.id, partition), until, READ_AT_A_TIME
            )
            for index in range(parcel.count)
            if is_pending(parcel, index, now_ms)
            and not parcel.receives[index]
            and parcel.visible_ms[index] <= now_ms
        ]
        new = [
            each for each in found if each.key not in self._found and not self._must_give_up(each)
        ]
        if not new:
            return None
        candidate = core.random.choice(new)
        self._found.add(candidate.key)
        wanted = [(candidate.parcel, [candidate.index])]
        (contents,) = read_contents(core, self.push.source, wanted)
        return replace(candidate, message=contents.get(candidate.index))

    def first_due(self) -> DueMark | None:
        due_ms = min((each.due_ms for each in self._mark_lists if each.due_ms), default=None)
        due = (each for each in self._mark_lists if each.due_ms and each.due_ms == due_ms)
        firsts = (each.first() for each in due)
        return min((first for first in firsts if first is not None), default=None)

    def settle(self) -> None:
        failed = [key for key, ended in self._ended.items() if any(each.error for each in ended)]
        keys = {*failed, *(key for key in self._ended if self._may_settle(key))}
        groups = [self._ended.pop(key) for key in sorted(keys)]
        for each in self._settle_all(groups):
            marks = self._mark_lists[each.candidate.parcel.partition]
            if each.candidate.mark is not None:
                marks.close(each.candidate.mark)
            if each.mark is not None:
                marks.add(each.mark)

    def resume(self) -> None:
        pass  # the next candidates are the due ones

    def hurry(self) -> None:
        for each in self._mark_lists:
            each.hurry()

    def _next_candidates(self) -> list[Candidate]:
        due, new = self._due_by_marks(), self._from_look()
        in_turn = itertools.chain(*itertools.zip_longest(due, new))
        return [each for each in in_turn if each is not None]

    def _due_by_marks(self) -> list[Candidate]:
        """Returns messages that are due by their marks, from all partitions in turn."""
        found: list[Candidate] = []
        while len(found) < READ_AT_A_TIME:
            now_ms = self.push.core.now_ms()
            marks = [
                (partition, mark)
                for _ in range(READ_AT_A_TIME // len(self._mark_lists))
                for partition, each in enumerate(self._mark_lists)
                if (mark := each.take(now_ms)) is not None
            ]
            if not marks:
                break
            found += self._candidates_of(marks)
        return found

    def _candidates_of(self, marks: list[tuple[int, DueMark]]) -> list[Candidate]:
        """Returns the messages of these marks; a mark that does not fit its message is passed over.

        They are read consistently, since a mark stays when it is dealt with: the poster after a
        crash, or after one without time left, reads it again, and it fits the former state.

            m fails: mark 1, v = 1 ── at 1 posted: mark 2, v = 2 ── its poster dies
            the next one reads marks 1 and 2, both due; of m by a cheap read v = 1, by another v = 2
        """
        core, source_id = self.push.core, self.push.source.id
        keys = [(partition_key(PARCELS, source_id, p), mark.sort_key) for p, mark in marks]
        items = core.store.get_many(core.tables.messages, sorted(set(keys)), consistent=True)
        found: list[Candidate] = []
        to_give_up: list[Candidate] = []
        for (partition, mark), key in zip(marks, keys, strict=True):
            parcel = read_parcel(items[key]) if key in items else None
            if parcel is None or not _fits(parcel, mark, core.now_ms()):
                self._mark_lists[partition].close(mark)
                continue
            candidate = Candidate(parcel=parcel, index=mark.index, mark=mark)
            (to_give_up if self._must_give_up(candidate) else found).append(candidate)
        self._give_up(to_give_up)
        for each in to_give_up:
            if each.mark is not None:
                self._mark_lists[each.parcel.partition].close(each.mark)
        return found


def _fits(parcel: Parcel, mark: DueMark, now_ms: int) -> bool:
    waits = is_pending(parcel, mark.index, now_ms)
    return waits and parcel.visible_ms[mark.index] == mark.due_ms
