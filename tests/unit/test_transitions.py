"""Each step in the life of a message: its changes, and the parcel after it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.parcels import NOW_MS, SEND_ID, parcel, source

from cirrusmq.model import transitions
from cirrusmq.model.message import Message, pack, unpack
from cirrusmq.model.parcel import CANCELLED, DELETED, DROPPED, GONE, MOVED, Parcel
from cirrusmq.model.post_history import Post, pack_posts
from cirrusmq.model.retry import RetryPolicy, parse_retry
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import MessageChange, changed, under_key

DRAWN = b"n" * 16
NONCE = b"n" * 12 + ((NOW_MS + 10_000) // 1000).to_bytes(4, "big")
RECEIVED = parcel(
    2,
    visible_ms=(NOW_MS, NOW_MS - 5),
    nonces=(b"", NONCE),
    receives=(0, 3),
    first_received_ms=(0, NOW_MS - 9_000),
)


def policy(**given: object) -> RetryPolicy:
    retry = parse_retry(given, ordered_source=False)
    assert retry is not None
    return retry


def claimed(
    place: int,
    timeout_seconds: int | None = 10,
    of: Parcel = RECEIVED,
    by: Source | None = None,
) -> MessageChange:
    where = by or source()
    return transitions.claimed(where, of, place, timeout_seconds, DRAWN, lambda: 0.5, NOW_MS)


def test_a_claim_gives_a_lease_a_receipt_and_one_receive_more() -> None:
    assert claimed(0) == MessageChange(
        visible_ms=NOW_MS + 10_000, nonce=NONCE, receives=1, first_received_ms=NOW_MS
    )


def test_a_later_claim_leaves_the_first_receive_as_it_was() -> None:
    assert claimed(1) == MessageChange(visible_ms=NOW_MS + 10_000, nonce=NONCE, receives=4)


def test_a_lease_is_of_the_receives_timeout_else_the_messages_else_the_sources() -> None:
    own = parcel(2, visibility_seconds=(0, 20), expires_ms=NOW_MS + 90_000)
    given, of_message, of_source = claimed(1, 10, own), claimed(1, None, own), claimed(0, None, own)
    assert [each.visible_ms - NOW_MS for each in (given, of_message, of_source)] == [
        10_000,
        20_000,
        30_000,
    ]
    assert claimed(0, None, parcel()).visible_ms == NOW_MS + 30_000


def test_a_lease_ends_with_the_messages_life() -> None:
    assert claimed(0, 61, parcel()).visible_ms == NOW_MS + 60_000


def test_the_wait_for_the_next_retry_is_drawn_with_the_claim() -> None:
    retry = policy(policy="custom", waits=[10, 20], jitter=1)
    again = parcel(1, receives=(1,), waits_ms=(77,))
    assert claimed(0, of=parcel(), by=source(retry=retry)).wait_ms == 5_000
    assert claimed(0, of=again, by=source(retry=retry)).wait_ms == 10_000


def test_no_wait_follows_the_last_retry() -> None:
    retry = policy(policy="custom", waits=[10])
    last = parcel(1, receives=(1,), waits_ms=(77,))
    assert claimed(0, of=last, by=source(retry=retry)).wait_ms == 0


def test_no_wait_follows_in_a_source_without_retries() -> None:
    assert claimed(0, of=parcel(waits_ms=(77,))).wait_ms == 0
    assert claimed(0, of=parcel()).wait_ms is None


def test_a_message_with_used_up_retries_waits_to_its_expiry_by_its_policy() -> None:
    where = source(subscription="audit", retry=policy(policy="exponential_decay"))
    last = parcel(1, receives=(176,), waits_ms=(77,))
    assert claimed(0, of=last, by=where).wait_ms == 50_000


@pytest.mark.parametrize(("waits_ms", "before", "hidden"), [((), None, None), ((7, 9), 9, 0)])
def test_an_undone_claim_leaves_the_earlier_values(
    waits_ms: tuple[int, ...], before: int | None, hidden: int | None
) -> None:
    was = parcel(
        2,
        visible_ms=(1, 2),
        nonces=(b"a", b"b"),
        receives=(3, 4),
        first_received_ms=(5, 6),
        waits_ms=waits_ms,
    )
    after = changed(was, {1: claimed(1, of=was)})
    assert transitions.unclaimed(was, after, 1) == MessageChange(
        visible_ms=2, nonce=b"b", receives=4, first_received_ms=6, wait_ms=before
    )
    assert transitions.unread(was, after, 1) == MessageChange(
        visible_ms=NOW_MS + 10_000, nonce=b"", receives=4, first_received_ms=6, wait_ms=hidden
    )
    assert changed(after, {1: transitions.unclaimed(was, after, 1)}) == was


def test_an_undone_claim_has_no_wait_though_the_parcel_got_its_first_ones() -> None:
    after = parcel(waits_ms=(7,))
    assert transitions.unclaimed(parcel(), after, 0).wait_ms == 0


def test_a_hold_ends_so_many_seconds_from_now_or_with_the_messages_life() -> None:
    assert transitions.held(5, NOW_MS + 5_001, NOW_MS) == MessageChange(visible_ms=NOW_MS + 5_000)
    assert transitions.held(5, NOW_MS + 4_999, NOW_MS) == MessageChange(visible_ms=NOW_MS + 4_999)


def test_a_give_back_ends_the_receipt_and_the_wait_behind_the_lease() -> None:
    assert transitions.given_back(70, NOW_MS + 71, NOW_MS) == MessageChange(
        visible_ms=NOW_MS + 70, nonce=b"", wait_ms=0
    )
    assert transitions.given_back(70, NOW_MS + 69, NOW_MS).visible_ms == NOW_MS + 69


def test_an_untried_give_back_leaves_the_count_of_tries() -> None:
    ended = transitions.given_back(0, NOW_MS + 71, NOW_MS, tried=False)
    assert ended == MessageChange(visible_ms=NOW_MS, nonce=b"", wait_ms=0, untried=1)
    back = changed(RECEIVED, {1: ended})
    assert (back.receives, back.tries(1)) == ((0, 3), 2)
    again = transitions.untried(RECEIVED, [1])
    assert again.tries(1) == 2
    assert again.visible_ms == RECEIVED.visible_ms
    assert changed(back, {1: ended}).tries(1) == 1


def test_untried_receives_go_with_a_message_and_count_for_no_retry() -> None:
    of = parcel(3, receives=(1, 4, 5), untried={1: 3, 2: 1})
    moved = under_key(of, [1, 2], NOW_MS, NOW_MS, None)
    assert [moved.tries(place) for place in range(2)] == [1, 4]
    retry = policy(policy="custom", waits=[10, 20, 30])
    assert claimed(1, of=of, by=source(retry=retry)).wait_ms == 20_000


def test_a_rewound_message_has_no_untried_receives() -> None:
    one = parcel(visible_ms=(DELETED,), receives=(3,), untried={0: 2})
    opened = transitions.reopened(one, 0, NOW_MS, waits=False)
    assert (opened.untried, changed(one, {0: opened}).tries(0)) == (-2, 0)


def test_a_deleted_message_notes_its_time() -> None:
    assert transitions.deleted(7) == MessageChange(visible_ms=DELETED, first_received_ms=7)


def test_a_leaving_message_says_how() -> None:
    assert transitions.moved(GONE) == MessageChange(visible_ms=GONE)
    assert transitions.moved(MOVED) == MessageChange(visible_ms=MOVED)
    noted = transitions.moved(GONE, NOW_MS)
    assert noted == MessageChange(visible_ms=GONE, first_received_ms=NOW_MS)
    assert transitions.dropped() == MessageChange(visible_ms=DROPPED)


def test_a_rewound_message_was_never_received() -> None:
    one = parcel(visible_ms=(DELETED,), nonces=(NONCE,), receives=(3,), first_received_ms=(8,))
    opened = transitions.reopened(one, 0, NOW_MS, waits=False)
    assert opened == MessageChange(visible_ms=NOW_MS, nonce=b"", receives=0, first_received_ms=0)
    assert changed(one, {0: opened}) == parcel()


def test_a_rewound_message_of_a_group_waits_at_its_expiry() -> None:
    one = parcel(2, visible_ms=(DELETED,) * 2, waits_ms=(7, 9))
    opened = transitions.reopened(one, 0, NOW_MS, waits=True)
    assert opened == MessageChange(
        visible_ms=NOW_MS + 60_000, nonce=b"", receives=0, first_received_ms=NOW_MS, wait_ms=0
    )
    waiting = changed(one, {1: opened})
    assert [waiting.awaits_group(place) for place in range(2)] == [False, True]
    admitted = transitions.admitted(waiting, 1, NOW_MS + 1)
    assert admitted == MessageChange(visible_ms=NOW_MS + 1, first_received_ms=0)
    assert not changed(waiting, {1: admitted}).awaits_group(1)


def test_a_message_admitted_before_keeps_its_first_receive() -> None:
    assert transitions.admitted(RECEIVED, 1, NOW_MS + 1) == MessageChange(visible_ms=NOW_MS + 1)


def test_a_preceded_message_is_not_as_it_was() -> None:
    assert transitions.preceded(parcel(2, visible_ms=(5, 7)), 1) == MessageChange(visible_ms=8)


def test_a_post_counts_as_a_receive() -> None:
    assert transitions.delivered(RECEIVED, 0, b"h", NOW_MS) == MessageChange(
        visible_ms=DELETED, receives=1, first_received_ms=NOW_MS, history=b"h"
    )
    assert transitions.delivered(RECEIVED, 1, b"h", NOW_MS) == MessageChange(
        visible_ms=DELETED, receives=4, history=b"h"
    )


def test_a_failed_post_says_when_the_next_one_is_and_why() -> None:
    history = pack_posts([Post(NOW_MS, 503, "status 503")], NOW_MS)
    again = transitions.failed(RECEIVED, 1, NOW_MS + 5, history, NOW_MS)
    assert again == MessageChange(visible_ms=NOW_MS + 5, receives=4, history=history)
    before = parcel(2, receives=(0, 3), first_received_ms=(0, 5), errors={0: "404", 1: "404"})
    after = changed(before, {1: again})
    assert [after.last_error(place) for place in range(2)] == ["404", "status 503"]
    assert before.last_error(1) == "404"
    assert (before.posts(1), after.posts(1)) == ((), (Post(NOW_MS, 503, "status 503"),))


def test_the_first_post_is_the_first_receive_also_if_it_fails() -> None:
    assert transitions.failed(RECEIVED, 0, NOW_MS + 5, b"h", NOW_MS) == MessageChange(
        visible_ms=NOW_MS + 5, receives=1, first_received_ms=NOW_MS, history=b"h"
    )


def test_a_cancelled_message_has_its_time_and_is_gone() -> None:
    change = transitions.cancelled(NOW_MS)
    assert change == MessageChange(visible_ms=CANCELLED, first_received_ms=NOW_MS)
    after = changed(parcel(2), {1: change})
    assert (after.live(0), after.live(1)) == (True, False)


def test_a_kept_message_stays_to_its_expiry() -> None:
    assert transitions.kept(RECEIVED) == MessageChange(visible_ms=NOW_MS + 60_000)


def test_another_reading_tells_of_a_messages_state_and_deliveries() -> None:
    other = replaced(RECEIVED, histories={1: b"h"})
    mine = changed(parcel(2), {1: transitions.as_in(other, 1)})
    assert mine == parcel(
        2,
        histories={1: b"h"},
        visible_ms=(NOW_MS, NOW_MS - 5),
        receives=(0, 3),
        first_received_ms=(0, NOW_MS - 9_000),
    )


def test_a_change_leaves_the_neighbours_and_unnamed_values() -> None:
    before = parcel(
        3,
        visible_ms=(1, 2, 3),
        nonces=(b"a", b"b", b"c"),
        receives=(4, 5, 6),
        first_received_ms=(7, 8, 9),
        waits_ms=(10, 11, 12),
        histories={0: b"h"},
    )
    assert changed(before, {}) == before
    expected: dict[str, Any] = {"visible_ms": (1, 20, 3)}
    assert changed(before, {1: MessageChange(visible_ms=20)}) == replaced(before, **expected)
    new = {1: MessageChange(visible_ms=20, nonce=b"", receives=0, first_received_ms=0, wait_ms=0)}
    expected |= {
        "nonces": (b"a", b"", b"c"),
        "receives": (4, 0, 6),
        "first_received_ms": (7, 0, 9),
        "waits_ms": (10, 0, 12),
    }
    assert changed(before, new) == replaced(before, **expected)


def test_the_first_wait_gives_a_parcel_its_list_of_waits() -> None:
    after = changed(
        parcel(3), {1: MessageChange(visible_ms=1, wait_ms=7), 2: MessageChange(visible_ms=1)}
    )
    assert after.waits_ms == (0, 7, 0)
    assert changed(parcel(3), {1: MessageChange(visible_ms=1)}).waits_ms == ()


def replaced(one: Parcel, **given: Any) -> Parcel:
    fields = {name: getattr(one, name) for name in one.__struct_fields__}
    return Parcel(**{**fields, **given})


SENT = parcel(
    3,
    receives=(1, 2, 3),
    first_received_ms=(4, 5, 6),
    sizes=(7, 8, 9),
    nonces=(NONCE,) * 3,
    fanned_out=True,
)


def test_messages_under_a_later_key_have_no_receipts_and_are_due_together() -> None:
    one = under_key(SENT, [1, 2], NOW_MS + 50, NOW_MS + 70, "queue")
    assert one == parcel(
        2,
        sort_key=f"{NOW_MS + 50:013d}#{SEND_ID}.1",
        parcel_id=f"{SEND_ID}.1",
        visible_ms=(NOW_MS + 70,) * 2,
        receives=(2, 3),
        first_received_ms=(5, 6),
        sizes=(8, 9),
        positions=(1, 2),
        moved_from="queue",
    )


def test_messages_under_a_later_key_take_along_their_parcels_values() -> None:
    messages = [Message(body=text) for text in "abc"]
    before = replaced(
        SENT, waits_ms=(7, 8, 9), visibility_seconds=(1, 2, 3), content=pack(messages)
    )
    one = under_key(before, [0, 2], NOW_MS + 50, NOW_MS + 70, None)
    assert (one.waits_ms, one.visibility_seconds, one.positions) == ((0, 0), (1, 3), (0, 2))
    assert one.content is not None
    assert unpack(one.content) == [messages[0], messages[2]]
    assert one.moved_from is None
    again = under_key(one, [1], NOW_MS + 60, NOW_MS + 70, None)
    assert (again.parcel_id, again.positions) == (f"{SEND_ID}.2", (2,))


def test_the_key_is_the_requested_one() -> None:
    assert under_key(SENT, [0], NOW_MS - 50, NOW_MS, None).key_ms == NOW_MS - 50
    assert under_key(SENT, [0], NOW_MS + 2, NOW_MS, None).key_ms == NOW_MS + 2


def test_a_message_alone_in_another_queue_keeps_its_parcels_id() -> None:
    alone = f"{SEND_ID}.A.ff"
    assert under_key(parcel(parcel_id=alone), [0], NOW_MS + 2, NOW_MS, None).parcel_id == alone
