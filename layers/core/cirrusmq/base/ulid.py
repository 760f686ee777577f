"""ULIDs: 48 bits of milliseconds and 80 bits of entropy in 26 characters of Crockford's base 32.

Source of the format: https://github.com/ulid/spec
"""

from __future__ import annotations

CHARACTERS = 26
ENTROPY_BYTES = 10
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}


def encode(time_ms: int, entropy: bytes) -> str:
    """The ULID of `time_ms` (milliseconds since the epoch) and 10 bytes of entropy."""
    number = time_ms << 80 | int.from_bytes(entropy, "big")
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in range(CHARACTERS - 1, -1, -1))


def time_of(text: str) -> int:
    """Milliseconds in a ULID, upper or lower case; ValueError where `text` is none."""
    if len(text) != CHARACTERS or not text.isascii():
        raise ValueError("a ULID has 26 characters")
    number = 0
    for character in text.upper():
        if character not in _VALUES:
            raise ValueError(f"{character!r} is not in Crockford's base 32")
        number = number << 5 | _VALUES[character]
    if number >> 128:
        raise ValueError("a ULID has 128 bits")
    return number >> 80
