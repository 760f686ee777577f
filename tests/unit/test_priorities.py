"""The priority of a message: in its content, and in the keys of its parcels."""

from __future__ import annotations

import pytest

from cirrusmq.model.message import Message
from cirrusmq.model.parcel import key_in_group, key_prefix, sort_key
from cirrusmq.model.priority import Rank, level_prefix, priority_in, priority_of, with_priority

PLAIN = Message(body="x", attributes={"a": "1"})


@pytest.mark.parametrize("priority", [1, 2, 16, 32])
def test_a_priority_goes_with_the_content_and_is_no_attribute(priority: int) -> None:
    message = with_priority(PLAIN, priority)
    assert priority_of(message) == priority
    assert message.attributes_as_sent == {"a": "1"}
    assert (message == PLAIN) == (priority == 1)


@pytest.mark.parametrize(
    ("noted", "expected"), [("0", 1), ("33", 32), ("x", 1), ("-2", 1), (b"7", 1), ("", 1)]
)
def test_an_invalid_priority_is_one_all_the_same(noted: str | bytes, expected: int) -> None:
    assert priority_of(Message(body="x", attributes={"$prio": noted})) == expected


def test_higher_priorities_have_earlier_keys_whatever_their_times() -> None:
    keys = [
        level_prefix(priority) + sort_key(9_999_999_999_999 - priority, "id")
        for priority in range(32, 0, -1)
    ]
    assert keys == sorted(keys)
    assert [priority_in(key_prefix(key)) for key in keys] == list(range(32, 0, -1))
    assert key_in_group(keys[0]) == sort_key(9_999_999_999_967, "id")


@pytest.mark.parametrize("prefix", ["", "z", "cae66941d9efbd404e4d88758ea67670#"])
def test_other_keys_are_of_the_lowest_one(prefix: str) -> None:
    assert priority_in(prefix) == 1


@pytest.mark.parametrize(
    ("level", "active_ms", "is_first"),
    [
        (5, 1_999, True),
        (5, 2_001, False),
        (4, 2_000 - 60_001, True),
        (4, 2_000 - 59_999, False),
        (1, 2_000 - 4 * 60_000 - 1, True),
        (1, 2_000 - 4 * 60_000 + 1, False),
        (9, 2_000 + 4 * 60_000 - 1, True),
    ],
)
def test_a_message_counts_one_priority_higher_each_time_it_has_aged(
    level: int, active_ms: int, is_first: bool
) -> None:
    """Beside a message of priority 5 that is active since 2,000, where ageing takes 60 s."""
    other, rank = Rank(level_prefix(5), 2_000), Rank(level_prefix(level), active_ms)
    assert (rank.served_ms(60_000) < other.served_ms(60_000)) is is_first
    assert (rank.oldest_ms < rank.old_enough_ms(other, 60_000)) is is_first
