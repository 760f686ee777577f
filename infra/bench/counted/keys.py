"""Counts units of calls of the store by partition key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq_local.testing.world import World


@dataclass(frozen=True)
class Units:
    """Write and read units."""

    writes: float = 0.0
    reads: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.writes + other.writes, self.reads + other.reads)

    def times(self, factor: float) -> Units:
        """Returns both multiplied by a factor."""
        return Units(self.writes * factor, self.reads * factor)


class Keys:
    """Counts the units that calls of the store consume, by partition key."""

    def __init__(self, world: World) -> None:
        self.units: dict[str, Units] = {}
        self._world = world
        self._execute = world.engine.execute
        world.engine.execute = self._count  # type: ignore[method-assign]

    def take(self) -> dict[str, Units]:
        """Returns the units counted since the last call."""
        taken, self.units = self.units, {}
        return taken

    def _count(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        before = self._world.engine.capacity()
        try:
            answer: dict[str, Any] = self._execute(operation, request)
        finally:
            after = self._world.engine.capacity()
            keys = _partition_keys(request)
            used = Units(
                after["write_units"] - before["write_units"],
                after["read_units"] - before["read_units"],
            ).times(1 / max(1, len(keys)))
            for pk in keys:
                self.units[pk] = self.units.get(pk, Units()) + used
        return answer


def _partition_keys(request: Mapping[str, Any]) -> list[str]:
    if "RequestItems" in request:
        held = [each for table in request["RequestItems"].values() for each in table["Keys"]]
        return [each["pk"]["S"] for each in held]
    if "TransactItems" in request:
        parts = [part for item in request["TransactItems"] for part in item.values()]
        return [(part.get("Key") or part["Item"])["pk"]["S"] for part in parts]
    values = request.get("ExpressionAttributeValues", {})
    place = request.get("Key") or request.get("Item") or {"pk": values.get(":pk")}
    return [place["pk"]["S"]] if place["pk"] else []  # a scan, of the tests' own
