"""The latest posts of a message to its URL, packed into a few bytes beside its state.

    posted   12:00:00 status 503   12:00:01 status 503   12:00:03 timeout
    packed   how long after its publishing, 503 │ 1 s, the same │ 2 s, timeout

A time is the milliseconds since the post before, so that a retry takes two to four bytes. Only the
status of an answer is kept, and a failure without one has a number: the subscriber's own words are
not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

POSTS_KEPT = 10
"""Most posts that are kept for a message."""
_UNKNOWN = "unknown"
_NUMBERS = {
    "content": 1,
    "url": 2,
    "address": 3,
    "dns": 4,
    "connection": 5,
    "tls": 6,
    "timeout": 7,
    "protocol": 8,
}
"""Numbers of failures without an answer, below every status. They never change: items have them."""
_FAILURES = {number: failure for failure, number in _NUMBERS.items()}
_MIN_STATUS = 100


class Post(msgspec.Struct, frozen=True):
    """A post of a message.

    status: the answer's; None without an answer. error: None if the message was taken.
    """

    at_ms: int
    status: int | None
    error: str | None


def error_of(status: int) -> str | None:
    """Returns the error of an answer with this status, or None for any 2xx."""
    if 200 <= status < 300:
        return None
    return f"redirect {status}" if 300 <= status < 400 else f"status {status}"


def pack_posts(posts: Sequence[Post], sent_ms: int) -> bytes:
    """Returns posts in order, as bytes; `sent_ms`: when their message was published."""
    return b"".join(map(_packed, _numbers(posts, sent_ms)))


def unpack_posts(packed: bytes, sent_ms: int) -> tuple[Post, ...]:
    """Returns the posts that `pack_posts` made these bytes of."""
    posts: list[Post] = []
    at_ms, outcome = sent_ms, 0
    numbers = _unpacked(packed)
    for number in numbers:
        at_ms += number >> 1
        if not number & 1:
            outcome = next(numbers)
        posts.append(_post(at_ms, outcome))
    return tuple(posts)


def _numbers(posts: Iterable[Post], sent_ms: int) -> Iterator[int]:
    """Yields each post's time since the post before, and its outcome unless that is the same."""
    before_ms, before = sent_ms, None
    for post in posts:
        outcome = _outcome(post)
        # Clocks differ: this one may be behind the clock of the environment that posted before.
        passed_ms = max(0, post.at_ms - before_ms)
        yield passed_ms << 1 | (outcome == before)
        if outcome != before:
            yield outcome
        before_ms, before = before_ms + passed_ms, outcome


def _outcome(post: Post) -> int:
    return _NUMBERS.get(post.error or "", 0) if post.status is None else post.status


def _post(at_ms: int, outcome: int) -> Post:
    if outcome >= _MIN_STATUS:
        return Post(at_ms, outcome, error_of(outcome))
    return Post(at_ms, None, _FAILURES.get(outcome, _UNKNOWN))


def _packed(number: int) -> bytes:
    """Returns a number as bytes of seven bits, the lowest first; the last byte is below 128."""
    packed = bytearray()
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _unpacked(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0
