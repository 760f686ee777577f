"""Objects that hold the messages of large sends: bytes under keys that only this service makes."""

from __future__ import annotations

from typing import Protocol


class Bodies(Protocol):
    """The bucket. Every method raises Unavailable if the bucket gives no answer in time."""

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, also over an older one; it is durable when this returns."""
        ...

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Returns its bytes from `start` to before `end` or its end, or None without an object."""
        ...

    def copy(self, source: str, key: str) -> bool:
        """Copies it to another key, or onto itself, which restarts its life. False if missing."""
        ...
