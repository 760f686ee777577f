"""Bodies of messages, checked as CMQ checks them."""

from __future__ import annotations

from collections.abc import Sequence

from cirrusmq_dialects.cmq.errors import CmqError

LARGEST_BYTES = 262_144
"""Maximum of a message, and of a batch; a request has at most four times as much."""


def check_bodies(bodies: Sequence[str]) -> Sequence[str]:
    """Returns the bodies. Raises CmqError if one is empty, or all together are too large."""
    if not all(bodies):
        raise CmqError(4000, 10120, "message body can't be empty")
    if len(bodies) > 1:
        size = sum(len(body.encode()) for body in bodies)
        if size > LARGEST_BYTES:
            text = f"total message size exceed {LARGEST_BYTES} bytes: {size}"
            raise CmqError(4470, 10300, text)
    return bodies
