"""Reads the header `Range` with one range of bytes, as S3 does."""

from __future__ import annotations

import re

_RANGE = re.compile(r"bytes=(?:(\d+)-(\d*)|-(\d+))")


class UnsatisfiableError(Exception):
    """No byte of the object is in the range."""


def read_range(text: str | None, size: int) -> tuple[int, int] | None:
    """Returns the index of the first byte and of the byte behind the last, or None for all bytes.

    A header that is no range is ignored. Raises UnsatisfiableError if the object has no such byte.
    """
    match = _RANGE.fullmatch(text or "")
    if match is None:
        return None
    first, last, final = match.groups()
    if final:
        if not int(final):
            raise UnsatisfiableError
        return None if not size else (max(0, size - int(final)), size)
    begin, end = int(first), int(last) + 1 if last else size
    if begin >= size:
        raise UnsatisfiableError
    return None if end <= begin else (begin, min(end, size))
