"""The history of a message's posts, as long as it fits into its parcel's write units.

parcel   keys, times, content of 16 messages ── room ──│ 1 KB
room     an equal share for each message: what one writes takes nothing of another's
"""

from __future__ import annotations

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.post_history import POSTS_KEPT, Post, pack_posts
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import parcel_item
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes

_NAME_BYTES = 3
_SURE_BYTES = NONCE_BYTES - _NAME_BYTES
"""Every parcel has this room for each message, which is posted without a receipt."""
_LATE_TIME, _MANY_POSTS = "1111111111111", "11111"


def with_post(parcel: Parcel, place: int, post: Post) -> bytes:
    """Returns the message's latest posts with one more, packed: ten, or as many as have room."""
    posts = [*parcel.posts(place), post][-POSTS_KEPT:]
    packed = pack_posts(posts, parcel.sent_ms)
    if len(packed) <= _SURE_BYTES:
        return packed
    room = max(_SURE_BYTES, _room(parcel))
    while len(packed) > room:
        del posts[0]
        packed = pack_posts(posts, parcel.sent_ms)
    return packed


def _room(parcel: Parcel) -> int:
    """Returns the bytes that each message has for its history, with any history of the others."""
    changing: Item = {
        "v": {"L": [{"N": _LATE_TIME}] * parcel.count},
        "r": {"L": [{"N": _MANY_POSTS}] * parcel.count},
        "f": {"L": [{"N": _LATE_TIME}] * parcel.count},
    }
    left = -item_bytes(parcel_item(parcel) | changing) % UNIT_BYTES
    return left // parcel.count - _NAME_BYTES
