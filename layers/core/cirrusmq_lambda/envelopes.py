"""What a function answers to the HTTP API (payload format 2.0): small enough to arrive.

Lambda's runtime encodes the answer once more, as JSON in ASCII: of a body that is text a quote
takes 4 bytes then, a Chinese character 6 for its 3. Base64 has nothing to escape.
"""

from __future__ import annotations

import base64
from typing import Any

from cirrusmq.base.limits import TEXT_ANSWER_BYTES


def envelope(status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """The answer with this body, of UTF-8 text; in base64 where it is large."""
    large = len(body) > TEXT_ANSWER_BYTES
    return {
        "statusCode": status,
        "headers": headers,
        "body": base64.b64encode(body).decode() if large else body.decode(),
        "isBase64Encoded": large,
    }
