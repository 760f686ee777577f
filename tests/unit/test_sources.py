"""Which of its messages a source keeps, and which it does not give out yet."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.parcels import NOW_MS, SEND_ID, parcel, source

from cirrusmq.base import ulid
from cirrusmq.base.limits import EXPIRED_KEPT_MS
from cirrusmq.model.parcel import sort_key
from cirrusmq.model.queue import DeadLetter


@pytest.mark.parametrize(("purged_ms", "kept"), [(NOW_MS - 1, True), (NOW_MS, False)])
def test_a_purge_takes_all_messages_sent_until_then(purged_ms: int, kept: bool) -> None:
    assert source(purged_ms=purged_ms).keeps(parcel()) is kept
    given_back = parcel(parcel_id=f"{SEND_ID}.0.1")
    assert source(purged_ms=purged_ms, ends_ms=NOW_MS + 1).keeps(given_back) is kept


@pytest.mark.parametrize(("ends_ms", "kept"), [(None, True), (NOW_MS + 1, True), (NOW_MS, False)])
def test_a_former_source_keeps_messages_published_before_its_end(
    ends_ms: int | None, kept: bool
) -> None:
    former = source(ends_ms=ends_ms)
    assert former.keeps(parcel()) is kept
    assert former.keeps(parcel(parcel_id=f"{SEND_ID}.0")) is kept
    # A dead letter that was given back is in no log, and so in no later source.
    assert former.keeps(parcel(parcel_id=f"{SEND_ID}.0.1"))


def test_a_rewound_group_withholds_messages_behind_its_place_in_the_log() -> None:
    sent_ms = ulid.time_of(SEND_ID)
    held = parcel(sort_key=sort_key(NOW_MS + 90_000, "another key"), parcel_id=f"{SEND_ID}.3")
    for frontier, withheld in [
        (None, False),
        ("!", True),
        (sort_key(sent_ms - 1, "~"), True),
        (sort_key(sent_ms, SEND_ID[:-1]), True),
        (sort_key(sent_ms, SEND_ID), False),
        (sort_key(sent_ms + 1, ""), False),
        ("~", False),
    ]:
        assert source(frontier=frontier).withholds(held) is withheld


@pytest.mark.parametrize(
    ("place", "now_ms", "is_over"),
    [
        ({}, NOW_MS + 59_999, False),
        ({}, NOW_MS + 60_000, True),
        ({"purged_ms": NOW_MS}, NOW_MS, True),
        ({"ends_ms": NOW_MS}, NOW_MS, True),
        ({"purged_ms": NOW_MS}, NOW_MS + 60_000, True),
    ],
)
def test_a_parcel_is_over_with_its_life_or_when_its_source_no_longer_keeps_it(
    place: dict[str, int], now_ms: int, is_over: bool
) -> None:
    assert source(**place).is_over(parcel(), now_ms) is is_over


@pytest.mark.parametrize(
    ("place", "later_ms"),
    [
        ({}, 0),
        ({"dead_letter": DeadLetter("dead", 3)}, 0),
        ({"subscription": "web"}, 0),
        ({"subscription": "web", "dead_letter": DeadLetter("dead")}, EXPIRED_KEPT_MS),
    ],
)
def test_the_sweep_has_time_to_rescue_a_subscriptions_dead_letters(
    place: dict[str, Any], later_ms: int
) -> None:
    assert source(**place).removable_ms(parcel()) == NOW_MS + 60_000 + later_ms
