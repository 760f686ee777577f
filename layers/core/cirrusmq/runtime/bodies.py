"""Objects that hold the messages of large sends: bytes under keys that only this service makes."""

from __future__ import annotations

from typing import Protocol


class Bodies(Protocol):
    """The bucket. Every method raises Unavailable where the bucket gives no answer in time."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object, or write it over; it is durable when this returns."""
        ...

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Its bytes from `start` to before `end`, or to its end; None where there is no object."""
        ...

    def copy(self, source: str, key: str) -> bool:
        """Copy it to another key, or onto itself, which begins its life anew; whether it exists."""
        ...
