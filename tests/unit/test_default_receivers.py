"""The default receiver of a queue: what its source takes over of the queue."""

from __future__ import annotations

import pytest
from tests.unit.parcels import NOW_MS
from tests.unit.queues import changed, queue

from cirrusmq.base import limits
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.queue import DeadLetter, QueueAttributes, QueueInput, change_attributes
from cirrusmq.model.source import Source, queue_source


def test_the_default_receiver_of_a_queue_is_the_queue() -> None:
    attributes = QueueAttributes(
        message_retention_seconds=600,
        visibility_timeout_seconds=7,
        receive_wait_seconds=3.0,
        rewind_seconds=60,
        dead_letter=DeadLetter("dead", 3),
        retry={"policy": "unordered"},
        partitions=9,
        ordered=True,
        invoke=Invoke(function="work"),
    )
    whole = queue(
        attributes=attributes,
        purged_ms=11,
        rewind_floor_ms=13,
        earlier_retentions=[(NOW_MS + 1, 900)],
    )
    assert queue_source(whole, NOW_MS) == Source(
        id="0123456789ab",
        account="alice",
        queue_name="orders",
        receiver=None,
        log_id="0123456789ab",
        partitions=9,
        ordered=True,
        visibility_timeout_seconds=7,
        receive_wait_seconds=3.0,
        retry=whole.retry,
        dead_letter=DeadLetter("dead", 3),
        rewind_seconds=60,
        purged_ms=11,
        rewind_floor_ms=13,
        longest_retention_seconds=900,
        invoke=Invoke(function="work"),
    )
    assert whole.retry is not None
    assert whole.retry.policy == "unordered"


def test_the_default_receiver_of_a_fair_queue_has_its_limits() -> None:
    fair = queue(attributes=QueueAttributes(fair=True, max_in_flight=3, rate=5, receive_rate=7))
    made = queue_source(fair, NOW_MS)
    assert (made.fair, made.grouped, made.has_groups, made.priorities) == (True, True, True, None)
    assert (made.max_in_flight, made.group_rate, made.receive_rate) == (3, 5, 7)


def test_the_default_receiver_of_a_queue_with_priorities_is_read_level_by_level() -> None:
    leveled = queue(attributes=QueueAttributes(priorities=9, ageing_seconds=60))
    made = queue_source(leveled, NOW_MS)
    assert (made.fair, made.grouped, made.has_groups) == (True, True, False)
    assert (made.priorities, made.ageing_seconds) == (9, 60)


def test_the_default_receiver_is_paused_as_the_queue_is() -> None:
    paused = changed({}, paused=True)
    made = queue_source(paused, NOW_MS)
    assert (made.paused, made.pauses) == (True, ((NOW_MS, 0),))
    resumed = change_attributes(paused, QueueInput(paused=False), NOW_MS + 9)
    made = queue_source(resumed, NOW_MS + 9)
    assert (made.paused, made.pauses) == (False, ((NOW_MS, NOW_MS + 9),))


def test_the_default_receiver_knows_whether_the_partitions_grew() -> None:
    assert queue_source(changed({"partitions": 4}, partitions=9), NOW_MS).grown is True
    assert queue_source(queue(), NOW_MS).grown is False


@pytest.mark.parametrize(
    ("log_since_ms", "readers", "before_ms"),
    [(None, ["Op-1"], 0), (NOW_MS, [], 0), (NOW_MS, ["Op-1"], NOW_MS + limits.LOG_UNSURE_MS)],
)
def test_its_backlog_is_kept_while_a_new_receiver_is_given_it(
    log_since_ms: int | None, readers: list[str], before_ms: int
) -> None:
    whole = queue(log_since_ms=log_since_ms, backlog_readers=readers)
    assert queue_source(whole, NOW_MS).backlog_before_ms == before_ms
