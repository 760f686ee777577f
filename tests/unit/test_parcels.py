"""A parcel's state of each of its messages at a given moment."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, SEND_ID, parcel

from cirrusmq.base import limits, ulid
from cirrusmq.model.parcel import (
    DELETED,
    DROPPED,
    GONE,
    MOVED,
    NOTIFICATION,
    lone_parcel_id,
    message_id,
    order_number,
    others_of,
    send_and_position,
    sort_key,
    tombstone_until,
    where_differing,
)
from cirrusmq.model.post_history import Post, pack_posts
from cirrusmq.model.transitions import under_key

NONCE = b"n" * 16


def states(expires_ms: int = NOW_MS + 60_000, **given: Any) -> set[str]:
    """The states of the message at the second of two places, whose values are given."""
    pairs = {name: (b"" if name == "nonces" else 0, value) for name, value in given.items()}
    one = parcel(2, **pairs, expires_ms=expires_ms)
    named = {
        "live": one.live(1),
        "receivable": one.receivable(1, NOW_MS),
        "held": one.held(1, NOW_MS),
        "delayed": one.delayed(1, NOW_MS),
        "waiting": one.waiting(1, NOW_MS),
    }
    return {name for name, holds in named.items() if holds}


def test_a_message_can_be_received_from_the_moment_it_is_visible() -> None:
    assert states(visible_ms=NOW_MS) == {"live", "receivable"}
    assert states(visible_ms=NOW_MS + 1) == {"live", "delayed"}


def test_a_message_can_be_received_until_it_expires() -> None:
    assert "receivable" in states(visible_ms=1, expires_ms=NOW_MS + 1)
    assert "receivable" not in states(visible_ms=1, expires_ms=NOW_MS)


def test_the_receivable_places_of_a_parcel_are_those_of_its_active_messages() -> None:
    times = (NOW_MS, NOW_MS + 1, DELETED, GONE, 1, NOW_MS - 1)
    plain = parcel(6, visible_ms=times)
    waits = parcel(6, visible_ms=times, waits_ms=(1, 0, 0, 0, 0, 1))
    assert plain.visible_indexes(NOW_MS) == [0, 4, 5]
    assert waits.visible_indexes(NOW_MS) == [4, 5]
    for each in (plain, waits):
        assert each.visible_indexes(each.expires_ms - 1)
        assert each.visible_indexes(each.expires_ms) == []
        for now_ms in (0, 1, NOW_MS - 1, NOW_MS, NOW_MS + 1, each.expires_ms):
            assert each.visible_indexes(now_ms) == [
                place for place in range(6) if each.receivable(place, now_ms)
            ]


def test_a_message_is_held_from_its_receive_to_the_end_of_its_lease() -> None:
    assert states(visible_ms=NOW_MS + 1, nonces=NONCE, receives=1) == {"live", "held"}
    assert states(visible_ms=NOW_MS, nonces=NONCE, receives=1) == {"live", "receivable"}


def test_a_given_back_message_is_neither_held_nor_delayed() -> None:
    assert states(visible_ms=NOW_MS + 1, nonces=b"", receives=1) == {"live"}


def test_a_message_waits_for_its_retry_from_the_end_of_its_lease() -> None:
    held: dict[str, Any] = {"nonces": NONCE, "receives": 1, "waits_ms": 10}
    assert states(visible_ms=NOW_MS + 1, **held) == {"live", "held"}
    assert states(visible_ms=NOW_MS, **held) == {"live", "waiting"}
    assert states(visible_ms=NOW_MS - 9, **held) == {"live", "waiting"}
    assert states(visible_ms=NOW_MS - 10, **held) == {"live", "receivable"}


@pytest.mark.parametrize("mark", [DELETED, GONE, MOVED, DROPPED])
def test_a_removed_message_is_in_no_state(mark: int) -> None:
    assert states(visible_ms=mark, nonces=NONCE, waits_ms=NOW_MS * 2) == set()
    assert states(visible_ms=mark) == set()


def test_a_message_is_live_from_the_first_millisecond_of_time() -> None:
    assert "live" in states(visible_ms=1)


def test_a_parcel_is_spent_when_every_message_left_it() -> None:
    assert parcel(3, visible_ms=(DELETED, GONE, DROPPED)).spent()
    assert not parcel(3, visible_ms=(DELETED, 1, DROPPED)).spent()


def test_a_retry_is_ready_after_lease_and_wait() -> None:
    assert parcel(2, visible_ms=(5, 7), waits_ms=(10, 20)).ready_ms(1) == 27
    assert parcel(2, visible_ms=(5, 7)).ready_ms(1) == 7
    assert parcel(2).wait_ms(1) == 0


def test_messages_are_numbered_by_their_place_unless_the_parcel_says() -> None:
    assert parcel(16).message_id(11) == f"Msg-{SEND_ID}B"
    apart = parcel(2, parcel_id=f"{SEND_ID}.F", positions=(3, 15))
    assert [apart.position(place) for place in range(2)] == [3, 15]
    assert apart.message_id(1) == f"Msg-{SEND_ID}F"


def test_a_message_alone_in_another_queue_has_a_record_of_its_own() -> None:
    alone = lone_parcel_id(SEND_ID, 10, 255, "orders")
    assert alone.startswith(f"{SEND_ID}.A.ff")
    assert len(alone) == len(f"{SEND_ID}.A.ff") + 10
    assert alone != lone_parcel_id(SEND_ID, 10, 255, "a receiver of orders")
    assert parcel(parcel_id=alone).record_id == alone
    assert parcel(parcel_id=f"{SEND_ID}.A").record_id == SEND_ID
    assert parcel(parcel_id=alone).send_id == SEND_ID


def test_a_message_takes_its_share_of_an_answer_and_4000_bytes_of_state() -> None:
    assert parcel(2, sizes=(1, 1_050), answer_percent=133).answer_bytes(1) == 1_396 + 4_000
    assert parcel(sizes=(7,), answer_percent=50).answer_bytes(0) == 3 + 4_000


def test_a_notification_takes_three_times_the_escapes_and_4096_bytes() -> None:
    """JSON in JSON: of 133 bytes for 100, 33 are added once, and 99 to both."""
    shown: dict[str, Any] = {"sizes": (1, 1_050), "others": {NOTIFICATION: {"B": b""}}}
    assert parcel(2, **shown, answer_percent=133).answer_bytes(1) == 2_089 + 4_000 + 4_096
    assert parcel(2, **shown).answer_bytes(1) == 1_050 + 4_000 + 4_096


@pytest.mark.parametrize(
    ("posts", "older", "error"),
    [
        ([], {}, ""),
        ([], {0: "timeout"}, ""),
        ([], {1: "status 500"}, "status 500"),
        ([Post(NOW_MS, 503, "status 503"), Post(NOW_MS + 9, None, "dns")], {1: "timeout"}, "dns"),
        ([Post(NOW_MS, 503, "status 503"), Post(NOW_MS + 9, 200, None)], {1: "timeout"}, ""),
    ],
)
def test_the_newest_post_tells_why_it_failed(
    posts: list[Post], older: dict[int, str], error: str
) -> None:
    histories = {1: pack_posts(posts, NOW_MS)} if posts else {}
    assert parcel(2, histories=histories, errors=older).last_error(1) == error


def test_a_key_stays_taken_as_long_as_its_send_may_be_repeated() -> None:
    sent_ms = ulid.time_of(SEND_ID)
    assert tombstone_until(parcel(), 1.0) == sent_ms + limits.TOMBSTONE_MS
    assert tombstone_until(parcel(), 0.5) == sent_ms + limits.TOMBSTONE_MS // 2
    by_fan_out = parcel(fanned_out=True)
    assert tombstone_until(by_fan_out, 0.5) == sent_ms + limits.FAN_OUT_TOMBSTONE_MS


def test_numbers_equal_to_their_places_are_not_written_down() -> None:
    assert where_differing((0, 1, 2)) == ()
    assert where_differing((0, 2)) == (0, 2)


def test_keys_sort_as_the_times_in_them_do() -> None:
    assert sort_key(7, "id") == "0000000000007#id"
    assert sort_key(999, "z") < sort_key(NOW_MS, "a")


def test_the_send_and_the_number_in_it_are_read_from_a_messages_id() -> None:
    for position in range(16):
        assert send_and_position(message_id(SEND_ID, position)) == (SEND_ID, position)
    last = "7" + "Z" * 25
    assert send_and_position(f"Msg-{last}F") == (last, 15)


@pytest.mark.parametrize(
    "text",
    [
        "",
        SEND_ID,
        f"Msg-{SEND_ID}",
        f"Msg-{SEND_ID}00",
        f"Msg-{SEND_ID}G",
        f"Msg-{SEND_ID}a",
        f"msg-{SEND_ID}0",
        f"Msg-{SEND_ID.lower()}0",
        f"Msg-8{SEND_ID[1:]}0",
        f"Msg-{SEND_ID[:-1]}I0",
        f"Msg-{SEND_ID}0\n",
        f" Msg-{SEND_ID}0",
        f"Half-{SEND_ID}0",
    ],
)
def test_a_text_without_a_message_id_names_none(text: str) -> None:
    assert send_and_position(text) is None


def test_a_messages_id_ends_with_its_number_as_one_hex_digit() -> None:
    assert message_id(SEND_ID, 0) == f"Msg-{SEND_ID}0"
    assert message_id(SEND_ID, 15) == f"Msg-{SEND_ID}F"


def test_an_ordered_message_is_numbered_by_its_send_and_its_place_there() -> None:
    numbers = [
        order_number(f"3f9a#{sequence:016d}", place)
        for sequence in (1, 2)
        for place in range(limits.BATCH_MESSAGES)
    ]
    assert numbers == list(range(16, 48))


@pytest.mark.parametrize(
    ("places", "kept"),
    [
        ([0, 1, 2], {"later": 1, "q0": "a", "q2": "c", "q16": 2, "q03": 3}),
        ([1, 2], {"later": 1, "q1": "c", "q16": 2, "q03": 3}),
        ([0], {"later": 1, "q0": "a", "q16": 2, "q03": 3}),
        ([1], {"later": 1, "q16": 2, "q03": 3}),
    ],
)
def test_unknown_attributes_follow_their_message_or_the_parcel(
    places: list[int], kept: dict[str, Any]
) -> None:
    others = {"later": 1, "q0": "a", "q2": "c", "q16": 2, "q03": 3}
    three = replace(parcel(3), others=others)
    assert others_of(three, places) == kept
    assert under_key(three, places, NOW_MS, NOW_MS, None).others == kept
