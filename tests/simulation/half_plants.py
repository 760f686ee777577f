"""Faults planted into half messages: their decision, their marks, their checks, their objects."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import HALF

from cirrusmq.publishing.half_messages import checks, decide, prepare
from cirrusmq.publishing.half_messages.half import checked
from cirrusmq.publishing.half_messages.items import (
    check_update,
    commit_update,
    put_half,
    put_mark,
    read_marks,
    roll_back_update,
)
from cirrusmq.runtime.store import ConditionFailed

_NEVER_MS = 9_999_999_999_999


@plant(HALF, found_by=1_000_025)
def a_commit_publishes_first(patch: pytest.MonkeyPatch) -> None:
    """The log record and the state are written one after the other."""

    def one_by_one(core: Any, writes: Any) -> None:
        for write in writes:
            core.store.transact([write])

    patch.setattr(decide, "_transact", one_by_one)


@plant(HALF, found_by=1_000_018)
def a_commit_does_not_look_at_the_state(patch: pytest.MonkeyPatch) -> None:
    """Whoever read the half message while it was prepared commits it."""

    def blind(*given: Any) -> Any:
        return _unconditional(commit_update(*given))

    patch.setattr(decide, "commit_update", blind)


@plant(HALF, found_by=1_000_004)
def a_rollback_does_not_look_at_the_state(patch: pytest.MonkeyPatch) -> None:
    """Whoever read the half message while it was prepared rolls it back."""

    def blind(*given: Any, timed_out: bool) -> Any:
        update = roll_back_update(*given, timed_out=timed_out)
        return update if timed_out else _unconditional(update)

    patch.setattr(decide, "roll_back_update", blind)


def _unconditional(update: dict[str, Any]) -> dict[str, Any]:
    unused = {":prepared", ":now"}
    values = update["ExpressionAttributeValues"]
    return update | {
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {k: v for k, v in values.items() if k not in unused},
    }


@plant(HALF, found_by=1_000_018)
def marks_are_put_behind_the_half_message(patch: pytest.MonkeyPatch) -> None:
    """A crash between the two leaves a half message that nobody is asked for."""
    waiting: list[tuple[Any, ...]] = []

    def put_later(*given: Any) -> None:
        waiting.append(given)

    def put_both(core: Any, half: Any) -> None:
        own = [given for given in waiting if given[-1].id == half.id]
        waiting[:] = [given for given in waiting if given[-1].id != half.id]
        put_half(core, half)
        for given in own:
            put_mark(*given)

    patch.setattr(prepare, "put_mark", put_later)
    patch.setattr(prepare, "put_half", put_both)


@plant(HALF, found_by=1_000_036)
def checks_are_not_held(patch: pytest.MonkeyPatch) -> None:
    """A half message that was handed out is due again at once."""

    def at_once(half: Any, now_ms: int, visibility_seconds: int) -> Any:
        after = checked(half, now_ms, visibility_seconds)
        return after if after.is_last else replace(after, due_ms=now_ms + 1)

    patch.setattr(checks, "checked", at_once)


@plant(HALF, found_by=1_000_006)
def checks_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Two that read a half message at the same time are both handed it."""

    def blind(*given: Any) -> Any:
        update = check_update(*given)
        values = dict(update["ExpressionAttributeValues"])
        del values[":seen"], values[":was"]
        return update | {
            "ConditionExpression": "s = :prepared",
            "ExpressionAttributeValues": values,
        }

    patch.setattr(checks, "check_update", blind)


@plant(HALF, found_by=1_000_078)
def the_last_check_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The sweep rolls back what was handed out for the last time, while it is held."""

    def read_all(
        core: Any, topic: Any, partition: int, group: str, start: int, until: int, **which: Any
    ) -> Any:
        until_ms = _NEVER_MS if which.get("end") else until
        return read_marks(core, topic, partition, group, start, until_ms, **which)

    def time_out(core: Any, half: Any) -> bool:
        update = roll_back_update(core, half, half.until_ms, timed_out=True)
        try:
            core.store.write("UpdateItem", update)
        except ConditionFailed:
            return False
        return True

    patch.setattr(checks, "read_marks", read_all)
    patch.setattr(checks, "_is_over", lambda half, now_ms: half.is_last)
    patch.setattr(checks, "time_out", time_out)


@plant(HALF, found_by=1_000_001)
def commits_do_not_copy_the_object(patch: pytest.MonkeyPatch) -> None:
    """The record of a large publish names an object that is not there."""
    patch.setattr(decide, "copy_object", lambda *_: None)
