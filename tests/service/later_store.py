"""A store into which a later release writes too: all that is new there has what this one lacks.

Each new item gets an attribute, and a document a member. Whatever is written over it must have them
afterwards; what has lost them is noted by the item's kind.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.service.kinds import kind_of

from cirrusmq_local.testing import World

ATTRIBUTE, MEMBER = "of_a_later_release", "ofALaterRelease"
_VALUE = {"M": {"n": {"N": "2"}}}
_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")


class LaterStore:
    """The tables of a world from now on."""

    def __init__(self, world: World) -> None:
        self.written: Counter[str] = Counter()
        """Writes over an item that had what is not known, by its kind."""
        self.lost: Counter[str] = Counter()
        """Those after which it had no longer."""
        self.seen: set[str] = set()
        """The kinds of all items that were written."""
        self._tables = {
            getattr(world.tables, name): name for name in world.tables.__struct_fields__
        }
        self._execute = world.engine.execute
        world.engine.execute = self.execute  # type: ignore[method-assign]

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do a call as the engine does, then look at what it has written."""
        if operation not in _WRITES:
            return self._execute(operation, request)
        places = list(_places(operation, request))
        before = [self._get(table, key) for table, key in places]
        answer = self._execute(operation, request)
        for (table, key), old in zip(places, before, strict=True):
            new = self._get(table, key)
            if new is not None and new != old:
                self._look_at(table, old, new)
        return answer

    def _look_at(self, table: str, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        kind = kind_of(self._tables[table], new)
        self.seen.add(kind.name)
        anew = kind.others and old is not None and old.get("t") != new.get("t")
        if old is not None and not anew and _has_all(old):
            self.written[kind.name] += 1
            if _has_all(new):
                return
            self.lost[kind.name] += 1
        if not _has_all(new):
            self._execute("PutItem", {"TableName": table, "Item": _with_all(new)})

    def _get(self, table: str, key: Mapping[str, Any]) -> dict[str, Any] | None:
        request = {"TableName": table, "Key": key, "ConsistentRead": True}
        found: dict[str, Any] | None = self._execute("GetItem", request).get("Item")
        return found


def _places(operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Table and key of each item that a call writes."""
    writes = [request]
    if operation == "TransactWriteItems":
        writes = [
            each
            for write in request["TransactItems"]
            for kind, each in write.items()
            if kind != "ConditionCheck"
        ]
    for each in writes:
        key = each.get("Key") or {name: each["Item"][name] for name in ("pk", "sk")}
        yield each["TableName"], key


def _has_all(item: Mapping[str, Any]) -> bool:
    held = item.get(ATTRIBUTE) == _VALUE
    return held and ("document" not in item or MEMBER in json.loads(item["document"]["S"]))


def _with_all(item: dict[str, Any]) -> dict[str, Any]:
    made = {**item, ATTRIBUTE: _VALUE}
    if "document" in item:
        document = {**json.loads(item["document"]["S"]), MEMBER: {"depth": 1}}
        made["document"] = {"S": json.dumps(document)}
    return made
