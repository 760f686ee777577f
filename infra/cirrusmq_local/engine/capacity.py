"""Consumed capacity, by Amazon's published rules."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
TRANSACTION_FACTOR = 2.0


def write_units(size: int) -> float:
    """Returns the units of a write, at least one. `size`: the larger one of old and new item."""
    return float(max(1, -(-size // WRITE_UNIT_BYTES)))


def read_units(size: int, consistent: bool) -> float:
    """Returns the units of a read of `size` bytes: at least one, half if eventually consistent."""
    units = float(max(1, -(-size // READ_UNIT_BYTES)))
    return units if consistent else units / 2


def consumed(
    request: Mapping[str, Any],
    table: str,
    *,
    read: float = 0.0,
    write: float = 0.0,
    transaction: bool = False,
) -> dict[str, Any] | None:
    """Returns one table's `ConsumedCapacity`, or None if the request does not ask for it."""
    level = request.get("ReturnConsumedCapacity") or "NONE"
    if level == "NONE":
        return None
    units: dict[str, Any] = {"CapacityUnits": read + write}
    if transaction:
        units |= {"ReadCapacityUnits": read} if read else {}
        units |= {"WriteCapacityUnits": write} if write else {}
    answer = {"TableName": table, **units}
    return answer | ({"Table": units} if level == "INDEXES" else {})


class Meter:
    """Counts the units of all requests; requests with a failed condition count, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[tuple[str, str], list[float]] = {}

    def add(self, operation: str, table: str, *, read: float = 0.0, write: float = 0.0) -> None:
        """Counts units of one operation on one table."""
        with self._lock:
            counted = self._calls.setdefault((operation, table), [0.0, 0.0])
            counted[0] += read
            counted[1] += write

    def totals(self) -> dict[str, Any]:
        """Returns `read_units` and `write_units`: in total, `by_operation` and `by_table`."""
        with self._lock:
            calls = {key: tuple(counted) for key, counted in self._calls.items()}
        totals: dict[str, Any] = _units(0.0, 0.0) | {"by_operation": {}, "by_table": {}}
        for (operation, table), (read, write) in calls.items():
            for group in (
                totals,
                totals["by_operation"].setdefault(operation, _units(0.0, 0.0)),
                totals["by_table"].setdefault(table, _units(0.0, 0.0)),
            ):
                group["read_units"] += read
                group["write_units"] += write
        return totals

    def reset(self) -> None:
        """Sets all counts to zero."""
        with self._lock:
            self._calls.clear()


def _units(read: float, write: float) -> dict[str, float]:
    return {"read_units": read, "write_units": write}
