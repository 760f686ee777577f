"""An operator of schedules, and what they promise: each time once, whatever stops a sweep.

    put ── in force from A ............ change ── in force from B
           the times from A to B, once each         the times from B on, once each

Their messages stay in a queue that nobody receives from, so that the store shows all of them. Some
come through a topic. In a zone whose clocks are set during the run, times are found by trying each
minute (`zones`), not by the rules that fire them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from cirrusmq.base.timestamps import parse_time
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.schedules.rules import Rule, latest
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.judging.zones import SetClock, times_of

TICKS, GONE, TOPIC = "ticks", "gone", "ticking"
"""The queue of the messages, one that is deleted while schedules name it, and a topic."""
PUT, DELETE = "put schedule", "delete schedule"
_NAMES = ("one", "two")
_RULES: tuple[dict[str, Any], ...] = (
    {"every_seconds": 60},
    {"every_seconds": 120},
    {"cron": "*/3 * * * *", "time_zone": "Asia/Shanghai"},
)
SET_ZONE = "Europe/Berlin"
"""The zone whose clocks are set, in scenarios with `clock_set`."""
_HOURS = (11, 12)
_SET_RULES: tuple[dict[str, Any], ...] = (
    {"cron": "*/3 * * * *", "time_zone": SET_ZONE},
    {"cron": "*/3 11-12 * * *", "time_zone": SET_ZONE},
    {"cron": "*/5 11-12 * * *", "time_zone": SET_ZONE},
)
_QUEUE = {"partitions": 1, "message_retention_seconds": 345_600}
_MAX_TIMES = 10_000


class Scheduler:
    """Puts, changes and deletes schedules; pauses and resumes their queue, and deletes another."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._client = Client(cast.name)
        self._made = False
        self._rules = _SET_RULES if scenario.clock_set[1] else _RULES
        self._topic = scenario.scheduled_topic

    def step(self, number: int, draw: Random) -> None:
        """One change of a schedule or of its queue."""
        self._client.begin(number)
        if not self._made:
            self._made = all(
                self._call("create", "PUT /queues/{queue}", {"queue": name}, _QUEUE).known
                for name in (TICKS, GONE)
            )
            self._made = self._made and (not self._topic or self._subscribe())
        kind = draw.random()
        if kind < 0.15:
            body = {"paused": draw.random() < 0.5}
            self._call("ticks", "PATCH /queues/{queue}", {"queue": TICKS}, body)
        elif kind < 0.25:
            self._call("ticks", "DELETE /queues/{queue}", {"queue": GONE})
        elif kind < 0.35:
            name = draw.choice(_NAMES)
            self._call(DELETE, "DELETE /schedules/{schedule}", {"schedule": name})
        else:
            self._put(draw.choice(_NAMES), number, draw)
        self._deployment.stage.pause(draw.choice((0, 1_000, 100_000, 200_000, 400_000)))

    def _put(self, name: str, number: int, draw: Random) -> None:
        body: dict[str, Any] = {
            "queue": TICKS if draw.random() < 0.9 else GONE,
            "message": {"body": f"{self._client.name} {number}"},
            "missed": draw.choice(("one", "all", "all", "none")),
            **draw.choice(self._rules),
        }
        if self._topic and self._made and draw.random() < 0.7:
            del body["queue"]
            body["topic"] = TOPIC
        self._call(PUT, "PUT /schedules/{schedule}", {"schedule": name}, body)

    def _subscribe(self) -> bool:
        """Makes the topic and its subscription. Returns True if both are there."""
        topic = self._call("create", "PUT /topics/{topic}", {"topic": TOPIC}, {})
        path = {"topic": TOPIC, "subscription": TICKS}
        body = {"protocol": "queue", "endpoint": TICKS}
        route = "PUT /topics/{topic}/subscriptions/{subscription}"
        return topic.known and self._call("create", route, path, body).known

    def _call(self, kind: str, route: str, path: dict[str, str], body: Any = None) -> Call:
        given = {"body": body}
        name = next(iter(path.values()))
        return self._deployment.http(self._client, kind, name, given, route, path, body)


