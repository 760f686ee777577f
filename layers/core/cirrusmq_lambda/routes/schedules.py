"""Schedules of the caller's account.

A key with a scope needs `manage` on a schedule's queue or topic, before a change and after it.
"""

from __future__ import annotations

import contextlib

from cirrusmq.base.errors import ScheduleNotFound
from cirrusmq.schedules import schedule_management
from cirrusmq.schedules.schedule import Schedule, ScheduleInput
from cirrusmq_lambda import rights
from cirrusmq_lambda.answers.schedules import ScheduleAttributes, SchedulePage
from cirrusmq_lambda.http import Request, Route, following
from cirrusmq_lambda.replies import Created, NoContent, Ok


def put_schedule(request: Request) -> Created[ScheduleAttributes] | Ok[ScheduleAttributes]:
    """Creates or changes a schedule: a message at times of a cron expression, or every n seconds.
    Raises AlreadyExists, LimitExceeded, MessageTooLarge, QueueNotFound, TopicNotFound.
    """
    core, caller, given = request.core, request.caller, request.body(ScheduleInput)
    if isinstance(given.queue, str):
        rights.check_manages(caller, given.queue)
    if isinstance(given.topic, str):
        rights.check_manages(caller, "", given.topic)
    if caller.scope is not None:
        with contextlib.suppress(ScheduleNotFound):  # a new one
            _managed(request)
    schedule, created = schedule_management.put_schedule(
        core, caller.account, request.path("schedule"), given, by=caller.key_id
    )
    shown = ScheduleAttributes.of(schedule, core.now_ms())
    return Created(shown) if created else Ok(shown)


def show_schedule(request: Request) -> Ok[ScheduleAttributes]:
    """Returns a schedule, with its next time and its last error."""
    return Ok(ScheduleAttributes.of(_managed(request), request.core.now_ms()))


def show_schedules(request: Request) -> Ok[SchedulePage]:
    """Returns a page of the account's schedules."""
    account, prefix = request.caller.account, request.query.get("prefix", "")
    limit, cursor = request.page()
    listed, more = schedule_management.list_schedules(request.core, account, prefix, limit, cursor)
    now_ms = request.core.now_ms()
    shown = [ScheduleAttributes.of(each, now_ms) for each in listed]
    return Ok(SchedulePage(schedules=shown, cursor=following(more)))


def remove_schedule(request: Request) -> NoContent:
    """Deletes a schedule."""
    if request.caller.scope is not None:
        _managed(request)
    schedule_management.delete_schedule(
        request.core, request.caller.account, request.path("schedule")
    )
    return NoContent()


def _managed(request: Request) -> Schedule:
    """Returns the schedule. Raises Forbidden without `manage` on its queue or topic."""
    account, name = request.caller.account, request.path("schedule")
    schedule = schedule_management.find_schedule(request.core, account, name).value
    target = schedule.definition.target
    queue, topic = (target.name, "") if target.kind == "queue" else ("", target.name)
    rights.check_manages(request.caller, queue, topic)
    return schedule


ROUTES: dict[str, Route] = {
    "PUT /schedules/{schedule}": put_schedule,
    "GET /schedules/{schedule}": show_schedule,
    "GET /schedules": show_schedules,
    "DELETE /schedules/{schedule}": remove_schedule,
}
