"""A queue as a value: its attributes, the rules across them, and the trace of a change."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from tests.unit.parcels import NOW_MS
from tests.unit.queues import changed, created, queue

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InUse, InvalidParameter
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.priority import level_prefix
from cirrusmq.model.queue import (
    DeadLetter,
    DeadLetterInput,
    QueueAttributes,
    QueueInput,
    change_attributes,
)

SLACK_MS = 130_000
IN_FORCE_MS = 30_000 + 5_000 + 2_000
"""A call's longest time, the caches', and how far an attempt's time may be ahead."""


def refusal(**given: Any) -> str:
    with pytest.raises(InvalidParameter) as refused:
        created(**given)
    assert refused.value.detail.startswith(f"{refused.value.parameter}: ")
    return refused.value.detail


def send_id(begun_ms: int) -> str:
    return ulid.encode(begun_ms, bytes(10))


# ---- a new queue --------------------------------------------------------------------------------


def test_an_omitted_attribute_has_its_default() -> None:
    assert created() == QueueAttributes()
    assert created(partitions=9, description="x") == QueueAttributes(partitions=9, description="x")


def test_a_delay_stays_below_the_retention() -> None:
    assert created(message_retention_seconds=60, delay_seconds=59).delay_seconds == 59
    assert refusal(message_retention_seconds=60, delay_seconds=60) == (
        "delay_seconds: must be 0 to 59, below message_retention_seconds"
    )


def test_rewinding_reaches_back_no_further_than_the_retention() -> None:
    assert created(message_retention_seconds=60, rewind_seconds=60).rewind_seconds == 60
    assert refusal(message_retention_seconds=60, rewind_seconds=61) == (
        "rewind_seconds: must be 0 to 60, the message_retention_seconds"
    )


def test_a_policy_with_a_last_retry_needs_a_dead_letter_queue() -> None:
    unordered = {"policy": "unordered"}
    assert refusal(retry=unordered) == "retry: a policy with a last retry needs dead_letter"
    dead = DeadLetterInput(queue="dead", max_receives=9)
    for given in (unordered, {"policy": "custom", "waits": [1, 2.5], "jitter": 0}):
        assert created(retry=given, dead_letter=dead).retry == given
    assert created(retry={"policy": "ordered"}, ordered=True).retry == {"policy": "ordered"}
    assert (
        refusal(retry={"policy": "ordered"})
        == "retry.policy: ordered needs an ordered queue or subscription"
    )


def test_a_dead_letter_queue_needs_a_reason() -> None:
    assert refusal(dead_letter=DeadLetterInput(queue="dead")) == (
        "dead_letter: needs max_receives, max_age_seconds or both"
    )
    by_count = created(dead_letter=DeadLetterInput(queue="dead", max_receives=3))
    assert by_count.dead_letter == DeadLetter("dead", 3)
    by_age = created(dead_letter=DeadLetterInput(queue="dead", max_age_seconds=300))
    assert by_age.dead_letter == DeadLetter("dead", None, 300)


def test_a_message_is_given_up_for_its_age_before_it_expires() -> None:
    aged = DeadLetterInput(queue="dead", max_age_seconds=300)
    assert created(message_retention_seconds=301, dead_letter=aged).dead_letter
    assert refusal(message_retention_seconds=300, dead_letter=aged) == (
        "dead_letter.max_age_seconds: must be 300 to 43200"
        " and below message_retention_seconds (300)"
    )


def test_a_function_is_called_within_given_bounds_or_the_defaults() -> None:
    assert created(invoke=InvokeInput(function="work")).invoke == Invoke(
        function="work", max_concurrency=10, batch=10, timeout_seconds=60
    )
    bounds: dict[str, Any] = {
        "function": "work", "max_concurrency": 1_000, "batch": 1, "timeout_seconds": 840
    }  # fmt: skip
    assert created(invoke=InvokeInput(**bounds)).invoke == Invoke(**bounds)
    assert created(invoke=None).invoke is None


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ({"fair": True, "ordered": True}, "fair: is not allowed in an ordered queue"),
        (
            {"priorities": 2, "ordered": True},
            "priorities: are not allowed in an ordered or a fair queue",
        ),
        (
            {"priorities": 2, "fair": True},
            "priorities: are not allowed in an ordered or a fair queue",
        ),
        (
            {"priorities": 2, "partitions": 17},
            "partitions: must be 1 to 16 in a queue with priorities",
        ),
        (
            {"ageing_seconds": 60, "fair": True},
            "ageing_seconds: is of a queue with priorities: this is none",
        ),
        ({"max_in_flight": 3}, "max_in_flight: is of each group of a fair queue: this is none"),
        ({"rate": 3}, "rate: is of each group of a fair queue: this is none"),
    ],
)
def test_an_attribute_of_another_kind_of_queue_is_refused(
    given: dict[str, Any], detail: str
) -> None:
    assert refusal(**given) == detail


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({"priorities": 2}, 1),
        ({"priorities": 2, "ageing_seconds": 60}, 1),
        ({"priorities": 2, "partitions": 16}, 16),
        ({"fair": True, "max_in_flight": 3, "rate": 3}, limits.PARTITIONS_DEFAULT),
    ],
)
def test_a_queue_with_priorities_has_one_partition_unless_more_are_asked_for(
    given: dict[str, Any], partitions: int
) -> None:
    assert created(**given) == QueueAttributes(**{**given, "partitions": partitions})


