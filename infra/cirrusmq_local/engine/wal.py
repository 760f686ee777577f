"""Checks SQLite's write-ahead log for damage before SQLite opens it.

SQLite takes the transactions of the log (`-wal`) up to the first frame whose checksum is wrong, and
drops the rest silently. After a kill that is right: frames are written one after the other, so the
last frame of the log's generation may be cut. A wrong frame that is followed by frames of its
generation was complete once, and its content was answered as stored:

    killed     ok  ok  ok  wrong | frames of an older generation, which have other salts
    damaged    ok  ok  wrong  ok  ok  ok

Damage to the very last frame looks like a kill. After a loss of power, the frames of the one
transaction that was not synced may be there in any order, which looks like damage: the copy that is
kept then holds nothing that was answered.
"""

from __future__ import annotations

import shutil
import struct
import sys
from array import array
from pathlib import Path
from typing import NamedTuple

_MAGIC = (0x377F0682, 0x377F0683)
"""First words of logs with little-endian checksums, and with big-endian checksums."""
_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_WORD = 0xFFFFFFFF
_Sums = tuple[int, int]


class Damage(NamedTuple):
    """A log that SQLite would not take to its end."""

    frame: int
    """Number of the first wrong frame, from 1, or 0 if the log's header is wrong."""
    lost_frames: int
    """Number of frames that SQLite drops: the wrong frame and the later ones of its generation."""


def find_damage(log: Path) -> Damage | None:
    """Returns the damage of a log, or None if it is whole, cut at its end, empty or not there."""
    try:
        data = log.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < _HEADER_BYTES + _FRAME_HEADER_BYTES:
        return None
    magic, _, page_bytes, _, salt, sums = _read_header(data)
    frame_bytes = _FRAME_HEADER_BYTES + (page_bytes if 512 <= page_bytes <= 65_536 else 0)
    frames = (len(data) - _HEADER_BYTES) // frame_bytes
    swapped = (magic == _MAGIC[1]) != (sys.byteorder == "big")
    if magic not in _MAGIC or _add((0, 0), data[:24], swapped=swapped) != sums:
        return Damage(0, frames)
    starts = range(_HEADER_BYTES, _HEADER_BYTES + frames * frame_bytes, frame_bytes)
    own = [data[start + 8 : start + 16] == salt for start in starts]
    last = max((number for number, is_own in enumerate(own, 1) if is_own), default=0)
    for number, start in enumerate(starts[:last], 1):
        page = data[start + _FRAME_HEADER_BYTES : start + frame_bytes]
        sums = _add(_add(sums, data[start : start + 8], swapped=swapped), page, swapped=swapped)
        if not own[number - 1] or struct.unpack_from(">2I", data, start + 16) != sums:
            return None if number == last else Damage(number, last - number + 1)
    return None


def keep_aside(log: Path, now_ms: int) -> Path:
    """Copies a log before SQLite overwrites it. Returns the copy's path. Raises OSError."""
    copy = log.with_name(f"{log.name}.damaged-{now_ms}")
    shutil.copyfile(log, copy)
    return copy


def _read_header(data: bytes) -> tuple[int, int, int, int, bytes, _Sums]:
    magic, version, page_bytes, sequence = struct.unpack_from(">4I", data)
    return magic, version, page_bytes, sequence, data[16:24], struct.unpack_from(">2I", data, 24)


def _add(sums: _Sums, data: bytes, *, swapped: bool) -> _Sums:
    """Returns SQLite's checksum of `sums` and of the data, eight bytes at a time."""
    words = array("I", data)
    if swapped:
        words.byteswap()
    first, second = sums
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & _WORD
        second = (second + words[index + 1] + first) & _WORD
    return first, second
