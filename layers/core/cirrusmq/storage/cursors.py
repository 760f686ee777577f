"""Cursors of listings: opaque, bound to one listing, and tamper-proof."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.runtime.core import Core

_MAC_BYTES = 12


def make(core: Core, after: str, *listing: str) -> str:
    """A URL-safe cursor that continues after the key `after` of a listing."""
    content = after.encode()
    return base64.urlsafe_b64encode(_mac(core, content, listing) + content).decode().rstrip("=")


def read(core: Core, cursor: str | None, *listing: str) -> str | None:
    """The key in a cursor that `make` made for the same listing; InvalidParameter otherwise."""
    if cursor is None:
        return None
    try:
        decoded = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        mac, content = decoded[:_MAC_BYTES], decoded[_MAC_BYTES:]
        if hmac.compare_digest(mac, _mac(core, content, listing)):
            after = content.decode()
            if make(core, after, *listing) == cursor:
                return after
    except (binascii.Error, ValueError):
        pass
    raise InvalidParameter("cursor", "must be a cursor that this listing answered")


def _mac(core: Core, content: bytes, listing: tuple[str, ...]) -> bytes:
    bound = "\n".join(("cursor", *listing, "")).encode() + content
    return hmac.digest(core.secret(), bound, hashlib.sha256)[:_MAC_BYTES]
