"""Schedules in answers."""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.schedules.schedule import Missed, Schedule, ScheduledMessage
from cirrusmq.schedules.schedule_management import next_time
from cirrusmq_lambda.answers.body import Body, Cursor, Time
from cirrusmq_lambda.answers.content import Bytes


class ScheduledContent(Body, kw_only=True):
    """The message of a schedule, as it was given."""

    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    routing_key: str | UnsetType = UNSET

    @classmethod
    def of(cls, given: ScheduledMessage) -> Self:
        """Returns the answer for a message."""
        return cls(
            body=given.body,
            body_base64=given.body_base64,
            attributes={
                name: value if isinstance(value, str) else Bytes(base64=value.base64)
                for name, value in given.attributes.items()
            },
            tags=given.tags,
            group=given.group,
            priority=given.priority,
            routing_key=given.routing_key,
        )


class ScheduleFailure(Body):
    """Why the last time of a schedule did not fire; it is tried again at the next time."""

    due_at: Time
    code: str
    detail: str


class ScheduleAttributes(Body, kw_only=True):
    """A schedule: when it fires, and its message."""

    name: str
    id: str
    message: ScheduledContent
    missed: Missed
    in_force_from: Time
    created_at: Time
    modified_at: Time
    queue: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    cron: str | UnsetType = UNSET
    time_zone: str | UnsetType = UNSET
    every_seconds: int | UnsetType = UNSET
    next_at: Time | None
    last_error: ScheduleFailure | None

    @classmethod
    def of(cls, schedule: Schedule, now_ms: int) -> Self:
        """Returns the answer for a schedule."""
        definition, failure = schedule.definition, schedule.failure
        target, rule = definition.target, definition.rule
        next_ms = next_time(schedule, now_ms)
        return cls(
            name=schedule.name,
            id=schedule.id,
            queue=target.name if target.kind == "queue" else UNSET,
            topic=target.name if target.kind == "topic" else UNSET,
            cron=rule.cron or UNSET,
            time_zone=rule.time_zone if rule.cron else UNSET,
            every_seconds=rule.every_seconds or UNSET,
            message=ScheduledContent.of(definition.message),
            missed=definition.missed,
            in_force_from=format_time(definition.since_ms),
            created_at=format_time(schedule.created_ms),
            modified_at=format_time(schedule.modified_ms),
            next_at=None if next_ms is None else format_time(next_ms),
            last_error=None
            if failure is None
            else ScheduleFailure(
                due_at=format_time(failure.due_ms), code=failure.code, detail=failure.detail
            ),
        )


class SchedulePage(Body):
    """A page of the account's schedules, by name."""

    schedules: list[ScheduleAttributes]
    cursor: Cursor | UnsetType = UNSET
