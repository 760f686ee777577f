"""Which dead letters a filter selects, by the note that each got when it was moved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.parcels import NOW_MS, parcel

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.shapes import decode
from cirrusmq.lifecycle.dead_letters.letter_filter import DeadLetterFilter
from cirrusmq.model.parcel import Parcel, sort_key

NOTE = {
    "source_queue": "orders",
    "receiver": "copy",
    "receive_count": 3,
    "dead_at": NOW_MS - 60_000,
    "reason": "max_receives",
}
OF_TOPIC = {**NOTE, "source_queue": "news", "subscription": "web", "reason": "HTTP 500"}


def dead(note: dict[str, Any] | None = NOTE) -> Parcel:
    return parcel(dead_letter=note)


def test_an_empty_filter_selects_every_dead_letter_and_nothing_else() -> None:
    assert DeadLetterFilter().selects(dead(), NOW_MS)
    assert DeadLetterFilter().selects(dead(OF_TOPIC), NOW_MS)
    assert not DeadLetterFilter().selects(dead(None), NOW_MS)


@pytest.mark.parametrize(
    ("wanted", "of_queue", "of_topic"),
    [
        ({"reason": "max_receives"}, True, False),
        ({"reason": "HTTP 500"}, False, True),
        ({"reason": "max"}, False, False),
        ({"source_queue": "orders"}, True, False),
        ({"source_queue": "news"}, False, True),
        ({"source_queue": "Orders"}, False, False),
        ({"receiver": "copy"}, True, True),
        ({"receiver": "other"}, False, False),
        ({"subscription": "web"}, False, True),
        ({"subscription": "app"}, False, False),
        ({"source_queue": "news", "reason": "HTTP 500"}, False, True),
        ({"source_queue": "orders", "reason": "HTTP 500"}, False, False),
    ],
)
def test_all_wanted_values_must_stand_in_the_note(
    wanted: dict[str, Any], of_queue: bool, of_topic: bool
) -> None:
    chosen = DeadLetterFilter(**wanted)
    assert chosen.selects(dead(), NOW_MS) is of_queue
    assert chosen.selects(dead(OF_TOPIC), NOW_MS) is of_topic


@pytest.mark.parametrize(
    ("ages", "at_ms", "selected"),
    [
        # The move was a minute before; an age in whole seconds is reached, not over.
        ({"older_than_seconds": 60}, NOW_MS, True),
        ({"older_than_seconds": 60}, NOW_MS - 1, False),
        ({"older_than_seconds": 61}, NOW_MS, False),
        ({"older_than_seconds": 0}, NOW_MS - 60_000, True),
        ({"younger_than_seconds": 60}, NOW_MS - 1, True),
        ({"younger_than_seconds": 60}, NOW_MS, False),
        ({"younger_than_seconds": 61}, NOW_MS, True),
        ({"younger_than_seconds": 0}, NOW_MS, False),
        ({"older_than_seconds": 30, "younger_than_seconds": 90}, NOW_MS, True),
        ({"older_than_seconds": 70, "younger_than_seconds": 90}, NOW_MS, False),
        ({"older_than_seconds": 30, "younger_than_seconds": 50}, NOW_MS, False),
        ({"older_than_seconds": 30, "reason": "HTTP 500"}, NOW_MS, False),
    ],
)
def test_ages_are_of_the_move_into_the_queue(
    ages: dict[str, Any], at_ms: int, selected: bool
) -> None:
    assert DeadLetterFilter(**ages).selects(dead(), at_ms) is selected


@pytest.mark.parametrize("age_ms", [0, 1, 59_999])
def test_a_dead_letter_selected_by_its_youth_is_in_the_read_keys(age_ms: int) -> None:
    wanted = DeadLetterFilter(younger_than_seconds=60)
    moved_ms = NOW_MS - age_ms
    assert wanted.selects(dead({**NOTE, "dead_at": moved_ms}), NOW_MS)
    assert wanted.from_key(NOW_MS) < sort_key(moved_ms, "any")


def test_keys_are_looked_at_from_the_time_of_the_oldest_wanted_letter() -> None:
    assert DeadLetterFilter(younger_than_seconds=60).from_key(NOW_MS) == f"{NOW_MS - 60_000:013d}"
    assert DeadLetterFilter(younger_than_seconds=60).from_key(60_007) == "0000000000007"
    assert DeadLetterFilter(younger_than_seconds=60).from_key(59_999) == "0000000000000"
    assert DeadLetterFilter(older_than_seconds=60).from_key(NOW_MS) == ""


@pytest.mark.parametrize("given", [{}, {"reason": "x", "younger_than_seconds": 5}])
def test_a_filter_is_kept_with_its_given_members_alone(given: dict[str, Any]) -> None:
    assert DeadLetterFilter(**given).to_json() == given


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"reason": ""}', "reason: must be a text of 1 to 256 characters"),
        (b'{"receiver": ""}', "receiver: must be a name of 1 to 64 characters"),
        (
            b'{"older_than_seconds": 1296001}',
            "older_than_seconds: must be an integer from 0 to 1,296,000 seconds",
        ),
        (
            b'{"younger_than_seconds": -1}',
            "younger_than_seconds: must be an integer from 0 to 1,296,000 seconds",
        ),
        (b'{"queue": "orders"}', "queue: this field is not known"),
    ],
)
def test_an_invalid_filter_is_refused_with_the_valid_form(body: bytes, detail: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        decode(body, DeadLetterFilter)
    assert refused.value.detail.startswith(detail)