def test_the_bytes_of_labels_are_bounded_in_a_new_queue_and_in_a_change() -> None:
    within = {"a": "x" * (limits.LABELS_BYTES - 1)}
    assert created(labels=within).labels == changed({}, labels=within).attributes.labels == within
    beyond = {"b": "x" * limits.LABELS_BYTES}
    assert refusal(labels=beyond) == (
        f"labels: must have at most {limits.LABELS_BYTES:,} bytes together,"
        f" not {limits.LABELS_BYTES + 1:,}"
    )
    with pytest.raises(InvalidParameter, match=r"^labels: must have at most "):
        changed({}, labels=beyond)


# ---- a change -----------------------------------------------------------------------------------


def test_a_change_leaves_the_rest_as_it_was_and_tells_its_time() -> None:
    after = changed({"partitions": 9, "description": "x"}, description="y")
    assert after == queue(
        attributes=QueueAttributes(partitions=9, description="y"), modified_ms=NOW_MS
    )


def test_null_removes_an_attribute() -> None:
    dead = DeadLetterInput(queue="dead", max_receives=3)
    invoke = InvokeInput(function="work")
    after = changed(
        {"dead_letter": dead, "invoke": invoke}, dead_letter=None, invoke=None
    ).attributes
    assert after == QueueAttributes()


@pytest.mark.parametrize(
    ("before", "given", "detail"),
    [
        ({}, {"ordered": True}, "ordered: is fixed when the queue is created"),
        ({"ordered": True}, {"ordered": False}, "ordered: is fixed when the queue is created"),
        ({"ordered": True}, {"partitions": 5}, "partitions: are fixed in an ordered queue"),
        ({}, {"fair": True}, "fair: is fixed when the queue is created"),
        ({"fair": True}, {"fair": False}, "fair: is fixed when the queue is created"),
        ({}, {"priorities": 2}, "priorities: are fixed when the queue is created"),
        (
            {"priorities": 2},
            {"priorities": None},
            "priorities: are fixed when the queue is created",
        ),
        (
            {},
            {"delay_seconds": 345_600},
            "delay_seconds: must be 0 to 345599, below message_retention_seconds",
        ),
    ],
)
def test_a_change_against_the_rules_is_refused(
    before: dict[str, Any], given: dict[str, Any], detail: str
) -> None:
    with pytest.raises(InvalidParameter) as refused:
        changed(before, **given)
    assert refused.value.detail == detail


def test_partitions_can_only_grow() -> None:
    with pytest.raises(InUse, match=r"^partitions can only grow$"):
        changed({"partitions": 4}, partitions=3)
    assert changed({"partitions": 4}, partitions=4).earlier_partitions == []


def test_a_send_repeated_after_the_partitions_grew_looks_at_its_old_place() -> None:
    grown = changed({"partitions": 4}, partitions=9)
    again = change_attributes(grown, QueueInput(partitions=200), NOW_MS + 1_000)
    for begun_ms, partitions in [
        (NOW_MS - 10**9, 4),
        (NOW_MS + IN_FORCE_MS - 1, 4),
        (NOW_MS + IN_FORCE_MS, 9),
        (NOW_MS + 1_000 + IN_FORCE_MS - 1, 9),
        (NOW_MS + 1_000 + IN_FORCE_MS, 200),
    ]:
        sent = send_id(begun_ms)
        assert again.partition_of(sent) == zlib.crc32(sent.encode()) % partitions


