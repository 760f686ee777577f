"""Bodies of messages: text that compresses as random letters do, and bytes that do not at all."""

from __future__ import annotations

import base64
import random
from typing import Any

_RANDOM = random.Random(7)
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def text(size: int) -> dict[str, Any]:
    """A message of so many random letters and digits: ours compresses them to about two thirds."""
    return {"body": "".join(_RANDOM.choices(_CHARACTERS, k=size))}


def binary(size: int) -> dict[str, Any]:
    """A message of random bytes."""
    return {"body_base64": base64.b64encode(_RANDOM.randbytes(size)).decode()}
