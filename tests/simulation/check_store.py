"""The store at the end of a run: the meter's counters, half messages whose time is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.simulation.deployment import Deployment, scan

from cirrusmq.model.parcel import DELETED
from cirrusmq.publishing.half_messages.items import read_half
from cirrusmq.storage.counters import is_exact, level_name_of
from cirrusmq.storage.parcels import ARCHIVE, PARCELS, read_parcel
from cirrusmq_local.judging.half_producers import CHECK
from cirrusmq_local.judging.history import MAX_SKEW_MS, Violation
from cirrusmq_local.judging.tracks import Book

_SKEW_MS = 2 * MAX_SKEW_MS


def check_counters(deployment: Deployment) -> Iterator[Violation]:
    """Counters equal the store: messages not deleted, by priority, their bytes; deleted ones."""
    held: Counter[tuple[str, str]] = Counter()
    for item in scan(deployment.engine, deployment.tables.messages):
        kind, source_id, _ = (item["pk"]["S"] + "##").split("#", 3)[:3]
        if kind not in (PARCELS, ARCHIVE):
            continue
        parcel = read_parcel(item)
        held[source_id, "rewindable"] += parcel.visible_ms.count(DELETED)
        if kind == ARCHIVE:
            continue
        live = [place for place in range(parcel.count) if parcel.live(place)]
        held[source_id, "messages"] += len(live)
        held[source_id, "bytes"] += sum(parcel.sizes[place] for place in live)
        if (level := level_name_of(parcel.sort_key)) is not None:
            held[source_id, level] += len(live)
    counted: Counter[tuple[str, str]] = Counter()
    for item in scan(deployment.engine, deployment.tables.usage):
        if item["pk"]["S"].startswith("C#"):
            for name in filter(is_exact, item):
                counted[item["sk"]["S"], name] += int(item[name]["N"])
    wrong = {key for key in {*held, *counted} if held[key] != counted[key]}
    for key in sorted(wrong):
        yield Violation(f"the counter {key} shows {counted[key]}, the store holds {held[key]}")


def billed(deployment: Deployment) -> Counter[tuple[str, str]]:
    """What the meter noted for bills: (place, kind of use) -> count."""
    found: Counter[tuple[str, str]] = Counter()
    for item in scan(deployment.engine, deployment.tables.usage):
        for record in item.get("records", {"L": []})["L"]:
            entry = record["M"]
            place = entry["resource"]["S"].partition(":")[2]
            found[place, entry["kind"]["S"]] += int(entry["count"]["N"])
    return found


def check_overdue(deployment: Deployment, book: Book) -> Iterator[Violation]:
    """Each half message whose time was over when its producers asked last is rolled back by then.

    until ── asked: not handed out any more ── a sweep ── the end: rolled back, and told in the log
    """
    last = max((call.begun_ms for call in book.by_kind[CHECK] if call.known), default=0)
    for item in scan(deployment.engine, deployment.tables.messages):
        if item["pk"]["S"].startswith("T#") and item["sk"]["S"].startswith("H#"):
            half = read_half(item)
            if half.state == "prepared" and half.until_ms + _SKEW_MS < last:
                yield Violation(f"{half.handle} is prepared though its time is over")
