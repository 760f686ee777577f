"""What a poster posts next, and what it writes down when a post has ended.

Where messages do not wait for each other, those that are due by their marks and those that nobody
posted yet take turns. Where a failing one holds the others back, there is an order.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cirrusmq import dead_letters
from cirrusmq.attempts import (
    Attempt,
    Candidate,
    CandidateKey,
    Settled,
    give_up,
    is_used_up,
    settle,
)
from cirrusmq.contents import read_contents
from cirrusmq.due_marks import Mark, MarkList, put_mark
from cirrusmq.errors import Unavailable
from cirrusmq.parcel import Parcel
from cirrusmq.posters import Left
from cirrusmq.pushes import RESCUE_MS, Push
from cirrusmq.scan import LAST_KEY
from cirrusmq.schedules import Schedule
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel
from cirrusmq.undelivered import Look, is_pending

SETTLE_MS = 1_000
"""What was delivered is written down so soon, also where others of its parcel are under way."""
_TOGETHER = 16
_ParcelKey = tuple[int, str]


class Feed(ABC):
    """The messages of one subscription for as long as one invocation holds its schedule.

    `dues_ms`: each partition's first mark, as far as is known.
    """

    def __init__(self, push: Push, schedule: Schedule, start: str, dues_ms: Sequence[int]) -> None:
        froms = schedule.marks_ms or (0,) * len(push.all_partitions)
        self.push = push
        self.schedule = schedule
        self.running = 0
        self.posted = False
        self._lists = [
            MarkList(*(push.core, push.source.id, partition, froms[partition]), due_ms)
            for partition, due_ms in enumerate(dues_ms)
        ]
        self._kept_until_ms = schedule.kept_until_ms
        self._ready: deque[Candidate] = deque()
        self._found: set[CandidateKey] = set()
        """What looks have told of: they overlap where one is extended."""
        self._of_parcel: Counter[_ParcelKey] = Counter()
        self._ended: dict[_ParcelKey, list[Attempt]] = {}
        self._marks_missing = schedule.blocks and not push.blocks
        """Whether failing ones held the others back until now: those that wait have no marks."""
        self._look = Look(push, schedule, start, push.partitions if start else ())
        self._looks = [self._look]
        self._parcels: Iterator[tuple[Parcel, list[int]]] = iter(self._look)

    @abstractmethod
    def next(self) -> Candidate | None:
        """What is to be posted now; None where nothing is, or must not be yet."""

    @abstractmethod
    def first_due(self) -> Mark | None:
        """The message that is due first of those that wait, as its mark."""

    @abstractmethod
    def settle(self) -> None:
        """Write down what became of posts that have ended, as far as that can be done."""

    @abstractmethod
    def resume(self) -> None:
        """Time has passed: what waited may be due."""

    def extend(self, start: str) -> None:
        """Look again from a key on: something was put there."""
        look = Look(self.push, self.schedule, start, ())
        self._look = look if look.full else self._look
        self._looks.append(look)
        self._parcels = itertools.chain(self._parcels, look)

    def began(self, candidate: Candidate) -> None:
        """Its post begins."""
        self.running += 1
        self.posted = True
        self._of_parcel[_key_of(candidate)] += 1

    def ended(self, outcome: Attempt | Candidate) -> None:
        """A post has ended, or could not begin."""
        self.running -= 1
        candidate = outcome if isinstance(outcome, Candidate) else outcome.candidate
        self._of_parcel[_key_of(candidate)] -= 1
        if isinstance(outcome, Attempt):
            self._ended.setdefault(_key_of(candidate), []).append(outcome)
        else:
            self._ready.appendleft(candidate)

    @property
    def unsettled(self) -> bool:
        """Whether something that has ended is not written down."""
        return bool(self._ended)

    def next_key(self) -> str | None:
        """The lowest key of what is left to be posted; None where nothing is."""
        if not self._ready:
            self._refill()
        return min((each.parcel.sort_key for each in self._ready), default=None)

    def left(self) -> Left:
        """What whoever comes next must know."""
        first, now_ms = self.first_due(), self.push.core.now_ms()
        return Left(
            due_ms=None if first is None else first.due_ms,
            error="" if first is None else first.error,
            sent_ms=0 if first is None else first.sent_ms,
            blocks=self.push.blocks,
            clean_ms=tuple(self._look.clean_ms),
            marks_ms=tuple(each.left_ms for each in self._lists),
            dues_ms=tuple(each.due_ms for each in self._lists),
            kept_until_ms=self._kept_until_ms,
            looked_ms=now_ms if self._look.full else self.schedule.looked_ms,
            posted_ms=now_ms if self.posted else self.schedule.posted_ms,
        )

    def _refill(self) -> None:
        """Have the next few candidates ready, with what they say."""
        some = self._some()
        wanted = [(each.parcel, [each.place]) for each in some]
        contents = read_contents(self.push.core, self.push.source, wanted)
        self._ready += [
            replace(each, message=messages.get(each.place))
            for each, messages in zip(some, contents, strict=True)
        ]

    def _some(self) -> list[Candidate]:
        """The next few candidates; none where nothing is left."""
        return self._fresh()

    def _fresh(self) -> list[Candidate]:
        """What the look finds next; what is to be given up is, on the way."""
        found: list[Candidate] = []
        while len(found) < _TOGETHER and (some := next(self._parcels, None)) is not None:
            parcel, places = some
            for place in places:
                candidate = Candidate(parcel=parcel, place=place)
                if candidate.key in self._found:
                    continue
                self._found.add(candidate.key)
                if self._is_over(candidate):
                    self._give_up(candidate, parcel.errors.get(place, ""))
                else:
                    found.append(candidate)
            if self._marks_missing:
                self._mark_waiting(parcel)
        return found

    def _mark_waiting(self, parcel: Parcel) -> None:
        """Mark what waits in a parcel and has no mark yet."""
        now_ms = self.push.core.now_ms()
        for place in range(parcel.count):
            if parcel.receives[place] and is_pending(parcel, place, now_ms):
                due_ms, error = parcel.visible_ms[place], parcel.errors.get(place, "")
                mark = Mark(due_ms, parcel.sort_key, place, parcel.position(place), error)
                put_mark(self.push.core, parcel, mark)
                self._lists[parcel.partition].add(mark)

    def _is_over(self, candidate: Candidate) -> bool:
        """Whether a message is to be given up instead of being posted."""
        if is_used_up(self.push, candidate):
            return True
        if candidate.parcel.expires_ms >= self.push.core.now_ms() + RESCUE_MS:
            return False
        return dead_letters.dead_letter_queue(self.push.core, self.push.source) is not None

    def _give_up(self, candidate: Candidate, error: str) -> None:
        self._note(give_up(self.push, candidate, error), candidate.place)

    def _note(self, parcel: Parcel, place: int) -> None:
        """Take note of a message that stays though nobody comes for it."""
        if parcel.visible_ms[place] == parcel.expires_ms:
            self._kept_until_ms = max(self._kept_until_ms, parcel.expires_ms)

    def _settle_together(
        self, groups: Sequence[list[Attempt]], free: frozenset[CandidateKey] = frozenset()
    ) -> list[Settled]:
        """Settle attempts, each list of one parcel, the parcels side by side."""

        def write(attempts: list[Attempt]) -> list[Settled] | None:
            marks = self._lists[attempts[0].candidate.parcel.partition]
            try:
                return settle(self.push, attempts, free, marks.from_ms)
            except Unavailable:
                return None

        settled: list[Settled] = []
        for attempts, written in zip(groups, self.push.core.together(write, groups), strict=True):
            if written is None:  # while this one holds, nobody else does it
                self._ended[_key_of(attempts[0].candidate)] = attempts
            settled += written or []
        for each in settled:
            self._note(each.candidate.parcel, each.candidate.place)
        return settled

    def _settles(self, key: _ParcelKey) -> bool:
        """Whether what was delivered of a parcel is to be written down now."""
        begun_ms = min(each.started_ms for each in self._ended[key])
        return not self._of_parcel[key] or self.push.core.now_ms() - begun_ms >= SETTLE_MS


class IndependentFeed(Feed):
    """Of a policy where messages do not wait for each other."""

    def __init__(
        self, push: Push, schedule: Schedule, start: str, *, dirty: bool, due_alone: bool
    ) -> None:
        zeros = (0,) * len(push.all_partitions)
        dues = schedule.dues_ms or zeros
        if dirty:  # a holder that died may have put marks
            dues = tuple(max(1, from_ms) for from_ms in schedule.marks_ms or zeros)
        look_at_all = schedule.blocks or dirty
        super().__init__(push, schedule, "" if look_at_all else start or LAST_KEY * due_alone, dues)
        if due_alone and not look_at_all:
            self._parcels = iter(())

    def next(self) -> Candidate | None:
        if not self._ready:
            self._refill()
        return self._ready.popleft() if self._ready else None

    def first_due(self) -> Mark | None:
        due_ms = min((each.due_ms for each in self._lists if each.due_ms), default=None)
        firsts = (each.first() for each in self._lists if each.due_ms and each.due_ms == due_ms)
        return min((first for first in firsts if first is not None), default=None)

    def settle(self) -> None:
        failed = [key for key, ended in self._ended.items() if any(each.error for each in ended)]
        keys = {*failed, *(key for key in self._ended if self._settles(key))}
        groups = [self._ended.pop(key) for key in sorted(keys)]
        for each in self._settle_together(groups):
            marks = self._lists[each.candidate.parcel.partition]
            if each.mark is not None:
                marks.add(each.mark)
            if each.candidate.mark is not None:
                marks.close(each.candidate.mark)

    def resume(self) -> None:
        pass  # whatever is asked for next is what is due then

    def _some(self) -> list[Candidate]:
        due, fresh = self._due(), self._fresh()
        in_turn = itertools.chain(*itertools.zip_longest(due, fresh))
        return [each for each in in_turn if each is not None]

    def _due(self) -> list[Candidate]:
        """What is due by its mark, from all partitions in turn."""
        found: list[Candidate] = []
        while len(found) < _TOGETHER:
            now_ms = self.push.core.now_ms()
            marks = [
                (partition, mark)
                for _ in range(_TOGETHER // len(self._lists))
                for partition, each in enumerate(self._lists)
                if (mark := each.take(now_ms)) is not None
            ]
            if not marks:
                break
            found += self._marked(marks)
        return found

    def _marked(self, marks: list[tuple[int, Mark]]) -> Iterator[Candidate]:
        """The messages that marks tell of; a mark whose message is not as it says is passed over.

        The cheap read may show a parcel as it was before: such a one is read once more.
        """
        core, source_id = self.push.core, self.push.source.id
        table = core.tables.messages
        keys = [(partition_key(PARCELS, source_id, p), mark.sort_key) for p, mark in marks]
        items = core.store.get_many(table, sorted(set(keys)), consistent=False)
        for (partition, mark), key in zip(marks, keys, strict=True):
            item = items.get(key)
            if item is None or not _fits(read_parcel(item), mark, core.now_ms()):
                item = core.store.get(table, *key)
            parcel = None if item is None else read_parcel(item)
            if parcel is None or not _fits(parcel, mark, core.now_ms()):
                self._lists[partition].close(mark)
                continue
            candidate = Candidate(parcel=parcel, place=mark.place, mark=mark)
            if self._is_over(candidate):
                self._give_up(candidate, mark.error)
                self._lists[partition].close(mark)
            else:
                yield candidate


class BlockingFeed(Feed):
    """Of a policy where a message that fails holds the others back until it is through.

    In order, each message is posted alone. Else only the probe is, the oldest one, while the
    subscription retries; once that is accepted the rest follow side by side. Of several that then
    fail together the oldest is the next probe, and the others are free as soon as it is through.
    """

    def __init__(self, push: Push, schedule: Schedule, start: str, *, dirty: bool) -> None:
        zeros = (0,) * len(push.all_partitions)
        if not schedule.blocks and (dirty or any(schedule.dues_ms)):
            # Until now messages waited for themselves alone, and what was clean had marks.
            schedule, start = replace(schedule, clean_ms=()), ""
        super().__init__(push, schedule, "" if push.in_order else start, zeros)
        self._alone = push.in_order or schedule.state == "retrying"
        self._waiting: Candidate | None = None

    def next(self) -> Candidate | None:
        if self._waiting is not None or self._failed() or (self._alone and self.running):
            return None
        if not self._ready:
            self._refill()
        if not self._ready:
            return None
        first = self._ready[0]
        parcel, place = first.parcel, first.place
        if parcel.receives[place] and parcel.visible_ms[place] > self.push.core.now_ms():
            self._waiting = None if self.running else first
            return None
        return self._ready.popleft()

    def first_due(self) -> Mark | None:
        if self._waiting is None:
            return None
        parcel, place = self._waiting.parcel, self._waiting.place
        due_ms, error = parcel.visible_ms[place], parcel.errors.get(place, "")
        return Mark(due_ms, parcel.sort_key, place, parcel.position(place), error)

    def settle(self) -> None:
        failed = sorted(self._failed(), key=lambda each: each.candidate.key)
        if failed and self.running:
            return
        if self._ended and not failed:
            self._alone = self.push.in_order
        elif failed:
            self._alone = True
        keys = [key for key in self._ended if failed or self._settles(key)]
        groups = [self._ended.pop(key) for key in sorted(keys)]
        free = frozenset(each.candidate.key for each in failed[1:])
        again = [
            each.candidate
            for each in self._settle_together(groups, free)
            if each.due_ms is not None
        ]
        self._ready.extendleft(sorted(again, key=lambda each: each.key, reverse=True))

    def resume(self) -> None:
        self._waiting = None

    def extend(self, start: str) -> None:
        # What comes in between may be told by an event that was lost, and must not be passed.
        super().extend(min(start, self._reached()) if self.push.in_order else start)

    def _reached(self) -> str:
        """The key up to which looks have told everything."""
        return max(look.reached for look in self._looks)

    def _failed(self) -> list[Attempt]:
        return [each for ended in self._ended.values() for each in ended if each.error is not None]


def feed_of(push: Push, schedule: Schedule, start: str, *, dirty: bool, due_alone: bool) -> Feed:
    """The feed of the subscription's policy.

    `dirty`: the last holder died, and left no word. `due_alone`: what nobody posted yet has
    invocations of its own, where messages do not wait for each other.
    """
    if push.blocks:
        return BlockingFeed(push, schedule, "" if dirty else start, dirty=dirty)
    return IndependentFeed(push, schedule, start, dirty=dirty, due_alone=due_alone)


def _fits(parcel: Parcel, mark: Mark, now_ms: int) -> bool:
    waits = is_pending(parcel, mark.place, now_ms)
    return waits and parcel.visible_ms[mark.place] == mark.due_ms


def _key_of(candidate: Candidate) -> _ParcelKey:
    return candidate.parcel.partition, candidate.parcel.sort_key