def test_a_never_grown_queue_has_one_number_of_partitions() -> None:
    sent = send_id(NOW_MS)
    assert changed({"partitions": 7}).partition_of(sent) == zlib.crc32(sent.encode()) % 7


def test_earlier_delays_are_known_for_their_sends() -> None:
    after = changed({"delay_seconds": 5}, delay_seconds=7)
    assert after.earlier_delays_of(NOW_MS + IN_FORCE_MS - 1) == {5}
    assert after.earlier_delays_of(NOW_MS + IN_FORCE_MS) == set()
    assert changed({"delay_seconds": 5}, delay_seconds=5).earlier_delays == []


def test_an_earlier_delay_is_forgotten_when_no_send_can_ask_for_it() -> None:
    first = changed({"delay_seconds": 5}, delay_seconds=7)
    until_ms = NOW_MS + IN_FORCE_MS
    change = QueueInput(delay_seconds=9)
    soon = change_attributes(first, change, until_ms + SLACK_MS - 1)
    late = change_attributes(first, change, until_ms + SLACK_MS)
    assert [seconds for _, seconds in soon.earlier_delays] == [5, 7]
    assert [seconds for _, seconds in late.earlier_delays] == [7]


def test_messages_of_a_longer_retention_outlive_a_change_to_a_shorter_one() -> None:
    shorter = changed({"message_retention_seconds": 600}, message_retention_seconds=60)
    over_ms = NOW_MS + 600_000 + SLACK_MS
    assert shorter.longest_retention_seconds(over_ms - 1) == 600
    assert shorter.longest_retention_seconds(over_ms) == 60

    longer = change_attributes(shorter, QueueInput(message_retention_seconds=900), NOW_MS)
    assert longer.longest_retention_seconds(NOW_MS) == 900
    same = change_attributes(queue(), QueueInput(message_retention_seconds=345_600), NOW_MS)
    assert same.earlier_retentions == []


def test_a_longer_retention_before_the_last_is_remembered_as_long_as_it_is_in_force() -> None:
    first = changed({"message_retention_seconds": 600}, message_retention_seconds=300)
    over_ms = NOW_MS + 600_000 + SLACK_MS
    change = QueueInput(message_retention_seconds=60)
    before = change_attributes(first, change, over_ms - 1)
    after = change_attributes(first, change, over_ms)
    assert [seconds for _, seconds in before.earlier_retentions] == [600, 300]
    assert [seconds for _, seconds in after.earlier_retentions] == [300]


def test_rewinding_reaches_back_to_when_it_was_turned_on() -> None:
    on = changed({}, rewind_seconds=60)
    assert on.rewind_floor_ms == NOW_MS
    longer = change_attributes(on, QueueInput(rewind_seconds=90), NOW_MS + 5)
    assert longer.rewind_floor_ms == NOW_MS
    off = change_attributes(on, QueueInput(rewind_seconds=0), NOW_MS + 5)
    assert off.rewind_floor_ms == NOW_MS


def test_a_change_knows_when_the_queue_was_paused() -> None:
    paused = changed({}, paused=True)
    assert (paused.attributes.paused, paused.pauses) == (True, [(NOW_MS, 0)])
    still = change_attributes(paused, QueueInput(paused=True, delay_seconds=3), NOW_MS + 5)
    assert still.pauses == [(NOW_MS, 0)]
    resumed = change_attributes(still, QueueInput(paused=False), NOW_MS + 9)
    assert (resumed.attributes.paused, resumed.pauses) == (False, [(NOW_MS, NOW_MS + 9)])
    assert changed({}, delay_seconds=3).pauses == []


def test_sends_of_a_group_share_a_partition_and_those_of_a_level_are_spread() -> None:
    prefix = "cae66941d9efbd404e4d88758ea67670#"
    sent = send_id(NOW_MS)
    by_group, by_send = zlib.crc32(prefix.encode()) % 16, zlib.crc32(sent.encode()) % 16
    assert by_group != by_send

    fair = queue(attributes=created(fair=True, partitions=16))
    leveled = queue(attributes=created(priorities=2, partitions=16))

    assert (fair.partition_of(sent, prefix), fair.partition_of(sent)) == (by_group, by_send)
    assert leveled.partition_of(sent, level_prefix(2)) == by_send


def test_a_log_has_every_message_sent_from_a_while_behind_its_beginning() -> None:
    assert queue().backlog_before_ms == 0
    assert queue(log_since_ms=NOW_MS).backlog_before_ms == NOW_MS + limits.LOG_UNSURE_MS