class _Defined(NamedTuple):
    """A definition: its messages, and the times that it fires."""

    body: dict[str, Any]
    call: Call
    since_ms: int
    until_ms: int
    deleted: bool
    zone: SetClock | None
    """The zone whose clocks are set; None if none are."""

    def times(self, until_ms: int) -> list[int]:
        """Returns its times up to a moment."""
        if self.zone is not None:
            minutes, hours, *_ = self.body["cron"].split()
            every = int(minutes.removeprefix("*/"))
            among = None if hours == "*" else _HOURS
            last_ms = min(self.until_ms - 1, until_ms)
            return times_of(self.zone, every, among, self.since_ms, last_ms)
        rule = Rule(
            cron=self.body.get("cron"),
            time_zone=self.body.get("time_zone", "UTC"),
            every_seconds=self.body.get("every_seconds"),
        )
        last_ms = min(self.until_ms - 1, until_ms)
        return latest(rule, self.since_ms, last_ms, _MAX_TIMES)


def check_schedules(
    book: Book,
    parcels: Sequence[tuple[Parcel, Mapping[int, Message]]],
    sweep: Call,
    zone: SetClock | None,
) -> Iterator[Violation]:
    """Each time of a definition has one message, late ones as `missed` says.

    parcels: all of the queue, with their messages. sweep: the last one, which nothing disturbed.
    zone: the one whose clocks are set, if any are.
    """
    found: dict[str, list[int]] = {}
    for parcel, messages in parcels:
        for index, message in messages.items():
            found.setdefault(str(message.body), []).append(parcel.visible_ms[index])
    for name in _NAMES:
        for defined in _definitions(book, name, zone):
            body = defined.body["message"]["body"]
            yield from _check(defined, found.pop(body, []), sweep)


def _check(defined: _Defined, visible: list[int], sweep: Call) -> Iterator[Violation]:
    calls = (defined.call,)
    # Late messages are visible when they are put, by a clock that may differ.
    first_ms, last_ms = sweep.begun_ms - 2 * MAX_SKEW_MS, sweep.ended_ms + 2 * MAX_SKEW_MS
    ahead = [time for time in visible if time > last_ms]
    times = set(defined.times(last_ms + 600_000))
    if any(time not in times for time in ahead):
        yield Violation("a schedule fires at a time that it does not have", calls)
    if any(count > 1 for time, count in Counter(visible).items() if time in times):
        yield Violation("a time of a schedule fires twice", calls)
    past = len(visible) - len(ahead)
    if past > len(defined.times(last_ms)):
        yield Violation("a schedule fires more often than it has times", calls)
    if defined.deleted:
        return  # times before the delete are left out, if the sweep is late
    over = defined.times(first_ms)
    if defined.body["missed"] == "all" and past < len(over):
        yield Violation("a time of a schedule is lost", calls)
    if defined.body["missed"] == "one" and over and max(visible, default=0) < over[-1]:
        yield Violation("the last time of a schedule is lost", calls)


def _definitions(book: Book, name: str, zone: SetClock | None) -> Iterator[_Defined]:
    """The definitions of a schedule in order, if it is known which ones were made."""
    calls = sorted(
        (call for kind in (PUT, DELETE) for call in book.by_kind[kind] if call.place == name),
        key=lambda call: call.begun,
    )
    if not all(call.known for call in calls):
        return  # it is not known which definition was in force
    present: Call | None = None
    done = [call for call in calls if call.outcome != "refused"]
    for number, call in enumerate(done):
        deleted = any(each.kind == DELETE for each in done[number:])
        if present is not None and (since := _since_ms(call)) != _since_ms(present):
            yield from _defined(present, since, zone, deleted=deleted)
        elif present is not None:
            continue  # the same again: nothing has changed
        present = call if call.kind == PUT else None
    if present is not None:
        yield from _defined(present, 1 << 60, zone, deleted=False)


def _defined(
    call: Call, until_ms: int, zone: SetClock | None, *, deleted: bool
) -> Iterator[_Defined]:
    body = call.given["body"]
    if body.get("queue") != GONE:
        yield _Defined(body, call, _since_ms(call), until_ms, deleted, zone)


def _since_ms(call: Call) -> int:
    """When a change is in force; a delete may still bring messages for three minutes."""
    if call.kind == DELETE:
        return call.ended_ms + 180_000 + 2 * MAX_SKEW_MS
    return parse_time("in_force_from", call.answer["in_force_from"])
