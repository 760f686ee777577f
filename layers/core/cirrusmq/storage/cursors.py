"""Cursors of listings: opaque, bound to one listing, and tamper-proof.

No key has a line break. A later release may write text behind a key: it is signed with the rest,
and ignored here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.base.formats import known_part
from cirrusmq.runtime.core import Core

FURTHER = "\n"
_MAC_BYTES = 12


def make(core: Core, after: str, *listing: str) -> str:
    """Returns a URL-safe cursor that continues after the key `after` of a listing."""
    content = after.encode()
    return _text(_mac(core.secret.signing_key(), content, listing), content)


def read(core: Core, cursor: str | None, *listing: str) -> str | None:
    """Returns the key in a cursor that `make` made for the same listing; None for None.

    Raises InvalidParameter for any other cursor, and Unavailable if a generation of the secret may
    be in use that cannot be read now, or if a later release made the cursor in a higher format.
    """
    if cursor is None:
        return None
    try:
        decoded = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        mac, content = decoded[:_MAC_BYTES], decoded[_MAC_BYTES:]
        # A rotation of the secret breaks no listing that is being read.
        for key in core.secret.accepted_keys():
            if hmac.compare_digest(mac, _mac(key, content, listing)):
                after = content.decode()
                if _text(mac, content) == cursor:
                    return known_part(after, FURTHER, "cursor")
    except (binascii.Error, ValueError):
        pass
    if core.secret.is_outdated():
        raise Unavailable
    raise InvalidParameter("cursor", "must be one that this listing answered")


def _text(mac: bytes, content: bytes) -> str:
    return base64.urlsafe_b64encode(mac + content).decode().rstrip("=")


def _mac(key: bytes, content: bytes, listing: tuple[str, ...]) -> bytes:
    bound = "\n".join(("cursor", *listing, "")).encode() + content
    return hmac.digest(key, bound, hashlib.sha256)[:_MAC_BYTES]
