"""What must hold of every write of a lease, a head's mark and a delivery state: by the stream.

lease            A: until 12:00 ──────── 11:59 B takes it: unlawful; 12:02 B takes it: lawful
mark of a head   each write over it raises its version by one
delivery state   `starts`, `generation` and `late` never fall
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Item = Mapping[str, Any]
_ENDS = ("held_until", "held_until_ms")
_NEVER_FALL = ("starts", "generation", "late")


def faults(before: Item | None, after: Item | None, latest_ms: int) -> Iterator[str]:
    """Why a write of an item that is no parcel is unlawful.

    latest_ms: when it was written, by the clock that is ahead of all others.
    """
    item = after or before or {}
    kind = item["pk"]["S"].partition("#")[0]
    if before is None or after is None:
        return
    if "holder" in before and "holder" in after and before["holder"] != after["holder"]:
        ends_ms = max((int(before[name]["N"]) for name in _ENDS if name in before), default=0)
        if ends_ms >= latest_ms:
            yield "a lease was taken that another worker had"
    marks = kind == "H" and item["sk"]["S"].startswith("H")
    if marks and _number(after, "v") != _number(before, "v") + 1:
        yield "the mark of a head has not the next version"
    if kind == "S":
        for name in _NEVER_FALL:
            if _number(after, name) < _number(before, name):
                yield f"{name} of a delivery state fell"


def _number(item: Item, name: str) -> int:
    return int(item.get(name, {"N": "0"})["N"])
