"""Verifies a post of the service, as the manual shows it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the service posted this; the names of `headers` are in lower case."""
    sent = headers.get("webhook-timestamp", "")
    if not sent.isdecimal() or abs(time.time() - int(sent)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id')}.{sent}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(each, expected) for each in given)
