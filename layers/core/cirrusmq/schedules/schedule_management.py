"""Creating, changing, showing, listing and deleting schedules."""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import AlreadyExists, LimitExceeded, ScheduleNotFound
from cirrusmq.base.names import QUEUE_NAME, SCHEDULE_NAME, TOPIC_NAME, check_name, new_id
from cirrusmq.runtime.core import Core
from cirrusmq.schedules.items import ScheduleMark, put_mark, raise_flag
from cirrusmq.schedules.messages import make_message
from cirrusmq.schedules.rules import check_rule, next_after
from cirrusmq.schedules.schedule import (
    Definition,
    Schedule,
    ScheduleInput,
    is_same,
    read_definition,
    with_definition,
)
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import Document, schedule_key, schedules_count_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.storage.pages import read_page


def put_schedule(
    core: Core,
    account: str,
    name: str,
    given: ScheduleInput,
    *,
    by: str = "",
    resource_id: str | None = None,
) -> tuple[Schedule, bool]:
    """Creates a schedule, or gives it another definition. Returns (schedule, created).

    by: the access key that asks for it. resource_id: the id of a new one; None draws it. It is not
    put if another one has the name.

    It is in force for times more than 3 minutes away. Raises the errors of a send of the message.
    """
    check_name("schedule", name, SCHEDULE_NAME)
    wanted = read_definition(given, by)
    rule = QUEUE_NAME if wanted.target.kind == "queue" else TOPIC_NAME
    check_name(wanted.target.kind, wanted.target.name, rule)
    check_rule(wanted.rule, core.now_ms())
    # As it will be a minute before its time.
    make_message(core, account, wanted, core.now_ms() + 60_000)
    return change(core, lambda: _put(core, account, name, wanted, resource_id))


def _put(
    core: Core,
    account: str,
    name: str,
    wanted: Definition,
    resource_id: str | None,
) -> DirectoryChange[tuple[Schedule, bool]]:
    key, now_ms = schedule_key(account, name), core.now_ms()
    found = directory.read(core, key, Schedule)
    if found is not None:
        if found.value.name != name or resource_id not in (None, found.value.id):
            raise AlreadyExists(f"schedule {found.value.name} exists")
        if is_same(found.value.definition, wanted):
            return DirectoryChange(result=(found.value, False))
    definition = replace(
        wanted, id=new_id(core.random), since_ms=now_ms + limits.SCHEDULE_CHANGE_MS
    )
    writes = []
    if found is not None:
        schedule = with_definition(found.value, definition, now_ms)
        writes.append(directory_writes.put_over(core, key, schedule, found))
    else:
        schedule = Schedule(
            account=account,
            name=name,
            id=resource_id or new_id(core.random),
            definition=definition,
            created_ms=now_ms,
            modified_ms=now_ms,
        )
        writes.append(directory_writes.put_new(core, key, schedule))
        count = schedules_count_key(account)
        writes.append(directory_writes.count_up(core, count, limits.SCHEDULES_PER_ACCOUNT))
    due_ms = next_after(definition.rule, definition.since_ms - 1)
    if due_ms is not None:
        writes.append(put_mark(core, ScheduleMark(due_ms, definition.id, account, name)))
        writes.append(raise_flag(core, now_ms))
    limit = limits.SCHEDULES_PER_ACCOUNT
    full = LimitExceeded(f"an account has at most {limit:,} schedules")
    return DirectoryChange(
        result=(schedule, found is None),
        writes=writes,
        refusals={1: full} if found is None else {},
    )


def find_schedule(core: Core, account: str, name: str) -> Document[Schedule]:
    """Returns the schedule as the directory has it now. Raises ScheduleNotFound."""
    check_name("schedule", name, SCHEDULE_NAME)
    found = directory.read(core, schedule_key(account, name), Schedule)
    if found is None or found.value.name != name:
        raise ScheduleNotFound(f"account {account} has no schedule {name}")
    return found


def list_schedules(
    core: Core, account: str, prefix: str, limit: int, cursor: str | None
) -> tuple[list[Schedule], str | None]:
    """Returns a page of the account's schedules whose names begin with `prefix`."""
    return read_page(
        core,
        ("schedules", account, prefix),
        schedule_key(account, prefix),
        limit,
        cursor,
        Schedule,
        lambda schedule: schedule.name.startswith(prefix),
    )


def delete_schedule(core: Core, account: str, name: str) -> None:
    """Deletes a schedule. A time within 3 minutes may have been fired, and its message is there.

    Its mark stays until its time: a sweep finds no schedule, and removes it.
    """

    def plan() -> DirectoryChange[None]:
        found = find_schedule(core, account, name)
        return DirectoryChange(
            result=None,
            writes=[
                directory_writes.delete_version(core, schedule_key(account, name), found.version),
                directory_writes.change_count(core, schedules_count_key(account), -1),
            ],
        )

    change(core, plan)


def next_time(schedule: Schedule, now_ms: int) -> int | None:
    """Returns when a schedule fires next, as it is defined now, or None."""
    definition = schedule.definition
    return next_after(definition.rule, max(now_ms, definition.since_ms - 1))
