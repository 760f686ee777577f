"""Calls on schedules."""

from __future__ import annotations

from typing import cast

from cirrusmq_client.answers import ScheduleAttributes
from cirrusmq_client.calls import Calls
from cirrusmq_client.errors import ScheduleNotFound
from cirrusmq_client.inputs import ScheduleInput
from cirrusmq_client.sources import part
from cirrusmq_client.steps import Entries, Steps, driven, listed


class ScheduleCalls(Calls):
    """Calls on schedules. The methods raise the contract's errors."""

    @driven
    def put_schedule(self, name: str, definition: ScheduleInput) -> Steps[ScheduleAttributes]:
        """Creates a schedule, or gives it another definition. Returns the schedule.

        It is in force for times more than 3 minutes away; until then the one before it is.
        """
        return cast(ScheduleAttributes, (yield from self._put(_path(name), definition)))

    @driven
    def show_schedule(self, name: str) -> Steps[ScheduleAttributes]:
        """Returns a schedule, with its next time and its last error."""
        return cast(ScheduleAttributes, (yield from self._get(_path(name))))

    @listed
    def list_schedules(self, prefix: str | None = None) -> Entries[ScheduleAttributes]:
        """Iterates over the account's schedules, by name."""
        return self._pages("/schedules", "schedules", prefix=prefix)

    @driven
    def delete_schedule(self, name: str) -> Steps[None]:
        """Deletes a schedule; a time within 3 minutes may still bring its message."""
        yield from self._delete(_path(name), ScheduleNotFound)


def _path(name: str) -> str:
    return f"/schedules/{part(name)}"
