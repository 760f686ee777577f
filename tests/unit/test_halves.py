"""Half messages as values: handles, checks and their times, items and marks."""

from __future__ import annotations

import zlib

import pytest
from msgspec.structs import replace
from tests.unit.topics import topic

from cirrusmq.base import limits
from cirrusmq.model.envelope import Envelope
from cirrusmq.model.message import Message, pack
from cirrusmq.publishing.half_messages.half import (
    Half,
    Terms,
    checked,
    first_due_ms,
    half_partition,
    id_of,
)
from cirrusmq.publishing.half_messages.items import HalfMark, half_item, mark_of, read_half

ID = "01M7XGA279E8FYRFWHK8M956SX"
TERMS = Terms("alice", "billing", 10, 2, ["", "a.b"], [None, "one"])
MESSAGES = [Message(body="a", tags=("t",)), Message(body=b"\0", group="g")]
HALF = Half(
    topic_id="abc123abc123",
    partition=3,
    id=ID,
    state="prepared",
    prepared_ms=1_000_000,
    until_ms=1_000_000 + limits.HALF_LIFE_MS,
    due_ms=1_010_000,
    checks=0,
    terms=TERMS,
    messages=dict(enumerate(MESSAGES)),
    packed=pack(MESSAGES),
)


def test_an_item_has_all_of_a_half_message() -> None:
    assert read_half(half_item(HALF)) == HALF


def test_one_in_an_object_has_all_but_its_bodies() -> None:
    envelopes = {
        place: Envelope(
            size_bytes=each.size_bytes,
            answer_percent=each.answer_percent,
            attributes=each.attributes,
            tags=each.tags,
            group=each.group,
        )
        for place, each in HALF.messages.items()
    }
    large = replace(HALF, packed=None, object_days=2)
    item = half_item(large)

    assert "b" not in item
    assert read_half(item) == replace(large, messages=envelopes)


@pytest.mark.parametrize("text", ["", ID, f"Half-{ID}0", f"Half-8{ID[1:]}", f"half-{ID}"])
def test_a_handle_is_an_id_with_its_kind(text: str) -> None:
    assert id_of(HALF.handle) == ID
    assert id_of(text) is None


def test_behind_a_check_are_its_lease_and_a_wait() -> None:
    first = checked(HALF, 1_020_000, 30)
    last = checked(first, 1_060_000, 5)

    assert (first.checks, first.due_ms, first.is_last) == (1, 1_060_000, False)
    assert first.until_ms == HALF.until_ms
    assert (last.checks, last.due_ms, last.until_ms) == (2, 1_075_000, 1_075_000)
    assert [mark_of(each).end for each in (HALF, first, last)] == [False, False, True]


def test_the_first_check_is_a_wait_after_the_publish() -> None:
    assert first_due_ms(1_000_000, TERMS) == HALF.due_ms


@pytest.mark.parametrize("partitions", [1, 8, 255])
def test_a_half_message_is_in_one_of_its_topics_partitions(partitions: int) -> None:
    published_to = topic(partitions=partitions)
    assert half_partition(published_to, ID) == zlib.crc32(ID.encode()) % partitions


def test_no_check_prolongs_a_life() -> None:
    late = checked(HALF, HALF.until_ms - 5_000, 43_200)

    assert (late.due_ms, late.until_ms, late.is_last) == (HALF.until_ms, HALF.until_ms, True)


def test_marks_of_a_group_are_in_the_order_of_their_times() -> None:
    marks = [
        HalfMark(due_ms, ID, "billing", False, "T#topic#0")
        for due_ms in (1_000, 20_000, 1_700_000_000_000)
    ]

    assert sorted(marks) == sorted(marks, key=lambda mark: mark.sort_key)
