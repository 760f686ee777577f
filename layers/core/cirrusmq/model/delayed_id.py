"""Ids of sends whose messages have a separate delay: it is in the id, and so in the first key.

    entropy of a send's id   [ 10 bytes                        ]
    with a delay             [ mark | delay, 3 bytes | 6 bytes ]

Any other id looks like that once in 3,300 times, so the result is a guess of a first key: a wrong
one costs a read of a missing key, and decides nothing.
"""

from __future__ import annotations

from cirrusmq.base import limits, ulid

_MARK = b"\xd5"
_DELAY_BYTES = 3
_FROM = len(_MARK) + _DELAY_BYTES


def with_delay(entropy: bytes, delay_seconds: int) -> bytes:
    """Returns the entropy of a send's id, with a delay in the place of some of it."""
    return _MARK + delay_seconds.to_bytes(_DELAY_BYTES, "big") + entropy[_FROM:]


def delay_in(send_id: str) -> int | None:
    """Returns the delay in a send's id, in seconds, or None without one."""
    entropy = ulid.entropy_of(send_id)
    delay_seconds = int.from_bytes(entropy[len(_MARK) : _FROM], "big")
    if not entropy.startswith(_MARK) or delay_seconds > limits.DELAY_SECONDS[1]:
        return None
    return delay_seconds
