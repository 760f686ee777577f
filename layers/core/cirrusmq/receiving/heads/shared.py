"""Marks of heads in the store: one item for each partition in which reading past leases costs.

    A scan that finds a part of the mark due does a conditional write. The winner scans and
    writes the mark; the others use the old mark in the meantime:

    A   due? ── lease ok ───────── scans ────────── writes the mark
    B   due?       lease refused ── begins at the old mark ....... begins at the new one

    A dies during its scan: its lease ends, and the next receiver that finds the mark due scans.

Every write has the version that was read as its condition (optimistic locking), so that two scans
never undo each other's result. A mark only saves units: a scan works without it, too.
"""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.receiving.heads import watermark
from cirrusmq.receiving.heads.items import delete_mark, mark_key, put_mark, read_mark
from cirrusmq.receiving.heads.memory import HeadMemory, KnownMark
from cirrusmq.receiving.heads.watermark import HeadMark, ScannedRange, ScanStart
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item

_CACHED_MS, _FRESH_MS = 250, 20
"""Age from which a copy is read again, and the age if something in it is due: to read it costs half
a unit, a write that is refused a whole one."""
_TRIES = 3


def begin(core: Core, head: str) -> ScanStart:
    """Returns how a scan of a crowded head should begin."""
    now_ms = core.now_ms()
    known = _read(core, head, now_ms)
    return ScanStart() if known.mark is None else _begin(core, head, known, known.mark, now_ms)


def meet(core: Core, head: str, approach: ScanStart) -> ScanStart:
    """Returns the next step of a scan that cost more than a unit and found nothing to claim."""
    now_ms = core.now_ms()
    if approach.role != "none" or approach.place == "young":
        return approach
    if approach.place == "before":
        return _look_at_young(core, head, approach.mark, now_ms)
    if approach.place == "cursor":
        mark = approach.mark
        leased = None
        if now_ms >= mark.lease_ms:
            leased = _write(core, head, mark, watermark.go_on_with_pass(mark, now_ms), now_ms)
        if leased is not None:
            return ScanStart(start=mark.cursor, place="cursor", role="pass", mark=leased)
        return _begin_beyond(core, head, _latest(core, head) or mark, 1.0, now_ms)
    known = _read(core, head, now_ms)
    if known.mark is not None:
        return _begin(core, head, known, known.mark, now_ms)
    return _begin_pass(core, head, HeadMark(), now_ms) or approach


def tell(core: Core, head: str, approach: ScanStart, stretch: ScannedRange) -> None:
    """Writes the result of a scan to the mark, if the scan holds one of its leases."""
    seen, now_ms = approach.mark, stretch.begun_ms
    mark: HeadMark | None = seen
    for _ in range(_TRIES if approach.role != "none" else 0):
        if mark is None:
            return
        after: HeadMark | None
        if approach.role == "young":
            if mark.begun_ms != seen.begun_ms or mark.before < seen.before:
                return  # another pass has begun, which knows better
            after = watermark.after_young(mark, stretch)
        else:
            if mark.lease_ms != seen.lease_ms:
                return  # it took so long that another receiver continues the pass
            after = watermark.after_pass(mark, approach.start, stretch)
        if after is None and _remove(core, head, mark, now_ms):
            return
        if after is not None and _write(core, head, mark, after, now_ms) is not None:
            return
        mark = _latest(core, head)


def _begin(core: Core, head: str, known: KnownMark, mark: HeadMark, now_ms: int) -> ScanStart:
    if watermark.due(mark, now_ms, known.jitter) and now_ms >= mark.lease_ms:
        begun = _begin_pass(core, head, mark, now_ms)
        if begun is not None:
            return begun
        mark = _latest(core, head) or mark
    if mark.cursor:
        return ScanStart(start=mark.cursor, place="cursor", mark=mark)
    return _begin_beyond(core, head, mark, known.jitter, now_ms)


def _begin_pass(core: Core, head: str, mark: HeadMark, now_ms: int) -> ScanStart | None:
    """Takes the lease of a pass from the beginning. Returns None if another receiver has it."""
    leased = _write(core, head, mark, watermark.begin_pass(mark, now_ms), now_ms)
    return None if leased is None else ScanStart(role="pass", mark=leased)


def _begin_beyond(core: Core, head: str, mark: HeadMark, jitter: float, now_ms: int) -> ScanStart:
    if not mark.young:
        return ScanStart(start=mark.before, place="before", mark=mark)
    if watermark.young_due(mark, now_ms, jitter):
        return _look_at_young(core, head, mark, now_ms)
    return ScanStart(start=mark.beyond(now_ms), place="young", mark=mark)


def _look_at_young(core: Core, head: str, mark: HeadMark, now_ms: int) -> ScanStart:
    """Takes the lease of the part behind `before`, or begins at the end of another's scan."""
    leased = _write(core, head, mark, watermark.look_at_young(mark, now_ms), now_ms)
    if leased is not None:
        return ScanStart(start=leased.before, place="before", role="young", mark=leased)
    mark = _latest(core, head) or mark
    return ScanStart(start=mark.beyond(now_ms), place="young", mark=mark)


def _read(core: Core, head: str, now_ms: int) -> KnownMark:
    known = core.memory(HeadMemory).known_mark(head)
    if known is not None:
        mark = known.mark
        due = mark is not None and watermark.anything_due(mark, now_ms)
        if 0 <= now_ms - known.read_ms <= (_FRESH_MS if due else _CACHED_MS):
            return known
    key = mark_key(head)
    try:
        found = core.store.get_many(core.tables.messages, [key], consistent=False)
    except Unavailable:
        return known or KnownMark(None, now_ms, 0.0)
    return _know(core, head, found.get(key), now_ms)


def _know(core: Core, head: str, met: Item | HeadMark | None, now_ms: int) -> KnownMark:
    mark = met if met is None or isinstance(met, HeadMark) else read_mark(met)
    return core.memory(HeadMemory).know(head, KnownMark(mark, now_ms, core.random.random()))


def _latest(core: Core, head: str) -> HeadMark | None:
    """Returns the mark that this environment read last, or that refused its last write."""
    known = core.memory(HeadMemory).known_mark(head)
    return None if known is None else known.mark


def _write(core: Core, head: str, seen: HeadMark, after: HeadMark, now_ms: int) -> HeadMark | None:
    """Puts a mark over the one read. Returns None if another is stored, or the store refuses."""
    after = replace(after, version=seen.version + 1)
    try:
        core.store.write("PutItem", put_mark(core.tables.messages, head, after, now_ms))
    except ConditionFailed as failed:
        met = _know(core, head, failed.item, now_ms).mark
        return after if met == after else None  # our own, sent twice
    except Unavailable:
        return None
    _know(core, head, after, now_ms)
    return after


def _remove(core: Core, head: str, seen: HeadMark, now_ms: int) -> bool:
    try:
        core.store.write("DeleteItem", delete_mark(core.tables.messages, head, seen.version))
    except ConditionFailed as failed:
        _know(core, head, failed.item, now_ms)
        return False
    except Unavailable:
        return True  # TTL removes it
    _know(core, head, None, now_ms)
    return True
