"""Message sources: the messages that a poster posts one after the other, and their settling.

If messages do not wait for each other (`independent_queue`), messages due by their marks and
messages not posted yet take turns. If a failing message holds the others back (`blocking_queue`),
there is an order.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.limits import RESCUE_MS
from cirrusmq.lifecycle.dead_letters.move import dead_letter_queue
from cirrusmq.model.parcel import Parcel
from cirrusmq.push.pending import Push
from cirrusmq.push.poster_lease import LeaseRelease
from cirrusmq.push.posting import (
    Candidate,
    CandidateKey,
    PostResult,
    Settled,
    give_up,
    is_used_up,
    mark_of,
    settle,
)
from cirrusmq.push.scan_pending import Look, is_pending, next_delayed_ms
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.subscriptions.delivery.due_marks import DueMark, MarkList, put_mark
from cirrusmq.subscriptions.delivery.rules import DeliveryState

SETTLE_MS = 1_000
"""Time after which a delivery is written down, even if posts of the same parcel still run."""
READ_AT_A_TIME = 16
"""Candidates that are read at a time."""
READ_BYTES = 8_000_000
"""Bytes of JSON that are read at a time, unless one candidate has more."""
GIVEN_UP_AT_A_TIME = 64
"""Messages that are dead-lettered at a time."""
GONE = 410
_ParcelKey = tuple[int, str]


class Feed(ABC):
    """The messages of one subscription for as long as one invocation holds its lease.

    dues_ms: each partition's first mark, as far as is known.
    """

    def __init__(
        self, push: Push, delivery: DeliveryState, start: str, dues_ms: Sequence[int]
    ) -> None:
        froms = delivery.marks_ms or (0,) * len(push.all_partitions)
        self.push = push
        self.delivery = delivery
        self.running = 0
        self.running_bytes = 0
        """Bytes of JSON in the running posts."""
        self.posted = False
        self.gone = False
        """True if a post was answered 410: the URL is gone for good."""
        self._mark_lists = [
            MarkList(*(push.core, push.source.id, partition, froms[partition]), due_ms)
            for partition, due_ms in enumerate(dues_ms)
        ]
        self._kept_until_ms = delivery.kept_until_ms
        self._ready: deque[Candidate] = deque()
        self._unread: deque[Candidate] = deque()
        """Candidates behind the ready ones, whose contents are not read yet."""
        self._found: set[CandidateKey] = set()
        """Candidates of all scans, which may overlap."""
        self._of_parcel: Counter[_ParcelKey] = Counter()
        self._ended: dict[_ParcelKey, list[PostResult]] = {}
        self._marks_missing = delivery.blocks and not push.blocks
        """True if failing messages held the others back until now, so that they have no marks."""
        start = "" if delivery.delays else start
        self._look = Look(push, delivery, start, push.partitions if start else ())
        self._looks = [self._look]
        self._parcels: Iterator[tuple[Parcel, list[int]]] = iter(self._look)

    @abstractmethod
    def next(self) -> Candidate | None:
        """Returns the message to post now, or None if there is none or it may not be posted yet."""

    def next_probe(self) -> Candidate | None:
        """Returns the message that an open breaker tries, or None; not always the same one."""
        return self.next()

    @abstractmethod
    def first_due(self) -> DueMark | None:
        """Returns the waiting message that is due first, as its mark, or None."""

    @abstractmethod
    def settle(self) -> None:
        """Writes down the results of posts that have ended, as far as possible."""

    @abstractmethod
    def resume(self) -> None:
        """Continues after a wait for the first message that was due."""

    @abstractmethod
    def hurry(self) -> None:
        """Makes all messages that wait for a retry due now, each once."""

    def answer(self, requested: DeliveryState) -> None:
        """Does what another worker requested of the holder."""
        if requested.delays != self.delivery.delays:
            self.delivery = replace(self.delivery, delays=requested.delays)
            self.look_again("")
        self.look_again(requested.again or "")
        if requested.hurried:
            self.hurry()

    def look_again(self, start: str) -> None:
        """Scans again from a key on, where something was put."""
        look = Look(self.push, self.delivery, start, ())
        self._look = look if look.full else self._look
        self._looks.append(look)
        self._parcels = itertools.chain(self._parcels, look)

    def put_back(self, candidate: Candidate) -> None:
        """Puts back the next candidate, which may not be posted yet."""
        self._ready.appendleft(candidate)

    def began(self, candidate: Candidate) -> None:
        """Notes that the candidate's post begins."""
        self.running += 1
        self.running_bytes += candidate.answer_bytes
        self.posted = True
        self._of_parcel[_key_of(candidate)] += 1

    def ended(self, outcome: PostResult | Candidate) -> None:
        """Notes that a post has ended, or could not begin."""
        self.running -= 1
        candidate = outcome if isinstance(outcome, Candidate) else outcome.candidate
        self.running_bytes -= candidate.answer_bytes
        self._of_parcel[_key_of(candidate)] -= 1
        if isinstance(outcome, PostResult):
            self.gone = self.gone or outcome.post.status == GONE
            self._ended.setdefault(_key_of(candidate), []).append(outcome)
        else:
            self._ready.appendleft(candidate)

    @property
    def unsettled(self) -> bool:
        """True if a post has ended and its result is not written down."""
        return bool(self._ended)

    def next_key(self) -> str | None:
        """Returns the lowest key of the messages left to be posted, or None without any."""
        if not self._ready:
            self._refill()
        waiting = itertools.chain(self._ready, self._unread)
        return min((each.parcel.sort_key for each in waiting), default=None)

    def next_delayed_ms(self) -> int | None:
        """Returns when the next delayed message is due that no scan has returned, or None."""
        if not self.delivery.delays:
            return None
        return next_delayed_ms(self.push, self._look.began_ms)

    def handover(self) -> LeaseRelease:
        """Returns the state of the messages for the next holder of the lease."""
        first, now_ms = self.first_due(), self.push.core.now_ms()
        return LeaseRelease(
            due_ms=None if first is None else first.due_ms,
            error="" if first is None else first.error,
            sent_ms=0 if first is None else first.sent_ms,
            blocks=self.push.blocks,
            clean_ms=tuple(self._look.clean_ms),
            marks_ms=tuple(each.left_ms for each in self._mark_lists),
            dues_ms=tuple(each.due_ms for each in self._mark_lists),
            kept_until_ms=self._kept_until_ms,
            looked_ms=now_ms if self._look.full else self.delivery.looked_ms,
            posted_ms=now_ms if self.posted else self.delivery.posted_ms,
        )

    def _refill(self) -> None:
        """Makes the next few candidates ready, with their contents."""
        candidates = self._take_unread()
        wanted = [(each.parcel, [each.index]) for each in candidates]
        contents = read_contents(self.push.core, self.push.source, wanted)
        self._ready += [
            replace(each, message=messages.get(each.index))
            for each, messages in zip(candidates, contents, strict=True)
        ]

    def _take_unread(self) -> list[Candidate]:
        """Takes as many of the next candidates as are read at a time."""
        if not self._unread:
            self._unread.extend(self._next_candidates())
        taken: list[Candidate] = []
        size = 0
        while self._unread and (not taken or size + self._unread[0].answer_bytes <= READ_BYTES):
            size += self._unread[0].answer_bytes
            taken.append(self._unread.popleft())
        return taken

    def _next_candidates(self) -> list[Candidate]:
        """Returns the next few candidates, without their contents; an empty list at the end."""
        return self._from_look()

    def _from_look(self) -> list[Candidate]:
        """Returns the next candidates of the scans, and dead-letters used-up ones on the way."""
        found: list[Candidate] = []
        to_give_up: list[Candidate] = []
        while len(found) < READ_AT_A_TIME and (pending := next(self._parcels, None)) is not None:
            parcel, indexes = pending
            for index in indexes:
                candidate = Candidate(parcel=parcel, index=index)
                if candidate.key not in self._found:
                    self._found.add(candidate.key)
                    (to_give_up if self._must_give_up(candidate) else found).append(candidate)
            if not self.push.blocks:
                self._add_marks(parcel)
            if len(to_give_up) >= GIVEN_UP_AT_A_TIME:
                self._give_up(to_give_up)
                to_give_up = []
        self._give_up(to_give_up)
        return found

    def _add_marks(self, parcel: Parcel) -> None:
        """Adds the marks of waiting messages that this poster would not find among the stored ones.

        Messages that waited without marks get them now. Marks of a poster that had lost its lease
        are added if this one has already passed them:

        the one before   posts m ── its lease lapses ────── mark 1 ── m: v = 1, r = 1
        this one                          reads marks up to 9 ────────────── scans: m waits
        """
        now_ms = self.push.core.now_ms()
        marks = self._mark_lists[parcel.partition]
        for index in range(parcel.count):
            if parcel.receives[index] and is_pending(parcel, index, now_ms):
                mark = waiting_mark(parcel, index)
                if self._marks_missing:
                    put_mark(self.push.core, parcel, mark)
                if self._marks_missing or marks.has_passed(mark):
                    marks.add(mark)

    def _must_give_up(self, candidate: Candidate) -> bool:
        """Returns True if a message is to be dead-lettered instead of being posted."""
        if is_used_up(self.push, candidate):
            return True
        if candidate.parcel.expires_ms >= self.push.core.now_ms() + RESCUE_MS:
            return False
        return dead_letter_queue(self.push.core, self.push.source) is not None

    def _give_up(self, candidates: Sequence[Candidate]) -> None:
        """Dead-letters messages, parcels in parallel: a whole backlog may expire in two minutes.

        In order, one by one: so is their order in the dead-letter queue.
        """
        groups: defaultdict[_ParcelKey | None, list[Candidate]] = defaultdict(list)
        for each in candidates:
            groups[None if self.push.in_order else _key_of(each)].append(each)

        def move(group: list[Candidate]) -> list[tuple[Parcel, int]]:
            lefts: dict[_ParcelKey, Parcel] = {}
            for each in group:
                parcel, mark = lefts.get(_key_of(each), each.parcel), each.mark
                error = parcel.last_error(each.index) if mark is None else mark.error
                left = give_up(self.push, replace(each, parcel=parcel), error)
                lefts[_key_of(each)] = left
            return [(lefts[_key_of(each)], each.index) for each in group]

        for moved in self.push.core.in_parallel(move, list(groups.values())):
            for parcel, index in moved:
                self._note_kept(parcel, index)

    def _note_kept(self, parcel: Parcel, index: int) -> None:
        """Notes a message that is kept to its expiry, and not posted again."""
        if parcel.visible_ms[index] == parcel.expires_ms:
            self._kept_until_ms = max(self._kept_until_ms, parcel.expires_ms)

    def _settle_all(
        self, groups: Sequence[list[PostResult]], free: frozenset[CandidateKey] = frozenset()
    ) -> list[Settled]:
        """Settles posts, one list for each parcel, the parcels in parallel."""

        def write(results: list[PostResult]) -> list[Settled] | None:
            marks = self._mark_lists[results[0].candidate.parcel.partition]
            try:
                return settle(self.push, results, free, marks.from_ms)
            except Unavailable:
                return None

        settled: list[Settled] = []
        for results, written in zip(groups, self.push.core.in_parallel(write, groups), strict=True):
            if written is None:  # while this one holds the lease, no other worker does it
                self._ended[_key_of(results[0].candidate)] = results
            settled += written or []
        for each in settled:
            self._note_kept(each.candidate.parcel, each.candidate.index)
        return settled

    def _may_settle(self, key: _ParcelKey) -> bool:
        """Returns True if a parcel's deliveries are written down now, not with later ones of it."""
        begun_ms = min(each.post.at_ms for each in self._ended[key])
        return not self._of_parcel[key] or self.push.core.now_ms() - begun_ms >= SETTLE_MS


def waiting_mark(parcel: Parcel, index: int) -> DueMark:
    """Returns the mark of a waiting message, from its parcel."""
    return mark_of(parcel, index, parcel.visible_ms[index], parcel.last_error(index))


def _key_of(candidate: Candidate) -> _ParcelKey:
    return candidate.parcel.partition, candidate.parcel.sort_key
