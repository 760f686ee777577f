"""ULIDs: 48 bits of milliseconds and 80 bits of entropy in 26 characters of Crockford's base 32.

Source of the format: https://github.com/ulid/spec
"""

from __future__ import annotations

CHARACTERS = 26
TIME_CHARACTERS = 10
ENTROPY_BYTES = 10
LAST_MS = 2**48 - 1
"""The last time that a ULID can have."""
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(10 * (CHARACTERS // 2 - 1), -1, -10)
_LETTERS = frozenset(_ALPHABET)
_TO_PYTHONS = str.maketrans(_ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
"""Python's own base 32 has other letters."""


def encode(time_ms: int, entropy: bytes) -> str:
    """Returns the ULID of `time_ms` (milliseconds since the epoch) and 10 bytes of entropy."""
    number = time_ms << 80 | int.from_bytes(entropy, "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def first(time_ms: int) -> str:
    """Returns the first 10 characters of the ULIDs of a time, which sort as the times do."""
    return encode(time_ms, bytes(ENTROPY_BYTES))[:TIME_CHARACTERS]


def time_of(text: str) -> int:
    """Returns the milliseconds in a ULID, upper or lower case. Raises ValueError if it is none."""
    return _number(text) >> 80


def entropy_of(text: str) -> bytes:
    """Returns the other 10 bytes of a ULID. Raises ValueError if it is none."""
    return (_number(text) & (1 << 80) - 1).to_bytes(ENTROPY_BYTES, "big")


def _number(text: str) -> int:
    if len(text) != CHARACTERS or not text.isascii():
        raise ValueError("a ULID has 26 characters")
    upper = text.upper()
    if not _LETTERS.issuperset(upper):
        raise ValueError(f"{text!r} is not in Crockford's base 32")
    number = int(upper.translate(_TO_PYTHONS), 32)
    if number >> 128:
        raise ValueError("a ULID has 128 bits")
    return number
