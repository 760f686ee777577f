"""Schedules that fire through a whole run: each of their times brings one message.

put ── 3 min ── in force ── a time ── a time ── … ── the end
                            least: those a minute before it    most: all until it
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, ClassVar

from cirrusmq.base.timestamps import parse_time
from cirrusmq.schedules.rules import Rule, latest
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.remote import Service

PROMISE = "schedules"
NAME = "schedules"
LATE_MS = 70_000
"""A sweep comes each minute, and takes a while."""
QUEUE = {"partitions": 1, "message_retention_seconds": 3_600}
_RULES = {"one": Rule(every_seconds=60), "two": Rule(cron="*/2 * * * *", time_zone="Asia/Shanghai")}
MAX_TIMES = 1_000
_EMPTY_LOOKS = 3


class Ticks:
    """A queue, and the schedules that put messages into it."""

    name: ClassVar[str] = NAME

    def __init__(self, service: Service, prefix: str) -> None:
        self._service, self._prefix = service, f"{prefix}-ticks"
        self._since_ms: dict[str, int] = {}
        self.judged = Judged()

    def begin(self) -> None:
        """Make the queue and the schedules."""
        self._service.ask("PUT", f"/queues/{self._prefix}", QUEUE)
        for name, rule in _RULES.items():
            body: dict[str, Any] = {"queue": self._prefix, "message": {"body": name}}
            body |= {"every_seconds": rule.every_seconds} if rule.every_seconds else {}
            body |= {"cron": rule.cron, "time_zone": rule.time_zone} if rule.cron else {}
            path = f"/schedules/{self._prefix}-{name}"
            made = self._service.ask("PUT", path, {**body, "missed": "all"})
            self._since_ms[name] = parse_time("in_force_from", made["in_force_from"])

    def judge(self) -> None:
        """Receive all that came, and compare it with the times."""
        came = self._take_all()
        end_ms = time.time_ns() // 1_000_000 + self._service.offset_ms
        for name, since_ms in self._since_ms.items():
            self.judged.note(PROMISE, came[name], missed(name, since_ms, end_ms, came[name]))

    def remove(self) -> None:
        """Remove the schedules and the queue."""
        for name in _RULES:
            self._service.ask("DELETE", f"/schedules/{self._prefix}-{name}")
        self._service.ask("DELETE", f"/queues/{self._prefix}")

    def _take_all(self) -> Counter[str]:
        came: Counter[str] = Counter()
        seen: set[str] = set()
        path, quiet = f"/queues/{self._prefix}/messages", 0
        while quiet < _EMPTY_LOOKS:
            asked = {"max": 16, "wait_seconds": 1}
            held = self._service.ask("POST", f"{path}/receive", asked)["messages"]
            quiet = 0 if held else quiet + 1
            came.update(each["body"] for each in held if each["id"] not in seen)
            seen.update(each["id"] for each in held)
            if held:
                receipts = [each["receipt"] for each in held]
                self._service.ask("POST", f"{path}/delete", {"receipts": receipts})
        return came


def missed(name: str, since_ms: int, end_ms: int, came: int) -> list[Violation]:
    """The number of messages of a schedule, if it cannot be right."""
    times = latest(_RULES[name], since_ms, end_ms, MAX_TIMES)
    least = sum(each <= end_ms - LATE_MS for each in times)
    if least <= came <= len(times):
        return []
    return [Violation(f"{came} messages of {least} to {len(times)} times of a schedule came")]
