"""Planted faults of schedules: marks, changes, missed times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

import pytest
from tests.simulation.plants import plant

from cirrusmq.base import limits
from cirrusmq.publishing.publish import PublishMessage
from cirrusmq.schedules import firing, items, messages, rules
from cirrusmq.schedules.rules import Rule


@plant("scheduled queues", found_by=8_610_004)
def a_mark_is_taken_by_anybody(patch: pytest.MonkeyPatch) -> None:
    """The transaction does not ask if the mark is still there."""
    take = items.take_mark

    def careless(*given: Any) -> dict[str, Any]:
        write = take(*given)
        del write["Delete"]["ConditionExpression"]
        return write

    patch.setattr(firing, "take_mark", careless)


@plant("scheduled queues", found_by=8_610_004)
def a_schedule_puts_its_message_behind_its_mark(patch: pytest.MonkeyPatch) -> None:
    """Two writes in place of one: a sweep that stops between them loses the message."""
    write = firing._write

    def apart(core: Any, found: Any, mark: Any, step: Any) -> bool:
        if not write(core, found, mark, step._replace(fired=None)):
            return False
        if step.fired is not None:
            core.store.transact(step.fired.puts(core))
        return True

    patch.setattr(firing, "_write", apart)


@plant("scheduled queues", found_by=8_610_006)
def a_change_of_a_schedule_holds_at_once(patch: pytest.MonkeyPatch) -> None:
    """Times that a sweep has fired ahead fire again by the new definition."""
    patch.setattr(limits, "SCHEDULE_CHANGE_MS", 0)


@plant("scheduled queues", found_by=8_610_027)
def all_missed_times_are_one(patch: pytest.MonkeyPatch) -> None:
    """The last one fires, whatever `missed` says."""
    patch.setattr(limits, "MISSED_TIMES", 1)


@plant("scheduled queues", found_by=8_610_006)
def earlier_definitions_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A change drops the times until it is in force."""
    patch.setattr(firing, "_in_force", lambda definition, time_ms: definition.until_ms is None)


@plant("set clocks")
def a_time_that_comes_twice_fires_twice(patch: pytest.MonkeyPatch) -> None:
    """If clocks are set back, the second of two equal times fires too."""
    times = rules._times

    def twice(rule: Rule, around_ms: int, *, backwards: bool = False) -> Iterator[int]:
        zone = rules._zone(rule.time_zone)
        for first in times(rule, around_ms, backwards=backwards):
            local = datetime.fromtimestamp(first / 1000, zone)
            second = round(local.replace(fold=1).timestamp() * 1000)
            yield from sorted({first, second}, reverse=backwards)

    patch.setattr(rules, "_times", twice)


@plant("set clocks", found_by=8_650_013)
def a_time_that_does_not_exist_is_left_out(patch: pytest.MonkeyPatch) -> None:
    """If clocks are set forward, the times in the gap fire by the offset of before, behind it."""

    def by_offset(naive: datetime, zone: tzinfo) -> datetime:
        return naive.replace(tzinfo=zone, fold=0).astimezone(UTC)

    patch.setattr(rules, "_existing", by_offset)


@plant("scheduled topics")
def a_publish_of_a_schedule_has_no_delay(patch: pytest.MonkeyPatch) -> None:
    """Its message is delivered when the sweep puts it, up to two minutes early."""
    publish = PublishMessage

    def at_once(**given: Any) -> PublishMessage:
        return publish(routing_key=given["routing_key"])

    patch.setattr(messages, "PublishMessage", at_once)
