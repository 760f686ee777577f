"""Messages that were received and wait for a worker."""

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
    """Gives each message to one worker; with `ordered`, one message of a group at a time.

    `spare` unstarted messages are held at most beyond what idle workers take at once. A worker
    takes up to `most`: while it waits for a batch to be full, receives are made for the rest.
    """

    def __init__(self, spare: int, kind: Concurrency = THREADS, most: int = 1) -> None:
        self._run = kind.run
        self._most = most
        self.ordered = False
        self._spare = spare
        self._waiting: deque[Held] = deque()
        self._arrived: deque[float] = deque()
        self._busy: set[str] = set()
        self._idle = 0
        self._closed = False
        self._changed = kind.condition()

    def put(self, messages: Sequence[Held]) -> bool:
        """Add messages; False where the inbox is closed."""
        with self._changed:
            if self._closed:
                return False
            self._waiting.extend(messages)
            self._arrived.extend([time.monotonic()] * len(messages))
            self._changed.notify_all()
            return True

    @driven
    def wait_for_room(self) -> Steps[int]:
        """How many messages to receive, as soon as it is worth a call; 0 once closed."""
        with self._changed:
            while not self._closed:
                room = self._idle + self._spare - len(self._waiting)
                worth = 2 * room >= min(self._spare, RECEIVE) or not self._waiting
                if room > 0 and (worth or self._lacks()):
                    return min(RECEIVE, room)
                yield self._changed.wait
            return 0

    @driven
    def take(self, most: int, await_seconds: float) -> Steps[list[Held]]:
        """Up to `most` messages: as soon as there are so many, else when the oldest has waited
        for `await_seconds`. An empty list once the inbox is closed."""
        with self._changed:
            self._idle += 1
            self._changed.notify_all()
            try:
                while not self._closed:
                    ready = self._ready(most)
                    left = None
                    if ready:
                        left = self._arrived[ready[0]] + await_seconds - time.monotonic()
                        if len(ready) == most or left <= 0:
                            return self._remove(ready)
                    yield partial(self._changed.wait, left)
                return []
            finally:
                self._idle -= 1

    def done(self, held: Held) -> None:
        """A message of `take` has its result: the next one of its group may be taken."""
        if self.ordered and held.message.group is not None:
            with self._changed:
                self._busy.discard(held.message.group)
                self._changed.notify_all()

    def fail(self, held: Held) -> list[Held]:
        """A message of `take` will be delivered again; answers the later ones of its group, which
        must not be handled before it. Call `done` when all of them are given back."""
        with self._changed:
            group = held.message.group
            if not self.ordered or group is None:
                return []
            kept = [
                (each, at)
                for each, at in zip(self._waiting, self._arrived, strict=True)
                if each.message.group != group
            ]
            later = [each for each in self._waiting if each.message.group == group]
            self._waiting = deque(each for each, _ in kept)
            self._arrived = deque(at for _, at in kept)
            self._changed.notify_all()
            return later

    def close(self) -> list[Held]:
        """Give no more messages out; answers those that were not started."""
        with self._changed:
            self._closed = True
            unstarted = list(self._waiting)
            self._waiting.clear()
            self._arrived.clear()
            self._changed.notify_all()
            return unstarted

    def _lacks(self) -> bool:
        """Whether a worker waits for a batch that is not full."""
        return self._most > 1 and self._idle > 0 and len(self._ready(self._most)) < self._most

    def _ready(self, most: int) -> list[int]:
        """Places of the first messages that may be handled now."""
        if not self.ordered:
            return list(range(min(most, len(self._waiting))))
        places: list[int] = []
        groups = set(self._busy)
        for place, held in enumerate(self._waiting):
            group = held.message.group
            if group in groups:
                continue
            if group is not None:
                groups.add(group)
            places.append(place)
            if len(places) == most:
                break
        return places

    def _remove(self, places: Sequence[int]) -> list[Held]:
        taken = [self._waiting[place] for place in places]
        for place in reversed(places):
            del self._waiting[place]
            del self._arrived[place]
        if self.ordered:
            self._busy.update(held.message.group for held in taken if held.message.group)
        self._changed.notify_all()
        return taken
