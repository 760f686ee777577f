"""Received messages that wait for a worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from functools import partial

from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.leases import Held
from cirrusmq_client.steps import Steps, driven

RECEIVE = 16


class Inbox:
    """Passes each message to one worker; with `ordered`, one message of a group at a time.

    At most `prefetch` unstarted messages are held, in addition to messages that idle workers take
    at once. A worker takes up to `limit`: while it waits for a full batch, receives fetch the rest.
    A batch is fetched whole, so `limit` messages may be held even if `prefetch` is smaller:

        batches of 16, 15 held beside a busy worker    16  15  1  15  1 …   two receives for each
        batches of 16, 16 held                         16  16  16 …         one

    If `prefetch` is 0, no message is held beside busy workers. No message is held beside one that
    was received before:

        received   new 1, again 2, again 3, new 4
        one worker takes   1   4   2, and before it begins, 3 is given back   the next receive: one

    A message that was received before may have ended its process; if it does so again, this receive
    would count for an unstarted message beside it.
    """

    def __init__(self, prefetch: int, kind: Concurrency = THREADS, limit: int = 1) -> None:
        self._run = kind.run
        self._limit = limit
        self.ordered = self.once = False
        """`ordered`: True if groups have an order. `once`: True if a message is a dead letter after
        one receive; then no message is held beside handled ones, which may end the process."""
        self._prefetch = prefetch
        self._gathers = False
        """True if a worker waits for a full batch."""
        self._waiting: deque[Held] = deque()
        self._arrived: deque[float] = deque()
        self._busy: set[str] = set()
        self._idle = 0
        self._again = 0
        """Number of waiting messages that were received before."""
        self._alone = 0
        """Number of messages in handlers that were received before."""
        self._cautious = False
        """True if one of the newest messages was received before."""
        self._returning: set[str] = set()
        """Messages that are being given back: a receive now would count them."""
        self._closed = False
        self._changed = kind.condition()

    def put(self, messages: Sequence[Held]) -> list[Held]:
        """Adds messages. Returns messages to give back: all of them if the inbox is closed."""
        with self._changed:
            if self._closed:
                return list(messages)
            self._waiting.extend(messages)
            self._arrived.extend([time.monotonic()] * len(messages))
            self._cautious = any(held.again for held in messages)
            self._count_again()
            self._changed.notify_all()
            return self._leave_out() if self._alone else []

    @driven
    def wait_for_room(self) -> Steps[int]:
        """Waits until a receive is worth a call. Returns its number of messages, 0 if closed."""
        with self._changed:
            while not self._closed:
                spare = 0 if self._cautious or self._careful else self._may_hold
                room = self._idle + spare - len(self._waiting)
                worth = 2 * room >= min(spare, RECEIVE) or not self._waiting
                if room > 0 and not self._returning and (worth or self._lacks()):
                    return min(RECEIVE, room)
                yield self._changed.wait
            return 0

    @driven
    def take(self, limit: int, await_seconds: float) -> Steps[list[Held]]:
        """Takes `limit` messages, or fewer when the oldest has waited for `await_seconds`.

        Returns an empty list if the inbox is closed. A message that was received before is alone,
        and comes after messages that were not.
        """
        with self._changed:
            self._idle += 1
            self._limit, self._gathers = limit, await_seconds > 0
            self._changed.notify_all()
            try:
                while not self._closed:
                    ready = self._ready(limit)
                    left = None
                    if ready:
                        left = self._arrived[ready[0]] + await_seconds - time.monotonic()
                        if len(ready) == limit or left <= 0 or self._careful:
                            return self._remove(ready)
                    yield partial(self._changed.wait, left)
                return []
            finally:
                self._idle -= 1

    def beside(self, taken: Sequence[Held]) -> list[Held]:
        """Returns unstarted messages to give back before the messages of `take` are handled.

        There are none unless one of `taken` was received before.
        """
        if not any(held.again for held in taken):
            return []
        with self._changed:
            return self._leave_out()

    def done(self, held: Held) -> None:
        """Notes that a message of `take` has its result: its group's next one may be taken."""
        given_back = held.message.receipt in self._returning
        if not (held.again or given_back) and (not self.ordered or held.message.group is None):
            return
        with self._changed:
            self._returning.discard(held.message.receipt)
            self._alone -= held.again
            if self.ordered and held.message.group is not None:
                self._busy.discard(held.message.group)
            self._changed.notify_all()

    def fail(self, held: Held) -> list[Held]:
        """Notes that a message of `take` will be delivered again.

        Returns the later messages of its group, which must not be handled before it. Call `done`
        when all of them are given back.
        """
        with self._changed:
            group = held.message.group
            if not self.ordered or group is None:
                return []
            return self._pull(
                [n for n, each in enumerate(self._waiting) if each.message.group == group]
            )

    def close(self) -> list[Held]:
        """Closes the inbox. Returns the unstarted messages."""
        with self._changed:
            self._closed = True
            unstarted = list(self._waiting)
            self._waiting.clear()
            self._arrived.clear()
            self._again = 0
            self._changed.notify_all()
            return unstarted

    def _lacks(self) -> bool:
        """True if a worker waits for a batch that is not full."""
        return self._limit > 1 and self._idle > 0 and len(self._ready(self._limit)) < self._limit

    @property
    def _may_hold(self) -> int:
        """Maximum number of unstarted messages: ahead of busy workers, or to fill a batch."""
        if self._prefetch and not self.once:
            return max(self._prefetch, self._limit)
        # An idle worker takes ready messages at once, unless it waits for a full batch: messages of
        # a receive that starts before would be held beside it.
        fills = self._idle and (self._gathers or not self._ready(1))
        return self._limit - 1 if fills else 0

    @property
    def _careful(self) -> bool:
        """True if a message that was received before waits or is handled: then none is gathered."""
        return self._again + self._alone > 0

    def _ready(self, limit: int) -> list[int]:
        """Returns the indexes of the first messages that may be handled together now."""
        if not self._again:
            return self._startable(limit)
        startable = self._startable(len(self._waiting))
        new = [place for place in startable if not self._waiting[place].again]
        return new[:limit] or startable[:1]

    def _startable(self, limit: int) -> list[int]:
        """Returns the indexes of the first messages that may be handled now, each separately."""
        if not self.ordered:
            return list(range(min(limit, len(self._waiting))))
        places: list[int] = []
        groups = set(self._busy)
        for place, held in enumerate(self._waiting):
            if len(places) == limit:
                break
            group = held.message.group
            if group in groups:
                continue
            if group is not None:
                groups.add(group)
            places.append(place)
        return places

    def _leave_out(self) -> list[Held]:
        """Removes the messages that no idle worker takes at once. Returns them."""
        startable = self._startable(len(self._waiting))
        new = [place for place in startable if not self._waiting[place].again]
        kept = new[: self._idle * self._limit]
        workers = self._idle - -(-len(kept) // self._limit)
        again = [place for place in startable if self._waiting[place].again]
        stay = {*kept, *again[:workers]}
        return self._pull([place for place in range(len(self._waiting)) if place not in stay])

    def _remove(self, places: Sequence[int]) -> list[Held]:
        taken = self._pull(places)
        self._returning.update(held.message.receipt for held in taken if held.lost)
        self._alone += sum(held.again for held in taken)
        if self.ordered:
            self._busy.update(held.message.group for held in taken if held.message.group)
        return taken

    def _pull(self, places: Sequence[int]) -> list[Held]:
        """Removes the messages at these indexes. Returns them."""
        pulled = [self._waiting[place] for place in places]
        for place in reversed(places):
            del self._waiting[place]
            del self._arrived[place]
        self._count_again()
        self._changed.notify_all()
        return pulled

    def _count_again(self) -> None:
        if self._again or self._cautious:
            self._again = sum(held.again for held in self._waiting)
