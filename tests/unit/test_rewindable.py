"""Which deleted messages a rewind may bring back, and for how long."""

from __future__ import annotations

import pytest
from tests.unit.parcels import NOW_MS, parcel, source

from cirrusmq.model.parcel import DELETED, DROPPED, GONE, MOVED
from cirrusmq.model.source import rewindable, rewindable_until


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
