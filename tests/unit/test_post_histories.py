"""The latest posts of a message: packed, read again, and never a further write unit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, SEND_ID, parcel

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.post_history import POSTS_KEPT, Post, error_of, pack_posts, unpack_posts
from cirrusmq.sending.making import fits
from cirrusmq.storage.changes import with_post
from cirrusmq.storage.parcels import parcel_item
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq.webhooks import client

DAY_MS = 86_400_000
FAILURES = sorted({kind for _, kind in client._KINDS} | {"content"})

answers = st.integers(100, 999).map(lambda status: (status, error_of(status)))
failures = st.sampled_from(FAILURES).map(lambda failure: (None, failure))


posts_at = st.dictionaries(
    st.integers(NOW_MS, NOW_MS + 16 * DAY_MS), answers | failures, max_size=12
)
histories = posts_at.map(lambda at: [Post(at_ms, *at[at_ms]) for at_ms in sorted(at)])


@given(histories)
def test_posts_are_read_as_they_were_packed(posts: list[Post]) -> None:
    assert list(unpack_posts(pack_posts(posts, NOW_MS), NOW_MS)) == posts


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, None), (299, None), (300, "redirect 300"), (400, "status 400"), (199, "status 199")],
)
def test_any_2xx_takes_a_message(status: int, error: str | None) -> None:
    assert error_of(status) == error


def test_a_retry_with_the_same_error_takes_one_to_four_bytes() -> None:
    for wait_ms, size in ((63, 1), (64, 2), (1_000, 2), (512_000, 3), (7_200_000, 4)):
        two = [Post(NOW_MS + passed, 503, "status 503") for passed in (0, wait_ms)]
        assert len(pack_posts(two, NOW_MS)) - len(pack_posts(two[:1], NOW_MS)) == size


def test_words_of_no_failure_kind_are_not_kept() -> None:
    posts = [Post(NOW_MS, None, "x" * 1_000)]
    packed = pack_posts(posts, NOW_MS)
    assert len(packed) == 2
    assert unpack_posts(packed, NOW_MS) == (Post(NOW_MS, None, "unknown"),)


def test_a_clock_behind_the_last_one_leaves_the_order() -> None:
    posts = [Post(NOW_MS + 5, 500, "status 500"), Post(NOW_MS - 5, 500, "status 500")]
    times = [post.at_ms for post in unpack_posts(pack_posts(posts, NOW_MS), NOW_MS)]
    assert times == [NOW_MS + 5, NOW_MS + 5]


def posted(before: Parcel, place: int, *posts: Post) -> Parcel:
    """The parcel after posts of one of its messages."""
    for post in posts:
        history = with_post(before, place, post)
        before = replace(before, histories={**before.histories, place: history})
    return before


def units(after: Parcel) -> int:
    """Write units of the parcel when all of its messages have long times and counts."""
    late = replace(
        after,
        visible_ms=(NOW_MS + 1,) * after.count,
        first_received_ms=(NOW_MS + 1,) * after.count,
        receives=(177,) * after.count,
    )
    told = {f"a{place}": {"B": history} for place, history in after.histories.items()}
    return -(-item_bytes(parcel_item(late) | told) // UNIT_BYTES)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 16), st.integers(0, 1_100), histories, st.booleans())
def test_histories_cost_no_write_unit_whatever_the_errors_are(
    count: int, content_bytes: int, posts: list[Post], given_back: bool
) -> None:
    fields: dict[str, Any] = {"content": b"x" * content_bytes, "fanned_out": True}
    if given_back:
        fields |= {"moved_from": "queue12digit/removed", "parcel_id": f"{SEND_ID}.F.19f0{SEND_ID}"}
    before = parcel(count, source_id="url12digits0", **fields)
    if not fits(parcel_item(before), retries=True):
        before = replace(before, content=None, log="topic12digit#250")
    after = before
    for place in range(count):
        after = posted(after, place, *posts)
    for place in range(count):
        kept = after.posts(place)
        assert kept == tuple(posts[len(posts) - len(kept) :])
        assert min(1, len(posts)) <= len(kept) <= POSTS_KEPT
    assert units(after) == 1


def test_ten_are_kept_of_one_message_and_some_of_sixteen() -> None:
    waits = [2**n * 1_000 for n in range(10)] + [512_000] * 20
    posts = [Post(NOW_MS + sum(waits[:n]), 503, "status 503") for n in range(31)]
    assert posted(parcel(content=b"x" * 600), 0, *posts).posts(0) == tuple(posts[-POSTS_KEPT:])
    together = parcel(16, log="topic12digit#250", fanned_out=True)
    assert len(posted(together, 3, *posts).posts(3)) >= 5
