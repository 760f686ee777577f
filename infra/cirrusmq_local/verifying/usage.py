"""The service's own count of use, beside the calls of a run.

calls ──> stream ──> meter ──> usage records ──export──> here: each count is between what the
                                                         clients know and the highest possible
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cirrusmq_local.judging.check_meter import check_usage, usage
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.verifying.played import Played
from cirrusmq_local.verifying.remote import Service

PROMISE = "usage"
_WAIT_SECONDS, _ROUND_SECONDS = 120, 2
"""After a fault the meter repeats its batches."""
Metered = Counter[tuple[str, str]]
"""(place, kind of use) -> count."""


def measure_usage(admin: Service, played: Sequence[Played]) -> dict[str, dict[str, int]]:
    """Judge what a service on this machine metered, once it has come to rest.

    Each export stays in its data folder. Returns kind of use -> metered, and the bounds by the
    calls.
    """
    ends = time.monotonic() + _WAIT_SECONDS
    while True:
        admin.ask("POST", "/local/run/meter")  # its batch may wait for a minute
        counted = read_exports(admin.ask("POST", "/local/export", {})["exports"].values())
        if not any(_broken(each, counted) for each in played) or time.monotonic() > ends:
            return judge_usage(played, counted)
        time.sleep(_ROUND_SECONDS)


def read_exports(folders: Any) -> Metered:
    """Returns the counts of the usage records in exports of tables."""
    found: Metered = Counter()
    for folder in folders:
        for path in sorted(Path(folder).glob("data/*.json.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    for record in json.loads(line)["Item"].get("records", {"L": []})["L"]:
                        entry = record["M"]
                        place = entry["resource"]["S"].partition(":")[2]
                        found[place, entry["kind"]["S"]] += int(entry["count"]["N"])
    return found


def judge_usage(played: Sequence[Played], counted: Metered) -> dict[str, dict[str, int]]:
    """Check the usage of each scene. Returns kind -> metered, and the bounds by the calls."""
    shown: dict[str, Counter[str]] = {}
    for each in played:
        own = _own(each, counted)
        each.judged[PROMISE] = len(each.remote.history.calls)
        each.violations += [(PROMISE, found) for found in _broken(each, counted)]
        for used in usage(each.scenario, Book(each.remote.history)):
            told = shown.setdefault(used.kind, Counter())
            # A counter's += would drop counts of 0.
            told.update(metered=own[used.place, used.kind], at_least=used.known, at_most=used.limit)
    return {kind: dict(told) for kind, told in sorted(shown.items())}


def _broken(played: Played, counted: Metered) -> list[Violation]:
    book = Book(played.remote.history)
    return [*check_usage(played.scenario, _own(played, counted), book)]


def _own(played: Played, counted: Metered) -> Metered:
    """The counts of a scene, by its own names of places."""
    prefix = played.remote.prefix
    return Counter(
        {
            (place.removeprefix(prefix), kind): count
            for (place, kind), count in counted.items()
            if place.startswith(prefix)
        }
    )
