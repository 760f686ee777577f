"""Stores objects by key: in memory, or in a folder with a file for each.

A file has a header of 12 bytes (time of the write, and a checksum), then the object. Before a write
is answered, the file is written in another place, synced and renamed, and its folder is synced:

    killed   before the rename   the previous object, or none; the next start removes the file
             after the rename    the new object, complete

`d01/1f3/a b` is the file `d01/1f3%2Fa%20b`: there is one folder for each prefix.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

_HEAD = struct.Struct(">QI")
_WRITING = ".writing"
"""The folder of unfinished files; no prefix begins with a dot."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object without its content."""

    size: int
    written_ms: int
    checksum: int
    """CRC-32 of the content."""


class DamagedError(Exception):
    """The content does not match its checksum."""


class Objects(Protocol):
    """Objects by key; each is complete or absent."""

    def put(self, key: str, data: bytes, written_ms: int) -> Found:
        """Writes or overwrites an object, which is durable when this returns."""
        ...

    def find(self, key: str) -> Found | None:
        """Returns the object of a key, or None if it does not exist."""
        ...

    def read(self, key: str) -> tuple[Found, bytes] | None:
        """Returns an object with its content, or None. Raises DamagedError."""
        ...

    def remove_if(self, key: str, is_over: Callable[[Found], bool]) -> None:
        """Removes an object if `is_over` returns True for its present version."""
        ...

    def keys(self) -> Iterator[str]:
        """Yields all keys in any order; keys that change during the iteration may be missing."""
        ...


class MemoryObjects:
    """Objects in the memory of this process."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Found, bytes]] = {}
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes, written_ms: int) -> Found:
        """As `Objects`."""
        found = Found(len(data), written_ms, zlib.crc32(data))
        with self._lock:
            self._held[key] = found, data
        return found

    def find(self, key: str) -> Found | None:
        """As `Objects`."""
        held = self._held.get(key)
        return held[0] if held else None

    def read(self, key: str) -> tuple[Found, bytes] | None:
        """As `Objects`."""
        return self._held.get(key)

    def remove_if(self, key: str, is_over: Callable[[Found], bool]) -> None:
        """As `Objects`."""
        with self._lock:
            held = self._held.get(key)
            if held and is_over(held[0]):
                del self._held[key]

    def keys(self) -> Iterator[str]:
        """As `Objects`."""
        return iter(list(self._held))


class FolderObjects:
    """Objects in a folder, which is made if it is missing. Raises OSError.

    One process at a time may use the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writing = folder / _WRITING
        self._lock = threading.Lock()
        """Held while a file is renamed or removed."""
        self._made: set[Path] = set()
        self._written = 0
        if not folder.exists():
            folder.mkdir(mode=0o700)
            _sync(folder.parent)
        self._writing.mkdir(mode=0o700, exist_ok=True)
        for left in self._writing.iterdir():
            left.unlink()

    def put(self, key: str, data: bytes, written_ms: int) -> Found:
        """As `Objects`; raises OSError."""
        found = Found(len(data), written_ms, zlib.crc32(data))
        path = self._path(key)
        self._make(path.parent)
        with self._lock:
            self._written += 1
            beside = self._writing / str(self._written)
        try:
            _write(beside, _HEAD.pack(written_ms, found.checksum), data)
            with self._lock:
                beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _sync(path.parent)
        return found

    def find(self, key: str) -> Found | None:
        """As `Objects`; raises OSError."""
        try:
            with self._path(key).open("rb") as file:
                return _found(file.read(_HEAD.size), os.fstat(file.fileno()).st_size)
        except FileNotFoundError:
            return None

    def read(self, key: str) -> tuple[Found, bytes] | None:
        """As `Objects`; raises OSError."""
        try:
            raw = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        found, data = _found(raw[: _HEAD.size], len(raw)), raw[_HEAD.size :]
        if zlib.crc32(data) != found.checksum:
            raise DamagedError(f"{self._path(key)} is damaged")
        return found, data

    def remove_if(self, key: str, is_over: Callable[[Found], bool]) -> None:
        """As `Objects`; raises OSError."""
        with self._lock:
            found = self.find(key)
            if found and is_over(found):
                self._path(key).unlink()

    def keys(self) -> Iterator[str]:
        """As `Objects`; raises OSError."""
        with os.scandir(self._folder) as folders:
            prefixes = [each.name for each in folders if not each.name.startswith(".")]
        for prefix in prefixes:
            with os.scandir(self._folder / prefix) as files:
                for file in files:
                    yield f"{unquote(prefix)}/{unquote(file.name)}"

    def _path(self, key: str) -> Path:
        prefix, _, rest = key.partition("/")
        return self._folder / _name(prefix) / _name(rest)

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync(self._folder)
            self._made.add(folder)


def _name(part: str) -> str:
    return quote(part, safe="").replace(".", "%2E")


def _found(head: bytes, size: int) -> Found:
    if len(head) < _HEAD.size:
        raise DamagedError("a file of the bucket is too short")
    return Found(size - _HEAD.size, *_HEAD.unpack(head))


def _write(path: Path, head: bytes, data: bytes) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(opened, "wb", buffering=0) as file:
        for part in (head, data):
            view = memoryview(part)
            while view:
                view = view[file.write(view) :]
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Makes the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
