"""Which deleted messages a rewind may bring back, and for how long."""

from __future__ import annotations

import pytest
from tests.unit.parcels import NOW_MS, parcel, source

from cirrusmq.model.parcel import DELETED, DROPPED, GONE, MOVED
from cirrusmq.model.source import is_kept, kept_until, rewindable, rewindable_until


def test_a_message_deleted_since_rewinding_is_on_can_be_rewound() -> None:
    held = parcel(
        6,
        visible_ms=(DELETED, DELETED, NOW_MS, GONE, MOVED, DROPPED),
        first_received_ms=(10, 11, 99, 99, 99, 99),
    )
    on = source(rewind_seconds=60, rewind_floor_ms=10)
    assert [rewindable(on, held, place) for place in range(6)] == [False, True, *[False] * 4]


@pytest.mark.parametrize(
    ("rewind_seconds", "until_ms"),
    [(0, 0), (30, NOW_MS + 30_000), (60, NOW_MS + 60_000), (61, NOW_MS + 60_000)],
)
def test_the_window_begins_at_the_sending_and_ends_with_the_life(
    rewind_seconds: int, until_ms: int
) -> None:
    assert rewindable_until(source(rewind_seconds=rewind_seconds), parcel()) == until_ms


@pytest.mark.parametrize(
    ("visible_ms", "rewind_floor_ms", "kept"),
    [
        ((NOW_MS, NOW_MS), 0, False),
        ((DELETED, NOW_MS), 9, True),
        ((NOW_MS, DELETED), 10, True),
        ((DELETED, DELETED), 11, False),
    ],
)
def test_a_parcel_is_kept_for_any_rewindable_message(
    visible_ms: tuple[int, ...], rewind_floor_ms: int, kept: bool
) -> None:
    held = parcel(2, visible_ms=visible_ms, first_received_ms=(10, 11))
    assert is_kept(source(rewind_seconds=60, rewind_floor_ms=rewind_floor_ms), held) is kept


@pytest.mark.parametrize("before_ms", [0, NOW_MS, NOW_MS + 1])
def test_a_parcel_is_kept_for_a_new_receiver_of_the_backlog(before_ms: int) -> None:
    held, until_ms = parcel(), NOW_MS + 60_000
    giving = source(backlog_before_ms=before_ms)
    given = before_ms > NOW_MS
    assert giving.gives_away(held) is given
    assert is_kept(giving, held) is given
    assert kept_until(giving, held) == (until_ms if given else 0)
    both = source(backlog_before_ms=before_ms, rewind_seconds=30)
    assert kept_until(both, held) == (until_ms if given else NOW_MS + 30_000)
