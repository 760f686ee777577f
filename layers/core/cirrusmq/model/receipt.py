"""A receipt: the opaque text by which the holder of a message speaks of it.

It has the message's place and the lease's nonce. Every field is compared with the
store in the condition of the write that it asks for, so a forged or changed receipt finds nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from cirrusmq.base.decoding import decode_packed

NONCE_BYTES = 16
SORT_KEY_CHARACTERS = 128
"""No parcel has a longer key, and the store refuses calls with one over 1,024 bytes."""


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """`count` is of the whole parcel, so that a delete of all of it needs no reading."""

    source_id: str
    partition: int
    sort_key: str
    place: int
    count: int
    expires_ms: int
    nonce: bytes


def encode(receipt: Receipt) -> str:
    """The receipt as URL-safe text."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(receipt)).decode().rstrip("=")


def decode(text: str) -> Receipt | None:
    """The receipt in `text`; None where we never wrote such a text."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        receipt = decode_packed(packed, Receipt)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    possible = (
        len(receipt.nonce) == NONCE_BYTES
        and 0 <= receipt.place < receipt.count <= 16
        and 0 <= receipt.partition < 256
        and 0 <= receipt.expires_ms < 1 << 53
        and 0 < len(receipt.sort_key) <= SORT_KEY_CHARACTERS
        and receipt.sort_key.isascii()
        and encode(receipt) == text
    )
    return receipt if possible else None


def attempt_nonce(secret: bytes, *parts: str) -> bytes:
    """The nonce that a receive with an `attempt` uses: the same parts, the same nonce."""
    return hmac.digest(secret, "\n".join(parts).encode(), hashlib.sha256)[:NONCE_BYTES]
