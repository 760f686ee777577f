"""Signatures of deliveries, by Standard Webhooks.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

PREFIX = "whsec_"
TOLERANCE_SECONDS = 300


def read_secret(text: str) -> bytes:
    """Returns the key in a `whsec_…`. Raises ValueError if the text is none."""
    try:
        return base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"a secret is {PREFIX} and base64") from error


def is_signed(
    secret: bytes, headers: Mapping[str, str], body: bytes, now: float | None = None
) -> bool:
    """Returns True if one of the signatures is valid, and made within 5 minutes of now."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        return False
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.digest(secret, signed, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split()
    return any(
        hmac.compare_digest(each.removeprefix(b"v1,"), expected)
        for each in given
        if each.startswith(b"v1,")
    )
