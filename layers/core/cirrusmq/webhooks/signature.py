"""Standard Webhooks signatures: a subscriber can tell the service's requests from all others.

Source: https://github.com/standard-webhooks/standard-webhooks, its symmetric scheme `v1`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 24


def secret_of(key: bytes) -> str:
    """Returns the text of a secret: `whsec_` and the base64 of the first 24 bytes of `key`."""
    return SECRET_PREFIX + base64.b64encode(key[:SECRET_BYTES]).decode()


def sign(secret: str, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """Returns the value of `webhook-signature`: `v1,` and base64 of an HMAC-SHA256.

    A full stop separates the three signed parts, so `webhook_id` must not have one.
    """
    signed = b".".join((webhook_id.encode(), str(timestamp_s).encode(), body))
    mac = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(mac).decode()}"


def headers(
    secrets: Sequence[str], webhook_id: str, timestamp_s: int, body: bytes
) -> dict[str, str]:
    """Returns the three headers of a request that is signed by each of the secrets."""
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(
            sign(secret, webhook_id, timestamp_s, body) for secret in secrets
        ),
    }


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
