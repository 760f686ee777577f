"""Actors on one clock: threads of which one runs at a time, in an order that never depends on luck.

    sender    ──call──┐ asleep until 12:00:00.007          ┌── runs on
    receiver          └──> runs, because it is due first ──┘ asleep until 12:00:00.012

Time moves only when the actor that is due next is due later. The baton is passed straight from
thread to thread, and an actor that is due next itself keeps it.
"""

from __future__ import annotations

import contextvars
import heapq
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Curtain(BaseException):
    """The run is over: an actor that still waits is to end. Nothing in the product catches it."""


class Actor:
    """A thread that runs when it holds the baton."""

    def __init__(
        self, name: str, number: int, body: Callable[[], None], parent: Actor | None
    ) -> None:
        self.name = name
        self.number = number
        self.body = body
        self.parent = parent
        """The actor that it works for; None where it works for itself."""
        self.parked = False
        self.go = threading.Lock()
        self.go.acquire()


class Stage:
    """The clock, and whose turn it is. As a clock it has what `Clock` asks for."""

    scale = 1.0

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._due: list[tuple[int, int, int, Actor]] = []
        self._spawned = 0
        self._waiting: set[Actor] = set()
        self._current: Actor | None = None
        self._idle = threading.Lock()
        self._idle.acquire()
        self._over = False
        self.failure: BaseException | None = None

    @property
    def current(self) -> Actor | None:
        """The actor with the baton."""
        return self._current

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        """As the product sleeps: at least a millisecond, so that a loop of sleeps gets on."""
        self.pause(max(1, round(seconds * 1000)))

    def jump(self, ms: int) -> None:
        """Let time pass for all actors at once; one that was due meanwhile is late."""
        self._now_ms += ms

    def spawn(
        self,
        name: str,
        body: Callable[[], None],
        after_ms: int = 0,
        tie: int = 0,
        parent: Actor | None = None,
    ) -> Actor:
        """Put an actor on the stage, to begin after a while; `parent` waits for it."""
        self._spawned += 1
        actor = Actor(name, self._spawned, body, parent)
        threading.Thread(target=self._live, args=(actor,), name=name, daemon=True).start()
        heapq.heappush(self._due, (self._now_ms + after_ms, tie, actor.number, actor))
        return actor

    def pause(self, ms: int, tie: int = 0) -> None:
        """Let the calling actor sleep; of actors due at one time the lowest `tie` is first."""
        actor = self._current
        if actor is None:
            self._now_ms += ms
            return
        if ms < 0:
            ms = 0
        entry = (self._now_ms + ms, tie, actor.number, actor)
        if not self._due or entry < self._due[0]:
            self._now_ms = max(self._now_ms, entry[0])
            return
        heapq.heappush(self._due, entry)
        self._hand_over(actor)

    def park(self) -> None:
        """Let the calling actor sleep until another one wakes it."""
        assert self._current is not None
        actor = self._current
        actor.parked = True
        self._hand_over(actor)

    def wake(self, actor: Actor, after_ms: int = 0) -> None:
        """Wake a parked actor."""
        if actor.parked:
            actor.parked = False
            heapq.heappush(self._due, (self._now_ms + after_ms, 0, actor.number, actor))

    def side_by_side(self, bodies: Sequence[Callable[[], T]]) -> list[T]:
        """Have the bodies played by actors of their own, and wait for the last of them.

        Answers what they answer; raises what the first of them raised.
        """
        parent = self._current
        results: dict[int, T] = {}
        errors: list[BaseException] = []
        left = len(bodies)

        def play(number: int) -> None:
            nonlocal left
            try:
                results[number] = bodies[number]()
            except Curtain:
                raise
            except BaseException as error:
                errors.append(error)
            left -= 1
            if not left and parent is not None:
                self.wake(parent)

        for number in range(len(bodies)):
            self.spawn("thread", partial(play, number), parent=parent)
        while left:
            self.park()
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(bodies))]

    def window(self, limit: int) -> Window:
        """Calls in actors of their own, each told of when it has ended."""
        return Window(self)

    def run(self) -> None:
        """Play until every actor has ended or is parked."""
        if self._due:
            self._next().go.release()
            self._idle.acquire()
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """End the actors that are left."""
        self._over = True
        for actor in list(self._waiting):
            actor.go.release()
            self._idle.acquire()

    def _next(self) -> Actor:
        due_ms, _, _, actor = heapq.heappop(self._due)
        self._now_ms = max(self._now_ms, due_ms)
        self._current = actor
        return actor

    def _pass_on(self) -> None:
        """Give the baton to the actor that is due next, or back to `run`."""
        if self._due and not self._over:
            self._next().go.release()
        else:
            self._current = None
            self._idle.release()

    def _hand_over(self, actor: Actor) -> None:
        self._pass_on()
        actor.go.acquire()
        if self._over:
            raise Curtain

    def _live(self, actor: Actor) -> None:
        self._waiting.add(actor)
        actor.go.acquire()
        try:
            if not self._over:
                actor.body()
        except Curtain:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        finally:
            self._waiting.discard(actor)
            self._pass_on()


class Window:
    """Calls side by side, as `Window` of the core has them, in actors of a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._running = 0
        self._ended: list[Any] = []
        self._errors: list[BaseException] = []
        self._parent: Actor | None = None

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *raised: object) -> None:
        while self._running:
            self._park()
        if self._errors and raised[0] is None:
            raise self._errors[0]

    def start(self, call: Callable[[], Any]) -> None:
        """Begin a call, in the caller's context."""
        self._running += 1
        played = partial(contextvars.copy_context().run, self._play, call)
        self._stage.spawn("thread", played, parent=self._stage.current)

    def wait(self, seconds: float) -> list[Any]:
        """The results of calls that have ended; waits at most so long for the next one."""
        until_ms = self._stage.now_ms() + round(seconds * 1000)
        self._stage.spawn("timer", self._wake, round(seconds * 1000))
        while self._running and not self._ended and not self._errors:
            self._park()
            if self._stage.now_ms() >= until_ms:
                break
        if self._errors:
            raise self._errors[0]
        ended, self._ended = self._ended, []
        return ended

    def _play(self, call: Callable[[], Any]) -> None:
        try:
            answer = call()
            self._ended.append(answer)
        except Curtain:
            raise
        except BaseException as error:
            self._errors.append(error)
        self._running -= 1
        self._wake()

    def _park(self) -> None:
        self._parent = self._stage.current
        self._stage.park()
        self._parent = None

    def _wake(self) -> None:
        if self._parent is not None:
            self._stage.wake(self._parent)
