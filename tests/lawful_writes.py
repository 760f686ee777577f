"""Judges every write of a parcel that a test made: by the stream, which has both images of each.

A write must be a step of `model.steps`. A message that leaves its parcel must arrive in another one
in the same commit, which no image alone shows:

    one commit   REMOVE parcel 1 [a]      INSERT parcel 2 [a]      moved
                 REMOVE parcel 1 [a]                               only if held, expired or purged

The engine tells where commits end, so that two of the same millisecond are two.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

import msgspec
from tests import lawful_items

from cirrusmq.base import limits
from cirrusmq.model.parcel import GONE, MOVED, Parcel
from cirrusmq.model.steps import step_of, stored, unlawful
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import PARCELS, read_parcel
from cirrusmq_local.engine import Engine
from cirrusmq_local.engine.changes import StreamRecord
from cirrusmq_local.testing import World

_PAGE = 1_000


class Judged:
    """The writes of a run: the steps that were taken, by name, and what was unlawful."""

    def __init__(self, lawful: set[Hashable] | None = None) -> None:
        """lawful: commits that were judged before, and found lawful; they are not judged again."""
        self.steps: Counter[str] = Counter()
        self.faults: list[str] = []
        self._lawful = lawful

    def judge(self, engine: Engine, table: str, after: int = 0, purged_ms: int = 0) -> None:
        """Judge the writes behind a position of the table's stream.

        purged_ms: the newest purge of any queue; what was sent until then may be removed.
        """
        ends = engine.commit_ends(table)
        commits = itertools.groupby(
            read_all(engine, table, after), key=lambda each: bisect_left(ends, each.sequence)
        )
        for _, commit in commits:
            records = list(commit)
            at_ms = records[0].approximate_creation_ms
            known = (at_ms, purged_ms, *(each.stored for each in records))
            if self._lawful is not None and known in self._lawful:
                continue
            self._judge_records(records, at_ms, purged_ms)
            if self._lawful is not None and not self.faults:
                self._lawful.add(known)

    def _judge_records(self, records: list[StreamRecord], at_ms: int, purged_ms: int) -> None:
        """Judge one commit."""
        parcels = []
        for each in records:
            if _of_parcel(each):
                parcels.append(_images(each))
            else:
                self._judge_other(each)
        self._judge_commit(at_ms, parcels, purged_ms)

    def _judge_other(self, record: StreamRecord) -> None:
        latest_ms = record.approximate_creation_ms + limits.CLOCK_SKEW_MS
        keys = record.keys
        for fault in lawful_items.faults(record.old_image, record.new_image, latest_ms):
            self.faults.append(f"{keys['pk']['S']} {keys['sk']['S']}: {fault}")

    def _judge_commit(
        self, at_ms: int, changes: list[tuple[Parcel | None, Parcel | None, bool]], purged_ms: int
    ) -> None:
        arrived = {each for before, after, _ in changes if after for each in _new(before, after)}
        for before, after, by_ttl in changes:
            fault = unlawful(before, after, at_ms + limits.CLOCK_SKEW_MS)
            if fault is not None:
                self.faults.append(_line(before, after, fault))
            if before is None:
                self.steps["put"] += 1
            elif after is None:
                self._judge_removal(before, arrived, at_ms, purged_ms, by_ttl=by_ttl)
            elif before.sent_ms != after.sent_ms:
                self.steps["put over"] += 1
            else:
                self._judge_change(before, after, arrived, at_ms + limits.CLOCK_SKEW_MS)

    def _judge_change(
        self, before: Parcel, after: Parcel, arrived: set[str], latest_ms: int
    ) -> None:
        for place in range(before.count):
            name = step_of(stored(before, place), stored(after, place), latest_ms)
            if name:
                self.steps[name] += 1
            message_id = after.message_id(place)
            if name == "moved" and message_id not in arrived:
                self.faults.append(_line(before, after, f"{message_id} arrived nowhere"))

    def _judge_removal(
        self, before: Parcel, arrived: set[str], at_ms: int, purged_ms: int, *, by_ttl: bool
    ) -> None:
        live = [place for place in range(before.count) if before.live(place)]
        lost = [each for each in map(before.message_id, live) if each not in arrived]
        if not live:
            self.steps["emptied"] += 1
        elif by_ttl or at_ms >= before.expires_ms:
            self.steps["expired"] += 1
        elif not lost:
            self.steps["left"] += 1
        elif before.sent_ms <= purged_ms:
            self.steps["purged"] += 1
        elif all(before.nonces[place] for place in live):
            self.steps["deleted whole"] += 1
        else:
            self.faults.append(_line(before, None, f"{', '.join(lost)} vanished"))


def judge(world: World) -> Judged:
    """Judge all writes of a world."""
    judged, tables = Judged(), world.tables
    judged.judge(world.engine, tables.messages, purged_ms=newest_purge_ms(world.items("directory")))
    return judged


def read_all(engine: Engine, table: str, after: int = 0) -> Iterator[StreamRecord]:
    """The changes of a table behind a position of its stream."""
    while page := engine.read_stream(table, after, _PAGE):
        yield from page
        after = page[-1].sequence


def newest_purge_ms(directory: Iterable[Item]) -> int:
    """The newest purge of any queue, of the Directory's items; 0 if there was none."""
    queues = [each for each in directory if each["sk"]["S"].startswith("queue#")]
    documents = [msgspec.json.decode(each["document"]["S"]) for each in queues]
    return max((each.get("purged_ms", 0) for each in documents), default=0)


def _of_parcel(record: StreamRecord) -> bool:
    return bool(record.keys["pk"]["S"].startswith(f"{PARCELS}#"))


def _images(record: StreamRecord) -> tuple[Parcel | None, Parcel | None, bool]:
    before, after = record.old_image, record.new_image
    return (
        read_parcel(before) if before else None,
        read_parcel(after) if after else None,
        record.user_identity is not None,
    )


def _new(before: Parcel | None, after: Parcel) -> Iterator[str]:
    """Ids of the messages that a write put where they were not, wherever they go from there."""
    if before is None or before.sent_ms != after.sent_ms:
        for place in range(after.count):
            if after.visible_ms[place] not in (GONE, MOVED):
                yield after.message_id(place)


def _line(before: Parcel | None, after: Parcel | None, fault: str) -> str:
    parcel = after or before
    assert parcel is not None
    return f"{parcel.source_id} {parcel.sort_key}: {fault}"
