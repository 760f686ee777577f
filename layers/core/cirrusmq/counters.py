"""How much a resource keeps, by the meter's counters: near enough for limits and large counts."""

from __future__ import annotations

from typing import NamedTuple

from cirrusmq.core import Core


class Kept(NamedTuple):
    """Messages not yet deleted, their bytes, and messages that can be rewound."""

    messages: int
    bytes: int
    rewindable: int


def counter_place(resource_id: str) -> tuple[str, str]:
    """Key of a resource's counter in the Usage table."""
    return f"C#{resource_id}", "kept"


def read_kept(core: Core, resource_id: str) -> Kept:
    """The counter of a queue, receiver or subscription, as the meter last left it."""
    item = core.store.get(core.tables.usage, *counter_place(resource_id)) or {}
    return Kept(*(max(0, int(item.get(name, {"N": "0"})["N"])) for name in Kept._fields))


def kept(core: Core, resource_id: str) -> int:
    """Messages kept, at most one minute out of date."""
    return core.slow_cache.get(("kept", resource_id), lambda: read_kept(core, resource_id).messages)
