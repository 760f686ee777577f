"""Bodies of messages: random letters, JSON records, and random bytes."""

from __future__ import annotations

import base64
import json as formats
import random
from typing import Any

_RANDOM = random.Random(7)
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def text(size: int) -> dict[str, Any]:
    """Returns a message of `size` random letters and digits, which compress to two thirds."""
    return {"body": "".join(_RANDOM.choices(_CHARACTERS, k=size))}


def json(size: int) -> dict[str, Any]:
    """Returns a message of JSON records, cut to `size` bytes, which compress to a seventh."""
    records: list[dict[str, Any]] = []
    while len(formats.dumps(records)) < size:
        records.append(
            {
                "order_id": f"{_RANDOM.getrandbits(48):012x}",
                "customer": f"customer-{_RANDOM.randrange(10_000)}",
                "status": _RANDOM.choice(["created", "paid", "shipped", "returned"]),
                "amount_cents": _RANDOM.randrange(100_000),
                "currency": "EUR",
                "created_at": f"2026-11-{_RANDOM.randrange(1, 31):02}T08:00:00Z",
            }
        )
    return {"body": formats.dumps(records)[:size]}


def binary(size: int) -> dict[str, Any]:
    """Returns a message of random bytes."""
    return {"body_base64": base64.b64encode(_RANDOM.randbytes(size)).decode()}
