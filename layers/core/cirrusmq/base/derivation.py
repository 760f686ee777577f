"""Keys that derive from a key."""

from __future__ import annotations

import hashlib
import hmac


def derive(key: bytes, *parts: str) -> bytes:
    """Returns 32 bytes that derive from a key and texts."""
    return hmac.digest(key, "\n".join(parts).encode(), hashlib.sha256)
