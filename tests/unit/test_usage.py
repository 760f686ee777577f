"""The billed events of a change of a parcel, and its changes of the counters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.parcels import NOW_MS, parcel

from cirrusmq.lifecycle.moves import REWOUND, VANISHED
from cirrusmq.metering.usage import (
    Event,
    ParcelChange,
    events,
    first_waits,
    kept,
    push_events,
    rewindable,
)
from cirrusmq.model.parcel import DELETED, DROPPED, GONE, MOVED, Parcel

LETTER = {"reason": "retries"}


def three(*visible_ms: int, **given: Any) -> Parcel:
    """A parcel of three messages of 10, 20 and 40 bytes."""
    return parcel(3, visible_ms=visible_ms, sizes=(10, 20, 40), **given)


def lone(**given: Any) -> Parcel:
    return parcel(1, sizes=(10,), **given)


def billed(before: Parcel | None, after: Parcel | None, by_ttl: bool = False) -> list[Event]:
    return list(events(ParcelChange(before, after, by_ttl), "sent"))


def pushed(before: Parcel | None, after: Parcel | None, by_ttl: bool = False) -> list[Event]:
    return list(push_events(ParcelChange(before, after, by_ttl)))


def waits(before: Parcel | None, after: Parcel | None) -> list[int]:
    return list(first_waits(ParcelChange(before, after, by_ttl=False)))


@pytest.mark.parametrize(
    ("visible_ms", "receives", "first_received_ms", "waits_ms"),
    [
        (NOW_MS, (0, 1), NOW_MS + 300, [300]),
        (NOW_MS + 5_000, (0, 1), NOW_MS + 5_400, [400]),
        (NOW_MS - 5_000, (0, 1), NOW_MS + 300, [300]),
        (NOW_MS + 5_000, (0, 1), NOW_MS + 4_000, [0]),
        (NOW_MS, (0, 2), NOW_MS + 300, [300]),
        (NOW_MS, (1, 2), NOW_MS + 300, []),
        (NOW_MS, (0, 0), 0, []),
    ],
)
def test_a_message_waits_from_when_it_is_visible_to_its_first_receive(
    visible_ms: int, receives: tuple[int, int], first_received_ms: int, waits_ms: list[int]
) -> None:
    before = parcel(2, visible_ms=(NOW_MS, visible_ms), receives=(0, receives[0]))
    after = parcel(2, receives=(0, receives[1]), first_received_ms=(0, first_received_ms))
    assert waits(before, after) == waits_ms
    for other in (None, parcel(2, sent_ms=NOW_MS - 1)):
        assert waits(other, after) == []
    assert waits(before, None) == []


# ---- parcels that are made and removed ----------------------------------------------------------


def test_a_new_parcel_is_billed_as_its_arriving_kind() -> None:
    expected = [Event("queue", "sent", 1, 10), Event("queue", "sent", 1, 40)]
    assert billed(None, three(NOW_MS, GONE, NOW_MS)) == expected


def test_a_move_within_a_source_is_billed_nowhere() -> None:
    assert billed(None, lone(moved_from="queue")) == []


def test_a_dead_letter_is_billed_to_its_original_source() -> None:
    arrived = lone(moved_from="orders", dead_letter=LETTER)
    assert billed(None, arrived) == [Event("orders", "dead_lettered", 1, 10)]


def test_a_redriven_message_is_billed_as_an_arrival() -> None:
    assert billed(None, lone(moved_from="dead")) == [Event("queue", "sent", 1, 10)]


def test_a_move_takes_back_the_seeming_delete_of_its_vanished_parcel() -> None:
    arrived = lone(moved_from="orders" + VANISHED, dead_letter=LETTER)
    assert billed(None, arrived) == [
        Event("orders", "deleted", -1, -10),
        Event("orders", "dead_lettered", 1, 10),
    ]
    within = lone(moved_from="queue" + VANISHED, dead_letter=LETTER)
    assert billed(None, within) == [Event("queue", "deleted", -1, -10)]


def test_so_does_the_move_of_a_dead_letter_back_to_a_url() -> None:
    assert pushed(None, lone(moved_from="dead" + VANISHED)) == [Event("dead", "deleted", -1, -10)]
    assert pushed(None, lone(moved_from="dead")) == []
    assert pushed(None, three(NOW_MS, GONE, NOW_MS)) == []


def test_a_message_back_from_the_archive_is_rewound() -> None:
    assert billed(None, lone(moved_from=REWOUND)) == [Event("queue", "rewound", 1, 10)]
    both = three(NOW_MS, GONE, NOW_MS, moved_from=REWOUND)
    assert [event.bytes for event in billed(None, both)] == [10, 40]


@pytest.mark.parametrize(("by_ttl", "kind"), [(True, "expired"), (False, "deleted")])
def test_a_removed_parcel_takes_its_live_messages_along(by_ttl: bool, kind: Any) -> None:
    expected = [Event("queue", kind, 1, 10), Event("queue", kind, 1, 40)]
    assert billed(three(NOW_MS, DELETED, 1), None, by_ttl) == expected


def test_a_purged_parcel_overwritten_by_its_send_is_deleted_and_sent_again() -> None:
    before = three(NOW_MS, DELETED, NOW_MS, sent_ms=NOW_MS - 1)
    assert billed(before, three(NOW_MS, NOW_MS, GONE)) == [
        Event("queue", "deleted", 1, 10),
        Event("queue", "deleted", 1, 40),
        Event("queue", "sent", 1, 10),
        Event("queue", "sent", 1, 20),
    ]


def test_a_change_of_nothing_is_billed_nowhere() -> None:
    assert billed(None, None) == []


# ---- parcels that change ------------------------------------------------------------------------


def test_every_receive_is_billed_with_its_bytes() -> None:
    before = three(1, 1, 1, receives=(0, 2, 5))
    after = three(NOW_MS, 1, NOW_MS, receives=(1, 2, 8))
    assert billed(before, after) == [
        Event("queue", "received", 1, 10),
        Event("queue", "received", 3, 120),
    ]


def test_a_restarted_count_of_receives_is_billed_nowhere() -> None:
    before, after = three(0, 0, 1, receives=(5, 5, 5)), three(1, 1, 1, receives=(0, 0, 5))
    assert [event.kind for event in billed(before, after)] == ["rewound", "rewound"]


def test_an_undone_claim_takes_back_its_billing() -> None:
    before, after = three(9, 9, 9, receives=(1, 6, 1)), three(1, 1, 9, receives=(0, 5, 1))
    assert billed(before, after) == [
        Event("queue", "received", -1, -10),
        Event("queue", "received", -1, -20),
    ]


def test_a_deleted_or_dropped_message_is_billed_once() -> None:
    after = three(DELETED, DROPPED, MOVED)
    assert billed(three(1, 1, 1), after) == [
        Event("queue", "deleted", 1, 10),
        Event("queue", "dropped", 1, 20),
    ]
    assert billed(after, after) == []


def test_a_removed_message_is_not_deleted_or_dropped_again() -> None:
    assert billed(three(GONE, GONE, DELETED), three(DELETED, DROPPED, DROPPED)) == []


def test_a_deleted_message_alive_again_is_rewound() -> None:
    assert billed(three(DELETED, DELETED, GONE), three(1, GONE, 1)) == [
        Event("queue", "rewound", 1, 10)
    ]


def test_a_receive_and_its_delete_may_come_together() -> None:
    assert billed(lone(receives=(0,)), lone(receives=(1,), visible_ms=(DELETED,))) == [
        Event("queue", "received", 1, 10),
        Event("queue", "deleted", 1, 10),
    ]


# ---- pushed subscriptions -----------------------------------------------------------------------


def test_a_post_is_an_attempt_and_an_accepted_one_a_delivery() -> None:
    before = three(1, 1, 1, receives=(0, 3, 0))
    after = three(DELETED, 1, 1, receives=(1, 5, 0))
    assert pushed(before, after) == [
        Event("queue", "delivered", 0, 0, 1),
        Event("queue", "delivered", 1, 10),
        Event("queue", "delivered", 0, 0, 2),
    ]


def test_a_message_with_used_up_retries_is_dropped() -> None:
    assert pushed(three(1, 1, 1), three(1, DROPPED, GONE)) == [Event("queue", "dropped", 1, 20)]


def test_a_delivered_or_dropped_message_is_not_billed_again() -> None:
    after = three(DELETED, DROPPED, 1, receives=(1, 0, 0))
    assert pushed(after, after) == []
    assert pushed(after, three(DELETED, DROPPED, 1)) == []
    assert pushed(three(GONE, GONE, GONE), three(DELETED, DROPPED, GONE)) == []


def test_a_message_expired_before_its_delivery_is_dropped() -> None:
    before = three(1, DELETED, 1)
    assert pushed(before, None, by_ttl=True) == [
        Event("queue", "dropped", 1, 10),
        Event("queue", "dropped", 1, 40),
    ]


def test_a_new_or_cleared_away_pushed_parcel_is_billed_nowhere() -> None:
    assert pushed(None, three(1, 1, 1)) == []
    assert pushed(None, three(1, 1, 1), by_ttl=True) == []
    assert pushed(three(1, 1, 1), None) == []


# ---- counters -----------------------------------------------------------------------------------


def test_counters_change_by_the_live_messages_and_their_bytes() -> None:
    assert kept(ParcelChange(None, three(1, DELETED, 1), False)) == (2, 50)
    assert kept(ParcelChange(three(1, DELETED, 1), None, False)) == (-2, -50)
    assert kept(ParcelChange(three(1, 1, 1), three(1, DELETED, GONE), False)) == (-2, -60)
    assert kept(ParcelChange(None, None, False)) == (0, 0)


def test_of_an_archive_the_deleted_messages_can_be_rewound() -> None:
    assert rewindable(ParcelChange(three(DELETED, 1, DELETED), three(DELETED, 1, 1), False)) == -1
    assert rewindable(ParcelChange(None, three(DELETED, GONE, DELETED), False)) == 2
    assert rewindable(ParcelChange(three(DELETED, 1, 1), None, True)) == -1
