"""A receipt: the opaque text by which the holder of a message names it.

It has the message's index and the lease's nonce. Every field is compared with the
store in the condition of the write that it asks for, so a forged or changed receipt finds nothing.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from cirrusmq.base.formats import check_fields
from cirrusmq.base.shapes import decode_packed

NONCE_BYTES = 16
_DRAWN_BYTES = 12
SORT_KEY_CHARACTERS = 128
"""No parcel has a longer key, and the store refuses calls with one over 1,024 bytes."""


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """`count` is of the whole parcel, so that a delete of all of it needs no reading.

    A new field is at the end, and has a default.
    """

    source_id: str
    partition: int
    sort_key: str
    place: int
    count: int
    expires_ms: int
    nonce: bytes


def encode(receipt: Receipt) -> str:
    """Returns the receipt as URL-safe text."""
    return _text(receipt)


def decode(text: str) -> Receipt | None:
    """Returns the receipt in `text`, or None if we never wrote such a text.

    Fields behind these are of a later release, and are ignored. Raises Unavailable if one of them
    is a higher format.
    """
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
        and (encode(receipt) == text or _has_further_fields(receipt, packed, text))
    )
    return receipt if possible else None


def _has_further_fields(receipt: Receipt, packed: bytes, text: str) -> bool:
    """Returns True if a later release writes such a text: these fields and more, in one form."""
    try:
        further = msgspec.msgpack.decode(packed)[len(Receipt.__struct_fields__) :]
        same = _text([*msgspec.structs.astuple(receipt), *further]) == text
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return False  # the ignored part is no MessagePack, or nothing that we write
    if same:
        check_fields(further, "receipt")
    return same


def _text(fields: object) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(fields)).decode().rstrip("=")


def lease_nonce(drawn: bytes, until_ms: int) -> bytes:
    """Returns the nonce of a lease: 12 bytes of `drawn`, then the whole seconds of its end."""
    return drawn[:_DRAWN_BYTES] + (until_ms // 1000).to_bytes(NONCE_BYTES - _DRAWN_BYTES, "big")


def same_lease(nonce: bytes, drawn: bytes) -> bool:
    """Returns True if a lease's nonce was made of `drawn`, whenever the lease ends."""
    return nonce[:_DRAWN_BYTES] == drawn[:_DRAWN_BYTES]


def lease_end_ms(nonce: bytes) -> int:
    """Returns the end of the lease as it was granted, up to a second early."""
    return 1000 * int.from_bytes(nonce[_DRAWN_BYTES:], "big")
