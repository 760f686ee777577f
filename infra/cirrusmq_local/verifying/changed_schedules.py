"""Schedules that are changed, deleted and made again while they fire: each definition has times.

put A ── 3 min ── A in force ......... B in force .................... C in force
                   change to B ── 3 min ──^      delete ── 3 min ──x  made again as C
A: the times until B is in force, once each     B: its times until the delete, none 3 min behind it

Some definitions send to a queue, others publish to a topic, whose copies come to the same queue. A
receiver waits there all the time, so it is seen when each message came.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from cirrusmq.base.limits import SCHEDULE_CHANGE_MS
from cirrusmq.base.timestamps import parse_time
from cirrusmq.schedules.rules import Rule, latest
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import MAX_DRIFT_MS, Service
from cirrusmq_local.verifying.ticks import LATE_MS, MAX_TIMES, PROMISE, QUEUE

NAME = "changed schedules"
NEVER_MS = 1 << 60
_CHANGED, _REMADE = ("one", "two"), "three"
_RULES = (
    Rule(every_seconds=60),
    Rule(cron="* * * * *", time_zone="Europe/Berlin"),
    Rule(every_seconds=120),
    Rule(cron="*/2 * * * *", time_zone="Asia/Shanghai"),
)
_GAP_SECONDS = 48
"""Shortest time between two changes of a schedule: a sixth within 3 minutes is refused."""
_DELETE_SECONDS, _REMAKE_SECONDS = 240, 10
"""Time to a delete: the schedule has fired by then. And to the put of the same name behind it."""
_SWEPT_MS = 10_000
"""A sweep fires times of the next two minutes. So times before a delete are put, but for the last
ones if the machine has a fault."""
_WAIT_SECONDS = 5


@dataclass
class Defined:
    """A definition of a schedule, and the times at which it is in force."""

    rule: Rule
    since_ms: int
    until_ms: int = NEVER_MS
    """From then on it brings nothing."""
    sure_until_ms: int = NEVER_MS
    """Its times before then bring a message each."""


class ChangedSchedules:
    """A queue, a topic, and the schedules of a run that are changed."""

    name: ClassVar[str] = NAME

    def __init__(self, service: Service, prefix: str, seed: int) -> None:
        self._service, self._prefix = service, f"{prefix}-changed"
        self._random = Random(f"{seed} {NAME}")
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._defined: dict[str, Defined] = {}
        """Body of its messages -> the definition."""
        self._present: dict[str, list[Defined]] = {}
        """Definitions of each schedule since it was made last."""
        self._came: dict[str, tuple[str, int]] = {}
        """Id -> (body, when it was received first, by the service's clock)."""
        self.errors: list[str] = []
        self.judged = Judged()

    def begin(self) -> None:
        """Make all, and begin to change and to receive. Raises ValueError if it is refused."""
        queue, topic = f"/queues/{self._prefix}", f"/topics/{self._prefix}"
        self._service.ask("PUT", queue, QUEUE)
        self._service.ask("PUT", topic, {})
        copy = {"protocol": "queue", "endpoint": self._prefix}
        self._service.ask("PUT", f"{topic}/subscriptions/copy", copy)
        for name, rule in zip((*_CHANGED, _REMADE), _RULES, strict=False):
            self._put(name, rule, of_topic=name == "two")
        for body in (self._change, self._remake, self._receive):
            self._threads.append(threading.Thread(target=self._work, args=(body,), daemon=True))
            self._threads[-1].start()

    def judge(self) -> None:
        """End the changes, receive the rest, and compare what came with the times."""
        self._stop()
        while self._take(1):
            pass
        end_ms = self._now_ms()
        for body, defined in self._defined.items():
            came = [at_ms for sent, at_ms in self._came.values() if sent == body]
            early_ms = MAX_DRIFT_MS + self._service.max_skew_ms
            self.judged.note(PROMISE, len(came), check(defined, came, end_ms, early_ms))

    def remove(self) -> None:
        """Remove all."""
        self._stop()
        for name in (*_CHANGED, _REMADE):
            self._service.ask("DELETE", f"/schedules/{self._prefix}-{name}")
        self._service.ask("DELETE", f"/topics/{self._prefix}")
        self._service.ask("DELETE", f"/queues/{self._prefix}")

    def _stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, body: Any) -> None:
        try:
            body()
        except ValueError as error:
            self.errors.append(f"{NAME}: {error}")

    def _change(self) -> None:
        """Change two schedules in turn, until all is over."""
        number = 0
        while not self._over.wait(self._drawn(_GAP_SECONDS / len(_CHANGED))):
            name = _CHANGED[number % len(_CHANGED)]
            self._put(name, self._random.choice(_RULES), self._random.random() < 0.5)
            number += 1

    def _remake(self) -> None:
        """Delete another one, and make it again, until all is over."""
        while not self._over.wait(self._drawn(_DELETE_SECONDS)):
            self._delete(_REMADE)
            self._over.wait(_REMAKE_SECONDS)
            self._put(_REMADE, self._random.choice(_RULES[:2]), of_topic=False)

    def _drawn(self, seconds: float) -> float:
        """Some seconds, or up to a third more."""
        return seconds * self._random.uniform(1, 1.33)

    def _put(self, name: str, rule: Rule, of_topic: bool) -> None:
        body = f"{name}.{len(self._defined)}"
        given: dict[str, Any] = {"message": {"body": body}, "missed": "all"}
        given["topic" if of_topic else "queue"] = self._prefix
        if rule.every_seconds is not None:
            given["every_seconds"] = rule.every_seconds
        else:
            given |= {"cron": rule.cron, "time_zone": rule.time_zone}
        made = self._service.ask("PUT", f"/schedules/{self._prefix}-{name}", given)
        since_ms = parse_time("in_force_from", made["in_force_from"])
        for earlier in self._present.setdefault(name, []):
            earlier.until_ms = min(earlier.until_ms, since_ms)
            earlier.sure_until_ms = min(earlier.sure_until_ms, since_ms)
        self._defined[body] = Defined(rule, since_ms)
        self._present[name].append(self._defined[body])

    def _delete(self, name: str) -> None:
        begun_ms = self._now_ms()
        self._service.ask("DELETE", f"/schedules/{self._prefix}-{name}")
        until_ms = self._now_ms() + SCHEDULE_CHANGE_MS
        for earlier in self._present[name]:
            earlier.until_ms = min(earlier.until_ms, until_ms)
            earlier.sure_until_ms = min(earlier.sure_until_ms, begun_ms - _SWEPT_MS)
        self._present[name] = []

    def _receive(self) -> None:
        while not self._over.is_set():
            self._take(_WAIT_SECONDS)

    def _take(self, wait_seconds: int) -> int:
        """Receive and delete once. Returns the number of messages."""
        path = f"/queues/{self._prefix}/messages"
        asked = {"max": 16, "wait_seconds": wait_seconds}
        held = self._service.ask("POST", f"{path}/receive", asked)["messages"]
        for each in held:
            self._came.setdefault(each["id"], (each["body"], self._now_ms()))
        if held:
            receipts = [each["receipt"] for each in held]
            self._service.ask("POST", f"{path}/delete", {"receipts": receipts})
        return len(held)

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._service.offset_ms


def check(
    defined: Defined, came_ms: Sequence[int], end_ms: int, early_ms: int
) -> Iterator[Violation]:
    """A definition against the times at which its messages were received until the end.

    early_ms: how far the clocks may differ.
    """
    times = latest(defined.rule, defined.since_ms, min(end_ms, defined.until_ms - 1), MAX_TIMES)
    sure_ms = min(end_ms - LATE_MS, defined.sure_until_ms - 1)
    least = sum(each <= sure_ms for each in times)
    if not least <= len(came_ms) <= len(times):
        told = f"{len(came_ms)} messages of {least} to {len(times)} times of a definition came"
        yield Violation(f"{told}, in force from {defined.since_ms} to {defined.until_ms}")
        return
    for time_ms, at_ms in zip(times, sorted(came_ms), strict=False):
        if at_ms < time_ms - early_ms:
            yield Violation(f"a schedule's message came {time_ms - at_ms} ms before its time")
            return
