"""An `attempt`: a ULID that names one call, so that the service detects its repetitions.

Source of the format: https://github.com/ulid/spec
"""

from __future__ import annotations

import os

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_ENTROPY_BYTES = 10


def make_attempt(seconds: float) -> str:
    """Returns a new ULID for a time (since the Unix epoch): 26 characters."""
    entropy = int.from_bytes(os.urandom(_ENTROPY_BYTES), "big")
    number = int(seconds * 1000) << 8 * _ENTROPY_BYTES | entropy
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
