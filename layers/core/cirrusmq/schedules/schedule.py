"""A schedule as a value, and what a caller gives.

A change is in force for times from `since_ms` on; the definitions before it fire the times until
then. So no time fires by two of them, and none is lost, however the change and a sweep meet:

    a sweep      looks 120 s ahead ── reads the schedule ──> fires by what it read
    a change                                   └── is written      in force 180 s later
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, Throttled
from cirrusmq.base.shapes import integer
from cirrusmq.model.message import MessageInput
from cirrusmq.schedules.rules import Rule
from cirrusmq.sending.request_messages import Key

Missed: TypeAlias = Literal["one", "all", "none"]
"""The missed times that fire: the last, all, or none."""
_EARLIER = 5


class ScheduledMessage(MessageInput, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """The message of a schedule."""

    group: Key | UnsetType = UNSET
    priority: Annotated[int, integer((1, limits.PRIORITIES[1]))] | UnsetType = UNSET
    routing_key: str | UnsetType = UNSET


class ScheduleInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `PUT /schedules/{schedule}`."""

    message: ScheduledMessage
    queue: (
        Annotated[str, Meta(description="a queue of the account, not an ordered one")] | UnsetType
    ) = UNSET
    topic: Annotated[str, Meta(description="or a topic of the account")] | UnsetType = UNSET
    cron: (
        Annotated[
            str,
            Meta(
                max_length=limits.CRON_CHARACTERS,
                description="minute, hour, day of month, month and day of week, such as"
                " 0 8 * * 1-5",
            ),
        ]
        | UnsetType
    ) = UNSET
    time_zone: (
        Annotated[
            str, Meta(max_length=64, description="a time zone of IANA, such as Europe/Berlin")
        ]
        | UnsetType
    ) = UNSET
    every_seconds: (
        Annotated[int, integer(limits.EVERY_SECONDS, " seconds, a multiple of 60")] | UnsetType
    ) = UNSET
    missed: Missed | UnsetType = UNSET


class Target(msgspec.Struct, frozen=True):
    """A queue or a topic of the schedule's account."""

    kind: Literal["queue", "topic"]
    name: str


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The work of a schedule, and the id of its due marks: each change has another."""

    id: str
    target: Target
    rule: Rule
    message: ScheduledMessage
    missed: Missed = "one"
    key_id: str = ""
    """The access key that made it, for queues and topics whose messages name the sender's."""
    since_ms: int = 0
    """It fires times from then on."""
    until_ms: int | None = None
    """It fires times before then; None if it is the present one."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why the last time did not fire; a change of the schedule clears it."""

    due_ms: int
    code: str
    detail: str


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as the directory keeps it."""

    account: str
    name: str
    id: str
    definition: Definition
    created_ms: int
    modified_ms: int
    earlier: dict[str, Definition] = {}
    """The definitions before it, by their ids, as long as a mark of theirs may be due."""
    failure: Failure | None = None

    def definition_of(self, mark_id: str) -> Definition | None:
        """Returns the definition whose marks have this id, or None if it is forgotten."""
        if mark_id == self.definition.id:
            return self.definition
        return self.earlier.get(mark_id)


def read_definition(given: ScheduleInput, key_id: str) -> Definition:
    """Returns the definition in a request, without an id. Raises InvalidParameter."""
    if isinstance(given.queue, UnsetType) == isinstance(given.topic, UnsetType):
        raise InvalidParameter("queue", "give exactly one of queue and topic")
    if isinstance(given.queue, str):
        target = Target("queue", given.queue)
        if not isinstance(given.message.routing_key, UnsetType):
            raise InvalidParameter("message.routing_key", "is allowed only with a topic")
    else:
        assert isinstance(given.topic, str)
        target = Target("topic", given.topic)
        if not isinstance(given.message.priority, UnsetType):
            raise InvalidParameter("message.priority", "is allowed only with a queue")
    if isinstance(given.cron, UnsetType) and not isinstance(given.time_zone, UnsetType):
        raise InvalidParameter("time_zone", "is allowed only with cron")
    rule = Rule(
        cron=None if isinstance(given.cron, UnsetType) else " ".join(given.cron.split()),
        time_zone="UTC" if isinstance(given.time_zone, UnsetType) else given.time_zone,
        every_seconds=None if isinstance(given.every_seconds, UnsetType) else given.every_seconds,
    )
    return Definition(
        id="",
        target=target,
        rule=rule,
        message=given.message,
        missed="one" if isinstance(given.missed, UnsetType) else given.missed,
        key_id=key_id,
    )


def is_same(one: Definition, other: Definition) -> bool:
    """Returns True if both do the same; who made them is not compared."""
    return (one.target, one.rule, one.message, one.missed) == (
        *(other.target, other.rule, other.message),
        other.missed,
    )


def with_definition(before: Schedule, definition: Definition, now_ms: int) -> Schedule:
    """Returns the schedule with another definition, in force from its `since_ms` on.

    Raises Throttled if it was changed so often that marks of as many earlier ones may be due.
    """
    last = replace(before.definition, until_ms=definition.since_ms)
    kept = [each for each in before.earlier.values() if (each.until_ms or 0) > now_ms]
    if len(kept) >= _EARLIER:
        raise Throttled("the schedule was changed 6 times within 3 minutes", 60)
    # Those whose time is over stay as long as there is room: a sweep may be late.
    over = [each for each in before.earlier.values() if (each.until_ms or 0) <= now_ms]
    held = [*over, *kept, last][-_EARLIER:]
    return replace(
        before,
        definition=definition,
        earlier={each.id: each for each in held},
        modified_ms=now_ms,
        failure=None,
    )
